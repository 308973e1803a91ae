"""The k-th smallest of scores in memory: exact, and cheaper than ordering them."""

from math import ceil, floor, sqrt
from typing import Final, NamedTuple

import numpy as np

from pac_wrap.kernels import LEAST_NORMAL, Floats, Inside, kernels, raised
from pac_wrap.order.area import scattered_positions
from pac_wrap.order.keys import to_keys

# up to so many scores np.partition alone is the faster way
SMALL: Final = 1 << 17
_LARGEST_SAMPLE: Final = 1 << 16
# standard deviations of the sample's rank on both sides; a miss, once in 400 times, only costs np.partition
_MARGIN: Final = 3.0


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
        low, high = bounds_around(scores, k)
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


def bounds_around(scores: Floats, k: int) -> tuple[np.floating, np.floating]:
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


def select(scores: Floats, k: int) -> float:
    """Return the k-th smallest of scores without NaN, counted from 1; np.partition helps out if missed.

    >>> select(np.arange(200_000.0)[::-1], 5_000)
    4999.0
    """
    found = None
    if scores.size > SMALL:
        found = Bracket.around(scores, k).kth_smallest(k)
    return float(np.partition(scores, k - 1)[k - 1]) if found is None else found


def count_below(scores: Floats, threshold: float) -> int:
    """Return how many scores are less than the threshold.

    >>> count_below(np.array([1.0, 2.0, 2.0]), 2.0)
    1
    """
    if abs(threshold) < LEAST_NORMAL:
        # in whole numbers, since a processor that flushes subnormal numbers takes them for zeros
        key = to_keys(np.array([threshold]))
        parts = (scores[start : start + SMALL] for start in range(0, scores.size, SMALL))
        return sum(int(np.count_nonzero(to_keys(part) < key)) for part in parts)
    return kernels().count(scores, raised(threshold, scores.dtype))
