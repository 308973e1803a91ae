"""Which rate so many errors show, and how many labels a rate needs: the binomial tail turned round."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, betainccinv, betaincinv, betaln, gammainccinv, gammaincinv

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.errors import InputError
from pac_wrap.method.tails.binomial import (
    MANY,
    SCIPY_UP_TO,
    beyond_mean,
    cdf_at_most,
    check_errors,
    last_true,
    sf_at_most,
)

# a bound counts as the least one if it cannot be lowered by this much, relative
_TIGHT: Final = 2.0**-46
Rates = NDArray[np.float64]
# SciPy's quantiles are good to this, relative to the level, but for a few in a million that are far off
_NEAR: Final = 1e-6
# down to the least of all doubles
_HALVINGS: Final = 1100


def upper_bound(errors: int, n: int, delta: float = 0.05) -> float:
    """Return the one-sided Clopper-Pearson upper bound of a rate at confidence 1 - delta: eq. (5).

    The smallest rate with F(errors; n, rate) <= delta, rounded up, so that
    `error_budget(n, upper_bound(errors, n, delta), delta)` is `errors`.

    Parameters
    ----------
    errors, n : int
        How many errors were counted, among how many points.
    delta : float
        The chance that the rate is larger.

    Returns
    -------
    float
        The bound; 1 if every point is an error.

    Raises
    ------
    InputError
        If a number is none of its kind, or errors exceed n.

    Examples
    --------
    >>> round(upper_bound(2, 100, 0.05), 6)
    0.061619
    """
    n, delta = check_count("n", n), check_rate("delta", delta)
    errors = check_errors(errors, n)
    if errors == n:
        return 1.0

    def holds(rate: float) -> bool:
        return cdf_at_most(errors, n, rate, delta)

    return _edge(holds, _rate_about(errors, n, delta))[1]


def lower_bound(errors: int, n: int, delta: float = 0.05) -> float:
    """Return the one-sided Clopper-Pearson lower bound of a rate at confidence 1 - delta: eq. (6).

    The largest rate with 1 - F(errors - 1; n, rate) <= delta, rounded down.

    Parameters
    ----------
    errors, n : int
        How many errors were counted, among how many points.
    delta : float
        The chance that the rate is smaller.

    Returns
    -------
    float
        The bound; 0 without an error.

    Raises
    ------
    InputError
        If a number is none of its kind, or errors exceed n.

    Examples
    --------
    >>> round(lower_bound(2, 100, 0.05), 6)
    0.003565
    """
    n, delta = check_count("n", n), check_rate("delta", delta)
    errors = check_errors(errors, n)
    if errors == 0:
        return 0.0

    def broken(rate: float) -> bool:
        return not sf_at_most(errors, n, rate, delta)

    return _edge(broken, 1.0 - _rate_about(n - errors, n, delta))[0]


def interval(errors: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a rate, half the doubt on each side.

    Parameters
    ----------
    errors, n : int
        How many errors were counted, among how many points.
    confidence : float
        How surely the interval holds the rate.

    Returns
    -------
    tuple of float
        Its ends.

    Raises
    ------
    InputError
        If a number is none of its kind, or errors exceed n.

    Examples
    --------
    >>> [round(end, 6) for end in interval(2, 100)]
    [0.002431, 0.070384]
    """
    half = (1.0 - check_rate("confidence", confidence)) / 2.0
    return lower_bound(errors, n, half), upper_bound(errors, n, half)


def min_samples(rate: float, delta: float, errors: int = 0) -> int:
    """Return the least n whose error budget is at least `errors`: eq. (4).

    Parameters
    ----------
    rate, delta : float
        The ceiling, and the chance that it does not hold.
    errors : int
        How many errors the budget must allow.

    Returns
    -------
    int
        The least number of labelled points.

    Raises
    ------
    InputError
        If a number is none of its kind, or more than 2^62 labels were needed.

    Examples
    --------
    >>> min_samples(0.05, 0.05), min_samples(0.1, 0.1), min_samples(0.01, 0.05)
    (59, 22, 299)
    >>> min_samples(0.05, 0.05, errors=10)
    336
    """
    rate, delta = check_rate("rate", rate), check_rate("delta", delta)
    errors = check_count("errors", errors)
    guess = _points_about(errors, rate, delta)
    if guess >= 2**62:
        raise InputError(
            f"rate = {rate!r} with {errors:,} errors needs more than 2^62 labels; ask for a larger rate or"
            " tolerate fewer errors"
        )
    return 1 + last_true(lambda n: not cdf_at_most(errors, n, rate, delta), errors, None, guess)


def achievable_rate(n: int, delta: float, errors: int = 0) -> float:
    """Return the smallest rate that n points can certify while `errors` of them are errors.

    This is the Clopper-Pearson upper bound seen from the planning side; n = 0 certifies nothing below 1.

    Parameters
    ----------
    n : int
        How many labelled points there are.
    delta : float
        The chance that the ceiling does not hold.
    errors : int
        How many of the points are errors.

    Returns
    -------
    float
        The least ceiling.

    Raises
    ------
    InputError
        If a number is none of its kind, or errors exceed n.

    Examples
    --------
    >>> round(achievable_rate(59, 0.05), 6)
    0.049508
    """
    return upper_bound(errors, n, delta)


def _points_about(errors: int, rate: float, delta: float) -> int:
    """Return about how many points have a budget of so many errors, or 2^62 if they are more."""
    events = float(gammainccinv(errors + 1, delta))
    points = events / rate - (events - errors) / 2.0
    if not points < 2.0**62:
        return 2**62
    if errors < MANY or rate < 1e-3:
        return int(points)
    for _ in range(3):
        beyond = beyond_mean(points, rate, delta)
        points = (errors - beyond) / rate
    return int((errors - Fraction(beyond)) / Fraction(rate))


def _rate_about(errors: int, n: int, delta: float) -> float:
    """Return about the rate at which so many errors are the budget, for errors < n."""
    if n <= SCIPY_UP_TO:
        return float(betainccinv(errors + 1, n - errors, delta))
    if errors < MANY:
        events = float(gammainccinv(errors + 1, delta))
        return events / (n + (events - errors) / 2.0)
    if n - errors < MANY:
        events = float(gammaincinv(n - errors, delta))
        return 1.0 - events / (n + (events - (n - errors) + 1.0) / 2.0)
    rate = errors / n
    for _ in range(4):
        rate = errors / n - beyond_mean(n, rate, delta) / n
    return rate


def _edge(holds: Callable[[float], bool], guess: float) -> tuple[float, float]:
    """Return the last rate for which `holds` is false and the first for which it is true.

    It is false at 0 and true at 1; the two are no closer than a bound has to be.
    """
    low, high = _bracket(holds, guess) if 0.0 < guess < 1.0 else (0.0, 1.0)
    while high - low > _TIGHT * high and low < (middle := (low + high) / 2.0) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _bracket(holds: Callable[[float], bool], guess: float) -> tuple[float, float]:
    """Return a rate for which `holds` is false and one for which it is true, as close to guess as they go."""
    width = _TIGHT
    if holds(guess):
        while width < 1.0 and holds(guess * (1.0 - width)):
            width *= 64.0
        return max(guess * (1.0 - width), 0.0), guess
    while (high := guess * (1.0 + width)) < 1.0 and not holds(high):
        width *= 64.0
    return guess, min(high, 1.0)


def beta_quantile(a: ArrayLike, b: ArrayLike, level: ArrayLike, *, above: bool) -> Rates:
    """Return what a beta variable exceeds with a probability, or else what it stays below.

    Above, for a = k + 1 and b = n - k, it is the rate with F(k; n, rate) = level: eq. (5).

    >>> beta_quantile([1.0, 3.0], [100.0, 98.0], 0.05, above=True).round(6).tolist()
    [0.029513, 0.061619]
    >>> beta_quantile([2.0], [99.0], 0.05, above=False).round(6).tolist()
    [0.003565]
    """
    one, two, chance = (np.asarray(value, dtype=np.float64) for value in np.broadcast_arrays(a, b, level))
    inverse, tail = (betainccinv, betaincc) if above else (betaincinv, betainc)
    found = np.asarray(inverse(one, two, chance))
    back = np.asarray(tail(one, two, found))
    wrong = ~(np.abs(back - chance) <= _NEAR * chance)
    if wrong.any():
        found[wrong] = _halved(tail, one[wrong], two[wrong], chance[wrong], above)
        back[wrong] = tail(one[wrong], two[wrong], found[wrong])
    # one of Newton's steps, since only some digits of the level are right where there are many points
    inside = (found > 0.0) & (found < 1.0)
    x = np.where(inside, found, 0.5)
    density = np.exp((one - 1.0) * np.log(x) + (two - 1.0) * np.log1p(-x) - betaln(one, two))
    inside &= density > 0.0
    step = (back - chance) / np.where(inside, density, 1.0)
    moved = found + step if above else found - step
    return np.where(inside & (moved > 0.0), moved, found)


def _halved(tail: Any, a: Rates, b: Rates, level: Rates, above: bool) -> Rates:
    """Return the same by bisection, which cannot miss it."""
    low, high = np.zeros_like(level), np.ones_like(level)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if ((middle == low) | (middle == high)).all():
            break
        below = (tail(a, b, middle) > level) == above
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high
