"""`pac-wrap decide` from CSV to Parquet beside DuckDB's own copy of the same file with its types given."""

import tempfile
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import duckdb

from benchmarks.record import Aim, Measure, Result, Role
from benchmarks.timing import Action, Scale, compare
from pac_wrap.cli import app

AIM = Aim("<=", 2.0)
ABOUT = """\
`pac-wrap decide certificate.json FILE.csv --score s -o FILE.parquet`, called in one process so that no start
counts, on eight columns: one of texts, four of numbers, two of whole numbers and the label. The limit is
DuckDB's `COPY` of the same file to Parquet with the type of every column given, so that it guesses nothing;
it writes neither verdicts nor prediction sets, and checks no spelling. The aim is about processor time, which
a busy machine leaves alone."""
TYPES = {
    "id": "BIGINT",
    "name": "VARCHAR",
    "amount": "DOUBLE",
    "x": "DOUBLE",
    "z": "DOUBLE",
    "age": "BIGINT",
    "s": "DOUBLE",
    "y": "BIGINT",
}
_ROWS = """
SELECT i AS id, 'user' || (i % 9973) AS name, round(random() * 1000, 2) AS amount, random() AS x,
  random() * 100 - 50 AS z, (random() * 100)::INTEGER AS age,
  random() + 0.8 * (i % 10 = 0)::DOUBLE AS s, (i % 10 = 0)::INTEGER AS y
FROM range({rows}) t(i)
"""


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
    """Return the timings of both, and how their processor times compare."""
    comparisons, measures = [], []
    for rows in scale.pick((1000,), (10**6,), (10**6, 5 * 10**6)):
        with tempfile.TemporaryDirectory(prefix="pac-wrap-bench-") as folder:
            source, certificate, ours, theirs = (
                str(Path(folder) / name) for name in ("t.csv", "c.json", "ours.parquet", "theirs.parquet")
            )
            with duckdb.connect() as connection:
                connection.execute("SELECT setseed(0.5)")
                connection.execute(f"COPY ({_ROWS.format(rows=rows)}) TO '{source}' (HEADER)")
            run("calibrate", source, "--score", "s", "--label", "y", "-o", certificate)
            methods: dict[str, tuple[Role, Action]] = {
                "`pac-wrap decide`": (
                    "ours",
                    partial(run, "decide", certificate, source, "--score", "s", "-o", ours),
                ),
                "DuckDB's copy": ("limit", partial(copy, source, theirs)),
            }
            found = compare("CSV to Parquet", rows, methods, scale)
        ratio = found.of("ours").processor / found.of("limit").processor
        comparisons.append(found)
        measures.append(Measure(f"{rows:,} rows", "processor time, ours / copy", ratio, "", AIM))
    return Result(
        "decide", "Decide CSV to Parquet", ABOUT, scale.name, tuple(comparisons), (), tuple(measures)
    )
