"""The chances of a break against enumeration of every division, and the false-alarm rate of the p-value."""

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from scipy.stats import beta, binom

from pac_wrap import Certificate, Guarantee, calibrate, certify_curve
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.method.strategies.raising import Raise, staircase
from pac_wrap.tails.bounds import error_budget, hypergeometric_cdf
from pac_wrap_paper.adbench.chance import (
    ASKED,
    Limits,
    _rungs,
    allowed,
    chances,
    crossing_chance,
    fixed_chance,
    given_chance,
    held_chance,
    ladder_chance,
    of_all,
    of_others,
    p_value,
)

SIZES = [(3, 4), (5, 5), (4, 7), (6, 3)]
CEILINGS = [{0: 0.3}, {0: 0.2, 1: 0.5}, {1: 0.4, 2: 0.6}, {0: 0.5, 2: 0.5}, {0: 0.0, 1: 0.2, 2: 0.9}]
ROWS = pytest.mark.parametrize("whole", [True, False], ids=["all rows", "other rows"])


def limits_of(n: int, m: int, ceilings: Mapping[int, float], *, whole: bool) -> Limits:
    return of_all(ceilings, n + m) if whole else of_others(ceilings, m)


def enumerated(n: int, m: int, ceilings: Mapping[int, float], *, whole: bool) -> float:
    """Return the share of all divisions of n + m points in which some ceiling is broken."""
    broken = []
    for drawn in combinations(range(n + m), n):  # places of the calibration points, from the largest score
        above = {k: drawn[k] if whole else drawn[k] - k for k in ceilings}
        broken.append(any(above[k] / (n + m if whole else m) > ceilings[k] for k in ceilings))
    return float(np.mean(broken))


@ROWS
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("ceilings", CEILINGS)
def test_the_chances_are_those_of_all_divisions(
    n: int, m: int, ceilings: dict[int, float], whole: bool
) -> None:
    limits = limits_of(n, m, ceilings, whole=whole)
    every = enumerated(n, m, ceilings, whole=whole)
    assert crossing_chance(n, n + m, limits) == pytest.approx(every, abs=1e-12)
    singles = [enumerated(n, m, {k: ceiling}, whole=whole) for k, ceiling in ceilings.items()]
    assert fixed_chance(n, n + m, limits) == pytest.approx(max(singles), abs=1e-12)


@ROWS
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("ceilings", [{0: 0.3, 1: 0.5, 2: 0.5}, {0: 0.0, 1: 0.2, 2: 0.9}])
def test_no_threshold_of_the_other_class_is_broken_more_often(
    n: int, m: int, ceilings: dict[int, float], whole: bool
) -> None:
    total, shares = n + m, []
    for beyond in range(total + 1):  # how many of all points lie beyond the threshold
        broken = 0
        for drawn in combinations(range(total), n):
            errors = sum(place < beyond for place in drawn)
            rate = beyond / total if whole else (beyond - errors) / m
            broken += rate > ceilings.get(errors, 1.0)
        shares.append(broken / comb(total, n))
    limits = limits_of(n, m, {errors: ceilings.get(errors, 1.0) for errors in range(n)}, whole=whole)
    given = given_chance(n, total, limits, np.arange(total + 1.0))
    assert given == pytest.approx(shares, abs=1e-12)
    assert fixed_chance(n, total, limits) == pytest.approx(max(shares), abs=1e-12)


@ROWS
@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 4), (3, 5)])
@pytest.mark.parametrize("ceilings", [{0: 0.3, 1: 0.5}, {0: 0.2, 1: 0.4, 2: 0.6}, {1: 0.4, 2: 0.5}])
def test_no_order_of_the_other_class_breaks_the_rung_it_takes_more_often(
    n: int, m: int, ceilings: dict[int, float], whole: bool
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
            if taken:
                errors = drawn[taken[0]] / total if whole else (drawn[taken[0]] - taken[0]) / m
                broken += errors > ceilings[taken[0]]
        worst = max(worst, broken / comb(total, n))
    limits = limits_of(n, m, ceilings, whole=whole)
    assert ladder_chance(n, total, limits) == pytest.approx(worst, abs=1e-12)


# ceilings and deltas that a handful of points can keep, so that every division can be gone through
TINY = Guarantee(max_fpr=0.35, max_fnr=0.4, delta_fpr=0.45, delta_fnr=0.4)
POPULATIONS: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "mixed": (range(8), [2.5, 3.5, 5.5, 6.5, 8.5]),
    "tied": ([0, 0, 1, 1, 1, 2, 3, 3], [1, 2, 2, 3, 3]),
    "two scores": ([0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1]),
    "more anomalies": ([0, 1, 2, 4, 5], [2.5, 2.5, 3.5, 3.5, 4.5, 5.5, 6.5, 6.5]),
}


@cache  # tied scores divide into the same parts again and again
def of_tiny(overlap: str, normal: tuple[float, ...], anomalous: tuple[float, ...]) -> Certificate | None:
    if not overlap.startswith("curve"):
        return calibrate(normal, anomalous, TINY, overlap=overlap)
    curve = certify_curve(normal, anomalous, TINY.delta_fpr, TINY.delta_fnr)
    try:
        return curve.balanced() if overlap == "curve" else curve.at(anomalous[0])
    except InputError:  # no threshold there bounds a rate
        return None


@cache
def breaks(name: str, overlap: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the share of all divisions in which a certified rate is broken: (other rows, all) by side."""
    population = [sorted(map(float, scores)) for scores in POPULATIONS[name]]
    halves = [
        [(tuple(np.take(one, drawn)), tuple(np.delete(one, drawn))) for drawn in halved(len(one))]
        for one in population
    ]
    broken = np.zeros((2, 2))
    for (normal, other_normal), (anomalous, other_anomalous) in product(*halves):
        found = of_tiny(overlap, normal, anomalous)
        if found is None or found.uncertified:
            continue
        ceilings, rule = (found.fpr.ceiling, found.fnr.ceiling), found.rule
        for side, scores in enumerate([(other_normal, population[0]), (other_anomalous, population[1])]):
            for rows, counted in enumerate(scores):
                wrong = [
                    score < rule.normal_below if side else score >= rule.anomaly_from for score in counted
                ]
                broken[side, rows] += sum(wrong) / len(wrong) > (ceilings[side] or 1.0)
    shares = broken / (len(halves[0]) * len(halves[1]))
    return (shares[0, 0], shares[0, 1]), (shares[1, 0], shares[1, 1])


def halved(size: int) -> Sequence[list[int]]:
    return [list(drawn) for drawn in combinations(range(size), size // 2)]


@pytest.mark.parametrize("overlap", ["abstain", "raise", "hold_fnr", "hold_fpr", "curve", "curve at F1"])
@pytest.mark.parametrize("name", POPULATIONS)
def test_what_is_certified_breaks_no_more_often_over_all_divisions_with_ties_or_without(
    name: str, overlap: str
) -> None:
    sizes = [len(scores) for scores in POPULATIONS[name]]
    n, m = (sizes[0] // 2, sizes[1] // 2), (sizes[0] - sizes[0] // 2, sizes[1] - sizes[1] // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        found = breaks(name, overlap)
    for side, chance in zip(found, chances(n, m, TINY)[overlap], strict=True):
        assert chance.rest is None or side[0] <= chance.rest + 1e-12
        assert side[1] <= chance.whole + 1e-12


def test_a_rank_fixed_beforehand_breaks_exactly_so_often_without_ties() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        found = breaks("mixed", "hold_fpr")[0], breaks("mixed", "hold_fnr")[1]
    expected = chances((4, 2), (4, 3), TINY)["abstain"]
    for side, chance in zip(found, expected, strict=True):
        assert side == pytest.approx((chance.rest, chance.whole), abs=1e-12)
        assert side[0] > side[1] > 0.0


@ROWS
@pytest.mark.parametrize("name", POPULATIONS)
def test_the_side_that_is_not_held_breaks_exactly_so_often_ties_or_not(name: str, whole: bool) -> None:
    normal, anomalous = (np.sort(np.asarray(scores, dtype=float)) for scores in POPULATIONS[name])
    # by the threshold of either class, over all of its divisions, the points of the other beyond it
    beyond: tuple[list[float], list[float]] = [], []
    budgets = [
        error_budget(one.size // 2, *of) for one, of in ((normal, (0.35, 0.45)), (anomalous, (0.4, 0.4)))
    ]
    for drawn in halved(anomalous.size):
        beyond[0].append(float(np.sum(normal >= anomalous[drawn][budgets[1]])))
    for drawn in halved(normal.size):
        beyond[1].append(float(np.sum(anomalous <= normal[drawn][::-1][budgets[0]])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        found = breaks(name, "hold_fnr")[0][whole], breaks(name, "hold_fpr")[1][whole]
    for share, one, delta, points in zip(found, (normal, anomalous), (0.45, 0.4), beyond, strict=True):
        n = one.size // 2
        exact = held_chance(n, one.size - n, delta, np.array(points), whole=whole)
        assert share == pytest.approx(exact.mean(), abs=1e-12)


def test_many_terms_are_as_exact_as_whole_numbers() -> None:
    n, total = 300, 600
    ceilings = {k: float(beta.ppf(0.95, k + 1, n - k)) for k in range(120)}
    limits = of_all(ceilings, total)
    ranks = [hypergeometric_cdf(k, n, limits[k] + 1, total) for k in limits]
    assert fixed_chance(n, total, limits) == pytest.approx(max(ranks), rel=1e-9)
    ways = [
        sum(comb(limits[j] + 1, i) * comb(total - limits[i] - 1, n - i) for i in range(j + 1, len(limits)))
        for j in limits
    ]
    rungs = [rank + way / comb(total, n) for rank, way in zip(ranks, ways, strict=True)]
    assert ladder_chance(n, total, limits) == pytest.approx(max(rungs), rel=1e-9)
    assert max(rungs) > 1.1 * max(ranks)
    paths = np.ones(total - n + 1, dtype=object)  # whole numbers of any size
    for k in range(n):
        paths = np.cumsum(paths) if k else paths
        paths[limits.get(k, total) - k + 1 :] = 0
    assert crossing_chance(n, total, limits) == pytest.approx(1 - paths.sum() / comb(total, n), rel=1e-6)


def test_nothing_promised_is_never_broken() -> None:
    assert fixed_chance(10, 20, {}) == crossing_chance(10, 20, {}) == ladder_chance(10, 20, {}) == 0.0


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
            assert side.rest is None or side.rest > side.whole, "the other points vary, too"
    for points, others, chance in zip(n, m, chances(n, m)["abstain"], strict=True):
        budget, total = error_budget(points, 0.05, 0.05), points + others
        assert budget is not None
        assert chance == pytest.approx(
            (
                hypergeometric_cdf(budget, points, allowed(0.05, others) + budget + 1, total),
                hypergeometric_cdf(budget, points, allowed(0.05, total) + 1, total),
            ),
            rel=1e-9,
        )


@pytest.mark.parametrize("n", [(200, 62), (62, 200), (90, 90), (300, 20)])
def test_the_rungs_are_those_of_the_strategy(n: tuple[int, int]) -> None:
    stair = staircase(ASKED.promises, n, Raise().highest)
    expected: tuple[dict[int, float], dict[int, float]] = ({}, {})
    for number in range(len(stair.rungs)):
        for side, budget in zip(expected, stair.at(number), strict=True):
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
