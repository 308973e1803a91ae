from dataclasses import replace
from itertools import pairwise
from math import inf, nextafter
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pac_wrap.binomial import error_budget, upper_bound
from pac_wrap.guarantee import Guarantee
from pac_wrap.relaxation import Outcome, Strategy, feasible_levels, single_threshold
from pac_wrap.thresholds import Regime, Thresholds, Verdict
from strategies import LARGEST, Floats, calibrate_quietly, guarantee, refusal, scores

ENDS = [-inf, -LARGEST, 0.0, LARGEST, inf]
FIVE = Guarantee()
SIDES = ("fpr", "fnr")
relaxing = st.builds(
    Strategy,
    step=st.floats(0.05, 0.5),
    growth=st.sampled_from(["linear", "double"]),
    ceilings=st.sampled_from(["both", "fpr", "fnr"]),
    relax_delta=st.booleans(),
    correction=st.sampled_from(["share", None]),
    position=st.floats(0.0, 1.0),
)
tied = st.lists(st.integers(0, 9), min_size=1, max_size=40).map(lambda x: np.array(x, dtype=np.float64))
shifted = st.lists(st.integers(7, 16), min_size=1, max_size=40).map(lambda x: np.array(x, dtype=np.float64))


def overlapping(n: int = 400) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(7)
    return rng.normal(0.0, 1.0, n), rng.normal(2.0, 1.0, n)


def test_linear_levels_rise_by_the_step() -> None:
    levels = Strategy().levels(FIVE)
    expected = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]
    assert [level.max_fpr for level in levels] == expected
    assert [level.max_fnr for level in levels] == expected
    assert {(level.delta_fpr, level.delta_fnr) for level in levels} == {(0.05, 0.05)}


def test_levels_of_the_time_series_and_doubled_ones() -> None:
    tenth = Guarantee(max_fpr=0.1, max_fnr=0.1)
    assert [level.max_fpr for level in Strategy().levels(tenth)] == [
        0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
    ]  # fmt: skip
    doubled = Strategy(growth="double").levels(FIVE)
    assert [level.max_fnr for level in doubled] == [0.05, 0.1, 0.2, 0.4, 0.8]


def test_only_the_named_ceiling_rises() -> None:
    asked = Guarantee(max_fpr=0.1, max_fnr=0.3, delta_fpr=0.2, delta_fnr=0.4)
    fpr = Strategy(ceilings="fpr", step=0.25).levels(asked)
    assert fpr == [replace(asked, max_fpr=rate) for rate in (0.1, 0.35, 0.6, 0.85)]
    fnr = Strategy(ceilings="fnr", step=0.25).levels(asked)
    assert fnr == [replace(asked, max_fnr=rate) for rate in (0.3, 0.55, 0.8)]
    # the side that would reach 1 stays, while the other goes on
    both = Strategy(step=0.25).levels(asked)
    pairs = ((0.1, 0.3), (0.35, 0.55), (0.6, 0.8), (0.85, 0.8))
    assert both == [replace(asked, max_fpr=a, max_fnr=b) for a, b in pairs]


def test_deltas_rise_instead_when_asked() -> None:
    asked = Guarantee(max_fpr=0.1, max_fnr=0.3, delta_fpr=0.2, delta_fnr=0.4)
    levels = Strategy(relax_delta=True, step=0.25).levels(asked)
    assert levels == [
        replace(asked, delta_fpr=a, delta_fnr=b)
        for a, b in ((0.2, 0.4), (0.45, 0.65), (0.7, 0.9), (0.95, 0.9))
    ]
    doubled = Strategy(relax_delta=True, growth="double", ceilings="fnr").levels(asked)
    assert doubled == [asked, replace(asked, delta_fnr=0.8)]


@given(guarantee, relaxing)
def test_levels_start_at_what_is_asked_and_rise_below_1(guarantee: Guarantee, strategy: Strategy) -> None:
    levels = strategy.levels(guarantee)
    assert levels[0] == guarantee
    prefix = "delta" if strategy.relax_delta else "max"
    for lower, higher in pairwise(levels):
        assert lower != higher
        for side in SIDES:
            for kind in ("max", "delta"):
                before, after = getattr(lower, f"{kind}_{side}"), getattr(higher, f"{kind}_{side}")
                raised = kind == prefix and side in strategy.relaxed_sides
                assert 1 > after >= before if raised else after == before
    for side in strategy.relaxed_sides:
        last = getattr(levels[-1], f"{prefix}_{side}")
        assert last + (strategy.step if strategy.growth == "linear" else last) >= 1 - 1e-9


def first_separated(
    normal: Floats, anomalous: Floats, levels: list[Guarantee], shares: dict[str, int]
) -> tuple[int, float, float] | None:
    """Search the levels one by one, with thresholds read off the sorted scores."""
    high, low = sorted(normal, reverse=True), sorted(anomalous)
    for number, level in enumerate(levels):
        assert level.max_fpr is not None
        assert level.max_fnr is not None
        fp = error_budget(len(high), level.max_fpr, level.delta_fpr / shares["fpr"])
        fn = error_budget(len(low), level.max_fnr, level.delta_fnr / shares["fnr"])
        if fp is not None and fn is not None and high[fp] < low[fn]:
            return number, nextafter(high[fp], inf), low[fn]
    return None


@given(st.integers(0, 400), st.integers(0, 400), guarantee, relaxing)
def test_levels_without_a_budget_are_left_out_and_no_others(
    n: int, m: int, guarantee: Guarantee, strategy: Strategy
) -> None:
    every, kept = strategy.levels(guarantee), feasible_levels(strategy, guarantee, n, m)

    def feasible(first: int) -> bool:
        """Whether level `first` has budgets when it shares delta with the levels above it only."""
        count = len(every) - first if strategy.correction == "share" else 1
        shares = {side: count if side in strategy.relaxed_sides else 1 for side in SIDES}
        level = every[first]
        assert level.max_fpr is not None
        assert level.max_fnr is not None
        fp = error_budget(n, level.max_fpr, level.delta_fpr / shares["fpr"])
        fn = error_budget(m, level.max_fnr, level.delta_fnr / shares["fnr"])
        return fp is not None and fn is not None

    first = next((number for number in range(len(every)) if feasible(number)), 0)
    assert kept == every[first:]


@settings(max_examples=300)
@given(tied | scores(1), shifted | scores(1), guarantee, relaxing)
def test_the_first_level_that_separates_is_chosen(
    normal: Floats, anomalous: Floats, guarantee: Guarantee, strategy: Strategy
) -> None:
    levels = feasible_levels(strategy, guarantee, len(normal), len(anomalous))
    shared = len(levels) if strategy.correction == "share" else 1
    shares = {side: shared if side in strategy.relaxed_sides else 1 for side in SIDES}
    expected = first_separated(normal, anomalous, levels, shares)
    outcome = single_threshold(normal, anomalous, guarantee, strategy)
    assert outcome.levels == len(levels)
    assert outcome.fpr is not None
    assert outcome.fnr is not None
    reached = levels[-1] if expected is None else levels[expected[0]]
    assert (outcome.fpr.rate, outcome.fnr.rate) == (reached.max_fpr, reached.max_fnr)
    # only the raised sides pay for the choice
    assert outcome.fpr.delta == reached.delta_fpr / shares["fpr"]
    assert outcome.fnr.delta == reached.delta_fnr / shares["fnr"]
    if expected is None:
        assert (outcome.certified, outcome.tau, outcome.level) == (None, None, None)
    else:
        level, low, high = expected
        assert outcome.level == level
        assert outcome.thresholds == Thresholds(low, high)
        assert outcome.tau is not None
        assert low <= outcome.tau <= min(high, LARGEST)
        assert outcome.certified is not None
        assert (outcome.certified.max_fpr, outcome.certified.max_fnr) == (reached.max_fpr, reached.max_fnr)


@pytest.mark.parametrize("ceilings", ["both", "fpr", "fnr"])
@pytest.mark.parametrize("correction", ["share", None])
def test_certified_delta_after_relaxing_ceilings_is_what_was_asked(
    ceilings: Literal["both", "fpr", "fnr"], correction: Literal["share"] | None
) -> None:
    outcome = single_threshold(
        *overlapping(), FIVE, Strategy(ceilings=ceilings, step=0.05, correction=correction)
    )
    assert outcome.certified is not None
    assert outcome.level is not None
    assert outcome.level > 0
    assert (outcome.certified.delta_fpr, outcome.certified.delta_fnr) == (0.05, 0.05)
    assert (outcome.certified.max_fpr == 0.05) == (ceilings == "fnr")
    assert (outcome.certified.max_fnr == 0.05) == (ceilings == "fpr")


def test_sharing_delta_costs_levels_against_the_papers_version() -> None:
    normal, anomalous = overlapping(60)
    paper = single_threshold(normal, anomalous, FIVE, Strategy(step=0.05, correction=None))
    shared = single_threshold(normal, anomalous, FIVE, Strategy(step=0.05))
    assert paper.level is not None
    assert shared.level is not None
    assert shared.level > paper.level


def nearly_separated() -> tuple[Floats, Floats]:
    """Return 150 scores a class, five in common: 2 + 2 errors are too few, 3 need a delta of 0.0548."""
    return np.arange(150.0), np.arange(150.0) + 145.0


def test_certified_delta_after_relaxing_delta_is_the_last_levels_share() -> None:
    strategy = Strategy(relax_delta=True)
    outcome = single_threshold(*nearly_separated(), FIVE, strategy)
    assert outcome.certified is not None
    assert outcome.level is not None
    assert 0 < outcome.level < 9
    # ten levels up to 0.95: whichever was chosen, the last one's share covers it
    assert outcome.certified == replace(FIVE, delta_fpr=0.95 / 10, delta_fnr=0.95 / 10)
    one = single_threshold(*nearly_separated(), FIVE, replace(strategy, ceilings="fnr"))
    assert one.certified is not None
    assert one.certified == replace(FIVE, delta_fnr=0.95 / 10)


def test_certified_delta_after_relaxing_delta_uncorrected_is_the_level_reached() -> None:
    strategy = Strategy(relax_delta=True, correction=None, step=0.01)
    outcome = single_threshold(*nearly_separated(), FIVE, strategy)
    assert outcome.level is not None
    assert outcome.level > 0
    assert outcome.certified == strategy.levels(FIVE)[outcome.level]
    assert outcome.certified.delta_fpr > 0.05


@pytest.mark.parametrize("position", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize(
    ("normal", "anomalous", "low", "high"),
    [
        (np.zeros(100), np.ones(100), 5e-324, 1.0),
        (np.zeros(100), np.full(100, inf), 5e-324, LARGEST),
        (np.full(100, -inf), np.zeros(100), -LARGEST, 0.0),
        (np.full(100, -inf), np.full(100, inf), -LARGEST, LARGEST),
        (np.full(100, -1e308), np.full(100, 1e308), nextafter(-1e308, 0.0), 1e308),
        (np.zeros(100), np.full(100, 5e-324), 5e-324, 5e-324),
    ],
)
def test_tau_is_finite_and_lies_between_the_thresholds(
    normal: Floats, anomalous: Floats, low: float, high: float, position: float
) -> None:
    outcome = single_threshold(normal, anomalous, Guarantee(0.2, 0.2), Strategy(position=position))
    assert outcome.level == 0
    assert outcome.tau is not None
    assert low <= outcome.tau <= high
    if position in (0.0, 1.0):
        assert outcome.tau == (low, high)[int(position)]
    else:
        assert outcome.tau == pytest.approx(low * (1 - position) + high * position)
    assert (normal < outcome.tau).all()
    assert (anomalous >= outcome.tau).all()


def test_the_rule_of_a_relaxed_certificate_is_one_threshold() -> None:
    normal, anomalous = overlapping()
    certificate = calibrate_quietly(normal, anomalous, abstain=False)
    assert certificate.tau is not None
    below, at = nextafter(certificate.tau, -inf), certificate.tau
    assert certificate.verdicts([-inf, below, at, inf]).tolist() == [0, 0, 1, 1]
    assert certificate.rule.single
    assert not certificate.empty
    assert certificate.ambiguity(normal) == 0.0


@pytest.mark.parametrize(
    ("normal", "anomalous"),
    [
        (np.arange(100.0) + 1000.0, np.arange(100.0)),
        (np.zeros(100), np.zeros(100)),
        (np.full(100, inf), np.full(100, inf)),
        (np.array([0.0]), np.array([1.0])),
        (np.empty(0), np.ones(100)),
        (np.zeros(100), np.empty(0)),
    ],
)
def test_where_nothing_can_be_certified_everything_is_abstained(normal: Floats, anomalous: Floats) -> None:
    certificate = calibrate_quietly(normal, anomalous, abstain=False)
    assert certificate.certified is None
    assert certificate.tau is None
    assert certificate.empty
    count = len(feasible_levels(Strategy(), Guarantee(), len(normal), len(anomalous)))
    assert (certificate.levels, certificate.level) == (count, None)
    assert certificate.verdicts(ENDS).tolist() == [Verdict.ABSTAIN] * 5
    text = str(certificate)
    assert "nothing: no single threshold can be certified" in text
    assert "every point is abstained" in text
    assert f"none reached of {count}" in text


def held(normal: Floats, anomalous: Floats, guarantee: Guarantee, name: Any) -> Outcome:
    return single_threshold(normal, anomalous, guarantee, Strategy(name))


@given(tied | scores(), shifted | scores(), guarantee)
def test_hold_fnr_keeps_its_ceiling_and_certifies_the_counted_alarms(
    normal: Floats, anomalous: Floats, guarantee: Guarantee
) -> None:
    outcome = held(normal, anomalous, guarantee, "hold_fnr")
    assume(normal.size + anomalous.size > 0)
    alone = calibrate_quietly(normal, anomalous, replace(guarantee, max_fpr=None)).thresholds.clear_below
    assert alone is not None
    tau = min(alone, LARGEST)
    assert outcome.tau == outcome.thresholds.clear_below == tau
    assert outcome.certified is not None
    assert outcome.certified.max_fnr == guarantee.max_fnr
    alarms = int(np.count_nonzero(normal >= tau))
    bound = upper_bound(alarms, normal.size, guarantee.delta_fpr)
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
    outcome = held(normal, anomalous, guarantee, "hold_fpr")
    assume(normal.size + anomalous.size > 0)
    tau = calibrate_quietly(normal, anomalous, replace(guarantee, max_fnr=None)).thresholds.alarm_from
    assert tau is not None
    assert outcome.tau == outcome.thresholds.alarm_from == tau
    assert outcome.certified is not None
    assert outcome.certified.max_fpr == guarantee.max_fpr
    # at tau = inf no alarm is ever given, so that even an anomaly at inf is missed
    misses = anomalous.size if tau == inf else int(np.count_nonzero(anomalous < tau))
    bound = upper_bound(misses, anomalous.size, guarantee.delta_fnr)
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
    certificate = calibrate_quietly(normal, anomalous, guarantee, abstain=False, strategy=name)
    assert set(certificate.verdicts([*normal, *anomalous, *ENDS]).tolist()) <= {0, 1}
    alarms = int(np.count_nonzero(certificate.verdicts(normal) == Verdict.ANOMALY))
    misses = int(np.count_nonzero(certificate.verdicts(anomalous) == Verdict.NORMAL))
    for evidence, errors in ((certificate.normal, alarms), (certificate.anomalous, misses)):
        if evidence.budget is not None:
            assert errors <= (evidence.budget.errors or 0)


def test_hold_fnr_by_hand() -> None:
    # F(0; 10, 0.3) = 0.028 and F(1; 10, 0.3) = 0.149: one miss is allowed at delta 0.2
    anomalous = np.arange(10.0)
    normal = np.array([-2.0, -1.0, 0.0, 0.5, 3.0])
    outcome = held(normal, anomalous, Guarantee(0.05, 0.3, 0.25, 0.2), "hold_fnr")
    assert outcome.tau == 1.0
    assert outcome.certified == Guarantee(upper_bound(1, 5, 0.25), 0.3, 0.25, 0.2)
    assert outcome.thresholds == Thresholds(nextafter(0.5, inf), 1.0)
    assert (outcome.levels, outcome.level) == (None, None)


def test_too_few_labels_on_the_held_side_alarm_always_or_never() -> None:
    few, many = np.array([5.0] * 10), np.array([0.0] * 100)
    fnr = calibrate_quietly(many, few, abstain=False, strategy="hold_fnr")
    assert fnr.tau == -inf
    assert fnr.verdicts(ENDS).tolist() == [Verdict.ANOMALY] * 5
    fpr = calibrate_quietly(few, many, abstain=False, strategy="hold_fpr")
    assert fpr.tau == inf
    assert fpr.verdicts(ENDS).tolist() == [Verdict.NORMAL] * 5
    for certificate in (fnr, fpr):
        assert certificate.regime is Regime.VACUOUS
        assert certificate.empty
        assert certificate.certified is not None
        assert None in (certificate.certified.max_fpr, certificate.certified.max_fnr)
        assert "at least 59 are needed" in str(certificate)


def test_no_labels_on_the_other_side_certify_nothing_there() -> None:
    scores, none = np.arange(100.0), np.empty(0)
    fnr = held(none, scores, FIVE, "hold_fnr")
    assert fnr.certified == Guarantee(max_fpr=None)
    fpr = held(scores, none, FIVE, "hold_fpr")
    assert fpr.certified == Guarantee(max_fnr=None)


def test_holding_a_side_with_infinite_scores() -> None:
    top, bottom = np.full(100, inf), np.full(100, -inf)
    fnr = held(bottom, top, FIVE, "hold_fnr")
    assert fnr.tau == LARGEST
    assert fnr.certified is not None
    assert fnr.certified.max_fpr == upper_bound(0, 100, 0.05)
    fpr = held(bottom, top, FIVE, "hold_fpr")
    assert fpr.tau == -LARGEST
    assert fpr.certified is not None
    assert fpr.certified.max_fnr == upper_bound(0, 100, 0.05)
    # normal points at inf leave no room for an alarm
    never = held(top, top, FIVE, "hold_fpr")
    assert never.tau == inf
    assert never.certified == Guarantee(max_fnr=None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "relaxed"}, ("strategy must be one of 'relax', 'hold_fnr', 'hold_fpr'", "'relaxed'")),
        ({"growth": "triple"}, ("growth must be one of 'linear', 'double'", "'triple'")),
        ({"ceilings": "none"}, ("ceilings must be one of 'both', 'fpr', 'fnr'", "'none'")),
        ({"relax_delta": 1}, ("relax_delta must be one of True, False", "1")),
        ({"correction": "none"}, ("correction must be one of 'share', None", "'none'")),
        ({"step": 0.0}, ("step must lie strictly between 0 and 1", "0.0")),
        ({"step": 1}, ("step must lie strictly between 0 and 1", "1")),
        ({"step": None}, ("step must lie strictly between 0 and 1", "None")),
        ({"step": 0.00001}, ("step must be at least 0.0001", "1e-05", "costs part of delta")),
        ({"position": -0.1}, ("position must lie between 0 (alarm_from) and 1 (clear_below)", "-0.1")),
        ({"position": 1.1}, ("position must lie between", "1.1")),
        ({"position": float("nan")}, ("position must lie between", "nan")),
        ({"position": True}, ("position must lie between", "True")),
        ({"position": "0.5"}, ("position must lie between", "'0.5'")),
        ({"position": None}, ("position must lie between", "None")),
    ],
)
def test_impossible_strategies_are_refused(options: dict[str, Any], words: tuple[str, ...]) -> None:
    message = refusal(lambda: Strategy(**options))
    for word in words:
        assert word in message


def test_numbers_of_a_strategy_become_plain_floats() -> None:
    strategy = Strategy(step=np.float64(0.25), position=1)
    assert type(strategy.step) is float
    assert type(strategy.position) is float
    assert strategy == Strategy(step=0.25, position=1.0)
    assert Strategy(step=0.0001).step == 0.0001
