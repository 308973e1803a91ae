from dataclasses import replace
from math import ceil, inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import Certificate
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Regime, Rule
from pac_wrap.method.strategies.interface import Abstain
from support.strategies import LARGEST, Floats, calibrate_quietly, decided, guarantee, refusal, scores

FIVE = Guarantee()
APART = np.arange(100.0), np.arange(200.0, 300.0)
MIXED = np.arange(100.0), np.arange(95.0, 195.0)


@given(scores(1, 30), scores(1, 30), guarantee, st.floats(0.0, 1.0))
def test_separated_classes_are_decided_by_a_score_between_the_two_thresholds(
    normal: Floats, anomalous: Floats, asked: Guarantee, position: float
) -> None:
    assert asked.fpr is not None
    assert asked.fnr is not None
    for strategy in (Abstain(position=position), Abstain(always=True, position=position)):
        outcome = decided(strategy, asked, normal, anomalous)
        assert (outcome.fpr, outcome.fnr) == (asked.fpr.budget(normal.size), asked.fnr.budget(anomalous.size))
        assert outcome.certified == asked
        assert outcome.separable is None
        low, high = outcome.thresholds.alarm_from, outcome.thresholds.clear_below
        assert low is not None
        assert high is not None
        if strategy.always or not outcome.thresholds.separated:
            assert outcome.rule == outcome.thresholds.rule
            continue
        # by definition, from the sorted pool
        pool = np.sort(np.concatenate([normal, anomalous]))
        inside = pool[(pool >= low) & (pool <= high)]
        tau = min(inside[max(1, ceil(position * inside.size)) - 1], LARGEST)
        assert outcome.rule == Rule(tau, tau)


@given(scores(1, 30), scores(1, 30), guarantee)
def test_each_threshold_is_that_of_its_class_alone(
    normal: Floats, anomalous: Floats, asked: Guarantee
) -> None:
    outcome = decided(Abstain(), asked, normal, anomalous)
    for ceiling, side in (("max_fnr", "alarm_from"), ("max_fpr", "clear_below")):
        alone = replace(asked, max_fpr=None) if ceiling == "max_fpr" else replace(asked, max_fnr=None)
        one = decided(Abstain(), alone, normal, anomalous)
        assert one.rule.single
        assert getattr(one.thresholds, side) == getattr(outcome.thresholds, side)
        assert None in (one.thresholds.alarm_from, one.thresholds.clear_below)


def test_what_abstaining_says_of_itself() -> None:
    strategy = Abstain()
    assert not strategy.single
    assert strategy.keeps == ("FPR", "FNR")
    assert strategy.needs_more_labels is None
    assert strategy.tried(FIVE, (2000, 2000)) == 1
    assert (strategy.word, Abstain(always=True).word) == ("abstain", "abstain_always")
    both = calibrate_quietly(*MIXED).claim
    assert strategy.summary(both) == "two thresholds, and abstention between them"
    assert list(strategy.explanation(both)) == [
        "There are two thresholds, and points between them are left undecided."
    ]
    one = calibrate_quietly(*MIXED, Guarantee(max_fnr=None)).claim
    assert strategy.summary(one) == "only one rate has a ceiling, so its threshold decides alone"
    (sentence,) = strategy.explanation(one)
    assert sentence.startswith("Only one rate has a ceiling")
    apart = calibrate(*APART).claim
    assert strategy.summary(apart) == "one threshold keeps both ceilings, so every point is decided"
    (sentence,) = strategy.explanation(apart)
    assert sentence == (
        "One threshold keeps both ceilings with their whole deltas, so every point is decided."
    )
    always = calibrate(*APART, overlap="abstain_always").claim
    assert Abstain(always=True).summary(always) == "two thresholds, and abstention between them"


@pytest.mark.parametrize(("position", "tau"), [(0.0, 99.0), (0.5, 200.0), (0.75, 201.0), (1.0, 201.0)])
def test_the_position_picks_among_the_scores_between(position: float, tau: float) -> None:
    # 98 and a little is alarm_from, 201 is clear_below: 99, 200 and 201 lie between
    certificate = calibrate(*APART, overlap=Abstain(position=position))
    assert certificate.rule == Rule(tau, tau)
    assert certificate.rule.ambiguity(np.concatenate(APART)) == 0.0


def test_a_position_outside_is_refused() -> None:
    for wrong in (-0.1, 1.1, float("nan"), "low", True, None):
        message = refusal(Abstain, position=wrong)
        assert message.startswith("position must lie between 0 (alarm_from) and 1 (clear_below), got")
    assert "always must be" in refusal(Abstain, always="yes")


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(
    ("normal", "anomalous", "tau"),
    [
        # the score of one class is all there is between
        (0.0, 1.0, 1.0),
        (-inf, inf, LARGEST),
        (-inf, -0.0, 0.0),
        (-1.0, 0.0, 0.0),
        (0.0, inf, LARGEST),
    ],
)
def test_infinities_and_signed_zeros(kind: Any, normal: float, anomalous: float, tau: float) -> None:
    certificate = calibrate(np.full(100, normal, kind), np.full(100, anomalous, kind))
    assert certificate.regime is Regime.SEPARATED
    assert certificate.rule.single
    if kind is np.float64:
        assert str(certificate.rule.anomaly_from) == str(tau)  # zero has no sign
    assert certificate.verdicts([normal, anomalous]).tolist() == [0, 1]
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.verify(np.full(100, normal, kind), np.full(100, anomalous, kind))


def test_the_largest_double_leaves_no_threshold_above_it() -> None:
    certificate = calibrate(np.full(100, LARGEST), np.full(100, inf))
    assert certificate.regime is Regime.OVERLAPPING
    assert certificate.verdicts([LARGEST, inf]).tolist() == [-1, -1]
    below = calibrate(np.full(100, nextafter(LARGEST, 0.0)), np.full(100, LARGEST))
    assert below.rule == Rule(LARGEST, LARGEST)


@given(scores(9, 30), scores(9, 30))
def test_verify_finds_the_same_single_threshold_and_no_other(normal: Floats, anomalous: Floats) -> None:
    certificate = calibrate_quietly(normal, anomalous, Guarantee(0.3, 0.3))
    assert certificate.verify(normal, anomalous)
    tau = certificate.rule.anomaly_from
    high = certificate.thresholds.clear_below
    if certificate.regime is Regime.SEPARATED and high is not None and tau < high < inf:
        # a threshold that keeps both promises, and yet not the one that was asked for
        moved = replace(certificate, rule=Rule(high, high))
        assert Certificate.from_json(moved.to_json()) == moved
        assert not moved.verify(normal, anomalous)


def test_a_narrower_type_is_judged_by_the_score_that_decides() -> None:
    # alarm_from and clear_below rest on scores that float32 holds, the one between them does not
    normal, anomalous = np.zeros(100), np.concatenate([[0.1], np.ones(99)])
    between = calibrate(normal, anomalous, overlap=Abstain(position=0.0))
    assert between.rule.anomaly_from == 0.1
    assert between.undecidable("float32") == (float(np.float32(0.1)),)
    assert calibrate(normal, anomalous, overlap=Abstain(position=1.0)).undecidable("float32") == ()
