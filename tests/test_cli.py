import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from pac_wrap import __version__
from pac_wrap.certificate import Certificate
from pac_wrap.cli import app, main
from shell import CERTIFICATE, invoke, one_sentence, refused

runner = CliRunner()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = Path(sys.executable).with_name("pac-wrap")
    return subprocess.run([script, *arguments], capture_output=True, text=True, timeout=60)


def test_demo_shows_promise_thresholds_regime_and_rates_in_time() -> None:
    start = time.perf_counter()
    done = command("demo")
    assert time.perf_counter() - start < 15
    assert done.returncode == 0
    assert done.stderr == ""
    for words in ("at most 5 % of normal points", "separated", "alarm from", "clear below", "one threshold"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert runner.invoke(app, ["demo"], env={"COLUMNS": "80"}).stdout == done.stdout


def test_demo_with_overlapping_classes_relaxes_and_draws_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    result = runner.invoke(app, ["demo", "--margin", "3", "--seed", "1", "--svg", str(picture)])
    assert result.exit_code == 0, result.output
    assert "overlapping" in result.stdout
    text = picture.read_text()
    assert "font-face" not in text
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "--max-fpr", "5"], "max_fpr must lie strictly between 0 and 1, got 5.0"),
        (["plan", "--labels", "-1"], "--labels"),
        (["plan", "--labels", "5", "--delta", "1"], "delta must lie strictly between 0 and 1"),
        (["demo", "--margin", "far"], "margin"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_arguments_give_exit_code_2_and_no_traceback(arguments: list[str], words: str) -> None:
    done = invoke(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_real_command_ends_alike() -> None:
    done = command("plan", "--max-fpr", "5")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pac-wrap: max_fpr must lie strictly between 0 and 1, got 5.0")


def test_picture_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    sentence = refused(tmp_path, "demo", "--svg", tmp_path / "nowhere" / "demo.svg")
    assert "nowhere" in sentence


def test_version_and_help() -> None:
    assert runner.invoke(app, ["--version"]).stdout == f"pac-wrap {__version__}\n"
    assert runner.invoke(app, []).exit_code == 2
    for name in ("demo", "plan"):
        shown = runner.invoke(app, [name, "--help"]).stdout
        assert f"pac-wrap {name}" in shown


def test_main_runs_the_app(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["pac-wrap", "plan", "--max-fpr", "2"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err.startswith("pac-wrap: max_fpr")


@pytest.mark.parametrize("with_debug", [[], ["--debug"]])
def test_ctrl_c_is_one_sentence_even_with_debug(
    with_debug: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Certificate, "load", interrupt)
    done = invoke(*with_debug, "show", CERTIFICATE)
    assert (done.code, done.out) == (130, "")
    assert one_sentence(done.err) == "interrupted; no file is left half written"


def test_debug_is_for_one_call_only(tmp_path: Path) -> None:
    invoke("--debug", "show", CERTIFICATE)
    assert invoke("show", tmp_path / "missing.json").code == 2
