"""A Spark session on this machine: the one that runs, or a quiet one for the time of a block."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pac_wrap.engines.packages import import_package
from pac_wrap.errors import MissingExtraError
from pac_wrap.scratch import scratch_folder


@contextmanager
def local_session() -> Iterator[Any]:
    """Yield the active session; where there is none, start one on all cores and stop it afterwards."""
    for needed in ("pandas", "pyarrow"):
        import_package(needed, "spark")
    builder = import_package("pyspark.sql", "spark").SparkSession
    if (running := builder.getActiveSession()) is not None:
        yield running
        return
    with scratch_folder() as scratch:
        session = _started(builder.builder, str(scratch))
        try:
            yield session
        finally:
            session.stop()


def _started(builder: Any, scratch: str) -> Any:
    settings = {
        "spark.master": "local[*, 4]",
        "spark.app.name": "pac-wrap",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": scratch,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    remedy = "install one, for example Debian's openjdk-17-jre-headless, and set JAVA_HOME"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise MissingExtraError(f"Spark needs Java 17 or later, which is not installed; {remedy}")
    # without it Spark's workers run the first python3 on the path, which need not have pac_wrap
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with _silenced(), _ended_on_failure():
            return builder.getOrCreate()
    except import_package("pyspark.errors", "spark").PySparkRuntimeError as error:
        raise MissingExtraError(f"Spark did not start, it needs Java 17 or later; {remedy}") from error


@contextmanager
def _ended_on_failure() -> Iterator[None]:
    """End the Java that is being started if anything, Ctrl-C say, comes in between; it would run on."""
    gateway: Any = import_package("pyspark.java_gateway", "spark")
    start, started = gateway.Popen, []

    def remember(*arguments: Any, **options: Any) -> Any:
        started.append(start(*arguments, **options))
        return started[-1]

    gateway.Popen = remember
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        gateway.Popen = start


@contextmanager
def _silenced() -> Iterator[None]:
    """Send what new processes write nowhere: Java keeps the outputs it was started with."""
    kept = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
