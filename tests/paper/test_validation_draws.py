"""Thresholds drawn directly, against drawing every calibration point from the same uniform numbers."""

from typing import cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Thresholds, find_thresholds
from pac_wrap.tails.bounds import Budget
from pac_wrap.validation import violation_rate
from support.examples import examples
from support.strategies import Floats, guarantee, scores


class Uniforms:
    """Stands for a generator: `beta` finds one of n given uniform numbers, for every trial of a class."""

    def __init__(self, *given: Floats) -> None:
        self.given = list(given)

    def beta(self, a: int, b: int, size: int) -> Floats:
        numbers = self.given.pop(0)
        assert numbers.shape == (size, a + b - 1)
        return 1.0 - np.sort(numbers, axis=1)[:, -a]


def thresholds_of(points: tuple[Floats, Floats], k: int, promise: Guarantee) -> Thresholds:
    ceilings = (promise.max_fpr or 1.0, promise.max_fnr or 1.0)
    budgets = [Budget(p.size, c, 0.5, k, 0.0) for p, c in zip(points, ceilings, strict=True)]
    return find_thresholds(*points, *budgets)


populations = st.tuples(scores(1, 40), scores(1, 40))


@settings(max_examples=examples(200))
@given(
    populations, st.none() | populations, st.integers(1, 5), st.integers(0, 4), st.integers(1, 50), guarantee
)
def test_direct_draws_do_what_drawing_every_point_does(
    drawn_from: tuple[Floats, Floats],
    future: tuple[Floats, Floats] | None,
    n: int,
    k: int,
    trials: int,
    promise: Guarantee,
) -> None:
    assume(k < n)
    normal, anomalous = drawn_from
    random = np.random.default_rng(trials)
    high, low = (random.integers(scores.size, size=(trials, n)) for scores in drawn_from)
    # the middle of a rank's share of [0, 1), from where rounding moves no number into another
    numbers = Uniforms((high + 0.5) / normal.size, (low + 0.5) / anomalous.size)
    found = violation_rate(
        normal,
        anomalous,
        (n, n),
        promise,
        trials=trials,
        random=cast(np.random.Generator, numbers),
        future=future,
        budget=lambda *_: k,
    )

    # the greatest numbers stand for the scores that err first: the highest normals, the lowest anomalies
    points = np.sort(normal)[high], np.sort(anomalous)[::-1][low]
    rules = [thresholds_of(pair, k, promise) for pair in zip(*points, strict=True)]
    normal, anomalous = drawn_from if future is None else future
    flagged = np.array([np.mean(rule.y_fp(normal)) for rule in rules])
    missed = np.array([np.mean(rule.y_fn(anomalous) == 0) for rule in rules])
    assert (found.mean_fpr, found.mean_fnr) == (flagged.mean(), missed.mean())
    everything = np.concatenate([normal, anomalous])
    ambiguity = np.mean([rule.rule.ambiguity(everything) for rule in rules])
    assert found.ambiguity == pytest.approx(ambiguity, abs=1e-12)
    assert found.separated.count == sum(rule.separated for rule in rules)
    assert found.fpr is not None
    assert found.fnr is not None
    assert found.fpr.count == (flagged > (promise.max_fpr or 1.0)).sum()
    assert found.fnr.count == (missed > (promise.max_fnr or 1.0)).sum()
