"""A Spark of the extra, on this machine and on loopback, for the time of some tests."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# PySpark says so on every use of Arrow under pandas 3
quiet = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


def require() -> None:
    """Skip with a reason where Spark cannot run."""
    for package in ("pandas", "pyarrow", "pyspark"):
        pytest.importorskip(package, reason=f'{package} is not installed (pip install "pac-wrap-ad[spark]")')
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed (Debian's package: openjdk-17-jre-headless)")


@contextmanager
def session(master: str, folder: Path) -> Iterator[Any]:
    """Yield a session, and stop it afterwards; a task that fails is tried again."""
    require()
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master(master)
        for name, value in {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.log.level": "OFF",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }.items():
            builder = builder.config(name, value)
        started = builder.getOrCreate()
        try:
            yield started
        finally:
            started.stop()
