"""`pac_wrap.engines.spark.calibrate` beside Spark's own aggregate over the same frame."""

import os
import shutil
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.lines.engines import beside
from benchmarks.peers import missing
from benchmarks.record import Aim, Result, SkipError
from benchmarks.timing import Action, Scale

PARTITIONS = 16
AIM = Aim("<=", 5.0)
ABOUT = """\
Spark in local mode with all processors, its session already started, on {partitions} Parquet files. The
limit is Spark's own aggregate over the same frame: `max(s + 0)` and `sum(y + 0)`, which reads both columns
once and never leaves the JVM; nor do the rows of ours, but for those that are sent to the driver. An answer
is what one job sends there, as pickled bytes."""


def measure(scale: Scale) -> Result:
    """Return the timings for all sizes."""
    if reason := missing("pyspark") or missing("pyarrow"):
        raise SkipError(reason)
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise SkipError("there is no Java")
    sql: Any = import_module("pyspark.sql")
    adapter: Any = import_module("pac_wrap.engines.spark")
    counts: Any = import_module("pac_wrap.engines.spark")
    builder = sql.SparkSession.builder.master("local[*]").appName("pac-wrap benchmarks")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "8",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()

    def prepare(paths: list[str]) -> tuple[Action, ...]:
        frame = session.read.parquet(*paths)
        return (
            partial(adapter.calibrate, frame, score="s", label="y"),
            lambda: frame.selectExpr("max(s + 0)", "sum(y + 0)").collect(),
        )

    partitions = scale.pick(2, PARTITIONS, PARTITIONS)
    about = ABOUT.format(partitions=partitions)
    try:
        return beside("spark", about, scale, counts, prepare, partitions, aim=AIM, receives="fetched")
    finally:
        session.stop()
