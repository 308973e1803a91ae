"""How probable it is that a promise is broken on a table whose held-out rows are divided at random.

A division draws n calibration points of a class out of N without replacement and leaves m = N - n. Orient
the class so that an error is a score above the threshold. Whatever the scores are, only the order of the two
kinds of points counts; ties make a break less likely, never more.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import floor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from scipy.stats import hypergeom

from pac_wrap.method.curves.band import band_of
from pac_wrap.method.metrics import upper_bounds
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies.raising import Raise, staircase
from pac_wrap.method.tails.binomial import error_budget
from pac_wrap.method.tails.hypergeometric import hypergeometric_cdf

LEVEL: Final = 0.05
ASKED: Final = Guarantee(LEVEL, LEVEL)
_ROUNDING: Final = 1e-12
_TERMS: Final = 256  # rungs that matter to one below them: their terms fall quickly


def allowed(ceiling: float, m: int) -> int:
    """Return the most errors among m points whose rate does not exceed the ceiling.

    >>> allowed(0.05, 100), allowed(0.3, 10)
    (5, 3)
    """
    count = min(m, floor(ceiling * m) + 1)
    while count / m > ceiling:
        count -= 1
    return count


def rest_chance(n: int, m: int, errors: int | None, ceiling: float) -> float:
    """Return the chance that more than the ceiling of the m other points are errors: eq. (20).

    The threshold lets `errors` of the n calibration points be errors; with None it is never broken.

    >>> rest_chance(2, 2, 0, 0.5)
    0.16666666666666666
    """
    if errors is None:
        return 0.0
    return hypergeometric_cdf(errors, n, min(n + m, allowed(ceiling, m) + errors + 1), n + m)


def whole_chance(n: int, total: int, ceilings: Mapping[int, float]) -> float:
    """Return the largest chance, over numbers of errors, that the rate of all N points exceeds its ceiling.

    Eq. (18) for a threshold that is fixed by one of these numbers, or by the other class alone.

    >>> whole_chance(2, 4, {0: 0.5})
    0.0
    >>> whole_chance(2, 4, {0: 0.25, 1: 0.75})
    0.16666666666666666
    """
    if not ceilings:
        return 0.0
    errors = np.array(list(ceilings))
    erring = np.array([allowed(ceiling, total) + 1 for ceiling in ceilings.values()])
    possible = erring <= total
    chances = hypergeom.cdf(errors[possible], total, erring[possible], n)
    return float(np.max(chances, initial=0.0))


def crossing_chance(n: int, total: int, ceilings: Mapping[int, float]) -> float:
    """Return the chance that the rate of all N points exceeds any of several ceilings.

    `ceilings[k]` is that of the threshold at the (k + 1)-th largest calibration point. Let t_k be the number
    of other points above it: all 0 <= t_0 <= ... <= t_(n-1) <= N - n are equally likely, C(N, n) of them, and
    those are counted for which no t_k + k exceeds what its ceiling allows. One ceiling gives eq. (18).

    >>> round(crossing_chance(2, 4, {0: 0.25}), 12) == round(whole_chance(2, 4, {0: 0.25}), 12)
    True
    """
    if not ceilings:
        return 0.0
    m, last = total - n, max(ceilings)
    paths, scale = np.ones(1), 0.0
    for k in range(last + 1):
        # the ways in which t others lie above the (k + 1)-th largest, and no ceiling before it is broken
        ways = np.cumsum(paths)
        ways = np.concatenate([ways, np.full(m + 1 - ways.size, ways[-1])])
        paths = ways[: max(0, allowed(ceilings[k], total) - k + 1)] if k in ceilings else ways
        if not paths.size:
            return 1.0
        scale += float(np.log(paths[-1]))
        paths = paths / paths[-1]
    # the points that follow the last may lie anywhere among the others that are left
    left, following = m - np.arange(paths.size), n - last - 1
    with np.errstate(divide="ignore"):  # a number of ways too small for a double
        kept = np.log(paths) + scale + _log_ways(left, following) - _log_ways(m, n)
    return float(np.clip(1.0 - np.exp(kept).sum(), 0.0, 1.0))


def ladder_chance(n: int, total: int, ceilings: Mapping[int, float]) -> float:
    """Return the chance, at most, that the rate of all N points exceeds the ceiling of the rung taken.

    Which rung that is the other class says, at worst by lying between two points: eq. (28) for draws without
    replacement. With A_j errors allowed at rung j and X(a) calibration points among the a largest of all, it
    is the largest P(X(A_j + 1) <= j) + sum over i > j of C(A_j + 1, i) C(N - A_i - 1, n - i) / C(N, n).

    >>> ladder_chance(2, 4, {0: 0.25}) == whole_chance(2, 4, {0: 0.25})
    True
    """
    rungs = np.array(sorted(ceilings), dtype=np.int64)
    erring = np.array([allowed(ceilings[rung], total) + 1 for rung in rungs], dtype=np.int64)
    rungs, erring = rungs[erring <= total], erring[erring <= total]
    reached = hypergeom.cdf(rungs, total, erring, n)
    worst = 0.0
    for place, marked in enumerate(erring):
        later, beyond = rungs[place + 1 : place + _TERMS], erring[place + 1 : place + _TERMS]
        possible = (later <= marked) & (n - later <= total - beyond)
        later, beyond = later[possible], beyond[possible]
        terms = _log_ways(marked - later, later) + _log_ways(total - beyond - n + later, n - later)
        worst = max(worst, float(reached[place] + np.exp(terms - _log_ways(total - n, n)).sum()))
    return min(1.0, worst)


def _log_ways(m: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """Return the logarithm of the ways to order m points of one kind and n of another."""
    one, other = np.asarray(m, dtype=np.float64), np.asarray(n, dtype=np.float64)
    return np.asarray(gammaln(one + other + 1.0) - gammaln(one + 1.0) - gammaln(other + 1.0))


class Chance(NamedTuple):
    """What may happen to one rate: on the other points, None where that is not known, and on all, at most."""

    rest: float | None
    whole: float


@lru_cache(maxsize=256)
def chances(n: tuple[int, int], m: tuple[int, int]) -> dict[str, tuple[Chance, Chance]]:
    """Return for each of our methods what may happen to the FPR and to the FNR.

    n and m count the calibration points and the others, normal first.
    """
    fixed, free, curve, raised = [], [], [], []
    for side, rungs in enumerate(_rungs(n)):
        points, total = n[side], n[side] + m[side]
        errors = error_budget(points, LEVEL, LEVEL)
        whole = {} if errors is None else {errors: LEVEL}
        fixed.append(Chance(rest_chance(points, m[side], errors, LEVEL), whole_chance(points, total, whole)))
        bounds = upper_bounds(np.arange(points), points, LEVEL)
        free.append(Chance(None, whole_chance(points, total, dict(enumerate(map(float, bounds))))))
        curve.append(Chance(None, crossing_chance(points, total, _of_band(points))))
        # only the class that pays has several rungs to be broken at: Theorem 7
        pays = (side == 0) == (n[0] >= n[1])
        raised.append(Chance(None, (ladder_chance if pays else whole_chance)(points, total, rungs)))
    return {
        "abstain": (fixed[0], fixed[1]),
        "raise": (raised[0], raised[1]),
        "hold_fnr": (free[0], fixed[1]),
        "hold_fpr": (fixed[0], free[1]),
        "curve": (curve[0], curve[1]),
        "curve at F1": (curve[0], curve[1]),
    }


def _of_band(n: int) -> dict[int, float]:
    """Return the bound of the band for every number of errors that has one below 1."""
    bounds = band_of(n, LEVEL).of(np.arange(n))
    return {errors: float(bound) for errors, bound in enumerate(bounds) if bound < 1.0}


def _rungs(n: tuple[int, int]) -> tuple[dict[int, float], dict[int, float]]:
    """Return the ceilings of all rungs of `raise` for each side; of several for a number, the lowest.

    Those of `Staircase.budgets`, but for the last digits, and a thousand times faster.
    """
    stair = staircase(ASKED, n, Raise().highest)
    errors = np.arange(stair.rungs.start, stair.rungs.stop)
    paid = upper_bounds(errors, stair.ladder.n, stair.ladder.level)
    paid[errors == stair.ladder.kept] = stair.ladder.asked
    rates = np.maximum(paid * (stair.other.at_calibration / stair.ladder.asked), stair.least)
    bounds = upper_bounds(np.arange(stair.others), stair.others, stair.other.delta)
    budgets = np.searchsorted(bounds, rates * (1.0 + _ROUNDING), side="right") - 1
    kept: dict[int, float] = {}
    for budget, rate in zip(budgets.tolist(), rates.tolist(), strict=True):
        kept.setdefault(budget, rate)  # rates rise
    paying = dict(zip(errors.tolist(), paid.tolist(), strict=True))
    return (paying, kept) if stair.normal_pays else (kept, paying)


def p_value(broken: int, probabilities: Iterable[float]) -> float:
    """Return the chance of at least so many breaks among independent ones with these probabilities.

    Where the probabilities are upper bounds, so is this.

    >>> p_value(1, [0.5, 0.5]), p_value(0, [0.1])
    (0.75, 1.0)
    """
    counts = np.ones(1)
    for chance in probabilities:
        counts = np.convolve(counts, [1.0 - chance, chance])
    return float(min(1.0, counts[broken:].sum()))
