"""Certificates of data that does not fit in memory: the same as in memory, from a few passes over chunks."""

from collections.abc import Callable, Iterable
from typing import Unpack

from numpy.typing import ArrayLike

from pac_wrap.calibration import Request, StrategyOptions, warn_if_upside_down
from pac_wrap.certificate import Certificate
from pac_wrap.chunks.passes import Passes, Run, Task
from pac_wrap.chunks.reader import Reader
from pac_wrap.guarantee import Guarantee
from pac_wrap.order import auc
from pac_wrap.relaxation import Strategy, StrategyName

__all__ = ["Passes", "Reader", "Run", "Task", "calibrate_chunks", "calibrate_passes"]


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
        warn_if_upside_down(auc(*reader.sample()))
    return certificate


def calibrate_passes(
    run: Run,
    guarantee: Guarantee | None = None,
    *,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate of data that some engine holds: `run(task)` is one pass of the engine over it.

    It calls `task(normal, anomalous)` with the float64 scores of every part, free of NaN, wherever the part
    lives, and adds up what comes back, in any order. Tasks are small and can be pickled. The certificate is
    that of `calibrate`; only the upside-down warning rests on another AUC, that of `Survey.area`.

    >>> import numpy as np
    >>> normal, anomalous = np.arange(100.0), np.arange(90.0, 200.0)
    >>> parts = [(normal[:30], anomalous), (normal[30:], anomalous[:0])]
    >>> calibrate_passes(lambda task: task(*parts[1]) + task(*parts[0])).thresholds
    Thresholds(alarm_from=98.00000000000001, clear_below=91.0)
    """
    request = Request.of(guarantee, abstain, strategy, options)
    passes = Passes(run)
    certificate = passes.certify(request)
    if all(passes.survey.sizes):
        warn_if_upside_down(passes.survey.area)
    return certificate
