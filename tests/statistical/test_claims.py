"""The assertions themselves: they accept the truth, and they can fail."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from statistical.claims import FALSE_ALARM, POWER, accepted, assert_at_most, assert_power, assert_rate

RATES = (0.001, 0.0264, 0.05, 0.3, 0.5, 0.97)


def tail(low: int, high: int, trials: int, rate: Fraction) -> Fraction:
    """Probability of low to high hits, without rounding."""
    part, whole = rate.as_integer_ratio()
    ways = (
        comb(trials, hits) * part**hits * (whole - part) ** (trials - hits) for hits in range(low, high + 1)
    )
    return Fraction(sum(ways), whole**trials)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("at_most", [False, True])
def test_a_true_rate_is_refused_no_more_often_than_stated(rate: float, at_most: bool) -> None:
    trials, exact = 300, Fraction(rate)
    low, high = accepted(trials, rate, at_most=at_most)
    per_side = Fraction(FALSE_ALARM) / (1 if at_most else 2)
    assert tail(0, low - 1, trials, exact) <= per_side
    assert tail(high + 1, trials, trials, exact) <= per_side


@pytest.mark.parametrize("rate", RATES)
def test_no_wider_than_the_false_alarm_rate_needs(rate: float) -> None:
    trials, exact = 300, Fraction(rate)
    low, high = accepted(trials, rate)
    per_side = Fraction(FALSE_ALARM) / 2
    assert tail(0, low, trials, exact) > per_side
    assert tail(high, trials, trials, exact) > per_side


@pytest.mark.parametrize("wrong", [0.033, 0.04, 0.06, 0.07])
def test_a_wrong_rate_is_caught_as_often_as_the_binomial_says(wrong: float) -> None:
    trials, repeats, rate = 10_000, 400, 0.05
    caught = 0
    for hits in np.random.default_rng(20).binomial(trials, wrong, repeats):
        try:
            assert_rate(int(hits), trials, rate)
        except AssertionError:
            caught += 1
    low, high = accepted(trials, rate)
    missed = float(binom.cdf(high, trials, wrong) - binom.cdf(low - 1, trials, wrong))
    assert_rate(repeats - caught, repeats, missed)
    if missed <= 1 - POWER:
        assert_power(trials, rate, wrong)
    else:
        with pytest.raises(AssertionError, match="10,000 trials catch a rate of"):
            assert_power(trials, rate, wrong)


def test_both_sides_are_refused() -> None:
    assert_rate(500, 10_000, 0.05)
    with pytest.raises(AssertionError, match=r"contradict a rate = 0\.05"):
        assert_rate(650, 10_000, 0.05)
    with pytest.raises(AssertionError, match=r"contradict a rate = 0\.05"):
        assert_rate(350, 10_000, 0.05)


def test_at_most_refuses_only_too_many() -> None:
    assert_at_most(0, 10_000, 0.05)
    assert_at_most(500, 10_000, 0.05)
    with pytest.raises(AssertionError, match=r"contradict a rate <= 0\.05"):
        assert_at_most(650, 10_000, 0.05)


def test_what_cannot_happen_may_not_happen_once() -> None:
    assert_rate(0, 10_000, 0.0)
    assert_rate(10_000, 10_000, 1.0)
    assert_at_most(3, 10_000, 1.0)
    with pytest.raises(AssertionError):
        assert_rate(1, 10_000, 0.0)
    with pytest.raises(AssertionError):
        assert_rate(9_999, 10_000, 1.0)


def test_too_few_trials_are_refused() -> None:
    with pytest.raises(AssertionError, match=r"100 trials catch a rate of 0\.07 instead of 0\.05"):
        assert_power(100, 0.05, 0.07)
    with pytest.raises(AssertionError, match=r"not 0\.999"):
        assert_power(10_000, 0.05, 0.01, at_most=True)
    with pytest.raises(AssertionError):
        assert_power(10_000, 0.05, 0.05)
