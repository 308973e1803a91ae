"""The binomial tail, decided exactly, and the error budget that it allows. Knows no scores."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import comb, sqrt
from typing import Any, Final

from scipy.special import betainc, betaincc, ndtri

# SciPy's tail is good to 1e-14 (relative), but loses up to 3e-20 n where few errors meet a large n; what lies
# closer to delta than this, 1e-11 + 1e-18 n, is decided with 60 digits.
_DOUBT: Final = 1e-11
_DOUBT_PER_POINT: Final = 1e-18
# beyond so many points SciPy is not asked at all: it may return NaN, or take longer than 60 digits do
SCIPY_UP_TO: Final = 10**12
_SUBNORMAL: Final = 1e-305
_DIGITS: Final = 60
_EQUAL: Final = Decimal("1e-40")
_FIXED_POINT: Final = 10**50
# from so many errors and so many other points on, an integral takes less time than the sum
MANY: Final = 10**6
# the step of the trapezoidal rule, 1/41, and where it starts: eq. (23)
_STEPS_PER_UNIT: Final = 41
_FIRST: Final = -5 * _STEPS_PER_UNIT
_NEGLIGIBLE: Final = Decimal("1e-50")
_PI: Final = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
# from so many on, Stirling's series gives 60 digits
_FEW: Final = 1000
# coefficients of 1/m, 1/m^3, ... in Stirling's series of ln m!
_STIRLING: Final = tuple(
    Fraction(*pair)
    for pair in (
        (1, 12),
        (-1, 360),
        (1, 1260),
        (-1, 1680),
        (1, 1188),
        (-691, 360360),
        (1, 156),
        (-3617, 122400),
        (43867, 244188),
        (-174611, 125400),
    )
)


def cdf(k: int, n: int, p: float) -> float:
    """Probability of at most k errors among n when each occurs with probability p: eq. (1)."""
    if k >= n:
        return 1.0
    if n <= SCIPY_UP_TO:
        return float(betaincc(k + 1, n - k, p))
    with _wide_context(n):
        return float(_cdf_to_40_digits(k, n, Fraction(p)))


def cdf_at_most(k: int, n: int, p: float, delta: float) -> bool:
    """Whether F(k; n, p) <= delta, for the exact values of the doubles; what agrees to 40 digits is equal."""
    if n <= SCIPY_UP_TO and not doubtful(approximate := cdf(k, n, p), n, delta):
        return approximate <= delta
    return _exactly_at_most(k, n, Fraction(p), delta)


def sf_at_most(k: int, n: int, p: float, delta: float) -> bool:
    """Whether P(X >= k) = 1 - F(k - 1; n, p) <= delta, as exactly."""
    if k <= 0:
        return False
    if n <= SCIPY_UP_TO and not doubtful(approximate := float(betainc(k, n - k + 1, p)), n, delta):
        return approximate <= delta
    # at least k errors are at most n - k points without one
    return _exactly_at_most(n - k, n, 1 - Fraction(p), delta)


def doubtful(approximate: Any, n: int, delta: float) -> Any:
    """Whether a tail, or each of many, is too close to delta for SciPy to tell on which side it lies."""
    return delta <= _SUBNORMAL or abs(approximate - delta) <= (_DOUBT + _DOUBT_PER_POINT * n) * delta


def _exactly_at_most(k: int, n: int, p: Fraction, delta: float) -> bool:
    with _wide_context(n):
        bound = Decimal(delta)
        return _cdf_to_40_digits(k, n, p) <= bound + bound * _EQUAL


def _wide_context(n: int) -> AbstractContextManager[Context]:
    # the widest exponents, as p^k alone may be far below what the usual ones hold
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
    """Return F(k; n, p) in units of pmf(k), for k <= n p and many of both: eq. (22) by the rule of (23)."""
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
    """Return n over k in the same sense as its logarithm."""
    return +Decimal(comb(n, k)) if k < _FEW else _log_ways(n, k, digits).exp()


@lru_cache(maxsize=64)
def _log_ways(n: int, k: int, digits: int) -> Decimal:
    """Return ln(n over k) in the current context, whose precision is `digits`: it keys the cache."""
    return _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)


def _log_factorial(m: int) -> Decimal:
    x = Decimal(m)
    series = sum(
        (Decimal(c.numerator) / (c.denominator * x ** (2 * j + 1)) for j, c in enumerate(_STIRLING)),
        Decimal(0),
    )
    return (x + Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 + series


def most_errors(n: int, rate: float, delta: float) -> int | None:
    """Return the error budget of numbers that were checked."""
    if not cdf_at_most(0, n, rate, delta):
        return None
    beyond = beyond_mean(n, rate, delta)
    # beyond so many points a float is too coarse to start from
    guess = int(n * rate + beyond if n <= SCIPY_UP_TO else n * Fraction(rate) + Fraction(beyond))
    return last_true(lambda k: cdf_at_most(k, n, rate, delta), 0, n, guess)


def beyond_mean(n: float, rate: float, delta: float) -> float:
    """Return how far the error budget lies from n rate, about: Cornish and Fisher's expansion."""
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
