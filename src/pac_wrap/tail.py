"""The binomial tail F(k; n, p) = P(X <= k), and whether it is at most delta, decided exactly."""

from decimal import MAX_EMAX, MIN_EMIN, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Final

from scipy.special import betaincc

# SciPy's tail is good to 1e-14 (relative), but loses up to 3e-20 n where few errors meet a large n; what lies
# closer to delta than this, 1e-11 + 1e-18 n, is decided with 60 digits.
_DOUBT: Final = 1e-11
_DOUBT_PER_POINT: Final = 1e-18
_SUBNORMAL: Final = 1e-305
_DIGITS: Final = 60
_EQUAL: Final = Decimal("1e-40")
_FIXED_POINT: Final = 10**50
_PI: Final = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
# coefficients of 1/m, 1/m^3, ... in Stirling's series of ln m!; from m = 1000 on, ten give 60 digits
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
    return 1.0 if k >= n else float(betaincc(k + 1, n - k, p))


def cdf_at_most(k: int, n: int, p: float, delta: float) -> bool:
    """Whether F(k; n, p) <= delta, taking p and delta as the exact values of their doubles.

    Values that agree with delta to 40 digits count as equal.
    """
    approximate = cdf(k, n, p)
    if abs(approximate - delta) > (_DOUBT + _DOUBT_PER_POINT * n) * delta and delta > _SUBNORMAL:
        return approximate <= delta
    # the widest exponents, as p^k alone may be far below what the usual ones hold
    with localcontext(prec=_DIGITS + len(str(n)), Emin=MIN_EMIN, Emax=MAX_EMAX):
        bound = Decimal(delta)
        return _cdf_to_40_digits(k, n, Fraction(p)) <= bound + bound * _EQUAL


def _cdf_to_40_digits(k: int, n: int, p: Fraction) -> Decimal:
    if k >= n or p == 0:
        return Decimal(1)
    if k > n * p:  # the other tail has fewer terms that matter
        return 1 - _cdf_to_40_digits(n - k - 1, n, 1 - p)
    hit = Decimal(p.numerator) / p.denominator
    pmf = _ways(n, min(k, n - k), getcontext().prec) * hit**k * (1 - hit) ** (n - k)
    # pmf(i - 1) / pmf(i) = i (1 - p) / ((n - i + 1) p), summed downwards from i = k in units of pmf(k)
    hits, misses = p.numerator, p.denominator - p.numerator
    above, below = k * misses, (n - k + 1) * hits
    term = total = _FIXED_POINT
    while term := term * above // below:
        total += term
        above, below = above - misses, below + hits
    return pmf * total / _FIXED_POINT


@lru_cache(maxsize=64)
def _ways(n: int, k: int, digits: int) -> Decimal:
    """Return n over k in the current context, whose precision is `digits`: it keys the cache."""
    if k < 1000:
        return +Decimal(comb(n, k))
    return (_log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)).exp()


def _log_factorial(m: int) -> Decimal:
    x = Decimal(m)
    series = sum(
        (Decimal(c.numerator) / (c.denominator * x ** (2 * j + 1)) for j, c in enumerate(_STIRLING)),
        Decimal(0),
    )
    return (x + Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 + series
