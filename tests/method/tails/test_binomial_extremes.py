"""Arguments that nobody means seriously are answered soon and rightly, or refused in one sentence."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import isnan, nextafter
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.tails.bounds import (
    cdf_at_most,
    error_budget,
    exact_confidence,
    interval,
    lower_bound,
    min_samples,
    sf_at_most,
    upper_bound,
)
from support.slow import slow_but
from support.strategies import exact_tail

# sizes where SciPy is asked, just beyond, and as many as can be counted
SIZES = (1, 59, 10**12 + 1, 10**12, 2**63 - 1)
SHARES = (5e-324, 1e-308, 1e-9, 0.3, 0.5, 1 - 1e-9, 1 - 2.0**-53)
# of the processor: milliseconds, where it took minutes to years before
SECONDS = 10.0


def answered(ask: Callable[..., Any], *arguments: Any) -> Any:
    """Return the answer, or None if it was refused in one sentence; either must come soon."""
    start, sentence = process_time(), ""
    try:
        answer = ask(*arguments)
    except InputError as refused:
        answer, sentence = None, str(refused)
    assert process_time() - start < SECONDS
    assert "\n" not in sentence
    return answer


@pytest.mark.parametrize("n", slow_but(3, SIZES))
def test_budgets_of_any_size_are_their_definition(n: int) -> None:
    for rate, delta in product(SHARES, SHARES[::2] if n > 10**12 else SHARES):
        budget = answered(error_budget, n, rate, delta)
        assert budget is None or cdf_at_most(budget, n, rate, delta)
        assert not cdf_at_most(0 if budget is None else budget + 1, n, rate, delta)


@pytest.mark.parametrize("n", slow_but(3, SIZES))
def test_bounds_of_any_size_are_their_definition(n: int) -> None:
    for part, delta in product((0, 1, n // 3, n), SHARES):
        errors = min(part, n)
        upper = answered(upper_bound, errors, n, delta)
        lower = answered(lower_bound, errors, n, delta)
        assert 0.0 <= lower <= 1.0
        assert 0.0 < upper <= 1.0
        if upper < 1.0:
            assert cdf_at_most(errors, n, upper, delta)
            below = nextafter(upper * (1 - 1e-9), 0.0)
            assert below <= 0.0 or not cdf_at_most(errors, n, below, delta)
        if lower > 0.0:
            assert sf_at_most(errors, n, lower, delta)
            above = nextafter(lower * (1 + 1e-9), 2.0)
            assert above >= 1.0 or not sf_at_most(errors, n, above, delta)


@pytest.mark.parametrize("n", slow_but(3, SIZES))
def test_confidences_and_intervals_of_any_size_are_numbers(n: int) -> None:
    for errors, share in product((0, n // 3, n), SHARES):
        reached = answered(exact_confidence, n, share, errors)
        low, high = answered(interval, errors, n, share)
        assert 0.0 <= reached <= 1.0
        assert not isnan(low + high)
    assert exact_confidence(n, 0.3, n * 3 // 10) == pytest.approx(0.5, abs=0.35 if n < 60 else 1e-4)


@pytest.mark.parametrize("errors", slow_but(2, [0, 10**12, 1, 2**63 - 1]))
def test_sample_sizes_of_any_promise_are_their_definition_or_refused(errors: int) -> None:
    for rate, delta in product(SHARES, SHARES):
        n = answered(min_samples, rate, delta, errors)
        if n is not None:
            assert cdf_at_most(errors, n, rate, delta)
            assert not cdf_at_most(errors, n - 1, rate, delta)


def test_a_budget_that_took_years_takes_milliseconds() -> None:
    start = process_time()
    assert error_budget(10**15, 0.3, 0.5) == 3 * 10**14 - 1
    assert process_time() - start < 1.0


@given(st.integers(1, 60), st.floats(5e-324, 1.0, exclude_max=True), st.data())
def test_a_lower_bound_is_rounded_down_whatever_delta(n: int, delta: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(1, n))
    rate = lower_bound(errors, n, delta)
    assert 1 - exact_tail(errors - 1, n, rate) <= Fraction(delta)
    above = nextafter(rate * (1 + 2e-14), 2.0)
    assert above >= 1.0 or 1 - exact_tail(errors - 1, n, above) > Fraction(delta)


@given(st.integers(1, 10**6), st.floats(1e-9, 0.999), st.data())
def test_the_lower_bound_mirrors_the_upper_one(n: int, delta: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    assert lower_bound(errors, n, delta) == pytest.approx(1 - upper_bound(n - errors, n, delta), abs=1e-13)


def test_a_lower_bound_at_a_subnormal_delta_is_a_rate() -> None:
    # of one point, the chance of an error is the rate itself
    assert lower_bound(1, 1, 5e-324) == 5e-324
    assert 0.0 < lower_bound(20, 20, 5e-324) < 1e-16
