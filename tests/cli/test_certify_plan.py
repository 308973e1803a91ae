"""`plan` and `demo`: what can be known before there are labels."""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from pac_wrap.cli.commands import app
from support.shell import command, refused

runner = CliRunner()


def test_demo_shows_promise_thresholds_regime_and_rates_in_time() -> None:
    start = os.times()
    done = command("demo")
    end = os.times()
    # processor time, because other processes do not change it
    assert end.children_user + end.children_system - start.children_user - start.children_system < 15
    assert done.code == 0
    assert done.err == ""
    for words in (
        "at most 5 % of normal points",
        "separated",
        "normal below",
        "anomaly from",
        "one threshold",
    ):
        assert words in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert runner.invoke(app, ["demo"], env={"COLUMNS": "80"}).stdout == done.out


@pytest.mark.usefixtures("small_demo")
def test_demo_with_overlapping_classes_relaxes_and_draws_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    result = runner.invoke(app, ["demo", "--margin", "3", "--seed", "1", "--report", str(picture)])
    assert result.exit_code == 0, result.output
    assert "overlapping" in result.stdout
    text = picture.read_text()
    assert "normal, n = " in text
    assert ElementTree.fromstring(text).tag.endswith("svg")


def test_plan_says_how_many_labels() -> None:
    result = runner.invoke(app, ["plan", "--max-fnr", "0.05", "--delta", "0.05"])
    assert result.exit_code == 0
    numbers = [line.split("│")[2].strip() for line in result.stdout.splitlines() if line.startswith("│")]
    assert numbers == ["59", "93", "124", "208", "336"]
    assert "FPR" not in result.stdout


def test_plan_without_arguments_plans_both_sides() -> None:
    result = runner.invoke(app, ["plan", "--delta", "0.1"])
    assert "FPR <= 0.05, delta = 0.1" in result.stdout
    assert "FNR <= 0.05, delta = 0.1" in result.stdout


def test_plan_says_what_labels_can_promise() -> None:
    result = runner.invoke(app, ["plan", "--labels", "3", "--max-fpr", "0.1"])
    assert result.exit_code == 0
    rows = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert rows[0].split("│")[2].strip() == "0.6316"  # 1 - 0.05 ** (1 / 3)
    assert "FPR <= 0.1" in result.stdout


@pytest.mark.usefixtures("small_demo")
def test_picture_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    sentence = refused(tmp_path, "demo", "--report", tmp_path / "nowhere" / "demo.svg")
    assert "nowhere" in sentence
