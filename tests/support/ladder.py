"""The failure of a ladder of ceilings, from SciPy and the formula of the theory alone, term by term."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py
from scipy.stats import beta, binom

from support.strategies import exact_budget

Floats = NDArray[np.float64]


def rungs(n: int, asked: float, level: float, top: float) -> tuple[int, Floats]:
    """Return the number of errors of the first rung, and the ceilings of all: eq. (27)."""
    bounds = beta.isf(level, np.arange(n) + 1.0, n - np.arange(n))
    # two doubles may stand for one and the same ceiling
    slack = 1.0 + 1e-12
    first = int(np.searchsorted(bounds, asked * slack, side="right")) - 1
    stop = int(np.searchsorted(bounds, top * slack, side="right"))
    ceilings = bounds[max(first, 0) : stop].copy()
    if first >= 0:
        ceilings[0] = asked
    return max(first, 0), ceilings


def failures(n: int, first: int, ceilings: Floats, places: Floats) -> Floats:
    """Return at each c the sum over i of b(i; n, c) h_i(c): eq. (28), as it stands."""
    total = np.zeros(places.size)
    for number, ceiling in enumerate(ceilings):
        i = first + number
        weight = binom.pmf(i, n, places)
        late = np.exp(xlog1py(n - i, -ceiling) - xlog1py(n - i, -places))
        total += weight * np.where(ceiling < places, 1.0, np.minimum(late, 1.0))
    # counts below the first rung are decided there: all of its errors but those seen must lie above it
    for i in range(first):
        share = np.clip((ceilings[0] - places) / (1.0 - places), 0.0, 1.0)
        late = binom.cdf(first - i, n - i, share)
        total += binom.pmf(i, n, places) * np.where(ceilings[0] < places, 1.0, late)
    return total


def fixed_failures(n: int, ceilings: Floats, level: float, places: Floats) -> Floats:
    """Return at each c how likely the first level whose budget covers the count below c fails: eq. (15)."""
    total, before = np.zeros(places.size), -1
    chances = binom.pmf(np.arange(n + 1)[:, np.newaxis], n, places)
    for ceiling in ceilings:
        budget = exact_budget(n, float(ceiling), level)
        if budget is None or budget == before:
            continue
        share = np.clip((ceiling - places) / (1.0 - places), 0.0, 1.0)
        h = np.arange(before + 1, budget + 1)[:, np.newaxis]
        total += (chances[before + 1 : budget + 1] * binom.cdf(budget - h, n - h, share)).sum(axis=0)
        before = budget
    return total


@lru_cache(maxsize=256)
def worst_failure(n: int, asked: float, level: float, top: float, between: int = 2) -> float:
    """Return the largest failure over a grid: below the first ceiling, at every ceiling, and between them."""
    first, ceilings = rungs(n, asked, level, top)
    if not ceilings.size:
        return 0.0
    ends = np.concatenate([[ceilings[0] * 0.5], ceilings])
    steps = np.linspace(0.0, 1.0, between + 1)[1:]
    places = (ends[:-1, np.newaxis] + np.diff(ends)[:, np.newaxis] * steps).ravel()
    return float(failures(n, first, ceilings, places).max())
