"""Groups of more rows: each engine once, in a process of its own, which shows what memory it takes."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.lines.by_group import grouped_files
from benchmarks.memory import MB, run_alone
from benchmarks.peers import missing
from benchmarks.record import Growth, Measure, Result
from benchmarks.timing import LINEAR, Scale, exponent

ABOUT = """\
`pac-wrap calibrate --group --engine ...` on the files of *A certificate for every group*, run once for each
size, from start to end; so the times include what starts the engine, most of them that of Spark. Sizes are
numbers of rows, of {groups:,} groups, or numbers of groups, of {rows:,} rows. Peak memory is that of the
largest process. Spark and Dask run on this machine, with all processors and their usual settings."""
ENGINES = ("duckdb", "dask", "spark")


def measure(scale: Scale) -> Result:
    """Return the seconds and the peak memory of each engine by rows and by groups, and their growth."""
    sizes = scale.pick((10**4,), (10**5, 10**6), (10**5, 10**6, 10**7, 10**8))
    parts = scale.pick((10,), (10, 10**2), (10, 10**2, 10**3, 10**4))
    groups, rows = scale.pick(10, 10**4, 10**4), scale.pick(10**4, 10**6, 10**6)
    left_out = [reason for name in ("dask", "pyspark") if (reason := missing(name))]
    engines = [name for name in ENGINES if not missing({"spark": "pyspark"}.get(name, name))]
    if "spark" in engines and (
        scale.name == "quick" or not (shutil.which("java") or "JAVA_HOME" in os.environ)
    ):
        engines.remove("spark")
        left_out.append("Spark: it takes long to start, and needs Java")
    found: dict[str, dict[str, dict[int, tuple[float, float]]]] = {}
    for unit, cases in (
        ("rows", [(size, size, groups) for size in sizes]),
        ("groups", [(size, rows, size) for size in parts]),
    ):
        for size, many, few in cases:
            with grouped_files(many, few) as paths:
                for name in engines:
                    found.setdefault(unit, {}).setdefault(name, {})[size] = _alone(name, paths)
    return Result(
        "by_group_alone",
        "Groups by each engine, once",
        ABOUT.format(groups=groups, rows=rows),
        scale.name,
        (),
        tuple(_growths(found)),
        tuple(_measures(found)),
        tuple(left_out),
    )


def _alone(engine: str, paths: list[str]) -> tuple[float, float]:
    """Return the seconds and the MB of one calibration; too few labels are no failure."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    command = [sys.executable, "-c", "from pac_wrap.cli import main; main()", "calibrate", *paths]
    columns = ["--score", "s", "--label", "y", "--group", "g", "--max-fpr", "0.3", "--max-fnr", "0.3"]
    target = str(Path(paths[0]).with_name("certificate.json"))
    ran = run_alone([*command, *columns, "--engine", engine, "-o", target], codes=(0, 1))
    return ran.seconds, ran.peak / MB


def _growths(found: dict[str, dict[str, dict[int, tuple[float, float]]]]) -> Iterator[Growth]:
    for unit, engines in found.items():
        for name, runs in engines.items():
            if len(runs) >= 4:
                slope = exponent(runs, [seconds for seconds, _ in runs.values()])
                yield Growth(unit, name, slope, tuple(runs), LINEAR)


def _measures(found: dict[str, dict[str, dict[int, tuple[float, float]]]]) -> Iterator[Measure]:
    for unit, engines in found.items():
        for name, runs in engines.items():
            for size, (seconds, peak) in runs.items():
                yield Measure(f"{size:,} {unit}", f"{name}, time", seconds, "s")
                yield Measure(f"{size:,} {unit}", f"{name}, peak memory", peak, "MB")
