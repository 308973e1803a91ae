from collections.abc import Callable

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.tails.bounds import (
    error_budget,
    interval,
    lower_bound,
    min_samples,
    upper_bound,
)
from support.strategies import refusal, tail_60

EXTREME_RATES = (1e-12, 0.05, 0.5, 1 - 1e-12)
EXTREME_DELTAS = (5e-324, 1e-300, 0.05, 0.5, 1 - 1e-12)


def as_number(budget: int | None) -> int:
    return -1 if budget is None else budget


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


@pytest.mark.parametrize(
    "ask",
    [
        lambda: upper_bound(1_001, 1_000, 0.05),
        lambda: lower_bound(1_001, 1_000, 0.05),
        lambda: interval(1_001, 1_000),
    ],
)
def test_more_errors_than_points_are_refused(ask: Callable[[], object]) -> None:
    assert refusal(ask) == "errors must not exceed n, got 1,001 errors among 1,000 points"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: min_samples(0.0, 0.05), ("rate must lie strictly", "0.0")),
        (lambda: min_samples(0.05, 2.0), ("delta must lie strictly", "2.0")),
        (lambda: min_samples(0.05, 0.05, -3), ("errors must be a whole number", "-3")),
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
