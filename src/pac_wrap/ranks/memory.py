"""Scores in memory: the k-th smallest, counts, digest and AUC, each cheaper than ordering them."""

from abc import ABC, abstractmethod
from math import ceil, floor, inf, log, nextafter, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores, as_array, as_scores
from pac_wrap.base.floats import (
    Floats,
    count_below_zero,
    from_order_key,
    least_from,
    order_key,
    order_keys,
    unsigned_zero,
)
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import as_digest, digest, kernels
from pac_wrap.ranks.plain import Inside

# up to this many scores np.partition alone is faster
SMALL: Final = 1 << 17
_LARGEST_SAMPLE: Final = 1 << 16
# standard deviations of the sample's rank on both sides; a miss, once in 400 times, only costs np.partition
_MARGIN: Final = 3.0
# the most points of a class that an AUC is taken on, and a rough one
_POINTS: Final = 10_000
_FEW: Final = 1000
# of a thousand points each: more than six standard deviations above one half
_CLEARLY: Final = 0.6
_GOLDEN: Final = (sqrt(5.0) - 1.0) / 2.0
# how often scores that are not upside down may be taken for it
_LEVEL: Final = 0.01


class Ranked(ABC):
    """The scores of one class, asked only for their number, digest, ranks and counts."""

    size: int
    digest: str

    @abstractmethod
    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, counting from 1."""

    @abstractmethod
    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""

    @abstractmethod
    def kth_together(self, other: "Ranked", k: int, low: float, high: float) -> float:
        """Return the k-th smallest score of this class and another one; it lies in [low, high]."""


def kth_smallest(scores: Floats | Ranked, k: int) -> float:
    """Return the k-th smallest score, counting from 1, in linear time; zero has no sign.

    >>> kth_smallest(np.array([3.0, 1.0, 2.0]), 2)
    2.0
    """
    found = scores.kth_smallest(k) if isinstance(scores, Ranked) else _select(scores, k)
    return found or unsigned_zero(found)


def kth_largest(scores: Floats | Ranked, k: int) -> float:
    """Return the k-th largest score, counting from 1, in linear time.

    >>> kth_largest(np.array([3.0, 1.0, 2.0]), 1)
    3.0
    """
    return kth_smallest(scores, scores.size - k + 1)


def count_below(scores: Floats | Ranked, threshold: float) -> int:
    """Return how many scores are less than the threshold.

    >>> count_below(np.array([3.0, 1.0, 2.0]), 3.0)
    2
    """
    if isinstance(scores, Ranked):
        return scores.count_below(threshold)
    if not threshold:
        return count_below_zero(scores, threshold)
    double = scores.dtype == np.float64
    return kernels().count(scores, np.float64(threshold) if double else least_from(threshold, scores.dtype))


def kth_between(
    normal: Floats | Ranked, anomalous: Floats | Ranked, low: float, high: float, share: float
) -> float:
    """Return the ceil(share m)-th smallest of the m scores of both classes in [low, high], or the first.

    >>> kth_between(np.array([1.0, 2.0, 3.0]), np.array([2.5, 4.0]), 2.0, 4.0, 0.5)
    2.5
    """
    classes = normal, anomalous
    below = sum(count_below(one, low) for one in classes)
    inside = (
        sum(one.size if high == inf else count_below(one, nextafter(high, inf)) for one in classes) - below
    )
    k = below + max(1, ceil(share * inside))
    if isinstance(normal, Ranked) and isinstance(anomalous, Ranked):
        found = normal.kth_together(anomalous, k, low, high)
    else:
        found = _select_together(np.asarray(normal), np.asarray(anomalous), k - below, low, high)
    return found or unsigned_zero(found)


def _select_together(normal: Floats, anomalous: Floats, k: int, low: float, high: float) -> float:
    """Return the k-th smallest of the scores of both classes in [low, high]."""
    near = [
        chunk[(chunk >= low) & (chunk <= high)]
        for scores in (normal, anomalous)
        for start in range(0, scores.size, SMALL)
        for chunk in [scores[start : start + SMALL]]
    ]
    # where the processor flushes, a few too many are near zero: their keys tell
    keys = np.concatenate([order_keys(scores) for scores in near])
    keys = keys[keys >= np.uint64(order_key(low))]
    return from_order_key(int(np.partition(keys, k - 1)[k - 1]))


class Bracket(NamedTuple):
    """A range of scores that is narrow and very likely holds the wanted rank, with what lies in it.

    Where ties make low and high equal, the scores inside are only counted.
    """

    low: np.floating
    high: np.floating
    size: int
    found: Inside

    @classmethod
    def around(cls, scores: Floats, k: int) -> "Bracket":
        """Return the bracket around the k-th smallest score, filled in one pass."""
        low, high = _bounds_around(scores, k)
        found = kernels().bracket(scores, low, high, keep=bool(low < high))
        return cls(low, high, scores.size - found.below - found.above, found)

    def kth_smallest(self, k: int) -> float | None:
        """Return the k-th smallest score if it lies inside."""
        rank = k - 1 - self.found.below
        if not 0 <= rank < self.size:
            return None
        if self.low == self.high:
            return float(self.low)
        return float(np.partition(self.found.scores, rank)[rank])


def _bounds_around(scores: Floats, k: int) -> tuple[np.floating, np.floating]:
    """Return two scores that, as a sample suggests, the k-th smallest lies between."""
    # n^(2/3) balances the cost of the sample and of what falls into the bracket (Floyd and Rivest 1975)
    size = min(int(scores.size ** (2 / 3)), _LARGEST_SAMPLE)
    sample = scores[scattered_positions(scores.size, size)]
    share = k / scores.size
    margin = _MARGIN * (sqrt(size * share * (1.0 - share)) + 1.0)
    low, high = floor(size * share - margin), ceil(size * share + margin)
    sample.partition([max(low, 0), min(high, size - 1)])
    kind = scores.dtype.type
    return (
        sample[low] if low >= 0 else kind(-np.inf),
        sample[high] if high < size else kind(np.inf),
    )


def _select(scores: Floats, k: int) -> float:
    """Return the k-th smallest of scores without NaN; np.partition helps out if the bracket misses it.

    >>> _select(np.arange(200_000.0)[::-1], 5_000)
    4999.0
    """
    found = Bracket.around(scores, k).kth_smallest(k) if scores.size > SMALL else None
    return float(np.partition(scores, k - 1)[k - 1]) if found is None else found


def unchecked(values: ArrayLike, name: str) -> Floats:
    """Return values as a one-dimensional array; if it is large, NaN has not been looked for yet.

    Large float32 arrays stay as they are: a wider copy would cost more than all the rest.
    """
    array: NDArray[Any] = as_array(values, name)
    if array.ndim == 1 and array.size > SMALL and array.dtype in (np.float64, np.float32):
        return array
    return as_scores(array, name)


class RankedInMemory(Ranked):
    """The scores of one class in memory, as `unchecked` gives them; the ranks near `k` cost next to nothing.

    >>> normal = RankedInMemory(np.array([3.0, 1.0, 2.0]), "normal", 3)
    >>> normal.kth_smallest(2), normal.count_below(2.0), normal.size
    (2.0, 1, 3)
    """

    def __init__(self, scores: Floats, name: str, k: int) -> None:
        self.size, self._scores = scores.size, scores
        self._bracket: Bracket | None = None
        if scores.size <= SMALL:
            self.digest = digest(scores)
            return
        self._bracket = Bracket.around(scores, k)
        self.digest = as_digest(self._bracket.found.hash_sum)
        if self._bracket.found.nan:
            as_scores(scores, name)
            raise InputError(f"{name} changed while they were read; pass an array that nobody writes to")

    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, from the bracket if it lies there."""
        found = None if self._bracket is None else self._bracket.kth_smallest(k)
        return _select(self._scores, k) if found is None else found

    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""
        return count_below(self._scores, threshold)

    def kth_together(self, other: Ranked, k: int, low: float, high: float) -> float:
        """Return the k-th smallest score of this class and another one, also in memory."""
        assert isinstance(other, RankedInMemory)
        k -= self.count_below(low) + other.count_below(low)
        return _select_together(self._scores, other._scores, k, low, high)


def rough_auc(normal: Floats, anomalous: Floats) -> float:
    """Return the AUC of up to a thousand points of each class, or of more of them if those leave it open.

    Whether it is upside down is as in `auc`, unless chance plays a trick of more than six standard
    deviations.
    """
    found = auc(_scattered(normal), _scattered(anomalous))
    return found if found > _CLEARLY else auc(normal, anomalous)


def auc(normal: Floats, anomalous: Floats) -> float:
    """Return the chance that an anomaly outscores a normal point, ties counting one half.

    Beyond 10,000 points per class it is taken on that many, evenly spaced in the order given.

    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    # both sorted: the search then walks through memory in order, four times as fast
    low, high = np.sort(_spaced(normal)), np.sort(_spaced(anomalous))
    below = np.searchsorted(low, high, side="left").sum(dtype=np.float64)
    not_above = np.searchsorted(low, high, side="right").sum(dtype=np.float64)
    return float((below + not_above) / (2.0 * low.size * high.size))


def spaced_positions(size: int) -> NDArray[np.intp]:
    """Return the positions, in rising order, of the scores among `size` that an AUC is taken on.

    >>> spaced_positions(3).tolist()
    [0, 1, 2]
    """
    if size <= _POINTS:
        return np.arange(size, dtype=np.intp)
    return np.linspace(0, size - 1, _POINTS).astype(np.intp)


def scattered_positions(size: int, points: int) -> NDArray[np.intp]:
    """Return `points` positions among `size`, spread evenly by steps of the golden ratio.

    No period in the scores keeps pace with them.

    >>> scattered_positions(100, 4).tolist()
    [0, 61, 23, 85]
    """
    steps = np.arange(points) * _GOLDEN
    steps -= np.floor(steps)
    return (steps * size).astype(np.intp)


def _spaced(scores: Floats) -> Scores:
    taken = scores if scores.size <= _POINTS else scores[spaced_positions(scores.size)]
    return taken.astype(np.float64, copy=False)


def _scattered(scores: Floats) -> Floats:
    return scores if scores.size <= _FEW else scores[scattered_positions(scores.size, _FEW)]


def is_upside_down(a: float, *sizes: int) -> bool:
    """Return whether an AUC of classes of these sizes is significantly below one half, at 1 %: eq. (25).

    m (ln 2 + a ln a + (1 - a) ln(1 - a)) >= ln 100, m being the smaller size. Holds whatever the two
    distributions, with ties; fewer than seven points of a class are never enough.

    >>> is_upside_down(0.1, 60, 20), is_upside_down(0.45, 60, 20), is_upside_down(0.0, 1000, 6)
    (True, False, False)
    """
    if a >= 0.5:
        return False
    divergence = log(2.0) + sum(share * log(share) for share in (a, 1.0 - a) if share > 0.0)
    # an AUC is taken on no more points than that
    return min(*sizes, _POINTS) * divergence >= -log(_LEVEL)
