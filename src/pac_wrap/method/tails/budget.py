"""The error budget: how many errors so many labelled points may show under a ceiling; and many at once."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.base.rounding import shared_together
from pac_wrap.errors import InputError
from pac_wrap.method.tails.binomial import beyond_mean, error_budget, exact_confidence
from pac_wrap.method.tails.bounds import min_samples, upper_bound

# no number of labels certifies less
LEAST_CEILING: Final = 1e-15
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
