"""Thyroid, a real data set with repeated records: what was certified holds on rows nobody has seen."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import betabinom, binom
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from pac_wrap import PACWrap, evaluate
from pac_wrap.method.metrics import Metrics

FALSE_ALARM = 1e-6
FILE = "annthyroid_21feat_normalised.csv"


@pytest.fixture(scope="module")
def thyroid() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    folder = os.environ.get("PAC_WRAP_DATA")
    if not folder or not (Path(folder) / FILE).is_file():
        pytest.skip(f"PAC_WRAP_DATA does not point at a folder with {FILE}")
    table = np.loadtxt(Path(folder) / FILE, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1].astype(np.int64)


def halves(y: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order = np.random.default_rng(0).permutation(y.size)
    return order[: y.size // 2], order[y.size // 2 :]


def most_errors(n: int, budget: int, held_out: int) -> int:
    """Return how many errors an honest certificate exceeds with a chance of at most FALSE_ALARM.

    Given the training rows, calibration and held-out points of a class are exchangeable (repeated records
    too), so the errors among the held-out ones are beta-binomial; ties only make them fewer.
    """
    return int(betabinom.isf(FALSE_ALARM, held_out, budget + 1, n - budget))


def check(wrap: PACWrap, metrics: Metrics) -> None:
    for evidence, rate, caught in (
        (wrap.certificate_.fpr, metrics.fpr, 2),
        (wrap.certificate_.fnr, metrics.fnr, 6),
    ):
        assert evidence.budget is not None
        assert evidence.budget.errors is not None
        limit = most_errors(evidence.n, evidence.budget.errors, rate.n)
        assert rate.count <= limit
        # the sample is large enough to catch a rate of so many times the ceiling
        assert binom.cdf(limit, rate.n, caught * evidence.budget.rate) < FALSE_ALARM


def test_the_data_is_what_its_sizes_say(thyroid: tuple[NDArray[np.float64], NDArray[np.int64]]) -> None:
    X, y = thyroid
    assert X.shape == (7200, 21)
    assert np.bincount(y).tolist() == [6666, 534]


def test_a_forest_keeps_its_promise_on_held_out_rows(
    thyroid: tuple[NDArray[np.float64], NDArray[np.int64]],
) -> None:
    X, y = thyroid
    seen, unseen = halves(y)
    normals, anomalies = np.bincount(y[seen])
    wrap = PACWrap(IsolationForest(n_estimators=50), random_state=0).fit(X[seen], y[seen])
    certificate = wrap.certificate_
    assert "calibration rows equal a training row" in str(certificate)
    assert (certificate.fpr.n, certificate.fnr.n) == (round(0.5 * normals), anomalies)
    metrics = evaluate(wrap.predict(X[unseen]), y[unseen])
    assert (metrics.fpr.n, metrics.fnr.n) == (6666 - normals, 534 - anomalies)
    check(wrap, metrics)


def test_a_classifier_keeps_its_promise_on_held_out_rows(
    thyroid: tuple[NDArray[np.float64], NDArray[np.int64]],
) -> None:
    X, y = thyroid
    seen, unseen = halves(y)
    wrap = PACWrap(LogisticRegression(C=1e4, max_iter=1000), random_state=0).fit(X[seen], y[seen])
    assert wrap.certificate_.fnr.n == round(0.5 * np.count_nonzero(y[seen]))
    metrics = evaluate(wrap.predict(X[unseen]), y[unseen])
    check(wrap, metrics)
