"""The k-th smallest of scores in memory: exact, and cheaper than ordering them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, floor, sqrt
from typing import Final

import numpy as np

from pac_wrap.order.digests import CHUNK, Floats

# up to so many scores np.partition alone is the faster way
SMALL: Final = 1 << 17
_LARGEST_SAMPLE: Final = 1 << 16
_GOLDEN: Final = (sqrt(5.0) - 1.0) / 2.0
# standard deviations of the sample's rank on both sides; a miss, once in 400 times, only costs np.partition
_MARGIN: Final = 3.0


@dataclass(frozen=True, slots=True)
class Bracket:
    """The scores in [low, high], and how many lie below; few, and very likely with the wanted rank in them.

    Where ties make low and high equal, the scores inside are only counted.
    """

    low: np.floating
    high: np.floating
    below: int = 0
    size: int = 0
    inside: tuple[Floats, ...] = ()

    @classmethod
    def around(cls, scores: Floats, k: int) -> "Bracket":
        """Return the bracket, still empty, that a sample of the scores suggests for the k-th smallest."""
        # n^(2/3) balances the cost of the sample and of what falls into the bracket (Floyd and Rivest 1975)
        size = min(int(scores.size ** (2 / 3)), _LARGEST_SAMPLE)
        # steps by the golden ratio spread evenly, and no period in the scores keeps pace with them
        steps = np.arange(size) * _GOLDEN
        steps -= np.floor(steps)
        sample = scores[(steps * scores.size).astype(np.intp)]
        share = k / scores.size
        margin = _MARGIN * (sqrt(size * share * (1.0 - share)) + 1.0)
        low, high = floor(size * share - margin), ceil(size * share + margin)
        sample.partition([max(low, 0), min(high, size - 1)])
        kind = scores.dtype.type
        return cls(
            sample[low] if low >= 0 else kind(-np.inf),
            sample[high] if high < size else kind(np.inf),
        )

    def filled(self, scores: Floats, visit: Callable[[Floats], None] | None = None) -> "Bracket":
        """Return the bracket filled in one pass, on which `visit` sees every chunk as well."""
        below, size, inside = 0, 0, []
        lower, within = np.empty((2, CHUNK), dtype=bool)
        for start in range(0, scores.size, CHUNK):
            chunk = scores[start : start + CHUNK]
            low, high = lower[: chunk.size], within[: chunk.size]
            if visit is not None:
                visit(chunk)
            np.less(chunk, self.low, out=low)
            np.less_equal(chunk, self.high, out=high)
            below += int(np.count_nonzero(low))
            size += int(np.count_nonzero(high))
            if self.low < self.high:
                inside.append(chunk[np.not_equal(low, high, out=high)])
        return replace(self, below=below, size=size - below, inside=tuple(inside))

    def kth_smallest(self, k: int) -> float | None:
        """Return the k-th smallest score if it lies inside."""
        rank = k - 1 - self.below
        if not 0 <= rank < self.size:
            return None
        if self.low == self.high:
            return float(self.low)
        inside = np.concatenate(self.inside)
        inside.partition(rank)
        return float(inside[rank])


def select(scores: Floats, k: int) -> float:
    """Return the k-th smallest of scores without NaN, counted from 1; np.partition helps out if missed.

    >>> select(np.arange(200_000.0)[::-1], 5_000)
    4999.0
    """
    found = None
    if scores.size > SMALL:
        found = Bracket.around(scores, k).filled(scores).kth_smallest(k)
    return float(np.partition(scores, k - 1)[k - 1]) if found is None else found


def count_below(scores: Floats, threshold: float) -> int:
    """Return how many scores are less than the threshold.

    >>> count_below(np.array([1.0, 2.0, 2.0]), 2.0)
    1
    """
    # a float64, so that float32 scores are widened for the comparison, and not the threshold rounded
    wide = np.float64(threshold)
    parts = (scores[start : start + CHUNK] for start in range(0, scores.size, CHUNK))
    return sum(int(np.count_nonzero(part < wide)) for part in parts)
