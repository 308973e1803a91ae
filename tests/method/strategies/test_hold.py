from dataclasses import replace
from math import inf, nextafter
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pac_wrap.base.floats import ceiling_up
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import Certificate, inconsistencies
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Regime, Rule, Thresholds, Verdict
from pac_wrap.method.strategies.interface import Hold, asked_of
from pac_wrap.ranks.memory import Rank
from pac_wrap.tails.bounds import upper_bound
from support.strategies import (
    LARGEST,
    Floats,
    Outcome,
    calibrate_quietly,
    decided,
    guarantee,
    refusal,
    scores,
)

ENDS = [-inf, -LARGEST, 0.0, LARGEST, inf]
FIVE = Guarantee()
tied = st.lists(st.integers(0, 9), min_size=1, max_size=40).map(lambda x: np.array(x, dtype=np.float64))
shifted = st.lists(st.integers(7, 16), min_size=1, max_size=40).map(lambda x: np.array(x, dtype=np.float64))


def held(normal: Floats, anomalous: Floats, guarantee: Guarantee, rate: Literal["fnr", "fpr"]) -> Outcome:
    return decided(Hold(rate), guarantee, normal, anomalous)


@given(tied | scores(), shifted | scores(), guarantee)
def test_hold_fnr_keeps_its_ceiling_and_certifies_the_counted_alarms(
    normal: Floats, anomalous: Floats, guarantee: Guarantee
) -> None:
    outcome = held(normal, anomalous, guarantee, "fnr")
    assume(normal.size + anomalous.size > 0)
    alone = calibrate_quietly(normal, anomalous, replace(guarantee, max_fpr=None)).thresholds.clear_below
    assert alone is not None
    tau = min(alone, LARGEST)
    assert outcome.rule == Rule(tau, tau)
    assert outcome.thresholds.clear_below == tau
    assert outcome.certified is not None
    assert outcome.certified.max_fnr == guarantee.max_fnr
    alarms = int(np.count_nonzero(normal >= tau))
    bound = ceiling_up(upper_bound(alarms, normal.size, guarantee.delta_fpr))
    if bound < 1.0:
        assert outcome.fpr is not None
        assert outcome.certified.max_fpr == outcome.fpr.rate == bound
        assert outcome.fpr.errors == alarms
        assert outcome.thresholds.alarm_from is not None
        assert outcome.thresholds.alarm_from <= tau
    else:
        assert (outcome.fpr, outcome.certified.max_fpr, outcome.thresholds.alarm_from) == (None, None, None)


@given(tied | scores(), shifted | scores(), guarantee)
def test_hold_fpr_keeps_its_ceiling_and_certifies_the_counted_misses(
    normal: Floats, anomalous: Floats, guarantee: Guarantee
) -> None:
    outcome = held(normal, anomalous, guarantee, "fpr")
    assume(normal.size + anomalous.size > 0)
    tau = calibrate_quietly(normal, anomalous, replace(guarantee, max_fnr=None)).thresholds.alarm_from
    assert tau is not None
    assert outcome.rule == Rule(tau, tau)
    assert outcome.thresholds.alarm_from == tau
    assert outcome.certified is not None
    assert outcome.certified.max_fpr == guarantee.max_fpr
    # at tau = inf no alarm is ever given, so that even an anomaly at inf is missed
    misses = anomalous.size if tau == inf else int(np.count_nonzero(anomalous < tau))
    bound = ceiling_up(upper_bound(misses, anomalous.size, guarantee.delta_fnr))
    if bound < 1.0:
        assert outcome.fnr is not None
        assert outcome.certified.max_fnr == outcome.fnr.rate == bound
        assert outcome.fnr.errors == misses
        assert outcome.thresholds.clear_below is not None
        assert outcome.thresholds.clear_below >= tau
    else:
        assert (outcome.fnr, outcome.certified.max_fnr, outcome.thresholds.clear_below) == (None, None, None)


@given(tied | scores(1), shifted | scores(1), guarantee, st.sampled_from(["hold_fnr", "hold_fpr"]))
def test_holding_a_side_never_abstains_and_its_verdicts_show_the_counted_errors(
    normal: Floats, anomalous: Floats, guarantee: Guarantee, name: str
) -> None:
    certificate = calibrate_quietly(normal, anomalous, guarantee, overlap=name)
    assert set(certificate.verdicts([*normal, *anomalous, *ENDS]).tolist()) <= {0, 1}
    alarms = int(np.count_nonzero(certificate.verdicts(normal) == Verdict.ANOMALY))
    misses = int(np.count_nonzero(certificate.verdicts(anomalous) == Verdict.NORMAL))
    for evidence, errors in ((certificate.fpr, alarms), (certificate.fnr, misses)):
        if evidence.budget is not None:
            assert errors <= (evidence.budget.errors or 0)


def test_hold_fnr_by_hand() -> None:
    # F(0; 10, 0.3) = 0.028 and F(1; 10, 0.3) = 0.149: one miss is allowed at delta 0.2
    anomalous = np.arange(10.0)
    normal = np.array([-2.0, -1.0, 0.0, 0.5, 3.0])
    outcome = held(normal, anomalous, Guarantee(0.05, 0.3, 0.25, 0.2), "fnr")
    assert outcome.rule == Rule(1.0, 1.0)
    assert outcome.certified == Guarantee(ceiling_up(upper_bound(1, 5, 0.25)), 0.3, 0.25, 0.2)
    assert outcome.thresholds == Thresholds(nextafter(0.5, inf), 1.0)
    # no level is chosen among others
    assert Hold("fnr").tried(FIVE, (5, 10)) == 1


def test_too_few_labels_on_the_held_side_alarm_always_or_never() -> None:
    few, many = np.array([5.0] * 10), np.array([0.0] * 100)
    fnr = calibrate_quietly(many, few, overlap="hold_fnr")
    assert fnr.rule.single
    assert fnr.rule.anomaly_from == -inf
    assert fnr.verdicts(ENDS).tolist() == [Verdict.ANOMALY] * 5
    fpr = calibrate_quietly(few, many, overlap="hold_fpr")
    assert fpr.rule.single
    assert fpr.rule.anomaly_from == inf
    assert fpr.verdicts(ENDS).tolist() == [Verdict.NORMAL] * 5
    for certificate in (fnr, fpr):
        assert certificate.regime is Regime.VACUOUS
        assert certificate.empty
        assert not certificate.uncertified
        assert None in (certificate.fpr.ceiling, certificate.fnr.ceiling)
        # with none wrong of 10, the rate is at most 1 - 0.05 ** (1 / 10)
        assert " 10 labels, too few: at least 59 are needed, or a ceiling of 0.2589\n" in str(certificate)


def test_no_labels_on_the_other_side_certify_nothing_there() -> None:
    scores, none = np.arange(100.0), np.empty(0)
    fnr = held(none, scores, FIVE, "fnr")
    assert fnr.certified == Guarantee(max_fpr=None)
    fpr = held(scores, none, FIVE, "fpr")
    assert fpr.certified == Guarantee(max_fnr=None)


def test_holding_a_side_with_infinite_scores() -> None:
    top, bottom = np.full(100, inf), np.full(100, -inf)
    fnr = held(bottom, top, FIVE, "fnr")
    assert fnr.rule.single
    assert fnr.rule.anomaly_from == LARGEST
    assert fnr.certified is not None
    assert fnr.certified.max_fpr == ceiling_up(upper_bound(0, 100, 0.05))
    fpr = held(bottom, top, FIVE, "fpr")
    assert fpr.rule.single
    assert fpr.rule.anomaly_from == -LARGEST
    assert fpr.certified is not None
    assert fpr.certified.max_fnr == ceiling_up(upper_bound(0, 100, 0.05))
    # normal points at inf leave no room for an alarm
    never = held(top, top, FIVE, "fpr")
    assert never.rule.single
    assert never.rule.anomaly_from == inf
    assert never.certified == Guarantee(max_fnr=None)


@pytest.mark.parametrize("rate", ["FNR", "both", "", None, True, 1])
def test_only_an_error_rate_can_be_held(rate: Any) -> None:
    message = refusal(lambda: Hold(rate))
    assert "rate must be one of 'fnr', 'fpr'" in message
    assert f"got {rate!r}" in message


@pytest.mark.parametrize(("rate", "kept"), [("fnr", "FNR"), ("fpr", "FPR")])
def test_what_holding_a_rate_says_of_itself(rate: Literal["fnr", "fpr"], kept: str) -> None:
    strategy = Hold(rate)
    assert strategy.word == f"hold_{rate}"
    assert strategy.keeps == (kept,)
    assert strategy.single
    assert strategy.proved
    assert strategy.needs_more_labels is None
    certificate = calibrate_quietly(np.arange(100.0), np.arange(95.0, 195.0), overlap=strategy)
    assert strategy.summary(certificate.claim).startswith(f"hold_{rate}: the {kept} ceiling is kept")
    (sentence,) = strategy.explanation(certificate.claim)
    assert f"one threshold, set by the {kept} ceiling alone" in sentence
    # at 96, four normal points reach it; just above 98, four anomalous ones lie below
    assert "It misjudges 4 of the 100 points of the other class" in sentence


def test_only_the_held_class_needs_a_rank_beforehand() -> None:
    (rank,) = Hold("fnr").ranks(asked_of(FIVE), (2000, 2000))
    assert rank == Rank(1, 84)
    (rank,) = Hold("fpr").ranks(asked_of(FIVE), (2000, 2000))
    assert rank == Rank(0, 2000 - 83)
    assert list(Hold("fnr").ranks(asked_of(FIVE), (2000, 58))) == []


@given(tied | scores(1), shifted | scores(1), guarantee, st.sampled_from(["fnr", "fpr"]))
def test_an_outcome_does_not_contradict_itself_and_another_does(
    normal: Floats, anomalous: Floats, guarantee: Guarantee, rate: Literal["fnr", "fpr"]
) -> None:
    made = calibrate_quietly(normal, anomalous, guarantee, overlap=Hold(rate))
    assert list(inconsistencies(made)) == []
    tau = made.rule.anomaly_from
    for moved in (nextafter(tau, inf), nextafter(tau, -inf)):
        if moved != tau:
            forged = replace(made, rule=Rule(moved, moved))
            assert any("does not follow" in problem for problem in inconsistencies(forged))


@pytest.mark.parametrize("overlap", ["hold_fnr", "hold_fpr"])
@pytest.mark.parametrize("delta", [5e-324, 1e-308, 1 - 1e-9, 1 - 1e-16])
@pytest.mark.parametrize("size", [1, 40, 3000])
def test_a_side_can_be_held_at_any_delta(overlap: str, delta: float, size: int) -> None:
    normal, anomalous = [float(i) for i in range(size)], [float(i) + 0.5 for i in range(size)]
    asked = Guarantee(0.3, 0.3, delta, delta)
    certificate = calibrate(normal, anomalous, asked, overlap=overlap)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.verify(normal, anomalous)
    assert not certificate.uncertified


def test_a_ceiling_that_is_counted_is_no_lower_than_one_that_can_be_asked_for() -> None:
    certificate = calibrate(range(100), range(200, 300), Guarantee(delta_fpr=1 - 1e-16), overlap="hold_fnr")
    assert not certificate.uncertified
    # 1 - (1 - 1e-16)^(1/100), about 1e-18, is less than the least ceiling
    assert certificate.fpr.ceiling == 1e-15
    assert nextafter(upper_bound(0, 100, 1 - 1e-16), 1) < 1e-15


def test_where_both_ceilings_are_kept_the_strategy_says_so_and_the_threshold_is_a_score() -> None:
    scores = np.linspace(0.0, 1.0, 200)
    certificate = calibrate(scores, scores + 3.0, overlap="hold_fnr_if_needed")
    sentences = list(certificate.overlap.explanation(certificate.claim))
    assert sentences == [
        "Strategy hold_fnr_if_needed: one threshold keeps both ceilings with their whole deltas."
    ]
    tau = certificate.rule.anomaly_from
    assert tau in (*scores, *(scores + 3.0))
    lost = float(np.float32(tau)) != tau
    assert bool(certificate.undecidable("float32")) == lost
