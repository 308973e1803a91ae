"""A search inside PACWrap chooses the detector that ranks anomalies best, and never chooses by nothing."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from pyod.models.knn import KNN
from sklearn.base import BaseEstimator
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from pac_wrap import InputError, PACClassifier, PACWrap
from pac_wrap.scoring import ranking_scorer

RNG = np.random.default_rng(0)
# anomalies lie at the end: folds in order lack them
X = np.r_[RNG.normal(0, 1, (600, 2)), RNG.normal(3, 0.7, (200, 2))]
Y = np.repeat([0, 1], [600, 200])


class Backwards(BaseEstimator):
    """A detector of nobody's making, whose scores are low for anomalies."""

    def __init__(self, sign: int = 1) -> None:
        self.sign = sign

    def fit(self, X: Any, y: Any = None) -> "Backwards":
        self.rows_ = np.asarray(X)
        return self

    def decision_function(self, X: Any) -> Any:
        return -self.sign * np.linalg.norm(np.asarray(X), axis=1)


SEARCHES: dict[str, tuple[Any, dict[str, list[Any]], dict[str, Any]]] = {
    # the worse candidate comes first
    "LOF": (LocalOutlierFactor(novelty=True), {"n_neighbors": [1, 30]}, {"n_neighbors": 30}),
    "PyOD": (KNN(), {"n_neighbors": [1, 30]}, {"n_neighbors": 30}),
    "SVM": (OneClassSVM(), {"gamma": [1e4, 0.1]}, {"gamma": 0.1}),
    "envelope": (  # its own score is the share of right labels, 1 and -1
        make_pipeline(StandardScaler(), EllipticEnvelope(random_state=0)),
        {"ellipticenvelope__support_fraction": [0.9]},
        {"ellipticenvelope__support_fraction": 0.9},
    ),
}


@pytest.mark.parametrize("kind", [GridSearchCV, RandomizedSearchCV])
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_without_scoring_ranks_anomalies_and_trains_on_normal_rows(name: str, kind: Any) -> None:
    detector, grid, best = SEARCHES[name]
    options = {"n_iter": sum(map(len, grid.values()))} if kind is RandomizedSearchCV else {}
    wrap = PACWrap(kind(detector, grid, **options), random_state=0).fit(
        pd.DataFrame(X, columns=["a", "b"]), Y
    )
    search = wrap.detector_
    assert search.best_params_ == best
    assert search.best_score_ > 0.95
    assert wrap.certificate_.provenance.trained == (300, 100)
    assert wrap.certificate_.fnr.n == 100
    again = pickle.loads(pickle.dumps(wrap))
    rows = pd.DataFrame(X, columns=["a", "b"])
    np.testing.assert_array_equal(again.predict(rows), wrap.predict(rows))
    assert wrap.score(rows, Y) > 0.8


@pytest.mark.parametrize(
    ("train_on", "anomalies"), [("auto", 0), ("normal", 0), ("unlabelled", 50), ("labelled", 50)]
)
def test_what_was_chosen_is_trained_on_what_was_asked_for(train_on: Any, anomalies: int) -> None:
    search = GridSearchCV(Backwards(), {"sign": [-1, 1]}, cv=3)
    wrap = PACWrap(search, train_on=train_on, polarity="lower", calibration_size=0.75, random_state=0).fit(
        X, Y
    )
    assert wrap.detector_.best_params_ == {"sign": 1}  # by the polarity that PACWrap was told
    found = wrap.detector_.best_estimator_.rows_
    assert np.isin(found, X[Y == 1]).all(axis=1).sum() == anomalies
    assert len(found) == 150 + anomalies
    assert wrap.detector_.n_splits_ == 3


def test_a_scoring_of_its_own_is_kept_and_sees_labels() -> None:
    seen = []

    def scoring(detector: Any, X: Any, y: Any) -> float:
        seen.append(np.bincount(y).tolist())
        return ranking_scorer(detector, X, y)

    forest = IsolationForest(n_estimators=5, random_state=0)
    search = GridSearchCV(forest, {"max_features": [1]}, scoring=scoring, cv=2)
    PACWrap(search, random_state=0).fit(X, Y)
    assert seen == [[150, 50]] * 2
    density = GridSearchCV(
        KernelDensity(), {"bandwidth": [1e-3, 1.0]}
    )  # by its likelihood, without anomalies
    wrap = PACWrap(density, random_state=0).fit(X, Y)
    assert wrap.detector_.best_params_ == {"bandwidth": 1.0}
    assert wrap.certificate_.provenance.trained == (300, 0)


def nothing(detector: Any, X: Any, y: Any = None) -> float:
    return float("nan")


REFUSED: dict[str, tuple[Any, str]] = {
    "no score": (
        GridSearchCV(OneClassSVM(), {"nu": [0.1, 0.2]}, scoring=nothing),
        "GridSearchCV has no best candidate: the best mean test score is NaN; remove",
    ),
    "folds without anomalies": (
        GridSearchCV(OneClassSVM(), {"nu": [0.1, 0.2]}, cv=KFold(5)),
        "has no best candidate: .* every fold has rows of all classes",
    ),
    "a classifier": (
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=nothing),
        "GridSearchCV has no best candidate",
    ),
    "a classifier in a pipeline": (
        make_pipeline(
            StandardScaler(), GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=nothing)
        ),
        "GridSearchCV has no best candidate",
    ),
    "upside down": (
        GridSearchCV(OneClassSVM(), {"nu": [0.1, 0.2]}, scoring="roc_auc"),
        "^scoring='roc_auc' expects high scores for anomalies, but OneClassSVM gives them low scores",
    ),
    "no refit": (
        GridSearchCV(OneClassSVM(), {"nu": [0.1, 0.2]}, refit=False),
        "^refit=False leaves GridSearchCV without a detector to certify; pass refit=True",
    ),
    "inside out": (
        make_pipeline(StandardScaler(), GridSearchCV(OneClassSVM(), {"nu": [0.1, 0.2]})),
        r"put the pipeline inside: GridSearchCV\(make_pipeline\(..., detector\), ...\)",
    ),
}


@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning", "ignore:One or more of the test:UserWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_a_search_that_cannot_choose_is_refused(name: str) -> None:
    detector, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        PACWrap(detector, random_state=0).fit(X, Y)


@pytest.mark.filterwarnings("ignore:One or more of the test:UserWarning")
def test_a_classifier_of_many_classes_refuses_it_too() -> None:
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=nothing)
    with pytest.raises(InputError, match="GridSearchCV has no best candidate"):
        PACClassifier(search, random_state=0).fit(X, Y)


@pytest.mark.parametrize(("anomalies", "found"), [(0, 0), (2, 1)])
def test_too_few_anomalies_to_choose_by_are_said(anomalies: int, found: int) -> None:
    search = GridSearchCV(OneClassSVM(), {"nu": [0.1, 0.2]})
    match = f"GridSearchCV needs at least 2 anomalies to rank candidates, .* got {found};"
    with pytest.raises(InputError, match=match):
        PACWrap(search, random_state=0).fit(X[: 600 + anomalies], Y[: 600 + anomalies])


@pytest.mark.parametrize("routed", [False, True])
def test_weights_reach_the_candidates_and_the_chosen_one(routed: bool) -> None:
    # one that passes weights on by itself: the forest of old versions asks its trees first
    machine = OneClassSVM(gamma=0.5)
    weights = np.where(np.arange(800) % 2, 1.0, 1e-3)
    with sklearn.config_context(enable_metadata_routing=routed):
        machine = machine.set_fit_request(sample_weight=True) if routed else machine
        wrap = PACWrap(GridSearchCV(machine, {"nu": [0.1, 0.2]}, cv=2), random_state=0)
        weighted = wrap.fit(X, Y, sample_weight=weights).decision_function(X)
        plain = wrap.fit(X, Y).decision_function(X)
    assert not np.array_equal(weighted, plain)
