"""How often a test rate exceeds its ceiling by chance, eq. (20): against every division, and any series."""

from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb, floor, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.stats import hypergeom

from pac_wrap.errors import InputError
from pac_wrap.method.metrics import ExactViolation
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import alarm_from, clear_below
from pac_wrap.series import window_points
from pac_wrap.tails.bounds import error_budget
from pac_wrap.validation import independent_violation
from statistical.claims import assert_at_most, assert_power, assert_rate
from support.examples import examples
from support.slow import slow_but
from support.strategies import Floats

pytestmark = pytest.mark.slow

TENTH = Guarantee(0.1, 0.1, 0.1, 0.1)
LARGEST = 9


@cache
def divisions(n: int, m: int) -> tuple[tuple[int, ...], ...]:
    return tuple(combinations(range(n + m), n))


def exceeding(values: Floats, n: int, ceiling: float, delta: float, anomalous: bool) -> Fraction:
    """Return the share of all divisions into n and the rest whose test rate exceeds its ceiling."""
    m = values.size - n
    budget, hits = error_budget(n, ceiling, delta), 0
    for chosen in divisions(n, m):
        calibrates = np.zeros(values.size, dtype=bool)
        calibrates[list(chosen)] = True
        drawn, tested = values[calibrates], values[~calibrates]
        if anomalous:
            errors = int((tested < clear_below(drawn, budget)).sum())
        else:
            errors = int((tested >= alarm_from(drawn, budget)).sum())
        hits += errors / m > ceiling
    return Fraction(hits, comb(n + m, n))


sizes = st.integers(1, LARGEST - 1).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, LARGEST - n)))
# ceilings that test parts can hit exactly, such as 1/3, and those that they cannot
ceilings = st.sampled_from([0.1, 0.2, 0.25, 1 / 3, 0.4, 0.5, 2 / 3, 0.75, 0.9]) | st.floats(0.05, 0.95)
deltas = st.sampled_from([0.1, 0.5, 0.9]) | st.floats(0.05, 0.95)


@settings(max_examples=examples(150))
@given(sizes, ceilings, deltas, st.integers(0, 2**32))
def test_it_is_the_share_of_all_divisions_of_distinct_scores(
    parts: tuple[int, int], ceiling: float, delta: float, seed: int
) -> None:
    n, m = parts
    values = np.random.default_rng(seed).permutation(n + m).astype(float)
    found = independent_violation((n, n), (m, m), Guarantee(ceiling, ceiling, delta, delta))
    assert found.fpr == found.fnr
    assert found.fpr == pytest.approx(float(exceeding(values, n, ceiling, delta, False)), abs=1e-14)
    assert found.fnr == pytest.approx(float(exceeding(values, n, ceiling, delta, True)), abs=1e-14)


@settings(max_examples=examples(150))
@given(sizes, ceilings, deltas, st.data())
def test_ties_only_make_it_smaller(
    parts: tuple[int, int], ceiling: float, delta: float, data: st.DataObject
) -> None:
    n, m = parts
    tied = st.lists(st.integers(0, 3).map(float), min_size=n + m, max_size=n + m)
    values = np.array(data.draw(tied))
    found = independent_violation((n, n), (m, m), Guarantee(ceiling, ceiling, delta, delta))
    assert found.fpr is not None
    for anomalous in (False, True):
        assert float(exceeding(values, n, ceiling, delta, anomalous)) <= found.fpr + 1e-14


def test_constant_scores_exceed_nothing() -> None:
    assert exceeding(np.ones(8), 5, 0.5, 0.5, False) == exceeding(np.ones(8), 5, 0.5, 0.5, True) == 0
    assert independent_violation((5, 5), (3, 3), Guarantee(0.5, 0.5, 0.5, 0.5)).fpr == pytest.approx(
        float(exceeding(np.arange(8.0), 5, 0.5, 0.5, False))
    )


@given(
    st.integers(0, 3000),
    st.integers(1, 3000),
    st.sampled_from([0.01, 0.05, 0.1, 0.3, 1 / 3]),
    st.sampled_from([0.01, 0.1, 0.5]),
)
def test_large_parts_agree_with_the_hypergeometric_law(n: int, m: int, ceiling: float, delta: float) -> None:
    budget = error_budget(n, ceiling, delta)
    allowed = max(count for count in range(floor(ceiling * m) + 2) if count / m <= ceiling)
    expected = 0.0 if budget is None else float(hypergeom.cdf(budget, n + m, allowed + budget + 1, n))
    found = independent_violation((n, 0), (m, 1), Guarantee(ceiling, None, delta))
    assert found.fpr == pytest.approx(expected, rel=1e-8, abs=1e-14)
    assert found.fnr is None


def test_each_side_has_its_own_sizes_ceiling_and_delta() -> None:
    found = independent_violation((60, 400), (700, 90), Guarantee(0.2, 0.1, 0.3, 0.05))
    assert found == ExactViolation(
        independent_violation((60, 1), (700, 1), Guarantee(0.2, None, 0.3)).fpr,
        independent_violation((1, 400), (1, 90), Guarantee(None, 0.1, delta_fnr=0.05)).fnr,
    )


def test_nothing_promised_is_none_and_too_few_points_never_exceed() -> None:
    assert independent_violation((21, 22), (80, 80), TENTH).fpr == 0.0
    assert independent_violation((0, 0), (80, 80), TENTH) == ExactViolation(0.0, 0.0)
    exceeds = independent_violation((22, 21), (80, 80), TENTH)
    assert exceeds.fpr is not None
    assert exceeds.fpr > 0.0
    assert exceeds.fnr == 0.0
    assert independent_violation((100, 100), (9, 9), Guarantee(None, 0.1)).fpr is None
    assert independent_violation((100, 100), (9, 9), Guarantee(0.1, None)).fnr is None


def test_a_large_test_part_leaves_the_chance_of_the_calibration_alone() -> None:
    # then it is the binomial tail F(k*; n, eps), which is at most delta
    found = independent_violation((100, 1), (200_000, 1), Guarantee(0.1, None, 0.1))
    budget = error_budget(100, 0.1, 0.1)
    assert budget is not None
    exact = sum(comb(100, i) * 0.1**i * 0.9 ** (100 - i) for i in range(budget + 1))
    assert found.fpr == pytest.approx(exact, abs=1e-4)
    small = independent_violation((1000, 1), (100, 1), Guarantee(0.1, None, 0.1)).fpr
    assert small is not None
    assert small > 0.2  # twice delta, though all points are independent


@pytest.mark.parametrize(
    ("calibration", "test", "text"),
    [
        ((-1, 5), (5, 5), "must be a whole number, 0 or more, got -1"),
        ((5, 5.5), (5, 5), "must be a whole number, 0 or more, got 5.5"),
        ((5, 5), (0, 5), "test_sizes must be a whole number, 1 or more, got 0"),
        ((5, 5), (5, -2), "test_sizes must be a whole number, 0 or more, got -2"),
        ((5, 5), (True, 5), "test_sizes must be a whole number, 0 or more, got True"),
    ],
)
def test_sizes_that_cannot_be_are_refused(calibration: Any, test: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        independent_violation(calibration, test, TENTH)


@pytest.mark.parametrize(
    ("calibration", "test", "guarantee"),
    [((5,), (5, 5), TENTH), ((5, 5), (5, 5, 5), TENTH), (5, (5, 5), TENTH), ((5, 5), (5, 5), 0.1)],
)
def test_anything_but_pairs_of_sizes_and_a_guarantee_is_refused(
    calibration: Any, test: Any, guarantee: Any
) -> None:
    with pytest.raises(InputError):
        independent_violation(calibration, test, guarantee)


def test_sizes_are_checked_where_nothing_is_promised_too() -> None:
    with pytest.raises(InputError):
        independent_violation((50, -3), (50, 3), Guarantee(0.1, None))


def dependent(seed: int, size: int, phi: float) -> Floats:
    noise = np.random.default_rng(seed).standard_normal(size) * sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise))


NORMAL, ANOMALOUS, TRIALS = 1500, 500, 6500
LABELS = np.repeat([0, 1], (NORMAL, ANOMALOUS))
SERIES = {
    "autoregression": dependent(1, LABELS.size, 0.995) + 3.0 * LABELS,
    "trend": np.arange(float(LABELS.size)),
}


@pytest.mark.parametrize("kind", slow_but(1, SERIES))
def test_random_divisions_of_any_series_exceed_just_as_often(kind: str) -> None:
    values = SERIES[kind]
    assert np.unique(values).size == values.size
    found = window_points(values, LABELS).violation(TENTH, np.random.default_rng(2), trials=TRIALS)
    law = independent_violation((300, 100), (1200, 400), TENTH)
    for rate, expected, n, m in ((found.fpr, law.fpr, 300, 1200), (found.fnr, law.fnr, 100, 400)):
        assert rate is not None
        assert expected is not None
        assert_rate(rate.count, TRIALS, expected)
        # a budget of one error more or less would be caught
        budget = error_budget(n, 0.1, 0.1)
        assert budget is not None
        for wrong in (budget - 1, budget + 1):
            other = float(hypergeom.cdf(wrong, n + m, m // 10 + wrong + 1, n))
            assert_power(TRIALS, expected, other)


def test_random_divisions_of_tied_scores_exceed_at_most_as_often() -> None:
    values = np.round(SERIES["autoregression"], 1)
    found = window_points(values, LABELS).violation(TENTH, np.random.default_rng(3), trials=TRIALS)
    law = independent_violation((300, 100), (1200, 400), TENTH)
    for rate, bound in ((found.fpr, law.fpr), (found.fnr, law.fnr)):
        assert rate is not None
        assert bound is not None
        assert_at_most(rate.count, TRIALS, bound)
        assert_power(TRIALS, bound, 1.4 * bound, at_most=True)


def test_divisions_in_blocks_of_a_dependent_series_exceed_more_often() -> None:
    # the fact that random divisions hide: here the difference is far beyond any luck
    values, trials = SERIES["autoregression"], 400
    random = np.random.default_rng(5)
    labels = np.repeat(random.permutation(20) < 5, 100).astype(int)
    found = window_points(values, labels).violation(TENTH, random, trials=trials, block=50)
    law = independent_violation((300, 100), (1200, 400), TENTH)
    assert found.fpr is not None
    assert law.fpr is not None
    with pytest.raises(AssertionError, match="contradict"):
        assert_at_most(found.fpr.count, trials, law.fpr)
