"""`calibrate` certifies what the library does, says so by its exit code, and writes what is asked for."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, calibrate
from shell import GOLDEN, command, invoke, parquet, refused, succeeded, write

LABELLED = [GOLDEN / "scores.csv", "--score", "score", "--label", "label"]
TABLE = np.loadtxt(GOLDEN / "scores.csv", delimiter=",", skiprows=1)
NORMAL, ANOMALOUS = TABLE[TABLE[:, 1] == 0, 0], TABLE[TABLE[:, 1] == 1, 0]
LOOSE = ["--max-fpr", "0.1", "--max-fnr", "0.2", "--delta-fpr", "0.05", "--delta-fnr", "0.1"]
ASKED = Guarantee(0.1, 0.2, 0.05, 0.1)

VARIANTS: dict[str, tuple[list[str], Guarantee, dict[str, Any]]] = {
    "defaults": ([], Guarantee(), {}),
    "all four numbers": (LOOSE, ASKED, {}),
    "FPR only": (["--max-fnr", "none"], Guarantee(0.05, None), {}),
    "FNR only": (["--max-fpr", "NONE"], Guarantee(None, 0.05), {}),
    "relax": ([*LOOSE, "--no-abstain"], ASKED, {"abstain": False}),
    "double": ([*LOOSE, "--no-abstain", "--growth", "double"], ASKED, {"abstain": False, "growth": "double"}),
    "step": ([*LOOSE, "--no-abstain", "--step", "0.02"], ASKED, {"abstain": False, "step": 0.02}),
    "ceilings": ([*LOOSE, "--no-abstain", "--ceilings", "fpr"], ASKED, {"abstain": False, "ceilings": "fpr"}),
    "deltas": ([*LOOSE, "--no-abstain", "--relax-delta"], ASKED, {"abstain": False, "relax_delta": True}),
    "as printed": (
        [*LOOSE, "--no-abstain", "--correction", "none"],
        ASKED,
        {"abstain": False, "correction": None},
    ),
    "position": ([*LOOSE, "--no-abstain", "--position", "1"], ASKED, {"abstain": False, "position": 1.0}),
    "hold_fnr": (
        ["--no-abstain", "--strategy", "hold_fnr"],
        Guarantee(),
        {"abstain": False, "strategy": "hold_fnr"},
    ),
    "hold_fpr": (
        ["--no-abstain", "--strategy", "hold_fpr"],
        Guarantee(),
        {"abstain": False, "strategy": "hold_fpr"},
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_option_reaches_the_certificate(name: str, tmp_path: Path) -> None:
    options, guarantee, arguments = VARIANTS[name]
    expected = calibrate(NORMAL, ANOMALOUS, guarantee, **arguments)
    saved = tmp_path / "certificate.json"
    done = invoke("calibrate", *LABELLED, *options, "-o", saved)
    assert Certificate.load(saved) == expected
    assert (done.out, done.err) == (f"{expected}\n", "")
    assert done.code == (1 if expected.empty else 0)


def test_without_an_output_only_the_terminal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert succeeded("calibrate", *LABELLED) == f"{calibrate(NORMAL, ANOMALOUS)}\n"
    assert list(tmp_path.iterdir()) == []


def test_standard_input_is_read() -> None:
    content = (GOLDEN / "scores.csv").read_bytes()
    out = succeeded("calibrate", "-", "--score", "score", "--label", "label", stdin=content)
    assert out == f"{calibrate(NORMAL, ANOMALOUS)}\n"


@pytest.mark.parametrize(("options", "words"), [([], "too few labels"), (["--no-abstain"], "nothing")])
def test_too_few_labels_are_saved_shown_and_exit_with_1(
    options: list[str], words: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", "score,label\n1,0\n2,1\n")
    saved = tmp_path / "certificate.json"
    done = invoke("calibrate", path, "--score", "score", "--label", "label", *options, "-o", saved)
    assert (done.code, done.err) == (1, "")
    assert words in done.out
    assert Certificate.load(saved).empty


@pytest.mark.filterwarnings("default")
def test_scores_upside_down_are_one_note() -> None:
    rows = "".join(f"{-i},1\n{i},0\n" for i in range(1, 100))
    done = invoke(
        "calibrate", "-", "--score", "score", "--label", "label", stdin=f"score,label\n{rows}".encode()
    )
    assert done.code == 0
    assert done.err.startswith("pac-wrap: note: anomalies score lower than normal points (AUC 0.000)")
    assert done.err.count("\n") == 1
    assert "Warning" not in done.err
    assert done.out.startswith("asked ")


def test_the_real_command_gives_the_note_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n" + "".join(f"{-i},1\n{i},0\n" for i in range(1, 100)))
    done = command("calibrate", path, "--score", "score", "--label", "label", "-o", tmp_path / "c.json")
    assert done.code == 0
    assert done.err.startswith("pac-wrap: note: anomalies score lower")
    assert done.err.count("\n") == 1
    # the remedy must be one that this user has
    assert "polarity=" not in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--max-fpr", "five"],
            "--max-fpr must be a number between 0 and 1, or none; got 'five'; write five percent as 0.05",
        ),
        (["--max-fpr", "5"], "max_fpr must lie strictly between 0 and 1, got 5.0"),
        (["--max-fnr", "nan"], "max_fnr must lie strictly between 0 and 1, got nan"),
        (["--max-fpr", "none", "--max-fnr", "None"], "promise at least one of them"),
        (["--delta-fpr", "0"], "delta_fpr must lie strictly between 0 and 1, got 0.0"),
        (["--delta-fnr", "inf"], "delta_fnr must lie strictly between 0 and 1, got inf"),
        (["--no-abstain", "--step", "0"], "step"),
        (["--no-abstain", "--step", "1e-9"], "step"),
        (["--no-abstain", "--position", "2"], "position"),
    ],
)
def test_impossible_promises_are_refused(options: list[str], words: str, tmp_path: Path) -> None:
    assert words in refused(tmp_path, "calibrate", *LABELLED, *options, "-o", tmp_path / "c.json")


@pytest.mark.parametrize(
    "options",
    [
        ["--strategy", "hope"],
        ["--growth", "fast"],
        ["--ceilings", "none"],
        ["--correction", "some"],
        ["--delta-fpr", "five"],
        ["--unknown"],
    ],
)
def test_wrong_usage_exits_with_2_and_writes_nothing(options: list[str], tmp_path: Path) -> None:
    done = invoke("calibrate", *LABELLED, *options, "-o", tmp_path / "c.json")
    assert (done.code, done.out) == (2, "")
    assert "Usage: pac-wrap calibrate" in done.err or "Usage: root calibrate" in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["--score", "--label", "table"])
def test_what_is_required_is_asked_for(missing: str) -> None:
    given = {"table": [str(LABELLED[0])], "--score": ["--score", "score"], "--label": ["--label", "label"]}
    done = invoke("calibrate", *(word for name, words in given.items() if name != missing for word in words))
    assert (done.code, done.out) == (2, "")
    assert "Missing" in done.err


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_a_report_is_written_in_the_format_of_its_name(suffix: str, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    query = f"SELECT score AS \"{hostile}\", label FROM read_csv('{GOLDEN / 'scores.csv'}')"
    path = parquet(tmp_path / "a.parquet", query)
    report = tmp_path / f"report{suffix}"
    done = invoke("calibrate", path, "--score", hostile, "--label", "label", "--report", report)
    assert (done.code, done.err) == (0, "")
    text = report.read_text(encoding="utf-8")
    if suffix == ".html":
        assert hostile not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    elif suffix == ".json":
        assert hostile in json.dumps(json.loads(text))
    else:
        assert "alert(1)" in text


def test_a_report_of_a_certificate_that_promises_nothing_is_written_too(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n1,0\n2,1\n")
    report = tmp_path / "report.html"
    done = invoke("calibrate", path, "--score", "score", "--label", "label", "--report", report)
    assert (done.code, done.err) == (1, "")
    assert report.read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_the_demo_writes_a_report(tmp_path: Path) -> None:
    done = invoke("demo", "--report", tmp_path / "report.json")
    assert (done.code, done.err) == (0, "")
    assert "isolation forest" in (tmp_path / "report.json").read_text(encoding="utf-8")


def test_the_real_demo_writes_a_report(tmp_path: Path) -> None:
    done = command("demo", "--report", tmp_path / "report.md")
    assert (done.code, done.err) == (0, "")
    assert "isolation forest" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
