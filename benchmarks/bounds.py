"""Error budgets other than ours: the most errors among n that each bound allows for a ceiling and a delta."""

from collections.abc import Callable
from math import ceil, e, exp, log, log1p, sqrt

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

# whether k errors among n keep a ceiling at a delta
Bound = Callable[[int, int, float, float], bool]
# the most errors among n, or None if n is too small
Budget = Callable[[int, float, float], int | None]


def exact_budget(n: int, ceiling: float, delta: float) -> int | None:
    """Return the most errors that the exact binomial tail, here SciPy's, allows."""
    allowed = int(np.count_nonzero(binom.cdf(np.arange(n), n, ceiling) <= delta))
    return allowed - 1 if allowed else None


def exact_least(ceiling: float, delta: float) -> int:
    """Return the least n with (1 - ceiling)^n <= delta: fewer labels cannot tell, whatever the method.

    >>> exact_least(0.05, 0.05), exact_least(0.01, 0.05)
    (59, 299)
    """
    return ceil(log(delta) / log1p(-ceiling))


def bounded(bound: Bound, n: int, ceiling: float, delta: float) -> int | None:
    """Return the most errors among n for which a bound still keeps the ceiling."""
    return max((k for k in range(int(n * ceiling) + 1) if bound(k, n, ceiling, delta)), default=None)


def hoeffding(k: int, n: int, ceiling: float, delta: float) -> bool:
    """Return whether Hoeffding's upper bound of the rate is at most the ceiling."""
    return k / n + sqrt(log(1.0 / delta) / (2.0 * n)) <= ceiling


def bentkus(k: int, n: int, ceiling: float, delta: float) -> bool:
    """Return whether the p-value of Hoeffding and Bentkus, for any loss in [0, 1], is at most delta."""
    rate = k / n
    if rate >= ceiling:
        return False
    entropy = (1.0 - rate) * log((1.0 - rate) / (1.0 - ceiling)) + (rate * log(rate / ceiling) if k else 0.0)
    return min(exp(-n * entropy), e * float(binom.cdf(k, n, ceiling))) <= delta


def approximate(k: int, n: int, ceiling: float, delta: float) -> bool:
    """Return whether the upper bound by the normal approximation (Wald) is at most the ceiling."""
    rate = k / n
    return k > 0 and rate - float(ndtri(delta)) * sqrt(rate * (1.0 - rate) / n) <= ceiling
