"""Monitoring units: evidence against a product by hand, events and days, false alarms, and power."""

from math import log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from pac_wrap import (
    Certificate,
    Day,
    Event,
    Guarantee,
    InputError,
    Monitor,
    calibrate,
    calibrate_labelled,
    certify_curve,
)
from pac_wrap.method.monitoring.bets import SHARES_OF_UNITS, Bets, mean_sequence
from pac_wrap.report.account import account_of
from pac_wrap.report.monitor import monitor_metrics

CEILING = 0.05
PROMISE = Guarantee(CEILING, CEILING, 0.05, 0.05)
MACHINES, POINTS = 300, 20


def scores_at(rate: float, units: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return scores of units, a row each, of which this share is 5; its intraclass correlation is 0.2."""
    bad = random.beta(4 * rate, 4 * (1 - rate), size=(units, 1))
    return np.where(random.random((units, POINTS)) < bad, 5.0, random.random((units, POINTS)))


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    random = np.random.default_rng(1)
    normal, anomalous = scores_at(0.01, MACHINES, random), random.uniform(1.5, 5.5, (MACHINES, POINTS))
    scores, labels = np.append(normal, anomalous), np.repeat([0, 1], normal.size)
    return calibrate_labelled(scores, labels, PROMISE, units=np.repeat(np.arange(2 * MACHINES), POINTS))


def fed(monitor: Monitor, scores: NDArray[np.float64], **more: Any) -> Monitor:
    """Feed a batch of units of normal points."""
    assert monitor.in_units is not None
    verdicts, units = (
        monitor.in_units.verdicts(scores.ravel()),
        np.repeat(monitor.rows + np.arange(len(scores)), POINTS),
    )
    monitor.update(verdicts, np.zeros(verdicts.size), units=units, **more)
    return monitor


def test_the_evidence_is_that_of_shares_rounded_down(certificate: Certificate) -> None:
    # before the second start, the first has half of the stake, and the rest is not placed yet
    scores = scores_at(0.2, 20, np.random.default_rng(2))
    watch = fed(Monitor(certificate), scores).watches[0]
    assert watch.units == "units"
    assert watch.n == 20
    grid = np.array(SHARES_OF_UNITS)
    shares = (scores == 5.0).mean(axis=1)
    floors = grid[[np.flatnonzero(grid <= share)[-1] for share in shares]]
    odds = [CEILING / (1 - CEILING) * (1 + raised) for raised in _raised()]
    paths = []
    for rate in (one / (1 + one) for one in odds):
        factors = floors * rate / CEILING + (1 - floors) * (1 - rate) / (1 - CEILING)  # eq. (154)
        paths.append(factors.prod())
    assert watch.log_evidence == pytest.approx(log(0.5 * np.mean(paths) + 0.5), abs=1e-9)
    assert watch.rate.value == pytest.approx(floors.mean())
    assert watch.rate.low < floors.mean() <= shares.mean() < watch.rate.high
    assert watch.count == int((floors > CEILING).sum())


def _raised() -> NDArray[np.float64]:
    """Return by how much each bet raises the odds of the ceiling, from the loss of a point without error."""
    lost = Bets.above(CEILING).logs[:, 0]
    return np.asarray((np.exp(-lost) - 1) / CEILING)


def test_shares_of_zero_and_one_bet_like_points() -> None:
    of_points, of_units = Bets.above(CEILING), Bets.above(CEILING, SHARES_OF_UNITS)
    assert np.array_equal(of_points.logs, of_units.logs[:, [0, -1]])
    assert np.array_equal(of_points.fates, of_units.fates[:, [0, -1]])
    # eq. (154): a share at its ceiling changes no bet
    logs = Bets.above(SHARES_OF_UNITS[100], SHARES_OF_UNITS).logs
    assert np.abs(logs[:, 100]).max() < 1e-12
    assert (np.diff(logs, axis=1) > 0).all()


def test_a_unit_counts_once_and_units_come_in_the_order_of_their_first_row(certificate: Certificate) -> None:
    scores = scores_at(0.1, 60, np.random.default_rng(3))
    one = fed(Monitor(certificate), scores)
    random = np.random.default_rng(4)
    # the rows of a batch mixed, but for the first of each unit
    first = np.arange(60) * POINTS
    rest = random.permutation(np.setdiff1d(np.arange(scores.size), first))
    order = np.append(first, rest)
    verdicts, units = certificate.verdicts(scores.ravel()[order]), np.repeat(np.arange(60), POINTS)[order]
    other = Monitor(certificate)
    other.update(verdicts, np.zeros(verdicts.size), units=[f"unit {99 - unit}" for unit in units.tolist()])
    assert str(one) == str(other)
    assert one.rows == 60
    two = fed(fed(Monitor(certificate), scores[:25]), scores[25:])
    assert two.watches[0].log_evidence == pytest.approx(one.watches[0].log_evidence, abs=1e-12)
    again = Monitor(certificate).resumed(one.to_json())
    assert str(again) == str(one)
    assert fed(again, scores).to_json() == fed(one, scores).to_json()


def test_an_alarm_counts_units(certificate: Certificate) -> None:
    monitor = fed(Monitor(certificate), scores_at(0.02, 200, np.random.default_rng(5)))
    assert not monitor.alarms
    fed(monitor, scores_at(0.15, 80, np.random.default_rng(6)), id="june")
    alarm = monitor.alarm
    assert alarm is not None
    assert alarm.units == "units"
    assert alarm.interval is None
    assert 200 < alarm.row <= 280
    assert 150 < alarm.since <= 240
    assert str(alarm).startswith(
        f"FPR alarm at unit {alarm.row} in batch 'june': {alarm.count} of {alarm.n} units since"
    )
    assert "have more than 0.05 of their normal points wrong, which is allowed on average only" in str(alarm)
    page = account_of(monitor)
    assert page.subtitle == "280 units"
    assert f'rate_low{{watch="FPR"}} {monitor.watches[0].rate.low!r}' in monitor_metrics(monitor)


def test_days_and_events_are_zeros_and_ones() -> None:
    random = np.random.default_rng(7)
    labels = np.tile([0] * 15 + [1] * 5, 200)
    units = np.repeat(np.arange(200), 20)
    scores = random.normal(4.0 * labels)
    made = calibrate_labelled(
        scores, labels, Guarantee(0.1, 0.1), units=units, per=[Day(more_than=1), Event(alarms=2, first=4)]
    )
    fresh = random.normal(2.0 * labels)
    verdicts = made.verdicts(fresh)
    monitor = Monitor(made)
    monitor.update(verdicts, labels, units=units)
    days = (verdicts.reshape(200, 20)[:, :15] == 1).sum(axis=1) > 1
    # an event is missed if fewer than 2 of its first 4 points are at least undecided
    events = (verdicts.reshape(200, 20)[:, 15:19] == 0).sum(axis=1) > 2
    assert [(watch.units, watch.count, watch.n) for watch in monitor.watches] == [
        ("days", days.sum(), 200),
        ("events", events.sum(), 200),
    ]
    assert monitor.alarm is not None
    assert "events since unit" in str(monitor.alarm)
    assert "are missed" in str(monitor.alarm)
    measured = made.evaluate(
        fresh[labels == 0], fresh[labels == 1], units=(units[labels == 0], units[labels == 1])
    )
    assert [one.rate.count for one in measured] == [days.sum(), events.sum()]


def test_false_alarms_stay_below_alpha_and_a_doubled_rate_is_found(certificate: Certificate) -> None:
    """False alarm: 1e-6, by Theorem 24; power: twice the ceiling is found in 38 of 40."""
    random, alpha, runs = np.random.default_rng(8), 0.2, 200
    # the curve of false alarms is that of the FPR alone: half of alpha
    alarms = sum(
        fed(Monitor(certificate, alpha=alpha), scores_at(CEILING, 150, random)).alarm is not None
        for _ in range(runs)
    )
    assert alarms <= binom.isf(1e-6, runs, alpha / 2)
    found = sum(
        fed(Monitor(certificate, alpha=alpha), scores_at(2 * CEILING, 250, random)).alarm is not None
        for _ in range(40)
    )
    assert found >= 38


def test_the_bounds_of_the_mean_hold_at_all_times() -> None:
    """False alarm: 1e-6, as each bound of (155) is ever wrong with chance at most alpha."""
    random, alpha, runs = np.random.default_rng(10), 0.1, 200
    shares, true, wrong = np.array(SHARES_OF_UNITS), 0.1, np.zeros(2, dtype=int)
    for _ in range(runs):
        found = random.binomial(POINTS, random.beta(0.4, 3.6, 120)) / POINTS
        cells = np.cumsum(
            np.eye(257, dtype=np.int64)[np.searchsorted(shares, found, side="right") - 1], axis=0
        )
        ends = np.array([mean_sequence(cells[n], alpha)[:2] for n in range(4, 120, 5)])
        wrong += (ends[:, 0] > true).any(), (ends[:, 1] < true).any()
    assert wrong.max() <= binom.isf(1e-6, runs, alpha)
    # with more units the interval narrows
    assert ends[-1, 1] - ends[-1, 0] < 0.2 < ends[0, 1] - ends[0, 0]
    assert mean_sequence(np.zeros(257, dtype=np.int64), alpha)[:2] == (0.0, 1.0)
    raised = 2.0 ** np.arange(-3.0, 17.0)
    for n in (1, 40, 1000):  # the same bounds by search for each rate
        cells = np.zeros(257, dtype=np.int64)
        cells[128] = n
        low, high, mean = mean_sequence(cells, alpha)
        assert mean == shares[128]
        assert low <= mean <= high

        def evidence(rate: float, share: float, n: int = n) -> float:
            return float(np.mean(((1 + raised * share) / (1 + raised * rate)) ** n))

        if low > 0:
            assert evidence(low * 0.999, mean) > 1 / alpha > evidence(low * 1.001, mean)
        if high < 1:
            above = 1 - shares[129]
            assert evidence((1 - high) * 0.999, above) > 1 / alpha > evidence((1 - high) * 1.001, above)


def test_what_does_not_fit_is_refused(certificate: Certificate) -> None:
    monitor = Monitor(certificate)
    with pytest.raises(InputError, match="was made with units; pass the unit of each row"):
        monitor.update([0, 1], [0, 0])
    plain = calibrate(range(100), range(1000, 1100))
    with pytest.raises(InputError, match="was made without units; remove units"):
        Monitor(plain).update([0], [0], units=[1])
    with pytest.raises(InputError, match="curve takes points for independent"):
        Monitor(certificate, certify_curve(range(100), range(1000, 1100)))
    with pytest.raises(InputError, match="units must be known"):
        monitor.update([0, 1], [0, 0], units=[1, None])
    with pytest.raises(InputError, match="same length"):
        monitor.update([0, 1], [0, 0], units=[1])
    scores = np.append(np.random.default_rng(9).random(90), np.arange(90) + 2.0)
    single = calibrate_labelled(scores, np.repeat([0, 1], 90), PROMISE, units=np.arange(180))
    with pytest.raises(InputError, match="one normal point each, got a unit with 2"):
        Monitor(single).update([0, 0], [0, 0], units=[1, 1])
    plain_normal = calibrate_labelled(
        scores, np.repeat([0, 1], 90), Guarantee(None, 0.05), units=np.arange(180)
    )
    unasked = Monitor(plain_normal)  # what is not promised may look as it likes
    unasked.update([0, 0, 1], [0, 0, 1], units=[1, 1, 2])
    assert [(watch.name, watch.n) for watch in unasked.watches] == [("FNR", 1)]
    with pytest.raises(InputError, match="unit 2 was counted before, so it is no new draw"):
        unasked.update([1], [1], units=[2])
    with pytest.raises(InputError, match="was counted before"):
        Monitor(plain_normal).resumed(unasked.to_json()).update([1], [1], units=["2"])
    unasked.update([1], None, units=[3])
    unasked.update([1], [1], units=[3], late=True)
    assert unasked.points == 2
    watched = Monitor(single)
    watched.update([0, 1, 0], [0, 0, 1], units=[1, 2, 3])
    assert [(watch.units, watch.count, watch.n) for watch in watched.watches] == [(None, 1, 2), (None, 1, 1)]
    assert monitor.rows == 0
    assert "no point was counted" in str(monitor)
