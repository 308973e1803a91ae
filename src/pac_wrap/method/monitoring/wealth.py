"""The wealth of a bet that a rate is above its ceiling, as a function of two counts, and what it bounds."""

from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincc, gammaln, kl_div

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.tails.binomial import check_errors

Doubles = NDArray[np.float64]
# labels up to which a logarithm of the wealth is right to 1e-6
MOST_LABELS: Final = 10**9
_HALF_LOG_TWO_PI: Final = 0.5 * log(2.0 * np.pi)
# from here on Stirling's series has all digits of a double
_STIRLING_FROM: Final = 16.0
# tails below have lost digits, or are 0
_TINY_TAIL: Final = 1e-250
_FRACTIONS: Final = 2_000
_EXACT: Final = 1e-15
_HALVINGS: Final = 60


def log_wealth(errors: ArrayLike, labels: ArrayLike, ceiling: float) -> Doubles:
    """Return the logarithm of the wealth after so many errors among so many labels: eq. (81).

    W(k, n) = F(k; n + 1, e) / ((1 - e) (n + 1) b(k; n, e)), the likelihood ratio of all rates above the
    ceiling, mixed uniformly, against the ceiling itself. It depends on the two counts alone.

    >>> np.exp(log_wealth([0, 1, 2], [0, 1, 2], 0.05)).round(3).tolist()
    [1.0, 10.5, 140.333]
    """
    k, n = np.broadcast_arrays(np.asarray(errors, dtype=np.float64), np.asarray(labels, dtype=np.float64))
    above, below, total = k + 1.0, n - k + 1.0, n + 2.0
    tail = np.asarray(betaincc(above, below, ceiling))
    far = tail < _TINY_TAIL
    with np.errstate(divide="ignore"):
        # by Stirling's formula, so that no two large numbers are subtracted
        found = (
            kl_div(above, total * ceiling)
            + kl_div(below, total * (1.0 - ceiling))
            + 0.5 * np.log(total / (above * below))
            + _HALF_LOG_TWO_PI
            + (_stirling(above) + _stirling(below) - _stirling(total))
            + (log(ceiling) + np.log(tail))
        )
    if far.any():
        found = np.where(far, 0.0, found)
        found[far] = log(ceiling) + np.log(_fraction(below[far], above[far], 1.0 - ceiling) / below[far])
    return np.asarray(found)


def confidence_sequence(errors: int, labels: int, alpha: float) -> tuple[float, float]:
    """Return bounds of a rate that hold at all times, each but for a chance of alpha: eq. (87).

    Each end is where the wealth of a bet against it reaches 1/alpha. A rate that stays the same lies between
    them at all times; of one that changes, the largest is never below the lower end.

    Parameters
    ----------
    errors, labels : int
        How many errors were counted, among how many labels.
    alpha : float
        The chance that one end is ever wrong.

    Returns
    -------
    tuple of float
        The lower and the upper end.

    Raises
    ------
    InputError
        If a number is none of its kind, or errors exceed labels.

    Examples
    --------
    >>> [round(end, 4) for end in confidence_sequence(12, 100, 0.05)]
    [0.0403, 0.2317]
    """
    labels = check_count("labels", labels)
    errors = check_errors(errors, labels)
    bar = -log(check_rate("alpha", alpha))
    return _lower(errors, labels, bar), 1.0 - _lower(labels - errors, labels, bar)


def _lower(errors: int, labels: int, bar: float) -> float:
    """Return the largest rate whose bet has reached the bar, 0 if there is none; it is rounded down."""
    low, high = 0.0, errors / labels if labels else 0.0
    for _ in range(_HALVINGS if high else 0):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        reached = float(log_wealth(errors, labels, middle)) >= bar
        low, high = (middle, high) if reached else (low, middle)
    return low


def _stirling(x: Doubles) -> Doubles:
    """Return ln Gamma(x) - (x - 1/2) ln x + x - (ln 2 pi) / 2."""
    small = np.minimum(x, _STIRLING_FROM)
    exact = gammaln(small) - ((small - 0.5) * np.log(small) - small + _HALF_LOG_TWO_PI)
    inverse = 1.0 / x
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return np.where(x < _STIRLING_FROM, exact, series)


def _fraction(a: Doubles, b: Doubles, x: float) -> Any:
    """Return the continued fraction of the incomplete beta function, by Lentz's method: eq. (81)."""
    c, d = np.ones_like(a), 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d.copy()
    for m in range(1, _FRACTIONS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d, c = 1.0 / (1.0 + step * d), 1.0 + step / c
            value *= c * d
        if np.all(np.abs(c * d - 1.0) < _EXACT):
            break
    return value
