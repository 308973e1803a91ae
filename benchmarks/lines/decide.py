"""`pac-wrap decide` from CSV to Parquet beside DuckDB's own copy of the same file with its types given."""

import tempfile
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import duckdb

from benchmarks.record import Aim, Comparison, Result, Role
from benchmarks.timing import Action, Scale, compare
from pac_wrap.cli.commands import app

AIM = Aim("<=", 2.0)
ABOUT = """\
`pac-wrap decide certificate.json FILE.csv --score s -o FILE.parquet`, called in one process so that no start
counts, on six columns: one of texts, three of numbers, a whole number and the label. With quotes, every third
text has a comma in it, and one of a thousand a quote; in the last case every cell is quoted. The limit is
DuckDB's `COPY` of the same file to Parquet with the type of every column given, so that it guesses nothing;
it writes neither verdicts nor prediction sets, and checks no spelling. The aim is about wall time."""
TYPES = {
    "id": "BIGINT",
    "name": "VARCHAR",
    "amount": "DOUBLE",
    "x": "DOUBLE",
    "s": "DOUBLE",
    "y": "BIGINT",
}
_ROWS = """
SELECT i AS id, {name} AS name, round(random() * 1000, 2) AS amount, random() AS x,
  random() + 0.8 * (i % 10 = 0)::DOUBLE AS s, (i % 10 = 0)::INTEGER AS y
FROM range({rows}) t(i)
"""
_NAME = "'user' || (i % 9973)"
_WITH_COMMA = (
    f"CASE WHEN i % 3 = 0 THEN {_NAME} || ', Inc' WHEN i % 1000 = 1 THEN '\"' || {_NAME} ELSE {_NAME} END"
)
# what the texts are, and what DuckDB is told as it writes the file
_CASES = {
    "plain cells": (_NAME, ""),
    "CRLF": (_NAME, ""),
    "some cells quoted": (_WITH_COMMA, ""),
    "all cells quoted": (_NAME, ", FORCE_QUOTE *"),
}


def run(*words: str) -> None:
    """Run a command in this process."""
    with redirect_stdout(StringIO()):
        code = app([*words, "--quiet"], standalone_mode=False)
    assert not code, f"the command ended with {code}"


def copy(source: str, target: str) -> None:
    """Let DuckDB copy the file."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (FROM read_csv('{source}', columns = {TYPES}, header = true, auto_detect = false,"
            f" delim = ',')) TO '{target}' (FORMAT parquet)"
        )


def measure(scale: Scale) -> Result:
    """Return the timings of both."""
    comparisons = []
    rows = scale.pick(1000, 5 * 10**6, 5 * 10**6)
    for case, (name, options) in _CASES.items():
        with tempfile.TemporaryDirectory(prefix="pac-wrap-bench-") as folder:
            query = _ROWS.format(rows=rows, name=name)
            comparisons.append(_compared(case, Path(folder), query, options, rows, scale))
    return Result("decide", "Decide CSV to Parquet", ABOUT, scale.name, tuple(comparisons), (), ())


def _compared(case: str, folder: Path, query: str, options: str, rows: int, scale: Scale) -> Comparison:
    source, certificate, ours, theirs = (
        str(folder / name) for name in ("t.csv", "c.json", "ours.parquet", "theirs.parquet")
    )
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"COPY ({query}) TO '{source}' (HEADER{options})")
    if case == "CRLF":
        Path(source).write_bytes(Path(source).read_bytes().replace(b"\n", b"\r\n"))
    run("calibrate", source, "--score", "s", "--label", "y", "-o", certificate)
    methods: dict[str, tuple[Role, Action]] = {
        "`pac-wrap decide`": (
            "ours",
            partial(run, "decide", certificate, source, "--score", "s", "-o", ours),
        ),
        "DuckDB's copy": ("limit", partial(copy, source, theirs)),
    }
    return compare(case, rows, methods, scale, aim=AIM)
