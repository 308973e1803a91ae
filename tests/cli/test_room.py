"""--shift and --label-noise: what they mean, what is said, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import KL, Certificate, DensityRatio, LabelNoise, TotalVariation
from support.shell import invoke, refused


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng, path = np.random.default_rng(5), tmp_path / "scores.csv"
    scores = np.append(rng.normal(0, 1, 600), rng.normal(4, 1, 300))
    path.write_text("s,y\n" + "\n".join(f"{one!r},{int(i >= 600)}" for i, one in enumerate(scores.tolist())))
    return path


def made(table: Path, *options: str) -> Certificate:
    path = table.with_name("certificate.json")
    done = invoke("calibrate", table, "--score", "s", "--label", "y", "-o", path, *options)
    assert done.code == 0, done.err
    return Certificate.load(path)


def test_calibrate_leaves_room_and_says_so(table: Path) -> None:
    certificate = made(table, "--shift", "tv:0.02")
    assert certificate.guarantee.shift == (TotalVariation(0.02), TotalVariation(0.02))
    path = table.with_name("certificate.json")
    shown = invoke("show", path)
    assert "FPR: total variation up to 0.02" in shown.out
    assert invoke("verify", path, table, "--score", "s", "--label", "y").code == 0
    assert invoke("evaluate", path, table, "--score", "s", "--label", "y").code == 0


def test_each_class_by_itself(table: Path) -> None:
    asked = made(table, "--shift", "ratio:2,none", "--label-noise", "none, 0.02:0.001").guarantee
    assert asked.shift == (DensityRatio(2), None)
    assert asked.label_noise == (None, LabelNoise(0.02, 0.001))
    assert made(table, "--shift", "KL:0.001").guarantee.shift == (KL(0.001),) * 2


@pytest.mark.parametrize("group", [False, True])
def test_evaluate_says_what_it_assumes_of_new_labels(table: Path, tmp_path: Path, group: bool) -> None:
    words, path = ["--score", "s", "--label", "y"], tmp_path / "certificate.json"
    if group:
        text = table.read_text().splitlines()
        table.write_text("\n".join([f"{text[0]},g", *(f"{line},{i % 2}" for i, line in enumerate(text[1:]))]))
        words += ["--group", "g"]
    for noise, there in ((["--label-noise", "0.02,none"], True), ([], False)):
        assert invoke("calibrate", table, *words, "-o", path, *noise).code == 0
        done = invoke("evaluate", path, table, *words)
        assert ("changes with the prevalence" in " ".join(done.out.split())) is there
        record = json.loads(invoke("evaluate", path, table, *words, "--format", "json").out)
        assert ("changes with the prevalence" in record.get("assumes", "")) is there


def test_by_group(table: Path, tmp_path: Path) -> None:
    text = table.read_text().splitlines()
    table.write_text("\n".join([f"{text[0]},g", *(f"{line},{i % 2}" for i, line in enumerate(text[1:]))]))
    path = tmp_path / "groups.json"
    options = ("--score", "s", "--label", "y", "--group", "g", "-o", path)
    assert invoke("calibrate", table, *options, "--shift", "tv:0.01").code == 0
    assert json.loads(path.read_text())["asked"]["shift"][0] == {"name": "tv", "distance": 0.01}
    assert invoke("verify", path, table, "--score", "s", "--label", "y", "--group", "g").code == 0


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        (("--shift", "tv:0.02"), 99),
        (("--shift", "ratio:2"), 119),
        (("--shift", "ratio:5"), 299),
        (("--shift", "kl:0.01"), 119),
        (("--shift", "chi2:0.1"), 221),
        (("--label-noise", "0.05"), 62),
    ],
)
def test_plan_knows_it(options: tuple[str, ...], labels: int) -> None:
    done = invoke("plan", "--max-fpr", "0.05", *options, "--format", "json")
    (found,) = json.loads(done.out)["needed"]
    assert found["needed"][0] == {"errors": 0, "labels": labels}
    assert found["at_calibration"] < 0.05
    assert "tolerating" in invoke("plan", "--max-fpr", "0.05", *options).out
    assert "tolerating" in invoke("plan", "--max-fpr", "0.05", "--sequential", *options).out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--shift", "0.02"), "--shift must be like tv:0.02, ratio:2, kl:0.01 or chi2:0.1, got '0.02'"),
        (("--shift", "tv:x"), "--shift must be like tv:0.02"),
        (("--shift", "wasserstein:1"), "--shift must be like tv:0.02"),
        (("--shift", "tv:2"), "must lie strictly between 0 and 1"),
        (("--shift", "tv:0.06"), "is too low to tolerate"),
        (("--shift", "tv:0.01,tv:0.01,none"), "takes one value, or two"),
        (("--label-noise", "a"), "--label-noise must be 0.05 or 0.05:0.01, got 'a'"),
        (("--label-noise", "0.1:0.1:0.1"), "--label-noise must be"),
        (("--label-noise", "1.5"), "contamination must be a share"),
    ],
)
def test_what_makes_no_sense_is_refused(table: Path, options: tuple[str, ...], words: str) -> None:
    assert words in refused(table.parent, "calibrate", table, "--score", "s", "--label", "y", *options)


def test_room_is_for_a_ceiling_and_its_labels(tmp_path: Path) -> None:
    assert "remove --labels" in refused(tmp_path, "plan", "--labels", "200", "--shift", "tv:0.01")
    assert "remove --labels" in refused(tmp_path, "plan", "--normal", "200", "--label-noise", "0.01")
