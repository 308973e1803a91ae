"""Rules: where a verdict begins and ends, and that every way of deciding gives the same."""

import pickle
from copy import deepcopy
from dataclasses import FrozenInstanceError, fields, replace
from decimal import Decimal
from fractions import Fraction
from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.base.floats import ScoreType
from pac_wrap.errors import MissingScoreWarning
from pac_wrap.method import rule as module
from pac_wrap.method.rule import Rule, Thresholds, Verdict
from support.strategies import LARGEST, refusal

pytestmark = pytest.mark.usefixtures("each_kernel")

EDGES = st.sampled_from([None, -inf, -1.0, -5e-324, 0.0, 5e-324, 1.0, 2.0, inf])
SCORES = [-inf, -1.5, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.5, 1.0, np.nextafter(1.0, 0.0), 2.0, 1.7e308, inf]
ENDS = [-inf, -LARGEST, 0.0, LARGEST, inf]
rules = st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)).map(sorted).map(lambda x: Rule(*x))


def by_definition(rule: Rule, score: float) -> int:
    """Return the verdict on one score: normal below one edge, anomaly from the other on, abstain between."""
    if rule.anomaly_from < inf and score >= rule.anomaly_from:
        return Verdict.ANOMALY
    if score < rule.normal_below or rule == Rule(inf, inf):
        return Verdict.NORMAL
    return Verdict.ABSTAIN


def by_evidence(thresholds: Thresholds, score: float) -> int:
    """Return the verdict that two thresholds give one score, eqs. (7) to (11)."""
    alarm = thresholds.alarm_from is None or (thresholds.alarm_from < inf and score >= thresholds.alarm_from)
    kept = thresholds.clear_below is None or score >= thresholds.clear_below
    if thresholds.alarm_from is None:
        return int(kept)
    if thresholds.clear_below is None:
        return int(alarm)
    return 1 if alarm and kept else 0 if not alarm and not kept else -1


def kinds(scores: list[float]) -> list[NDArray[Any]]:
    """Return the same scores in every length class and layout that is decided in its own way."""
    few = np.array(scores)
    many = np.tile(few, module._FEW)
    spread = np.empty((few.size, 2))
    spread[:, 0] = few
    return [few, many, spread[:, 0], np.array(scores, dtype=object).astype(float)]


@given(alarm_from=EDGES, clear_below=EDGES, scores=st.lists(st.sampled_from(SCORES), min_size=1, max_size=30))
def test_every_way_gives_the_verdicts_of_the_definition(
    alarm_from: float | None, clear_below: float | None, scores: list[float]
) -> None:
    if alarm_from is None and clear_below is None:
        return
    thresholds = Thresholds(alarm_from, clear_below)
    rule = thresholds.rule
    expected = [by_evidence(thresholds, score) for score in scores]
    assert [by_definition(rule, score) for score in scores] == expected
    for values in kinds(scores):
        found = rule.verdicts(values)
        assert found.dtype == np.int8
        assert found[: len(scores)].tolist() == expected
    assert rule.verdicts(scores).tolist() == expected


@given(rules, st.lists(st.floats(allow_nan=False), max_size=10))
def test_a_rule_says_what_its_edges_say(rule: Rule, others: list[float]) -> None:
    edges = [rule.normal_below, rule.anomaly_from]
    around = [nextafter(edge, way) for edge in edges for way in (-inf, inf)]
    scores = [*edges, *around, *others, *ENDS]
    expected = [by_definition(rule, score) for score in scores]
    for values in kinds(scores):
        assert rule.verdicts(values)[: len(scores)].tolist() == expected
    assert rule.ambiguity(scores) == pytest.approx(expected.count(-1) / len(scores))
    if rule.single:
        assert -1 not in expected
        assert rule.ambiguity_region is None
    else:
        assert rule.ambiguity_region == (rule.normal_below, rule.anomaly_from)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, np.uint8, bool])
def test_every_type_is_compared_in_float64(kind: Any) -> None:
    # 0.1 in float32 is a little more than 0.1
    rule = Rule(normal_below=0.05, anomaly_from=float(np.nextafter(np.float64(np.float32(0.1)), 1.0)))
    for size in (1, 7, module._FEW, module._FEW + 1, 200_000):
        values = (np.arange(size) % 20 / 10).astype(kind)
        found, first = rule.verdicts(values), rule.verdicts(values[:50]).tolist()
        assert found.tolist() == rule.verdicts(values.astype(np.float64)[:].copy()).tolist(), size
        assert first == [by_definition(rule, float(value)) for value in values[:50]], size


@given(rules, st.booleans())
def test_float32_beside_a_double_is_compared_as_a_double(rule: Rule, upwards: bool) -> None:
    with np.errstate(over="ignore"):  # beyond the largest float32 lies infinity
        near = np.array([rule.normal_below, rule.anomaly_from], dtype=np.float32)
        # the float32 numbers around each threshold
        scores = np.concatenate([near, np.nextafter(near, np.float32(inf if upwards else -inf))])
    many = np.tile(scores, module._FEW)
    expected = [by_definition(rule, float(score)) for score in scores]
    assert rule.verdicts(many)[: scores.size].tolist() == expected


@pytest.mark.parametrize("size", [1, 100, module._FEW + 1, 300_000])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_nan_is_abstained_on_and_said_or_refused_wherever_it_stands(size: int, kind: Any) -> None:
    rule = Rule(normal_below=0.3, anomaly_from=0.7)
    for place in {0, size // 2, size - 1}:
        scores = np.full(size, inf, dtype=kind)
        scores[::2] = -inf
        expected = np.where(scores > 0, 1, 0)
        expected[place], scores[place] = -1, nan
        said = f"1 of {size:,} scores are NaN, the first at position {place}; points without a score"
        with pytest.warns(MissingScoreWarning, match=said) as warned:
            np.testing.assert_array_equal(rule.verdicts(scores), expected)
        assert [one.filename for one in warned] == [__file__]
        message = refusal(rule.verdicts, scores, "stop")
        assert f"got 1 of {size:,}, the first at position {place};" in message


@given(rules, st.lists(st.floats(), max_size=10), st.sampled_from([float, np.float32]))
def test_a_missing_score_changes_no_other_verdict(rule: Rule, values: list[float], kind: Any) -> None:
    with np.errstate(over="ignore"):
        scores = np.array(values, dtype=kind)
    verdicts, missing = rule.decided(scores)
    expected = [-1 if score != score else by_definition(rule, float(score)) for score in scores]
    assert verdicts.tolist() == expected
    assert missing.tolist() == np.flatnonzero(np.isnan(scores)).tolist()


def test_a_missing_score_is_among_those_abstained_on() -> None:
    with pytest.warns(MissingScoreWarning):
        assert Rule(0.5, 0.5).ambiguity([0.1, nan, 0.9, 0.9]) == 0.25


def test_what_happens_to_missing_scores_must_be_known() -> None:
    message = "on_missing must be one of 'abstain', 'stop'; got 'drop'"
    assert refusal(Rule(0.3, 0.7).verdicts, [0.1], "drop") == message


@pytest.mark.parametrize(
    ("rule", "verdicts"),
    [
        (Rule(-inf, inf), [-1, -1, -1, -1, -1]),
        # one threshold at inf alarms at nothing, so that everything is normal: a score of inf too
        (Rule(inf, inf), [0, 0, 0, 0, 0]),
        (Rule(-inf, -inf), [1, 1, 1, 1, 1]),
        (Rule(-inf, 0.0), [-1, -1, 1, 1, 1]),
        (Rule(0.0, inf), [0, 0, -1, -1, -1]),
        (Rule(0.0, 0.0), [0, 0, 1, 1, 1]),
        (Rule(-LARGEST, LARGEST), [0, -1, -1, 1, 1]),
        (Rule(LARGEST, LARGEST), [0, 0, 0, 1, 1]),
        (Rule(LARGEST, inf), [0, 0, 0, -1, -1]),
        (Rule(-inf, LARGEST), [-1, -1, -1, 1, 1]),
        (Rule(-LARGEST, -LARGEST), [0, 1, 1, 1, 1]),
        (Rule(-inf, -LARGEST), [-1, 1, 1, 1, 1]),
    ],
)
def test_infinities_by_hand(rule: Rule, verdicts: list[int]) -> None:
    assert rule.verdicts(ENDS).tolist() == verdicts
    assert rule.verdicts(np.tile(ENDS, module._FEW))[:5].tolist() == verdicts
    assert rule.single is (rule.normal_below == rule.anomaly_from)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_what_is_normal_never_begins_above_what_is_an_anomaly(one: float, other: float) -> None:
    low, high = sorted([one, other])
    assert Rule(low, high).single is (low == high)
    if low < high:
        message = refusal(lambda: Rule(high, low))
        assert f"normal_below must not exceed anomaly_from, got {high!r} and {low!r}" in message
        assert message.endswith("exchange them")


def test_zeros_are_one_number() -> None:
    for low, high in ((0.0, -0.0), (-0.0, 0.0), (-0.0, -0.0)):
        assert Rule(low, high).single
        assert Rule(low, high) == Rule(0.0, 0.0)
        assert hash(Rule(low, high)) == hash(Rule(0.0, 0.0))
        assert Rule(low, high).verdicts([-5e-324, -0.0, 0.0, 5e-324]).tolist() == [0, 1, 1, 1]
    assert not Rule(0.0, 5e-324).single
    assert not Rule(-5e-324, 0.0).single


@pytest.mark.parametrize("name", ["normal_below", "anomaly_from"])
@pytest.mark.parametrize("value", [nan, np.float64("nan"), Decimal("NaN"), None, "0.5", True, 1j, [0.5]])
def test_an_edge_must_be_a_number(name: str, value: Any) -> None:
    edges: dict[str, Any] = {"normal_below": 0.5, "anomaly_from": 0.5, name: value}
    message = refusal(lambda: Rule(**edges))
    assert f"{name} must be a number, inf or -inf, got " in message


def test_edges_become_plain_floats() -> None:
    for low, high in ((np.float32(0.25), np.int64(1)), (Decimal("0.25"), Fraction(1))):
        rule = Rule(low, high)  # type: ignore[arg-type]  # any real number will do
        assert (type(rule.normal_below), type(rule.anomaly_from)) == (float, float)
        assert rule == Rule(0.25, 1.0)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
@given(rules, st.lists(st.floats(allow_nan=False), max_size=10))
def test_before_rounding_says_what_the_rule_says_of_rounded_scores(
    kind: ScoreType, rule: Rule, others: list[float]
) -> None:
    before = rule.before_rounding(kind)
    assert before.single or not rule.single
    edges = [rule.normal_below, rule.anomaly_from, before.normal_below, before.anomaly_from]
    scores = np.array([*edges, *(nextafter(edge, way) for edge in edges for way in (-inf, inf)), *others])
    with np.errstate(over="ignore"):
        rounded = scores.astype(kind).astype(np.float64)
    np.testing.assert_array_equal(before.verdicts(scores), rule.verdicts(rounded))


def test_before_rounding_by_hand() -> None:
    rule = Rule(0.3, 0.7)
    assert rule.before_rounding("float64") is rule
    # what never alarms goes on never to, though large scores are rounded to inf
    assert Rule(0.0, inf).before_rounding("float16").anomaly_from == inf
    assert Rule(inf, inf).before_rounding("float16") == Rule(inf, inf)
    assert Rule(inf, inf).before_rounding("float16").verdicts([65504.0, 1e300, inf]).tolist() == [0, 0, 0]
    # the largest double stands for inf, and so does what is rounded to inf
    assert Rule(LARGEST, LARGEST).before_rounding("float16") == Rule(65520.0, 65520.0)
    assert Rule(-inf, -inf).before_rounding("float32") == Rule(-inf, -inf)
    # two edges between which the type has no number become one
    assert Rule(0.3, nextafter(0.3, 1.0)).before_rounding("float16").single


@pytest.mark.parametrize("edges", [(0.3, 0.7), (0.5, 0.5), (inf, inf), (-inf, inf), (0.0, 0.0)])
def test_a_rule_survives_pickling_before_and_after_it_was_used(edges: tuple[float, float]) -> None:
    rule, fresh = Rule(*edges), Rule(*edges)
    unused = pickle.loads(pickle.dumps(fresh))
    expected = rule.verdicts(ENDS).tolist()
    for again in (unused, pickle.loads(pickle.dumps(rule)), deepcopy(rule), replace(rule)):
        assert again == rule == fresh
        assert hash(again) == hash(rule)
        assert again.verdicts(ENDS).tolist() == expected
        assert repr(again) == repr(fresh)


def test_rules_are_equal_by_their_edges_alone() -> None:
    used, unused = Rule(0.3, 0.7), Rule(0.3, 0.7)
    used.verdicts(ENDS)
    assert used == unused
    assert len({used, unused, Rule(0.3, nextafter(0.7, 1.0)), Rule(nextafter(0.3, 0.0), 0.7)}) == 3
    evidence: object = Thresholds(0.7, 0.3)
    assert used != evidence
    assert repr(used) == "Rule(normal_below=0.3, anomaly_from=0.7)"
    assert [field.name for field in fields(Rule) if field.init] == ["normal_below", "anomaly_from"]


def test_a_rule_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Rule(0.3, 0.7).anomaly_from = 0.5  # type: ignore[misc]  # frozen on purpose


def test_no_scores_have_no_ambiguity_and_a_matrix_has_no_verdicts() -> None:
    assert "at least one score" in refusal(lambda: Rule(0.3, 0.7).ambiguity([]))
    assert Rule(0.3, 0.7).verdicts([]).tolist() == []
    assert "must be one-dimensional" in refusal(lambda: Rule(0.3, 0.7).verdicts(np.zeros((2, 2))))
    assert Rule(0.3, 0.7).ambiguity([0.1, 0.5, 0.5, 0.9]) == 0.5
