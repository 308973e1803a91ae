"""A worker that is killed in the middle of a Dask job changes nothing in the result."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap.engines import dask as engine
from pac_wrap.method.calibrate import calibrate_labelled
from support.daskcluster import cluster, current, needs_dask

dd = needs_dask()
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.slow
PARTITIONS, DEADLY = 16, 11


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    with cluster() as started:
        yield started


@pytest.fixture
def client(workers: Any) -> Iterator[Any]:
    with current(workers) as started:
        yield started


def scores_of(number: int) -> Any:
    rng = np.random.default_rng(number)
    label = (rng.random(2000) < 0.2).astype(np.int64)
    return pd.DataFrame({"score": rng.normal(size=2000) + 2.5 * label, "label": label})


def deadly(number: int, diary: str) -> Any:
    """Return a partition; one of them kills the process that makes it, at every other call."""
    if number == DEADLY:
        with open(diary, "a") as opened:
            opened.write(f"{os.getpid()}\n")
        if len(Path(diary).read_text().splitlines()) % 2:
            os.kill(os.getpid(), signal.SIGKILL)
    return scores_of(number)


def test_a_worker_killed_in_every_pass_changes_nothing(client: Any, tmp_path: Path) -> None:
    diary = tmp_path / "calls"
    df = dd.from_map(deadly, range(PARTITIONS), args=[str(diary)], meta=scores_of(0).iloc[:0])
    whole = pd.concat([scores_of(number) for number in range(PARTITIONS)])
    before = set(client.run(os.getpid).values())
    certificate = engine.calibrate(df)
    calls = [int(line) for line in diary.read_text().splitlines()]
    # each pass asked for the partition twice, and lost the worker that answered first
    assert len(calls) == 4
    assert calls[0] in before
    client.wait_for_workers(2, timeout=30)
    assert not {calls[0], calls[2]} & set(client.run(os.getpid).values())
    assert certificate.to_json() == calibrate_labelled(whole.score, whole.label).to_json()
    decided = engine.decide(df, certificate).verdict.sum().compute()
    assert len(diary.read_text().splitlines()) == 6
    assert decided == certificate.verdicts(whole.score).sum()
