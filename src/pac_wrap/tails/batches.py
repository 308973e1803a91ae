"""How many of the next points reach a threshold: one at a fixed rank, or every threshold together.

Calibration points and next points are draws from one distribution, so only their order matters.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pac_wrap.base.arguments import check_count, check_positive, check_rate
from pac_wrap.errors import InputError
from pac_wrap.tails.bounds import hypergeometric_cdf, number_at, place_among

Counts = NDArray[np.int64]

# beyond this many pairs of points the envelope takes more than half a minute
MOST_PAIRS: Final = 10**8
_DIGITS: Final = 4
# more than rounding can take away from a sum of positive terms, relative, for every step of a path
_ROUNDING: Final = 1e-15


def batch_tail(v: int, n: int, k: int, m: int) -> float:
    """Return the chance that v or more of the next m points lie above the (k + 1)-th largest of n: eq. (143).

    It is the nearest double if no scores are equal, else an upper bound. k and m must not depend on scores.

    Parameters
    ----------
    v : int
        The number of points above the threshold.
    n, k : int
        The number of calibration points, and the error budget: at most k of them lie above the threshold.
    m : int
        The number of points that come next.

    Examples
    --------
    >>> round(batch_tail(30, 1000, 38, 500), 4)
    0.0379
    """
    v, n, k, m = (check_count(name, value) for name, value in (("v", v), ("n", n), ("k", k), ("m", m)))
    if k >= n:
        raise InputError(f"k must be less than n, got {k:,} errors among {n:,} points")
    return 0.0 if v > m else hypergeometric_cdf(k, k + v, n, n + m)


def batch_envelope(n: int, m: int, delta: float = 0.05) -> Counts:
    """Return how many of m normal points may reach a threshold, at all thresholds together: eq. (144).

    The number at place c is for a threshold that c of the n calibration points reach: eq. (146). All hold
    together except with chance delta, so the threshold may be chosen after looking at the batch.

    Parameters
    ----------
    n, m : int
        The number of calibration points, and the most normal points that the batch may hold.
    delta : float
        The chance that some bound does not hold.

    Examples
    --------
    >>> batch_envelope(1000, 500, 0.05)[[0, 1, 10, 38, 1000]].tolist()
    [5, 7, 16, 37, 500]
    """
    n, m, delta = check_positive("n", n), check_count("m", m), check_rate("delta", delta)
    if n * m > MOST_PAIRS:
        raise InputError(
            f"n times m must be at most {MOST_PAIRS:,}, got {n:,} and {m:,}; use fewer calibration points"
        )
    # an equal share of delta for every rank is always small enough
    low, high = place_among(delta / (2 * n), _DIGITS), place_among(delta, _DIGITS) + 1
    while high - low > 1:
        middle = (low + high) // 2
        within = batch_failure(n, m, _limits(n, m, number_at(middle, _DIGITS)), delta) <= delta
        low, high = (middle, high) if within else (low, middle)
    return _limits(n, m, number_at(low, _DIGITS))


def _limits(n: int, m: int, level: float) -> Counts:
    """Return for each rank the number of points above it that is exceeded with this chance: eq. (144)."""
    logs = gammaln(np.arange(1.0, n + m + 2.0))  # of 0!, 1!, ...
    found = np.full(n + 1, m, dtype=np.int64)
    above = np.arange(m + 1)
    start = 0
    for j in range(1, n + 1):
        # j - 1 calibration points and v others come first, then the j-th
        v = above[start:]
        ways = logs[v + j - 1] - logs[v] - logs[j - 1] + logs[n - j + m - v] - logs[m - v] - logs[n - j]
        tail = np.cumsum(np.exp(ways - (logs[n + m] - logs[n] - logs[m]))[::-1])[::-1]
        # the bound of a rank is at least that of the rank above it
        start += int(np.argmax(np.append(tail[1:], 0.0) <= level))
        found[j - 1] = start
    return found


def batch_failure(n: int, m: int, limits: Counts, enough: float = 1.0) -> float:
    """Return the chance that over limits[i] of m points lie above the (i + 1)-th largest of n: eq. (145).

    Points are taken from the largest on, and every step that first passes a limit is added. The sum is
    rounded up, and ends once it exceeds `enough`.
    """
    alive, first, failed = np.ones(1), 0, 0.0
    for taken in range(n + m):
        i = np.arange(first, first + alive.size)  # calibration points among those taken
        others = taken - i
        left = n + m - taken
        other, calibration = alive * (m - others) / left, alive * (n - i) / left
        passed = others >= limits[i]
        failed += float(other[passed].sum())
        if failed > enough:
            break
        other[passed] = 0.0
        alive = np.append(other, 0.0) + np.append(0.0, calibration)
        # states that cannot be, and those beyond their limit, are dropped at both ends
        possible = np.flatnonzero(alive)
        if not possible.size:
            break
        alive, first = alive[possible[0] : possible[-1] + 1], first + int(possible[0])
    return min(failed * (1.0 + (n + m) * _ROUNDING), 1.0)
