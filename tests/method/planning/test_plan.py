"""Forecasts of labels: against SciPy's beta-binomial, and against every number of labels tried."""

from math import inf
from sys import float_info
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom, nbinom

from pac_wrap import Guarantee, InputError, Reviews, plan
from pac_wrap.base.floats import rounded_up
from pac_wrap.method.planning.plan import Need, Posterior, needed, pilot_of
from pac_wrap.method.planning.sequential import stopping
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.tails import error_budget, min_samples
from pac_wrap.tails.bounds import cdf, upper_bound
from pac_wrap.tails.units import refutes

FIVE = Guarantee().promises[0]
RNG = np.random.default_rng(66)


@given(st.integers(0, 30), st.integers(0, 200), st.integers(0, 40), st.integers(0, 500))
def test_the_tail_is_that_of_the_beta_binomial(errors: int, more: int, k: int, others: int) -> None:
    counted, n = Posterior(errors, errors + more), k + others
    expected = betabinom.cdf(k, n, errors + 0.5, more + 0.5)
    assert counted.within(k, n) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("rate", [0.005, 0.01, 0.02, 0.03])
def test_no_fewer_labels_have_the_power(rate: float) -> None:
    chances = [0.5, 0.8, 0.9, 0.95]

    def power(n: int) -> float:
        budget = error_budget(n, FIVE.ceiling, FIVE.delta)
        return 0.0 if budget is None else float(binom.cdf(budget, n, rate))

    powers = [power(n) for n in range(1200 if rate < 0.03 else 2000)]
    least = [next(n for n, found in enumerate(powers) if found >= chance) for chance in chances]
    found = needed(FIVE, chances, lambda errors, n: cdf(errors, n, rate))
    assert [one.labels if one else None for one in found] == least
    assert all(one is not None and one.errors == error_budget(one.labels, 0.05, 0.05) for one in found)


def test_what_no_number_of_labels_makes_likely() -> None:
    small = Posterior(1, 20)
    assert small.below(0.05) == pytest.approx(0.46, abs=0.05)
    assert needed(FIVE, [0.4, 0.8], small.within)[1] is None
    assert needed(FIVE, [0.9], lambda errors, n: cdf(errors, n, 0.06)) == [None]
    assert all(small.within(budget, n) <= small.below(0.05) + 0.05 for budget, n in ((0, 59), (14, 434)))


def test_the_threshold_of_a_pilot_is_the_most_promising_one() -> None:
    normal, anomalous = RNG.normal(0, 1, 200), RNG.normal(3, 1, 60)
    guarantee = Guarantee(0.05, 0.2)
    pilot = pilot_of(normal, anomalous, guarantee)
    assert pilot.normal == Posterior(int(np.count_nonzero(normal >= pilot.threshold)), 200)
    assert pilot.anomalous == Posterior(int(np.count_nonzero(anomalous < pilot.threshold)), 60)

    def promising(tau: float) -> float:
        alarms, misses = np.count_nonzero(normal >= tau), np.count_nonzero(anomalous < tau)
        return Posterior(int(alarms), 200).below(0.05) * Posterior(int(misses), 60).below(0.2)

    best = promising(pilot.threshold)
    assert best == pytest.approx(max(map(promising, np.append(normal, anomalous))))


def test_a_pilot_whose_scores_are_infinite_has_a_threshold_that_they_reach() -> None:
    pilot = pilot_of([-inf, -inf, float_info.max], [inf, inf], Guarantee())
    assert pilot.threshold == float_info.max
    assert (pilot.normal, pilot.anomalous) == (Posterior(1, 3), Posterior(0, 2))


def test_a_pilot_of_one_class_or_for_one_ceiling_is_refused() -> None:
    with pytest.raises(
        InputError, match="a pilot sample needs two ceilings, since one alone can always be kept"
    ):
        pilot_of([0.1], [0.9], Guarantee(max_fnr=None))
    with pytest.raises(InputError, match="needs points of both classes, got 1 normal and 0 anomalous"):
        pilot_of([0.1], [], Guarantee())


def test_when_labels_that_are_looked_at_suffice() -> None:
    found = stopping(FIVE, Looks(), 0.02)
    assert found.quantile(0.5) == 240
    assert found.success < 1.0
    # the mean of what a run uses, by its tail: labels are needed beyond n as long as no look has succeeded
    waiting = 1.0 - np.append(0.0, found.chances.cumsum()[:-1])
    assert found.expected == pytest.approx(20 * waiting.sum())
    hopeless = stopping(FIVE, Looks(), 0.2)
    assert hopeless.quantile(0.5) is None
    assert hopeless.expected == pytest.approx(2000, rel=1e-3)
    with pytest.raises(InputError, match="true_rate must lie strictly between 0 and 1, got 0"):
        stopping(FIVE, Looks(), 0.0)


def test_a_need_is_a_pair_of_numbers() -> None:
    assert needed(FIVE, [0.9], lambda errors, n: cdf(errors, n, 0.02)) == [Need(311, 9)]


def test_a_plan_is_what_the_command_computes() -> None:
    guarantee = Guarantee(max_fpr=0.01, max_fnr=0.05)
    found = plan(guarantee, normal=200, anomalous=140)
    assert [one.promise.name for one in found.needed] == ["FPR", "FNR"]
    for one in found.needed:
        assert one.labels == tuple(
            min_samples(one.promise.ceiling, one.promise.delta, errors) for errors in (0, 1, 2, 5, 10)
        )
    assert found.needed[0].at_hand == guarantee.promises[0].budget(200)
    assert str(found).splitlines()[1].strip() == (
        "200 at hand, 99 missing; the lowest ceiling that they can keep is 0.01487"
    )
    assert "140 at hand tolerate 2 errors" in str(found)
    assert "none at hand" in str(plan(normal=0))
    assert len(str(plan()).splitlines()) == 2
    shared = [plan(Guarantee(confidence=0.95), normal=n).needed[1].labels[0] for n in (None, 100, 126)]
    assert shared == [72, 61, 59]


def test_a_plan_with_a_pilot_forecasts() -> None:
    random = np.random.default_rng(0)
    low, high = random.normal(0, 1, 100), random.normal(6, 1, 60)
    found = plan(pilot=(low, high))
    assert found.pilot is not None
    for one, counted in zip(found.needed, (found.pilot.normal, found.pilot.anomalous), strict=True):
        assert one.likely == needed(one.promise, [0.9], counted.within)[0]
        assert one.likely is not None
        assert f"{one.likely.labels:,} fresh labels are enough 9 times in 10" in str(found)
    hopeless = plan(pilot=(random.normal(0, 1, 100), random.normal(0, 1, 60)))
    assert "no number of fresh labels are enough" in str(hopeless)


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_a_plan_for_traffic_is_the_exact_need_of_the_guessed_alarms(rate: float) -> None:
    reviews = None if rate == 1.0 else Reviews(rate=rate)
    asked = Guarantee(max_alarms=0.02, max_false_alarms="1 per 100", reviews=reviews)
    found = plan(asked, traffic=1000, guess_alarms=0.01, guess_precision=0.6)
    wrong = {"alarms": 0.01, "false alarms": 0.004 * rate}
    ceilings = {"alarms": 0.02, "false alarms": 0.01 * rate}
    for one in found.needed:
        ceiling = ceilings[one.promise.name]
        assert one.labels == tuple(min_samples(ceiling, 0.05, errors) for errors in (0, 1, 2, 5, 10))
        assert one.at_hand == one.promise.budget(1000)

        def power(n: int, ceiling: float = ceiling, share: float = wrong[one.promise.name]) -> float:
            budget = error_budget(n, ceiling, 0.05)
            return 0.0 if budget is None else float(binom.cdf(budget, n, share))

        assert one.likely is not None
        assert power(one.likely.labels) >= 0.9
        assert max(power(n) for n in range(one.likely.labels - 200, one.likely.labels)) < 0.9
    # reviews until k + 1 wrong ones are found: k + 1 of them, and the right ones before
    expected = [{"reviews": pytest.approx(k + 1 + nbinom.mean(k + 1, 0.4))} for k in (0, 1, 2, 5, 10)]
    assert [*found.needed[1].expected] == expected
    assert not any(found.needed[0].expected)
    assert "1,000 at hand tolerate" in str(found)
    assert "points of traffic are enough 9 times in 10 for the guessed alarms" in str(found)


def test_a_plan_for_precision_says_what_the_first_test_does() -> None:
    found = plan(Guarantee(min_precision=0.9), traffic=5, guess_alarms=0.001, guess_precision=0.95).needed[0]
    assert found.labels[:2] == (29, 46)
    assert [one["traffic"] for one in found.expected[:2]] == [29_000, 46_000]
    assert found.likely == needed(found.promise, [0.9], lambda errors, n: cdf(errors, n, 0.05))[0]
    assert found.at_hand is None
    assert found.first is not None
    (alarms, chance), wrong = found.first, error_budget(found.first[0], 0.1, 0.05)
    assert wrong == 4
    assert chance == pytest.approx(float(binom.cdf(4, alarms, 0.05)))
    assert f"the highest {alarms} are tested first" in str(
        plan(Guarantee(min_precision=0.9), guess_precision=0.95)
    )


def test_a_plan_for_audits_counts_anomalies_and_says_how_many_points_a_coin_draws() -> None:
    asked = Guarantee(None, 0.1, max_alarms=0.02, reviews=Reviews(audits=0.05))
    alarms, missed = plan(asked, traffic=50_000, guess_prevalence=0.01).needed
    assert (alarms.points, missed.points) == ("points of traffic", "caught or audited anomalies")
    # eq. (149): of each anomaly that is caught or found by an audit, the chance of the latter at the ceiling
    chance = 0.05 * 0.1 / (0.05 * 0.1 + 0.9)
    for n, errors in zip(missed.labels, missed.errors, strict=True):
        assert binom.cdf(errors, n, chance) <= 0.05 < binom.cdf(errors, n - 1, chance)
    assert missed.labels[0] == 541
    assert (missed.at_hand, missed.likely) == (None, None)
    found = [(one["traffic"], one["audits"]) for one in missed.expected[:2]]
    assert found == [(54_100, 2_705), (pytest.approx(100 * (856 + 1 / 0.05)), pytest.approx(4_380))]
    assert "541 caught or audited anomalies if no miss is among them" in str(plan(asked))
    assert "audits to expect: 2,705" in str(plan(asked, guess_prevalence=0.01))


def test_what_is_guessed_decides_what_is_said() -> None:
    asked = Guarantee(max_false_alarms=0.01)
    (silent,), (reviewed,) = plan(asked).needed, plan(asked, guess_precision=0.5).needed
    assert (silent.forecast, any(silent.expected)) == (None, False)
    assert (reviewed.forecast, reviewed.expected[0]) == (None, {"reviews": 2.0})
    fpr = plan(Guarantee(max_fpr=0.01, reviews=Reviews(max_anomalies=0.02)), guess_precision=0.5).needed[0]
    assert (fpr.labels[0], fpr.points, fpr.expected[0]) == (305, "points of traffic", {"reviews": 2.0})
    hopeless = plan(asked, guess_alarms=0.1, guess_precision=0.5)
    assert "no number of points of traffic are enough" in str(hopeless)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"guess_precision": 1.0}, "guess_precision must lie strictly between 0 and 1"),
        (
            {"guess_alarms": 0.1, "guess_precision": 0.5, "guess_prevalence": 0.01},
            "right alarms are anomalies",
        ),
        ({"pilot": ([0.1], [0.9])}, "a pilot sample is for labelled classes"),
        ({"traffic": -1}, "n must be a whole number"),
    ],
)
def test_bad_guesses_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        plan(Guarantee(max_false_alarms=0.01), **arguments)


@pytest.mark.parametrize(
    ("rate", "correlation", "least"), [(0.02, 0.2, 162), (0.02, 0.5, 307), (0.01, 0.2, 95), (0.01, 0.5, 140)]
)
def test_a_plan_in_units_has_the_units_of_the_theory(rate: float, correlation: float, least: int) -> None:
    """The table of section 19 in docs/theory.md; three standard errors of either forecast are below 5 %."""
    found = plan(unit_points=20, guess_errors=rate, guess_correlation=correlation).needed
    assert [one.labels for one in found] == [(59,), (59,)]
    for one in found:
        assert one.likely is not None
        assert abs(one.likely.labels - least) <= 0.05 * least


def test_a_plan_in_units_says_what_those_at_hand_can_keep() -> None:
    asked = Guarantee(0.05, 0.02, confidence=0.9)
    found = plan(asked, unit_points=10, normal=100, anomalous=7)
    # deltas of dependent classes add up, whatever the counts
    assert [one.promise.delta for one in found.needed] == [one.delta for one in asked.fixed.promises]
    for one, n in zip(found.needed, (100, 7), strict=True):
        rate, delta = one.promise.ceiling, one.promise.delta
        assert refutes(np.zeros(one.labels[0]), rate, delta)
        assert not refutes(np.zeros(one.labels[0] - 1), rate, delta)
        assert one.at_hand is not None
        assert (one.at_hand.errors is None) == (n < one.labels[0])
    told = " ".join(str(found).split())
    lowest = rounded_up(upper_bound(0, 100, 0.05))
    assert f"100 at hand; the lowest ceiling that they can keep is {lowest}" in told
    assert "units with anomalous points if no point is an error" in told
    assert "7 at hand," in told
    assert "missing" in told
    hopeless = plan(Guarantee(max_fnr=None), unit_points=5, guess_errors=0.049, guess_correlation=0.5)
    assert "by the guess, more than 5,000 units with normal points are enough" in str(hopeless)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"guess_errors": 0.01}, "are for units; give unit_points too"),
        ({"unit_points": 1}, "a unit with one point counts as a label"),
        ({"unit_points": 0}, "unit_points must be a whole number, 1 or more"),
        ({"unit_points": 5, "guess_errors": 0.01}, "belong together"),
        ({"unit_points": 5, "guess_errors": 0.01, "guess_correlation": 1.0}, "strictly between 0 and 1"),
        ({"unit_points": 5, "guess_errors": 0.05, "guess_correlation": 0.1}, "must be below the ceilings"),
        ({"unit_points": 5, "guarantee": Guarantee(0.6)}, "must be at most 0.5"),
        ({"unit_points": 5, "pilot": ([0.1], [0.9])}, "units cannot be planned from traffic or a pilot"),
    ],
)
def test_bad_guesses_about_units_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        plan(**arguments)
