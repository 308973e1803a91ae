"""The error budget: how many errors so many labelled points may show under a ceiling."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.errors import InputError
from pac_wrap.method.tails.binomial import error_budget, exact_confidence
from pac_wrap.method.tails.bounds import min_samples, upper_bound

# no number of labels certifies less
LEAST_CEILING: Final = 1e-15


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
