"""Rows come in the order of time and series by series, whatever file and type hold them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap.tables.table import RowsInTime, open_table, rows_in_time
from support.examples import examples
from support.shell import parquet, write
from support.strategies import refusal


def read(path: Path, series: str | None = "m", anomaly_label: str | None = None) -> RowsInTime:
    columns = ["s", "t", *([] if series is None else [series])]
    with open_table([str(path)], columns, "y") as table:
        return rows_in_time(table, "s", "y", anomaly_label, "t", series)


def csv(folder: Path, *rows: str, header: str = "s,y,t,m") -> Path:
    return write(folder / "rows.csv", "\n".join([header, *rows]) + "\n")


def test_rows_are_ordered_by_series_and_time_as_numbers(tmp_path: Path) -> None:
    path = csv(tmp_path, "0.5,0,10,b", ",0,1,b", "0.25,1,9,b", "7,0,2,a", "8,1,-1e1,a")
    found = read(path)
    assert (found.names, found.sizes) == (("a", "b"), (2, 3))
    np.testing.assert_array_equal(found.scores, [8, 7, np.nan, 0.25, 0.5])
    assert found.anomalous.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2027-01-31", "2027-02-01"),
        ("2027-01-31 23:59:59", "2027-02-01"),
        ("2027-01-31T09:00:00.5", "2027-01-31T10:00:00"),
        ("0999-12-31", "2027-01-01"),
        ("9", "10"),
    ],
)
def test_times_are_read_from_texts(first: str, second: str, tmp_path: Path) -> None:
    found = read(csv(tmp_path, f"2,0,{second},a", f"1,0,{first},a"))
    assert found.scores.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        ("TIMESTAMP '2027-01-01 00:00:00' + INTERVAL (i) HOUR", "DOUBLE"),
        ("DATE '2027-01-01' + CAST(i AS INTEGER)", "FLOAT"),
        ("TIMESTAMPTZ '2027-01-01 00:00:00+02' + INTERVAL (i) MINUTE", "FLOAT"),
        ("CAST(i AS DOUBLE) / 7", "FLOAT"),
        ("CAST(i AS DOUBLE) / 7", "DOUBLE"),
        ("CAST(i AS DECIMAL(9, 2))", "DOUBLE"),
        ("i", "FLOAT"),
        ("CAST(DATE '2027-01-01' + CAST(i AS INTEGER) AS VARCHAR)", "DOUBLE"),
    ],
    ids=["stamps", "dates", "zoned", "doubles and floats", "doubles", "decimals", "whole", "texts"],
)
def test_every_type_of_time_orders_and_scores_keep_theirs(times: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    query = f"SELECT CAST(i AS {kind}) AS s, i % 3 = 0 AS y, {times} AS t, i % 2 AS m FROM range(30) r(i)"
    parquet(path, f"{query} ORDER BY hash(i)")
    found = read(path)
    assert found.scores.dtype == {"FLOAT": "float32", "DOUBLE": "float64"}[kind]
    assert found.names == ("0", "1")
    assert found.scores.tolist() == [*range(0, 30, 2), *range(1, 30, 2)]
    np.testing.assert_array_equal(found.anomalous, found.scores % 3 == 0)
    alone = read(path, None)
    assert alone.names == ("",)
    assert alone.scores.tolist() == list(range(30))


@settings(max_examples=examples(20))
@given(rows=st.lists(st.tuples(st.integers(-50, 50), st.sampled_from("abc")), min_size=1, unique=True))
def test_the_order_is_that_of_python(rows: list[tuple[int, str]], tmp_path_factory: Any) -> None:
    path = csv(tmp_path_factory.mktemp("rows"), *(f"{i},0,{t},{m}" for i, (t, m) in enumerate(rows)))
    expected = sorted(range(len(rows)), key=lambda i: (rows[i][1], rows[i][0]))
    found = read(path)
    assert found.scores.tolist() == expected
    assert found.names == tuple(sorted({m for _, m in rows}))


def test_labels_may_have_names_and_series_odd_ones(tmp_path: Path) -> None:
    found = read(csv(tmp_path, '1,bad,1,"it\'s ""x"", y"', "2,fine,1,\x1b[31m"), anomaly_label="bad")
    assert sorted(found.names) == ["\x1b[31m", 'it\'s "x", y']
    assert sorted(zip(found.scores, found.anomalous, strict=True)) == [(1, True), (2, False)]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            ["1,0,1,a", "2,0,1,a"],
            "column 't' has 2 rows of series 'a' at 1.0, whose order is unknown; keep one",
        ),
        (["1,0,,a", "2,0,1,a"], "column 't' is empty or NaN in 1 row; drop them or add their time"),
        (
            ["1,0,soon,a", "2,0,1,a"],
            "numbers or times such as 2027-01-31 12:00:00, got 'soon'; fix",
        ),
        (["1,0,5,a", "2,0,2027-01-31,a"], "such as 2027-01-31 12:00:00, got both; fix those rows"),
        (["1,0,1,", "2,0,1,a"], "column 'm' is empty in 1 row; fill in the series"),
        (["x,0,1,a", ",0,2,a"], "column 's' must hold numbers, got 'x' in row 1"),
        (["1,0,1,a", "2,3,2,a"], "column 'y' must be 0/1 or true/false, got '3'"),
        ([], "has no rows"),
    ],
    ids=["twice", "no time", "no such time", "mixed", "no series", "text", "label", "empty"],
)
def test_what_has_no_order_is_refused(rows: list[str], reason: str, tmp_path: Path) -> None:
    path = csv(tmp_path, *rows)
    assert reason in refusal(lambda: read(path))


def test_two_rows_at_a_time_are_told_about_series(tmp_path: Path) -> None:
    path = csv(tmp_path, "1,0,1,a", "2,0,1,b")
    assert "name the column of series with --series" in refusal(lambda: read(path, None))
    assert read(path).sizes == (1, 1)


def test_a_column_that_cannot_be_a_time_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    parquet(path, "SELECT 1.5 AS s, 0 AS y, [i] AS t, 'a' AS m FROM range(3) r(i)")
    assert "must hold numbers, dates or time stamps, but its type is" in refusal(lambda: read(path))
    parquet(path, "SELECT 1.5 AS s, 0 AS y, 'NaN'::DOUBLE AS t, 'a' AS m FROM range(3) r(i)")
    assert "column 't' is empty or NaN in 3 rows" in refusal(lambda: read(path))
    assert "there is no column 'when'" in refusal(lambda: read(path, "when"))
