"""What several test files share: exact tails to compare with, how scores are drawn, how a refusal is read."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, takewhile
from math import comb, floor, inf, nextafter
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.base.floats import from_order_key
from pac_wrap.errors import InputError, UpsideDownWarning, VacuousWarning
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Rule, Thresholds
from pac_wrap.method.strategies.interface import Abstain, Claim, Hold, OneGroup, Strategy, asked_of
from pac_wrap.method.strategies.raising import Algorithm1, Raise
from pac_wrap.tails import Budget

Floats = NDArray[np.float64]
LARGEST = sys.float_info.max


def exact_tail(k: int, n: int, p: float) -> Fraction:
    """Return F(k; n, p) as a fraction, p being the exact value of its double."""
    hit, scale = p.as_integer_ratio()
    total = sum(comb(n, i) * hit**i * (scale - hit) ** (n - i) for i in range(k + 1))
    return Fraction(total, scale**n)


def exact_budget(n: int, rate: float, delta: float) -> int | None:
    """Return max{k : F(k; n, rate) <= delta} by trying every k, in whole numbers."""
    hit, scale = rate.as_integer_ratio()
    weights = (comb(n, i) * hit**i * (scale - hit) ** (n - i) for i in range(n + 1))
    limit = floor(Fraction(delta) * scale**n)
    within = sum(1 for _ in takewhile(lambda total: total <= limit, accumulate(weights)))
    return within - 1 if within else None


def tail_60(k: int, n: int, p: float) -> Any:
    """Return F(k; n, p) to 60 digits; the sum runs away from the mode and stops when it no longer changes."""
    if k >= n:
        return mpmath.mpf(1)
    with mpmath.workdps(80):
        hit = mpmath.mpf(p)
        odds = hit / (1 - hit)
        lower = k <= n * p
        i = k if lower else k + 1
        log_weight = mpmath.loggamma(n + 1) - mpmath.loggamma(i + 1) - mpmath.loggamma(n - i + 1)
        term = mpmath.exp(log_weight + i * mpmath.log(hit) + (n - i) * mpmath.log(1 - hit))
        total = mpmath.mpf(0)
        while term > total * mpmath.mpf(10) ** -65:
            total += term
            if lower:
                term *= i / ((n - i + 1) * odds)
                i -= 1
            else:
                term *= (n - i) * odds / (i + 1)
                i += 1
        return total if lower else 1 - total


def around(value: Any) -> tuple[float, float, float]:
    """Return the double nearest to value, between its two neighbours."""
    nearest = float(value)
    return nextafter(nearest, -inf), nearest, nextafter(nearest, inf)


def refusal(action: Callable[..., object], *given: object, **options: object) -> str:
    """Return what the InputError says that action must raise of what it is given."""
    with pytest.raises(InputError) as caught:
        action(*given, **options)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def calibrate_quietly(
    normal: Any, anomalous: Any, guarantee: Guarantee | None = None, **options: Any
) -> Certificate:
    """Return the certificate of scores drawn at random, which may well be upside down, or too few."""
    with warnings.catch_warnings():
        for kind in (UpsideDownWarning, VacuousWarning):
            warnings.simplefilter("ignore", kind)
        certificate: Certificate = calibrate(normal, anomalous, guarantee, **options)
        return certificate


# few distinct values, so that ties are the rule; neighbouring doubles, both zeros and both infinities
_TIED = st.sampled_from(
    [-inf, -1e300, -1.0, -0.0, 0.0, 5e-324, 1.0, nextafter(1.0, 2.0), 2.5, 1e300, inf],
)
# the largest double is left out: the next one is inf, where an alarm is never given
score = _TIED | st.floats(allow_nan=False).filter(lambda value: value != LARGEST)
rate = st.floats(0.05, 0.9)
guarantee = st.builds(Guarantee, max_fpr=rate, max_fnr=rate, delta_fpr=rate, delta_fnr=rate)


def scores(min_size: int = 0, max_size: int = 30) -> st.SearchStrategy[Floats]:
    """Draw float64 scores with ties and infinities."""
    return st.lists(score, min_size=min_size, max_size=max_size).map(lambda x: np.array(x, dtype=np.float64))


def scores_of_any_type(min_size: int = 0, max_size: int = 30) -> st.SearchStrategy[NDArray[Any]]:
    """Draw scores as float64, float32, 64-bit integers or small unsigned ones."""

    def arrays(elements: st.SearchStrategy[Any], dtype: Any) -> st.SearchStrategy[NDArray[Any]]:
        return st.lists(elements, min_size=min_size, max_size=max_size).map(lambda x: np.array(x, dtype))

    return st.one_of(
        scores(min_size, max_size),
        arrays(
            st.sampled_from([-inf, -0.1, 0.0, 0.1, 0.7, inf]) | st.floats(-(2.0**100), 2.0**100, width=32),
            np.float32,
        ),
        arrays(st.integers(-3, 3) | st.integers(2**53, 2**53 + 4), np.int64),
        arrays(st.integers(0, 255), np.uint8),
    )


# n, error budget and its tail at ceiling and delta .05
TAILS = [
    (59, 0, 0.0485),
    (170, 3, 0.0273),
    (200, 4, 0.0264),
    (865, 32, 0.0422),
    (1000, 38, 0.0433),
    (1500, 60, 0.0395),
    (2000, 83, 0.0423),
    (4000, 177, 0.0493),
]
# every kind of rule a certificate can carry
RULES: dict[str, dict[str, Any]] = {
    "two thresholds if needed": {},
    "FPR only": {"guarantee": Guarantee(max_fnr=None)},
    "FNR only": {"guarantee": Guarantee(max_fpr=None)},
    "two thresholds always": {"overlap": Abstain(always=True)},
    "one threshold keeps both": {"guarantee": Guarantee(0.3, 0.3)},
    "the least single threshold": {"overlap": Abstain(position=0.0), "guarantee": Guarantee(0.3, 0.3)},
    "raise": {"overlap": "raise"},
    "raise a little": {"overlap": Raise(highest=0.2)},
    "algorithm1": {"overlap": "algorithm1"},
    "algorithm1 as printed": {"overlap": Algorithm1(correction=None, growth="double")},
    "raise the FPR": {"overlap": Algorithm1(raised="fpr", step=0.05, position=0.25)},
    "relax delta": {"overlap": Algorithm1(relax_delta=True), "guarantee": Guarantee(0.3, 0.3)},
    "hold the FNR": {"overlap": Hold("fnr")},
    "hold the FPR": {"overlap": "hold_fpr"},
    "hold the FNR if needed": {"overlap": "hold_fnr_if_needed"},
    "hold the FPR if needed, which it is not": {
        "overlap": Hold("fpr", always=False),
        "guarantee": Guarantee(0.3, 0.3),
    },
    "a confidence": {"guarantee": Guarantee(0.1, 0.2, confidence=0.9)},
    "a confidence, and the FNR held": {"overlap": "hold_fnr", "guarantee": Guarantee(confidence=0.9)},
}
every_rule = pytest.mark.parametrize("options", RULES.values(), ids=RULES.keys())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy finds for two classes in memory: what is certified, and the threshold of each."""

    asked: Guarantee
    certified: Guarantee | None
    fpr: Budget | None
    fnr: Budget | None
    rule: Rule
    sizes: tuple[int, int]
    separable: bool | None
    thresholds: Thresholds

    @property
    def claim(self) -> Claim:
        """What it claims, as the strategy sees it."""
        kept = () if self.certified is None else self.certified.promises
        counts = self.sizes, (None, None)
        return Claim(self.asked.promises, kept, self.fpr, self.fnr, self.rule, *counts, self.separable)


def decided(strategy: Strategy, asked: Guarantee, normal: Floats, anomalous: Floats) -> Outcome:
    """Return what a strategy makes of two classes in memory."""
    decision = strategy.decide(asked_of(asked), OneGroup((normal, anomalous)))
    found, sizes = decision.found, (normal.size, anomalous.size)
    fpr, fnr = (None if one is None else one.budget(n) for one, n in zip(found, sizes, strict=True))
    alarm, clear = (None if one is None or one.rate != one.rate else from_order_key(one.key) for one in found)
    certified = None
    if decision.certified:
        low, high = (None if one is None or one.ceiling != one.ceiling else one.ceiling for one in found)
        deltas = [
            own.delta if one is None else one.level for one, own in zip(found, asked_of(asked), strict=True)
        ]
        certified = replace(asked, max_fpr=low, max_fnr=high, delta_fpr=deltas[0], delta_fnr=deltas[1])
    rule = Rule(from_order_key(decision.low), from_order_key(decision.high))
    edges = Thresholds(alarm, clear)
    return Outcome(asked, certified, fpr, fnr, rule, sizes, decision.separable, edges)
