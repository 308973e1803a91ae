"""Nothing here is drawn at random by the library: every probability is enumerated or has a closed form."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import inf, nan
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from pac_wrap.base.arguments import as_scores
from pac_wrap.method.metrics import ExactViolation, ViolationRate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Thresholds, find_thresholds
from pac_wrap.tails import Rate
from pac_wrap.tails.bounds import Budget, error_budget, interval
from pac_wrap.validation import BudgetRule, exact_violation, violation_rate
from pac_wrap_paper.baselines import cpad_budget
from support.examples import examples
from support.strategies import LARGEST, TAILS, Floats, calibrate_quietly, guarantee, rate, refusal, scores

SMALL: dict[str, list[float]] = {
    "distinct": [0.0, 1.0, 2.0, 3.0],
    "one point": [7.0],
    "a constant": [1.0, 1.0, 1.0],
    "a tie in the middle": [0.0, 1.0, 1.0, 2.0],
    "ties at both ends": [0.0, 0.0, 5.0, 5.0],
    "infinite ends": [-inf, -LARGEST, 0.0, inf],
    "nothing but infinities": [-inf, inf, inf],
    "the largest double": [0.0, -LARGEST, LARGEST, LARGEST],
}
PROMISES = [(0.5, 0.35), (0.25, 0.7), (0.74, 0.2), (0.3, 0.5)]


def no_errors(n: int, rate: float, delta: float) -> int | None:
    return 0 if n else None


RULES: list[BudgetRule] = [error_budget, cpad_budget, no_errors]


def one_sided(side: str, ceiling: float, delta: float) -> Guarantee:
    if side == "fpr":
        return Guarantee(ceiling, None, delta_fpr=delta)
    return Guarantee(None, ceiling, delta_fnr=delta)


def breaks(thresholds: Thresholds, population: Sequence[float], side: str, ceiling: float) -> bool:
    """Return whether the share of errors is above the ceiling, which is read as a decimal."""
    if side == "fpr":
        errors = np.count_nonzero(thresholds.y_fp(population))
    else:
        errors = np.count_nonzero(thresholds.y_fn(population) == 0)
    return Fraction(int(errors), len(population)) > Fraction(str(ceiling))


def thresholds_of(draw: Sequence[float], side: str, promise: Guarantee, rule: BudgetRule) -> Thresholds:
    if rule is error_budget:
        normal, anomalous = (draw, []) if side == "fpr" else ([], draw)
        return calibrate_quietly(normal, anomalous, promise).thresholds
    ceiling, delta = promise.max_fpr or promise.max_fnr or 1.0, promise.delta_fpr
    budget = Budget(len(draw), ceiling, delta, rule(len(draw), ceiling, delta), 0.0)
    both = as_scores(draw)
    return find_thresholds(both, both, *((budget, None) if side == "fpr" else (None, budget)))


def enumerated(
    population: Sequence[float],
    n: int,
    side: str,
    promise: Guarantee,
    rule: BudgetRule = error_budget,
    replacement: bool = True,
    future: Sequence[float] | None = None,
) -> Fraction:
    """Return the share of all draws of n points whose threshold breaks the ceiling."""
    judged = population if future is None else future
    draws = product(population, repeat=n) if replacement else combinations(population, n)
    # the order of a draw changes nothing, so each multiset is calibrated once
    samples = Counter(tuple(sorted(draw)) for draw in draws)
    ceiling = promise.max_fpr or promise.max_fnr or 1.0
    broken = sum(
        count
        for sample, count in samples.items()
        if breaks(thresholds_of(sample, side, promise, rule), judged, side, ceiling)
    )
    return Fraction(broken, samples.total())


def found(exact: ExactViolation, side: str) -> float:
    value, other = (exact.fpr, exact.fnr) if side == "fpr" else (exact.fnr, exact.fpr)
    assert other is None
    assert value is not None
    return value


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("side", ["fpr", "fnr"])
@pytest.mark.parametrize("name", SMALL)
def test_every_draw_of_a_tiny_population_is_counted(name: str, side: str, replacement: bool) -> None:
    population = SMALL[name]
    for (ceiling, delta), rule in product(PROMISES, RULES):
        promise = one_sided(side, ceiling, delta)
        for n in range(1, 5 if replacement else len(population) + 1):
            exact = exact_violation(
                population, population, (n, n), promise, budget=rule, replacement=replacement
            )
            expected = enumerated(population, n, side, promise, rule, replacement)
            assert found(exact, side) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("side", ["fpr", "fnr"])
def test_a_shifted_population_is_judged_but_not_drawn_from(side: str) -> None:
    drawn = [0.0, 1.0, 1.0, 2.0]
    for future in ([1.0, 2.0, 3.0], [-inf, 0.5, 1.5, 1.5, inf], [9.0], [-9.0, -9.0], [2.0, 0.0, 1.0, 1.0]):
        for (ceiling, delta), n, replacement in product(PROMISES, range(1, 5), (True, False)):
            promise = one_sided(side, ceiling, delta)
            exact = exact_violation(
                drawn, drawn, (n, n), promise, future=(future, future), replacement=replacement
            )
            expected = enumerated(drawn, n, side, promise, error_budget, replacement, future)
            assert found(exact, side) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("side", ["fpr", "fnr"])
def test_the_largest_double_beside_infinity(side: str) -> None:
    population = [0.0, LARGEST, inf, inf]
    for (ceiling, delta), n in product(PROMISES, range(1, 5)):
        promise = one_sided(side, ceiling, delta)
        exact = exact_violation(population, population, (n, n), promise)
        expected = enumerated(population, n, side, promise)
        assert found(exact, side) == pytest.approx(float(expected), abs=1e-12)


def test_a_rate_that_equals_its_ceiling_is_no_violation() -> None:
    # 3 of 20 is .15; the budget allows the 4th largest point as a threshold, which leaves 3 above it
    population = np.arange(20.0)
    promise = Guarantee(0.15, 0.15, 0.05, 0.05)
    exact = exact_violation(population, population, (60, 60), promise)
    expected = binom.cdf(error_budget(60, 0.15, 0.05), 60, 4 / 20)
    assert exact.fpr == exact.fnr == pytest.approx(expected, abs=1e-12)
    for ceiling, total in ((0.15, 20), (0.07, 100), (0.29, 100), (0.55, 20), (0.1, 10), (0.3, 10), (0.7, 10)):
        at = exact_violation(np.arange(total), [], (50, 0), one_sided("fpr", ceiling, 0.3), budget=no_errors)
        reached = Fraction(str(ceiling)) + Fraction(1, total)
        assert at.fpr == pytest.approx(float(1 - reached) ** 50, abs=1e-12)


def test_sizes_too_small_for_a_promise_never_break_it() -> None:
    population = np.arange(100.0)
    for replacement in (True, False):
        for sizes in ((0, 0), (58, 58), (0, 58)):
            exact = exact_violation(population, population, sizes, replacement=replacement)
            assert exact == ExactViolation(0.0, 0.0)
    drawn = violation_rate(population, population, (58, 0), trials=50, random=np.random.default_rng(0))
    assert drawn.fpr == drawn.fnr == drawn.separated == Rate(0, 50, *interval(0, 50))
    # nothing is declared, so everything is abstained
    assert (drawn.mean_fpr, drawn.mean_fnr, drawn.ambiguity) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("n", "k", "printed"),
    TAILS,
)
def test_a_large_population_without_ties_comes_to_the_known_tails(n: int, k: int, printed: float) -> None:
    total = 10**6
    exact = found(exact_violation(np.arange(total), [], (n, 0), one_sided("fpr", 0.05, 0.05)), "fpr")
    limit = float(binom.cdf(k, n, 0.05))
    assert round(limit, 4) == printed
    # one point more than the ceiling allows, times the slope of the tail: -dF/dp = n P(Bin(n-1, p) = k)
    slope = n * float(binom.pmf(k, n - 1, 0.05))
    assert 0.0 < limit - exact < 1.01 * slope / total


def test_ten_million_scores_come_within_a_few_millionths() -> None:
    exact = exact_violation(np.arange(10**7), [], (2000, 0), one_sided("fpr", 0.05, 0.05))
    assert 0.0 < binom.cdf(83, 2000, 0.05) - found(exact, "fpr") < 5e-6


@pytest.mark.parametrize(("total", "n"), [(906, 270), (534, 161), (5000, 1000), (1440, 1440), (300, 299)])
@pytest.mark.parametrize("rule", [error_budget, cpad_budget])
def test_without_ties_scipy_knows_the_tails(total: int, n: int, rule: BudgetRule) -> None:
    population = np.random.default_rng(total).permutation(total)
    k, marked = rule(n, 0.05, 0.05), int(0.05 * total) + 1
    with_replacement = exact_violation(population, population, (n, n), budget=rule)
    without = exact_violation(population, population, (n, n), budget=rule, replacement=False)
    assert with_replacement.fpr == with_replacement.fnr == pytest.approx(binom.cdf(k, n, marked / total))
    assert without.fpr == without.fnr == pytest.approx(hypergeom.cdf(k, total, marked, n), abs=1e-12)
    # so many of so few resemble the whole more than independent draws would
    assert (without.fpr or 0.0) < (with_replacement.fpr or 0.0)


@settings(max_examples=examples(150))
@given(scores(min_size=1, max_size=40), st.integers(0, 200), rate, rate)
def test_no_population_breaks_the_promise_more_often_than_delta(
    population: Floats, n: int, ceiling: float, delta: float
) -> None:
    exact = exact_violation(population, population, (n, n), Guarantee(ceiling, ceiling, delta, delta))
    k = error_budget(n, ceiling, delta)
    limit = 0.0 if k is None else float(binom.cdf(k, n, ceiling))
    for value in (exact.fpr, exact.fnr):
        assert value is not None
        assert 0.0 <= value <= limit * (1 + 1e-11) <= delta * (1 + 2e-11)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.integers(1, 3), st.integers(1, 9), guarantee)
def test_making_scores_equal_never_breaks_more(
    distinct: list[int], coarse: int, n: int, promise: Guarantee
) -> None:
    population = np.array(distinct)
    for replacement in (True, False):
        assume(n <= population.size)
        fine = exact_violation(population, population, (n, n), promise, replacement=replacement)
        tied = population // 2**coarse
        rough = exact_violation(tied, tied, (n, n), promise, replacement=replacement)
        for tied_value, value in ((rough.fpr, fine.fpr), (rough.fnr, fine.fnr)):
            assert cast(float, tied_value) <= cast(float, value) + 1e-12


def run(seed: int = 3, **options: Any) -> ViolationRate:
    normal, anomalous = np.arange(200.0), np.arange(150.0, 350.0)
    random = np.random.default_rng(seed)
    return violation_rate(normal, anomalous, (100, 100), **{"trials": 300, "random": random, **options})


def test_a_seed_fixes_everything() -> None:
    assert run() == run() != run(seed=4)
    for confidence in (0.5, 0.99):
        found = run(confidence=confidence).fpr
        assert found is not None
        assert (found.low, found.high) == interval(found.count, 300, confidence)


def test_a_side_that_is_not_promised_is_not_looked_at() -> None:
    random = np.random.default_rng(0)
    fpr = violation_rate([1.0, 2.0], [], (9, 0), Guarantee(0.4, None, 0.3), trials=20, random=random)
    fnr = violation_rate([], [1.0, 2.0], (0, 9), Guarantee(None, 0.4), trials=20, random=random)
    assert (fpr.fnr, fpr.mean_fnr, fnr.fpr, fnr.mean_fpr) == (None,) * 4
    assert (fpr.ambiguity, fpr.separated.count, fnr.ambiguity, fnr.separated.count) == (0.0, 20, 0.0, 20)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"trials": 0}, "trials must be at least 1, got 0"),
        ({"trials": -1}, "trials must be a whole number, 0 or more, got -1"),
        ({"trials": 10.0}, "trials must be a whole number, 0 or more, got 10.0"),
        ({"trials": True}, "trials must be a whole number, 0 or more, got True"),
        ({"confidence": 95}, "confidence must lie strictly between 0 and 1, got 95"),
    ],
)
def test_what_is_no_number_of_trials_or_confidence_is_refused(options: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(lambda: run(**options))


@pytest.mark.parametrize(
    ("normal", "anomalous", "sizes", "sentence"),
    [
        ([], [1.0], (9, 9), "the normal population is empty; pass its scores, or max_fpr=None"),
        ([1.0], [], (9, 9), "the anomalous population is empty"),
        ([1.0, nan], [1.0], (9, 9), "normal must not contain NaN, got 1 of 2"),
        ([1.0], [nan], (9, 9), "anomalous must not contain NaN"),
        ([[1.0]], [1.0], (9, 9), "normal must be one-dimensional"),
        ([1.0], ["a"], (9, 9), "anomalous must be real numbers"),
        ([1.0], [1.0], (-1, 9), "must be a whole number, 0 or more, got -1"),
        ([1.0], [1.0], (9, 9.5), "must be a whole number, 0 or more, got 9.5"),
    ],
)
def test_what_is_no_population_or_size_is_refused(
    normal: Any, anomalous: Any, sizes: Any, sentence: str
) -> None:
    assert sentence in refusal(lambda: exact_violation(normal, anomalous, sizes))
    random = np.random.default_rng(0)
    assert sentence in refusal(lambda: violation_rate(normal, anomalous, sizes, random=random))


def test_no_more_points_than_there_are_come_without_replacement() -> None:
    population = np.arange(1000.0)
    everything = exact_violation(population, population, (1000, 1000), replacement=False)
    assert everything == ExactViolation(0.0, 0.0)
    for sizes in ((1001, 100), (100, 1001)):
        message = refusal(exact_violation, population, population, sizes, replacement=False)
        assert message.startswith("1,001 points cannot be drawn from 1,000 without replacement")
