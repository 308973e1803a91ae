"""The ladder of ceilings that one threshold is tried at, and the level at which delta covers them all."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, inf, log, log10
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, gammaln

from pac_wrap.method.binomial import cdf
from pac_wrap.method.bounds import upper_bound
from pac_wrap.method.promise import Budget

Rungs = NDArray[np.float64]
Bound = Callable[[Rungs], Any]

_DIGITS: Final = 8
# what rounding may add to the failure, relative: doubles are good to 1e-11 here
_ROUNDING: Final = 1e-9
# the largest failure lies among the first rungs or the last, so the level is sought there, certified on all
_ENDS: Final = 64
_BLOCK: Final = 1 << 18
# terms fall by a factor of e at least, nearly, from one rung to the next
_TERMS: Final = 256
_NEGLIGIBLE: Final = 1e-14
# from so many rungs on ceilings are interpolated, to the last digits of a double
_MANY: Final = 1 << 12
_NODES: Final = 28


@dataclass(frozen=True, slots=True)
class Ladder:
    """The errors that n points may show, each with the ceiling that so many certify: eq. (27).

    Parameters
    ----------
    n : int
        How many labelled points there are.
    asked : float
        The ceiling that was asked for: that of the first rung, where n points can keep it.
    level : float
        The local level: each rung by itself fails with no more than this chance.
    highest : float
        No rung has a higher ceiling.

    Examples
    --------
    >>> ladder = Ladder(865, 0.05, local_level(865, 0.05, 0.05, 0.5), 0.5)
    >>> ladder.first, ladder.ceiling(ladder.first), round(ladder.ceiling(ladder.first + 1), 4)
    (31, 0.05, 0.0501)
    """

    n: int
    asked: float
    level: float
    highest: float

    @property
    def kept(self) -> int | None:
        """The error budget of the ceiling that was asked for, or None where n points are too few for it."""
        return Budget.of(self.n, self.asked, self.level).errors

    @property
    def first(self) -> int:
        """The errors of the first rung."""
        return self.kept or 0

    @property
    def last(self) -> int:
        """The errors of the last rung; less than `first` where there is none."""
        found = Budget.of(self.n, self.highest, self.level).errors
        return -1 if found is None else found

    def ceiling(self, errors: int) -> float:
        """Return the ceiling of a rung."""
        if errors == self.kept:
            return self.asked
        return upper_bound(errors, self.n, self.level)


@lru_cache(maxsize=64)
def local_level(n: int, asked: float, delta: float, highest: float) -> float:
    """Return the largest level, in 8 digits, at which the chosen rung fails with a chance of at most delta.

    It is sought on the first and last rungs, where the failure is largest, and certified on all: eq. (29).

    >>> [round(local_level(n, 0.05, 0.05, 0.5), 4) for n in (170, 865, 2000)]
    [0.0328, 0.0409, 0.0439]
    """
    exponent = floor(log10(delta)) + 1 - _DIGITS

    def level(mantissa: int) -> float:
        return float(f"{mantissa}e{exponent}")

    most = bisect_left(range(10**_DIGITS + 1), True, key=lambda one: level(one) > delta) - 1
    found = bisect_left(
        range(1, most + 1), True, key=lambda one: not failure(n, asked, level(one), highest, _ENDS) <= delta
    )
    # once is the rule; the failure is not monotone in the level, as the first rung jumps
    while not failure(n, asked, level(found), highest) <= delta:
        found -= ceil(found / 1000)
    return level(found)


def failure(n: int, asked: float, level: float, highest: float, rungs: int | None = None) -> float:
    """Return the largest chance that the rung chosen on the other class's scores fails: eq. (28).

    With `rungs`, only so many of the first are looked at, and so many of the last.

    >>> round(failure(865, 0.05, 0.0409, 0.5), 5)
    0.04998
    """
    ladder = Ladder(n, asked, level, highest)
    first, end = ladder.first, ladder.last + 1
    # each block has the last rung of the one before
    blocks = [(max(first, start - 1), min(start + _BLOCK, end)) for start in range(first, end, _BLOCK)]
    if rungs is not None and 2 * rungs < end - first:
        blocks = [(first, first + rungs), (end - rungs, end)]
    # what is no number stays none, and is at most no delta
    worst = float(np.max([_failure_at(ladder, *block) for block in blocks], initial=0.0))
    return worst * (1.0 + _ROUNDING)


def _failure_at(ladder: Ladder, start: int, stop: int) -> float:
    """Return the failure where the other class's threshold leaves the ceiling of one of some rungs."""
    n, level, last = ladder.n, ladder.level, ladder.last
    terms = _TERMS + 8 * ceil(-log(level))
    errors = np.arange(start, min(stop + terms, last + 1), dtype=np.float64)
    ceilings = _ceilings(start, start + errors.size, n, level)
    found = np.full(stop - start, level)
    if start == ladder.kept:
        ceilings[0], found[0] = ladder.asked, cdf(start, n, ladder.asked)
    # ln of (n over i) (1 - e_i)^(n - i)
    weights = (
        gammaln(n + 1) - gammaln(errors + 1) - gammaln(n - errors + 1) + (n - errors) * np.log1p(-ceilings)
    )
    logs = np.log(ceilings[: found.size])
    # beyond the mode both parts are convex between two ceilings, so the ends suffice; else a term is added
    inside = slice(1, found.size)
    convex = (ceilings * (n - 1) >= errors)[: found.size - 1]
    found[inside] += np.where(convex, 0.0, np.exp(weights[inside] + errors[inside] * logs[inside]))
    for distance in range(1, errors.size):
        size = min(found.size, errors.size - distance)
        far = slice(distance, distance + size)
        term = np.exp(weights[far] + errors[far] * logs[:size])
        found[:size] += term
        if term.max() < _NEGLIGIBLE * level:
            return float(found.max())
    # terms beyond those were left out
    return float(found.max()) if start + errors.size > last else inf


def _ceilings(start: int, stop: int, n: int, level: float) -> Rungs:
    """Return U(i, n, level) for a range of errors i; beyond the half, by the points that are no errors."""
    half = min(max(start, n // 2), stop)
    low = _pieces(start, half, lambda errors: betainccinv(errors + 1.0, n - errors, level), n)
    high = _pieces(n - stop + 1, n - half + 1, lambda others: betaincinv(others, n - others + 1.0, level), n)
    return np.concatenate((low, 1.0 - high[::-1]))


def _pieces(start: int, stop: int, bound: Bound, n: int) -> Rungs:
    """Return the bound of each count in a range; where they are many, interpolated piece by piece."""
    pieces = []
    while start < stop:
        end = min(stop, max(4 * start, start + _MANY))
        counts = np.arange(start, end, dtype=np.float64)
        pieces.append(_interpolated(counts, bound, n) if end - start > _MANY else bound(counts))
        start = end
    return np.concatenate(pieces) if pieces else np.zeros(0)


def _interpolated(counts: Rungs, bound: Bound, n: int) -> Rungs:
    """Return the same; (n U - i) / sqrt(i) is smooth in sqrt(i), with no singularity within a factor of 4."""
    from numpy.polynomial import chebyshev  # here, since few need it

    roots = np.sqrt(counts)
    low, high = roots[0], roots[-1]
    places = chebyshev.chebpts1(_NODES + 1)
    at = ((high - low) * places + high + low) ** 2 / 4.0
    excess = (n * bound(at) - at) / np.sqrt(at)
    coefficients = chebyshev.chebvander(places, _NODES).T @ excess * (2.0 / places.size)
    coefficients[0] /= 2.0
    found = chebyshev.chebval((2.0 * roots - high - low) / (high - low), coefficients)
    return np.asarray((counts + roots * found) / n)
