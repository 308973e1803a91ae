"""A certificate for every group, in memory and by each engine, beside a sort or the engine's own GROUP BY."""

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.memory import MB, run_alone
from benchmarks.peers import missing
from benchmarks.record import Aim, Comparison, Growth, Measure, Result, Role
from benchmarks.timing import LINEAR, Action, Scale, compare, exponent
from pac_wrap import Request, VacuousWarning, calibrate_groups
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.tables.groups import calibrate_groups_table
from pac_wrap.tables.table import open_table

MEMORY = Aim("<=", 1500.0)
FILES = 4
ABOUT = """\
`calibrate_groups` on rows of a score, a label and the whole number of a group, all groups of about the same
size. The limit in memory is NumPy's sort of the scores alone; that of an engine is its own aggregate by
group, an average of the scores, on the same {files} Parquet files. No engine can certify groups without
bringing their rows together and in order, which an average does not need. Sizes are numbers of rows, of
{groups:,} groups, or numbers of groups, of {rows:,} rows. Peak memory is that of `pac-wrap calibrate
--group` through DuckDB in a process of its own. Spark runs in local mode on all processors, Dask with its
scheduler of threads."""
ROWS = """
SELECT random() + 2 * (i % 10 = 0)::DOUBLE AS s, (i % 10 = 0)::INTEGER AS y,
  hash(i) % {groups} AS g FROM range({first}, {last}) t(i)
"""
AVERAGE = "SELECT g, avg(s) FROM read_parquet({paths}) GROUP BY g"
Prepare = Callable[[list[str]], tuple[Action, Action]]


@contextmanager
def grouped_files(rows: int, groups: int) -> Iterator[list[str]]:
    """Yield Parquet files with a score, a label and a group, all together of so many rows."""
    with tempfile.TemporaryDirectory(prefix="pac-wrap-bench-") as folder, duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        paths = [str(Path(folder) / f"part-{number}.parquet") for number in range(FILES)]
        for number, path in enumerate(paths):
            first, last = number * rows // FILES, (number + 1) * rows // FILES
            query = ROWS.format(groups=groups, first=first, last=last)
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
        yield paths


def in_memory(paths: list[str]) -> tuple[Action, Action]:
    """Return the calibration of arrays, and a sort of the scores."""
    with duckdb.connect() as connection:
        columns = connection.execute(f"SELECT s, y, g::BIGINT AS g FROM read_parquet({paths})").fetchnumpy()
    scores, labels, groups = (np.asarray(columns[name]) for name in "syg")
    return partial(calibrate_groups, scores, labels, groups), lambda: np.sort(scores)


def by_duckdb(paths: list[str]) -> tuple[Action, Action]:
    """Return the calibration of files through DuckDB, and its average by group."""

    def certify() -> None:
        with open_table(paths, ["s", "g"], "y", passes=True) as table:
            calibrate_groups_table(table, GroupRequest(Request()), ("s", "y", "g"))

    def average() -> None:
        with duckdb.connect() as connection:
            connection.execute(AVERAGE.format(paths=paths)).fetchall()

    return certify, average


def by_dask(paths: list[str]) -> tuple[Action, Action]:
    """Return the calibration of a Dask frame, and its average by group."""
    engine: Any = import_module("pac_wrap.engines.dask")
    df = import_module("dask.dataframe").read_parquet(paths)
    return (
        partial(engine.calibrate_groups, df, score="s", label="y", group="g"),
        lambda: df.groupby("g")["s"].mean().compute(),
    )


def by_spark(session: Any, paths: list[str]) -> tuple[Action, Action]:
    """Return the calibration of a Spark frame, and its average by group."""
    engine: Any = import_module("pac_wrap.engines.spark")
    df = session.read.parquet(*paths).selectExpr("s", "y", "CAST(g AS BIGINT) AS g")
    return (
        partial(engine.calibrate_groups, df, score="s", label="y", group="g"),
        lambda: df.groupBy("g").avg("s").toArrow(),
    )


@contextmanager
def spark_session() -> Iterator[Any]:
    """Yield a session on this machine, whose workers run this Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = import_module("pyspark.sql").SparkSession.builder.master("local[*]")
    settings = {"ui.enabled": "false", "ui.showConsoleProgress": "false", "log.level": "ERROR"}
    settings |= {"sql.shuffle.partitions": "8", "driver.host": "localhost", "driver.bindAddress": "127.0.0.1"}
    for key, value in settings.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def measure(scale: Scale) -> Result:
    """Return the timings by rows and by groups, their growth, and the peak memory of DuckDB's way."""
    rows = scale.pick(
        (2000,), (10**5, 2 * 10**5, 5 * 10**5, 10**6), (10**5, 10**6, 2 * 10**6, 5 * 10**6, 10**7)
    )
    groups = scale.pick((10,), (10, 10**2, 10**3, 10**4, 10**5), (10, 10**2, 10**3, 10**4, 10**5))
    fewer = scale.pick(rows, (10**5, 10**6), rows), scale.pick(groups, (), groups)
    some, own = rows[min(3, len(rows) - 1)] if scale.name != "large" else 10**6, groups[len(groups) // 2]
    comparisons: list[Comparison] = []
    with warnings.catch_warnings(), ExitStack() as opened:
        warnings.simplefilter("ignore", VacuousWarning)
        engines: dict[str, tuple[str, Prepare, tuple[tuple[int, ...], tuple[int, ...]]]] = {
            "memory": ("`np.sort`, scores alone", in_memory, (rows, groups)),
            "DuckDB": ("average by group", by_duckdb, (rows, groups)),
        }
        left_out = [reason for name in ("dask", "pyspark") if (reason := missing(name))]
        if not missing("dask"):
            opened.enter_context(import_module("dask").config.set(scheduler="threads"))
            engines["Dask"] = "average by group", by_dask, fewer
        if scale.name == "quick" or not (shutil.which("java") or "JAVA_HOME" in os.environ):
            left_out.append("Spark: it takes long to start, and needs Java")
        elif not missing("pyspark"):
            session = opened.enter_context(spark_session())
            engines["Spark"] = "average by group", partial(by_spark, session), fewer
        for name, (limit, prepare, (by_rows, by_groups)) in engines.items():
            cases = [("rows", size, size, own) for size in by_rows]
            cases += [("groups", size, some, size) for size in by_groups]
            for unit, size, many, parts in cases:
                with grouped_files(many, parts) as paths:
                    certify, least = prepare(paths)
                    methods: dict[str, tuple[Role, Action]] = {
                        "`calibrate_groups`": ("ours", certify),
                        limit: ("limit", least),
                    }
                    comparisons.append(compare(f"{name}, {unit}", size, methods, scale))
    return Result(
        "by_group",
        "A certificate for every group",
        ABOUT.format(files=FILES, rows=some, groups=own),
        scale.name,
        tuple(comparisons),
        tuple(_growths(comparisons)),
        tuple(_peaks(rows, own)),
        tuple(left_out),
    )


def _growths(comparisons: list[Comparison]) -> Iterator[Growth]:
    for case in dict.fromkeys(one.case for one in comparisons):
        runs = [one for one in comparisons if one.case == case]
        sizes = tuple(one.size or 0 for one in runs)
        roles: tuple[Role, Role] = ("ours", "limit")
        for role in roles if len(sizes) >= 4 else ():
            timings = [one.of(role) for one in runs]
            slope = exponent(sizes, [timing.median for timing in timings])
            aim = LINEAR if role == "ours" else None
            yield Growth(case, timings[0].method, slope, sizes, aim)


def _peaks(sizes: tuple[int, ...], groups: int) -> Iterator[Measure]:
    command = [sys.executable, "-c", "from pac_wrap.cli import main; main()", "calibrate"]
    for size in sizes:
        with grouped_files(size, groups) as paths:
            columns = ["--score", "s", "--label", "y", "--group", "g", "--max-fpr", "0.3", "--max-fnr", "0.3"]
            target = str(Path(paths[0]).with_name("certificate.json"))
            peak = run_alone([*command, *paths, *columns, "-o", target]).peak
        yield Measure(f"{size:,} rows", "peak memory, DuckDB", peak / MB, "MB", MEMORY)
