"""The hypergeometric tail P(X <= k): how many of n points drawn without replacement are marked."""

from math import comb
from typing import Final

# Sums are whole numbers in units of 2^-192 of the term at k. Each of m steps rounds down by less than a unit,
# and what follows a term of 0 sums to less than 2 (m + 1)^2, so that 2^-128 of a sum covers all m below 2^31.
_UNIT: Final = 1 << 192
_DOUBT: Final = 128
# a share below 2^-1075 is nearest to 0, and one that lacks less than 2^-54 is nearest to 1
_NOTHING: Final = _UNIT << 1200
_NEARLY_ALL: Final = 60


def hypergeometric_cdf(k: int, n: int, marked: int, total: int) -> float:
    """Return the chance of at most k marked points among n drawn without replacement: eq. (18).

    It is the double that is nearest to the exact quotient.

    >>> hypergeometric_cdf(1, 3, 2, 6)
    0.8
    """
    first, last = max(0, n + marked - total), min(marked, n)
    if not first <= k < last:
        return float(k >= last)
    more = total - marked - n
    above, term = 0, _UNIT
    for i in range(k, last):
        term = term * (marked - i) * (n - i) // ((i + 1) * (more + i + 1))
        above += term
        if above > _NOTHING:
            return 0.0
        if not term:
            break
    below, term = 0, _UNIT
    most_above = above + ((above + _UNIT) >> _DOUBT)
    for i in range(k, first - 1, -1):
        below += term
        if below > most_above << _NEARLY_ALL:
            return 1.0
        term = term * i * (more + i) // ((marked - i + 1) * (n - i + 1))
        if not term:
            break
    most_below = below + (below >> _DOUBT)
    least, most = below / (below + most_above), most_below / (most_below + above)
    return least if least == most else _of_all_ways(k, n, marked, total)


def _of_all_ways(k: int, n: int, marked: int, total: int) -> float:
    """Return the same by counting every way to draw: exact, and slow where there are many."""
    first = max(0, n + marked - total)
    ways = term = comb(marked, first) * comb(total - marked, n - first)
    for i in range(first, k):
        term = term * (marked - i) * (n - i) // ((i + 1) * (total - marked - n + i + 1))
        ways += term
    return ways / comb(total, n)
