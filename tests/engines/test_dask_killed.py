"""A worker that is killed in the middle of a Dask job changes nothing in the result."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap.engines import dask as engine
from pac_wrap.method.calibrate import calibrate_labelled
from support.daskcluster import cluster, current, needs_dask
from support.patience import until

dd = needs_dask()
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.slow
# the partition in the middle is looked at twice: before the first pass, and in it
PARTITIONS, MIDDLE, OTHER = 16, 8, 11


@pytest.fixture
def client() -> Iterator[Any]:
    """More workers than are killed: Dask does not always replace one, and need not."""
    with cluster(4) as started, current(started):
        yield started


def scores_of(number: int) -> Any:
    rng = np.random.default_rng(number)
    label = (rng.random(2000) < 0.2).astype(np.int64)
    return pd.DataFrame({"score": rng.normal(size=2000) + 2.5 * label, "label": label})


def deadly(number: int, which: int, diary: str) -> Any:
    """Return a partition; one of them kills the process that makes it, at every other call."""
    if number == which:
        with open(diary, "a") as opened:
            opened.write(f"{os.getpid()}\n")
        if len(calls_in(Path(diary))) % 2:
            os.kill(os.getpid(), signal.SIGKILL)
    return scores_of(number)


def slow(number: int, diary: str) -> Any:
    """Return a partition; in the middle, wait until a process that makes one has been killed."""
    with open(diary, "a") as opened:
        opened.write(f"{os.getpid()}\n")
    if len(calls_in(Path(diary))) > 5:
        until(Path(f"{diary}-killed").exists, "a worker was killed")
    return scores_of(number)


def calls_in(diary: Path) -> list[int]:
    """Return the processes that were asked, in order."""
    return [int(line) for line in diary.read_text().split()] if diary.exists() else []


def whole_frame() -> Any:
    return pd.concat([scores_of(number) for number in range(PARTITIONS)])


@pytest.mark.parametrize(("which", "looks"), [(MIDDLE, 2), (OTHER, 1)])
def test_a_worker_killed_at_every_look_changes_nothing(
    client: Any, tmp_path: Path, which: int, looks: int
) -> None:
    diary = tmp_path / "calls"
    df = dd.from_map(deadly, range(PARTITIONS), args=[which, str(diary)], meta=scores_of(0).iloc[:0])
    whole = whole_frame()
    before = set(client.run(os.getpid).values())
    certificate = engine.calibrate(df)
    decided = engine.decide(df, certificate).verdict.sum().compute()
    calls = calls_in(diary)
    # each look, and the decision, asked for the partition twice, and lost the worker that answered first
    assert len(calls) == 2 * looks + 2
    assert calls[0] in before
    assert not set(calls[::2]) & set(client.run(os.getpid).values())
    assert certificate.to_json() == calibrate_labelled(whole.score, whole.label).to_json()
    assert decided == certificate.verdicts(whole.score).sum()


def test_a_worker_killed_from_outside_in_the_middle_of_a_pass_changes_nothing(
    client: Any, tmp_path: Path
) -> None:
    diary = tmp_path / "calls"
    df = dd.from_map(slow, range(PARTITIONS), args=[str(diary)], meta=scores_of(0).iloc[:0])
    whole = whole_frame()
    before = set(client.run(os.getpid).values())

    def kill_one() -> int:
        until(lambda: len(calls_in(diary)) > 5, "a pass is going on")
        victim = calls_in(diary)[-1]
        os.kill(victim, signal.SIGKILL)
        Path(f"{diary}-killed").touch()
        return victim

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(kill_one)
        certificate = engine.calibrate(df)
        killed = done.result()
    assert killed in before
    # what the dead worker had answered, and not handed on, was asked for again
    assert len(calls_in(diary)) > 1 + PARTITIONS
    assert certificate.to_json() == calibrate_labelled(whole.score, whole.label).to_json()
    assert killed not in client.run(os.getpid).values()
