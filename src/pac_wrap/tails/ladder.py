"""Levels at which the one chosen among many ceilings fails: the ladder, and fixed ones."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, inf, log, log10
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, gammaln

from pac_wrap.base.floats import ceiling_up
from pac_wrap.tails.bounds import Budget, beta_quantile, cdf, error_budget, upper_bound

Rungs = NDArray[np.float64]
Bound = Callable[[Rungs], Any]

_DIGITS: Final = 8
_FIXED_DIGITS: Final = 4
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
# of ceilings that are fixed: beyond so many points, or so many of them, the sums take too long
_MOST_POINTS: Final = 10**8
_MOST_CEILINGS: Final = 250
# terms that are computed of all sums together
_SUMMED: Final = 1 << 11
_FLAT: Final = 1e-12
# what rounding may add to their failure: tails are good to 1e-11 here, and few are added
_MARGIN: Final = 1e-10
_REST: Final = 1e-4
_ROUNDING_PER_POINT: Final = 1e-14


@dataclass(frozen=True, slots=True)
class Ladder:
    """The errors that n points may show, each with the ceiling that so many certify: eq. (27).

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
        rate = upper_bound(errors, self.n, self.level)
        return min(ceiling_up(rate), max(rate, self.highest))


@lru_cache(maxsize=64)
def local_level(n: int, asked: float, delta: float, highest: float) -> float:
    """Return the largest level, in 8 digits, at which the chosen rung fails with a chance of at most delta.

    It is sought on the first and last rungs, where the failure is largest, and certified on all: eq. (29).

    >>> [round(local_level(n, 0.05, 0.05, 0.5), 4) for n in (170, 865, 2000)]
    [0.0328, 0.0409, 0.0439]
    """
    found = _largest(delta, _DIGITS, lambda level: failure(n, asked, level, highest, _ENDS))
    # once is the rule; the failure is not monotone in the level, as the first rung jumps
    while not failure(n, asked, found, highest) <= delta:
        found = _largest(0.999 * found, _DIGITS, lambda level: 0.0)
    return found


def _largest(delta: float, digits: int, failure: Callable[[float], float]) -> float:
    """Return a level of so many digits, up to delta, whose failure is at most delta, by bisection; or 0."""
    exponent = floor(log10(delta)) + 1 - digits

    def level(mantissa: int) -> float:
        return float(f"{mantissa}e{exponent}")

    most = bisect_left(range(10**digits + 1), True, key=lambda one: level(one) > delta) - 1
    return level(bisect_left(range(1, most + 1), True, key=lambda one: not failure(level(one)) <= delta))


def failure(n: int, asked: float, level: float, highest: float, rungs: int | None = None) -> float:
    """Return the largest chance that the rung chosen on the other class's scores fails: eq. (28).

    With `rungs`, only so many of the first are looked at, and so many of the last.

    >>> round(failure(865, 0.05, 0.0409, 0.5), 5)
    0.04998
    """
    ladder = Ladder(n, asked, level, highest)
    first, end = ladder.first, ladder.last + 1
    blocks = [(start, min(start + _BLOCK, end)) for start in range(first, end, _BLOCK)]
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
    for distance in range(1, errors.size):
        size = min(found.size, errors.size - distance)
        far = slice(distance, distance + size)
        term = np.exp(weights[far] + errors[far] * logs[:size])
        found[:size] += term
        if term.max() < _NEGLIGIBLE * level:
            return float(found.max())
    # terms beyond those were left out
    return float(found.max()) if start + errors.size > last else inf


@lru_cache(maxsize=64)
def fixed_level(n: int, ceilings: tuple[float, ...], delta: float) -> float:
    """Return the level at which the one chosen among fixed ceilings fails with a chance of at most delta.

    It is the largest of four digits that bisection finds, eq. (15), or the equal share of delta.

    >>> tenths = tuple(round(0.05 + 0.1 * number, 12) for number in range(10))
    >>> [fixed_level(n, tenths, 0.05) for n in (170, 865)]
    [0.03682, 0.03133]
    """
    share = delta / len(ceilings)
    if n > _MOST_POINTS or not 1 < len(ceilings) <= _MOST_CEILINGS or delta < _MARGIN:
        return share
    return max(share, _largest(delta, _FIXED_DIGITS, lambda level: fixed_failure(n, ceilings, level)))


def fixed_failure(n: int, ceilings: tuple[float, ...], level: float) -> float:
    """Return an upper bound of the largest chance that the one chosen among fixed ceilings fails: eq. (15).

    Where not too many counts matter it is that chance, up to a margin for rounding.
    """
    rates, errors = _distinct(n, ceilings, level)
    if not errors.size:
        return 0.0
    found, rest = _cdf(errors, n, rates), 0.0
    widest = np.maximum.accumulate(np.diff(errors)[::-1])[::-1]
    for distance in range(1, errors.size):
        size = errors.size - distance
        found[:size] += _reached(n, rates, errors, distance)
        # further still: few points between the two ceilings, and many below the first
        few = _cdf(widest[distance:] - 1.0, n, rates[distance + 1 :] - rates[: size - 1])
        many = 1.0 - _cdf(errors[distance:-1], n, rates[: size - 1])
        rest = float(np.minimum(few, many).max(initial=0.0))
        if rest < _REST * level:
            break
    return (float(found.max()) + rest) * (1.0 + _ROUNDING + _ROUNDING_PER_POINT * n) + _MARGIN


def _distinct(n: int, ceilings: tuple[float, ...], level: float) -> tuple[Rungs, Rungs]:
    """Return the ceilings that can be chosen, the lowest of each budget, and their budgets."""
    lowest: dict[int, float] = {}
    for ceiling in ceilings:
        errors = error_budget(n, ceiling, level)
        if errors is not None:
            lowest.setdefault(errors, ceiling)
    return np.array([*lowest.values()], dtype=np.float64), np.array([*lowest], dtype=np.float64)


def _reached(n: int, rates: Rungs, errors: Rungs, distance: int) -> Rungs:
    """Return an upper bound of G in eq. (15) for every pair of ceilings so far apart.

    The terms are log-concave in the count below the first ceiling. Where they are many, some are computed,
    and those between two of them lie below the tangents of both.
    """
    low, high, before, most = (
        rates[:-distance],
        rates[distance:],
        errors[distance - 1 : -1],
        errors[distance:],
    )
    between = (high - low) / (1.0 - low)
    mean = (n - before) * between
    # beyond these counts terms hardly matter: too many points between the two ceilings, or below the first
    crowded = (most - before - mean + 9.0 * np.sqrt(mean)) / (1.0 - between) + 1.0
    unlikely = n * low + 9.0 * np.sqrt(n * low) + 9.0 - before
    length = np.clip(np.floor(np.minimum(crowded, unlikely)), 1.0, most - before) - 1.0
    parts = int(min(length.max(), _SUMMED // low.size)) or 1
    counts = before + 1.0 + np.floor(np.arange(parts + 1)[:, None] * length / parts)
    chances = _cdf(most - counts, n - counts, between)
    terms = chances * np.exp(
        gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
        + counts * np.log(low) + (n - counts) * np.log1p(-low)
    )  # fmt: skip
    with np.errstate(all="ignore"):  # far out, terms may vanish; then the left tangent stands alone
        earlier = _cdf(most - counts + 1.0, n - counts + 1.0, between)
        slopes = np.log(chances / earlier * (n - counts + 1.0) / counts * low / (1.0 - low))
        steps = np.diff(counts, axis=0)
        half = np.ceil(steps / 2.0)
        left = terms[:-1] * _geometric(slopes[:-1], half)
        right = terms[1:] * np.exp(-slopes[1:]) * _geometric(-slopes[1:], steps - half)
        inner = np.fmin(left + right, terms[:-1] * _geometric(slopes[:-1], steps))
        last = terms[-1] * _geometric(slopes[-1], most - counts[-1] + 1.0)
    return np.asarray(
        np.where(terms[:-1] > 0.0, inner, 0.0).sum(axis=0) + np.where(terms[-1] > 0.0, last, 0.0)
    )


def _geometric(slopes: Rungs, terms: Rungs) -> Rungs:
    """Return 1 + x + x^2 + ..., so many terms, for x = exp(slope)."""
    flat = np.abs(slopes) < _FLAT
    return np.where(flat, terms * np.exp(_FLAT * terms), np.expm1(terms * slopes) / np.expm1(slopes))


def _cdf(errors: Rungs, n: Any, rates: Rungs) -> Rungs:
    """Return F(errors; n, rate) for many, errors being below n."""
    return np.asarray(betaincc(errors + 1.0, n - errors, rates))


def _ceilings(start: int, stop: int, n: int, level: float) -> Rungs:
    """Return U(i, n, level) for a range of errors i; beyond the half, by the points that are no errors."""
    half = min(max(start, n // 2), stop)
    low = _pieces(start, half, lambda errors: beta_quantile(errors + 1.0, n - errors, level, above=True), n)
    first, end = n - stop + 1, n - half + 1
    high = _pieces(first, end, lambda others: beta_quantile(others, n - others + 1.0, level, above=False), n)
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
