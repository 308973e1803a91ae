"""The chances of a break against enumeration of every division, and the false-alarm rate of the p-value."""

from collections.abc import Mapping
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from pac_wrap.method.strategies.raising import Raise, staircase
from pac_wrap.method.tails.binomial import error_budget
from pac_wrap.paper.adbench.chance import (
    ASKED,
    _rungs,
    allowed,
    chances,
    crossing_chance,
    ladder_chance,
    p_value,
    rest_chance,
    whole_chance,
)

SIZES = [(3, 4), (5, 5), (4, 7), (6, 3)]
CEILINGS = [{0: 0.3}, {0: 0.2, 1: 0.5}, {1: 0.4, 2: 0.6}, {0: 0.5, 2: 0.5}, {0: 0.0, 1: 0.2, 2: 0.9}]


def enumerated(n: int, m: int, ceilings: Mapping[int, float], *, whole: bool) -> float:
    """Return the share of all divisions of n + m points in which some ceiling is broken."""
    broken = []
    for drawn in combinations(range(n + m), n):  # places of the calibration points, from the largest score
        above = {k: drawn[k] if whole else drawn[k] - k for k in ceilings}
        broken.append(any(above[k] / (n + m if whole else m) > ceilings[k] for k in ceilings))
    return float(np.mean(broken))


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("ceilings", CEILINGS)
def test_the_chances_are_those_of_all_divisions(n: int, m: int, ceilings: dict[int, float]) -> None:
    assert crossing_chance(n, n + m, ceilings) == pytest.approx(
        enumerated(n, m, ceilings, whole=True), abs=1e-12
    )
    singles = [enumerated(n, m, {k: ceiling}, whole=True) for k, ceiling in ceilings.items()]
    assert whole_chance(n, n + m, ceilings) == pytest.approx(max(singles), abs=1e-12)
    for k, ceiling in ceilings.items():
        assert rest_chance(n, m, k, ceiling) == pytest.approx(
            enumerated(n, m, {k: ceiling}, whole=False), abs=1e-12
        )


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 4), (3, 5)])
@pytest.mark.parametrize("ceilings", [{0: 0.3, 1: 0.5}, {0: 0.2, 1: 0.4, 2: 0.6}, {1: 0.4, 2: 0.5}])
def test_no_order_of_the_other_class_breaks_the_rung_it_takes_more_often(
    n: int, m: int, ceilings: dict[int, float]
) -> None:
    total, rungs = n + m, sorted(ceilings)
    worst = 0.0
    # how many of all points lie above the other class's threshold at each rung: fewer at a higher one
    for places in product(range(total + 1), repeat=len(rungs)):
        if list(places) != sorted(places, reverse=True):
            continue
        broken = 0
        for drawn in combinations(range(total), n):
            taken = [rung for rung, place in zip(rungs, places, strict=True) if drawn[rung] >= place]
            broken += bool(taken) and drawn[taken[0]] / total > ceilings[taken[0]]
        worst = max(worst, broken / comb(total, n))
    assert ladder_chance(n, total, ceilings) == pytest.approx(worst, abs=1e-12)


def test_nothing_promised_is_never_broken() -> None:
    assert rest_chance(10, 10, None, 0.05) == whole_chance(10, 20, {}) == 0.0
    assert crossing_chance(10, 20, {}) == ladder_chance(10, 20, {}) == 0.0


def test_a_ceiling_is_exceeded_as_a_comparison_says() -> None:
    for m in range(1, 200):
        for ceiling in (0.05, 0.1, 0.29, 1 / 3, 0.999, 1.0):
            count = allowed(ceiling, m)
            assert count / m <= ceiling
            assert count == m or (count + 1) / m > ceiling


@pytest.mark.parametrize(("n", "m"), [((200, 62), (200, 62)), ((700, 90), (650, 80)), ((60, 60), (60, 60))])
def test_on_all_points_no_method_is_broken_more_often_than_promised(
    n: tuple[int, int], m: tuple[int, int]
) -> None:
    for name, sides in chances(n, m).items():
        for side in sides:
            assert 0.0 <= side.whole <= 0.05, name
    # the promise itself is known on the other points, too, which vary
    for points, others, chance in zip(n, m, chances(n, m)["abstain"], strict=True):
        assert chance.rest == rest_chance(points, others, error_budget(points, 0.05, 0.05), 0.05)
        assert chance.rest is not None
        assert chance.rest > chance.whole


@pytest.mark.parametrize("n", [(200, 62), (62, 200), (90, 90), (300, 20)])
def test_the_rungs_are_those_of_the_strategy(n: tuple[int, int]) -> None:
    stair = staircase(ASKED, n, Raise().highest)
    expected: tuple[dict[int, float], dict[int, float]] = ({}, {})
    for rung in stair.rungs:
        for side, budget in zip(expected, stair.budgets(rung), strict=True):
            assert budget.errors is not None
            side[budget.errors] = min(budget.rate, side.get(budget.errors, 1.0))
    for side, found in zip(expected, _rungs(n), strict=True):
        assert found == pytest.approx(side, rel=1e-9)


def test_too_few_labels_promise_nothing_that_could_be_broken() -> None:
    found = chances((200, 30), (200, 30))
    assert (found["abstain"][1].rest, found["abstain"][1].whole) == (0.0, 0.0)
    assert found["raise"][1].whole > 0.0


def test_the_p_value_is_a_binomial_tail_where_all_are_alike() -> None:
    for broken in range(9):
        assert p_value(broken, [0.1] * 8) == pytest.approx(float(binom.sf(broken - 1, 8, 0.1)), abs=1e-12)


def test_the_p_value_raises_no_more_false_alarms_than_it_says() -> None:
    # exactly, over all outcomes: P(p <= alpha) is at most alpha, and not far below it
    probabilities = np.linspace(0.02, 0.3, 29)
    counts = np.ones(1)
    for chance in probabilities:
        counts = np.convolve(counts, [1.0 - chance, chance])
    values = np.array([p_value(broken, probabilities) for broken in range(30)])
    for alpha in (0.01, 0.05, 0.2):
        false_alarms = counts[values <= alpha].sum()
        assert false_alarms <= alpha + 1e-12
        assert false_alarms > alpha / 4
    # power: a method that breaks half of its promises is found out
    assert p_value(14, probabilities) < 1e-4
