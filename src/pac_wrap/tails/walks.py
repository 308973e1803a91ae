"""Labels that are looked at as they come: the chance that some look is within its budget, exactly.

Errors among the first n labels of a class are a walk of binomial steps. Knows no scores.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import check_positive, check_rate
from pac_wrap.errors import InputError
from pac_wrap.tails.bounds import most_errors, number_at, place_among

# with these the local delta takes less than a second, also for whoever only loads a certificate
MOST_LOOKS: Final = 2_000
MOST_LABELS: Final = 20_000
_DIGITS: Final = 8
# what rounding can do to a sum of positive terms, each the product of at most MOST_LABELS factors: eq. (40)
_ROUNDING: Final = 1e-10
# counts that are not followed have at most this probability in all, by Bernstein's inequality
_NEGLIGIBLE: Final = 1e-38
_LEAST: Final = 1e-80

Masses = NDArray[np.float64]


def looks_of(every: int, up_to: int) -> range:
    """Return how many labels of a class there are at each look; the numbers are checked first."""
    every, up_to = check_positive("every", every), check_positive("up_to", up_to)
    if up_to > MOST_LABELS:
        raise InputError(f"up_to must be at most {MOST_LABELS:,} labels of a class, got {up_to:,}")
    if every > up_to:
        raise InputError(f"every must not exceed up_to, got {every:,} and {up_to:,}; there would be no look")
    if up_to // every > MOST_LOOKS:
        raise InputError(
            f"every = {every:,} up to {up_to:,} makes {up_to // every:,} looks, and {MOST_LOOKS:,} are the"
            f" most; look every {-(-up_to // MOST_LOOKS):,}"
        )
    return range(every, up_to + 1, every)


def look_budgets(rate: float, local: float, looks: Sequence[int]) -> list[int]:
    """Return the error budget of every look at one local delta, -1 where there is none: eq. (38)."""
    return [_budget(n, rate, local) for n in looks]


def first_success(rate: float, looks: Sequence[int], budgets: Sequence[int]) -> Masses:
    """Return the chance of each look to be the first within its budget, none being -1: eq. (40)."""
    # budgets never fall from one look to the next
    found = np.zeros(len(looks))
    steps: dict[int, tuple[int, Masses]] = {}
    alive, low, at, last = np.ones(1), 0, 0, -1
    for j, (n, budget) in enumerate(zip(looks, budgets, strict=True)):
        if budget == last:  # errors never become fewer: where the budget stays, no success is new
            continue
        if n - at not in steps:
            steps[n - at] = _binomial(n - at, rate)
        offset, step = steps[n - at]
        alive, low, at, last = np.convolve(alive, step), low + offset, n, budget
        within = max(budget - low + 1, 0)
        found[j] = alive[:within].sum()
        # what exceeds the last budget never comes back, and what is beyond all likelihood is not followed
        end = min(budgets[-1], int(n * rate + 14.0 * sqrt(n * rate * (1.0 - rate)) + 100.0)) - low + 1
        alive, low = alive[within : max(end, within)], low + within
        if not alive.size:
            break
    return found


@lru_cache(maxsize=256)
def local_delta(rate: float, delta: float, every: int, up_to: int) -> float:
    """Return the delta for the budget of each look so that one delta covers them all: eq. (41).

    It is the largest number of eight digits, no larger than delta, for which a walk at the ceiling is within
    its budget at some look with probability at most delta.
    """
    rate, delta = check_rate("rate", rate), check_rate("delta", delta)
    looks = looks_of(every, up_to)
    # Bonferroni's share always does, one look takes all of it
    low, high = place_among(delta / len(looks), _DIGITS), place_among(delta, _DIGITS)
    least, most = (look_budgets(rate, number_at(place, _DIGITS), looks) for place in (low, high))
    if len(looks) == 1 or _covered(rate, delta, looks, most):
        return number_at(high, _DIGITS)
    while high - low > 1:
        middle = (low + high) // 2
        local = number_at(middle, _DIGITS)
        budgets = [
            a if a == b else _budget(n, rate, local) for n, a, b in zip(looks, least, most, strict=True)
        ]
        if budgets == least or (budgets != most and _covered(rate, delta, looks, budgets)):
            low, least = middle, budgets
        else:
            high, most = middle, budgets
    return number_at(low, _DIGITS)


def _covered(rate: float, delta: float, looks: Sequence[int], budgets: Sequence[int]) -> bool:
    """Return whether some look is within its budget with probability at most delta, rounding included."""
    ever = float(first_success(rate, looks, budgets).sum())
    return ever * (1.0 + _ROUNDING) + _NEGLIGIBLE <= delta


def _budget(n: int, rate: float, local: float) -> int:
    errors = most_errors(n, rate, local)
    return -1 if errors is None else errors


def _binomial(n: int, rate: float) -> tuple[int, Masses]:
    """Return the least count worth following, and the chances of that count and the next ones among n."""
    # each is a product of ratios, started at the most probable count: no term has lost digits
    mode = min(int((n + 1) * rate), n)
    odds = rate / (1.0 - rate)
    up, down = np.arange(mode, n, dtype=float), np.arange(mode, 0, -1, dtype=float)
    above = np.cumprod((n - up) / (up + 1.0) * odds)
    below = np.cumprod(down / ((n - down + 1.0) * odds))
    above, below = above[above > _LEAST], below[below > _LEAST]
    chances = np.concatenate((below[::-1], [1.0], above))
    return mode - below.size, chances / chances.sum()
