"""The monitor: what it counts and when it alarms, however rows are cut; what it refuses changes nothing."""

import copy
import itertools
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import Guarantee, InputError, Monitor, Rule, calibrate, calibrate_labelled, certify_curve
from pac_wrap.method.monitoring.alarm import Alarm
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.streams.verdict_stream import VerdictStream
from support.examples import examples

RNG = np.random.default_rng(0)
NORMAL, ANOMALOUS = RNG.normal(size=500), RNG.normal(2.5, 1, size=500)
CERTIFICATE = calibrate(NORMAL, ANOMALOUS)
CURVE = certify_curve(NORMAL, ANOMALOUS)
CLEAR = calibrate(range(1000), range(2000, 3000))


def rows(size: int, drift: float = 0.0, seed: int = 1) -> dict[str, Any]:
    """Verdicts, labels half of which are missing, and scores of a tenth anomalies."""
    rng = np.random.default_rng(seed)
    anomalous = rng.random(size) < 0.1
    scores = rng.normal(np.where(anomalous, 2.5, drift))
    labels = np.where(rng.random(size) < 0.5, anomalous, np.nan)
    return {"verdicts": CERTIFICATE.verdicts(scores), "labels": labels, "scores": scores}


def part(batch: dict[str, Any], start: int, end: int) -> dict[str, Any]:
    return {name: values[start:end] for name, values in batch.items()}


def test_it_watches_promises_undecided_points_and_scores() -> None:
    monitor = Monitor(CERTIFICATE, CURVE, alpha=0.02)
    watches = {watch.name: watch for watch in monitor.watches}
    assert list(watches) == ["FPR", "FNR", "undecided", "scores"]
    # all of them share it
    assert [watch.alpha for watch in monitor.watches] == [0.005] * 4
    assert [round(watch.delta, 12) for watch in monitor.watches] == [0.05, 0.05, 0.1, 0.1]
    assert monitor.alarm is None
    monitor.update(**rows(2000))
    batch = rows(2000)
    labelled = batch["labels"] == 0
    assert watches["FPR"].n == 0  # what was handed out stays as it was
    fpr, fnr, undecided, scores = monitor.watches
    assert (fpr.count, fpr.n) == ((batch["verdicts"][labelled] == 1).sum(), labelled.sum())
    assert fnr.n == (batch["labels"] == 1).sum()
    assert (undecided.count, undecided.n) == ((batch["verdicts"] == -1).sum(), 2000)
    assert (scores.count, scores.n, scores.rate.high) == (0, 2000, 1.0)
    assert fpr.rate.low < fpr.rate.value < fpr.rate.high
    assert str(monitor).splitlines()[0] == "2,000 rows in 1 batch"
    assert str(monitor).endswith("no alarm")


@settings(max_examples=examples(10))
@given(st.lists(st.integers(0, 1200), max_size=8), st.sampled_from([0.0, 1.0]))
def test_how_rows_are_cut_changes_nothing(cuts: list[int], drift: float) -> None:
    batch, whole, parts = rows(1200, drift), Monitor(CERTIFICATE, CURVE), Monitor(CERTIFICATE, CURVE)
    whole.update(**batch)
    ends = [0, *sorted(cuts), 1200]
    for start, end in itertools.pairwise(ends):
        parts.update(**part(batch, start, end))
    assert parts.watches == whole.watches
    assert parts.alarms == whole.alarms
    assert parts.members[()].past == whole.members[()].past
    assert (whole.alarm is None) == (drift == 0.0)


def test_one_row_at_a_time_is_the_same_too() -> None:
    batch, whole, single = rows(300, 1.0), Monitor(CERTIFICATE, CURVE), Monitor(CERTIFICATE, CURVE)
    whole.update(**batch)
    for row in range(300):
        single.update(**part(batch, row, row + 1))
    assert (single.watches, single.alarms) == (whole.watches, whole.alarms)


@pytest.mark.parametrize("curve", [None, CURVE])
@pytest.mark.parametrize("asked", [(0.05, 0.05), (0.05, None), (None, 0.05)])
@pytest.mark.parametrize("overlap", ["abstain", "abstain_always"])
def test_the_shares_of_all_watches_are_alpha(curve: Any, asked: Any, overlap: Any) -> None:
    certificate = calibrate(NORMAL, ANOMALOUS, Guarantee(*asked), overlap=overlap)
    shares = [watch.alpha for watch in Monitor(certificate, curve, alpha=0.3).watches]
    assert len(shares) >= (curve is not None) + sum(one is not None for one in asked)
    assert sum(shares) == pytest.approx(0.3, rel=1e-12)


@settings(max_examples=examples(4))
@given(st.randoms(use_true_random=False), st.sampled_from([0.0, 1.0]))
def test_rows_that_count_together_may_come_in_any_order(random: Any, drift: float) -> None:
    batch, one, other = rows(900, drift), Monitor(CERTIFICATE, CURVE), Monitor(CERTIFICATE, CURVE)
    for start, end in ((0, 200), (200, 650), (650, 900)):
        order = list(range(start, end))
        random.shuffle(order)
        one.update(**part(batch, start, end), together=True, id=str(start))
        shuffled = {name: values[order] for name, values in batch.items()}
        other.update(**shuffled, together=True, id=str(start))
    assert other.to_json() == one.to_json()
    assert {alarm.row for alarm in one.alarms} <= {200, 650, 900}  # the ends of batches
    assert {alarm.since for alarm in one.alarms} <= {1, 201, 651}
    assert (one.alarm is None) == (drift == 0.0)


def test_batches_of_one_row_are_rows_as_they_come() -> None:
    batch, plain, together = rows(300, 1.0), Monitor(CERTIFICATE, CURVE), Monitor(CERTIFICATE, CURVE)
    plain.update(**batch)
    for row in range(300):
        together.update(**part(batch, row, row + 1), together=True)
    assert (together.watches, together.alarms) == (plain.watches, plain.alarms)
    assert plain.alarm is not None


def test_parts_of_a_batch_cannot_count_together() -> None:
    monitor = Monitor(CLEAR)
    monitor.update([0], [0], together=True)
    before = monitor.to_json()
    with pytest.raises(InputError, match="give all of them at once, without more"):
        monitor.update([0], [0], together=True, more=True)
    assert monitor.to_json() == before
    monitor.update([], [], together=True)  # an empty batch says nothing
    assert monitor.watches[0].n == 1


def test_the_past_within_a_batch_is_that_before_it() -> None:
    monitor = Monitor(CLEAR)
    monitor.update([1] * 2, [0] * 2, together=True)
    monitor.update([1] * 2 + [0], [0] * 3, together=True)
    first, _, third, fourth, fifth = monitor.watches[0].past
    assert first == 0.0
    assert third == fourth == monitor.watches[0].past[1]
    assert fifth == monitor.watches[0].log_evidence > third


def test_threads_lose_no_row() -> None:
    monitor, usual = Monitor(CLEAR), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda row: monitor.update([row % 2] * 5, [0] * 5), range(200)))
    finally:
        sys.setswitchinterval(usual)
    assert (monitor.rows, monitor.watches[0].n, monitor.watches[0].count) == (1000, 1000, 500)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_its_own_way(copied: Any) -> None:
    monitor = Monitor(CERTIFICATE, CURVE)
    monitor.update(**rows(50))
    other, before = copied(monitor), monitor.to_json()
    assert other.to_json() == before
    other.update(**rows(20))
    assert (monitor.to_json(), other.rows) == (before, 70)


def test_a_promise_that_nothing_can_contradict_is_not_watched() -> None:
    """Without labels of anomalies nothing is called normal, so no anomaly is ever missed."""
    with pytest.warns(UserWarning, match="nothing is promised about the FNR"):
        certificate = calibrate(range(1000), [])
    monitor = Monitor(certificate, alpha=0.02)
    assert [(watch.name, watch.alpha) for watch in monitor.watches] == [("FPR", 0.02)]
    assert monitor.members[()].unwatched(monitor.asked) == {"FNR": "no data can contradict it"}
    assert "not monitored: FNR, since no data can contradict it" in str(monitor)
    with pytest.warns(UserWarning, match="nothing is promised"):
        nothing = calibrate([0.0], [1.0])
    with pytest.raises(InputError, match="every point is left undecided, so nothing can be monitored"):
        Monitor(nothing)


def test_certificates_of_another_kind_are_refused_with_what_to_do() -> None:
    kinds = calibrate(range(1000), {"a": range(2000, 3000), "b": range(2500, 3500)})
    groups = calibrate_labelled([*range(100), *range(200, 300)], [0] * 100 + [1] * 100, by=["a"] * 200)
    refusals: list[tuple[Any, str]] = [
        (lambda: Monitor(kinds), "certificate must be without kinds; a monitor cannot tell kinds apart"),
        (lambda: VerdictStream(groups, []), "GroupCertificate; call its verdicts for each batch"),  # type: ignore[arg-type]
    ]
    for refused, remedy in refusals:
        with pytest.raises(InputError, match=remedy):
            refused()
    assert VerdictStream(kinds, [[0.0]]) is not None


def test_an_alarm_says_which_since_when_and_how_strong() -> None:
    monitor = Monitor(CERTIFICATE)
    assert monitor.update(**rows(5000), id="monday") is None
    alarm = monitor.update(**rows(5000, 1.5, seed=2), id="tuesday")
    assert alarm is not None
    assert alarm == monitor.alarm
    assert {one.watch for one in monitor.alarms} == {"FPR", "undecided"}
    fpr = next(one for one in monitor.alarms if one.watch == "FPR")
    assert 5000 < fpr.row < 5400
    assert 4500 < fpr.since <= fpr.row
    assert fpr.id == "tuesday"
    assert fpr.e_value >= 200.0
    assert fpr.interval is not None
    assert fpr.interval[0] > 0.05
    assert str(fpr).startswith(
        f"FPR alarm at row {fpr.row:,} in batch 'tuesday': {fpr.count} of {fpr.n} normal"
    )
    # it stays the first, whatever comes after
    before = monitor.alarms
    monitor.update(**rows(5000, 1.5, seed=3), id="wednesday")
    assert monitor.alarms == before
    assert str(fpr) in str(monitor)


def test_a_wealth_beyond_all_doubles_is_said_in_words() -> None:
    monitor = Monitor(calibrate(range(1000), range(2000, 3000)))
    monitor.update([1] * 1000, [0] * 1000)
    assert "evidence against the promise: beyond 1e308 (alarm at 200)" in str(monitor)


def test_scores_alarm_names_the_thresholds() -> None:
    monitor = Monitor(CERTIFICATE, CURVE)
    monitor.update(**rows(3000, 1.0))
    alarm = next(one for one in monitor.alarms if one.watch == "scores")
    assert alarm.interval is None
    assert alarm.between is not None
    assert alarm.between[0] < alarm.between[1]
    assert alarm.count / alarm.n > alarm.limit
    assert "scores since row" in str(alarm)


@pytest.mark.parametrize(
    "labels",
    [
        [0, None, 1, float("nan")],
        np.array([0.0, np.nan, 1.0, np.nan]),
        pd.Series([0, pd.NA, 1, pd.NA], dtype="Int64"),
        np.ma.MaskedArray([0, 0, 1, 0], mask=[False, True, False, True]),
        [False, None, True, None],
    ],
    ids=["list", "float", "pandas", "masked", "bool"],
)
def test_a_label_may_be_missing(labels: Any) -> None:
    monitor = Monitor(CLEAR)
    monitor.update([1, 1, 0, 0], labels)
    assert [(watch.count, watch.n) for watch in monitor.watches] == [(1, 1), (1, 1)]


def test_labels_may_come_late_and_count_once() -> None:
    monitor, batch = Monitor(CERTIFICATE, CURVE), rows(500)
    monitor.update(batch["verdicts"], scores=batch["scores"])
    monitor.update(**batch, late=True)
    fpr, _, undecided, scores = monitor.watches
    assert fpr.n == (batch["labels"] == 0).sum()
    assert (undecided.n, scores.n) == (500, 500)


def test_named_labels() -> None:
    monitor = Monitor(CLEAR, anomaly_label="fraud")
    monitor.update([1, 0, 0], np.array(["fine", "fraud", None]))
    assert [(watch.count, watch.n) for watch in monitor.watches] == [(1, 1), (1, 1)]


def test_a_missing_score_is_no_score() -> None:
    monitor = Monitor(CERTIFICATE, CURVE)
    monitor.update([0, -1, 0], [0, 0, 1], scores=[0.0, np.nan, 0.1])
    assert [watch.n for watch in monitor.watches] == [1, 1, 2, 2]
    assert monitor.unscored == 1
    assert str(monitor).splitlines()[0] == "3 rows in 1 batch, 1 of them without a score"


def test_rows_before_the_first_score_raise_no_alarm() -> None:
    """A detector of windows has no score before the first window is full."""
    monitor = Monitor(CERTIFICATE)
    assert monitor.update([-1] * 500, scores=[np.nan] * 500) is None
    assert str(monitor).endswith("no point was counted, so nothing is known")
    assert monitor.update([-1] * 500, scores=[0.0] * 500) is not None


def test_the_same_batch_twice_is_noticed() -> None:
    monitor = Monitor(CLEAR)
    monitor.update([0], [0], id="a")
    before = monitor.to_json()
    with pytest.raises(InputError, match="the batch 'a' was fed before, so it is not counted again"):
        monitor.update([0], [0], id="a")
    assert monitor.to_json() == before
    for number in range(1000):  # so many ids are kept, and no more
        monitor.update([0], [0], id=str(number))
    monitor.update([0], [0], id="a")
    with pytest.raises(InputError, match="fed before"):
        monitor.update([0], [0], id="999")


def test_the_late_labels_of_a_batch_come_once_under_its_name() -> None:
    monitor = Monitor(CLEAR)
    monitor.update([0], id="a")
    monitor.update([0], [0], id="a", late=True)
    with pytest.raises(InputError, match="the batch 'a' was fed before"):
        monitor.update([0], [0], id="a", late=True)
    assert monitor.watches[0].n == 1


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ({"verdicts": [0, 2]}, "verdicts must be a list of 1, 0 and -1"),
        ({"verdicts": [0, 1], "labels": [0]}, "verdicts and labels must have the same length, got 2 and 1"),
        ({"verdicts": [0, 1], "labels": [0, 3]}, "labels must be 0 .normal. or 1"),
        ({"verdicts": [0, 1], "scores": [0.1]}, "verdicts and scores must have the same length"),
        ({"verdicts": [0], "scores": ["a"]}, "scores must be real numbers"),
        ({"verdicts": [0], "id": ""}, "id must be a text of 1 to 200 characters, got ''"),
        ({"verdicts": [0], "id": 7}, "id must be a text"),
    ],
)
def test_what_is_refused_leaves_all_as_it_was(batch: dict[str, Any], reason: str) -> None:
    monitor = Monitor(CERTIFICATE, CURVE)
    monitor.update(**rows(100))
    before = monitor.to_json()
    with pytest.raises(InputError, match=reason):
        monitor.update(**batch)
    assert monitor.to_json() == before


def test_what_promises_nothing_cannot_be_watched() -> None:
    with pytest.raises(InputError, match="certificate must be a Certificate, got Rule"):
        Monitor(Rule(0.0, 1.0))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="curve must be a Curve"):
        Monitor(CLEAR, curve=CLEAR)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        Monitor(CLEAR, alpha=0.0)
    nothing = calibrate([1.0] * 100, [1.0] * 100, overlap="raise")
    with pytest.raises(InputError, match="no threshold is certified"):
        Monitor(nothing)


def test_what_has_no_bound_is_not_watched() -> None:
    """One threshold decides everything; looks count nothing; one promise alone gets all of alpha."""
    names = [[watch.name for watch in Monitor(one).watches] for one in (CLEAR,)]
    looked = calibrate(NORMAL, ANOMALOUS, overlap=Looks(20, 1000))
    names.append([watch.name for watch in Monitor(looked).watches])
    assert names == [["FPR", "FNR"], ["FPR", "FNR"]]
    single = calibrate(NORMAL, ANOMALOUS, Guarantee(max_fpr=0.05, max_fnr=None))
    assert [(watch.name, watch.alpha) for watch in Monitor(single).watches] == [("FPR", 0.01)]


def test_two_thresholds_though_separated_pay_all_deltas() -> None:
    always = calibrate(range(1000), range(2000, 3000), overlap="abstain_always")
    undecided = Monitor(always).watches[-1]
    assert (undecided.name, undecided.ceiling, round(undecided.delta, 12)) == ("undecided", 0.05, 0.2)


def test_a_curve_that_leaves_nothing_between_adds_no_watch() -> None:
    monitor = Monitor(CLEAR, certify_curve([1.0, 2.0], [1.0, 2.0]))
    monitor.update([0], scores=[1.0])
    assert [watch.name for watch in monitor.watches] == ["FPR", "FNR"]


def test_the_past_is_thinned_and_never_grows() -> None:
    monitor, batch = Monitor(CERTIFICATE, CURVE), rows(3000)
    for start in range(0, 3000, 7):
        monitor.update(**part(batch, start, start + 7))
        assert len(monitor.members[()].past) == len(monitor.watches[0].past) <= 256
    assert monitor.members[()].past[:2] == (16, 32)
    size = len(monitor.to_json())
    for seed in range(5):
        monitor.update(**rows(3000, seed=seed))
    assert len(monitor.to_json()) < 1.3 * size < 60_000


def test_an_alarm_is_one_whole_sentence() -> None:
    alarm = Alarm("FPR", 1612, 1033, 5.4, count=61, n=580, limit=0.05, alpha=0.005, delta=0.05, level=0.0025)
    assert str(alarm) == (
        "FPR alarm at row 1,612: 61 of 580 normal points since row 1,033 are false alarms, 0.105 where 0.05"
        " is allowed (e-value 221)"
    )
    scores = replace(alarm, watch="scores", between=(0.25, 1.5), id="a", log_evidence=800.0)
    assert str(scores) == (
        "scores alarm at row 1,612 in batch 'a': 61 of 580 scores since row 1,033 lie from 0.25 to 1.5, 0.105"
        " where 0.05 is allowed (e-value beyond 1e308)"
    )
    assert (scores.interval, scores.e_value) == (None, np.inf)


def test_more_of_the_last_of_several_batches() -> None:
    monitor = Monitor(CLEAR)
    monitor.update([0], [0], id="a")
    monitor.update([0], [0], id="b")
    monitor.update([0], [0], id="b", more=True)
    assert (monitor.rows, str(monitor).splitlines()[0]) == (3, "3 rows in 2 batches")
    with pytest.raises(InputError, match="more is for the batch that was fed last, which is not 'a'"):
        monitor.update([0], [0], id="a", more=True)


def test_labels_that_pandas_has_as_missing_are_none() -> None:
    monitor = Monitor(calibrate(range(200), range(300, 500)))
    monitor.update([0, 0, 1], pd.array([0, None, 1], dtype="Int64").astype(object))
    assert {watch.name: watch.n for watch in monitor.members[()].watches if watch.name in ("FPR", "FNR")} == {
        "FPR": 1,
        "FNR": 1,
    }
