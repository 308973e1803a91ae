"""Scores in CSV on their way to Parquet: each is what Python's csv and the house's rules make of it."""

import csv
import io
from itertools import product
from math import isnan
from pathlib import Path

import duckdb
import numpy as np
import pytest

from pac_wrap import Certificate
from pac_wrap.errors import InputError
from pac_wrap.tables.columns import number
from pac_wrap.tables.decide import decide_table
from pac_wrap.tables.files.connection import MISFIT
from pac_wrap.tables.files.csv_files import checked_score
from pac_wrap.tables.table import found_files, open_found
from support.shell import CERTIFICATE
from support.tables import empty_database

RULE = Certificate.load(CERTIFICATE)
# what engines read in ways of their own
HOSTILE = [
    *(" 0.5", "0.5 ", "\t0.5", "0.5\v", "\f.5\f", " +-1", " _1", "1 0", " ", "- 1", "--1", "+1", "+-1"),
    *("1_0", "1_0.5", "_1", "1_", "0x10", "-0x1p3", "0b1", "1e400", "-1e400", "1e-400", "9" * 400, "1e"),
    *(".5", "5.", "-.5", ".", "-", "+", "e5", "1.e5", "1E5", "1..5", "007", "-0", "00", "1e5.5", "1e+-5"),
    *("inf", "-inf", "+inf", " inf", "Infinity", "-INFINITY", "infinit", "nan", "-nan", "NaN", "nan(1)"),
    *("-nan(1)", "1d", "1f", "1L", "1,5", "1;5", "1'000", "1%", "$1", "(1)", "\u22121", "\u0663", "\uff11"),
    *("\u00bd", "1\u00a0", "\ufeff1", "true", "null", "None", "NA", "#1", "1#2", "/", "1/2", ":", "0\0"),
]


def same(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return found == expected or (isnan(found) and isnan(expected))


def decide(source: Path, target: Path) -> None:
    with (
        found_files([str(source)]) as found,
        open_found(found, ["score"], whole=True, output=target) as table,
    ):
        decide_table(table, RULE, "score", target, "FORMAT parquet", "abstain")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_score_is_what_python_reads_or_is_refused(text: str, tmp_path: Path) -> None:
    source, target = tmp_path / "scores.csv", tmp_path / "verdicts.parquet"
    with source.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["id", "score"], ["a", "0.25"], ["b", text]])
    cells = list(csv.reader(io.StringIO(source.read_text(encoding="utf-8"), newline="")))
    expected = None if "\0" in text else number(cells[2][1])
    if expected is None:
        with pytest.raises(InputError):
            decide(source, target)
        return
    decide(source, target)
    first, second = duckdb.execute(f"SELECT score, verdict FROM '{target}'").fetchall()
    assert first[0] == 0.25
    assert same(second[0], expected)
    assert second[1] == RULE.rule.decided(np.array([expected]))[0][0]


def test_every_short_text_is_read_as_python_reads_it() -> None:
    texts = ["".join(some) for size in (1, 2, 3, 4) for some in product("019.e+-_ \tnaif(", repeat=size)]
    read = checked_score("text").replace(f"error('{MISFIT}')", "NULL")
    with empty_database() as connection:
        connection.register("texts", {"place": np.arange(len(texts)), "text": np.array(texts, dtype=object)})
        rows = connection.execute(f"SELECT {read} FROM texts ORDER BY place").fetchall()
    wrong = [text for text, (found,) in zip(texts, rows, strict=True) if not same(found, number(text))]
    assert not wrong
    assert sum(found is not None for (found,) in rows) > len(texts) // 100
