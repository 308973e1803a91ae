"""The error budget: how many errors so many labelled points may show, and how classes share a confidence."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.base.rounding import confidence_left, kept_together, of_few_digits, shared_together
from pac_wrap.errors import InputError
from pac_wrap.method.tails.binomial import cdf, error_budget, exact_confidence
from pac_wrap.method.tails.bounds import min_samples, upper_bound

# no number of labels certifies less
LEAST_CEILING: Final = 1e-15
# how many shares of a delta are tried for the normal points
_SHARES: Final = 16
# less of a delta makes no difference
_NOTHING: Final = 1e-100


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
    class is held, the deltas are as alike as its budget allows.

    >>> one, other = Sharing((126,), (0.05,)), Sharing((59,), (0.05,))
    >>> split_confidence(0.95, one, other)
    (0.0015822029, 0.048515514)
    """
    sides = normal, anomalous
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
