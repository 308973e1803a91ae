"""Time series detectors of PyOD, wrapped like any other, and how they fill steps they cannot score."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pac_wrap import Guarantee, Verdict, anomaly_scores, calibrate_labelled
from pac_wrap.ranks.memory import auc
from pac_wrap_paper.detectors.lstm import at_most_threads

ts_od = pytest.importorskip("pyod.models.ts_od", reason="this version of PyOD has no time series detectors")


def swing(steps: int, seed: int, anomalies: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int_]]:
    """Return a noisy oscillation and labels; an anomaly is a dozen steps, faster and wider."""
    random = np.random.default_rng(seed)
    time, labels = np.arange(float(steps)), np.zeros(steps, dtype=int)
    for start in np.linspace(50, steps - 50, anomalies, dtype=int):
        labels[start : start + 12] = 1
    series = np.where(labels == 1, np.sin(time / 2.0) * 2.0, np.sin(time / 4.0))
    return (series + random.normal(0.0, 0.1, steps))[:, None], labels


@pytest.fixture
def recurrent() -> Iterator[Any]:
    """Yield PyOD's own LSTM, trained; it draws from torch's global state, which is put back."""
    torch = pytest.importorskip("torch", reason="torch is optional; `make deep` installs it")
    from pyod.models.ts_lstm import LSTMAD

    with torch.random.fork_rng(devices=[]), at_most_threads(1):
        torch.manual_seed(0)
        yield LSTMAD(window_size=10, hidden_size=8, n_layers=1, epochs=5).fit(swing(800, seed=0)[0])


def certify(detector: Any, least_area: float) -> None:
    """Calibrate on one unseen series, and count the errors on another."""
    series, labels = swing(4000, seed=1, anomalies=40)
    scores = anomaly_scores(detector, series)
    assert scores.shape == (4000,)
    assert auc(scores[labels == 0], scores[labels == 1]) > least_area
    certificate = calibrate_labelled(scores, labels, Guarantee(max_fpr=0.1, max_fnr=0.1))
    new, truth = swing(4000, seed=2, anomalies=40)
    verdicts = certificate.verdicts(anomaly_scores(detector, new))
    # neighbouring steps depend on each other, so the ceilings are met with some slack only
    assert np.mean(verdicts[truth == 0] == Verdict.ANOMALY) < 0.15
    assert np.mean(verdicts[truth == 1] == Verdict.NORMAL) < 0.15


@pytest.mark.filterwarnings("ignore::pac_wrap.LabelWarning")  # steps of one swing are no draws: they bunch
def test_windows_through_any_pyod_detector_are_certified() -> None:
    certify(ts_od.TimeSeriesOD(detector="KNN", window_size=10).fit(swing(800, seed=0)[0]), 0.95)


def test_spectral_residuals_are_certified() -> None:
    from pyod.models.ts_spectral_residual import SpectralResidual

    certify(SpectralResidual().fit(swing(800, seed=0)[0]), 0.55)


def test_the_lstm_of_pyod_is_certified(recurrent: Any) -> None:
    certify(recurrent, 0.75)


def test_pyod_fills_what_it_cannot_score_with_its_threshold(recurrent: Any) -> None:
    # a constant passes for a score, which is why ours mark such steps with NaN
    series = swing(205, seed=1)[0]
    assert (anomaly_scores(recurrent, series)[:10] == recurrent.threshold_).all()
    sparse = ts_od.TimeSeriesOD(detector="KNN", window_size=10, step=10).fit(swing(800, seed=0)[0])
    assert (anomaly_scores(sparse, series)[200:] == sparse.threshold_).all()


def test_windows_of_pyod_look_ahead() -> None:
    detector = ts_od.TimeSeriesOD(detector="KNN", window_size=10).fit(swing(800, seed=0)[0])
    series = swing(100, seed=1)[0]
    other = series.copy()
    other[50:] = 9.0
    changed = np.flatnonzero(anomaly_scores(detector, series) != anomaly_scores(detector, other))
    assert changed[0] == 41
