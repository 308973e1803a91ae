"""Bounds of an error rate that hold at every threshold at once: the band of equal local levels."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import lru_cache
from math import exp, floor, log, log10
from typing import Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import check_count, check_delta, check_top
from pac_wrap.errors import InputError
from pac_wrap.method.curves.crossing import keeping
from pac_wrap.tails.bounds import beta_quantile

Counts = NDArray[np.int64]
Rates = NDArray[np.float64]
_Number = TypeVar("_Number", bound=np.generic)

# steps between the ranks that a band is anchored at: a 50th of the rank, and at most a 500th of n: eq. (37)
_OF_RANK: Final = 50
_OF_ALL: Final = 500
MOST_POINTS: Final = 10**8
# a level is rounded down to so many digits, so that every machine has the same
_DIGITS: Final = 8
# a secant errs by less than the product of its last two moves, about; and what is as good as no move
_NEAR: Final = 1e-9
_EXACT: Final = 1e-11
_UPWARDS: Final = Context(prec=12, rounding=ROUND_CEILING)
_RAISED: Final = 1.0 + 1e-12
# where the search for a level begins: delta / level at delta = .05 by log10 n, and its change with ln delta
_ABOUT: Final = (
    (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0),
    (1.0, 6.3, 20.3, 38.0, 45.5, 54.1, 63.4, 74.2),
)
_WITH_DELTA: Final = (
    (-9.2, -6.9, -4.6, -3.7, -3.0, -2.3, -1.4, -0.7),
    (0.69, 0.51, 0.26, 0.13, 0.0, -0.16, -0.48, -0.9),
)
# about how many percent the chance of failure grows with one percent of level
_SLOPE: Final = 0.88


@dataclass(frozen=True, slots=True)
class Band:
    """Upper bounds of a rate for every count of errors among n points, all of which hold at once: eq. (30).

    Only `ranks` have a bound of their own. Any other count takes that of the next larger rank; above the last
    the bound is 1: eq. (36). With a top the ranks end before their bounds exceed it: eq. (120).
    """

    n: int
    delta: float
    level: float
    ranks: Counts
    bounds: Rates

    def anchors(self, counts: ArrayLike) -> Counts:
        """Return the position of the rank whose bound each count takes; one beyond the last has none."""
        return np.searchsorted(self.ranks, np.asarray(counts)).astype(np.int64)

    def of(self, counts: ArrayLike) -> Rates:
        """Return the bound of each count."""
        bounds: Rates = np.append(self.bounds, 1.0)[self.anchors(counts)]
        return bounds


def anchor_ranks(n: int) -> Counts:
    """Return the counts that a band of n points is anchored at, all of them if n < 1,000: eq. (37)."""
    ranks, rank = [], 0
    while rank < n:
        ranks.append(rank)
        rank += max(1, min(rank // _OF_RANK, n // _OF_ALL))
    return np.array(ranks, dtype=np.int64)


def failure(n: int, bounds: ArrayLike, ranks: Counts) -> float:
    """Return how likely some rate exceeds the bound of its rank, never less than it is: eq. (35)."""
    return keeping(n, bounds, at_least=ranks + 1).failure


@lru_cache(maxsize=256)
def band_of(n: int, delta: float, top: float | None = None) -> Band:
    """Return the band of n points that fails with probability delta: eq. (36), and eq. (120) with a top.

    Its local level is the largest of 8 digits for which that is proved, within 1e-6 of the exact one.
    """
    n, delta, top = check_count("n", n), check_delta("delta", delta), check_top("top", top)
    if n > MOST_POINTS:
        raise InputError(f"a band is made of at most {MOST_POINTS:,} scores of a class, got {n:,}")
    ranks = anchor_ranks(n)
    whole = _anchored(n, delta, ranks.size)
    if top is None:
        return whole

    def within(bounds: Rates) -> int:
        return int(np.searchsorted(bounds, top, side="right"))

    # more ranks have a lower level, and so higher bounds: that of all ranks is the lowest
    low = within(whole.bounds)
    high = within(_bounds(n, ranks, _anchored(n, delta, low).level)[0])
    while low < high:
        middle = (low + high + 1) // 2
        if within(_anchored(n, delta, middle).bounds) == middle:
            low = middle
        else:
            high = middle - 1
    return _anchored(n, delta, low)


@lru_cache(maxsize=256)
def _anchored(n: int, delta: float, count: int) -> Band:
    """Return the band of n points that is anchored at the first so many ranks."""
    ranks = anchor_ranks(n)[:count]
    if not ranks.size:
        return Band(n, delta, delta, ranks, np.zeros(0))

    def excess(level: float) -> float:
        return log(failure(n, *_bounds(n, ranks, level)) / delta)

    level = _floored(_solved(excess, delta / _about(n, delta)))
    while excess(level) > 0.0:
        level = _floored(level, 1)
    bounds, ranks = _bounds(n, ranks, level)
    # raised a little, which only makes them safer, so that every machine has the same
    rates = [float(_UPWARDS.create_decimal_from_float(rate * _RAISED)) for rate in bounds.tolist()]
    below = int(np.searchsorted(rates, 1.0))
    return Band(n, delta, level, _frozen(ranks[:below]), _frozen(np.array(rates[:below])))


def _bounds(n: int, ranks: Counts, level: float) -> tuple[Rates, Counts]:
    """Return upper(rank, n, level) of eq. (5), and the ranks for which it is below 1."""
    rates = beta_quantile(ranks + 1.0, n - ranks, level, above=True)
    below = (rates > 0.0) & (rates < 1.0)
    return rates[below], ranks[below]


def _frozen(array: NDArray[_Number]) -> NDArray[_Number]:
    array.flags.writeable = False
    return array


def _about(n: int, delta: float) -> float:
    with_n = float(np.interp(log10(n), *_ABOUT))
    return max(1.0, with_n * exp(float(np.interp(log(delta), *_WITH_DELTA))))


def _solved(excess: Callable[[float], float], guess: float) -> float:
    """Return the level at which the excess, which rises nearly as its logarithm, is 0: by secants."""
    last, value = log(guess), excess(guess)
    move, slope = -value / _SLOPE, _SLOPE
    while abs(move) > _EXACT:
        here = last + move
        new = excess(exp(here))
        slope = (new - value) / move or slope
        near = abs(new / slope * move) < _NEAR
        last, value, move = here, new, -new / slope
        if near:
            break
    return exp(last + move)


def _floored(level: float, units: int = 0) -> float:
    """Return a level rounded down to its first digits, less so many units of the last."""
    exponent = floor(log10(level)) - _DIGITS + 1
    mantissa = level / 10.0**exponent
    # what was rounded before stays as it is
    whole = round(mantissa) if abs(mantissa - round(mantissa)) < 1e-6 else floor(mantissa)
    return float(f"{whole - units}e{exponent}")
