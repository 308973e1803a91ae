"""Scores in memory: ranks, counts and digest; warnings of classes upside down, or chosen by score."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import ceil, floor, inf, log, nextafter, sqrt
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import floats
from pac_wrap.base.arguments import Scores, as_array, as_scores, warn
from pac_wrap.base.floats import Bits, Floats
from pac_wrap.errors import InputError, LabelWarning, UpsideDownWarning
from pac_wrap.ranks.kernels import Inside, as_digest, digest, kernels, together

T = TypeVar("T")
# up to this many scores np.partition alone is faster
SMALL: Final = 1 << 17
# up to this many it is faster to sort them once than to select each rank
_SORTED: Final = 3000
_LARGEST_SAMPLE: Final = 1 << 16
# standard deviations of the sample's rank on both sides; a miss, once in 400 times, only costs np.partition
_MARGIN: Final = 3.0
# the most ranks that are selected one by one; for more of them, the scores are put in order
_MANY: Final = 32
_GOLDEN: Final = (sqrt(5.0) - 1.0) / 2.0
# the label of both classes together
BOTH: Final = (0, 1)


class Rank(NamedTuple):
    """A wanted rank: the k-th smallest score of class 0 (normal) or 1 (anomalous), or of some parts."""

    label: int | tuple[int, ...]
    k: int

    @property
    def labels(self) -> tuple[int, ...]:
        return self.label if isinstance(self.label, tuple) else (self.label,)

    def of(self, parts: Any) -> Any:
        """Return the sum, over the parts that count for this rank, of a number or an array for each part."""
        return parts[self.label] if isinstance(self.label, int) else sum(parts[one] for one in self.label)


class Ranked(ABC):
    """The scores of one class, known only by their number, digest, ranks and counts."""

    size: int
    digest: str

    @abstractmethod
    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, counting from 1."""

    @abstractmethod
    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""

    def prefetch(self, ranks: Iterable[Rank]) -> None:  # noqa: B027  # most scores need none
        """Find the ranks that both classes will need all at once, if that is cheaper."""

    @abstractmethod
    def kth_between(self, other: "Ranked", low: float, high: float, share: float) -> float:
        """Return the ceil(share m)-th smallest, or the first, of the m scores of both in [low, high]."""


def kth_smallest(scores: Floats | Ranked, k: int) -> float:
    """Return the k-th smallest score, counting from 1, in linear time; zero has no sign."""
    found = scores.kth_smallest(k) if isinstance(scores, Ranked) else _select(scores, k)
    return found or floats.unsigned_zero(found)


def kth_largest(scores: Floats | Ranked, k: int) -> float:
    """Return the k-th largest score, counting from 1, in linear time."""
    return kth_smallest(scores, scores.size - k + 1)


def count_below(scores: Floats | Ranked, threshold: float) -> int:
    """Return how many scores are less than the threshold."""
    if isinstance(scores, Ranked):
        return scores.count_below(threshold)
    if not threshold:
        return floats.count_below_zero(scores, threshold)
    return kernels().count(scores, floats.least_from(threshold, scores.dtype))


def kth_between(
    normal: Floats | Ranked, anomalous: Floats | Ranked, low: float, high: float, share: float
) -> float:
    """Return the ceil(share m)-th smallest, or the first, of the m scores of both classes in [low, high]."""
    if isinstance(normal, Ranked) and isinstance(anomalous, Ranked):
        found = normal.kth_between(anomalous, low, high, share)
    else:
        found = _select_between((np.asarray(normal), np.asarray(anomalous)), low, high, share)
    return found or floats.unsigned_zero(found)


def _select_between(classes: Sequence[Floats], low: float, high: float, share: float) -> float:
    """Return the score at a share of two classes in memory; a sample guides the search among many."""

    def of_both(action: Callable[[Floats, float, float], T], *ends: float) -> list[T]:
        actions = [partial(action, scores, *ends) for scores in classes]
        return together(actions, min(scores.size for scores in classes))

    below, inside = (sum(counts) for counts in zip(*of_both(_counted, low, high), strict=True))
    k = max(1, ceil(share * inside))
    for ends in (_ends_around(classes, low, high, share), (low, high)):
        under, keys = zip(*of_both(_gathered, *ends), strict=True)
        rank, found = k - 1 - (sum(under) - below), np.concatenate(keys)
        if 0 <= rank < found.size:
            break
    return floats.from_order_key(int(np.partition(found, rank)[rank]))


def _counted(scores: Floats, low: float, high: float) -> tuple[int, int]:
    """Return how many scores lie below [low, high], and in it."""
    below = count_below(scores, low)
    return below, (scores.size if high == inf else count_below(scores, nextafter(high, inf))) - below


def _gathered(scores: Floats, low: float, high: float) -> tuple[int, Bits]:
    """Return how many scores lie below [low, high], and the keys of those in it."""
    ends = floats.least_from(low, scores.dtype), floats.largest_up_to(high, scores.dtype)
    keys = floats.order_keys(kernels().bracket(scores, *ends, keep=True).scores)
    # if the processor flushes subnormals to zero, only keys distinguish them
    exact = (keys >= np.uint64(floats.order_key(low))) & (keys <= np.uint64(floats.order_key(high)))
    return count_below(scores, low), keys[exact]


def _ends_around(classes: Sequence[Floats], low: float, high: float, share: float) -> tuple[float, float]:
    """Return a part of [low, high] that very likely holds the score at a share, guided by a sample."""
    sizes = [scores.size for scores in classes]
    if max(sizes) <= SMALL:
        return low, high
    part = min(max(sizes) ** (2 / 3), _LARGEST_SAMPLE) / max(sizes)
    taken = [scores[scattered_positions(scores.size, int(scores.size * part))] for scores in classes]
    sample = np.concatenate([floats.widened(one) for one in taken])
    sample = np.sort(sample[(sample >= low) & (sample <= high)])
    margin = _MARGIN * (sqrt(sample.size * share * (1.0 - share)) + 1.0)
    first, last = floor(sample.size * share - margin), ceil(sample.size * share + margin)
    least = float(sample[first]) if first >= 0 else low
    return least, float(sample[last]) if last < sample.size else high


class Bracket(NamedTuple):
    """A narrow range of scores that very likely holds the wanted rank, with the scores in it."""

    low: np.floating
    high: np.floating
    size: int
    found: Inside

    @classmethod
    def around(cls, scores: Floats, k: int) -> "Bracket":
        """Return the bracket around the k-th smallest score, guessed from a sample and filled in one pass."""
        # n^(2/3) balances the cost of the sample and of what falls into the bracket (Floyd and Rivest 1975)
        size = min(int(scores.size ** (2 / 3)), _LARGEST_SAMPLE)
        sample = scores[scattered_positions(scores.size, size)]
        share = k / scores.size
        margin = _MARGIN * (sqrt(size * share * (1.0 - share)) + 1.0)
        first, last = floor(size * share - margin), ceil(size * share + margin)
        sample.partition([max(first, 0), min(last, size - 1)])
        low = sample[first] if first >= 0 else scores.dtype.type(-np.inf)
        high = sample[last] if last < size else scores.dtype.type(np.inf)
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


def _select(scores: Floats, k: int) -> float:
    """Return the k-th smallest of scores without NaN, by np.partition if the bracket misses it."""
    found = Bracket.around(scores, k).kth_smallest(k) if scores.size > SMALL else None
    return float(np.partition(scores, k - 1)[k - 1]) if found is None else found


def unchecked(values: ArrayLike, name: str) -> Floats:
    """Return values as a one-dimensional array; a large one is not yet checked for NaN."""
    # large float32 arrays stay as they are: a wider copy would cost more than all the rest
    array: NDArray[Any] = as_array(values, name)
    if array.ndim == 1 and array.size > SMALL and array.dtype in (np.float64, np.float32):
        return array
    return as_scores(array, name)


class RankedInMemory(Ranked):
    """The scores of one class in memory, as `unchecked` gives them; ranks near `k` cost next to nothing."""

    def __init__(self, scores: Floats, name: str, k: int | None) -> None:
        self.size, self.scores = scores.size, scores
        self.ordered = floats.in_order(scores) if k is None or scores.size <= _SORTED else None
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
        """Return the k-th smallest score, from the bracket if possible; after many calls, all are sorted."""
        self._asked += 1
        if self._asked == _MANY and self.ordered is None:
            self.ordered = floats.in_order(self.scores)
        if self.ordered is not None:
            return float(self.ordered[k - 1])
        found = None if self._bracket is None else self._bracket.kth_smallest(k)
        return _select(self.scores, k) if found is None else found

    def count_below(self, threshold: float) -> int:
        # the bits distinguish numbers that the processor takes for zero
        if self.ordered is None or (not threshold and floats.flushes()):
            return count_below(self.scores, threshold)
        return int(self.ordered.searchsorted(threshold))

    def kth_between(self, other: Ranked, low: float, high: float, share: float) -> float:
        assert isinstance(other, RankedInMemory)
        if self.ordered is None or other.ordered is None or floats.flushes():
            return _select_between((self.scores, other.scores), low, high, share)
        both = self.ordered, other.ordered
        parts = [one[one.searchsorted(low) : one.searchsorted(high, "right")] for one in both]
        inside = np.concatenate(parts)
        k = max(1, ceil(share * inside.size))
        return float(np.partition(inside, k - 1)[k - 1])


def scattered_positions(size: int, points: int) -> NDArray[np.intp]:
    """Return `points` positions among `size`, spread evenly by steps of the golden ratio."""
    # no period in the scores keeps pace with them
    steps = np.arange(points) * _GOLDEN
    steps -= np.floor(steps)
    return (steps * size).astype(np.intp)


Pair = tuple[Scores, Scores]
# the most points of a class that an AUC is taken on, and a rough one
_POINTS: Final = 10_000
_FEW: Final = 1000
# of a thousand points each: more than six standard deviations above one half
_CLEARLY: Final = 0.6
# how often scores that are not upside down may be reported so
_LEVEL: Final = 0.01
# a class that breaks off has at least this many points, and this share of its points, next to its end
_EDGE: Final = 20
_EDGE_SHARE: Final = 0.05
# at least this many of the other class lie beyond these points, at most this share of it, and few in between
_OTHERS: Final = 20
_OTHERS_SHARE: Final = 0.25
_FALL: Final = 1.5
_BETWEEN: Final = 5
# how many points of a class are checked
_MOST: Final = 100_000


def rough_auc(normal: Floats, anomalous: Floats) -> float:
    """Return the AUC of up to a thousand points of each class, or of more if those are not conclusive."""
    few = (
        scores if scores.size <= _FEW else scores[scattered_positions(scores.size, _FEW)]
        for scores in (normal, anomalous)
    )
    found = auc(*few)
    return found if found > _CLEARLY else auc(normal, anomalous)


def auc(normal: Floats, anomalous: Floats) -> float:
    """Return the chance that an anomaly outscores a normal point, ties counting one half."""
    # both sorted: the search then walks through memory in order, four times as fast
    low, high = (np.sort(_spaced(one, _POINTS).astype(np.float64, copy=False)) for one in (normal, anomalous))
    below = np.searchsorted(low, high, side="left").sum(dtype=np.float64)
    not_above = np.searchsorted(low, high, side="right").sum(dtype=np.float64)
    return float((below + not_above) / (2.0 * low.size * high.size))


def spaced_positions(size: int, most: int = _POINTS) -> NDArray[np.intp]:
    """Return at most `most` evenly spaced positions among `size`, in rising order."""
    return np.arange(size, dtype=np.intp) if size <= most else np.linspace(0, size - 1, most).astype(np.intp)


def is_upside_down(a: float, *sizes: int) -> bool:
    """Return whether an AUC of classes of these sizes is significantly below one half, at 1 %: eq. (25)."""
    if a >= 0.5:
        return False
    divergence = log(2.0) + sum(share * log(share) for share in (a, 1.0 - a) if share > 0.0)
    # an AUC is taken on no more points than that; fewer than seven of a class are never enough
    return min(*sizes, _POINTS) * divergence >= -log(_LEVEL)


def warn_if_upside_down(area: float, *sizes: int) -> None:
    """Warn the caller outside this package if the AUC is significantly below one half."""
    if is_upside_down(area, *sizes):
        warn(
            f"anomalies score lower than normal points (AUC {area:.3f}); if the scores are upside down,"
            ' negate them or pass polarity="lower"',
            UpsideDownWarning,
        )


def breaks_off(scores: Floats, others: Floats, *, ordered: bool = False) -> tuple[int, float] | None:
    """Return how many others lie above the lowest score of a class that breaks off there, and that score."""
    # it does if few others lie among its lowest scores; the chance for a class that thins out: eq. (135)
    many = max(_EDGE, ceil(_EDGE_SHARE * scores.size))
    if scores.size < many or others.size < _OTHERS:
        return None
    low = scores[:many] if ordered else np.sort(np.partition(scores, many - 1)[:many])
    if ordered:
        above, beyond = (others.size - others.searchsorted(low[[0, -1]])).tolist()
    else:
        above, beyond = (int(np.count_nonzero(others >= end)) for end in (low[0], low[-1]))
    suspicious = (
        beyond >= _OTHERS
        and above <= _OTHERS_SHARE * others.size
        and beyond + _BETWEEN <= above <= _FALL * beyond
        # a class with a few values shared by many points ends abruptly anyway
        and 2 * np.unique(low).size >= many
    )
    return (above, float(low[0])) if suspicious else None


def warn_of_labels(normal: RankedInMemory, anomalous: RankedInMemory, *, draws: bool) -> None:
    """Warn the caller outside this package of scores upside down, or of a class chosen by its scores."""
    low, high = normal.ordered, anomalous.ordered
    if low is None or high is None:
        warn_if_upside_down(rough_auc(normal.scores, anomalous.scores), normal.size, anomalous.size)
        if draws:
            warn_if_selected(normal.scores, anomalous.scores)
        return
    # if anomalies win half of all pairs, there is nothing to check
    if low.searchsorted(high).sum() < 0.5 * low.size * high.size:
        warn_if_upside_down(auc(low, high), low.size, high.size)
    if draws:
        warn_if_selected(low, high, ordered=True)


def warn_if_selected(normal: Floats, anomalous: Floats, *, ordered: bool = False) -> None:
    """Warn the caller outside this package if the points of a class seem to have been chosen by score."""
    normal, anomalous = _spaced(normal, _MOST), _spaced(anomalous, _MOST)
    if (found := breaks_off(anomalous, normal, ordered=ordered)) is not None:
        _warn_of_end("anomaly scores below", found, f"{normal.size:,} normal points score higher", "FNR")
    # mirrored, so that sorted scores stay sorted
    if (found := breaks_off(-normal[::-1], -anomalous[::-1], ordered=ordered)) is not None:
        found = found[0], -found[1]
        _warn_of_end("normal point scores above", found, f"{anomalous.size:,} anomalies score lower", "FPR")


def _warn_of_end(name: str, found: tuple[int, float], others: str, rate: str) -> None:
    warn(
        f"no {name} {found[1]:.6g}, where the class breaks off, though {found[0]:,} of {others}; if points"
        f" were labelled because of their scores, such as reviewed alarms, the promise of the {rate} is void:"
        " label points at random",
        LabelWarning,
    )


def _spaced(scores: Floats, most: int) -> Floats:
    return scores if scores.size <= most else scores[spaced_positions(scores.size, most)]
