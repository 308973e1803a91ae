"""Budgets and thresholds counted by hand from the theory, in exact arithmetic, without the package."""

import sys
from fractions import Fraction
from functools import cache
from math import comb, inf, nextafter
from typing import Any

import numpy as np

LARGEST = sys.float_info.max
AWKWARD = [-inf, -LARGEST, 0.0, -0.0, 5e-324, 1.0, LARGEST, inf]


@cache
def budget(n: int, ceiling: float, delta: float) -> int | None:
    """Return the most errors k with P(Binomial(n, ceiling) <= k) <= delta; None if there is none."""
    rate, total, most = Fraction(ceiling), Fraction(0), None
    for k in range(n + 1):
        total += comb(n, k) * rate**k * (1 - rate) ** (n - k)
        if total > Fraction(delta):
            break
        most = k
    return most


def alarm_from(scores: list[float], errors: int | None) -> float:
    """Return the least threshold that at most this many normal scores reach: eq. (7)."""
    return inf if errors is None else nextafter(sorted(scores)[len(scores) - 1 - errors], inf)


def clear_below(scores: list[float], errors: int | None) -> float:
    """Return the largest threshold that at most this many anomalous scores lie below: eq. (9)."""
    return -inf if errors is None else sorted(scores)[errors]


def drawn(random: np.random.Generator, n: int, shift: float = 0.0) -> list[float]:
    """Return scores of one of several sorts: without ties, with many, at the ends of the doubles, equal."""
    kinds: list[Any] = [
        lambda: random.normal(shift, 1.0, n),
        lambda: np.round(random.normal(shift, 1.0, n)),
        lambda: random.choice(AWKWARD, n),
        lambda: np.full(n, 1.0),
    ]
    found: list[float] = kinds[random.integers(len(kinds))]().tolist()
    return found
