"""Scores in memory: the k-th smallest, counts and digest; many are never put in order."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from math import ceil, floor, inf, nextafter, sqrt
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_array, as_scores
from pac_wrap.base.floats import (
    Bits,
    Floats,
    count_below_zero,
    flushes,
    from_order_key,
    in_order,
    largest_up_to,
    least_from,
    order_key,
    order_keys,
    unsigned_zero,
    widened,
)
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import Inside, as_digest, digest, kernels, together

T = TypeVar("T")
# up to this many scores np.partition alone is faster
SMALL: Final = 1 << 17
# up to this many it is faster to sort them once than to select each rank
_SORTED: Final = 3000
_LARGEST_SAMPLE: Final = 1 << 16
# standard deviations of the sample's rank on both sides; a miss, once in 400 times, only costs np.partition
_MARGIN: Final = 3.0
# so many ranks are selected one by one, before scores are put in order
_MANY: Final = 32
_GOLDEN: Final = (sqrt(5.0) - 1.0) / 2.0


# the label of both classes together
BOTH: Final = (0, 1)


class Rank(NamedTuple):
    """A wanted rank: the k-th smallest of class 0 (normal) or 1 (anomalous), of a part, or of several."""

    label: int | tuple[int, ...]
    k: int

    @property
    def labels(self) -> tuple[int, ...]:
        """The numbers of the parts that count."""
        return self.label if isinstance(self.label, tuple) else (self.label,)

    def of(self, parts: Any) -> Any:
        """Return what counts for this rank, of a number or an array for each part."""
        return parts[self.label] if isinstance(self.label, int) else sum(parts[one] for one in self.label)


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
    def prefetch(self, ranks: Iterable[Rank]) -> None:
        """Find what will be asked for, of this class and the other, at once where that is cheaper."""

    @abstractmethod
    def kth_between(self, other: "Ranked", low: float, high: float, share: float) -> float:
        """Return the ceil(share m)-th smallest, or the first, of the m scores of both in [low, high]."""

    def rank_between(self, other: "Ranked", low: float, high: float, share: float) -> Rank:
        """Return which rank of both classes together that score has, from four counts."""
        below = self.count_below(low) + other.count_below(low)
        beyond = self.size + other.size
        if high < inf:
            beyond = sum(one.count_below(nextafter(high, inf)) for one in (self, other))
        return Rank(BOTH, below + max(1, ceil(share * (beyond - below))))


def kth_smallest(scores: Floats | Ranked, k: int) -> float:
    """Return the k-th smallest score, counting from 1, in linear time; zero has no sign."""
    found = scores.kth_smallest(k) if isinstance(scores, Ranked) else _select(scores, k)
    return found or unsigned_zero(found)


def kth_largest(scores: Floats | Ranked, k: int) -> float:
    """Return the k-th largest score, counting from 1, in linear time."""
    return kth_smallest(scores, scores.size - k + 1)


def count_below(scores: Floats | Ranked, threshold: float) -> int:
    """Return how many scores are less than the threshold."""
    if isinstance(scores, Ranked):
        return scores.count_below(threshold)
    if not threshold:
        return count_below_zero(scores, threshold)
    double = scores.dtype == np.float64
    return kernels().count(scores, np.float64(threshold) if double else least_from(threshold, scores.dtype))


def kth_between(
    normal: Floats | Ranked, anomalous: Floats | Ranked, low: float, high: float, share: float
) -> float:
    """Return the ceil(share m)-th smallest, or the first, of the m scores of both classes in [low, high]."""
    if isinstance(normal, Ranked) and isinstance(anomalous, Ranked):
        found = normal.kth_between(anomalous, low, high, share)
    else:
        found = _select_between((np.asarray(normal), np.asarray(anomalous)), low, high, share)
    return found or unsigned_zero(found)


def _select_between(classes: tuple[Floats, Floats], low: float, high: float, share: float) -> float:
    """Return the same of scores in memory; where they are many, a sample says near which scores to look."""
    below, inside = (sum(counts) for counts in zip(*_counted(classes, low, high), strict=True))
    k = max(1, ceil(share * inside))
    for ends in (_ends_around(classes, low, high, share), (low, high)):
        under, keys = zip(*_gathered(classes, *ends), strict=True)
        rank, found = k - 1 - (sum(under) - below), np.concatenate(keys)
        if 0 <= rank < found.size:
            break
    return from_order_key(int(np.partition(found, rank)[rank]))


def _counted(classes: tuple[Floats, Floats], low: float, high: float) -> list[tuple[int, int]]:
    """Return for each class how many scores lie below [low, high], and in it."""

    def count(scores: Floats) -> tuple[int, int]:
        below = count_below(scores, low)
        return below, (scores.size if high == inf else count_below(scores, nextafter(high, inf))) - below

    return _for_both(count, classes)


def _gathered(classes: tuple[Floats, Floats], low: float, high: float) -> list[tuple[int, Bits]]:
    """Return for each class how many scores lie below [low, high], and the keys of those in it."""

    def gather(scores: Floats) -> tuple[int, Bits]:
        ends = least_from(low, scores.dtype), largest_up_to(high, scores.dtype)
        keys = order_keys(kernels().bracket(scores, *ends, keep=True).scores)
        # where the processor flushes, other numbers near zero are taken for it: keys tell
        exact = (keys >= np.uint64(order_key(low))) & (keys <= np.uint64(order_key(high)))
        return count_below(scores, low), keys[exact]

    return _for_both(gather, classes)


def _ends_around(
    classes: tuple[Floats, Floats], low: float, high: float, share: float
) -> tuple[float, float]:
    """Return a part of [low, high] in which, as a sample of both classes suggests, a share of them ends."""
    sizes = [scores.size for scores in classes]
    if max(sizes) <= SMALL:
        return low, high
    part = min(max(sizes) ** (2 / 3), _LARGEST_SAMPLE) / max(sizes)
    taken = [scores[scattered_positions(scores.size, int(scores.size * part))] for scores in classes]
    sample = np.concatenate([widened(one) for one in taken])
    sample = np.sort(sample[(sample >= low) & (sample <= high)])
    margin = _MARGIN * (sqrt(sample.size * share * (1.0 - share)) + 1.0)
    first, last = floor(sample.size * share - margin), ceil(sample.size * share + margin)
    return (
        float(sample[first]) if first >= 0 else low,
        float(sample[last]) if last < sample.size else high,
    )


def _for_both(action: Callable[[Floats], T], classes: tuple[Floats, Floats]) -> list[T]:
    """Return what an action returns for each class, in threads where both are large."""
    actions = [partial(action, scores) for scores in classes]
    return together(actions, min(scores.size for scores in classes))


class Bracket(NamedTuple):
    """A narrow range of scores that very likely holds the wanted rank, with what lies in it."""

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
    """Return the k-th smallest of scores without NaN; np.partition helps out if the bracket misses it."""
    found = Bracket.around(scores, k).kth_smallest(k) if scores.size > SMALL else None
    return float(np.partition(scores, k - 1)[k - 1]) if found is None else found


def unchecked(values: ArrayLike, name: str) -> Floats:
    """Return values as a one-dimensional array; if it is large, NaN has not been looked for yet."""
    # large float32 arrays stay as they are: a wider copy would cost more than all the rest
    array: NDArray[Any] = as_array(values, name)
    if array.ndim == 1 and array.size > SMALL and array.dtype in (np.float64, np.float32):
        return array
    return as_scores(array, name)


class RankedInMemory(Ranked):
    """The scores of one class in memory, as `unchecked` gives them; few are sorted once.

    Of many, the ranks near `k` cost next to nothing; where a thousand ranks are wanted, it is None, and they
    are sorted too.
    """

    def __init__(self, scores: Floats, name: str, k: int | None) -> None:
        self.size, self.scores = scores.size, scores
        self.ordered = in_order(scores) if k is None or scores.size <= _SORTED else None
        self._bracket: Bracket | None = None
        self._asked = 0
        if k is None or scores.size <= SMALL:
            self.digest = digest(scores)
            return
        self._bracket = Bracket.around(scores, k)
        self.digest = as_digest(self._bracket.found.hash_sum)
        if self._bracket.found.nan:
            as_scores(scores, name)
            raise InputError(f"{name} changed while they were read; pass an array that nobody writes to")

    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, from the bracket if it lies there; after many, all are in order."""
        self._asked += 1
        if self._asked == _MANY and self.ordered is None:
            self.ordered = in_order(self.scores)
        if self.ordered is not None:
            return float(self.ordered[k - 1])
        found = None if self._bracket is None else self._bracket.kth_smallest(k)
        return _select(self.scores, k) if found is None else found

    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""
        # what the processor takes for zero is told by its bits
        if self.ordered is None or (not threshold and flushes()):
            return count_below(self.scores, threshold)
        return int(self.ordered.searchsorted(threshold))

    def prefetch(self, ranks: Iterable[Rank]) -> None:
        """Do nothing: in memory, a rank costs the same at any time."""

    def kth_between(self, other: Ranked, low: float, high: float, share: float) -> float:
        """Return the ceil(share m)-th smallest, or the first, of the m scores of both in [low, high]."""
        assert isinstance(other, RankedInMemory)
        if self.ordered is None or other.ordered is None or flushes():
            return _select_between((self.scores, other.scores), low, high, share)
        both = self.ordered, other.ordered
        inside = np.concatenate(
            [one[one.searchsorted(low) : one.searchsorted(high, "right")] for one in both]
        )
        k = max(1, ceil(share * inside.size))
        return float(np.partition(inside, k - 1)[k - 1])


def scattered_positions(size: int, points: int) -> NDArray[np.intp]:
    """Return `points` positions among `size`, spread evenly by steps of the golden ratio."""
    # no period in the scores keeps pace with them
    steps = np.arange(points) * _GOLDEN
    steps -= np.floor(steps)
    return (steps * size).astype(np.intp)
