"""How many errors, labels or which rate: the questions an exact binomial tail answers. Knows no scores."""

from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import Final

from scipy.special import betainccinv, gammainccinv, gammaincinv, ndtri

from pac_wrap.errors import InputError
from pac_wrap.inputs import check_count, check_rate
from pac_wrap.tail import MANY, SCIPY_UP_TO, cdf, cdf_at_most, sf_at_most

# a bound counts as the least one if it cannot be lowered by this much, relative
_TIGHT: Final = 2.0**-46


def error_budget(n: int, rate: float, delta: float) -> int | None:
    """Return the most errors allowed among n points, or None if n is too small: eq. (2).

    k* = max{k : F(k; n, rate) <= delta}, exact also where the tail meets delta.

    >>> error_budget(2000, 0.05, 0.05)
    83
    >>> error_budget(58, 0.05, 0.05) is None
    True
    """
    n = check_count("n", n)
    rate, delta = check_rate("rate", rate), check_rate("delta", delta)
    if not cdf_at_most(0, n, rate, delta):
        return None
    beyond = _beyond_mean(n, rate, delta)
    # beyond so many points a float is too coarse to start from
    guess = int(n * rate + beyond if n <= SCIPY_UP_TO else n * Fraction(rate) + Fraction(beyond))
    return _last(lambda k: cdf_at_most(k, n, rate, delta), 0, n, guess)


def confidence(n: int, rate: float, errors: int | None) -> float:
    """Return the exact confidence 1 - F(errors; n, rate) that a budget reaches: eq. (3).

    Without a budget nothing is ever declared, so the promise holds with certainty.

    >>> round(confidence(2000, 0.05, 83), 4)
    0.9577
    """
    n, rate = check_count("n", n), check_rate("rate", rate)
    if errors is None:
        return 1.0
    return 1.0 - cdf(_check_errors(errors, n), n, rate)


def min_samples(rate: float, delta: float, errors: int = 0) -> int:
    """Return the least n whose error budget is at least `errors`: eq. (4).

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
    return 1 + _last(lambda n: not cdf_at_most(errors, n, rate, delta), errors, None, guess)


def achievable_rate(n: int, delta: float, errors: int = 0) -> float:
    """Return the smallest rate that n points can certify while `errors` of them are errors.

    This is the Clopper-Pearson upper bound seen from the planning side; n = 0 certifies nothing below 1.

    >>> round(achievable_rate(59, 0.05), 6)
    0.049508
    """
    return upper_bound(errors, n, delta)


def upper_bound(errors: int, n: int, delta: float = 0.05) -> float:
    """Return the one-sided Clopper-Pearson upper bound of a rate at confidence 1 - delta: eq. (5).

    The smallest rate with F(errors; n, rate) <= delta, rounded up, so that
    `error_budget(n, upper_bound(errors, n, delta), delta)` is `errors`.

    >>> round(upper_bound(2, 100, 0.05), 6)
    0.061619
    """
    n, delta = check_count("n", n), check_rate("delta", delta)
    errors = _check_errors(errors, n)
    if errors == n:
        return 1.0

    def holds(rate: float) -> bool:
        return cdf_at_most(errors, n, rate, delta)

    return _edge(holds, _rate_about(errors, n, delta))[1]


def lower_bound(errors: int, n: int, delta: float = 0.05) -> float:
    """Return the one-sided Clopper-Pearson lower bound of a rate at confidence 1 - delta: eq. (6).

    The largest rate with 1 - F(errors - 1; n, rate) <= delta, rounded down.

    >>> round(lower_bound(2, 100, 0.05), 6)
    0.003565
    """
    n, delta = check_count("n", n), check_rate("delta", delta)
    errors = _check_errors(errors, n)
    if errors == 0:
        return 0.0

    def broken(rate: float) -> bool:
        return not sf_at_most(errors, n, rate, delta)

    return _edge(broken, 1.0 - _rate_about(n - errors, n, delta))[0]


def interval(errors: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a rate, half the doubt on each side.

    >>> [round(end, 6) for end in interval(2, 100)]
    [0.002431, 0.070384]
    """
    half = (1.0 - check_rate("confidence", confidence)) / 2.0
    return lower_bound(errors, n, half), upper_bound(errors, n, half)


def _check_errors(errors: int, n: int) -> int:
    errors = check_count("errors", errors)
    if errors > n:
        raise InputError(f"errors must not exceed n, got {errors:,} errors among {n:,} points")
    return errors


def _beyond_mean(n: float, rate: float, delta: float) -> float:
    """Return how far the error budget lies from n rate, about: Cornish and Fisher's expansion."""
    quantile = float(ndtri(delta))
    skewed = (quantile * quantile - 1.0) * (1.0 - 2.0 * rate) / 6.0
    return quantile * sqrt(n * rate * (1.0 - rate)) + skewed - 0.5


def _points_about(errors: int, rate: float, delta: float) -> int:
    """Return about how many points have a budget of so many errors, or 2^62 if they are more."""
    events = float(gammainccinv(errors + 1, delta))
    points = events / rate - (events - errors) / 2.0
    if not points < 2.0**62:
        return 2**62
    if errors < MANY or rate < 1e-3:
        return int(points)
    for _ in range(3):
        beyond = _beyond_mean(points, rate, delta)
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
        rate = errors / n - _beyond_mean(n, rate, delta) / n
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


def _last(holds: Callable[[int], bool], low: int, high: int | None, guess: int) -> int:
    """Return the last whole number for which `holds`, which is true at low and false at and beyond high."""
    start = max(low, guess)
    if high is not None:
        start = min(start, high - 1)
    step = 1
    if start == low or holds(start):
        low = start
        while (high is None or low + step < high) and holds(low + step):
            low, step = low + step, 2 * step
        high = low + step if high is None else min(high, low + step)
    else:
        high = start
        while high - step > low and not holds(high - step):
            high, step = high - step, 2 * step
        low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
