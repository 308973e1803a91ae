"""Scores of real detectors point upwards for anomalies, and what has no known direction is refused."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyod.models.ecod import ECOD
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from sklearn.base import BaseEstimator, clone
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDOneClassSVM
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM

from pac_wrap import DetectorError, InputError, PACWrapError, anomaly_scores
from pac_wrap.detectors.scores import UnfittedError
from pac_wrap.detectors.training import takes_labels
from pac_wrap.ranks.memory import auc

RNG = np.random.default_rng(0)
NORMAL, ANOMALOUS = RNG.normal(0, 1, (200, 3)), RNG.normal(6, 1, (40, 3))
X = np.r_[NORMAL, ANOMALOUS]
Y = np.r_[np.zeros(200, dtype=int), np.ones(40, dtype=int)]


def spread(detector: Any, X: Any, y: Any = None) -> float:
    return float(np.std(detector.score_samples(X)))


def rank_nothing(detector: Any, X: Any, y: Any = None) -> float:
    return 0.0


UNSUPERVISED: dict[str, Callable[[], Any]] = {
    "IsolationForest": lambda: IsolationForest(n_estimators=20, random_state=0),
    "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True),
    "OneClassSVM": OneClassSVM,
    "EllipticEnvelope": lambda: EllipticEnvelope(random_state=0),
    "SGDOneClassSVM": lambda: SGDOneClassSVM(random_state=0),
    "GaussianMixture": lambda: GaussianMixture(random_state=0),
    "BayesianGaussianMixture": lambda: BayesianGaussianMixture(random_state=0),
    "KernelDensity": KernelDensity,
    "Pipeline": lambda: make_pipeline(StandardScaler(), OneClassSVM()),
    "Pipeline of a density": lambda: make_pipeline(StandardScaler(), KernelDensity()),
    "GridSearchCV": lambda: GridSearchCV(OneClassSVM(), {"nu": [0.1, 0.2]}, scoring=spread, cv=2),
    "PyOD IForest": lambda: IForest(n_estimators=20, random_state=0),
    "PyOD ECOD": ECOD,
    "PyOD KNN": KNN,
    "Pipeline of PyOD": lambda: make_pipeline(StandardScaler(), KNN()),
    "GridSearchCV of PyOD": lambda: GridSearchCV(KNN(), {"n_neighbors": [3]}, scoring=rank_nothing, cv=2),
}
SUPERVISED: dict[str, Callable[[], Any]] = {
    "LogisticRegression": LogisticRegression,
    "RandomForestClassifier": lambda: RandomForestClassifier(20, random_state=0),
    "SVC": SVC,
    "Pipeline": lambda: make_pipeline(StandardScaler(), SVC()),
    "GridSearchCV": lambda: GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
}


def area(scores: NDArray[np.float64]) -> float:
    assert scores.dtype == np.float64
    assert scores.shape == (240,)
    return auc(scores[:200], scores[200:])


@pytest.mark.parametrize("wrapping", [lambda detector: detector, FrozenEstimator], ids=["bare", "frozen"])
@pytest.mark.parametrize("name", UNSUPERVISED)
def test_detectors_score_anomalies_higher(name: str, wrapping: Callable[[Any], Any]) -> None:
    detector = UNSUPERVISED[name]().fit(NORMAL)
    assert area(anomaly_scores(wrapping(detector), X)) > 0.9


@pytest.mark.parametrize("wrapping", [lambda detector: detector, FrozenEstimator], ids=["bare", "frozen"])
@pytest.mark.parametrize(("normal", "anomaly"), [(0, 1), (1, -1), ("fine", "broken"), ("broken", "fine")])
@pytest.mark.parametrize("name", SUPERVISED)
def test_classifiers_score_their_anomaly_label_higher(
    name: str, normal: object, anomaly: object, wrapping: Callable[[Any], Any]
) -> None:
    classifier = SUPERVISED[name]().fit(X, np.array([normal, anomaly])[Y])
    assert area(anomaly_scores(wrapping(classifier), X, anomaly_label=anomaly)) > 0.9


def test_the_decision_function_is_preferred_to_saturated_probabilities() -> None:
    classifier = LogisticRegression(C=1e6).fit(X, Y)
    far = np.array([[100.0, 100.0, 100.0], [1000.0, 1000.0, 1000.0]])
    assert np.ptp(classifier.predict_proba(far)[:, 1]) == 0.0
    low, high = anomaly_scores(classifier, far)
    assert low < high


def distance(X: Any) -> Any:
    return np.linalg.norm(X, axis=1)


class Ruler:
    """A callable object that is no function and has no name."""

    def __call__(self, X: Any) -> Any:
        return distance(X).astype(np.float32)


@pytest.mark.parametrize(
    "function", [distance, lambda X: X.sum(axis=1), partial(np.linalg.norm, axis=1), Ruler()]
)
def test_functions_and_callable_objects_are_taken_as_they_are(function: Callable[[Any], Any]) -> None:
    assert area(anomaly_scores(function, X)) > 0.9
    np.testing.assert_array_equal(anomaly_scores(function, X, "lower"), -anomaly_scores(function, X))


def test_precomputed_scores_are_their_own() -> None:
    np.testing.assert_array_equal(anomaly_scores("precomputed", [0.5, -np.inf]), [0.5, -np.inf])
    np.testing.assert_array_equal(anomaly_scores("precomputed", [1, 2], "lower"), [-1.0, -2.0])


class Unknown:
    """A trained detector of no known library: it could point either way."""

    def fit(self, X: Any) -> "Unknown":
        return self

    def decision_function(self, X: Any) -> Any:
        return distance(X)


def test_an_unknown_detector_is_asked_for_its_polarity() -> None:
    with pytest.raises(DetectorError, match='is unknown; pass polarity="higher" or polarity="lower"'):
        anomaly_scores(Unknown(), X)
    assert area(anomaly_scores(Unknown(), X, polarity="higher")) > 0.9
    assert area(-anomaly_scores(Unknown(), X, polarity="lower")) > 0.9


def test_polarity_overrides_what_is_known() -> None:
    forest = UNSUPERVISED["IsolationForest"]().fit(NORMAL)
    np.testing.assert_array_equal(anomaly_scores(forest, X, "higher"), forest.score_samples(X))
    np.testing.assert_array_equal(anomaly_scores(forest, X, "lower"), -forest.score_samples(X))


class Silent(BaseEstimator):
    """An estimator that gives no scores."""

    def fit(self, X: Any) -> "Silent":
        return self


@pytest.mark.parametrize(
    ("detector", "reason"),
    [
        (LocalOutlierFactor().fit(NORMAL), "fit LocalOutlierFactor with novelty=True"),
        (LinearRegression().fit(X, Y), "LinearRegression gives no scores"),
        (Silent(), "Silent gives no scores: it has no decision_function or score_samples; pass a function"),
        (IsolationForest, r"the class IsolationForest, not an object; write IsolationForest\(...\)"),
        (object(), "object gives no scores"),
        (None, "NoneType gives no scores"),
        ("calculated", "'calculated' gives no scores"),
        (LogisticRegression().fit(X, np.arange(240) % 3), r"the classes \[.*0.*1.*2.*\], but must have two"),
        (LogisticRegression().fit(X, Y + 5), "one of them the anomaly label 1"),
    ],
    ids=["LOF", "regressor", "silent", "class", "object", "None", "text", "three classes", "other classes"],
)
def test_what_gives_no_usable_scores_is_refused(detector: Any, reason: str) -> None:
    with pytest.raises(DetectorError, match=reason):
        anomaly_scores(detector, X)


def test_a_silent_detector_stays_refused_when_its_polarity_is_known() -> None:
    with pytest.raises(DetectorError, match="Silent gives no scores"):
        anomaly_scores(Silent(), X, polarity="higher")


@pytest.mark.parametrize("name", [*UNSUPERVISED, *(f"supervised {name}" for name in SUPERVISED)])
def test_unfitted_detectors_are_refused(name: str) -> None:
    kinds = SUPERVISED if name.startswith("supervised ") else UNSUPERVISED
    detector = kinds[name.removeprefix("supervised ")]()
    with pytest.raises(UnfittedError, match="is not fitted; fit it first") as caught:
        anomaly_scores(detector, X)
    assert isinstance(caught.value, NotFittedError)
    assert isinstance(caught.value, PACWrapError)


def test_an_unfitted_detector_in_ice_is_refused() -> None:
    with pytest.raises(UnfittedError):
        anomaly_scores(FrozenEstimator(IsolationForest()), X)


@pytest.mark.parametrize("polarity", ["up", None, True, 1])
def test_an_unknown_polarity_is_refused(polarity: Any) -> None:
    with pytest.raises(InputError, match="polarity must be one of 'auto', 'higher', 'lower'"):
        anomaly_scores(distance, X, polarity)


def test_scores_that_break_the_rules_name_their_detector() -> None:
    def broken(X: Any) -> Any:
        return np.where(Y == 1, np.nan, 0.0)

    with pytest.raises(
        InputError, match=r"scores of broken must not contain NaN, got 40 of 240, .* position 200"
    ):
        anomaly_scores(broken, X)
    with pytest.raises(InputError, match="scores of <lambda> must be one-dimensional"):
        anomaly_scores(lambda X: X, X)
    with pytest.raises(InputError, match="scores of Ruler must be real numbers"):
        anomaly_scores(type("Ruler", (), {"__call__": lambda self, X: ["high"] * len(X)})(), X)


def test_a_detector_is_asked_once_and_left_alone() -> None:
    forest = UNSUPERVISED["IsolationForest"]().fit(NORMAL)
    before = clone(forest).get_params()
    scores = forest.score_samples(X)
    anomaly_scores(forest, X)
    assert forest.get_params() == before
    np.testing.assert_array_equal(forest.score_samples(X), scores)


class Demanding:
    """A semi-supervised detector: its fit cannot do without labels."""

    def fit(self, X: Any, y: Any) -> "Demanding":
        return self


@pytest.mark.parametrize(
    "detector", [LogisticRegression(), Demanding(), make_pipeline(StandardScaler(), SVC())]
)
def test_classifiers_and_detectors_that_demand_labels_take_them(detector: Any) -> None:
    assert takes_labels(detector)


@pytest.mark.parametrize("detector", [IsolationForest(), KNN(), Unknown(), make_pipeline(OneClassSVM())])
def test_other_detectors_take_no_labels(detector: Any) -> None:
    assert not takes_labels(detector)
