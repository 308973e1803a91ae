from collections.abc import Callable
from math import nextafter
from statistics import median
from time import perf_counter

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import InputError
from pac_wrap.binomial import (
    achievable_rate,
    confidence,
    error_budget,
    interval,
    lower_bound,
    min_samples,
    upper_bound,
)
from strategies import TAILS, around, exact_budget, exact_tail, refusal, tail_60

EXTREME_RATES = (1e-12, 0.05, 0.5, 1 - 1e-12)
EXTREME_DELTAS = (5e-324, 1e-300, 0.05, 0.5, 1 - 1e-12)
open_rate = st.floats(1e-4, 0.999)


def as_number(budget: int | None) -> int:
    return -1 if budget is None else budget


@pytest.mark.parametrize(
    ("n", "errors", "tail"),
    TAILS,
)
def test_reference_budgets_at_five_percent(n: int, errors: int, tail: float) -> None:
    assert error_budget(n, 0.05, 0.05) == errors
    assert 1 - confidence(n, 0.05, errors) == pytest.approx(tail, abs=5e-5)


@pytest.mark.parametrize("rate", [1e-12, 0.01, 0.05, 0.1, 0.25, 0.5, 0.9, 1 - 1e-12])
@pytest.mark.parametrize("delta", [5e-324, 0.001, 0.05, 0.5, 0.95, 1 - 1e-12])
def test_budget_is_its_definition_for_every_small_n(rate: float, delta: float) -> None:
    for n in range(61):
        assert error_budget(n, rate, delta) == exact_budget(n, rate, delta), n


@given(st.integers(0, 60), open_rate, open_rate)
def test_budget_is_its_definition_for_any_rate_and_delta(n: int, rate: float, delta: float) -> None:
    assert error_budget(n, rate, delta) == exact_budget(n, rate, delta)


@given(st.integers(1, 60), open_rate, st.data())
def test_budget_is_right_on_both_sides_of_a_tail(n: int, rate: float, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n - 1))
    for delta in around(exact_tail(k, n, rate)):
        if 0.0 < delta < 1.0:
            assert error_budget(n, rate, delta) == exact_budget(n, rate, delta)


@pytest.mark.parametrize(
    ("k", "n", "rate"),
    [
        (0, 10**4, 3e-4),
        (463, 10**4, 0.05),
        (5100, 10**4, 0.5),
        (0, 10**6, 3e-6),
        (7, 10**6, 1e-5),
        (49_640, 10**6, 0.05),
        (4, 10**9, 7.56075592387493e-09),
    ],
)
def test_budget_of_many_points_is_right_on_both_sides_of_a_tail(k: int, n: int, rate: float) -> None:
    tail = tail_60(k, n, rate)
    for delta in around(tail):
        assert as_number(error_budget(n, rate, delta)) == (k if tail <= delta else k - 1), delta


@pytest.mark.parametrize(
    ("n", "rate", "delta"),
    [
        (10**4, 0.05, 0.05),
        (10**5, 0.001, 0.01),
        (10**6, 0.05, 0.05),
        (10**6, 0.3, 1e-6),
        (10**6, 0.01, 1e-300),
        (10**6, 0.5, 5e-324),
        (10**6, 0.5, 1 - 1e-12),
        (10**6, 1 - 1e-12, 0.05),
        (10**6, 1 - 1e-12, 1e-300),
        (10**7, 1e-5, 0.1),
        (10**9, 1e-12, 0.05),
        (10**9, 1e-12, 1 - 1e-12),
        (10**9, 1e-6, 0.05),
        (10**9, 0.05, 0.05),
        (10**9, 0.999, 1e-300),
        (10**12, 1e-12, 0.5),
    ],
)
def test_budget_of_many_points_is_its_definition(n: int, rate: float, delta: float) -> None:
    budget = error_budget(n, rate, delta)
    if budget is not None:
        assert budget <= n - 1
        assert tail_60(budget, n, rate) <= delta
    assert tail_60(as_number(budget) + 1, n, rate) > delta


@pytest.mark.parametrize("n", [1, 3, 5, 59, 1001, 10**6 + 1, 999_999_999])
def test_budget_meets_delta_exactly_for_a_fair_coin(n: int) -> None:
    assert error_budget(n, 0.5, 0.5) == (n - 1) // 2
    below = error_budget(n, 0.5, nextafter(0.5, 0.0))
    assert as_number(below) == (n - 1) // 2 - 1


@pytest.mark.parametrize("rate", EXTREME_RATES)
@pytest.mark.parametrize("delta", EXTREME_DELTAS)
def test_extreme_rates_and_deltas(rate: float, delta: float) -> None:
    for n in (1, 2, 59, 200):
        budget = error_budget(n, rate, delta)
        assert budget == exact_budget(n, rate, delta)
        assert as_number(budget) <= n - 1
    assert as_number(error_budget(10**9, rate, delta)) <= 10**9 - 1


@given(st.integers(0, 5000), open_rate, open_rate)
def test_budget_is_the_largest_that_keeps_delta(n: int, rate: float, delta: float) -> None:
    budget = error_budget(n, rate, delta)
    if budget is not None:
        assert budget <= n - 1
        assert tail_60(budget, n, rate) <= delta
    assert tail_60(as_number(budget) + 1, n, rate) > delta


@given(st.integers(0, 10**6), open_rate, open_rate, st.integers(0, 10**6), open_rate, open_rate)
def test_budget_never_falls_with_n_rate_or_delta(
    n: int, rate: float, delta: float, other_n: int, other_rate: float, other_delta: float
) -> None:
    budget = as_number(error_budget(n, rate, delta))
    more = as_number(error_budget(max(n, other_n), max(rate, other_rate), max(delta, other_delta)))
    assert more >= budget
    assert as_number(error_budget(n + 1, rate, delta)) in (budget, budget + 1)


@pytest.mark.parametrize(("rate", "delta"), [(0.05, 0.05), (1e-6, 0.01), (0.5, 1e-12), (0.999, 0.9)])
def test_budget_takes_microseconds(rate: float, delta: float) -> None:
    def seconds() -> float:
        start = perf_counter()
        error_budget(10**9, rate, delta)
        return perf_counter() - start

    assert median(seconds() for _ in range(101)) < 1e-3


def test_reference_sample_sizes() -> None:
    assert min_samples(0.05, 0.05) == 59
    assert min_samples(0.1, 0.1) == 22
    assert min_samples(0.01, 0.05) == 299


@given(st.floats(1e-6, 0.999), st.floats(1e-9, 0.999), st.integers(0, 60))
def test_min_samples_is_the_first_n_with_that_budget(rate: float, delta: float, errors: int) -> None:
    n = min_samples(rate, delta, errors)
    assert as_number(error_budget(n, rate, delta)) >= errors > as_number(error_budget(n - 1, rate, delta))


@pytest.mark.parametrize("delta", EXTREME_DELTAS)
@pytest.mark.parametrize("rate", EXTREME_RATES)
def test_min_samples_at_the_extremes(rate: float, delta: float) -> None:
    for errors in (0, 3):
        n = min_samples(rate, delta, errors)
        assert as_number(error_budget(n, rate, delta)) >= errors
        assert as_number(error_budget(n - 1, rate, delta)) < errors


@pytest.mark.parametrize("rate", [1e-12, 1e-15])
@pytest.mark.parametrize("delta", [0.05, 1e-300])
def test_min_samples_follows_the_logarithm_for_tiny_rates(rate: float, delta: float) -> None:
    with mpmath.workdps(400):
        least = mpmath.ceil(mpmath.log(delta) / mpmath.log1p(-mpmath.mpf(rate)))
        assert abs(min_samples(rate, delta) / least - 1) < 1e-9


@pytest.mark.parametrize("rate", [5e-324, 1e-100, 1e-30])
def test_rates_that_need_more_labels_than_can_be_counted_are_refused(rate: float) -> None:
    with pytest.raises(InputError, match="needs more than 2\\^62 labels"):
        min_samples(rate, 0.05)


@given(st.integers(1, 10**6), st.floats(1e-9, 0.999), st.data())
def test_upper_bound_is_the_least_rate_with_that_budget(n: int, delta: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, min(n - 1, 1000)) | st.integers(0, n - 1))
    rate = upper_bound(errors, n, delta)
    assert achievable_rate(n, delta, errors) == rate
    if rate < 1.0:
        assert error_budget(n, rate, delta) == errors
        assert as_number(error_budget(n, rate * (1 - 1e-9), delta)) < errors


@pytest.mark.parametrize("n", [10**8, 10**9])
@pytest.mark.parametrize("errors", [0, 1, 3, 20, 1000])
@pytest.mark.parametrize("delta", [0.001, 0.1])
def test_upper_bound_is_the_least_rate_for_many_points(n: int, errors: int, delta: float) -> None:
    rate = upper_bound(errors, n, delta)
    assert error_budget(n, rate, delta) == errors
    assert as_number(error_budget(n, rate * (1 - 1e-9), delta)) < errors


def test_upper_bound_of_a_single_point_is_one_minus_delta() -> None:
    assert upper_bound(0, 1, 0.25) == 0.75
    assert upper_bound(0, 2, 0.25) == 0.5


@pytest.mark.parametrize("n", [3, 59, 1000, 10**6])
@pytest.mark.parametrize("delta", [1e-12, 1e-100, 1e-300])
def test_upper_bound_of_nearly_all_errors_stays_a_rate(n: int, delta: float) -> None:
    for errors in (n - 1, n - 2, n - 3):
        rate = upper_bound(errors, n, delta)
        assert errors / n < rate <= 1.0
        if rate < 1.0:
            assert error_budget(n, rate, delta) == errors


@given(st.integers(1, 10**5), st.floats(1e-6, 0.999), st.data())
def test_lower_bound_is_where_so_many_errors_have_chance_delta(
    n: int, delta: float, data: st.DataObject
) -> None:
    errors = data.draw(st.integers(1, n))
    rate = lower_bound(errors, n, delta)
    assert 1 - tail_60(errors - 1, n, rate * (1 - 1e-9)) < delta
    if rate * (1 + 1e-9) < 1.0:
        assert 1 - tail_60(errors - 1, n, rate * (1 + 1e-9)) > delta


@pytest.mark.parametrize("n", [0, 1, 59, 10**9])
def test_bounds_at_no_error_and_at_nothing_but_errors(n: int) -> None:
    assert lower_bound(0, n, 0.05) == 0.0
    assert upper_bound(n, n, 0.05) == 1.0
    assert interval(0, n)[0] == 0.0
    assert interval(n, n)[1] == 1.0
    if n:
        assert upper_bound(0, n, 0.05) == pytest.approx(float(-mpmath.expm1(mpmath.log(0.05) / n)), rel=1e-12)
        assert lower_bound(n, n, 0.05) == pytest.approx(
            float(mpmath.mpf(0.05) ** (mpmath.mpf(1) / n)), rel=1e-12
        )


@pytest.mark.parametrize(
    ("errors", "n", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17:857, table I, method 5
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0000, 0.1684),
        (1, 29, 0.0009, 0.1776),
        # R: binom.test(682, 925) gives 0.7076683 0.7654066
        (682, 925, 0.7077, 0.7654),
    ],
)
def test_published_intervals(errors: int, n: int, low: float, high: float) -> None:
    assert interval(errors, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 5000), st.floats(0.01, 0.999), st.data())
def test_interval_leaves_half_the_doubt_on_each_side(n: int, level: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    low, high = interval(errors, n, level)
    assert 0.0 <= low <= errors / n <= high <= 1.0
    half = (1.0 - level) / 2.0
    if errors < n:
        assert float(tail_60(errors, n, high)) == pytest.approx(half, rel=1e-6)
    if errors > 0:
        assert float(1 - tail_60(errors - 1, n, low)) == pytest.approx(half, rel=1e-6)


@given(st.integers(1, 60), open_rate, st.data())
def test_confidence_is_the_other_tail(n: int, rate: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    assert confidence(n, rate, errors) == pytest.approx(float(1 - exact_tail(errors, n, rate)), rel=1e-12)


def test_confidence_without_a_budget_is_certain_and_with_n_errors_is_none() -> None:
    assert confidence(58, 0.05, None) == 1.0
    assert confidence(0, 0.05, None) == 1.0
    assert confidence(58, 0.05, 58) == 0.0
    assert confidence(0, 0.05, 0) == 0.0


@pytest.mark.parametrize(
    "ask",
    [
        lambda: upper_bound(1_001, 1_000, 0.05),
        lambda: lower_bound(1_001, 1_000, 0.05),
        lambda: interval(1_001, 1_000),
        lambda: confidence(1_000, 0.05, 1_001),
        lambda: achievable_rate(1_000, 0.05, 1_001),
    ],
)
def test_more_errors_than_points_are_refused(ask: Callable[[], object]) -> None:
    assert refusal(ask) == "errors must not exceed n, got 1,001 errors among 1,000 points"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: error_budget(-1, 0.05, 0.05), ("n must be a whole number", "-1")),
        (lambda: error_budget(59, 1.0, 0.05), ("rate must lie strictly between 0 and 1", "1.0")),
        (lambda: error_budget(59, 0.05, 0.0), ("delta must lie strictly between 0 and 1", "0.0")),
        (lambda: min_samples(0.0, 0.05), ("rate must lie strictly", "0.0")),
        (lambda: min_samples(0.05, 2.0), ("delta must lie strictly", "2.0")),
        (lambda: min_samples(0.05, 0.05, -3), ("errors must be a whole number", "-3")),
        (lambda: confidence(-5, 0.05, 0), ("n must be a whole number", "-5")),
        (lambda: confidence(5, 5.0, 0), ("rate must lie strictly", "5.0")),
        (lambda: upper_bound(-1, 5), ("errors must be a whole number", "-1")),
        (lambda: upper_bound(1, 5, 1.5), ("delta must lie strictly", "1.5")),
        (lambda: lower_bound(1, -5), ("n must be a whole number", "-5")),
        (lambda: lower_bound(1, 5, -0.5), ("delta must lie strictly", "-0.5")),
        (lambda: interval(1, 5, 95.0), ("confidence must lie strictly", "95.0")),
    ],
)
def test_arguments_are_checked_by_name(ask: Callable[[], object], words: tuple[str, ...]) -> None:
    message = refusal(ask)
    assert all(word in message for word in words), message
