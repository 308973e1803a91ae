from dataclasses import replace
from itertools import pairwise
from math import inf, nextafter
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap.method.certificate import inconsistencies
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Rule, Thresholds, Verdict
from pac_wrap.method.strategies.interface import asked_of
from pac_wrap.method.strategies.raising import Algorithm1
from pac_wrap.ranks.memory import Rank
from pac_wrap.tails.bounds import Budget, error_budget
from pac_wrap.tails.levels import fixed_level
from support.examples import examples
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
SIDES = ("fpr", "fnr")
raising = st.builds(
    Algorithm1,
    step=st.floats(0.05, 0.5),
    growth=st.sampled_from(["linear", "double"]),
    raised=st.sampled_from(["both", "fpr", "fnr"]),
    relax_delta=st.booleans(),
    correction=st.sampled_from(["exact", None]),
    position=st.floats(0.0, 1.0),
)
tied = st.lists(st.integers(0, 9), min_size=1, max_size=40).map(lambda x: np.array(x, dtype=np.float64))
shifted = st.lists(st.integers(7, 16), min_size=1, max_size=40).map(lambda x: np.array(x, dtype=np.float64))
NOTHING = Rule(-inf, inf)


def raised_sides(strategy: Algorithm1) -> tuple[str, ...]:
    return SIDES if strategy.raised == "both" else (strategy.raised,)


def levelled(
    strategy: Algorithm1, normal: Floats, anomalous: Floats, asked: Guarantee = FIVE
) -> tuple[Outcome, int | None]:
    outcome = decided(strategy, asked, normal, anomalous)
    return outcome, strategy._reached(outcome.claim)[0]


def overlapping(n: int = 400) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(7)
    return rng.normal(0.0, 1.0, n), rng.normal(2.0, 1.0, n)


def test_linear_levels_rise_by_the_step() -> None:
    levels = Algorithm1().levels(FIVE)
    expected = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]
    assert [level.max_fpr for level in levels] == expected
    assert [level.max_fnr for level in levels] == expected
    assert {(level.delta_fpr, level.delta_fnr) for level in levels} == {(0.05, 0.05)}


def test_levels_of_the_time_series_and_doubled_ones() -> None:
    tenth = Guarantee(max_fpr=0.1, max_fnr=0.1)
    assert [level.max_fpr for level in Algorithm1().levels(tenth)] == [k / 10 for k in range(1, 10)]
    doubled = Algorithm1(growth="double").levels(FIVE)
    assert [level.max_fnr for level in doubled] == [0.05, 0.1, 0.2, 0.4, 0.8]


def test_only_the_named_ceiling_rises() -> None:
    asked = Guarantee(max_fpr=0.1, max_fnr=0.3, delta_fpr=0.2, delta_fnr=0.4)
    fpr = Algorithm1(raised="fpr", step=0.25).levels(asked)
    assert fpr == [replace(asked, max_fpr=rate) for rate in (0.1, 0.35, 0.6, 0.85)]
    fnr = Algorithm1(raised="fnr", step=0.25).levels(asked)
    assert fnr == [replace(asked, max_fnr=rate) for rate in (0.3, 0.55, 0.8)]
    # the side that would reach 1 stays, while the other goes on
    both = Algorithm1(step=0.25).levels(asked)
    pairs = ((0.1, 0.3), (0.35, 0.55), (0.6, 0.8), (0.85, 0.8))
    assert both == [replace(asked, max_fpr=a, max_fnr=b) for a, b in pairs]


def test_deltas_rise_instead_when_asked() -> None:
    asked = Guarantee(max_fpr=0.1, max_fnr=0.3, delta_fpr=0.2, delta_fnr=0.4)
    levels = Algorithm1(relax_delta=True, step=0.25).levels(asked)
    assert levels == [
        replace(asked, delta_fpr=a, delta_fnr=b)
        for a, b in ((0.2, 0.4), (0.45, 0.65), (0.7, 0.9), (0.95, 0.9))
    ]
    doubled = Algorithm1(relax_delta=True, growth="double", raised="fnr").levels(asked)
    assert doubled == [asked, replace(asked, delta_fnr=0.8)]


@given(guarantee, raising)
def test_levels_start_at_what_is_asked_and_rise_below_1(guarantee: Guarantee, strategy: Algorithm1) -> None:
    levels = strategy.levels(guarantee)
    assert levels[0] == guarantee
    prefix = "delta" if strategy.relax_delta else "max"
    for lower, higher in pairwise(levels):
        assert lower != higher
        for side in SIDES:
            for kind in ("max", "delta"):
                before, after = getattr(lower, f"{kind}_{side}"), getattr(higher, f"{kind}_{side}")
                raised = kind == prefix and side in raised_sides(strategy)
                assert 1 > after >= before if raised else after == before
    for side in raised_sides(strategy):
        last = getattr(levels[-1], f"{prefix}_{side}")
        assert last + (strategy.step if strategy.growth == "linear" else last) >= 1 - 1e-9


def tried_at(
    strategy: Algorithm1, levels: list[Guarantee], sizes: tuple[int, int]
) -> list[tuple[float, float, float, float]]:
    """Return the ceilings and deltas at which levels are tried, those of the FPR first."""

    def side(name: str, n: int) -> list[tuple[float, float]]:
        ceilings = [float(getattr(level, f"max_{name}")) for level in levels]
        deltas = [float(getattr(level, f"delta_{name}")) for level in levels]
        if strategy.correction is not None and name in raised_sides(strategy):
            local = fixed_level(n, tuple(dict.fromkeys(ceilings)), deltas[0])
            deltas = [delta / len(levels) if strategy.relax_delta else local for delta in deltas]
        return list(zip(ceilings, deltas, strict=True))

    return [(*fpr, *fnr) for fpr, fnr in zip(side("fpr", sizes[0]), side("fnr", sizes[1]), strict=True)]


def first_separated(
    normal: Floats, anomalous: Floats, tried: list[tuple[float, float, float, float]]
) -> tuple[int, float, float] | None:
    """Search the levels one by one, with thresholds read off the sorted scores."""
    high, low = sorted(normal, reverse=True), sorted(anomalous)
    for number, terms in enumerate(tried):
        fp = error_budget(len(high), *terms[:2])
        fn = error_budget(len(low), *terms[2:])
        if fp is not None and fn is not None and high[fp] < low[fn]:
            return number, nextafter(high[fp], inf), low[fn]
    return None


@given(st.integers(0, 400), st.integers(0, 400), guarantee, raising)
def test_levels_without_a_budget_are_left_out_and_no_others(
    n: int, m: int, guarantee: Guarantee, strategy: Algorithm1
) -> None:
    every, kept = strategy.levels(guarantee), strategy.levels(guarantee, (n, m))

    def feasible(first: int) -> bool:
        """Whether level `first` has budgets with its whole delta, or its part where the deltas are raised."""
        count = len(every) - first if strategy.correction and strategy.relax_delta else 1
        shares = {side: count if side in raised_sides(strategy) else 1 for side in SIDES}
        level = every[first]
        assert level.max_fpr is not None
        assert level.max_fnr is not None
        fp = error_budget(n, level.max_fpr, level.delta_fpr / shares["fpr"])
        fn = error_budget(m, level.max_fnr, level.delta_fnr / shares["fnr"])
        return fp is not None and fn is not None

    first = next((number for number in range(len(every)) if feasible(number)), 0)
    assert kept == every[first:]


@settings(max_examples=examples(300))
@given(tied | scores(1), shifted | scores(1), guarantee, raising)
def test_the_first_level_that_separates_is_chosen(
    normal: Floats, anomalous: Floats, guarantee: Guarantee, strategy: Algorithm1
) -> None:
    levels = strategy.levels(guarantee, (len(normal), len(anomalous)))
    terms = tried_at(strategy, levels, (len(normal), len(anomalous)))
    expected = first_separated(normal, anomalous, terms)
    outcome = decided(strategy, guarantee, normal, anomalous)
    level_reached, count = strategy._reached(outcome.claim)
    assert count == len(levels)
    assert outcome.fpr is not None
    assert outcome.fnr is not None
    tried = levels[-1] if expected is None else levels[expected[0]]
    found = outcome.fpr.rate, outcome.fpr.delta, outcome.fnr.rate, outcome.fnr.delta
    assert found == terms[-1 if expected is None else expected[0]]
    # only the raised sides pay for the choice
    for side, delta in (("fpr", outcome.fpr.delta), ("fnr", outcome.fnr.delta)):
        if strategy.correction is None or side not in raised_sides(strategy):
            assert delta == getattr(tried, f"delta_{side}")
    if expected is None:
        assert (outcome.certified, outcome.rule, level_reached) == (None, NOTHING, None)
    else:
        level, low, high = expected
        assert level_reached == level
        assert outcome.thresholds == Thresholds(low, high)
        assert outcome.rule.single
        assert low <= outcome.rule.anomaly_from <= min(high, LARGEST)
        assert outcome.certified is not None
        assert (outcome.certified.max_fpr, outcome.certified.max_fnr) == (tried.max_fpr, tried.max_fnr)


@pytest.mark.parametrize("raised", ["both", "fpr", "fnr"])
@pytest.mark.parametrize("correction", ["exact", None])
def test_certified_delta_after_raising_ceilings_is_what_was_asked(
    raised: Literal["both", "fpr", "fnr"], correction: Literal["exact"] | None
) -> None:
    outcome, level = levelled(Algorithm1(raised=raised, step=0.05, correction=correction), *overlapping())
    assert outcome.certified is not None
    assert level is not None
    assert level > 0
    assert (outcome.certified.delta_fpr, outcome.certified.delta_fnr) == (0.05, 0.05)
    assert (outcome.certified.max_fpr == 0.05) == (raised == "fnr")
    assert (outcome.certified.max_fnr == 0.05) == (raised == "fpr")


def test_a_theorem_costs_levels_against_the_papers_version() -> None:
    normal, anomalous = overlapping(60)
    _, paper = levelled(Algorithm1(step=0.01, correction=None), normal, anomalous)
    _, proved = levelled(Algorithm1(step=0.01), normal, anomalous)
    assert paper is not None
    assert proved is not None
    assert proved > paper


def nearly_separated() -> tuple[Floats, Floats]:
    """Return 150 scores a class, five in common: 2 + 2 errors are too few, 3 need a delta of 0.0548."""
    return np.arange(150.0), np.arange(150.0) + 145.0


def test_certified_delta_after_relaxing_delta_is_the_last_levels_share() -> None:
    strategy = Algorithm1(relax_delta=True)
    outcome, level = levelled(strategy, *nearly_separated())
    assert outcome.certified is not None
    assert level is not None
    assert 0 < level < 9
    # ten levels up to 0.95: whichever was chosen, the last one's share covers it
    assert outcome.certified == replace(FIVE, delta_fpr=0.95 / 10, delta_fnr=0.95 / 10)
    one, _ = levelled(replace(strategy, raised="fnr"), *nearly_separated())
    assert one.certified is not None
    assert one.certified == replace(FIVE, delta_fnr=0.95 / 10)


def test_certified_delta_after_relaxing_delta_uncorrected_is_the_level_reached() -> None:
    strategy = Algorithm1(relax_delta=True, correction=None, step=0.01)
    outcome, level = levelled(strategy, *nearly_separated())
    assert level is not None
    assert level > 0
    assert outcome.certified == strategy.levels(FIVE)[level]
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
def test_the_threshold_is_finite_and_lies_between_the_two(
    normal: Floats, anomalous: Floats, low: float, high: float, position: float
) -> None:
    outcome, level = levelled(Algorithm1(position=position), normal, anomalous, Guarantee(0.2, 0.2))
    assert level == 0
    assert outcome.rule.single
    tau = outcome.rule.anomaly_from
    assert low <= tau <= high
    if position in (0.0, 1.0):
        assert tau == (low, high)[int(position)]
    else:
        assert tau == pytest.approx(low * (1 - position) + high * position)
    assert (normal < tau).all()
    assert (anomalous >= tau).all()


def test_the_rule_is_one_threshold() -> None:
    normal, anomalous = overlapping()
    certificate = calibrate_quietly(normal, anomalous, overlap="algorithm1")
    assert certificate.rule.normal_below == certificate.rule.anomaly_from
    below, at = nextafter(certificate.rule.anomaly_from, -inf), certificate.rule.anomaly_from
    assert certificate.verdicts([-inf, below, at, inf]).tolist() == [0, 0, 1, 1]
    assert certificate.rule.single
    assert not certificate.empty
    assert certificate.rule.ambiguity(normal) == 0.0


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
    certificate = calibrate_quietly(normal, anomalous, overlap="algorithm1")
    assert certificate.uncertified
    assert certificate.rule == NOTHING
    assert certificate.empty
    count = len(Algorithm1().levels(Guarantee(), (len(normal), len(anomalous))))
    assert Algorithm1()._reached(certificate.claim) == (None, count)
    assert Algorithm1().tried(Guarantee(), certificate.claim.sizes) == count
    assert certificate.verdicts(ENDS).tolist() == [Verdict.ABSTAIN] * 5
    text = str(certificate)
    assert text.startswith(
        "Nothing is promised: no single threshold can be certified at any level tried.\nEvery"
    )
    assert "rule       every point is left undecided\n" in text
    assert f"none reached of {count}" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"growth": "triple"}, ("growth must be one of 'linear', 'double'", "'triple'")),
        ({"raised": "none"}, ("raised must be one of 'both', 'fpr', 'fnr'", "'none'")),
        ({"relax_delta": 1}, ("relax_delta must be one of True, False", "1")),
        ({"correction": "none"}, ("correction must be one of 'exact', None", "'none'")),
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
def test_impossible_options_are_refused(options: dict[str, Any], words: tuple[str, ...]) -> None:
    message = refusal(lambda: Algorithm1(**options))
    for word in words:
        assert word in message


def test_options_become_plain_floats() -> None:
    strategy = Algorithm1(step=np.float64(0.25), position=1)
    assert type(strategy.step) is float
    assert type(strategy.position) is float
    assert strategy == Algorithm1(step=0.25, position=1.0)
    assert Algorithm1(step=0.0001).step == 0.0001


def test_budgets_that_fit_no_level_are_a_contradiction() -> None:
    made = calibrate_quietly(np.arange(300.0), np.arange(250.0, 550.0), overlap="algorithm1")
    fpr, fnr = made.clauses
    assert fnr.budget is not None
    for forged in (
        (replace(fpr, budget=Budget.of(300, 0.123, 0.05)), fnr),
        (replace(fpr, budget=None), fnr),
        (fpr, replace(fnr, budget=None)),
        (replace(fpr, budget=replace(fnr.budget, delta=0.05)), fnr),
    ):
        assert list(inconsistencies(replace(made, clauses=forged))) != []


def test_the_level_that_was_reached_is_told_by_its_budgets() -> None:
    made = calibrate_quietly(*overlapping(), overlap="algorithm1")
    claim = made.claim
    level, count = Algorithm1()._reached(claim)
    assert level is not None
    levels = Algorithm1().levels(FIVE, claim.sizes)
    assert count == len(levels)
    for number, (other, terms) in enumerate(
        zip(levels, tried_at(Algorithm1(), levels, claim.sizes), strict=True)
    ):
        fpr, fnr = Budget.of(400, *terms[:2]), Budget.of(400, *terms[2:])
        found = replace(claim, fpr=fpr, fnr=fnr, certified=other.promises)
        assert Algorithm1()._reached(found) == (number, count)
        # nothing is certified of another level than that of the budgets
        if number != level:
            promises = zip(made.clauses, other.promises, strict=True)
            forged = tuple(replace(one, certified=promise) for one, promise in promises)
            assert "the certified ceilings do not follow from the requested ones" in inconsistencies(
                replace(made, clauses=forged)
            )


def test_no_level_reached_leaves_the_budgets_of_the_last() -> None:
    made = calibrate_quietly(np.arange(300.0) + 1000.0, np.arange(300.0), overlap="algorithm1")
    assert list(inconsistencies(made)) == []
    levels = Algorithm1().levels(FIVE, (300, 300))
    terms = tried_at(Algorithm1(), levels, (300, 300))[0]
    budgets = Budget.of(300, *terms[:2]), Budget.of(300, *terms[2:])
    first = tuple(replace(one, budget=budget) for one, budget in zip(made.clauses, budgets, strict=True))
    assert any("the budget of" in one for one in inconsistencies(replace(made, clauses=first)))
    reached = tuple(replace(one, certified=one.asked) for one in made.clauses)
    assert "the certified ceilings do not follow from the requested ones" in inconsistencies(
        replace(made, clauses=reached)
    )


def test_what_algorithm_1_says_of_itself() -> None:
    assert Algorithm1().word == Algorithm1.tag == "algorithm1"
    assert Algorithm1().single
    assert Algorithm1().keeps == ()
    assert Algorithm1().proved
    assert not Algorithm1(correction=None).proved
    assert "only a part of delta" in str(Algorithm1().needs_more_labels)
    assert Algorithm1().tried(FIVE, (2000, 2000)) == 10
    assert Algorithm1().tried(FIVE, (2000, 30)) == 9
    claim = calibrate_quietly(*overlapping(), overlap="algorithm1").claim
    first, second = Algorithm1().explanation(claim)
    assert "10 levels with rising ceilings of both sides were fixed beforehand" in first
    assert second.startswith(
        "It was tried at a delta of 0.03195 for the FPR and 0.03195 for the FNR, so that"
    )
    paper = Algorithm1(correction=None, raised="fnr", relax_delta=True)
    claim = calibrate_quietly(*nearly_separated(), overlap=paper).claim
    first, second = paper.explanation(claim)
    assert "rising deltas of the FNR" in first
    assert second == "Delta was not corrected for the choice, so the confidence is not guaranteed."
    nothing = calibrate_quietly(np.arange(100.0) + 1000.0, np.arange(100.0), overlap="algorithm1").claim
    (only,) = Algorithm1().explanation(nothing)
    assert only.endswith("no level could be kept.")


def test_every_level_names_its_ranks() -> None:
    levels = Algorithm1().levels(FIVE, (300, 200))
    found = list(Algorithm1().ranks(asked_of(FIVE), (300, 200)))
    assert len(found) == 2 * len(levels)
    tried = tried_at(Algorithm1(), levels, (300, 200))
    for terms, (fpr, fnr) in zip(tried, zip(found[::2], found[1::2], strict=True), strict=True):
        budgets = Budget.of(300, *terms[:2]).errors, Budget.of(200, *terms[2:]).errors
        assert budgets[0] is not None
        assert budgets[1] is not None
        assert (fpr, fnr) == (Rank(0, 300 - budgets[0]), Rank(1, budgets[1] + 1))
