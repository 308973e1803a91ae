"""Promises about traffic are monitored: alarms without a review, false alarms by whole reviewed batches."""

from collections.abc import Iterator
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, InputError, Monitor, Reviews, calibrate, recalibrate
from pac_wrap.method.monitoring.alarm import Watch
from pac_wrap.method.traffic.calibrate import calibrate_traffic
from pac_wrap.report.account import account_of
from pac_wrap.report.monitor import monitor_metrics
from pac_wrap.report.render import html, markdown
from statistical.claims import assert_at_most, assert_power

RNG = np.random.default_rng(0)
ANOMALY = RNG.random(20_000) < 0.02
SCORES = RNG.normal(3.0 * ANOMALY)
REVIEWS = np.where(SCORES > 1.5, ANOMALY, nan)
ALL = Guarantee(max_alarms=0.03, max_false_alarms=0.01, min_precision=0.6)


def certificate(asked: Guarantee = ALL, **more: Any) -> Certificate:
    made: Certificate = calibrate_traffic(SCORES, REVIEWS, asked, **more)
    return made


CERTIFICATE = certificate()
NAMES = ["alarms", "false alarms", "wrong alarms"]


def batch(size: int = 2000, seed: int = 1, alarms: float = 0.02, wrong: float = 0.3) -> dict[str, Any]:
    """Return the verdicts on traffic, and the reviews of its alarms and of nothing else."""
    rng = np.random.default_rng(seed)
    verdicts = (rng.random(size) < alarms).astype(int)
    return {"verdicts": verdicts, "reviews": np.where(verdicts == 1, rng.random(size) >= wrong, nan)}


def counts(monitor: Monitor) -> dict[str, tuple[int, int]]:
    return {watch.name: (watch.count, watch.n) for watch in monitor.watches}


def test_each_promise_is_a_share_with_its_own_limit() -> None:
    monitor = Monitor(CERTIFICATE, alpha=0.03)
    assert [(watch.name, watch.ceiling, watch.alpha) for watch in monitor.watches] == [
        ("alarms", 0.03, 0.01),
        ("false alarms", 0.01, 0.01),
        ("wrong alarms", 0.4, 0.01),
    ]
    assert {watch.delta for watch in monitor.watches} == {0.05}
    rows = batch()
    monitor.update(**rows)
    alarms, wrong = int(rows["verdicts"].sum()), int((rows["reviews"] == 0).sum())
    assert counts(monitor) == {
        "alarms": (alarms, 2000),
        "false alarms": (wrong, 2000),
        "wrong alarms": (wrong, alarms),
    }


LIMITS = {
    "the share of anomalies": (
        Guarantee(max_fpr=0.01, max_fnr=None, reviews=Reviews(max_anomalies=0.1)),
        0.009,
    ),
    "mistaken reviewers": (Guarantee(max_false_alarms=0.01, reviews=Reviews(mistaken=0.2)), 0.01),
    "the lower of two": (
        Guarantee(max_false_alarms=0.0095, max_fpr=0.01, reviews=Reviews(max_anomalies=0.1)),
        0.009,
    ),
    "the lower, first": (
        Guarantee(max_false_alarms=0.008, max_fpr=0.01, reviews=Reviews(max_anomalies=0.1)),
        0.008,
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_false_alarms_are_monitored_among_all_points(name: str) -> None:
    asked, limit = LIMITS[name]
    (watch,) = Monitor(certificate(asked)).watches
    assert (watch.name, watch.ceiling) == ("false alarms", limit)


def test_the_evidence_is_that_of_labelled_points_with_as_many_errors() -> None:
    """One arithmetic for every share."""
    labelled = Monitor(calibrate(range(1000), range(2000, 3000), Guarantee(0.01, None)), alpha=0.01)
    traffic = Monitor(certificate(Guarantee(max_false_alarms=0.01)), alpha=0.01)
    for seed in range(20):
        rows = batch(500, seed, alarms=0.05)
        wrong = rows["reviews"] == 0
        traffic.update(**rows)
        labelled.update(wrong.astype(int), np.zeros(500), together=True)
    (one,), (other,) = traffic.watches, labelled.watches[:1]
    assert isinstance(one, Watch)
    assert replace(one, name="FPR", past=other.past) == other
    assert traffic.alarm is not None
    assert labelled.alarm is not None
    assert (traffic.alarm.row, traffic.alarm.since) == (labelled.alarm.row, labelled.alarm.since)


def test_the_order_of_rows_in_a_batch_changes_nothing() -> None:
    """Nor does what is said of points without an alarm."""
    one, other = Monitor(CERTIFICATE), Monitor(CERTIFICATE)
    for seed in range(8):
        rows = batch(700, seed)
        one.update(**rows, id=f"day {seed}")
        order = np.argsort(-rows["verdicts"], kind="stable")
        cleared = np.where(rows["verdicts"] == 0, seed % 2, rows["reviews"])
        other.update(rows["verdicts"][order], reviews=cleared[order], id=f"day {seed}")
        assert one.to_json() == other.to_json()


def test_a_batch_waits_for_its_reviews() -> None:
    """It may be fed at once for its alarms, and once more when all of them are reviewed."""
    monitor, whole, rows = Monitor(CERTIFICATE), Monitor(CERTIFICATE), batch()
    whole.update(**rows)
    monitor.update(rows["verdicts"], id="monday")
    alarms = counts(monitor)["alarms"]
    assert alarms == counts(whole)["alarms"]
    assert counts(monitor) == {"alarms": alarms, "false alarms": (0, 0), "wrong alarms": (0, 0)}
    some = rows["reviews"].copy()
    places = np.flatnonzero(rows["verdicts"] == 1)
    some[places[1:3]] = nan
    before = monitor.to_json()
    for late in (True, False):
        with pytest.raises(
            InputError, match=f"got 2 alarms without a review, .* position {places[1]}; leave"
        ):
            monitor.update(rows["verdicts"], reviews=some, id="tuesday", late=late)
    assert monitor.to_json() == before
    monitor.update(**rows, id="monday", late=True)
    assert counts(monitor) == counts(whole)
    assert [(one.cells, one.gains) for one in monitor.watches] == [
        (one.cells, one.gains) for one in whole.watches
    ]
    with pytest.raises(InputError, match="the batch 'monday' was fed before"):
        monitor.update(**rows, id="monday", late=True)


def test_a_batch_without_an_alarm_counts_and_needs_no_review() -> None:
    monitor = Monitor(CERTIFICATE)
    monitor.update(np.zeros(50), reviews=np.full(50, nan))
    assert counts(monitor) == {"alarms": (0, 50), "false alarms": (0, 50), "wrong alarms": (0, 0)}


def test_points_without_a_score_come_too_and_raise_no_alarm() -> None:
    monitor = Monitor(CERTIFICATE)
    monitor.update([1, 0, -1], reviews=[0, nan, nan], scores=[9.0, 0.0, nan])
    assert counts(monitor) == {"alarms": (1, 3), "false alarms": (1, 3), "wrong alarms": (1, 1)}
    assert monitor.unscored == 1
    assert "Not counted" not in markdown(account_of(monitor))
    assert "not monitored" not in str(monitor)


def test_an_alarm_says_what_there_is_too_much_of(tmp_path: Path) -> None:
    monitor = Monitor(CERTIFICATE)
    for day in range(12):
        monitor.update(**batch(1000, day, alarms=0.1, wrong=0.8), id=f"day {day}")
    told = {one.watch: str(one) for one in monitor.alarms}
    assert sorted(told) == NAMES
    assert told["false alarms"].startswith("too many false alarms at row 1,000 in batch 'day 0': ")
    assert "of 1,000 points since row 1 are false alarms" in told["false alarms"]
    assert "points since row 1 raise an alarm" in told["alarms"]
    assert "alarms since row 1 are wrong, 0.8" in told["wrong alarms"]
    page = markdown(account_of(monitor))
    assert "A batch counts once all its alarms are reviewed" in page
    assert "False alarms among all points" in html(account_of(monitor))
    assert 'watch="wrong alarms"' in monitor_metrics(monitor)
    monitor.save(tmp_path / "m.json")
    assert Monitor(CERTIFICATE).load(tmp_path / "m.json").to_json() == monitor.to_json()


def audited() -> Certificate:
    drawn = np.random.default_rng(4).random(SCORES.size) < 0.3
    reviews = np.where((SCORES > 1.5) | drawn, ANOMALY, nan)
    asked = Guarantee(max_alarms=0.05, max_fnr=0.2, reviews=Reviews(audits=0.3))
    return calibrate_traffic(SCORES, reviews, asked, audits=drawn)


def test_what_reviews_of_alarms_cannot_show_is_not_monitored() -> None:
    coins = Monitor(certificate(Guarantee(max_alarms=0.03, max_false_alarms=0.01, reviews=Reviews(rate=0.5))))
    assert [watch.name for watch in coins.watches] == ["alarms"]
    assert "not monitored: false alarms, since coins leave alarms without a review" in str(coins)
    missed = Monitor(audited())
    assert [watch.name for watch in missed.watches] == ["alarms"]
    reason = "not monitored: FNR, since reviews of alarms show no missed anomaly"
    assert reason in str(missed)
    assert f"N{reason[1:]}" in markdown(account_of(missed))
    assert account_of(missed)["unwatched"] == ("FNR",)
    with pytest.raises(InputError, match="nothing can be monitored: coins leave alarms without a review"):
        Monitor(certificate(Guarantee(max_false_alarms=0.01, reviews=Reviews(rate=0.5))))
    with (
        pytest.warns(UserWarning, match="Nothing is promised"),
        pytest.raises(InputError, match="nothing can be monitored: nothing is certified"),
    ):
        Monitor(certificate(Guarantee(max_false_alarms=1e-6)))


def test_labels_and_reviews_are_not_the_same() -> None:
    with pytest.raises(InputError, match="reviews are for a certificate of traffic"):
        Monitor(CERTIFICATE).update([1], [1])
    with pytest.raises(InputError, match="reviews are for a certificate of traffic"):
        Monitor(calibrate(range(100), range(200, 300))).update([1], reviews=[1])
    with pytest.raises(InputError, match="reviews must be 1"):
        Monitor(CERTIFICATE).update([1], reviews=[2])
    with pytest.raises(InputError, match="reviews"):
        Monitor(CERTIFICATE).update([1, 0], reviews=[1])


def test_each_group_of_traffic_is_monitored_by_itself() -> None:
    by = np.array(["a", "b"])[(np.arange(SCORES.size) % 3 == 0).astype(int)]
    table = calibrate_traffic(SCORES, REVIEWS, Guarantee(max_false_alarms=0.01), by=by)
    monitor, rows = Monitor(table, alpha=0.02), batch()
    groups = np.where(np.arange(2000) % 4 == 0, "a", "b")
    monitor.update(**rows, groups=groups)
    for name in "ab":
        own = groups == name
        alone = Monitor(table.certificates[name], alpha=0.01)
        alone.update(**{key: values[own] for key, values in rows.items()})
        found = monitor.members[(name,)]
        assert replace(alone.members[()], place=found.place) == found


@pytest.mark.parametrize("ledger", [True, False])
def test_new_traffic_calibrates_again(ledger: bool, tmp_path: Path) -> None:
    """With its share of delta, and a lineage that the file keeps."""
    following = recalibrate(CERTIFICATE, SCORES, REVIEWS, last=15_000, ledger=ledger)
    assert following.lineage is not None
    assert following.lineage.number == 1
    assert following.guarantee.delta_fpr == pytest.approx(0.05 / 3 if ledger else 0.05)
    assert following.traffic is not None
    assert following.traffic.points == 15_000
    following.save(tmp_path / "next.json")
    assert Certificate.load(tmp_path / "next.json") == following
    third = recalibrate(following, SCORES, REVIEWS, ledger=ledger)
    assert third.guarantee.delta_fpr == pytest.approx(0.05 / 6 if ledger else 0.05)
    with pytest.raises(InputError, match="without max_fnr of traffic; calibrate the new points as the old"):
        recalibrate(audited(), SCORES, REVIEWS)


def weeks(runs: int, seed: int, alarms: float, wrong: float) -> Iterator[Monitor]:
    """Yield monitors after 10 weeks of 2,000 points, with the alarms of a week first."""
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        monitor = Monitor(CERTIFICATE, alpha=1 / 200)
        for _ in range(10):
            count = rng.binomial(2000, alarms)
            verdicts = np.repeat([1, 0], [count, 2000 - count])
            monitor.update(verdicts, reviews=np.where(verdicts, rng.random(2000) >= wrong, nan))
        yield monitor


def test_at_its_ceilings_traffic_raises_few_alarms_and_above_them_it_does() -> None:
    """All rates at their ceilings, alpha 1/200: false-alarm rate 1e-6, and power against 0.3.

    Twice a ceiling is noticed within 20,000 points in each of eight seeded runs.
    """
    # a third of the alarms is wrong, or as many as precision allows, and then there are fewer alarms
    hits = sum(one.alarm is not None for one in weeks(25, 0, 0.03, 1 / 3))
    hits += sum(one.alarm is not None for one in weeks(25, 1, 0.025, 0.4))
    assert_at_most(hits, 50, 1 / 200)
    assert_power(50, 1 / 200, 0.3, at_most=True)
    doubled = list(weeks(8, 2, 0.06, 1 / 3))
    for name in ("alarms", "false alarms"):
        assert all(name in {alarm.watch for alarm in one.alarms} for one in doubled)
    worse = list(weeks(8, 3, 0.03, 0.8))
    assert all("wrong alarms" in {alarm.watch for alarm in one.alarms} for one in worse)
