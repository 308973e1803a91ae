"""The wealth of a bet on a rate above its ceiling: exact values and chances of an alarm, bounds of a rate."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import comb, exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import betaincc, betaln

from pac_wrap import InputError
from pac_wrap.method.monitoring.bets import confidence_sequence, log_evidence
from pac_wrap.tails import bounds

E = Fraction(1, 20)
Doubles = NDArray[np.float64]


def exact(k: int, n: int, e: Fraction = E) -> Fraction:
    """The mean of the likelihood ratio over rates above e: a polynomial, integrated."""
    # r^k (1-r)^(n-k), expanded
    terms = [(comb(n - k, i) * (-1) ** i, k + i + 1) for i in range(n - k + 1)]
    integral = sum(Fraction(factor, power) * (1 - e**power) for factor, power in terms)
    return integral / (1 - e) / (e**k * (1 - e) ** (n - k))


def with_prior(a: float, b: float) -> Callable[[Doubles, Doubles], Doubles]:
    """The same for any beta prior, in the textbook's form, which loses digits where n is large."""

    def wealth(k: Doubles, n: Doubles) -> Doubles:
        ratio = betaln(a + k, b + n - k) - betaln(a, b) - k * log(0.05) - (n - k) * log(0.95)
        return np.asarray(ratio + np.log(betaincc(a + k, b + n - k, 0.05) / betaincc(a, b, 0.05)))

    return wealth


def crossing(wealth: Callable[[Doubles, Doubles], Doubles], rate: float, steps: int, alpha: float) -> Doubles:
    """The exact probability that the bar was reached by each step: a walk with an absorbing boundary."""
    labels = np.arange(1.0, steps + 1)
    # the fewest errors that reach the bar after each label, by halving: beyond the ceiling they raise it
    low, high = np.floor(labels * 0.05), labels + 1
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        over = wealth(middle, labels) >= -log(alpha)
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    mass = np.zeros(int(high[-1]) + 2)
    mass[0] = 1.0
    gone = np.zeros(steps)
    for n, cut in enumerate(high.astype(int).tolist()):
        mass[1 : cut + 1] = mass[1 : cut + 1] * (1.0 - rate) + mass[:cut] * rate
        mass[0] *= 1.0 - rate
        gone[n] = mass[cut]
        mass[cut] = 0.0
    return np.cumsum(gone)


def uniform(k: Doubles, n: Doubles) -> Doubles:
    return log_evidence(k, n, 0.05)


def median(gone: Doubles) -> int:
    return int(np.argmax(gone >= 0.5)) + 1


@pytest.mark.parametrize(("k", "n"), [(0, 0), (1, 1), (0, 1), (3, 7), (0, 40), (40, 40), (2, 60), (25, 60)])
def test_it_is_the_mean_likelihood_ratio(k: int, n: int) -> None:
    assert float(log_evidence(k, n, 0.05)) == pytest.approx(log(exact(k, n)), abs=1e-12)


@given(st.integers(0, 30), st.integers(0, 30))
def test_the_next_label_changes_nothing_on_average_at_the_ceiling(k: int, more: int) -> None:
    n, e = k + more, 0.05
    after = e * exp(log_evidence(k + 1, n + 1, e)) + (1 - e) * exp(log_evidence(k, n + 1, e))
    assert after == pytest.approx(exp(log_evidence(k, n, e)), rel=1e-11)


@pytest.mark.parametrize(
    ("k", "n", "e"),
    [
        (51_000, 10**6, 0.05),
        (49_000, 10**6, 0.05),
        (0, 10**6, 0.05),
        (50_060_000, 10**9, 0.05),
        (49_700_000, 10**9, 0.05),
        (10**7, 10**9, 0.05),
        (1_200, 10**9, 1e-6),
        (999_999_000, 10**9, 0.99999),
    ],
)
def test_a_billion_labels_are_as_exact(k: int, n: int, e: float) -> None:
    """Against 60 decimal digits."""
    with bounds._wide_context(n):
        rate = Fraction(e)
        tail, mass = bounds._cdf_to_40_digits(k, n + 1, rate), bounds._pmf(k, n, rate)
        wealth = tail / ((1 - Decimal(e)) * (n + 1) * mass)
        expected = float(wealth.ln())
    assert float(log_evidence(k, n, e)) == pytest.approx(expected, abs=1e-6)


def test_a_broken_ceiling_is_found_as_fast_as_stated() -> None:
    """Exact medians, and with the prior Beta(1/2, 1/2) for comparison; then alarms within 5,000 labels."""
    other = with_prior(0.5, 0.5)
    assert [median(crossing(uniform, rate, 600, 0.05)) for rate in (0.1, 0.2)] == [221, 25]
    assert [median(crossing(other, rate, 600, 0.05)) for rate in (0.1, 0.2)] == [220, 26]
    assert crossing(uniform, 0.05, 5000, 0.05)[-1] == pytest.approx(0.0195, abs=5e-5)
    assert crossing(other, 0.05, 5000, 0.05)[-1] == pytest.approx(0.0186, abs=5e-5)


def test_the_exact_chance_is_that_of_simulated_labels() -> None:
    """Within four standard deviations of 4,000 runs."""
    rng = np.random.default_rng(3)
    labels = rng.random((4000, 200)) < 0.1
    each = log_evidence(np.arange(201)[:, None], np.maximum(np.arange(201)[:, None], np.arange(1, 201)), 0.05)
    heights = each[np.cumsum(labels, axis=1), np.arange(200)]
    hits = int((heights >= log(20.0)).any(axis=1).sum())
    chance = crossing(uniform, 0.1, 200, 0.05)[-1]
    assert abs(hits - 4000 * chance) < 4 * (4000 * chance * (1 - chance)) ** 0.5


@pytest.mark.slow
def test_a_kept_ceiling_raises_no_more_alarms_than_allowed_in_100_000() -> None:
    """The exact chance, at the worst rate that is allowed."""
    assert 0.2 * 0.05 < crossing(uniform, 0.05, 100_000, 0.05)[-1] <= 0.05


@given(st.integers(0, 200), st.integers(0, 200), st.sampled_from([0.3, 0.05, 0.001]))
def test_bounds_are_where_the_bet_against_them_wins(errors: int, others: int, alpha: float) -> None:
    n = errors + others
    low, high = confidence_sequence(errors, n, alpha)
    assert 0.0 <= low <= (errors / n if n else 0.5) <= high <= 1.0
    if low > 0.0:
        assert float(log_evidence(errors, n, low)) == pytest.approx(-log(alpha), abs=1e-6)
    assert confidence_sequence(others, n, alpha) == pytest.approx((1.0 - high, 1.0 - low), abs=1e-9)


@given(st.integers(1, 300), st.integers(0, 300))
def test_the_wealth_does_not_rise_with_the_rate_that_is_bet_against(errors: int, others: int) -> None:
    """What makes the bounds an interval, for all rates below the share."""
    n = errors + others
    rates = np.linspace(0.0, errors / n, 60)[1:-1]
    heights = np.array([float(log_evidence(errors, n, rate)) for rate in rates])
    assert (np.diff(heights) <= 1e-9).all()


def test_what_is_no_count_is_refused() -> None:
    with pytest.raises(InputError, match="errors must not exceed n"):
        confidence_sequence(3, 2, 0.05)
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        confidence_sequence(1, 2, 1.0)


@pytest.mark.parametrize(
    ("k", "n", "e"), [(10, 3000, Fraction(1, 2)), (400, 5000, Fraction(2, 5)), (5, 700, Fraction(7, 10))]
)
def test_the_wealth_is_exact_where_the_tail_is_far_below_all_doubles(k: int, n: int, e: Fraction) -> None:
    """Eq. (81) by the binomial sum, in exact fractions."""
    odds, term, ratio = e / (1 - e), Fraction(1), Fraction(0)
    for i in range(k + 1):  # of b(i; n + 1, e) to b(0; n + 1, e)
        ratio += term
        last, term = term, term * Fraction(n + 1 - i, i + 1) * odds
    # b(k; n, e) is b(k; n + 1, e) (n + 1 - k) / ((n + 1) (1 - e))
    wealth = ratio / last / (n + 1 - k)
    assert betaincc(k + 1, n - k + 1, float(e)) < 1e-250
    expected = float(Decimal(wealth.numerator).ln() - Decimal(wealth.denominator).ln())
    assert float(log_evidence(k, n, float(e))) == pytest.approx(expected, abs=1e-11)
