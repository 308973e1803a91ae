from math import inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.base.arguments import as_scores
from pac_wrap.errors import MissingScoreWarning
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import (
    Regime,
    Rule,
    Thresholds,
    Verdict,
    alarm_from,
    clear_below,
    find_thresholds,
)
from pac_wrap.tails.bounds import Budget
from support.examples import examples
from support.strategies import (
    LARGEST,
    RULES,
    Floats,
    calibrate_quietly,
    guarantee,
    rate,
    refusal,
    score,
    scores,
    scores_of_any_type,
)

ENDS = [-inf, -LARGEST, 0.0, LARGEST, inf]
two_thresholds = st.builds(Thresholds, score, score)
VERDICT_OF_SET = {
    (True, False): Verdict.NORMAL,
    (False, True): Verdict.ANOMALY,
    (True, True): Verdict.ABSTAIN,
    (False, False): Verdict.ABSTAIN,
}


@given(scores_of_any_type(min_size=1) | scores(1).map(np.sort) | st.just(np.full(7, 3)), st.data())
def test_alarm_from_is_the_smallest_double_that_keeps_the_budget(
    drawn: NDArray[Any], data: st.DataObject
) -> None:
    normal = as_scores(drawn)
    budget = data.draw(st.integers(0, normal.size - 1))
    threshold = alarm_from(normal, budget)
    assert Thresholds(threshold, None).rule.verdicts(drawn).sum() <= budget
    for smaller in [nextafter(threshold, -inf), *normal[normal < threshold]]:
        assert np.count_nonzero(normal >= smaller) > budget


@given(scores_of_any_type(min_size=1) | scores(1).map(np.sort) | st.just(np.full(7, 3)), st.data())
def test_clear_below_is_the_largest_double_that_keeps_the_budget(
    drawn: NDArray[Any], data: st.DataObject
) -> None:
    anomalous = as_scores(drawn)
    budget = data.draw(st.integers(0, anomalous.size - 1))
    threshold = clear_below(anomalous, budget)
    assert np.count_nonzero(Thresholds(None, threshold).rule.verdicts(drawn) == Verdict.NORMAL) <= budget
    for larger in [nextafter(threshold, inf), *anomalous[anomalous > threshold]]:
        if larger > threshold:
            assert np.count_nonzero(anomalous < larger) > budget


def test_thresholds_of_a_hand_made_case() -> None:
    normal = np.array([0.0, 1.0, 2.0, 2.0, 3.0])
    anomalous = np.array([2.0, 4.0, 4.0, 5.0])
    assert alarm_from(normal, 0) == nextafter(3.0, inf)
    assert alarm_from(normal, 1) == alarm_from(normal, 2) == nextafter(2.0, inf)
    assert alarm_from(normal, 3) == nextafter(1.0, inf)
    assert clear_below(anomalous, 0) == 2.0
    assert clear_below(anomalous, 1) == clear_below(anomalous, 2) == 4.0
    assert clear_below(anomalous, 3) == 5.0


def test_infinite_scores_push_the_thresholds_to_the_ends() -> None:
    assert alarm_from(np.array([-inf, -inf]), 0) == -LARGEST
    assert alarm_from(np.array([0.0, inf]), 0) == inf
    assert alarm_from(np.array([0.0, inf]), 1) == nextafter(0.0, 1.0)
    assert clear_below(np.array([-inf, 0.0]), 0) == -inf
    assert clear_below(np.array([-inf, 0.0]), 1) == 0.0
    assert clear_below(np.array([inf, inf]), 0) == inf


def test_without_a_budget_nothing_is_declared() -> None:
    assert alarm_from(np.array([1.0]), None) == inf
    assert clear_below(np.array([1.0]), None) == -inf
    assert alarm_from(np.empty(0), None) == inf
    vacuous = Thresholds(alarm_from=inf, clear_below=-inf)
    assert vacuous.rule == Rule(-inf, inf)
    assert vacuous.rule.verdicts(ENDS).tolist() == [-1] * 5
    assert vacuous.prediction_sets(ENDS).all()
    assert not vacuous.y_fp(ENDS).any()
    assert vacuous.y_fn(ENDS).all()


@pytest.mark.parametrize(
    ("thresholds", "sets", "verdicts"),
    [
        (Thresholds(0.7, 0.3), [(1, 0), (1, 1), (1, 1), (0, 1), (0, 1)], [0, -1, -1, 1, 1]),
        (Thresholds(0.3, 0.7), [(1, 0), (0, 0), (0, 0), (0, 1), (0, 1)], [0, -1, -1, 1, 1]),
        (Thresholds(0.5, 0.5), [(1, 0), (1, 0), (0, 1), (0, 1), (0, 1)], [0, 0, 1, 1, 1]),
        (Thresholds(0.5, None), [(1, 1), (1, 1), (0, 1), (0, 1), (0, 1)], [0, 0, 1, 1, 1]),
        (Thresholds(None, 0.5), [(1, 0), (1, 0), (1, 1), (1, 1), (1, 1)], [0, 0, 1, 1, 1]),
    ],
)
def test_all_four_sets_by_hand(
    thresholds: Thresholds, sets: list[tuple[int, int]], verdicts: list[int]
) -> None:
    at = [0.2, 0.3, 0.5, 0.7, 0.9]
    assert thresholds.prediction_sets(at).tolist() == [[bool(a), bool(b)] for a, b in sets]
    assert thresholds.rule.verdicts(at).tolist() == verdicts


@given(two_thresholds | st.builds(Thresholds, score, st.none()) | st.builds(Thresholds, st.none(), score))
def test_a_score_of_inf_reaches_every_threshold_but_an_alarm_at_inf(thresholds: Thresholds) -> None:
    rule = thresholds.rule
    assert rule.normal_below <= rule.anomaly_from
    top = rule.verdicts([inf])[0]
    if thresholds.alarm_from == inf:
        assert top == (Verdict.NORMAL if thresholds.clear_below is None else Verdict.ABSTAIN)
    else:
        assert top == Verdict.ANOMALY


@given(two_thresholds, scores())
def test_verdicts_follow_from_the_sets(thresholds: Thresholds, values: Floats) -> None:
    sets = thresholds.prediction_sets(values)
    expected = [VERDICT_OF_SET[bool(zero), bool(one)] for zero, one in sets]
    assert thresholds.rule.verdicts(values).tolist() == expected
    # y_fp rules out label 0 where it says 1; y_fn rules out label 1 where it says 0
    assert thresholds.y_fp(values).tolist() == (~sets[:, 0]).astype(int).tolist()
    assert thresholds.y_fn(values).tolist() == sets[:, 1].astype(int).tolist()


@given(score, scores())
def test_one_threshold_alone_never_abstains(threshold: float, values: Floats) -> None:
    fp, fn = Thresholds(threshold, None), Thresholds(None, threshold)
    assert fp.rule.verdicts(values).tolist() == fp.y_fp(values).tolist()
    assert fn.rule.verdicts(values).tolist() == fn.y_fn(values).tolist()
    for one_sided in (fp, fn):
        assert one_sided.rule.single
        assert one_sided.separated
        assert one_sided.rule.ambiguity_region is None
        assert set(one_sided.rule.verdicts(values).tolist()) <= {0, 1}


def test_a_side_without_a_threshold_has_no_predictor() -> None:
    assert "FPR" in (message := refusal(lambda: Thresholds(None, 0.5).y_fp([1.0])))
    assert "max_fpr" in message
    assert "FNR" in (message := refusal(lambda: Thresholds(0.5, None).y_fn([1.0])))
    assert "max_fnr" in message


def test_an_infinite_alarm_never_sounds() -> None:
    for other in (-inf, 0.0, inf, None):
        assert not (Thresholds(inf, other).rule.verdicts(ENDS) == Verdict.ANOMALY).any()
    for other in (-inf, 0.0, inf, None):
        assert not (Thresholds(other, -inf).rule.verdicts(ENDS) == Verdict.NORMAL).any()


def test_verdicts_at_infinite_scores_between_finite_thresholds() -> None:
    assert Thresholds(0.7, 0.3).rule.verdicts([-inf, inf]).tolist() == [0, 1]
    # the largest double stands for the threshold at inf
    below = nextafter(LARGEST, 0.0)
    assert Thresholds(0.3, inf).rule.verdicts([0.0, 0.5, below, inf]).tolist() == [0, -1, -1, 1]
    assert Thresholds(0.3, inf).rule.verdicts([LARGEST]).tolist() == [1]
    assert Thresholds(-LARGEST, 0.3).rule.verdicts([-inf, -LARGEST, 0.5]).tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    ("thresholds", "separated", "rule"),
    [
        # in every order
        (Thresholds(0.3, 0.7), True, Rule(0.3, 0.7)),
        (Thresholds(0.7, 0.3), False, Rule(0.3, 0.7)),
        (Thresholds(0.5, 0.5), True, Rule(0.5, 0.5)),
        (Thresholds(0.5, None), True, Rule(0.5, 0.5)),
        (Thresholds(None, 0.5), True, Rule(0.5, 0.5)),
        # neighbours are not the same
        (Thresholds(0.5, nextafter(0.5, 1.0)), True, Rule(0.5, nextafter(0.5, 1.0))),
        (Thresholds(nextafter(0.5, 1.0), 0.5), False, Rule(0.5, nextafter(0.5, 1.0))),
        (Thresholds(5e-324, 0.0), False, Rule(0.0, 5e-324)),
        (Thresholds(-0.0, 0.0), True, Rule(0.0, 0.0)),
        # an alarm at inf is never given
        (Thresholds(inf, 0.5), False, Rule(0.5, inf)),
        (Thresholds(inf, -inf), False, Rule(-inf, inf)),
        (Thresholds(inf, None), True, Rule(inf, inf)),
        # but a score of inf lies at inf, not below: the largest double stands for such a threshold
        (Thresholds(inf, inf), False, Rule(LARGEST, inf)),
        (Thresholds(0.5, inf), True, Rule(0.5, LARGEST)),
        (Thresholds(-LARGEST, inf), True, Rule(-LARGEST, LARGEST)),
        (Thresholds(LARGEST, inf), True, Rule(LARGEST, LARGEST)),
        (Thresholds(None, inf), True, Rule(LARGEST, LARGEST)),
        (Thresholds(None, LARGEST), True, Rule(LARGEST, LARGEST)),
        # nothing lies below -inf, and everything from there on is an alarm
        (Thresholds(0.5, -inf), False, Rule(-inf, 0.5)),
        (Thresholds(None, -inf), True, Rule(-inf, -inf)),
        (Thresholds(-inf, 0.5), True, Rule(-inf, 0.5)),
        (Thresholds(-inf, -inf), True, Rule(-inf, -inf)),
    ],
)
def test_how_two_thresholds_lie_and_which_rule_follows(
    thresholds: Thresholds, separated: bool, rule: Rule
) -> None:
    assert thresholds.separated is separated
    assert thresholds.rule == rule
    assert thresholds.rule.ambiguity_region == (
        None if rule.single else (rule.normal_below, rule.anomaly_from)
    )
    assert rule.single is (rule.normal_below == rule.anomaly_from)


@given(two_thresholds, scores(min_size=1))
def test_ambiguity_is_the_share_between_the_thresholds(thresholds: Thresholds, values: Floats) -> None:
    assert thresholds.alarm_from is not None
    assert thresholds.clear_below is not None
    low, high = sorted([thresholds.alarm_from, thresholds.clear_below])
    between = ((values >= low) & (values < high)).mean()
    # where an alarm is never given, a score of inf is abstained as well
    beyond = (values == inf).mean() if thresholds.alarm_from == inf else 0.0
    assert thresholds.rule.ambiguity(values) == pytest.approx(between + beyond)


def test_no_scores_have_no_ambiguity() -> None:
    assert "at least one score" in refusal(lambda: Thresholds(0.7, 0.3).rule.ambiguity([]))
    assert Thresholds(0.7, 0.3).rule.verdicts([]).tolist() == []
    assert Thresholds(0.7, 0.3).prediction_sets([]).shape == (0, 2)


# few scores keep none of the ceilings that are drawn, so many examples are passed over
@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.filter_too_much])
@given(scores(min_size=5, max_size=25), scores(min_size=5, max_size=25), guarantee)
def test_one_threshold_suffices_exactly_if_crossings_keep_a_budget(
    normal: Floats, anomalous: Floats, guarantee: Guarantee
) -> None:
    assert guarantee.fpr is not None
    assert guarantee.fnr is not None
    fpr, fnr = guarantee.fpr.budget(normal.size), guarantee.fnr.budget(anomalous.size)
    assume(fpr.errors is not None and fnr.errors is not None)
    assert fpr.errors is not None
    assert fnr.errors is not None
    certificate = calibrate_quietly(normal, anomalous, guarantee)
    thresholds, high, low = certificate.thresholds, certificate.fpr.beyond, certificate.fnr.beyond
    assert thresholds == find_thresholds(normal, anomalous, fpr, fnr)
    assert high is not None
    assert low is not None
    assert high == np.count_nonzero(thresholds.y_fn(normal))
    assert low == np.count_nonzero(thresholds.y_fp(anomalous) == 0)
    assert thresholds.separated == (high <= fpr.errors) == (low <= fnr.errors)
    expected = Regime.SEPARATED if thresholds.separated else Regime.OVERLAPPING
    assert certificate.regime is expected


@pytest.mark.parametrize("asked", [Guarantee(0.1, None), Guarantee(None, 0.1)])
def test_crossings_need_both_thresholds(asked: Guarantee) -> None:
    certificate = calibrate_quietly(np.zeros(50), np.ones(50), asked)
    assert (certificate.fpr.beyond, certificate.fnr.beyond) == (None, None)


@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=25),
    st.lists(st.integers(0, 7), max_size=25),
    guarantee,
    st.data(),
)
def test_a_strictly_increasing_map_of_all_scores_changes_no_verdict(
    normal: list[int], anomalous: list[int], guarantee: Guarantee, data: st.DataObject
) -> None:
    increasing = st.lists(score, min_size=8, max_size=8, unique=True).map(sorted).map(np.array)
    before, after = data.draw(increasing), data.draw(increasing)
    first = calibrate_quietly(before[normal], before[anomalous], guarantee)
    second = calibrate_quietly(after[normal], after[anomalous], guarantee)
    assert first.verdicts(before).tolist() == second.verdicts(after).tolist()
    assert first.regime is second.regime


@given(scores(max_size=25), scores(max_size=25), rate, rate)
def test_a_side_without_budget_or_promise(
    normal: Floats, anomalous: Floats, ceiling: float, delta: float
) -> None:
    budget = Budget.of(normal.size, ceiling, delta)
    alone = find_thresholds(normal, anomalous, budget, None)
    assert alone == Thresholds(alarm_from(normal, budget.errors), None)
    if normal.size:
        certificate = calibrate_quietly(normal, anomalous, Guarantee(ceiling, None, delta))
        assert certificate.thresholds == alone
        assert certificate.regime is (Regime.VACUOUS if budget.errors is None else Regime.SEPARATED)
    none = Budget.of(0, ceiling, delta)
    assert find_thresholds(normal, anomalous, budget, none).clear_below == -inf


def test_every_regime_explains_itself() -> None:
    assert "one threshold can keep what is promised" in Regime.SEPARATED.explanation
    assert "one threshold to keep the promise with these labels" in Regime.OVERLAPPING.explanation
    assert "too few labels" in Regime.VACUOUS.explanation


def test_a_missing_score_leaves_both_labels_possible() -> None:
    for thresholds in (
        Thresholds(0.7, 0.3),
        Thresholds(0.3, 0.7),
        Thresholds(None, 0.3),
        Thresholds(0.7, None),
    ):
        with pytest.warns(MissingScoreWarning, match="1 of 2 scores are NaN, the first at position 1"):
            sets = thresholds.prediction_sets([0.9, float("nan")])
        assert sets[1].tolist() == [True, True]
        assert sets[0].tolist() == thresholds.prediction_sets([0.9])[0].tolist()
        assert "got 1 of 1" in refusal(thresholds.prediction_sets, [float("nan")], "stop")


@pytest.mark.parametrize("values", [[[0.5]], ["0.5"]])
def test_scores_to_judge_are_checked_like_any_other(values: Any) -> None:
    thresholds = Thresholds(0.7, 0.3)
    for judge in (thresholds.rule.verdicts, thresholds.prediction_sets, thresholds.y_fp, thresholds.y_fn):
        assert "scores must" in refusal(judge, values)


def test_float32_scores_are_compared_as_float64() -> None:
    anomalous = np.full(10, 0.1, dtype=np.float32)
    thresholds = Thresholds(None, clear_below(as_scores(anomalous), 0))
    assert thresholds.rule.verdicts(anomalous).tolist() == [1] * 10
    # 0.1 as a double lies below 0.1 as a float32
    assert thresholds.rule.verdicts([0.1]).tolist() == [0]


def test_verdicts_are_small_integers_and_leave_the_scores_alone() -> None:
    values = np.array([0.1, 0.5, 0.9])
    values.flags.writeable = False
    for thresholds in (Thresholds(0.7, 0.3), Thresholds(0.5, None), Thresholds(None, 0.5)):
        assert thresholds.rule.verdicts(values).dtype == np.int8
        assert thresholds.prediction_sets(values).dtype == np.bool_
    assert values.tolist() == [0.1, 0.5, 0.9]


@pytest.mark.parametrize("shift", [6.0, 1.0])
def test_each_of_two_thresholds_rules_out_a_label_also_where_one_would_do(shift: float) -> None:
    normal = np.random.default_rng(0).normal(size=300)
    made = calibrate_quietly(normal, normal + shift, **RULES["two thresholds always"])
    assert made.thresholds.separated == (shift == 6.0)
    assert made.exclusions == made.thresholds
