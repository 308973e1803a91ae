"""The binomial tail F(k; n, p) = P(X <= k), and whether it is at most delta, decided exactly."""

from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import factorial
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
    with localcontext(prec=_DIGITS + len(str(n))):
        bound = Decimal(delta)
        return _cdf_to_40_digits(k, n, Fraction(p)) <= bound + bound * _EQUAL


def _cdf_to_40_digits(k: int, n: int, p: Fraction) -> Decimal:
    if k >= n or p == 0:
        return Decimal(1)
    if k > n * p:  # the other tail has fewer terms that matter
        return 1 - _cdf_to_40_digits(n - k - 1, n, 1 - p)
    hit, digits = Decimal(p.numerator) / p.denominator, getcontext().prec
    log_pmf = _log_factorial(n, digits) - _log_factorial(k, digits) - _log_factorial(n - k, digits)
    log_pmf += k * hit.ln() + (n - k) * (1 - hit).ln()
    # pmf(i - 1) / pmf(i) = i (1 - p) / ((n - i + 1) p), summed downwards from i = k in units of pmf(k)
    miss = p.denominator - p.numerator
    term = total = _FIXED_POINT
    for i in range(k, 0, -1):
        term = term * i * miss // ((n - i + 1) * p.numerator)
        if not term:
            break
        total += term
    return log_pmf.exp() * total / _FIXED_POINT


@lru_cache(maxsize=64)
def _log_factorial(m: int, digits: int) -> Decimal:
    """Return ln m! in the current context, whose precision is `digits`: it keys the cache."""
    if m < 1000:
        return Decimal(factorial(m)).ln()
    x = Decimal(m)
    series = sum(
        (Decimal(c.numerator) / (c.denominator * x ** (2 * j + 1)) for j, c in enumerate(_STIRLING)),
        Decimal(0),
    )
    return (x + Decimal("0.5")) * x.ln() - x + (2 * _PI).ln() / 2 + series
