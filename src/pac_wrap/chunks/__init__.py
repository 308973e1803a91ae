"""Certificates of data that does not fit in memory: the same as in memory, from a few passes over chunks."""

from collections.abc import Callable, Iterable
from typing import Unpack

from numpy.typing import ArrayLike

from pac_wrap.calibration import Request, StrategyOptions, warn_if_upside_down
from pac_wrap.certificate import Certificate
from pac_wrap.chunks.parts import Part, Parts, PartTask, RunParts, missing_labels
from pac_wrap.chunks.passes import Passes, Run, Task
from pac_wrap.chunks.reader import Reader
from pac_wrap.guarantee import Guarantee
from pac_wrap.order import auc
from pac_wrap.relaxation import Strategy, StrategyName

__all__ = [
    "Part",
    "PartTask",
    "Passes",
    "Reader",
    "Run",
    "RunParts",
    "Task",
    "calibrate_chunks",
    "calibrate_parts",
    "calibrate_passes",
    "missing_labels",
]


def calibrate_chunks(
    chunks: Callable[[], Iterable[tuple[ArrayLike, ArrayLike]]],
    guarantee: Guarantee | None = None,
    *,
    anomaly_label: object = 1,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate that `calibrate_labelled` gives for all chunks put together, byte for byte.

    `chunks()` starts a fresh iteration over pairs of scores and labels, the same pairs each time: two to four
    passes are made, up to three more if one side is held. Memory is a few MB and the largest chunk.

    >>> parts = [([0.1, 0.9], [0, 1]), ([], []), ([0.2], [0])]
    >>> calibrate_chunks(lambda: parts).regime.value
    'vacuous'
    """
    request = Request.of(guarantee, abstain, strategy, options)
    reader = Reader(chunks, anomaly_label)
    passes = Passes(reader)
    certificate = passes.certify(request)
    if all(passes.survey.sizes):
        warn_if_upside_down(auc(*reader.sample()), *passes.survey.sizes)
    return certificate


def calibrate_parts(
    run: RunParts,
    guarantee: Guarantee | None = None,
    *,
    anomaly_label: object = 1,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate of data that some engine holds in partitions: `run(task)` is one pass over it.

    It calls the task on every partition, wherever that lives, and returns the sum of what comes back, in
    any order. The certificate is that of `calibrate_labelled`, byte for byte; only the upside-down warning
    rests on another AUC, `Survey.largest_area`.

    >>> parts = [[([0.1, 0.9], [0, 1])], [], [([0.2], [0]), ([0.3], [0])]]
    >>> calibrate_parts(lambda task: task(1, parts[1]) + task(2, parts[2]) + task(0, parts[0])).normal.n
    3
    """
    parts = Parts(run, anomaly_label)
    return calibrate_passes(parts, guarantee, abstain=abstain, strategy=strategy, **options)


def calibrate_passes(
    run: Run,
    guarantee: Guarantee | None = None,
    *,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate of data whose classes and NaN somebody else has seen to.

    `run(task)` calls `task(normal, anomalous)` with the float64 scores of every part and adds up what comes
    back. A task with `bounds` needs no scores beyond them.
    """
    request = Request.of(guarantee, abstain, strategy, options)
    passes = Passes(run)
    certificate = passes.certify(request)
    if all(passes.survey.sizes):
        warn_if_upside_down(passes.survey.largest_area, *passes.survey.sizes)
    return certificate
