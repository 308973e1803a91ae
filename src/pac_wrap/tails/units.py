"""Evidence from units, whose points may depend on each other in any way: tests of a mean share of errors.

No scores are needed. A unit's share of errors is a number from 0 to 1, and units are independent draws.
"""

from functools import lru_cache
from math import inf, log, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.floats import ceiling_up
from pac_wrap.tails.bounds import LEAST_CEILING, min_samples

Shares = NDArray[np.float64]
# more than rounding can add to a logarithm of evidence
_ROUNDING: Final = 1e-9
# the ceilings that a bound of counted errors is sought among: this many, at equal steps of their log odds
_CEILINGS: Final = 2000
# samples of units in a forecast, and the most units of each
_SAMPLES: Final = 2_000
_MOST_UNITS: Final = 5_000
# how many factors of evidence are computed at once
_AT_ONCE: Final = 10**6


def refutes(shares: Shares, rate: Any, delta: float) -> Any:
    """Return whether units refute that the mean share of errors is `rate` or more, at level delta: eq. (152).

    The shares come in an order fixed beforehand; rows of shares, or a column of rates, get an answer each.
    """
    rates = np.asarray(rate, dtype=np.float64)
    few = sqrt(2.0 * log(1.0 / delta) / max(shares.shape[-1], 1))
    whole = 1.0 / (1.0 - rates)
    careful = np.minimum(whole, few / np.sqrt(rates * (1.0 - rates)))
    with np.errstate(divide="ignore"):
        bold, slow = (
            np.cumsum(np.log(np.maximum(1.0 + bet * (rates - shares), 0.0)), axis=-1)
            for bet in (whole, careful)
        )
    evidence = np.logaddexp(bold, slow) - log(2.0)
    return np.max(evidence, axis=-1, initial=-inf) >= log(1.0 / delta) + _ROUNDING


@lru_cache(maxsize=32)
def likely_units(
    rate: float, delta: float, guess: float, correlation: float, points: int, chance: float
) -> int | None:
    """Return how many units are likely enough to certify a ceiling, None if more than 5,000.

    A unit's share of errors is drawn from a beta-binomial distribution with the guessed mean and intraclass
    correlation, in 2,000 samples with a fixed seed.
    """
    random, spread = np.random.default_rng(0), (1.0 - correlation) / correlation
    shares = np.empty((_SAMPLES, 0))

    def enough(m: int) -> bool:
        nonlocal shares
        more = _SAMPLES, max(0, m - shares.shape[1])
        of_units = random.beta(guess * spread, (1.0 - guess) * spread, more)
        shares = np.concatenate([shares, random.binomial(points, of_units) / points], axis=1)
        step = max(1, _AT_ONCE // m)
        parts = (refutes(shares[i : i + step, :m], rate, delta) for i in range(0, _SAMPLES, step))
        return bool(sum(int(np.count_nonzero(part)) for part in parts) >= chance * _SAMPLES)

    low, high = 0, min_samples(rate, delta)
    while high <= _MOST_UNITS and not enough(high):
        if high == _MOST_UNITS:
            return None
        low, high = high, min(2 * high, _MOST_UNITS)
    if high > _MOST_UNITS:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def highest_mean(shares: Shares, delta: float) -> float:
    """Return an upper bound of the mean share of errors at confidence 1 - delta; 1 if there is none.

    Ceilings of a fixed ladder are tested from the highest down, each at delta, until one stands: eq. (153).
    """
    odds = np.linspace(log(1e6), log(LEAST_CEILING), _CEILINGS)
    found, step = 1.0, max(1, _AT_ONCE // max(shares.size, 1))
    for start in range(0, _CEILINGS, step):
        ladder = 1.0 / (1.0 + np.exp(-odds[start : start + step]))
        refuted = refutes(shares, ladder[:, None], delta)
        passed = refuted.size if refuted.all() else int(np.argmin(refuted))
        found = float(ladder[passed - 1]) if passed else found
        if passed < refuted.size:
            break
    return ceiling_up(found)
