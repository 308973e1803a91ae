"""Exact facts about the order of scores: ranks, digest, AUC. Never a quantile function."""

from typing import Final

import numpy as np

from pac_wrap.inputs import Scores

_CHUNK: Final = 1 << 14
_AUC_POINTS: Final = 10_000


def kth_smallest(scores: Scores, k: int) -> float:
    """Return the k-th smallest score, counted from 1, in linear time.

    >>> kth_smallest(np.array([3.0, 1.0, 2.0]), 2)
    2.0
    """
    return float(np.partition(scores, k - 1)[k - 1])


def kth_largest(scores: Scores, k: int) -> float:
    """Return the k-th largest score, counted from 1, in linear time.

    >>> kth_largest(np.array([3.0, 1.0, 2.0]), 1)
    3.0
    """
    return kth_smallest(scores, scores.size - k + 1)


def digest(scores: Scores) -> str:
    """Return 16 hex digits that depend on the scores but not on their order.

    Guards against mix-ups, not against forgery. Sums of chunks merge, so any engine can compute it.

    >>> digest(np.array([1.0, 2.0, 2.0])) == digest(np.array([2.0, 1.0, 2.0]))
    True
    """
    total = 0
    for start in range(0, scores.size, _CHUNK):
        # adding 0.0 makes a fresh, contiguous chunk and turns -0.0, which compares equal, into 0.0
        mixed = (scores[start : start + _CHUNK] + 0.0).view(np.uint64)
        for multiplier, shift in ((0x9E3779B97F4A7C15, 32), (0xD6E8FEB86659FD93, 29)):
            mixed *= np.uint64(multiplier)
            mixed ^= mixed >> np.uint64(shift)
        total += int(mixed.sum(dtype=np.uint64))
    return f"{total % 2**64:016x}"


def auc(normal: Scores, anomalous: Scores) -> float:
    """Return the chance that an anomaly outscores a normal point, ties counting one half.

    Beyond 10,000 points per class it is taken on that many, evenly spaced in the order given.

    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    low, high = _spaced(normal), _spaced(anomalous)
    low = np.sort(low)
    below = np.searchsorted(low, high, side="left").sum(dtype=np.float64)
    not_above = np.searchsorted(low, high, side="right").sum(dtype=np.float64)
    return float((below + not_above) / (2.0 * low.size * high.size))


def _spaced(scores: Scores) -> Scores:
    if scores.size <= _AUC_POINTS:
        return scores
    return scores[np.linspace(0, scores.size - 1, _AUC_POINTS).astype(np.intp)]
