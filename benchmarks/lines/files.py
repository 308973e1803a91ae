"""`pac-wrap calibrate` on files beside DuckDB's own scan of the same file."""

import io
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Literal

import duckdb

from benchmarks.memory import MB, run_alone
from benchmarks.record import Aim, Comparison, Measure, Result, Role
from benchmarks.tables import labelled_files
from benchmarks.timing import Action, Scale, compare, growths
from pac_wrap.cli.commands import app

AIM, MEMORY = Aim("<=", 2.0), Aim("<=", 1000.0)
ABOUT = """\
`pac-wrap calibrate FILE --score s --label y -o certificate.json`, called in one process so that no start
counts; the limit is `SELECT max(s + 0), sum(y + 0), count(*)` in DuckDB on the same file, which has to read
both columns (a bare `count` or `max` of a Parquet file comes from its statistics, without reading it). Peak
memory is that of the command in a process of its own. Parquet has no aim: a calibration reads it two or
three times, since copying it would cost more, so the rows per second stand beside those of the scan."""
SCAN = "SELECT max(s + 0), sum(y + 0), count(*) FROM '{path}'"
Kind = Literal["csv", "parquet"]
_SPEEDS: tuple[tuple[str, Role], ...] = ("ours", "ours"), ("DuckDB's scan", "limit")


def certify(path: str) -> None:
    """Run the command in this process."""
    with redirect_stdout(io.StringIO()):
        code = app(arguments(path), standalone_mode=False)
    assert not code, f"the command ended with {code}"


def arguments(path: str) -> list[str]:
    """Return the words after `pac-wrap`."""
    target = str(Path(path).with_name("certificate.json"))
    return ["calibrate", path, "--score", "s", "--label", "y", "-o", target]


def scan(path: str) -> None:
    """Let DuckDB read both columns of a file."""
    with duckdb.connect() as connection:
        connection.execute(SCAN.format(path=path)).fetchall()


def speeds(one: Comparison) -> list[Measure]:
    """Return how many million rows per second ours gets through, and the scan."""
    assert one.size is not None
    return [
        Measure(
            f"{one.size:,} rows", f"{name}, {one.case}", one.size / one.of(role).median / 1e6, "million/s"
        )
        for name, role in _SPEEDS
    ]


def measure(scale: Scale) -> Result:
    """Return the timings and the peak memory for all sizes and both formats."""
    sizes = scale.pick(
        (1000,),
        (10**6, 2 * 10**6, 5 * 10**6, 10**7),
        (10**6, 2 * 10**6, 5 * 10**6, 10**7, 10**8),
    )
    comparisons: list[Comparison] = []
    measures: list[Measure] = []
    kinds: tuple[Kind, Kind] = ("csv", "parquet")
    for kind in kinds:
        for size in sizes:
            with labelled_files(size, kind) as (path,):
                methods: dict[str, tuple[Role, Action]] = {
                    "`pac-wrap calibrate`": ("ours", partial(certify, path)),
                    "DuckDB's scan": ("limit", partial(scan, path)),
                }
                found = compare(kind, size, methods, scale, aim=AIM if kind == "csv" else None)
                comparisons.append(found)
                code = "from pac_wrap.cli import main; main()"
                peak = run_alone([sys.executable, "-c", code, *arguments(path)]).peak
            measures.append(Measure(f"{size:,} rows", f"peak memory, {kind}", peak / MB, "MB", MEMORY))
            measures += speeds(found) if kind == "parquet" else []
    growth = growths(comparisons, scale)
    return Result(
        "files", "Calibrate from files", ABOUT, scale.name, tuple(comparisons), growth, tuple(measures)
    )
