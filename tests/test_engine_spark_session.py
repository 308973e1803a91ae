import os
import sys
from pathlib import Path
from typing import Any, Self

import pytest

import sparksession
from pac_wrap.engines.spark_session import local_session
from pac_wrap.errors import MissingExtraError


class Builder:
    """Stands in for Spark's own, which takes seconds; `test_engine_spark_files` starts that one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.stopped = error, False
        self.settings: dict[str, str] = {}

    def config(self, name: str, value: str) -> Self:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Self:  # noqa: N802  (Spark's name)
        os.system("echo loud; echo louder >&2")
        if self.error is not None:
            raise self.error
        return self

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    sparksession.require()
    from pyspark.sql import SparkSession

    made = Builder()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", made)
    # set here, so that it is put back afterwards
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    return made


def test_a_session_is_started_quietly_and_stopped(
    builder: Builder, capfd: pytest.CaptureFixture[str]
) -> None:
    with local_session() as session:
        assert session is builder
        scratch = Path(builder.settings["spark.local.dir"])
        assert scratch.is_dir()
        assert builder.settings["spark.driver.bindAddress"] == "127.0.0.1"
        os.system("echo heard")
    assert builder.stopped
    assert not scratch.exists()
    assert capfd.readouterr() == ("heard\n", "")


def test_the_session_that_runs_is_taken_and_left_running(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    running: Any = Builder()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: running)
    with local_session() as session:
        assert session is running
    assert not running.stopped


def test_without_java_one_sentence_says_what_to_install(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pyspark.errors import PySparkRuntimeError

    builder.error = PySparkRuntimeError("[JAVA_GATEWAY_EXITED]")
    with pytest.raises(MissingExtraError, match="did not start, it needs Java 17 or later; install one"):
        local_session().__enter__()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingExtraError, match="needs Java 17 or later, which is not installed; install"):
        local_session().__enter__()
