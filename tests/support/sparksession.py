"""A Spark of the extra, on this machine and on loopback, for the time of some tests."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.patience import LIMIT, until

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


@contextmanager
def started(folder: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process of one of Spark's own programs, which is killed afterwards, if nobody did before.

    `name` is that of its log; the program is run by Spark's own script, which becomes the Java process.
    """
    require()
    from pyspark.find_spark_home import _find_spark_home

    home = _find_spark_home()
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        # where a row went through Python after all, this would be found out
        "PYSPARK_PYTHON": "/there/is/no/python",
    }
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            [f"{home}/bin/spark-class", *arguments],
            stdout=log,
            stderr=log,
            cwd=folder,
            env=environment,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT)


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server on this machine can be reached; fail if its process ends before."""

    def answers() -> bool:
        assert process.poll() is None, "the server ended"
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    until(answers, "the server answered", step=0.1)


def free_port() -> int:
    """Return the number of a port that nobody uses now."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        number: int = server.getsockname()[1]
        return number
