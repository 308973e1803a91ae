"""A detector that changes after calibration is refused when it predicts, at a hundredth of the time."""

import copy
import pickle
import threading
from collections.abc import Callable
from io import BytesIO
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from pyod.models.knn import KNN
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from pac_wrap import InputError, PACWrap
from pac_wrap.detectors.safety import WITNESSES

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(4, 1, (200, 3))]
Y = np.repeat([0, 1], [400, 200])
OTHER = RNG.normal(1, 2, (300, 3))
CHANGED = r"has changed since it was calibrated, .*; call calibrate\(X, y\) again"


def forest(seed: int = 0) -> IsolationForest:
    return IsolationForest(n_estimators=10, random_state=seed)


def refit(wrap: PACWrap) -> None:
    wrap.detector_.fit(OTHER)


def refit_inner(wrap: PACWrap) -> None:
    wrap.detector_.estimator.fit(OTHER)


def refit_step(wrap: PACWrap) -> None:
    wrap.detector_[0].fit(OTHER)


def refit_with_labels(wrap: PACWrap) -> None:
    wrap.detector_.fit(OTHER, OTHER[:, 0] > 1)


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[PACWrap], Any]]] = {
    "forest": (forest, refit),
    "frozen": (lambda: FrozenEstimator(forest().fit(X[::2])), refit_inner),
    "pipeline": (lambda: make_pipeline(StandardScaler(), OneClassSVM()), refit),
    "step of a pipeline": (lambda: make_pipeline(StandardScaler(), OneClassSVM()), refit_step),
    "PyOD": (KNN, refit),
    "classifier": (LogisticRegression, refit_with_labels),
    "parameter": (KernelDensity, lambda wrap: wrap.detector_.set_params(bandwidth=3.0).fit(X[:50])),
    "neighbours": (KNN, lambda wrap: setattr(wrap.detector_, "method", "mean")),
    "other object": (forest, lambda wrap: setattr(wrap, "detector_", forest(1).fit(X[:300]))),
    "coefficients": (
        LogisticRegression,
        lambda wrap: setattr(wrap.detector_, "coef_", wrap.detector_.coef_ * 2),
    ),
}


@pytest.mark.parametrize("asked", [0, 1, 3], ids=["never asked", "asked once", "asked often"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_detector_that_is_trained_again_is_refused(name: str, asked: int) -> None:
    make, change = CHANGES[name]
    wrap = PACWrap(make(), random_state=0).fit(X, Y)
    for _ in range(asked):
        wrap.predict(X)
    change(wrap)
    for method in (wrap.predict, wrap.decision_function, wrap.predict_set, wrap.score_samples, wrap.predict):
        with pytest.raises(InputError, match=CHANGED):
            method(X[:5])


def test_calibrating_again_is_the_remedy() -> None:
    wrap = PACWrap(forest().fit(OTHER)).calibrate(X, Y)
    wrap.detector_.fit(OTHER[:200])
    with pytest.raises(InputError, match=CHANGED):
        wrap.predict(X)
    assert wrap.calibrate(X, Y).predict(X).size == 600


def test_a_detector_trained_on_other_columns_is_refused_with_the_same_sentence() -> None:
    wrap = PACWrap(forest().fit(OTHER)).calibrate(X, Y)
    wrap.detector_.fit(OTHER[:, :2])
    with pytest.raises(InputError, match=r"has changed since it was calibrated: .*X has 3 features"):
        wrap.predict(X)


OFFSET = 0.0


def shifted(X: Any) -> Any:
    return np.asarray(X)[:, 0] + OFFSET


@pytest.mark.parametrize("asked", [0, 2])
def test_a_function_whose_globals_change_is_refused(monkeypatch: pytest.MonkeyPatch, asked: int) -> None:
    wrap = PACWrap(shifted).fit(X, Y)
    for _ in range(asked):
        wrap.predict(X)
    monkeypatch.setitem(shifted.__globals__, "OFFSET", 1.0)
    with pytest.raises(InputError, match=f"^shifted {CHANGED}"):
        wrap.predict(X)


@pytest.mark.parametrize("asked", [0, 2])
def test_a_model_that_a_function_or_a_method_uses_is_watched_too(asked: int) -> None:
    model = forest().fit(X[::2])
    watched: list[tuple[Any, Any]] = [
        (lambda X: -model.score_samples(X), "higher"),
        (model.score_samples, "lower"),
    ]
    for function, polarity in watched:
        model.fit(X[::2])
        wrap = PACWrap(function, polarity=polarity).fit(X, Y)
        for _ in range(asked):
            wrap.predict(X)
        model.fit(OTHER)
        with pytest.raises(InputError, match=CHANGED):
            wrap.predict(X)


# an untrained module may point either way
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.UpsideDownWarning")
@pytest.mark.parametrize("asked", [0, 2])
def test_a_module_trained_further_is_refused(asked: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (make deep)")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
    wrap = PACWrap(module).fit(X, Y)
    for _ in range(asked):
        wrap.predict(X)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    module(torch.as_tensor(OTHER, dtype=torch.float32)).square().mean().backward()
    optimiser.step()
    with pytest.raises(InputError, match=CHANGED):
        wrap.predict(X)


def pickled(wrap: PACWrap) -> Any:
    return pickle.loads(pickle.dumps(wrap))


def dumped(wrap: PACWrap) -> Any:
    file = BytesIO()
    joblib.dump(wrap, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("copied", [pickled, dumped, copy.deepcopy, copy.copy])
@pytest.mark.parametrize("asked", [0, 1])
def test_a_copy_answers_alike_and_is_watched_on_its_own(copied: Callable[[PACWrap], Any], asked: int) -> None:
    wrap = PACWrap(forest(), random_state=0).fit(X, Y)
    for _ in range(asked):
        wrap.predict(X)
    again = copied(wrap)
    np.testing.assert_array_equal(again.predict(X), wrap.predict(X))
    again.detector_.fit(OTHER)
    with pytest.raises(InputError, match=CHANGED):
        again.predict(X)
    if again.detector_ is not wrap.detector_:
        wrap.predict(X)


def test_a_detector_changed_in_a_file_is_refused_when_it_is_loaded() -> None:
    wrap = PACWrap(forest(), random_state=0).fit(X, Y)
    wrap.predict(X)
    wrap.detector_.fit(OTHER)
    with pytest.raises(InputError, match=CHANGED):
        pickled(wrap).predict(X)


def test_a_clone_remembers_nothing() -> None:
    wrap = PACWrap(forest(), score_tolerance=1e-3, random_state=0).fit(X, Y)
    assert clone(wrap)._witness is None
    assert clone(wrap).score_tolerance == 1e-3


@pytest.mark.parametrize(
    "container",
    [pd.DataFrame, sparse.csr_array, np.ndarray.tolist, np.asarray],
    ids=["frame", "sparse", "list", "array"],
)
def test_a_few_copied_rows_are_kept_and_not_the_table(container: Callable[[Any], Any]) -> None:
    rows = container(X.copy())
    wrap = PACWrap(OneClassSVM(), random_state=0).fit(rows, Y)
    assert wrap._witness is not None
    kept = wrap._witness.rows
    assert (kept.shape[0] if hasattr(kept, "shape") else len(kept)) == WITNESSES
    assert type(kept) is type(rows)
    before = wrap.predict(rows)
    for row in rows if isinstance(rows, list) else []:
        row[0] = 1e6
    if isinstance(rows, np.ndarray):
        assert not np.shares_memory(kept, rows)
        rows[:] = 1e6
    np.testing.assert_array_equal(pickled(wrap).predict(container(X)), before)
    wrap.detector_.fit(container(OTHER))
    with pytest.raises(InputError, match=CHANGED):
        wrap.predict(container(X))


def test_threads_predict_while_one_of_them_asks() -> None:
    # a function: scikit-learn's own checks set Python's filters of warnings, which threads share
    wrap = PACWrap(shifted).fit(X, Y)
    expected = wrap.predict(X)
    again = pickled(wrap)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.extend(again.predict(X) for _ in range(200))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 800
    assert all(np.array_equal(verdicts, expected) for verdicts in found)


def test_without_a_tolerance_nothing_is_kept_or_compared() -> None:
    wrap = PACWrap(forest(), score_tolerance=None, random_state=0).fit(X, Y)
    assert wrap._witness is None
    wrap.detector_.fit(OTHER)
    assert wrap.predict(X).size == 600
