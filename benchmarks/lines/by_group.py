"""A certificate for every group: in memory beside a sort, and by each engine in processes of its own."""

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np

from benchmarks.memory import MB, Ran, run_together
from benchmarks.peers import missing
from benchmarks.record import Aim, Comparison, Growth, Measure, Result
from benchmarks.timing import LINEAR, Scale, compare, exponent
from pac_wrap import GroupCertificate, VacuousWarning, calibrate_labelled

FILES = 4
# rows, above which arrays are not tried
IN_MEMORY = 10**7
# names, and the package that each needs
ENGINES = {"DuckDB": "duckdb", "Dask": "dask", "Spark": "pyspark"}
MEMORY = Aim("<=", 3000.0)
SAME = Aim("=", 1.0)
OURS = "`calibrate_labelled`", "`pac-wrap calibrate --group`"
ABOUT = """\
Rows of a score, a label and the whole number of a group, all groups of about the same size, in {files}
Parquet files. *Memory* is `calibrate_labelled` on arrays, and its limit NumPy's sort of the scores alone.
DuckDB, Dask and Spark are `pac-wrap calibrate --group --engine ...`, run once for each size, from start to
end: so a time includes the start of the engine, which at first is most of Spark's. Their memory is the most
that all processes of a run hold together, with what they share counted once; the aim is the same for all
sizes. Dask and Spark have all processors of this machine and their usual settings. *Certificates* are how
many different ones the engines give, apart from where they say that they come from. Sizes are numbers of
rows, of {groups:,} groups, or numbers of groups, of {rows:,} rows."""
ROWS = """
SELECT random() + 2 * (i % 10 = 0)::DOUBLE AS s, (i % 10 = 0)::INTEGER AS y, (hash(i) % {groups})::BIGINT AS g
FROM range({first}, {last}) t(i)
"""


class Case(NamedTuple):
    """Numbers of rows and of groups."""

    rows: int
    groups: int


def measure(scale: Scale) -> Result:
    """Return timings in memory, seconds and memory of each engine, their growth, and if all agree."""
    sizes = scale.pick((2000,), (10**5, 10**6), (10**5, 10**6, 10**7, 10**8))
    numbers = scale.pick((10,), (10, 10**4), (10, 10**2, 10**3, 10**4))
    groups, rows = scale.pick(10, 10**4, 10**4), scale.pick(2000, 10**6, 10**6)
    series = {
        "rows": {size: Case(size, groups) for size in sizes},
        "groups": {number: Case(rows, number) for number in numbers},
    }
    left_out = {name: reason for name, package in ENGINES.items() if (reason := missing(package))}
    if scale.name == "quick" or not (shutil.which("java") or "JAVA_HOME" in os.environ):
        left_out["Spark"] = "Spark: it takes long to start, and needs Java"
    engines = [name for name in ENGINES if name not in left_out]
    alone: dict[Case, Comparison] = {}
    runs: dict[Case, dict[str, Ran]] = {}
    measures: list[Measure] = []
    for case in dict.fromkeys(case for cases in series.values() for case in cases.values()):
        with grouped_files(case) as paths:
            if case.rows <= IN_MEMORY:
                alone[case] = _in_memory(paths, scale)
            found = {name: _certified(name.lower(), paths) for name in engines}
        runs[case] = {name: ran for name, (ran, _) in found.items()}
        row = f"{case.rows:,} rows, {case.groups:,} groups"
        for name, ran in runs[case].items():
            measures.append(Measure(row, f"{name}, time", ran.seconds, "s"))
            measures.append(Measure(row, f"{name}, memory", ran.peak / MB, "MB", MEMORY))
        measures.append(Measure(row, "certificates", len({text for _, text in found.values()}), "", SAME))
    comparisons = [
        replace(alone[case], case=f"Memory, {unit}", size=size)
        for unit, cases in series.items()
        for size, case in cases.items()
        if case in alone
    ]
    return Result(
        "by_group",
        "A certificate for every group",
        ABOUT.format(files=FILES, rows=rows, groups=groups),
        scale.name,
        tuple(comparisons),
        tuple(_growths(series, alone, runs)),
        tuple(measures),
        tuple(left_out.values()),
    )


@contextmanager
def grouped_files(case: Case) -> Iterator[list[str]]:
    """Yield Parquet files with a score, a label and a group, all together the rows of a case."""
    with tempfile.TemporaryDirectory(prefix="pac-wrap-bench-") as folder, duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        paths = [str(Path(folder) / f"part-{number}.parquet") for number in range(FILES)]
        for number, path in enumerate(paths):
            first, last = number * case.rows // FILES, (number + 1) * case.rows // FILES
            query = ROWS.format(groups=case.groups, first=first, last=last)
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
        yield paths


def _in_memory(paths: list[str], scale: Scale) -> Comparison:
    """Return the timings of the calibration of arrays, and of a sort of the scores."""
    with duckdb.connect() as connection:
        columns = connection.execute(f"SELECT s, y, g FROM read_parquet({paths})").fetchnumpy()
    scores, labels, groups = (np.asarray(columns[name]) for name in "syg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousWarning)
        return compare(
            "Memory",
            None,
            {
                OURS[0]: ("ours", partial(calibrate_labelled, scores, labels, by=groups)),
                "`np.sort`, scores alone": ("limit", partial(np.sort, scores)),
            },
            scale,
        )


def _certified(engine: str, paths: list[str]) -> tuple[Ran, str]:
    """Return how an engine ran on files, and its certificate without its origin."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    target = Path(paths[0]).with_name(f"{engine}.json")
    command = [sys.executable, "-c", "from pac_wrap.cli import main; main()", "calibrate", *paths]
    options = {"score": "s", "label": "y", "group": "g", "max-fpr": "0.3", "max-fnr": "0.3", "engine": engine}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    # 1 says that a group has too few labels
    ran = run_together([*command, *words, "-o", str(target)], codes=(0, 1))
    return ran, replace(GroupCertificate.load(target), provenance=None).to_json()


def _growths(
    series: dict[str, dict[int, Case]], alone: dict[Case, Comparison], runs: dict[Case, dict[str, Ran]]
) -> Iterator[Growth]:
    seconds = {("Memory", case): one.of("ours").median for case, one in alone.items()}
    seconds |= {(name, case): ran.seconds for case, found in runs.items() for name, ran in found.items()}
    for unit, cases in series.items():
        for name in dict.fromkeys(name for name, _ in seconds):
            own = {size: seconds[name, case] for size, case in cases.items() if (name, case) in seconds}
            if len(own) >= 4:
                slope = exponent(own, own.values())
                yield Growth(f"{name}, {unit}", OURS[name != "Memory"], slope, tuple(own), LINEAR)
