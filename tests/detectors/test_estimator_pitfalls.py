"""What goes wrong without a sound unless it is told: too few labels, a swapped detector, lost scores."""

import threading
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from pac_wrap import (
    InputError,
    PACWrap,
    VacuousWarning,
    anomaly_scores,
)

RANDOM = np.random.default_rng(0)
X = np.r_[RANDOM.normal(0, 1, (400, 3)), RANDOM.normal(4, 1, (200, 3))]
Y = np.repeat([0, 1], [400, 200])


def test_too_few_labels_are_told_loudly() -> None:
    with pytest.warns(VacuousWarning, match="nothing is promised about the FNR .30 labels; 59 needed"):
        PACWrap(IsolationForest(random_state=0)).fit(X[:430], Y[:430])


def test_a_promise_that_can_be_kept_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    PACWrap(IsolationForest(random_state=0)).fit(X, Y)
    assert not recwarn.list


def test_a_new_detector_is_the_one_that_is_calibrated() -> None:
    wrap = PACWrap(IsolationForest(random_state=0), random_state=0).fit(X, Y)
    other = LogisticRegression().fit(X[::2], Y[::2])
    wrap.set_params(detector=other).calibrate(X[1::2], Y[1::2])
    assert wrap.detector_ is other


def test_a_detector_that_loses_rows_is_refused_when_it_predicts() -> None:
    wrap = PACWrap(lambda rows: rows[:600, 0]).fit(X, Y)
    with pytest.raises(InputError, match="600 scores for 1,200 rows"):
        wrap.predict(np.r_[X, X])


def test_errors_of_the_detector_are_ours_too() -> None:
    wrap = PACWrap(IsolationForest(random_state=0).fit(X))
    with pytest.raises(InputError, match="cannot score these rows: X has 2 features"):
        wrap.calibrate(X[:, :2], Y)
    with pytest.raises(InputError, match="cannot be trained on these rows"):
        PACWrap(LogisticRegression()).fit(X, np.zeros(600))
    with pytest.raises(InputError, match="X must be a table"):
        PACWrap(IsolationForest()).fit(None, Y)


def test_threads_do_not_switch_each_other_out_of_evaluation() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (make deep)")
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 1)
    ).train()
    expected = anomaly_scores(module, X)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.extend(anomaly_scores(module, X) for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(np.array_equal(scores, expected) for scores in found)
    assert module.training
