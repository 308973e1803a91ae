from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import nextafter
from statistics import median
from time import process_time
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.tails import bounds as module
from pac_wrap.tails.bounds import MANY, cdf, cdf_at_most, error_budget, exact_confidence, sf_at_most
from support.slow import slow_but
from support.strategies import TAILS, around, exact_budget, exact_tail, refusal, tail_60

EXTREME_RATES = (1e-12, 0.05, 0.5, 1 - 1e-12)
EXTREME_DELTAS = (5e-324, 1e-300, 0.05, 0.5, 1 - 1e-12)
PROBABILITIES = (5e-324, 1e-12, 0.01, 0.05, 0.3, 0.5, 0.9, 1 - 1e-12)
open_rate = st.floats(1e-4, 0.999)


def as_number(budget: int | None) -> int:
    return -1 if budget is None else budget


def test_both_tails_agree_with_exact_fractions() -> None:
    for p, n in product(PROBABILITIES, (1, 2, 7, 30)):
        for k in range(n):
            below = exact_tail(k, n, p)
            assert cdf(k, n, p) == pytest.approx(float(below), rel=1e-13), (k, n, p)


def test_all_n_errors_or_fewer_are_certain() -> None:
    assert cdf(0, 0, 0.3) == cdf(5, 5, 0.3) == cdf(9, 5, 0.3) == 1.0
    assert not cdf_at_most(5, 5, 0.3, nextafter(1.0, 0.0))


def test_delta_beside_the_tail_is_decided_by_the_fraction() -> None:
    for p, n in product(PROBABILITIES, (1, 2, 5, 20, 60)):
        for k in {0, n // 3, n // 2, n - 1}:
            tail = exact_tail(k, n, p)
            for delta in around(tail):
                if 0.0 < delta < 1.0:
                    assert cdf_at_most(k, n, p, delta) == (tail <= delta), (k, n, p, delta)


@pytest.mark.parametrize(
    ("k", "n", "p"),
    [
        (0, 10**4, 1e-4),
        (463, 10**4, 0.05),
        (4900, 10**4, 0.5),
        (9995, 10**4, 0.9999),
        (3, 10**6, 1.4883312320326456e-05),
        (49_640, 10**6, 0.05),
        pytest.param(700_500, 10**6, 0.7, marks=pytest.mark.slow),
        (17, 10**8, 2.245841812034951e-07),
        # SciPy's tail is off by 1.3e-11 to 5.2e-11 in the next four
        (14, 5 * 10**8, 7.479394811780778e-08),
        (4, 10**9, 7.56075592387493e-09),
        (31, 10**9, 4.418010988313148e-08),
        (2, 2 * 10**9, 4.015008650934519e-09),
        # the reference adds up the most terms
        pytest.param(4_996_000, 10**8, 0.05, marks=pytest.mark.slow),
    ],
)
def test_delta_beside_the_tail_is_decided_by_60_digits(k: int, n: int, p: float) -> None:
    tail = tail_60(k, n, p)
    for delta in around(tail):
        assert cdf_at_most(k, n, p, delta) == (tail <= delta), delta


@pytest.mark.parametrize("n", [1, 3, 99, 1999, 2001, 99_999, 9_999_999, 999_999_999])
def test_the_median_of_a_fair_coin_is_exactly_one_half(n: int) -> None:
    assert cdf_at_most((n - 1) // 2, n, 0.5, 0.5)
    assert not cdf_at_most((n - 1) // 2, n, 0.5, nextafter(0.5, 0.0))


def test_powers_of_two_are_equal_down_to_the_smallest_double() -> None:
    assert cdf_at_most(0, 1074, 0.5, 5e-324)
    assert not cdf_at_most(0, 1073, 0.5, 5e-324)
    assert not cdf_at_most(1, 1074, 0.5, 5e-324)
    assert cdf_at_most(0, 20, 1 - 2.0**-53, 2.0**-1060)
    assert not cdf_at_most(0, 20, 1 - 2.0**-53, nextafter(2.0**-1060, 0.0))


def agrees(found: Decimal, expected: Any, digits: int) -> bool:
    """Return whether a decimal and a number of mpmath agree to so many digits, relative."""
    with mpmath.workdps(100):
        return bool(abs(mpmath.mpf(str(found)) - expected) <= abs(expected) * mpmath.mpf(10) ** -digits)


@pytest.mark.parametrize("m", [1000, 1001, 1234, 5000, 10**5, 10**9, 10**15, 2**63 - 1])
def test_the_logarithm_of_a_factorial_has_58_digits(m: int) -> None:
    with module._wide_context(m), mpmath.workdps(100):
        assert agrees(module._log_factorial(m), mpmath.loggamma(m + 1), 58)


@pytest.mark.parametrize(
    ("k", "n", "p"),
    [
        (1000, 2000, 0.5),
        (1000, 30_000, 0.04),
        (999, 10**15, 1e-12),
        (1000, 10**15, 1e-12),
        (999_999, 10**7, 0.1),
        (10**6, 10**7, 0.1),
        (10**9 - 999, 10**9, 1 - 1e-6),
        (3 * 10**17, 10**18, 0.3),
        (2**62, 2**63 - 1, 0.5),
    ],
)
def test_the_chance_of_exactly_k_errors_has_55_digits(k: int, n: int, p: float) -> None:
    with module._wide_context(n), mpmath.workdps(100):
        hit = mpmath.mpf(p)
        ways = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        expected = mpmath.exp(ways + k * mpmath.log(hit) + (n - k) * mpmath.log(1 - hit))
        assert agrees(module._pmf(k, n, Fraction(p)), expected, 55)


@pytest.mark.parametrize(
    ("k", "n", "p"),
    slow_but(
        6,
        [
            (1000, 2000, 0.5),
            (1007, 2000, 0.5),
            (1040, 20_000, 0.05),
            (1000, 10**6, 0.0011),
            (998_900, 10**6, 0.999),
            (10**6, 10**7, 0.1),
            (10**6 - 1, 10**7, 0.1),
            (10**6 + 900, 10**7, 0.1),
            (7 * 10**6 + 1, 10**7, 0.7),
            (2 * 10**6, 10**8, 0.0201),
        ],
        several=True,
    ),
)
def test_the_tail_of_a_thousand_errors_and_more_has_40_digits(k: int, n: int, p: float) -> None:
    with module._wide_context(n):
        assert agrees(module._cdf_to_40_digits(k, n, Fraction(p)), tail_60(k, n, p), 42)


@given(st.integers(MANY, 10**12), st.integers(MANY, 10**12), st.floats(1.0, 3.0), st.data())
def test_the_integral_is_the_sum(k: int, others: int, above: float, data: st.DataObject) -> None:
    """At least six digits of p apart from k / n, so that the sum has few terms."""
    n = k + others
    p = data.draw(st.floats(min(k / n * (1.0 + 1e-3 * above), (1.0 + k / n) / 2), 1.0, exclude_max=True))
    with module._wide_context(n):
        by_terms = module._sum(k, n, Fraction(p))
        assert abs(module._integral(k, n, Fraction(p)) - by_terms) <= by_terms * Decimal("1e-44")


@pytest.mark.parametrize(
    ("n", "p"),
    slow_but(
        1,
        [(2**63 - 1, 0.3), (2**63 - 1, 1e-9), (10**18, 0.5), (10**15, 0.999999), (10**12, 0.3)],
        several=True,
    ),
)
@pytest.mark.parametrize("deviations", slow_but(2, [1.6, 30, 0]))
def test_the_integral_is_what_gauss_and_legendre_find(n: int, p: float, deviations: float) -> None:
    sd = (n * p * (1.0 - p)) ** 0.5
    k = int(n * Fraction(p)) - int(deviations * sd)
    if min(k, n - k) < MANY:
        return
    with module._wide_context(n):
        found = module._integral(k, n, Fraction(p))
    with mpmath.workdps(90):
        hit = mpmath.mpf(p)
        width = float(hit) / max(sd * (1.0 - p), float(n * hit - k), 1.0)  # about where it has fallen to 1/e
        edges = [0, *(width * step for step in (1, 2, 4, 8, 16, 32, 64, 128, 256))]
        area = mpmath.quad(
            lambda s: mpmath.exp(k * mpmath.log1p(s / hit) - (n + 1) * mpmath.log1p(s)), edges, maxdegree=8
        )
        assert agrees(found, (n - k) * area, 42)


@pytest.mark.parametrize("n", [10**12 + 1, 10**15 + 1, 10**18 + 1, 2**63 - 1])
def test_a_fair_coin_is_exact_for_as_many_points_as_can_be_counted(n: int) -> None:
    assert cdf_at_most((n - 1) // 2, n, 0.5, 0.5)
    assert not cdf_at_most((n - 1) // 2, n, 0.5, nextafter(0.5, 0.0))
    assert sf_at_most((n + 1) // 2, n, 0.5, 0.5)
    assert not sf_at_most((n + 1) // 2, n, 0.5, nextafter(0.5, 0.0))
    assert cdf((n - 1) // 2, n, 0.5) == 0.5


def test_the_upper_tail_is_decided_by_the_fraction_too() -> None:
    for p, n in product(PROBABILITIES, (1, 2, 5, 20, 60)):
        assert not sf_at_most(0, n, p, nextafter(1.0, 0.0)), (n, p)
        for k in {1, n // 3 + 1, n}:
            tail = 1 - exact_tail(k - 1, n, p)
            for delta in around(tail):
                if 0.0 < delta < 1.0:
                    assert sf_at_most(k, n, p, delta) == (tail <= delta), (k, n, p, delta)


@pytest.mark.parametrize(
    ("n", "errors", "tail"),
    TAILS,
)
def test_reference_budgets_at_five_percent(n: int, errors: int, tail: float) -> None:
    assert error_budget(n, 0.05, 0.05) == errors
    assert 1 - exact_confidence(n, 0.05, errors) == pytest.approx(tail, abs=5e-5)


@pytest.mark.parametrize("rate", [1e-12, 0.01, 0.05, 0.1, 0.25, 0.5, 0.9, 1 - 1e-12])
def test_budget_is_its_definition_for_every_small_n(rate: float) -> None:
    for delta, n in product((5e-324, 0.001, 0.05, 0.5, 0.95, 1 - 1e-12), range(61)):
        assert error_budget(n, rate, delta) == exact_budget(n, rate, delta), (n, delta)


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
        pytest.param(10**8, 0.05, 0.05, marks=pytest.mark.slow),
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


def test_extreme_rates_and_deltas() -> None:
    for rate, delta in product(EXTREME_RATES, EXTREME_DELTAS):
        for n in (1, 2, 59, 200):
            budget = error_budget(n, rate, delta)
            assert budget == exact_budget(n, rate, delta), (n, rate, delta)
            assert as_number(budget) <= n - 1, (n, rate, delta)
        assert as_number(error_budget(10**9, rate, delta)) <= 10**9 - 1, (rate, delta)


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
        start = process_time()
        error_budget(10**9, rate, delta)
        return process_time() - start

    assert median(seconds() for _ in range(101)) < 1e-3


@given(st.integers(1, 60), open_rate, st.data())
def test_confidence_is_the_other_tail(n: int, rate: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    assert exact_confidence(n, rate, errors) == pytest.approx(
        float(1 - exact_tail(errors, n, rate)), rel=1e-12
    )


def test_confidence_without_a_budget_is_certain_and_with_n_errors_is_none() -> None:
    assert exact_confidence(58, 0.05, None) == 1.0
    assert exact_confidence(0, 0.05, None) == 1.0
    assert exact_confidence(58, 0.05, 58) == 0.0
    assert exact_confidence(0, 0.05, 0) == 0.0


def test_more_errors_than_points_have_no_confidence() -> None:
    message = refusal(lambda: exact_confidence(1_000, 0.05, 1_001))
    assert message == "errors must not exceed n, got 1,001 errors among 1,000 points"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: error_budget(-1, 0.05, 0.05), ("n must be a whole number", "-1")),
        (lambda: error_budget(59, 1.0, 0.05), ("rate must lie strictly between 0 and 1", "1.0")),
        (lambda: error_budget(59, 0.05, 0.0), ("delta must lie strictly between 0 and 1", "0.0")),
        (lambda: exact_confidence(-5, 0.05, 0), ("n must be a whole number", "-5")),
        (lambda: exact_confidence(5, 5.0, 0), ("rate must lie strictly", "5.0")),
    ],
)
def test_arguments_are_checked_by_name(ask: Callable[[], object], words: tuple[str, ...]) -> None:
    message = refusal(ask)
    assert all(word in message for word in words), message
