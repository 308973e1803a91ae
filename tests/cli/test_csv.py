"""CSV on the command line: no row vanishes, no cell changes, and files and streams say the same."""

import csv
import gzip
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap.streams.decide import Asked, CsvLines, decide_lines
from pac_wrap.tables.decide import copy_with
from pac_wrap.tables.table import found_files, open_found
from support.pieces import RULE
from support.shell import CERTIFICATE, command, invoke, parquet, refused, succeeded, write
from support.strategies import refusal
from support.tables import empty_database

DECIDE = ["decide", CERTIFICATE]
COLUMNS = ["--score", "score", "--label", "label"]


def decided(path: Path, *more: object) -> list[list[str]]:
    """Return the rows that decide writes as CSV."""
    out = succeeded(*DECIDE, path, "--score", "score", "--format", "csv", *more)
    return list(csv.reader(io.StringIO(out, newline=""), strict=True))


@pytest.mark.parametrize(
    "rows",
    [
        [["1", "0.1", "0"], ["#2", "9", "1"], ["3", "0.2", "0"]],
        [["see #12", "0.1", "0"], ["# all", "9", "1"]],
        [["'tis", "0.1", "0"], ["a", "0.2", "0"], ["b", "9", "1"], ["c", "9", "1"], ["dogs'", "0.3", "0"]],
    ],
    ids=["a comment", "half a comment", "apostrophes"],
)
def test_no_row_vanishes_and_no_cell_changes(rows: list[list[str]], tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,score,label\n" + "".join(",".join(row) + "\n" for row in rows))
    assert [row[:3] for row in decided(path)[1:]] == rows
    packed = write(tmp_path / "b.csv.gz", gzip.compress(path.read_bytes()))
    assert [row[:3] for row in decided(packed)[1:]] == rows
    lines = succeeded(*DECIDE, path, "--score", "score", "--format", "jsonl").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [row[0] for row in rows]
    succeeded(*DECIDE, path, "--score", "score", "-o", tmp_path / "out.parquet")
    with empty_database() as connection:
        found = connection.execute(f"SELECT id FROM '{tmp_path}/out.parquet'").fetchall()
    assert [str(cell) for (cell,) in found] == [row[0] for row in rows]


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_every_engine_counts_the_same_scores(engine: str, tmp_path: Path) -> None:
    marks = ["", "#", "'", "# '", '"x, y"']
    lines = [f"{marks[i % 5]},{i / 7!r},{int(i % 5 == 0)}" for i in range(300)]
    path = write(tmp_path / "a.csv", "id,score,label\n" + "\n".join(lines) + "\n")
    saved = tmp_path / "c.json"
    assert invoke("calibrate", "-q", path, *COLUMNS, "-o", saved, "--engine", engine).code in (0, 1)
    found = json.loads(saved.read_text())
    assert [one["n"] for one in found["clauses"]] == [240, 60]


ROWS = {
    "ragged": ("1,0\n1\n", "row 2 has 1 cell, but the header has 2; fix that row"),
    "one cell too many": ("1,0\n1,0,\n", "row 2 has 3 cells, but the header has 2; fix that row"),
    "ragged, with quotes": ('"1",0\n\n1\n', "row 2 has 1 cell, but the header has 2; fix that row"),
    "underscore": ("1,0\n1_000,0\n", "column 'score' must hold numbers, got '1_000' in row 2; fix that row"),
    "truth": ("true,0\n", "column 'score' must hold numbers, got 'true' in row 1; fix that row"),
    "hexadecimal": ("0x10,0\n", "column 'score' must hold numbers, got '0x10' in row 1; fix that row"),
    "comma": (
        '"1,5",0\n',
        "column 'score' must hold numbers, got '1,5' in row 1; write decimals with a point",
    ),
    "carriage return": ("1,a\rb\n", "row 1 is not CSV: a carriage return stands in a cell without quotes"),
    "after a quote": ('"1"2,0\n', "row 1 is not CSV: ',' expected after '\"'"),
    "open quote": ('1,"0\n', "row 1 is not CSV: a quote is opened and never closed"),
}


@pytest.mark.parametrize(("rows", "sentence"), ROWS.values(), ids=list(ROWS))
def test_a_bad_row_is_named_alike_in_files_and_streams(rows: str, sentence: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n" + rows)
    asked = {
        "file": [*DECIDE, path, "--score", "score"],
        "to Parquet": [*DECIDE, path, "--score", "score", "-o", tmp_path / "out.parquet"],
        "calibrate": ["calibrate", path, *COLUMNS],
        "dask": ["calibrate", path, *COLUMNS, "--engine", "dask"],
    }
    for words in asked.values():
        assert refused(tmp_path, *words).removeprefix(f"{path}: ").startswith(sentence)
    done = invoke(*DECIDE, "-", "--score", "score", stdin=path.read_bytes())
    assert done.code == 2
    assert done.err.startswith(f"pac-wrap: {sentence}")


@pytest.mark.parametrize(
    ("cell", "verdict"),
    [("9" * 400, "1"), ("-" + "9" * 400, "0"), ("1e400", "1"), ("true", None), ('"1_0"', None)],
)
def test_json_says_the_same_in_files_and_streams(cell: str, verdict: str | None, tmp_path: Path) -> None:
    content = f'{{"score": 0.5, "label": 0}}\n{{"score": {cell}, "label": 1}}\n'
    path = write(tmp_path / "a.jsonl", content)
    for source, stdin in ((path, None), ("-", content.encode())):
        done = invoke(*DECIDE, source, "--score", "score", "--format", "csv", stdin=stdin)
        if verdict is None:
            assert done.code == 2
            assert f"must hold numbers, got {cell.strip(chr(34))!r} in row 2" in done.err
        else:
            assert done.out.splitlines()[2].split(",")[2] == verdict
    done = invoke("evaluate", CERTIFICATE, path, *COLUMNS)
    assert (done.code == 2) is (verdict is None)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_in_files_and_streams(delimiter: str, tmp_path: Path) -> None:
    rows = [["id", "score", "label"], ["a;b,c|d\te", "5.5", "1"], ["x", "-5", "0"]]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    path = write(tmp_path / "a.csv", out.getvalue())
    assert [row[:3] for row in decided(path)] == rows
    stream = succeeded(*DECIDE, "-", "--score", "score", "--format", "csv", stdin=out.getvalue().encode())
    assert list(csv.reader(io.StringIO(stream))) == decided(path)
    assert "0 of 1" in succeeded("evaluate", CERTIFICATE, path, *COLUMNS)


def test_a_delimiter_may_be_given_to_every_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(6.0 * (i % 2), 1), i % 2) for i in range(200)]
    path = write(tmp_path / "a.csv", "score:label\n" + "".join(f"{s!r}:{y}\n" for s, y in pairs))
    given = [*COLUMNS, "--delimiter", ":"]
    saved = tmp_path / "c.json"
    succeeded("calibrate", path, *given, "-o", saved)
    succeeded("verify", saved, path, *given)
    succeeded("evaluate", saved, path, *given)
    succeeded("compare", path, *given)
    for words, stdin in (([path], None), (["-"], path.read_bytes())):
        out = succeeded(
            "decide", saved, *words, "--score", "score", "--delimiter", ":", "--format", "jsonl", stdin=stdin
        )
        assert len(out.splitlines()) == 200
    assert "there is no column 'score'" in refused(tmp_path, "calibrate", path, *COLUMNS)
    assert "the delimiter must be" in refused(tmp_path, "calibrate", path, *COLUMNS, "--delimiter", "ab")


def test_columns_of_several_files_are_matched_and_kept(tmp_path: Path) -> None:
    one = write(tmp_path / "1.csv", "id,score\n01,5.5\n")
    two = write(tmp_path / "2.csv", 'score;note\n"-5";"a;b"\n')
    out = succeeded(*DECIDE, one, two, "--score", "score", "--format", "csv")
    assert out == "id,score,note,verdict,prediction_set\n01,5.5,,1,{1}\n,-5,a;b,0,{0}\n"
    rows = [
        json.loads(line)
        for line in succeeded(*DECIDE, one, two, "--score", "score", "--format", "jsonl").splitlines()
    ]
    assert [(row["id"], row["score"], row["note"]) for row in rows] == [("01", 5.5, None), (None, -5, "a;b")]


def test_an_index_without_a_name_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ",score,label\n0,5.5,1\n")
    assert decided(path)[0][:3] == ["", "score", "label"]
    assert "0 of 1" in succeeded("evaluate", CERTIFICATE, path, *COLUMNS)
    succeeded(*DECIDE, path, "--score", "score", "-o", tmp_path / "out.parquet")


def test_another_number_of_rows_is_never_written(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", "SELECT i::DOUBLE AS score FROM range(10) t(i)")
    with (
        found_files([str(path)]) as found,
        open_found(found, ["score"], whole=True, output=tmp_path / "out.csv") as table,
    ):
        target = tmp_path / "out.csv"
        said = refusal(lambda: copy_with(table, "score", lambda _: ("1", "2"), target, "FORMAT csv", 9))
    assert "has 9 rows, but 10 were read" in said


class _Lossy(CsvLines):
    """A stream that says it has read a row more than it gives."""

    def _batches(self, table: Any) -> Iterator[Any]:
        yield from super()._batches(table)
        table.read += 1


def test_a_stream_that_loses_a_row_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pac_wrap.streams.decide.CsvLines", _Lossy)
    said = refusal(lambda: decide_lines(RULE, io.BytesIO(), b"s\n1\n2\n", io.BytesIO(), Asked("s", True)))
    assert "has 3 rows, but 2 were read" in said


WIDE = 100_000


@pytest.mark.slow
def test_a_hundred_thousand_columns_are_read_in_seconds(tmp_path: Path) -> None:
    names = [*(f"c{i}" for i in range(WIDE - 2)), "score", "label"]
    row = "1.5," * (WIDE - 2)
    rows = "".join(f"{row}{i % 7},{int(i % 7 == 6)}\n" for i in range(20))
    path = write(tmp_path / "wide.csv", ",".join(names) + "\n" + rows)
    start = time.process_time()
    command("calibrate", "-q", path, *COLUMNS)
    assert "of 2 " in command("evaluate", CERTIFICATE, path, *COLUMNS).out
    succeeded(*DECIDE, path, "--score", "score", "-o", tmp_path / "out.csv")
    # of the processor: 94 s and more when every column was declared to the engine
    assert time.process_time() - start < 30
    assert (tmp_path / "out.csv").read_text().count("\n") == 21


@pytest.mark.parametrize("quote", ["", '"'], ids=["as it is", "with quotes"])
def test_a_column_without_a_name_is_not_taken_for_another(quote: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", f",column0,Column0_\n{quote}9{quote},0.1,7\n0.1,9,8\n")
    succeeded(*DECIDE, path, "--score", "column0", "-o", tmp_path / "out.parquet")
    with empty_database() as connection:
        found = connection.execute(f"SELECT * FROM '{tmp_path}/out.parquet'").fetchall()
    assert [row[:4] for row in found] == [(9.0, 0.1, 7, 0), (0.1, 9.0, 8, 1)]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl"])
def test_columns_of_several_files_that_differ_only_in_case_are_refused(name: str, tmp_path: Path) -> None:
    first = write(tmp_path / "a.csv", "score,ID\n0.1,1\n")
    second = write(tmp_path / "b.csv", "score,id\n9,2\n")
    message = refused(tmp_path, *DECIDE, first, second, "--score", "score", "-o", tmp_path / name)
    assert "b.csv has two columns named 'ID'; rename one of them" in message


@pytest.mark.parametrize("name", ["[id]", "{id}", "[", "{"])
def test_a_column_whose_name_looks_like_json_comes_from_a_stream_as_from_a_file(
    name: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", f"{name},score,label\n1,0.1,0\n2,9,1\n")
    whole = path.read_bytes()
    assert succeeded(*DECIDE, "-", "--score", "score", stdin=whole) == succeeded(*DECIDE, path, *COLUMNS[:2])
    assert succeeded("evaluate", CERTIFICATE, "-", *COLUMNS, stdin=whole) == succeeded(
        "evaluate", CERTIFICATE, path, *COLUMNS
    )


def test_json_after_empty_lines_is_json_on_standard_input_too() -> None:
    rows = b'\n\n{"score": 0.1, "label": 0}\n{"score": 9, "label": 1}\n'
    assert "of 1" in succeeded("evaluate", CERTIFICATE, "-", *COLUMNS, stdin=rows)


@pytest.mark.filterwarnings("always")  # as in a shell
def test_a_table_that_also_stands_on_standard_input_is_named_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "score,label\n0.1,0\n9,1\n")
    done = invoke("evaluate", CERTIFICATE, path, "-", *COLUMNS, stdin=path.read_bytes())
    assert f"{path} and standard input have the same content" in done.err
