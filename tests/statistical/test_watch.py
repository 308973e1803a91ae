"""Watches at their limits raise few false alarms, all together; real patients are watched as they change."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from pac_wrap import Certificate, Curve, Guarantee, Monitor, calibrate, certify_curve
from pac_wrap.method.monitoring.alarm import Alarm, hull_of
from pac_wrap_paper.data import load
from statistical.claims import assert_at_most, assert_power

pytestmark = pytest.mark.slow
RNG = np.random.default_rng(0)
ORDERS = 20


def test_all_watches_at_their_limits_share_one_alpha() -> None:
    """FPR, FNR and undecided points at .05, and scores at the limit of every pair of thresholds; alpha .5.

    With an alpha of its own for each watch without labels, .70 raise an alarm within 2,000 rows.
    """
    runs, rows, classes = 120, 2000, (range(1000), range(2000, 3000))
    certificate, curve = calibrate(*classes, overlap="abstain_always"), certify_curve(*classes)
    hull = hull_of(curve)
    assert hull is not None
    edges = hull.edges[sorted({low for low, _, _, _ in hull.pairs})]
    at_least, rng, hits = np.array([curve.fpr(edge) for edge in edges]), np.random.default_rng(0), 0
    for _ in range(runs):
        monitor, labels, fates = (
            Monitor(certificate, curve, alpha=0.5),
            rng.random(rows) < 0.5,
            rng.random(rows),
        )
        verdicts = np.where(fates < 0.05, ~labels, np.where(fates < 0.1, -1, labels)).astype(int)
        scores = np.r_[-1.0, edges][(rng.random((rows, 1)) < at_least).sum(axis=1)]
        hits += monitor.update(verdicts, labels.astype(int), scores=scores) is not None
    assert [watch.ceiling for watch in monitor.watches] == [0.05, 0.05, 0.05, None]
    assert_at_most(hits, runs, 0.5, 1e-3)
    assert_power(runs, 0.5, 0.7, at_most=True, false_alarm=1e-3, power=0.9)


def labelled_days(days: int, rate: float, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """The verdicts on 1,000 normal points a day, whose labels arrive alarms first."""
    return [np.sort(rng.random(1000) < rate)[::-1].astype(np.int64) for _ in range(days)]


def test_batches_whose_rows_count_together_may_come_in_any_order() -> None:
    """At a true FPR of .008 under a ceiling of .05, rows that come alarms first raise an alarm every time.

    Together they raise few at the ceiling itself, and all notice .10 within fifteen days.
    """
    certificate, rng, runs = calibrate(range(1000), range(2000, 3000)), np.random.default_rng(0), 40

    def alarmed(rate: float, runs: int, together: bool = True) -> int:
        hits = 0
        for _ in range(runs):
            monitor = Monitor(certificate, alpha=0.1)
            for verdicts in labelled_days(15, rate, rng):
                monitor.update(verdicts, np.zeros(verdicts.size), together=together)
            hits += monitor.alarm is not None
        return hits

    assert alarmed(0.008, 5, together=False) == 5  # the assumption is needed
    assert_at_most(alarmed(0.05, runs), runs, 0.1)
    assert_power(runs, 0.1, 0.65, at_most=True)
    assert alarmed(0.1, 5) == 5


class Watched(NamedTuple):
    """A classifier of thyroid patients, its certificate and curve, and patients that nobody has seen yet."""

    model: Any
    certificate: Certificate
    curve: Curve
    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    spread: NDArray[np.float64]


@pytest.fixture(scope="module")
def thyroid() -> Watched:
    folder = os.environ.get("PAC_WRAP_DATA")
    if folder is None or not (Path(folder) / "annthyroid_21feat_normalised.csv").exists():
        pytest.skip("PAC_WRAP_DATA does not point at a folder with annthyroid_21feat_normalised.csv")
    data = load("thyroid")
    rows, labels = np.asarray(data.X, dtype=float), np.asarray(data.y).astype(np.int64)
    trained, calibrated, rest = np.split(RNG.permutation(labels.size), [labels.size // 4, labels.size // 2])
    model = HistGradientBoostingClassifier(random_state=0).fit(rows[trained], labels[trained])
    scores, known = model.decision_function(rows[calibrated]), labels[calibrated]
    classes = scores[known == 0], scores[known == 1]
    certificate = calibrate(*classes, Guarantee(max_fpr=0.01, max_fnr=0.1))
    spread = rows[trained].std(axis=0)
    return Watched(model, certificate, certify_curve(*classes), rows[rest], labels[rest], spread)


def alarms(watched: Watched, rows: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, Alarm]:
    """The first alarm of each watch."""
    return alarms_of(watched, watched.model.decision_function(rows), labels)


def alarms_of(watched: Watched, scores: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, Alarm]:
    monitor = Monitor(watched.certificate, watched.curve)
    monitor.update(watched.certificate.verdicts(scores), labels, scores=scores)
    return {alarm.watch: alarm for alarm in monitor.alarms}


def test_patients_as_they_were_raise_no_alarm(thyroid: Watched) -> None:
    """20 orders of 3,600 patients; alpha is .01."""
    hits, scores = 0, thyroid.model.decision_function(thyroid.rows)
    for _ in range(ORDERS):
        order = RNG.permutation(thyroid.labels.size)
        hits += bool(alarms_of(thyroid, scores[order], thyroid.labels[order]))
    assert_at_most(hits, ORDERS, 0.01)
    assert_power(ORDERS, 0.01, 0.7, at_most=True)


@pytest.mark.parametrize(("noise", "soon"), [(0.5, 100), (0.2, 400)])
def test_measurements_that_become_noisy_are_noticed_and_dated(
    thyroid: Watched, noise: float, soon: int
) -> None:
    """From the middle on, noise of a known share of the spread of each measurement is added."""
    half = thyroid.labels.size // 2
    for _ in range(3):
        order = RNG.permutation(thyroid.labels.size)
        rows = thyroid.rows[order]
        rows[half:] += RNG.normal(size=rows[half:].shape) * noise * thyroid.spread
        found = alarms(thyroid, rows, thyroid.labels[order])["FPR"]
        assert half < found.row < half + soon
        assert abs(found.since - half) < 150
        assert found.interval is not None
        assert found.interval[0] > 0.01


def test_a_shifted_measurement_is_noticed_without_a_label(thyroid: Watched) -> None:
    """The most telling measurement rises by one standard deviation."""
    half = thyroid.labels.size // 2
    together = np.column_stack([thyroid.rows, thyroid.labels])
    with np.errstate(invalid="ignore", divide="ignore"):
        telling = int(np.nanargmax(np.abs(np.corrcoef(together.T)[-1, :-1])))
    for _ in range(3):
        order = RNG.permutation(thyroid.labels.size)
        rows = thyroid.rows[order]
        rows[half:, telling] += thyroid.spread[telling]
        found = alarms(thyroid, rows, thyroid.labels[order])["scores"]
        assert half < found.row < half + 600


def test_sick_patients_that_are_labelled_healthy_are_noticed(thyroid: Watched) -> None:
    """Of those labelled healthy, 5 % are sick from the middle on, five times the ceiling of the FPR."""
    half = thyroid.labels.size // 2
    for _ in range(3):
        order = RNG.permutation(thyroid.labels.size)
        labels = thyroid.labels[order]
        sick = np.flatnonzero((labels == 1) & (np.arange(labels.size) >= half))
        healthy = int((labels[half:] == 0).sum())
        labels[sick[: int(0.05 * healthy / 0.95)]] = 0
        found = alarms(thyroid, thyroid.rows[order], labels)["FPR"]
        assert half < found.row < half + 700
