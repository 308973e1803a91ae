"""What the counts of `enumeration` must be, from binomial tails alone; nothing of the library is used.

A threshold is an order statistic, so the event that it lies beyond a score is the event that few enough
points do not: a binomial tail at the mass of that score and all before it. Rows are populations, columns
scores. Without an error budget alarm_from is beyond every score and clear_below beyond none.
"""

from fractions import Fraction
from math import comb, floor

import numpy as np

from statistical.enumeration import PARTS, POPULATIONS, Flags, Whole

UP_TO: Whole = POPULATIONS.cumsum(axis=1)
REACHING: Whole = POPULATIONS[:, ::-1].cumsum(axis=1)[:, ::-1]


def budget(n: int, rate: float, delta: float) -> int | None:
    """Return max{k : F(k; n, rate) <= delta} by its definition, in fractions."""
    hit, total, best = Fraction(rate), Fraction(0), None
    for k in range(n):
        total += comb(n, k) * hit**k * (1 - hit) ** (n - k)
        best = k if total <= Fraction(delta) else best
    return best


def tail(k: int | None, n: int) -> Whole:
    """Return F(k; n, a / PARTS) as a count of draws, for a = 0, ..., PARTS; without a budget it is zero."""
    errors = range(0 if k is None else k + 1)
    return np.array(
        [sum(comb(n, i) * a**i * (PARTS - a) ** (n - i) for i in errors) for a in range(PARTS + 1)],
        dtype=np.int64,
    )


def alarms_at(k: int | None, n: int) -> Whole:
    """Return in how many draws a score is at or above alarm_from."""
    return tail(k, n)[REACHING]


def clear_beyond(k: int | None, m: int) -> Whole:
    """Return in how many draws a score is below clear_below."""
    return tail(k, m)[UP_TO]


def too_low(ceiling: float) -> Flags:
    """Return whether alarms from this score on would break the FPR ceiling."""
    return np.asarray(floor(Fraction(ceiling) * PARTS) < REACHING)


def too_high(ceiling: float) -> Flags:
    """Return whether clearing all up to this score would break the FNR ceiling."""
    return np.asarray(floor(Fraction(ceiling) * PARTS) < UP_TO)


def highest(flags: Flags) -> Whole:
    """Return the column of the last score flagged in each row."""
    return np.asarray(flags.shape[1] - 1 - flags[:, ::-1].argmax(axis=1), dtype=np.int64)


def lowest(flags: Flags) -> Whole:
    """Return the column of the first score flagged in each row."""
    return np.asarray(flags.argmax(axis=1), dtype=np.int64)


def fpr_broken(k: int | None, n: int, ceiling: float) -> Whole:
    """Return in how many draws alarm_from breaks the FPR ceiling, per normal population."""
    rows = np.arange(len(POPULATIONS))
    return alarms_at(k, n)[rows, highest(too_low(ceiling))]


def fnr_broken(k: int | None, m: int, ceiling: float) -> Whole:
    """Return in how many draws clear_below breaks the FNR ceiling, per anomalous population."""
    rows = np.arange(len(POPULATIONS))
    return clear_beyond(k, m)[rows, lowest(too_high(ceiling))]


def bound_broken(n: int, delta: float) -> Whole:
    """Return in how many draws of n points the Clopper-Pearson bound of a rate a / PARTS lies below it.

    It does if F(errors; n, a / PARTS) < delta, so the count is the largest tail smaller than delta.
    """
    tails = np.array([tail(k, n) for k in range(n)])
    return np.asarray(np.where(tails < Fraction(delta) * PARTS**n, tails, 0).max(axis=0), dtype=np.int64)
