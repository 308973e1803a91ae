"""One class's part of a curve: the ranks that its band is anchored at, with their bounds and scores."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, isnan, nextafter
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import ScoreType, as_float, as_scores
from pac_wrap.base.floats import Bits, from_order_key, order_key, order_keys
from pac_wrap.base.foreign import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.consistency import digest_problems, version_problems
from pac_wrap.method.curves.band import band_of
from pac_wrap.method.promise import Budget
from pac_wrap.method.thresholds import LARGEST
from pac_wrap.ranks.memory import Ranked, kth_largest, kth_smallest
from pac_wrap.ranks.precision import represents
from pac_wrap.ranks.search import Rank

Rates = NDArray[np.float64]
# eight digits of a level are the same on every machine, but for the last
_CLOSE: Final = 1e-6
# thresholds at which no score is declared an anomaly, and every one
_NEVER: Final = np.uint64(order_key(inf))
_ALWAYS: Final = np.uint64(order_key(-inf))


@dataclass(frozen=True, slots=True)
class CurveSide:
    """The steps of one class: at most `ranks[j]` errors beyond `scores[j]`, and `bounds[j]` for their rate.

    Parameters
    ----------
    n : int
        How many calibration points there were.
    digest : str
        A digest of their scores, in any order.
    delta : float
        The chance that some bound does not hold.
    level : float
        The local level of the band: each bound is that of Clopper and Pearson at it, eq. (36).
    ranks : tuple of int
        The counts of errors that have a bound of their own.
    bounds : tuple of float
        Their bounds; above the last rank the bound is 1.
    scores : tuple of float
        The (rank + 1)-th largest normal score, or the (rank + 1)-th smallest anomalous one.
    top : float, optional
        The largest bound that was asked for: where a larger one would be needed, nothing is said.

    Examples
    --------
    >>> from pac_wrap import certify_curve
    >>> certify_curve([0.1, 0.2, 0.3], [0.9]).normal.scores
    (0.3, 0.2, 0.1)
    """

    n: int
    digest: str
    delta: float
    level: float
    ranks: tuple[int, ...]
    bounds: tuple[float, ...]
    scores: tuple[float, ...]
    top: float | None = field(default=None, metadata={"optional": True})

    @classmethod
    def of(cls, label: int, scores: Ranked, delta: float, top: float | None) -> "CurveSide":
        """Return the steps of one class, wherever its scores live."""
        band = band_of(scores.size, delta, top)
        ranks = band.ranks.tolist()
        find = kth_smallest if label else kth_largest
        found = tuple(find(scores, rank + 1) for rank in ranks)
        bounds = tuple(band.bounds.tolist())
        return cls(scores.size, scores.digest, delta, band.level, tuple(ranks), bounds, found, top)

    @property
    def rates(self) -> Rates:
        """The bounds, and 1 behind the last."""
        return np.array([*self.bounds, 1.0])

    def budget(self, bound: float) -> Budget | None:
        """Return the budget of a bound of this class, None for 1."""
        return None if bound >= 1.0 else Budget.of(self.n, bound, self.level)

    def score_at(self, errors: int | None) -> float:
        """Return the score beyond which at most so many points are errors."""
        return self.scores[bisect_left(self.ranks, errors or 0)]

    def score_within(self, ceiling: float) -> float | None:
        """Return the score beyond which the bound keeps a ceiling, the one with most errors; None if none."""
        place = bisect_right(self.bounds, ceiling)
        return self.scores[place - 1] if place else None

    def false_alarms(self, keys: Bits) -> Rates:
        """Return, for normal scores, the bound at each threshold: that of the first score below it."""
        scores = order_keys(np.array(self.scores[::-1]))
        rates = self.rates[scores.size - np.searchsorted(scores, keys)]
        return np.where(keys == _NEVER, 0.0, rates)

    def misses(self, keys: Bits) -> Rates:
        """Return, for anomalous scores, the bound at each threshold: that of the first score not below."""
        rates = self.rates[np.searchsorted(order_keys(np.array(self.scores)), keys)]
        return np.where(keys == _NEVER, 1.0, np.where(keys == _ALWAYS, 0.0, rates))


def problems(normal: CurveSide, anomalous: CurveSide, kind: ScoreType, version: str) -> Iterator[str]:
    """Yield what does not follow from the bands of so many points, or is not in order."""
    yield from version_problems(version)
    if not normal.n + anomalous.n:
        yield "there is no score in either class"
    for name, side in (("normal", normal), ("anomalous", anomalous)):
        yield from digest_problems(name, side.n, side.digest)
        band = band_of(side.n, side.delta, side.top)
        if side.ranks != tuple(band.ranks.tolist()) or not (
            len(side.bounds) == len(side.scores) == len(side.ranks)
        ):
            yield f"{side.n:,} points have other ranks than these {len(side.ranks):,}"
            return
        levels = np.array([side.level, *side.bounds]), np.array([band.level, *band.bounds])
        if not np.allclose(*levels, rtol=_CLOSE, atol=0.0):
            yield f"the level and the bounds are not those of {side.n:,} points at delta = {side.delta}"
        keys = [order_key(score) for score in side.scores]
        if any((a < b if name == "normal" else a > b) for a, b in pairwise(keys)):
            yield "the scores are not in the order of their ranks"
        if not all(represents(kind, score) for score in side.scores):
            yield f"some score is no {kind}"


def threshold_keys(thresholds: ArrayLike) -> Bits:
    """Return whole numbers that compare as thresholds do; one if a single threshold is given.

    >>> bool(threshold_keys(0.5) < threshold_keys([0.6]))
    True
    """
    if np.ndim(thresholds):
        return order_keys(as_scores(thresholds, "thresholds"))
    number = as_float(thresholds)
    if isnan(number):
        raise InputError(f"a threshold must be a number, got {quoted(thresholds)}")
    return np.array([order_key(number)], dtype=np.uint64)


def curve_ranks(
    sizes: tuple[int, int], deltas: tuple[float, float], tops: tuple[float | None, float | None]
) -> Iterator[Rank]:
    """Yield the ranks that a curve of so many normal and anomalous points is made of.

    >>> sorted(curve_ranks((2, 1), (0.05, 0.05), (None, None)))
    [Rank(label=0, k=1), Rank(label=0, k=2), Rank(label=1, k=1)]
    """
    bands = [band_of(n, delta, top) for n, delta, top in zip(sizes, deltas, tops, strict=True)]
    yield from (Rank(0, sizes[0] - rank) for rank in bands[0].ranks.tolist())
    yield from (Rank(1, rank + 1) for rank in bands[1].ranks.tolist())


def cells(scores: Iterable[float]) -> Rates:
    """Return a finite threshold from each range in which no bound changes: the middle where it has two ends.

    Between two neighbouring scores a < b that is the range (a, b].

    >>> cells([1.0, 3.0]).tolist()
    [1.0, 2.0, 3.0000000000000004]
    """
    ends = [from_order_key(key) for key in sorted({order_key(score) for score in scores})]
    if not ends:
        return np.zeros(1)
    # scores that are all inf are reached from the largest double on
    places = [
        min(ends[0], LARGEST),
        *(_between(low, high) for low, high in pairwise(ends)),
        nextafter(ends[-1], inf),
    ]
    return np.array([place for place in places if abs(place) < inf])


def _between(low: float, high: float) -> float:
    """Return a number above low, and not above high, in the middle if both are finite."""
    least = nextafter(low, inf)
    if high == inf:
        return least
    if low == -inf:
        return high
    return min(max(least, low / 2.0 + high / 2.0), high)


def best(kept: Rates, other: Rates, ceiling: float) -> int | None:
    """Return which pair of bounds keeps a ceiling with the least other bound; None if no one does.

    Of several the one whose kept bound is least; but if nothing is known of the other rate, the largest: the
    ceiling is then used as far as it goes.

    >>> best(np.array([0.3, 0.2, 0.1]), np.array([0.1, 0.4, 0.4]), 0.25)
    2
    """
    allowed = np.flatnonzero(kept <= ceiling)
    if not allowed.size:
        return None
    least = other[allowed].min()
    ties = allowed[other[allowed] == least]
    return int(ties[np.argmin(kept[ties] if least < 1.0 else -kept[ties])])
