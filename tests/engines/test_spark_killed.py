"""A small cluster on this machine, of a master and two workers: killing one in mid-pass changes nothing."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from threading import Thread
from typing import Any

import numpy as np
import pytest

from pac_wrap.engines import spark
from pac_wrap.method.calibrate import calibrate_labelled
from support import sparksession
from support.patience import LIMIT, until

pytestmark = [sparksession.quiet, pytest.mark.slow]
PARTITIONS, SIZE = 12, 60_000
# slow enough to be caught at work, without any Python: some rows wait a little
WAITING = "IF(id % 200 = 7, reflect('java.lang.Thread', 'sleep', CAST(20 AS BIGINT)), 'null') AS waited"


class Cluster:
    """A session on a master, its two workers, and their executors."""

    def __init__(self, session: Any, workers: list[Popen[bytes]]) -> None:
        self.session, self.workers = session, workers

    @property
    def lost(self) -> list[str]:
        """The executors that Spark has given up."""
        known = self.session.sparkContext._jsc.sc().statusStore().executorList(False)
        return [each.id() for each in map(known.apply, range(known.size())) if not each.isActive()]

    @property
    def executors(self) -> int:
        """How many executors there are, without the driver."""
        return int(self.session.sparkContext._jsc.sc().statusStore().executorList(True).size()) - 1

    @property
    def jobs_and_tasks(self) -> tuple[int, int]:
        """How many jobs there were, the last included, and how many tasks are running."""
        tracker = self.session.sparkContext.statusTracker()
        jobs = sorted(tracker.getJobIdsForGroup(None))
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return len(jobs), sum(stage.numActiveTasks for stage in stages if stage)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        port = sparksession.free_port()
        master = f"spark://127.0.0.1:{port}"
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        deploy = "org.apache.spark.deploy"
        arguments = [f"{deploy}.master.Master", *place, "--port", str(port)]
        server = stack.enter_context(sparksession.started(tmp_path, "master", *arguments))
        sparksession.wait_for_port(port, server)
        workers = []
        for number in range(2):
            folder = ["--work-dir", str(tmp_path / f"work{number}"), "--cores", "1", "--memory", "1g"]
            program = [f"{deploy}.worker.Worker", *place, *folder, master]
            workers.append(stack.enter_context(sparksession.started(tmp_path, f"worker{number}", *program)))
        session = stack.enter_context(sparksession.session(master, tmp_path))
        found = Cluster(session, workers)
        until(lambda: found.executors == 2, "both workers have an executor")
        yield found


@pytest.mark.filterwarnings("ignore::pac_wrap.LabelWarning")  # evenly spaced scores break off
def test_a_worker_killed_in_mid_pass_changes_nothing(cluster: Cluster) -> None:
    df = cluster.session.range(0, SIZE, 1, PARTITIONS).selectExpr(
        "CAST(pmod(id * 7919, 10007) AS DOUBLE) / 4096 + IF(id % 9 = 0, 2, 0) AS score",
        "CAST(id % 9 = 0 AS INT) AS label",
        WAITING,
    )
    df = df.where("waited = 'null'").select("score", "label")
    found: list[Any] = []
    pass_over = Thread(target=lambda: found.append(spark.calibrate(df)), daemon=True)
    pass_over.start()
    # the first job takes the first rows, the second counts
    until(lambda: cluster.jobs_and_tasks >= (2, 2), "the second job keeps both workers busy")
    assert not cluster.lost
    # the worker and its executor, as when a machine loses its power
    victim = cluster.workers[1]
    for pid in [*children(victim.pid), victim.pid]:
        os.kill(pid, signal.SIGKILL)
    pass_over.join(LIMIT)
    assert not pass_over.is_alive()
    assert victim.wait(LIMIT) == -signal.SIGKILL
    until(lambda: len(cluster.lost) == 1, "Spark has given up one executor")
    ids = np.arange(SIZE)
    scores = ids * 7919 % 10007 / 4096 + np.where(ids % 9 == 0, 2, 0)
    assert found[0].to_json() == calibrate_labelled(scores, (ids % 9 == 0).astype(int)).to_json()


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
