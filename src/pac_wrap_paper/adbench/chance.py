"""How probable it is that a promise is broken on a table whose held-out rows are divided at random.

A division draws n calibration points of a class out of N without replacement and leaves m = N - n. Orient
the class so that an error is a score above the threshold. Whatever the scores are, only the order of the two
kinds of points counts; ties make a break less likely, never more. Theorem 28 proves all of it.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import floor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, gammaln
from scipy.stats import hypergeom

from pac_wrap import Guarantee, Raise, certify_curve
from pac_wrap.method.strategies.raising import staircase
from pac_wrap.tails import error_budget

LEVEL: Final = 0.05
ASKED: Final = Guarantee(LEVEL, LEVEL)
_ROUNDING: Final = 1e-12
Floats = NDArray[np.float64]
Limits = Mapping[int, int]
"""For a number of calibration errors, how many errors among all N points break no promise: eq. (93)."""


def allowed(ceiling: float, m: int) -> int:
    """Return the most errors among m points whose rate does not exceed the ceiling."""
    count = min(m, floor(ceiling * m) + 1)
    while count / m > ceiling:
        count -= 1
    return count


def of_all(ceilings: Mapping[int, float], total: int) -> Limits:
    """Return the limits that ceilings set where the rate is counted on all N points: eq. (93)."""
    return {errors: allowed(ceiling, total) for errors, ceiling in ceilings.items()}


def of_others(ceilings: Mapping[int, float], m: int) -> Limits:
    """Return the limits that ceilings set where the rate is counted on the m other points: eq. (93)."""
    return {errors: errors + allowed(ceiling, m) for errors, ceiling in ceilings.items()}


def fixed_chance(n: int, total: int, limits: Limits) -> float:
    """Return an upper bound of the chance of a break where the class does not choose the threshold: eq. (94).

    A rank that is fixed beforehand has one limit, and the chance is eq. (18) or eq. (20).
    """
    if not limits:
        return 0.0
    errors, erring = np.array(list(limits)), np.array(list(limits.values())) + 1
    possible = erring <= total
    chances = hypergeom.cdf(errors[possible], total, erring[possible], n)
    return float(np.max(chances, initial=0.0))


def given_chance(n: int, total: int, limits: Limits, beyond: Floats) -> Floats:
    """Return the exact chance of a break where the other class sets the threshold: eq. (94).

    The first argument counts the points of all N beyond it; each number of errors below n has a limit.
    """
    last = np.searchsorted(np.array([limits[errors] for errors in range(n)]), beyond) - 1
    return np.asarray(hypergeom.cdf(last, total, beyond, n), dtype=np.float64)


def crossing_chance(n: int, total: int, limits: Limits) -> float:
    """Return the chance that some threshold breaks its limit: eq. (96), by counting paths.

    A threshold that is chosen after looking breaks its own limit with at most this chance.
    """
    if not limits:
        return 0.0
    m, last = total - n, max(limits)
    paths, scale = np.ones(1), 0.0
    for k in range(last + 1):
        # the ways in which t others lie above the (k + 1)-th largest, and no limit before it is broken
        ways = np.cumsum(paths)
        ways = np.concatenate([ways, np.full(m + 1 - ways.size, ways[-1])])
        paths = ways[: max(0, limits[k] - k + 1)] if k in limits else ways
        if not paths.size:
            return 1.0
        scale += float(np.log(paths[-1]))
        paths = paths / paths[-1]
    # the points that follow the last may lie anywhere among the others that are left
    left, following = m - np.arange(paths.size), n - last - 1
    with np.errstate(divide="ignore"):  # a number of ways too small for a double
        kept = np.log(paths) + scale + _log_ways(left, following) - _log_ways(m, n)
    return float(np.clip(1.0 - np.exp(kept).sum(), 0.0, 1.0))


def ladder_chance(n: int, total: int, limits: Limits) -> float:
    """Return an upper bound of the chance of a break at the accepted rung: eq. (95).

    The other class decides which rung is accepted, at worst by lying between two points.
    """
    rungs = np.array(sorted(limits), dtype=np.int64)
    erring = np.array([limits[rung] + 1 for rung in rungs.tolist()], dtype=np.int64)
    rungs, erring = rungs[erring <= total], erring[erring <= total]
    reached = hypergeom.cdf(rungs, total, erring, n)
    worst = 0.0
    for place, marked in enumerate(erring):
        later, beyond = rungs[place + 1 :], erring[place + 1 :]
        possible = (later <= marked) & (n - later <= total - beyond)
        later, beyond = later[possible], beyond[possible]
        terms = _log_ways(marked - later, later) + _log_ways(total - beyond - n + later, n - later)
        worst = max(worst, float(reached[place] + np.exp(terms - _log_ways(total - n, n)).sum()))
    return min(1.0, worst)


def _log_ways(m: ArrayLike, n: ArrayLike) -> Floats:
    """Return the logarithm of the ways to order m points of one kind and n of another."""
    one, other = np.asarray(m, dtype=np.float64), np.asarray(n, dtype=np.float64)
    return np.asarray(gammaln(one + other + 1.0) - gammaln(one + 1.0) - gammaln(other + 1.0))


class Chance(NamedTuple):
    """Upper bounds of the chance that a rate breaks: on the other points, None if unknown, and on all."""

    rest: float | None
    whole: float


@lru_cache(maxsize=256)
def chances(
    n: tuple[int, int], m: tuple[int, int], asked: Guarantee = ASKED
) -> dict[str, tuple[Chance, Chance]]:
    """Return for our methods the largest chances that FPR and FNR break, whatever the scores are.

    n and m count the calibration points and the others, normal first. For a side that is not held,
    `held_chance` is more precise, given the other class.
    """
    fixed, free, curve, raised = [], [], [], []
    for side, (promise, rungs) in enumerate(zip(asked.promises, _rungs(n, asked), strict=True)):
        points, others, delta = n[side], m[side], promise.delta
        errors = error_budget(points, promise.at_calibration, delta)
        rank = {} if errors is None else {errors: promise.at_calibration}
        fixed.append(_chance(fixed_chance, points, others, rank))
        free.append(_chance(fixed_chance, points, others, _held(points, delta)))
        # on the other points some threshold is broken more often than not, so the bound says nothing
        curve.append(_chance(crossing_chance, points, others, _of_band(points, delta))._replace(rest=None))
        if (side == 0) == (n[0] >= n[1]):  # the class that pays
            raised.append(_chance(ladder_chance, points, others, rungs))
        else:  # its delta is spent once, and on all points only
            raised.append(_chance(fixed_chance, points, others, rungs)._replace(rest=None))
    return {
        "abstain": (fixed[0], fixed[1]),
        "raise": (raised[0], raised[1]),
        "hold_fnr": (free[0], fixed[1]),
        "hold_fpr": (fixed[0], free[1]),
        "curve": (curve[0], curve[1]),
        "curve at F1": (curve[0], curve[1]),
    }


def held_chance(n: int, m: int, delta: float, beyond: Floats, *, whole: bool) -> Floats:
    """Return the exact chance of a break of the side that is not held, for points beyond the threshold."""
    ceilings = _held(n, delta)
    return given_chance(n, n + m, of_all(ceilings, n + m) if whole else of_others(ceilings, m), beyond)


def _held(n: int, delta: float) -> dict[int, float]:
    """Return the ceiling that is certified for every number of errors at a held threshold: eq. (16)."""
    return dict(enumerate(_upper(np.arange(n), n, delta).tolist()))


def _upper(errors: NDArray[np.int_], n: int, delta: float) -> Floats:
    """Return `upper_bound` of each number of errors, a hundred times faster; the last digits may differ."""
    return np.asarray(betainccinv(errors + 1.0, n - errors, delta), dtype=np.float64)


def _chance(
    how: Callable[[int, int, Limits], float], n: int, m: int, ceilings: Mapping[int, float]
) -> Chance:
    return Chance(how(n, n + m, of_others(ceilings, m)), how(n, n + m, of_all(ceilings, n + m)))


def _of_band(n: int, delta: float) -> dict[int, float]:
    """Return the bound of the band for every number of errors that has one below 1."""
    points = np.arange(n)
    bounds = certify_curve(points, points, delta, delta).fnr(points)
    return {errors: float(bound) for errors, bound in enumerate(bounds) if bound < 1.0}


def _rungs(n: tuple[int, int], asked: Guarantee = ASKED) -> tuple[dict[int, float], dict[int, float]]:
    """Return the ceilings of all rungs of `raise` per side; the lowest if a number of errors has several.

    They are those of `Staircase.at`, a thousand times faster; the last digits may differ.
    """
    stair = staircase(asked.promises, n, Raise().highest)
    errors = np.arange(stair.rungs.start, stair.rungs.stop)
    paid = _upper(errors, stair.ladder.n, stair.ladder.level)
    paid[errors == stair.ladder.kept] = stair.ladder.asked
    rates = np.maximum(paid * (stair.other.at_calibration / stair.ladder.asked), stair.least)
    bounds = _upper(np.arange(stair.others), stair.others, stair.other.delta)
    budgets = np.searchsorted(bounds, rates * (1.0 + _ROUNDING), side="right") - 1
    kept: dict[int, float] = {}
    for budget, rate in zip(budgets.tolist(), rates.tolist(), strict=True):
        kept.setdefault(budget, rate)  # rates rise
    paying = dict(zip(errors.tolist(), paid.tolist(), strict=True))
    return (paying, kept) if stair.normal_pays else (kept, paying)


def p_value(broken: int, probabilities: Iterable[float]) -> float:
    """Return the chance of at least this many breaks among independent ones with these probabilities.

    Where the probabilities are upper bounds, so is this.
    """
    counts = np.ones(1)
    for chance in probabilities:
        counts = np.convolve(counts, [1.0 - chance, chance])
    return float(min(1.0, counts[broken:].sum()))
