"""A small cluster of real executors on this machine: killing one changes nothing."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

from pac_wrap.engines import spark
from pac_wrap.method.calibrate import calibrate_labelled
from support import sparksession

pytestmark = [sparksession.quiet, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sparksession.session("local-cluster[2, 1, 1024]", tmp_path_factory.mktemp("spark")) as started:
        name = started.sparkContext.applicationId
        yield started
    # such a cluster logs beside Spark's own files, whatever its settings
    from pyspark.find_spark_home import _find_spark_home

    logs = Path(_find_spark_home()) / "work"
    shutil.rmtree(logs / name, ignore_errors=True)
    with suppress(OSError):
        logs.rmdir()


def lost_executors(session: Any) -> list[str]:
    """Return the executors that Spark has given up, once there is one; it hears of a death a little later."""
    store = session.sparkContext._jsc.sc().statusStore()
    for _ in range(600):
        known = store.executorList(False)  # not only those that are alive
        lost = [each.id() for each in map(known.apply, range(known.size())) if not each.isActive()]
        if lost:
            return lost
        sleep(0.1)
    return []


def alive(pid: int) -> bool:
    """Return whether there is such a process; one that is dead and not yet buried is not alive."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as status:
            return status.read().rpartition(b")")[2].split()[0] != b"Z"
    except FileNotFoundError:
        return False


def test_an_executor_killed_in_the_middle_of_a_job_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    import pyarrow as pa

    rng = np.random.default_rng(3)
    labels = (rng.random(5000) < 0.3).astype(np.int64)
    scores = rng.normal(size=5000) + 2.5 * labels
    df = cluster.createDataFrame(pa.table({"score": scores, "label": labels})).repartition(6, "score")
    mark = str(tmp_path / "killed")

    def deadly(batches: Iterator[Any]) -> Iterator[Any]:
        import signal

        from pyspark import TaskContext

        task = TaskContext.get()
        with open(f"{mark}.{task.partitionId()}", "a") as note:
            note.write(f"{task.stageId()} ")
        yield from batches
        if task.partitionId() == 4 and not os.path.exists(mark):
            # the worker's parent is the daemon that forks them, and its parent the executor
            with open(f"/proc/{os.getppid()}/stat", "rb") as daemon:
                executor = int(daemon.read().rpartition(b")")[2].split()[1])
            with open(f"/proc/{executor}/comm") as name, open(mark, "x") as note:
                note.write(f"{executor} {name.read()}")
            os.kill(executor, signal.SIGKILL)

    found = spark.calibrate(df.mapInArrow(deadly, df.schema))
    assert found.to_json() == calibrate_labelled(scores, labels).to_json()
    pid, name = Path(mark).read_text().split()
    assert name == "java"
    # it died: the process is gone, Spark has lost one executor, and the task was tried again in its stage
    assert not alive(int(pid))
    assert len(lost_executors(cluster)) == 1
    stages = Path(f"{mark}.4").read_text().split()
    assert stages.count(stages[0]) >= 2
