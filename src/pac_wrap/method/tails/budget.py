"""The error budget: how many errors so many labelled points may show, and how classes and groups share it."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.base.rounding import confidence_left, kept_together, of_few_digits, shared_together
from pac_wrap.errors import InputError
from pac_wrap.method.tails.binomial import beyond_mean, cdf, error_budget, exact_confidence
from pac_wrap.method.tails.bounds import min_samples, upper_bound

# no number of labels certifies less
LEAST_CEILING: Final = 1e-15
# how many shares of a delta are tried for the normal points
_SHARES: Final = 16
# less of a delta makes no difference
_NOTHING: Final = 1e-100
# SciPy's tails are good to 1e-11 up to so many points; beyond, a tail at its budget is as good as delta
_EXACT_UP_TO: Final = 10**6
_DOUBT: Final = 1e-9
# a common delta is looked for among numbers of four digits, so that every machine finds the same
_MANTISSAS: Final = 9000


@dataclass(frozen=True, slots=True)
class Budget:
    """The most errors that n points of one class may show under a ceiling, F(errors; n, rate) <= delta.

    Made by `Budget.of` or `Promise.budget`.

    Parameters
    ----------
    n : int
        How many labelled points there are.
    rate, delta : float
        The ceiling, and the chance that it does not hold.
    errors : int or None
        The error budget; None where n is too small.
    confidence : float
        The exact confidence 1 - F(errors; n, rate): eq. (3).

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

    def __post_init__(self) -> None:
        check_count("n", self.n)
        check_rate("rate", self.rate)
        check_rate("delta", self.delta)
        if not 0.0 <= self.confidence <= 1.0:
            raise InputError(f"confidence must lie between 0 and 1, got {self.confidence!r}")

    @classmethod
    def of(cls, n: int, rate: float, delta: float) -> "Budget":
        """Return the budget of n points: eq. (2).

        Parameters
        ----------
        n : int
            How many labelled points there are.
        rate, delta : float
            The ceiling, and the chance that it does not hold.

        Returns
        -------
        Budget
        """
        # refused here where it is no number: the cache could not even look it up
        return _budget(check_count("n", n), check_rate("rate", rate), check_rate("delta", delta))

    @classmethod
    def spent(cls, errors: int, n: int, delta: float) -> "Budget | None":
        """Return the smallest rate for which `errors` is within budget, or None if that is no less than 1.

        A rate below the least ceiling that can be asked for is raised to it.

        Parameters
        ----------
        errors, n : int
            How many errors were counted, among how many points.
        delta : float
            The chance that the rate is larger.

        Returns
        -------
        Budget or None
        """
        rate = max(upper_bound(errors, n, delta), LEAST_CEILING)
        return None if rate >= 1.0 else cls.of(n, rate, delta)

    @property
    def missing(self) -> int:
        """How many more labels the ceiling needs before anything can be declared."""
        return max(0, min_samples(self.rate, self.delta) - self.n)


@lru_cache(maxsize=256)
def _budget(n: int, rate: float, delta: float) -> Budget:
    errors = error_budget(n, rate, delta)
    return Budget(n, rate, delta, errors, exact_confidence(n, rate, errors))


@dataclass(frozen=True, slots=True)
class Sharing:
    """A class that shares a confidence with the other: how many points each of its ceilings has.

    Parameters
    ----------
    points : tuple of int
        The points of each promise; one for a class without kinds.
    rates : tuple of float
        The ceilings.
    counted : bool
        Whether the ceilings are bounds of counted errors, since the other class is held.
    whole : bool
        Whether the last promise is about all kinds together.
    """

    points: tuple[int, ...]
    rates: tuple[float, ...]
    counted: bool = False
    whole: bool = False

    @property
    def least(self) -> float:
        """The least delta that leaves every promise a budget, with eight digits."""
        tails = (cdf(0, n, rate) for n, rate in zip(self.points, self.rates, strict=True))
        return of_few_digits(max(_NOTHING, *tails), up=True)

    def budgets(self, delta: float) -> list[int | None]:
        """Return the error budget of each promise at a delta."""
        return [error_budget(n, rate, delta) for n, rate in zip(self.points, self.rates, strict=True)]

    def keeps(self, delta: float) -> Decimal:
        """Return how surely all promises of the class hold at a delta each: eqs. (99) and (100)."""
        left = confidence_left(delta)
        if self.counted:
            kinds = len(self.points) - self.whole
            return kept_together(*[left] * kinds) - (1 - left) * self.whole
        budgets = self.budgets(delta)
        if None in budgets:  # the class has no threshold, and cannot fail
            return Decimal(1)
        cases = zip(self.points, self.rates, budgets, strict=True)
        return max(left, min(Decimal(repr(exact_confidence(*case))) for case in cases))

    def rest(self, needed: Decimal) -> float:
        """Return the largest delta, with eight digits, at which the class keeps what is needed; or 0."""
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
    """Return the deltas of two classes that keep a confidence together: eqs. (102) and (103).

    They depend on the numbers of points and on the ceilings, never on a score. Both classes have a budget if
    any deltas leave them one; among such the budgets, each plus one, have the largest product. Where one
    class is held, the deltas are as alike as its budget allows; with a ceiling on all kinds together they
    are the same whatever the numbers are.

    >>> one, other = Sharing((126,), (0.05,)), Sharing((59,), (0.05,))
    >>> split_confidence(0.95, one, other)
    (0.0015822029, 0.048515514)
    """
    sides = normal, anomalous
    if normal.whole or anomalous.whole:
        # a ceiling on all kinds together holds on average over their numbers, which may not decide its delta
        equal = equal_deltas(confidence)
        needed = Decimal(repr(confidence)) / confidence_left(equal)
        low, high = (side.rest(needed) if side.counted else equal for side in sides)
        return low, high
    splits = list(_splits(confidence, sides))
    return max(splits, key=lambda deltas: _rank(sides, deltas)) if splits else (equal_deltas(confidence),) * 2


def equal_deltas(confidence: float) -> float:
    """Return the delta of each of two independent classes that keep a confidence together, with eight digits.

    >>> equal_deltas(0.95)
    0.025320565
    """
    return of_few_digits(shared_together(float(confidence_left(confidence)), 2))


def _splits(confidence: float, sides: tuple[Sharing, Sharing]) -> Iterator[tuple[float, float]]:
    """Yield deltas that keep a confidence: each starts with a share of one class, and uses what is left."""
    total = confidence_left(confidence)
    held = 1 if sides[0].counted else 0
    starts = [(held, of_few_digits(total * share / _SHARES)) for share in range(1, _SHARES)]
    starts += [(place, one.least) for place, one in enumerate(sides) if not one.counted]
    for first, delta in starts:
        if not 0.0 < delta < total or None in sides[first].budgets(delta):
            continue  # a class that lacks labels takes nothing from the other
        # what the first does not use goes to the other, and what that does not use comes back
        one, other, asked = sides[first], sides[1 - first], Decimal(repr(confidence))
        rest = other.rest(asked / one.keeps(delta))
        if rest > 0.0:
            back = one.rest(asked / other.keeps(rest))
            # eight digits may be too few for the budget that the first began with
            own = back if back and one.budgets(back) == one.budgets(delta) else max(back, delta)
            yield (own, rest) if first == 0 else (rest, own)


def _rank(sides: tuple[Sharing, Sharing], deltas: tuple[float, float]) -> tuple[int, int, float]:
    """Return how good a split is: classes with budgets, the product of budgets, and how alike it is."""
    found = [side.budgets(delta) for side, delta in zip(sides, deltas, strict=True)]
    with_budgets = sum(
        side.counted or None not in budgets for side, budgets in zip(sides, found, strict=True)
    )
    room = [min((budget or 0) + 1 for budget in budgets) for budgets in found]
    held = any(side.counted for side in sides)
    return with_budgets, 0 if held else room[0] * room[1], -abs(deltas[0] - deltas[1])


def tails_at(sizes: NDArray[np.int64], rate: float, delta: float) -> NDArray[np.float64]:
    """Return for each size the exact chance F(k; n, rate) that its budget at delta fails, never less.

    Without a budget nothing can fail.

    >>> tails_at(np.array([58, 59, 100, 2000]), 0.05, 0.05).round(6).tolist()
    [0.0, 0.048495, 0.037081, 0.042315]
    """
    small = sizes <= _EXACT_UP_TO
    n, limit = sizes[small].astype(np.float64), delta * (1.0 + _DOUBT)
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
    found[small] = np.minimum(tail * (1.0 + _DOUBT), 1.0)
    return found


def keeps_together(sizes: NDArray[np.int64], rate: float, share: float, delta: float) -> bool:
    """Return whether samples of these sizes, each with this share, fail together with delta: eq. (111)."""
    return _keep(*np.unique(sizes, return_counts=True), rate, share, delta)


def common_share(sizes: NDArray[np.int64], rate: float, delta: float, most: float) -> float:
    """Return the largest share of four digits up to `most` at which all samples fail with delta: eq. (111).

    Never less than 1 - (1 - delta)^(1/count), at which they do whatever their sizes are.

    >>> common_share(np.array([100, 100]), 0.05, 0.05, 0.05), round(shared_together(0.05, 2), 4)
    (0.03708, 0.0253)
    >>> common_share(np.array([100, 20]), 0.05, 0.05, 0.05)
    0.05
    """
    equal = shared_together(delta, sizes.size)
    different, counts = np.unique(sizes, return_counts=True)
    if most <= equal or _keep(different, counts, rate, most, delta):
        return most
    low, high = _place(equal), _place(most) + 1
    while high - low > 1:
        middle = (low + high) // 2
        keeps = _keep(different, counts, rate, _number(middle), delta)
        low, high = (middle, high) if keeps else (low, middle)
    return min(most, max(equal, _number(low)))


def _keep(
    sizes: NDArray[np.int64], counts: NDArray[np.int64], rate: float, share: float, delta: float
) -> bool:
    with np.errstate(divide="ignore"):
        kept = float(counts @ np.log1p(-tails_at(sizes, rate, share)))
    return kept * (1.0 + _DOUBT) >= float(np.log1p(-delta))


def _tails(k: NDArray[np.float64], n: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    return np.where(k < 0.0, 0.0, betaincc(np.maximum(k, 0.0) + 1.0, n - np.maximum(k, 0.0), rate))


def _place(number: float) -> int:
    """Return the place of a number, rounded down to four digits, among all such."""
    digits, exponent = f"{number:.17e}".split("e")
    return _MANTISSAS * int(exponent) + int(digits[0] + digits[2:5]) - 1000


def _number(place: int) -> float:
    exponent, mantissa = divmod(place, _MANTISSAS)
    return float(f"{mantissa + 1000}e{exponent - 3}")
