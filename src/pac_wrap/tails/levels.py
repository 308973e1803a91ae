"""Local deltas for choosing one of many ceilings or looks so that the choice fails with at most delta."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, inf, log, log10, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, gammaln

from pac_wrap.base.arguments import check_positive, check_rate
from pac_wrap.base.floats import ceiling_up
from pac_wrap.errors import InputError
from pac_wrap.tails import bounds
from pac_wrap.tails.bounds import beta_quantile

Rungs = NDArray[np.float64]
Bound = Callable[[Rungs], Any]

_DIGITS: Final = 8
_FIXED_DIGITS: Final = 4
# what rounding may add to the failure, relative: doubles are good to 1e-11 here
_ROUNDING: Final = 1e-9
# the failure is largest among the first or the last rungs: the level is sought there and certified on all
_ENDS: Final = 64
_BLOCK: Final = 1 << 18
# terms fall by a factor of e at least, nearly, from one rung to the next
_TERMS: Final = 256
_NEGLIGIBLE: Final = 1e-14
# from this many rungs on, ceilings are interpolated, to the last digits of a double
_MANY: Final = 1 << 12
_NODES: Final = 28
# beyond this many points, or this many fixed ceilings, the sums take too long
_MOST_POINTS: Final = 10**8
_MOST_CEILINGS: Final = 250
# how many terms are computed, over all sums together
_SUMMED: Final = 1 << 11
_FLAT: Final = 1e-12
# what rounding may add to the failure of fixed ceilings: tails are good to 1e-11 here, and few are added
_MARGIN: Final = 1e-10
_REST: Final = 1e-4
_ROUNDING_PER_POINT: Final = 1e-14
# up to these numbers the local delta takes less than a second, also when a certificate is only loaded
MOST_LOOKS: Final = 2_000
MOST_LABELS: Final = 20_000
# the rounding error of a sum of positive terms, each a product of at most MOST_LABELS factors: eq. (40)
_ROUNDING_OF_WALKS: Final = 1e-10
# counts that are not followed have at most this probability in all, by Bernstein's inequality
_NOT_FOLLOWED: Final = 1e-38
_LEAST: Final = 1e-80


@dataclass(frozen=True, slots=True)
class Ladder:
    """The possible error counts of n points (rungs), each with the ceiling that it certifies: eq. (27)."""

    n: int
    asked: float
    level: float
    highest: float

    @property
    def kept(self) -> int | None:
        """The error budget of the requested ceiling, or None if n points are too few for it."""
        return bounds.Budget.of(self.n, self.asked, self.level).errors

    @property
    def first(self) -> int:
        """The error count of the first rung."""
        return self.kept or 0

    @property
    def last(self) -> int:
        """The error count of the last rung; less than `first` if there is no rung."""
        found = bounds.Budget.of(self.n, self.highest, self.level).errors
        return -1 if found is None else found

    def ceiling(self, errors: int) -> float:
        """Return the ceiling of a rung."""
        if errors == self.kept:
            return self.asked
        rate = bounds.upper_bound(errors, self.n, self.level)
        return min(ceiling_up(rate), max(rate, self.highest))


@lru_cache(maxsize=64)
def local_level(n: int, asked: float, delta: float, highest: float) -> float:
    """Return the largest level, in 8 digits, whose chosen rung fails with at most delta: eq. (29)."""
    found = _largest(delta, _DIGITS, lambda level: failure(n, asked, level, highest, _ENDS))
    # once is the rule; the failure is not monotone in the level, as the first rung jumps
    while not failure(n, asked, found, highest) <= delta:
        found = _largest(0.999 * found, _DIGITS, lambda level: 0.0)
    return found


def _largest(delta: float, digits: int, failure: Callable[[float], float]) -> float:
    """Return by bisection a level of `digits` digits, at most delta, whose failure is at most delta; or 0."""
    exponent = floor(log10(delta)) + 1 - digits

    def level(mantissa: int) -> float:
        return float(f"{mantissa}e{exponent}")

    most = bisect_left(range(10**digits + 1), True, key=lambda one: level(one) > delta) - 1
    return level(bisect_left(range(1, most + 1), True, key=lambda one: not failure(level(one)) <= delta))


def failure(n: int, asked: float, level: float, highest: float, rungs: int | None = None) -> float:
    """Return the largest chance that the rung chosen on the other class's scores fails: eq. (28)."""
    ladder = Ladder(n, asked, level, highest)
    first, end = ladder.first, ladder.last + 1
    blocks = [(start, min(start + _BLOCK, end)) for start in range(first, end, _BLOCK)]
    if rungs is not None and 2 * rungs < end - first:
        blocks = [(first, first + rungs), (end - rungs, end)]
    # a NaN stays a NaN, and is at most no delta
    worst = float(np.max([_failure_at(ladder, *block) for block in blocks], initial=0.0))
    return worst * (1.0 + _ROUNDING)


def _failure_at(ladder: Ladder, start: int, stop: int) -> float:
    """Return the largest failure of the rungs from start to stop, chosen by the other class's scores."""
    n, level, last = ladder.n, ladder.level, ladder.last
    terms = _TERMS + 8 * ceil(-log(level))
    errors = np.arange(start, min(stop + terms, last + 1), dtype=np.float64)
    ceilings = _ceilings(start, start + errors.size, n, level)
    found = np.full(stop - start, level)
    if start == ladder.kept:
        ceilings[0], found[0] = ladder.asked, bounds.cdf(start, n, ladder.asked)
    # ln of (n over i) (1 - e_i)^(n - i)
    others = n - errors
    weights = gammaln(n + 1) - gammaln(errors + 1) - gammaln(others + 1) + others * np.log1p(-ceilings)
    logs = np.log(ceilings[: found.size])
    for distance in range(1, errors.size):
        size = min(found.size, errors.size - distance)
        far = slice(distance, distance + size)
        term = np.exp(weights[far] + errors[far] * logs[:size])
        found[:size] += term
        if term.max() < _NEGLIGIBLE * level:
            return float(found.max())
    # further terms were left out
    return float(found.max()) if start + errors.size > last else inf


@lru_cache(maxsize=64)
def fixed_level(n: int, ceilings: tuple[float, ...], delta: float) -> float:
    """Return the largest level, of four digits, at which a choice of ceilings fails with at most delta."""
    share = delta / len(ceilings)
    if n > _MOST_POINTS or not 1 < len(ceilings) <= _MOST_CEILINGS or delta < _MARGIN:
        return share
    return max(share, _largest(delta, _FIXED_DIGITS, lambda level: fixed_failure(n, ceilings, level)))


def fixed_failure(n: int, ceilings: tuple[float, ...], level: float) -> float:
    """Return an upper bound of the chance that the chosen one of fixed ceilings fails: eq. (15)."""
    # of the ceilings with the same budget, only the lowest can be chosen
    lowest: dict[int, float] = {}
    for ceiling in ceilings:
        if (budget := bounds.error_budget(n, ceiling, level)) is not None:
            lowest.setdefault(budget, ceiling)
    if not lowest:
        return 0.0
    rates, errors = np.array([*lowest.values()]), np.array([*lowest], dtype=np.float64)
    found, rest = _cdf(errors, n, rates), 0.0
    widest = np.maximum.accumulate(np.diff(errors)[::-1])[::-1]
    for distance in range(1, errors.size):
        size = errors.size - distance
        found[:size] += _reached(n, rates, errors, distance)
        # a bound of all further terms: few points between the two ceilings, and many below the first
        few = _cdf(widest[distance:] - 1.0, n, rates[distance + 1 :] - rates[: size - 1])
        many = 1.0 - _cdf(errors[distance:-1], n, rates[: size - 1])
        rest = float(np.minimum(few, many).max(initial=0.0))
        if rest < _REST * level:
            break
    return (float(found.max()) + rest) * (1.0 + _ROUNDING + _ROUNDING_PER_POINT * n) + _MARGIN


def _reached(n: int, rates: Rungs, errors: Rungs, distance: int) -> Rungs:
    """Return an upper bound of G in eq. (15) for every pair of ceilings that are `distance` places apart."""
    # terms are log-concave in the count below the first ceiling: those between two lie below both tangents
    low, high = rates[:-distance], rates[distance:]
    before, most = errors[distance - 1 : -1], errors[distance:]
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
    """Return the first terms of 1 + x + x^2 + ..., summed, for x = exp(slope)."""
    flat = np.abs(slopes) < _FLAT
    return np.where(flat, terms * np.exp(_FLAT * terms), np.expm1(terms * slopes) / np.expm1(slopes))


def _cdf(errors: Rungs, n: Any, rates: Rungs) -> Rungs:
    """Return F(errors; n, rate) elementwise, for errors below n."""
    return np.asarray(betaincc(errors + 1.0, n - errors, rates))


def _ceilings(start: int, stop: int, n: int, level: float) -> Rungs:
    """Return U(i, n, level) for a range of errors i; above n / 2, computed from the points without error."""
    half = min(max(start, n // 2), stop)
    low = _pieces(start, half, lambda errors: beta_quantile(errors + 1.0, n - errors, level, above=True), n)
    first, end = n - stop + 1, n - half + 1
    high = _pieces(first, end, lambda others: beta_quantile(others, n - others + 1.0, level, above=False), n)
    return np.concatenate((low, 1.0 - high[::-1]))


def _pieces(start: int, stop: int, bound: Bound, n: int) -> Rungs:
    """Return the bound of each count in a range; many counts are interpolated piece by piece."""
    pieces = []
    while start < stop:
        end = min(stop, max(4 * start, start + _MANY))
        counts = np.arange(start, end, dtype=np.float64)
        pieces.append(_interpolated(counts, bound, n) if end - start > _MANY else bound(counts))
        start = end
    return np.concatenate(pieces) if pieces else np.zeros(0)


def _interpolated(counts: Rungs, bound: Bound, n: int) -> Rungs:
    """Return the bounds interpolated: (n U - i) / sqrt(i) is smooth in sqrt(i) within a factor of 4."""
    from numpy.polynomial import chebyshev  # imported late, since it is rarely needed

    roots = np.sqrt(counts)
    low, high = roots[0], roots[-1]
    places = chebyshev.chebpts1(_NODES + 1)
    at = ((high - low) * places + high + low) ** 2 / 4.0
    excess = (n * bound(at) - at) / np.sqrt(at)
    coefficients = chebyshev.chebvander(places, _NODES).T @ excess * (2.0 / places.size)
    coefficients[0] /= 2.0
    found = chebyshev.chebval((2.0 * roots - high - low) / (high - low), coefficients)
    return np.asarray((counts + roots * found) / n)


def looks_of(every: int, up_to: int) -> range:
    """Return the number of labels of a class at each look, after checking the arguments."""
    every, up_to = check_positive("every", every), check_positive("up_to", up_to)
    if up_to > MOST_LABELS:
        raise InputError(f"up_to must be at most {MOST_LABELS:,} labels of a class, got {up_to:,}")
    if every > up_to:
        raise InputError(f"every must not exceed up_to, got {every:,} and {up_to:,}; lower every")
    if up_to // every > MOST_LOOKS:
        raise InputError(
            f"every = {every:,} up to {up_to:,} makes {up_to // every:,} looks; at most {MOST_LOOKS:,} are"
            f" possible, so look every {-(-up_to // MOST_LOOKS):,} labels or less often"
        )
    return range(every, up_to + 1, every)


def look_budgets(rate: float, local: float, looks: Sequence[int]) -> list[int]:
    """Return the error budget of every look at one local delta, -1 for a look without a budget: eq. (38)."""
    return [_budget(n, rate, local) for n in looks]


def first_success(rate: float, looks: Sequence[int], budgets: Sequence[int]) -> Rungs:
    """Return for each look the chance that it is the first within its budget (-1: no budget): eq. (40)."""
    # budgets never fall from one look to the next
    found = np.zeros(len(looks))
    steps: dict[int, tuple[int, Rungs]] = {}
    alive, low, at, last = np.ones(1), 0, 0, -1
    for j, (n, budget) in enumerate(zip(looks, budgets, strict=True)):
        if budget == last:  # errors never become fewer, so the same budget brings no new success
            continue
        if n - at not in steps:
            steps[n - at] = _binomial(n - at, rate)
        offset, step = steps[n - at]
        alive, low, at, last = np.convolve(alive, step), low + offset, n, budget
        within = max(budget - low + 1, 0)
        found[j] = alive[:within].sum()
        # counts above the last budget never return, and extremely unlikely counts are not followed
        end = min(budgets[-1], int(n * rate + 14.0 * sqrt(n * rate * (1.0 - rate)) + 100.0)) - low + 1
        alive, low = alive[within : max(end, within)], low + within
        if not alive.size:
            break
    return found


@lru_cache(maxsize=256)
def local_delta(rate: float, delta: float, every: int, up_to: int) -> float:
    """Return the largest local delta, in 8 digits, with which all looks fail with at most delta: eq. (41)."""
    rate, delta = check_rate("rate", rate), check_rate("delta", delta)
    looks = looks_of(every, up_to)
    # Bonferroni's share is always small enough, and a single look takes all of delta
    low, high = bounds.place_among(delta / len(looks), _DIGITS), bounds.place_among(delta, _DIGITS)
    least, most = (look_budgets(rate, bounds.number_at(place, _DIGITS), looks) for place in (low, high))
    if len(looks) == 1 or _covered(rate, delta, looks, most):
        return bounds.number_at(high, _DIGITS)
    while high - low > 1:
        middle = (low + high) // 2
        local = bounds.number_at(middle, _DIGITS)
        found = [a if a == b else _budget(n, rate, local) for n, a, b in zip(looks, least, most, strict=True)]
        if found == least or (found != most and _covered(rate, delta, looks, found)):
            low, least = middle, found
        else:
            high, most = middle, found
    return bounds.number_at(low, _DIGITS)


def _covered(rate: float, delta: float, looks: Sequence[int], budgets: Sequence[int]) -> bool:
    """Return whether any look is within its budget with probability at most delta, rounding included."""
    ever = float(first_success(rate, looks, budgets).sum())
    return ever * (1.0 + _ROUNDING_OF_WALKS) + _NOT_FOLLOWED <= delta


def _budget(n: int, rate: float, local: float) -> int:
    errors = bounds.most_errors(n, rate, local)
    return -1 if errors is None else errors


def _binomial(n: int, rate: float) -> tuple[int, Rungs]:
    """Return the smallest count of noticeable probability, and the chances of it and of the next counts."""
    # each chance is a product of ratios, started at the most probable count, so that no term loses digits
    mode = min(int((n + 1) * rate), n)
    odds = rate / (1.0 - rate)
    up, down = np.arange(mode, n, dtype=float), np.arange(mode, 0, -1, dtype=float)
    above = np.cumprod((n - up) / (up + 1.0) * odds)
    below = np.cumprod(down / ((n - down + 1.0) * odds))
    above, below = above[above > _LEAST], below[below > _LEAST]
    chances = np.concatenate((below[::-1], [1.0], above))
    return mode - below.size, chances / chances.sum()
