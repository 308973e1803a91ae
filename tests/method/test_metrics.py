from math import isnan, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.method.metrics import Metrics, errors_within, evaluate, tally
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Counted
from pac_wrap.tails import Rate
from pac_wrap.tails.bounds import interval, lower_bound
from support.exceeded import exceeded
from support.strategies import refusal


def counts(metrics: Metrics) -> dict[str, tuple[int, int]]:
    names = ("fpr", "fnr", "err", "ambiguity", "abstained_normal", "abstained_anomalous")
    return {name: (getattr(metrics, name).count, getattr(metrics, name).n) for name in names}


@pytest.mark.parametrize(
    ("verdicts", "labels", "expected"),
    [
        # one error and one abstention among three normals, and again among four anomalies
        ([1, 0, -1, 0, -1, 1, 1], [0, 0, 0, 1, 1, 1, 1], [(1, 3), (1, 4), (2, 7), (2, 7), (1, 3), (1, 4)]),
        # everything right, everything wrong, everything abstained
        ([0, 1], [0, 1], [(0, 1), (0, 1), (0, 2), (0, 2), (0, 1), (0, 1)]),
        ([1, 0], [0, 1], [(1, 1), (1, 1), (2, 2), (0, 2), (0, 1), (0, 1)]),
        ([-1, -1], [0, 1], [(0, 1), (0, 1), (0, 2), (2, 2), (1, 1), (1, 1)]),
    ],
)
def test_counts_by_hand(verdicts: list[int], labels: list[int], expected: list[tuple[int, int]]) -> None:
    assert list(counts(evaluate(verdicts, labels)).values()) == expected


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.booleans()), max_size=40), st.floats(0.5, 0.99))
def test_every_point_is_counted_once_and_every_rate_has_its_exact_interval(
    pairs: list[tuple[int, bool]], confidence: float
) -> None:
    verdicts, labels = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    metrics = evaluate(verdicts, labels, confidence=confidence)
    assert metrics.fpr.count == pairs.count((1, False))
    assert metrics.fnr.count == pairs.count((0, True))
    assert metrics.abstained_normal.count == pairs.count((-1, False))
    assert metrics.abstained_anomalous.count == pairs.count((-1, True))
    assert metrics.err.count == metrics.fpr.count + metrics.fnr.count
    assert metrics.ambiguity.count == verdicts.count(-1)
    assert metrics.verdicts == Counted(verdicts.count(1), verdicts.count(0), len(pairs))
    assert metrics.fpr.n == metrics.abstained_normal.n == labels.count(False)
    assert metrics.fnr.n == metrics.abstained_anomalous.n == labels.count(True)
    assert metrics.err.n == metrics.ambiguity.n == len(pairs)
    for name, (count, n) in counts(metrics).items():
        found = getattr(metrics, name)
        assert (found.low, found.high) == interval(count, n, confidence)


def test_an_empty_class_has_no_rate_and_the_whole_interval() -> None:
    metrics = evaluate([0, 1], [0, 0])
    assert isnan(metrics.fnr.value)
    assert (metrics.fnr.low, metrics.fnr.high) == (0.0, 1.0)
    assert metrics.fpr.value == 0.5
    assert str(metrics.fnr) == "no points"


def test_no_points_at_all() -> None:
    metrics = evaluate([], [])
    assert counts(metrics) == dict.fromkeys(counts(metrics), (0, 0))
    assert isnan(metrics.err.value)


def test_a_rate_shows_its_value_and_interval() -> None:
    assert str(Rate(1, 8, 0.25, 0.5)) == "0.1250 [0.2500, 0.5000]"


@pytest.mark.parametrize("labels", [[1, -1, 1], np.array([1.0, -1.0, 1.0])])
def test_labels_of_scikit_learn_when_asked_for(labels: Any) -> None:
    metrics = evaluate([0, 0, 1], labels, anomaly_label=-1)
    assert (metrics.fnr.count, metrics.fnr.n, metrics.fpr.count, metrics.fpr.n) == (1, 1, 1, 2)


@pytest.mark.parametrize(
    "verdicts",
    [[0, 1], (0.0, 1.0), [False, True], np.array([0, 1], dtype=np.int8), np.array([0, 1], dtype=np.uint64)],
)
def test_verdicts_of_any_whole_type(verdicts: Any) -> None:
    assert evaluate(verdicts, [0, 1]).err.count == 0
    assert evaluate(verdicts, [1, 0]).err.count == 2


@pytest.mark.parametrize(
    ("verdicts", "found"),
    [
        ([0, 2], "2"),
        ([0, -2], "-2"),
        ([0, 0.5], "0.5"),
        ([0, nan], "nan"),
        ([0, 256], "256"),
        (["normal", "anomaly"], "'normal'"),
        (["0", "1"], "'0'"),
        ([[0], [1]], "shape (2, 1)"),
        (1, "shape ()"),
        ([0, None], "None"),
        ([[0], [0, 1]], "list"),
        (np.ma.array([0, 1], mask=[False, True]), "masked"),
    ],
)
def test_what_is_not_a_verdict_is_refused(verdicts: Any, found: str) -> None:
    message = refusal(lambda: evaluate(verdicts, [0, 1]))
    assert message.startswith("verdicts must ")
    assert found in message


def test_lengths_must_agree() -> None:
    message = refusal(lambda: evaluate([0] * 1000, [0, 1]))
    assert message == "verdicts and labels must have the same length, got 1,000 and 2"


def test_labels_and_confidence_are_checked() -> None:
    assert "labels must be 0 (normal) or 1 (anomalous), got 2" in refusal(lambda: evaluate([0, 1], [0, 2]))
    assert "confidence must lie strictly" in refusal(lambda: evaluate([0, 1], [0, 1], confidence=95))


def test_a_ceiling_is_exceeded_only_where_chance_is_no_excuse() -> None:
    # 10 errors of 100 against 0.05: the lower bound at 95 % is 0.055
    metrics = evaluate([1] * 10 + [0] * 90 + [1] * 90 + [0] * 10, [0] * 100 + [1] * 100)
    assert lower_bound(10, 100, 0.05) > 0.05 > lower_bound(10, 100, 0.025)
    assert exceeded(metrics, Guarantee()) == ()  # two are tested at 2.5 % first
    assert exceeded(metrics, Guarantee(max_fpr=0.04, max_fnr=0.05)) == ("FPR", "FNR")
    assert exceeded(metrics, Guarantee(max_fpr=0.06, max_fnr=0.04)) == ("FNR",)
    assert exceeded(metrics, Guarantee(max_fnr=None)) == ("FPR",)
    assert exceeded(evaluate([], []), Guarantee()) == ()


@pytest.mark.parametrize("n", [1, 7, 30, 100, 1000])
def test_the_most_errors_within_a_ceiling(n: int) -> None:
    for ceiling in (0.0, 0.01, 0.05, 0.1, 0.29, 1 / 3, 0.5, 1.0):
        most = max(k for k in range(n + 1) if k / n <= ceiling)
        # half of an error more is not enough for another
        assert errors_within(ceiling, n) == errors_within((most + 0.5) / n, n) == most


def test_a_tally_counts_each_verdict_on_either_class() -> None:
    verdicts = np.array([0, 1, -1, 1], dtype=np.int8)
    assert tally(verdicts, np.array([False, False, False, True])).tolist() == [[1, 1, 1], [0, 1, 0]]
