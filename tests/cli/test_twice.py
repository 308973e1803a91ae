"""A table named twice would count twice: refused by every command and engine; a copy of it is noted."""

import shutil
from pathlib import Path

import pytest

from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.tables.calibrate import calibrate
from support.shell import CERTIFICATE, GOLDEN, invoke, refused

SCORED = ["--score", "score"]
LABELLED = [*SCORED, "--label", "label"]
COMMANDS: dict[str, tuple[list[object], list[str]]] = {
    "calibrate": (["calibrate"], LABELLED),
    "calibrate --engine dask": (["calibrate", "--engine", "dask"], LABELLED),
    "calibrate --engine spark": (["calibrate", "--engine", "spark"], LABELLED),
    "evaluate": (["evaluate", CERTIFICATE], LABELLED),
    "verify": (["verify", CERTIFICATE], LABELLED),
    "compare": (["compare"], LABELLED),
    "decide": (["decide", CERTIFICATE], SCORED),
}


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    return Path(shutil.copy(GOLDEN / "scores.csv", tmp_path / "scores.csv"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_refuses_a_file_named_twice(name: str, scores: Path) -> None:
    words, options = COMMANDS[name]
    (scores.parent / "link.csv").symlink_to(scores)
    for other in (scores, scores.parent / "link.csv", scores.parent / "s*.csv"):
        sentence = refused(scores.parent, *words, scores, other, *options)
        assert sentence.endswith("its rows would count twice; name it once")


@pytest.mark.filterwarnings("always::pac_wrap.errors.PACWrapWarning")
@pytest.mark.parametrize("name", [name for name in COMMANDS if "engine" not in name])
def test_every_command_notes_a_copy(name: str, scores: Path) -> None:
    words, options = COMMANDS[name]
    copy = Path(shutil.copy(scores, scores.parent / "copy.csv"))
    done = invoke(*words, scores, copy, *options)
    assert done.code in (0, 1)
    note, *said = done.err.splitlines(keepends=True)
    assert all(line.startswith("pac-wrap: 240 rows: ") for line in said)
    assert len(said) <= 1
    assert note == (
        f"pac-wrap: note: {scores} and {copy} have the same content; if that is one table twice, its rows"
        " count twice\n"
    )


def test_the_library_refuses_and_warns_too(scores: Path) -> None:
    with pytest.raises(InputError, match="is named twice"):
        calibrate([scores, scores])
    copy = shutil.copy(scores, scores.parent / "copy.csv")
    with pytest.warns(PACWrapWarning, match="have the same content"):
        assert calibrate([scores, copy]).fpr.n == 2 * calibrate(scores).fpr.n
