"""What is refused on the command line is named as the command line names it."""

from pathlib import Path

import pytest

from pac_wrap.cli.process import in_options, state
from support.shell import CERTIFICATE, GOLDEN, refused, write

LABELLED = [GOLDEN / "scores.csv", "--score", "score", "--label", "label"]


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["calibrate", *LABELLED, "--max-fpr", "2"], "--max-fpr must lie strictly between 0 and 1, got 2.0"),
        (
            ["calibrate", *LABELLED, "--max-fpr", "none", "--max-fnr", "none"],
            "--max-fpr and --max-fnr are both",
        ),
        (["calibrate", *LABELLED, "--delta-fnr", "0"], "--delta-fnr must lie"),
        (["calibrate", *LABELLED, "--confidence", "1.5"], "--confidence must lie"),
        (
            ["calibrate", *LABELLED, "--confidence", ".9", "--delta-fpr", ".1"],
            "--confidence must come without",
        ),
        (["curve", *LABELLED, "--max-fnr", "3"], "--max-fnr must lie"),
        (["curve", *LABELLED, "--delta-fpr", "7"], "--delta-fpr must lie"),
        (["plan", "--max-fpr", "9"], "--max-fpr must lie"),
        (["plan", "--delta", "9"], "--delta must lie"),
        (["plan", "--sequential", "--up-to", "3"], "--every must not exceed --up-to, got 20 and 3"),
        (["worth", CERTIFICATE, "--prevalence", "0.1", "--delta", "4"], "--delta must lie"),
        (["compare", *LABELLED, "--delta-fpr", "1e-30"], "--delta-fpr / 1 must be at least"),
    ],
)
def test_messages_name_options(arguments: list[object], start: str, tmp_path: Path) -> None:
    assert refused(tmp_path, *arguments).startswith(start)


def test_the_users_own_names_stay_as_they_are(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "max_fpr,y\n1,0\n")
    found = refused(tmp_path, "calibrate", table, "--score", "max_fpx", "--label", "y")
    assert found == "there is no column 'max_fpx'; did you mean 'max_fpr'? the columns are max_fpr, y"


def test_only_arguments_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(state, "options", ["overlap", "max_fpr", "delta"])
    assert (
        in_options('overlap="raise" takes at most 10; delta = 0.05')
        == "--overlap raise takes at most 10; delta = 0.05"
    )
    assert (
        in_options("give max_fpr, not 'max_fpr' or max_fpr_x") == "give --max-fpr, not 'max_fpr' or max_fpr_x"
    )
    assert in_options("the classes overlap; delta must hold") == "the classes overlap; delta must hold"
