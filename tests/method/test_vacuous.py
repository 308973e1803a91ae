"""What is asked for and not promised is said once, in the same words, wherever labelled scores go in."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from pac_wrap import (
    Certificate,
    Guarantee,
    PACWrap,
    VacuousWarning,
    calibrate,
    calibrate_chunks,
    calibrate_labelled,
)
from pac_wrap.tables import database
from pac_wrap.tables.calibrate import calibrate as calibrate_files
from support.shell import invoke, write

NORMAL, FEW = np.arange(200.0), np.arange(300.0, 330.0)
SCORES, LABELS = np.r_[NORMAL, FEW], np.repeat([0, 1], [200, 30])
SENTENCE = "nothing is promised about the FNR (30 labels; 59 needed, or a ceiling of 0.09504)"


def by_file(folder: Path) -> Certificate:
    rows = "".join(f"{score},{label}\n" for score, label in zip(SCORES, LABELS, strict=True))
    made: Certificate = calibrate_files(write(folder / "t.csv", f"score,label\n{rows}"))
    return made


def by_database(folder: Path) -> Certificate:
    with duckdb.connect() as connection:
        connection.register("columns", {"score": SCORES, "label": LABELS})
        connection.execute("CREATE TABLE t AS SELECT * FROM columns")
        return database.calibrate(lambda text: connection.execute(text).fetchall(), "t", dialect="duckdb")


def by_wrap(folder: Path) -> Certificate:
    wrap = PACWrap(lambda rows: np.asarray(rows)[:, 0], score_tolerance=None)
    found: Certificate = wrap.fit(SCORES[:, None], LABELS).certificate_
    return found


ENTRANCES: dict[str, Callable[[Path], Certificate]] = {
    "calibrate": lambda folder: calibrate(NORMAL, FEW),
    "calibrate_labelled": lambda folder: calibrate_labelled(SCORES, LABELS),
    "calibrate_chunks": lambda folder: calibrate_chunks(lambda: [(SCORES[::2], LABELS[::2])] * 2),
    "files": by_file,
    "database": by_database,
    "PACWrap": by_wrap,
}


@pytest.mark.filterwarnings("always::pac_wrap.errors.VacuousWarning")
@pytest.mark.parametrize("name", ENTRANCES)
def test_every_entrance_warns_once_in_the_same_words(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificate = ENTRANCES[name](tmp_path)
    assert [(one.category, str(one.message), one.filename) for one in caught] == [
        (VacuousWarning, SENTENCE, __file__)
    ]
    assert certificate.shortfall == SENTENCE


@pytest.mark.filterwarnings("error::pac_wrap.errors.VacuousWarning")
def test_nothing_is_said_where_all_is_promised_or_nothing_new_is() -> None:
    kept = calibrate(NORMAL, NORMAL + 300)
    assert kept.shortfall is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousWarning)
        made = calibrate(NORMAL, FEW)
    assert made.verify(NORMAL, FEW)


def test_no_labels_at_all_warn_too() -> None:
    with pytest.warns(
        VacuousWarning, match=re.escape("nothing is promised about the FNR (no labels; 59 needed)")
    ):
        calibrate(NORMAL, [])
    with pytest.warns(VacuousWarning, match="^nothing is promised: no single threshold can be certified"):
        calibrate([1.0], [2.0], overlap="algorithm1")


@pytest.mark.parametrize("n", [1, 2, 5, 30, 58])
def test_the_ceiling_that_is_named_is_kept_and_a_lower_one_is_not(n: int) -> None:
    with pytest.warns(VacuousWarning) as caught:
        calibrate(NORMAL, FEW[:1].repeat(n))
    found = re.search("a ceiling of ([0-9.]+)", str(caught[0].message))
    assert found is not None
    ceiling = float(found[1])
    assert calibrate(NORMAL, FEW[:1].repeat(n), Guarantee(max_fnr=ceiling)).shortfall is None
    assert calibrate(NORMAL, FEW[:1].repeat(n), Guarantee(max_fnr=ceiling * 0.999)).shortfall is not None


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            (NORMAL, FEW),
            "anomalous  30 labels, too few: at least 59 are needed, or a ceiling of 0.09504",
        ),
        ((NORMAL, [1.0]), "anomalous  1 label, too few: at least 59 are needed, or a ceiling of 0.9501"),
        ((NORMAL, []), "anomalous  0 labels, too few: at least 59 are needed"),
        (([], FEW), "normal     0 labels, too few: at least 59 are needed"),
        ((NORMAL, FEW, Guarantee(max_fnr=None)), "anomalous  30 labels, no ceiling requested"),
    ],
)
def test_promised_never_stands_where_nothing_is(arguments: Any, line: str) -> None:
    shown = str(calibrate(*arguments)).splitlines()
    assert line in shown
    assert shown[0].startswith("In the long run, " if len(arguments[0]) else "Nothing is promised yet, ")
    assert "on a promised side" not in "\n".join(shown)


@pytest.mark.filterwarnings("always::pac_wrap.errors.VacuousWarning")
def test_the_command_says_it_once(tmp_path: Path) -> None:
    with pytest.warns(VacuousWarning):
        by_file(tmp_path)
    done = invoke("calibrate", tmp_path / "t.csv", "--score", "score", "--label", "label")
    assert (done.code, done.err) == (1, "")
    assert done.out.count("30 labels, too few: at least 59 are needed, or a ceiling of 0.09504") == 1
    assert "cannot certify" not in done.out
