"""Exact binomial tails and their inverses: error budgets, bounds of error rates, labels needed.

No scores are needed. Public functions raise `InputError` for a wrong number or for more errors than points.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import comb, nan, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, betainccinv, betaincinv, betaln, gammainccinv, gammaincinv, ndtri

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.base.floats import ceiling_up, confidence_left, kept_together, of_few_digits, shared_together
from pac_wrap.errors import InputError

# SciPy's tail is good to 1e-14 (relative), but loses up to 3e-20 n for few errors and a large n; a tail
# closer to delta than 1e-11 + 1e-18 n is decided with 60 digits.
_DOUBT: Final = 1e-11
_DOUBT_PER_POINT: Final = 1e-18
# beyond this many points SciPy is not used: it may return NaN, or take longer than 60 digits do
SCIPY_UP_TO: Final = 10**12
_SUBNORMAL: Final = 1e-305
_DIGITS: Final = 60
_EQUAL: Final = Decimal("1e-40")
_FIXED_POINT: Final = 10**50
# from this many errors and this many other points on, an integral takes less time than the sum
MANY: Final = 10**6
# the step of the trapezoidal rule, 1/41, and where it starts: eq. (23)
_STEPS_PER_UNIT: Final = 41
_FIRST: Final = -5 * _STEPS_PER_UNIT
_NEGLIGIBLE: Final = Decimal("1e-50")
_PI: Final = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
# precision is tested at ranks this far apart, from the first one whose budget has some errors
_RATIO, _TESTED_ERRORS = sqrt(2.0), 4
# from this m on, Stirling's series gives 60 digits
_FEW: Final = 1000
# coefficients of 1/m, 1/m^3, ... in Stirling's series of ln m!
_STIRLING: Final = tuple(
    map(
        Fraction,
        (1, -1, 1, -1, 1, -691, 1, -3617, 43867, -174611),
        (12, 360, 1260, 1680, 1188, 360360, 156, 122400, 244188, 125400),
    )
)


def cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most k errors among n if each occurs with probability p: eq. (1)."""
    if k >= n:
        return 1.0
    if n <= SCIPY_UP_TO:
        return float(betaincc(k + 1, n - k, p))
    with _wide_context(n):
        return float(_cdf_to_40_digits(k, n, Fraction(p)))


def cdf_at_most(k: int, n: int, p: float, delta: float) -> bool:
    """Return whether F(k; n, p) <= delta, for the doubles' exact values; 40 equal digits count as equal."""
    if n <= SCIPY_UP_TO and not doubtful(approximate := cdf(k, n, p), n, delta):
        return approximate <= delta
    return _exactly_at_most(k, n, Fraction(p), delta)


def sf_at_most(k: int, n: int, p: float, delta: float) -> bool:
    """Return whether P(X >= k) = 1 - F(k - 1; n, p) <= delta, as exactly as `cdf_at_most`."""
    if k <= 0:
        return False
    if n <= SCIPY_UP_TO and not doubtful(approximate := float(betainc(k, n - k + 1, p)), n, delta):
        return approximate <= delta
    # at least k errors are at most n - k points without one
    return _exactly_at_most(n - k, n, 1 - Fraction(p), delta)


def doubtful(approximate: Any, n: int, delta: float) -> Any:
    """Return whether a tail is too close to delta for SciPy to tell the side; elementwise for arrays."""
    return delta <= _SUBNORMAL or abs(approximate - delta) <= (_DOUBT + _DOUBT_PER_POINT * n) * delta


def _exactly_at_most(k: int, n: int, p: Fraction, delta: float) -> bool:
    with _wide_context(n):
        bound = Decimal(delta)
        return _cdf_to_40_digits(k, n, p) <= bound + bound * _EQUAL


def _wide_context(n: int) -> AbstractContextManager[Context]:
    # the widest exponents, since p^k alone may be far below the usual smallest number
    return localcontext(prec=_DIGITS + len(str(n)), Emin=MIN_EMIN, Emax=MAX_EMAX)


def _cdf_to_40_digits(k: int, n: int, p: Fraction) -> Decimal:
    if k >= n or p == 0:
        return Decimal(1)
    if k > n * p:  # the other tail has fewer terms that matter
        return 1 - _cdf_to_40_digits(n - k - 1, n, 1 - p)
    return _pmf(k, n, p) * (_integral if min(k, n - k) >= MANY else _sum)(k, n, p)


def _pmf(k: int, n: int, p: Fraction) -> Decimal:
    hit, miss = Decimal(p.numerator) / p.denominator, Decimal(p.denominator - p.numerator) / p.denominator
    few = min(k, n - k)
    if few < _FEW or n <= SCIPY_UP_TO:
        return _ways(n, few, getcontext().prec) * hit**k * miss ** (n - k)
    # by logarithms, which take longer: the number of ways alone may be larger than any exponent
    return (_log_ways(n, few, getcontext().prec) + k * hit.ln() + (n - k) * miss.ln()).exp()


def _sum(k: int, n: int, p: Fraction) -> Decimal:
    """Return F(k; n, p) in units of pmf(k), for k <= n p, term by term."""
    # pmf(i - 1) / pmf(i) = i (1 - p) / ((n - i + 1) p), summed downwards from i = k
    hits, misses = p.numerator, p.denominator - p.numerator
    above, below = k * misses, (n - k + 1) * hits
    term = total = _FIXED_POINT
    while term := term * above // below:
        total += term
        above, below = above - misses, below + hits
    return Decimal(total) / _FIXED_POINT


def _integral(k: int, n: int, p: Fraction) -> Decimal:
    """Return F(k; n, p) in units of pmf(k), for k <= n p, k and n - k both large: eq. (22) by rule (23)."""
    hit = Decimal(p.numerator) / p.denominator
    scale = min(1 / (n + 1 - k / hit), hit / Decimal(k).sqrt())
    total, step = Decimal(0), _FIRST
    while True:
        place, weight = _node(step, getcontext().prec)
        s = scale * place
        term = weight * (1 + s / hit) ** k / (1 + s) ** (n + 1)
        total += term
        if step > 0 and term < total * _NEGLIGIBLE:
            return (n - k) * scale * total / _STEPS_PER_UNIT
        step += 1


@lru_cache(maxsize=4096)
def _node(step: int, digits: int) -> tuple[Decimal, Decimal]:
    """Return x = exp(y - exp(-y)) and dx/dy at y = step / 41; `digits` keys the cache."""
    fall = (Decimal(-step) / _STEPS_PER_UNIT).exp()
    place = (Decimal(step) / _STEPS_PER_UNIT - fall).exp()
    return place, place * (1 + fall)


@lru_cache(maxsize=64)
def _ways(n: int, k: int, digits: int) -> Decimal:
    """Return n over k in the current context, whose precision is `digits`: it keys the cache."""
    return +Decimal(comb(n, k)) if k < _FEW else _log_ways(n, k, digits).exp()


@lru_cache(maxsize=64)
def _log_ways(n: int, k: int, digits: int) -> Decimal:
    """Return ln(n over k) in the current context, whose precision is `digits`: it keys the cache."""
    return _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)


def _log_factorial(m: int) -> Decimal:
    x = Decimal(m)
    series = sum(Decimal(c.numerator) / (c.denominator * x ** (2 * j + 1)) for j, c in enumerate(_STIRLING))
    return (x + Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 + series


def most_errors(n: int, rate: float, delta: float) -> int | None:
    """Return the error budget for numbers that were already checked."""
    if not cdf_at_most(0, n, rate, delta):
        return None
    beyond = beyond_mean(n, rate, delta)
    # beyond this many points a float is too coarse a start
    guess = int(n * rate + beyond if n <= SCIPY_UP_TO else n * Fraction(rate) + Fraction(beyond))
    return last_true(lambda k: cdf_at_most(k, n, rate, delta), 0, n, guess)


def beyond_mean(n: float, rate: float, delta: float) -> float:
    """Return approximately how far the error budget lies from n rate: Cornish and Fisher's expansion."""
    quantile = float(ndtri(delta))
    skewed = (quantile * quantile - 1.0) * (1.0 - 2.0 * rate) / 6.0
    return quantile * sqrt(n * rate * (1.0 - rate)) + skewed - 0.5


def last_true(holds: Callable[[int], bool], low: int, high: int | None, guess: int) -> int:
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


# a bound counts as the least one if it cannot be lowered by this much, relative
_TIGHT: Final = 2.0**-46
Rates = NDArray[np.float64]
# SciPy's quantiles are good to this, relative to the level, except for a few in a million that are far off
_NEAR: Final = 1e-6
# down to the smallest of all doubles
_HALVINGS: Final = 1100


def error_budget(n: int, rate: float, delta: float) -> int | None:
    """Return the most errors allowed among n points, or None if n is too small: eq. (2).

    k* = max{k : F(k; n, rate) <= delta}. It is exact even if the tail equals delta.

    Parameters
    ----------
    n : int
        The number of labelled points.
    rate, delta : float
        The ceiling of the error rate, and the chance that it does not hold.

    Examples
    --------
    >>> error_budget(2000, 0.05, 0.05)
    83
    >>> error_budget(58, 0.05, 0.05) is None
    True
    """
    return most_errors(check_count("n", n), check_rate("rate", rate), check_rate("delta", delta))


def exact_confidence(n: int, rate: float, errors: int | None) -> float:
    """Return the exact confidence 1 - F(errors; n, rate) of an error budget: eq. (3).

    For the budget at delta it is at least 1 - delta. Without a budget no verdict is given, so it is 1.

    Parameters
    ----------
    n, rate : int and float
        The number of labelled points, and the ceiling of the error rate.
    errors : int or None
        The error budget; None if there is none.

    Examples
    --------
    >>> round(exact_confidence(2000, 0.05, 83), 4)
    0.9577
    """
    n, rate = check_count("n", n), check_rate("rate", rate)
    return 1.0 if errors is None else 1.0 - cdf(check_errors(errors, n), n, rate)


def check_errors(errors: int, n: int) -> int:
    """Return the number of errors among n points after checking it."""
    errors = check_count("errors", errors)
    if errors > n:
        raise InputError(f"errors must not exceed n, got {errors:,} errors among {n:,} points")
    return errors


def upper_bound(errors: int, n: int, delta: float = 0.05) -> float:
    """Return the one-sided Clopper-Pearson upper bound of a rate at confidence 1 - delta: eq. (5).

    It is the smallest rate with F(errors; n, rate) <= delta, rounded up: the lowest ceiling that n points can
    certify with `errors` errors, so that `error_budget(n, upper_bound(errors, n, delta), delta)` is `errors`.
    It is 1 if every point is an error.

    Parameters
    ----------
    errors, n : int
        The number of errors, and the number of points among which they were counted.
    delta : float
        The chance that the rate is larger.

    Examples
    --------
    >>> round(upper_bound(2, 100, 0.05), 6)
    0.061619
    """
    n, delta = check_count("n", n), check_rate("delta", delta)
    return _least_rate(check_errors(errors, n), n, delta)


@lru_cache(maxsize=256)
def _least_rate(errors: int, n: int, delta: float) -> float:
    if errors == n:
        return 1.0
    return _edge(lambda rate: cdf_at_most(errors, n, rate, delta), _rate_about(errors, n, delta))[1]


def lower_bound(errors: int, n: int, delta: float = 0.05) -> float:
    """Return the one-sided Clopper-Pearson lower bound of a rate at confidence 1 - delta: eq. (6).

    It is the largest rate with 1 - F(errors - 1; n, rate) <= delta, rounded down; 0 without an error. The
    other parameters are those of `upper_bound`.

    Parameters
    ----------
    delta : float
        The chance that the rate is smaller.

    Examples
    --------
    >>> round(lower_bound(2, 100, 0.05), 6)
    0.003565
    """
    n, delta = check_count("n", n), check_rate("delta", delta)
    errors = check_errors(errors, n)
    if errors == 0:
        return 0.0
    about = 1.0 - _rate_about(n - errors, n, delta)
    return _edge(lambda rate: not sf_at_most(errors, n, rate, delta), about)[0]


def interval(errors: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a rate, with half of 1 - confidence on each side.

    The other parameters are those of `upper_bound`.

    Parameters
    ----------
    confidence : float
        The probability that the interval covers the true rate.

    Examples
    --------
    >>> [round(end, 6) for end in interval(2, 100)]
    [0.002431, 0.070384]
    """
    half = (1.0 - check_rate("confidence", confidence)) / 2.0
    return lower_bound(errors, n, half), upper_bound(errors, n, half)


@dataclass(frozen=True, slots=True)
class Rate:
    """A counted share with its exact (Clopper-Pearson) interval; `value` is NaN if n is 0.

    Parameters
    ----------
    count, n : int
        The count, and the number of points among which it was counted.
    low, high : float
        The ends of the interval.

    Examples
    --------
    >>> print(Rate(2, 100, 0.0024, 0.0704))
    0.0200 [0.0024, 0.0704]
    """

    count: int
    n: int
    low: float
    high: float

    @classmethod
    def of(cls, count: int, n: int, confidence: float = 0.95) -> "Rate":
        """Return the share with the interval that covers the true share with this confidence."""
        return cls(count, n, *interval(count, n, confidence))

    @property
    def value(self) -> float:
        """The share itself."""
        return self.count / self.n if self.n else nan

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]" if self.n else "no points"


@dataclass(frozen=True, slots=True)
class MeanRate(Rate):
    """The mean share of errors of units with its interval; `count` and `n` are of points, or of units.

    Parameters
    ----------
    mean : float
        The mean over units, each of which counts alike.
    """

    mean: float

    @property
    def value(self) -> float:
        """The mean share."""
        return self.mean


def min_samples(rate: float, delta: float, errors: int = 0) -> int:
    """Return the smallest number of points whose error budget is at least `errors`: eq. (4).

    Parameters
    ----------
    rate, delta : float
        The ceiling, and the chance that it does not hold.
    errors : int
        The number of errors that the budget must allow.

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
            f"rate = {rate!r} with {errors:,} errors needs more than 2^62 labels; raise the rate, or allow"
            " fewer errors"
        )
    return 1 + last_true(lambda n: not cdf_at_most(errors, n, rate, delta), errors, None, guess)


def ranks_tested(points: int, rate: float, delta: float) -> Iterator[int]:
    """Yield the ranks at which precision is tested, from the top; they depend on counts alone: eq. (147)."""
    rank = float(min_samples(rate, delta, _TESTED_ERRORS) + 1)
    while round(rank) <= points:
        yield round(rank)
        rank *= _RATIO


def _points_about(errors: int, rate: float, delta: float) -> int:
    """Return approximately how many points have this error budget, at most 2^62."""
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
    """Return approximately the rate at which `errors` is the error budget, for errors < n."""
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
    """Return the last rate at which `holds` is false, as it is at 0, and the first at which it is true."""
    low, high = _bracket(holds, guess) if 0.0 < guess < 1.0 else (0.0, 1.0)
    while high - low > _TIGHT * high and low < (middle := (low + high) / 2.0) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _bracket(holds: Callable[[float], bool], guess: float) -> tuple[float, float]:
    """Return a rate at which `holds` is false and a larger one at which it is true, close to the guess."""
    width = _TIGHT
    if holds(guess):
        while width < 1.0 and holds(guess * (1.0 - width)):
            width *= 64.0
        return max(guess * (1.0 - width), 0.0), guess
    while (high := guess * (1.0 + width)) < 1.0 and not holds(high):
        width *= 64.0
    return guess, min(high, 1.0)


def beta_quantile(a: ArrayLike, b: ArrayLike, level: ArrayLike, *, above: bool) -> Rates:
    """Return the value that a beta variable exceeds (`above`) or stays below with chance `level`: eq. (5)."""
    one, two, chance = (np.asarray(value, dtype=np.float64) for value in np.broadcast_arrays(a, b, level))
    inverse, tail = (betainccinv, betaincc) if above else (betaincinv, betainc)
    found = np.asarray(inverse(one, two, chance))
    back = np.asarray(tail(one, two, found))
    wrong = ~(np.abs(back - chance) <= _NEAR * chance)
    if wrong.any():
        found[wrong] = _halved(tail, one[wrong], two[wrong], chance[wrong], above)
        back[wrong] = tail(one[wrong], two[wrong], found[wrong])
    # one Newton step, since with many points only some digits of the level are right
    inside = (found > 0.0) & (found < 1.0)
    x = np.where(inside, found, 0.5)
    density = np.exp((one - 1.0) * np.log(x) + (two - 1.0) * np.log1p(-x) - betaln(one, two))
    inside &= density > 0.0
    step = (back - chance) / np.where(inside, density, 1.0)
    moved = found + step if above else found - step
    return np.where(inside & (moved > 0.0), moved, found)


def _halved(tail: Any, a: Rates, b: Rates, level: Rates, above: bool) -> Rates:
    """Return the quantile by bisection, which always finds it."""
    low, high = np.zeros_like(level), np.ones_like(level)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if ((middle == low) | (middle == high)).all():
            break
        below = (tail(a, b, middle) > level) == above
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


# no number of labels certifies a lower ceiling
LEAST_CEILING: Final = 1e-15
# how many shares of a delta are tried for the normal points
_SHARES: Final = 16
# a smaller part of a delta makes no difference
_NOTHING: Final = 1e-100
# SciPy's tails are good to 1e-11 up to this many points; beyond, delta stands for the tail at its budget
_EXACT_UP_TO: Final = 10**6
_ROUNDING: Final = 1e-9
# a common delta is sought among numbers of this many digits, so that every machine finds the same one
_SHARE_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Budget:
    """The error budget of n points of one class under a ceiling: the largest k with F(k; n, rate) <= delta.

    It is made by `Budget.of` or `Promise.budget`.

    Parameters
    ----------
    n : int
        The number of labelled points.
    rate, delta : float
        The ceiling, and the chance that it does not hold.
    errors : int or None
        The error budget; None if n is too small.
    confidence : float
        The exact confidence 1 - F(errors; n, rate): eq. (3). For points in units it is 1 - delta.
    units : int, optional
        The number of units that the points came in, if points of one unit may depend on each other.

    Examples
    --------
    >>> Budget.of(2000, 0.05, 0.05).errors
    83
    >>> Budget.of(35, 0.05, 0.05).missing
    24
    """

    n: int
    rate: float
    delta: float
    errors: int | None
    confidence: float
    units: int | None = None

    @classmethod
    def of(cls, n: int, rate: float, delta: float) -> "Budget":
        """Return the budget of n points under a ceiling: eq. (2)."""
        # checked before the cache, which could not look up a value that is no number
        return find_budget(check_count("n", n), check_rate("rate", rate), check_rate("delta", delta))

    @classmethod
    def spent(cls, errors: int, n: int, delta: float) -> "Budget | None":
        """Return the budget at the lowest ceiling that allows `errors` errors, None if that ceiling is 1."""
        rate = ceiling_up(max(upper_bound(errors, n, delta), LEAST_CEILING))
        return None if rate >= 1.0 else find_budget(n, rate, delta)

    @property
    def missing(self) -> int:
        """How many more labels, or units, the ceiling needs before it can be certified."""
        have = self.n if self.units is None else self.units
        return max(0, min_samples(self.rate, self.delta) - have)


@lru_cache(maxsize=256)
def find_budget(n: int, rate: float, delta: float) -> Budget:
    """Return the budget for numbers that were already checked."""
    errors = most_errors(n, rate, delta)
    return Budget(n, rate, delta, errors, 1.0 if errors is None else 1.0 - cdf(errors, n, rate))


def budgets_at(n: int, rates: Rates, delta: float, guesses: NDArray[np.int64]) -> list[int]:
    """Return the error budgets of n points at many rates, starting from guesses that are mostly right."""
    tails = betaincc(guesses + 1, n - guesses, rates)
    beyond = np.where(guesses + 1 < n, betaincc(guesses + 2, n - guesses - 1, rates), 1.0)
    clear = (tails <= delta) & (beyond > delta) & ~doubtful(tails, n, delta) & ~doubtful(beyond, n, delta)
    pairs = zip(guesses.tolist(), rates.tolist(), clear.tolist(), strict=True)
    return [guess if sure else most_errors(n, rate, delta) or 0 for guess, rate, sure in pairs]


@dataclass(frozen=True, slots=True)
class Sharing:
    """One of two classes that share a confidence: the number of points of each of its ceilings."""

    points: tuple[int, ...]
    rates: tuple[float, ...]
    counted: bool = False
    whole: bool = False

    @property
    def least(self) -> float:
        """The smallest delta, with eight digits, at which every promise has an error budget."""
        tails = (cdf(0, n, rate) for n, rate in zip(self.points, self.rates, strict=True))
        return of_few_digits(max(_NOTHING, *tails), up=True)

    def budgets(self, delta: float) -> list[int | None]:
        """Return the error budget of each promise at a delta."""
        return [most_errors(n, rate, delta) for n, rate in zip(self.points, self.rates, strict=True)]

    def keeps(self, delta: float) -> Decimal:
        """Return the confidence that all promises of the class hold, each at this delta: eqs. (99), (100)."""
        left = confidence_left(delta)
        if self.counted:
            kinds = len(self.points) - self.whole
            return kept_together(*[left] * kinds) - (1 - left) * self.whole
        budgets = self.budgets(delta)
        if None in budgets:  # the class has no threshold, and cannot fail
            return Decimal(1)
        cases = zip(budgets, self.points, self.rates, strict=True)
        least = min(1.0 - cdf(errors, n, rate) for errors, n, rate in cases if errors is not None)
        return max(left, Decimal(repr(least)))

    def rest(self, needed: Decimal) -> float:
        """Return the largest delta, with eight digits, at which the class has the needed confidence; or 0."""
        if needed >= 1:
            return 0.0
        if not self.counted or len(self.points) == 1:
            return of_few_digits(1 - needed)
        low, high = 0.0, float(1 - needed)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.keeps(middle) >= needed else (low, middle)
        return of_few_digits(low)


@lru_cache(maxsize=256)
def split_confidence(confidence: float, normal: Sharing, anomalous: Sharing) -> tuple[float, float]:
    """Return deltas, from sizes and ceilings, with which two classes reach one: eqs. (102) and (103)."""
    sides = normal, anomalous
    if normal.whole or anomalous.whole:
        # a ceiling on all kinds together holds on average over their counts, which may not decide its delta
        equal = equal_deltas(confidence)
        needed = Decimal(repr(confidence)) / confidence_left(equal)
        low, high = (side.rest(needed) if side.counted else equal for side in sides)
        return low, high
    splits = list(_splits(confidence, sides))
    return max(splits, key=lambda deltas: _rank(sides, deltas)) if splits else (equal_deltas(confidence),) * 2


def equal_deltas(confidence: float) -> float:
    """Return the equal delta, of eight digits, with which two independent classes reach a confidence."""
    return of_few_digits(shared_together(float(confidence_left(confidence)), 2))


def _splits(confidence: float, sides: tuple[Sharing, Sharing]) -> Iterator[tuple[float, float]]:
    """Yield pairs of deltas that reach a confidence: one class gets a share, the other what is left."""
    total = confidence_left(confidence)
    held = 1 if sides[0].counted else 0
    starts = [(held, of_few_digits(total * share / _SHARES)) for share in range(1, _SHARES)]
    starts += [(place, one.least) for place, one in enumerate(sides) if not one.counted]
    for first, delta in starts:
        if not 0.0 < delta < total or None in sides[first].budgets(delta):
            continue  # a class with too few labels takes nothing from the other
        # the other class gets what the first does not use, and returns what it does not use itself
        one, other, asked = sides[first], sides[1 - first], Decimal(repr(confidence))
        rest = other.rest(asked / one.keeps(delta))
        if rest > 0.0:
            back = one.rest(asked / other.keeps(rest))
            # eight digits may be too few to keep the first class's budget
            own = back if back and one.budgets(back) == one.budgets(delta) else max(back, delta)
            yield (own, rest) if first == 0 else (rest, own)


def _rank(sides: tuple[Sharing, Sharing], deltas: tuple[float, float]) -> tuple[int, int, float]:
    """Return the rank of a split: classes with a budget, product of budgets + 1, closeness of the deltas."""
    found = [side.budgets(delta) for side, delta in zip(sides, deltas, strict=True)]
    enough = sum(side.counted or None not in budgets for side, budgets in zip(sides, found, strict=True))
    least = [min((budget or 0) + 1 for budget in budgets) for budgets in found]
    held = any(side.counted for side in sides)
    return enough, 0 if held else least[0] * least[1], -abs(deltas[0] - deltas[1])


def tails_at(sizes: NDArray[np.int64], rate: float, delta: float) -> NDArray[np.float64]:
    """Return for each size n the chance F(k; n, rate) that its budget k at delta fails, rounded up."""
    small = sizes <= _EXACT_UP_TO
    n, limit = sizes[small].astype(np.float64), delta * (1.0 + _ROUNDING)
    first = beyond_mean(0.0, rate, delta)
    about = n * rate + (beyond_mean(1.0, rate, delta) - first) * np.sqrt(n) + first
    k = np.clip(np.floor(about), -1.0, n - 1.0)
    tail = _tails(k, n, rate)
    while (over := tail > limit).any():
        k[over] -= 1.0
        tail[over] = _tails(k[over], n[over], rate)
    rising = k < n - 1.0
    while rising.any():
        more = _tails(k[rising] + 1.0, n[rising], rate)
        places = np.flatnonzero(rising)[more <= limit]
        k[places], tail[places] = k[places] + 1.0, more[more <= limit]
        rising[:] = False
        rising[places] = k[places] < n[places] - 1.0
    found = np.full(sizes.size, delta)
    found[small] = np.minimum(tail * (1.0 + _ROUNDING), 1.0)
    return found


def common_share(sizes: NDArray[np.int64], rate: float, delta: float, most: float) -> float:
    """Return the largest share of delta, at most `most`, with which any sample fails with delta: eq. (111).

    It has four digits, and is at least 1 - (1 - delta)^(1/count), which is enough for samples of any size.
    """
    equal = shared_together(delta, sizes.size)
    different, counts = np.unique(sizes, return_counts=True)

    def fails(share: float) -> bool:
        with np.errstate(divide="ignore"):
            kept = float(counts @ np.log1p(-tails_at(different, rate, share)))
        return not kept * (1.0 + _ROUNDING) >= float(np.log1p(-delta))

    if most <= equal or not fails(most):
        return most
    low, high = place_among(equal, _SHARE_DIGITS), place_among(most, _SHARE_DIGITS) + 1
    low += bisect_left(range(low + 1, high), True, key=lambda at: fails(number_at(at, _SHARE_DIGITS)))
    return min(most, max(equal, number_at(low, _SHARE_DIGITS)))


def _tails(k: NDArray[np.float64], n: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    return np.where(k < 0.0, 0.0, betaincc(np.maximum(k, 0.0) + 1.0, n - np.maximum(k, 0.0), rate))


def place_among(value: float, digits: int) -> int:
    """Return the place of a number, rounded down to `digits` digits, among all numbers of so few digits."""
    short = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(float(value)))
    exponent = short.adjusted()
    least: int = 10 ** (digits - 1)
    return 9 * least * exponent + int(short.scaleb(digits - 1 - exponent)) - least


def number_at(place: int, digits: int) -> float:
    """Return the number of `digits` digits at this place, the inverse of `place_among`."""
    least = 10 ** (digits - 1)
    exponent, rest = divmod(place, 9 * least)
    return float(Decimal(rest + least).scaleb(exponent - digits + 1))


# Sums are whole numbers in units of 2^-192 of the term at k. Each of m steps rounds down by less than a unit,
# and the terms after a term of 0 sum to less than 2 (m + 1)^2, so 2^-128 of a sum covers all m below 2^31.
_UNIT: Final = 1 << 192
_GUARD_BITS: Final = 128
# a share below 2^-1075 is nearest to 0, and one that lacks less than 2^-54 is nearest to 1
_ENOUGH: Final = _UNIT << 1200
_NEARLY_ALL: Final = 60


def hypergeometric_cdf(k: int, n: int, marked: int, total: int) -> float:
    """Return the chance of at most k marked points among n drawn, to the nearest double: eq. (18)."""
    first, last = max(0, n + marked - total), min(marked, n)
    if not first <= k < last:
        return float(k >= last)
    more = total - marked - n
    above, term = 0, _UNIT
    for i in range(k, last):
        term = term * (marked - i) * (n - i) // ((i + 1) * (more + i + 1))
        above += term
        if above > _ENOUGH:
            return 0.0
        if not term:
            break
    below, term = 0, _UNIT
    most_above = above + ((above + _UNIT) >> _GUARD_BITS)
    for i in range(k, first - 1, -1):
        below += term
        if below > most_above << _NEARLY_ALL:
            return 1.0
        term = term * i * (more + i) // ((marked - i + 1) * (n - i + 1))
        if not term:
            break
    most_below = below + (below >> _GUARD_BITS)
    least, most = below / (below + most_above), most_below / (most_below + above)
    if least == most:
        return least
    # counts every way to draw: exact, and slow if there are many
    ways = term = comb(marked, first) * comb(total - marked, n - first)
    for i in range(first, k):
        term = term * (marked - i) * (n - i) // ((i + 1) * (more + i + 1))
        ways += term
    return ways / comb(total, n)
