"""Calibration rows that something was trained on are warned of wherever it can be seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyod.models.hbos import HBOS
from pyod.models.iforest import IForest
from pyod.models.kde import KDE
from pyod.models.knn import KNN
from pyod.models.lof import LOF
from pyod.models.mcd import MCD
from pyod.models.ocsvm import OCSVM
from scipy import sparse
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from pac_wrap import OverlapWarning, PACWrap
from pac_wrap.detectors.safety import TrainingRows, check_training_rows

# a detector that is trained with anomalies may find nothing odd about them
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.UpsideDownWarning")

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (300, 4)), RNG.normal(3, 1, (100, 4))]
Y = np.repeat([0, 1], [300, 100])
NEW = np.r_[RNG.normal(0, 1, (300, 4)), RNG.normal(3, 1, (100, 4))]


def forest() -> IsolationForest:
    return IsolationForest(n_estimators=5)


def search(X: Any, y: Any) -> Any:
    return GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3, 5]}, cv=2).fit(X, y)


KEEPING: dict[str, Callable[[Any, Any], Any]] = {
    "LocalOutlierFactor": lambda X, y: LocalOutlierFactor(novelty=True).fit(X),
    "KernelDensity": lambda X, y: KernelDensity().fit(X),
    "KNeighborsClassifier": lambda X, y: KNeighborsClassifier().fit(X, y),
    "OneClassSVM": lambda X, y: OneClassSVM().fit(X),
    # whose time grows with the cube of the rows
    "GaussianProcessClassifier": lambda X, y: GaussianProcessClassifier(optimizer=None).fit(X[::4], y[::4]),
    "EllipticEnvelope": lambda X, y: EllipticEnvelope(random_state=0).fit(X),
    "pipeline": lambda X, y: make_pipeline(StandardScaler(), KernelDensity()).fit(X),
    "search": search,
    "PyOD KNN": lambda X, y: KNN().fit(X),
    "PyOD LOF": lambda X, y: LOF().fit(X),
    "PyOD KDE": lambda X, y: KDE().fit(X),
    "PyOD OCSVM": lambda X, y: OCSVM().fit(X),
    "PyOD MCD": lambda X, y: MCD(random_state=0).fit(X),
    "PyOD IForest": lambda X, y: IForest(n_estimators=50, random_state=0).fit(X),
    "PyOD HBOS": lambda X, y: HBOS().fit(X),
    "PyOD in a pipeline": lambda X, y: make_pipeline(StandardScaler(), KNN()).fit(X),
}
KNOWN = r"^(\d+) calibration rows are known to the detector from its training; .* has not seen$"


@pytest.mark.parametrize("share", [1, 2], ids=["all", "half"])
@pytest.mark.parametrize("name", KEEPING)
def test_a_detector_that_keeps_its_training_rows_gives_them_away(name: str, share: int) -> None:
    trained = KEEPING[name](X, Y)
    with pytest.warns(OverlapWarning, match=KNOWN):
        PACWrap(trained).calibrate(X[::share], Y[::share])
    with pytest.warns(OverlapWarning, match=KNOWN):
        PACWrap(FrozenEstimator(trained)).fit(X[::share], Y[::share])


@pytest.mark.parametrize("name", KEEPING)
def test_rows_it_has_not_seen_are_not_warned_of(name: str) -> None:
    trained = KEEPING[name](X, Y)
    PACWrap(trained).calibrate(NEW, Y)
    PACWrap(FrozenEstimator(trained)).fit(NEW, Y)


@pytest.mark.parametrize("container", [pd.DataFrame, sparse.csr_array, np.ndarray.tolist, np.float32])
def test_the_rows_are_known_in_any_container(container: Callable[[Any], Any]) -> None:
    trained = OneClassSVM().fit(container(X[:, :3]))
    count = trained.support_vectors_.shape[0]
    assert 10 < count < 400
    with pytest.warns(OverlapWarning, match=f"^{count} calibration rows are known"):
        PACWrap(trained).calibrate(container(X[:, :3]), Y)
    few = np.r_[NEW, X[trained.support_[:5]]][:, :3]
    with pytest.warns(OverlapWarning, match="^5 calibration rows are known"):
        PACWrap(trained).calibrate(container(few), np.r_[Y, [0] * 5])


def test_tied_training_scores_prove_nothing() -> None:
    # a grid of few values: new rows get the scores of training rows by chance
    trained = HBOS(n_bins=3).fit(X.round())
    assert np.isin(trained.decision_function(NEW.round()), trained.decision_scores_).mean() > 0.5
    PACWrap(trained).calibrate(NEW.round(), Y)


def test_single_precision_copies_of_training_rows_are_recognised() -> None:
    wrap = PACWrap(forest(), random_state=0).fit(X, Y)
    with pytest.warns(OverlapWarning, match="^150 calibration rows are also in the training data"):
        wrap.calibrate(X.astype(np.float32), Y)
    with pytest.warns(OverlapWarning, match="^150 "):
        wrap.calibrate(X.astype(np.float32).astype(np.float64), Y)
    wrap.fit(X.astype(np.float32), Y)
    with pytest.warns(OverlapWarning, match="^150 "):
        wrap.calibrate(X, Y)
    wrap.calibrate(NEW.astype(np.float32), Y)


def test_rows_that_are_merely_close_are_not_the_same() -> None:
    # seconds since 1970, which single precision tells apart only by the minute
    times = np.stack([1.7e9 + np.arange(400.0) + 0.25, Y], axis=1)
    assert TrainingRows.of(times[::2]).count_in(times[1::2]) == 0
    assert TrainingRows.of(times[::2]).count_in(times) == 200
    assert TrainingRows.of(times[::2]).count_in(times.astype(np.float32)) == 400


def test_a_row_counts_once_however_it_is_known() -> None:
    rows = np.array([[0.5, 1.0], [0.1, -0.0], [np.nan, np.inf], [1e300, 5e-324]])
    for trained in (rows, rows[::-1], rows.astype(object)):
        assert TrainingRows.of(trained).count_in(rows) == 4
    assert TrainingRows.of(rows[:2]).count_in(rows) == 2


def test_rows_that_repeat_across_a_division_are_noted_and_others_warned_of() -> None:
    known, rows, scores = TrainingRows.of(np.array([[1.0], [2.0]])), np.array([[2.0], [3.0]]), np.zeros(2)
    (note,) = check_training_rows(known, forest(), rows, scores, "divided")
    assert note.startswith("1 of 2 calibration rows equal a training row: this is harmless")
    with pytest.warns(OverlapWarning, match="1 held-out rows are also in the training data"):
        assert check_training_rows(known, forest(), rows, scores, "held-out") == ()
