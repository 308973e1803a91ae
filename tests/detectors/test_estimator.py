"""PACWrap from rows to verdicts: fitting, calibrating, predicting, with every strategy."""

from typing import Any

import numpy as np
import pytest
from pyod.models.hbos import HBOS
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from sklearn.base import clone
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from pac_wrap import Algorithm1, Guarantee, PACWrap, PACWrapError, Regime, calibrate, evaluate
from support.kept import kept

RNG = np.random.default_rng(0)
NORMAL, ANOMALOUS = RNG.normal(0, 1, (600, 3)), RNG.normal(3, 1, (300, 3))
X = np.r_[NORMAL, ANOMALOUS]
Y = np.r_[np.zeros(600, dtype=int), np.ones(300, dtype=int)]
NEW = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(3, 1, (400, 3))]
NEW_Y = np.repeat([0, 1], 400)


def forest() -> IsolationForest:
    return IsolationForest(n_estimators=20, random_state=0)


def distance(X: Any) -> Any:
    return np.linalg.norm(X, axis=1)


def test_fit_gives_verdicts_sets_and_scores_that_agree() -> None:
    wrap = PACWrap(forest(), max_fpr=0.1, max_fnr=0.1, random_state=0)
    assert wrap.fit(X, Y) is wrap
    scores = wrap.decision_function(NEW)
    verdicts, sets = wrap.predict(NEW), wrap.predict_set(NEW)
    np.testing.assert_array_equal(scores, -wrap.detector_.score_samples(NEW))
    np.testing.assert_array_equal(wrap.score_samples(NEW), -scores)
    np.testing.assert_array_equal(verdicts, wrap.certificate_.verdicts(scores))
    np.testing.assert_array_equal(sets, wrap.certificate_.prediction_sets(scores))
    assert verdicts.dtype == np.int8
    assert set(verdicts.tolist()) == {0, 1}
    always = PACWrap(forest(), max_fpr=0.1, max_fnr=0.1, overlap="abstain_always", random_state=0).fit(X, Y)
    assert set(always.predict(NEW).tolist()) == {-1, 0, 1}
    assert sets.shape == (800, 2)
    assert wrap.score(NEW, NEW_Y) == np.mean(verdicts == NEW_Y)
    metrics = evaluate(verdicts, NEW_Y)
    assert wrap.score(NEW, NEW_Y) == pytest.approx(1 - metrics.err.value - metrics.ambiguity.value)


def test_the_certificate_is_the_one_the_scores_give() -> None:
    wrap = PACWrap(distance, max_fpr=0.1, max_fnr=0.2, delta_fpr=0.01, delta_fnr=0.02).fit(X, Y)
    scores = distance(X)
    expected = calibrate(scores[Y == 0], scores[Y == 1], Guarantee(0.1, 0.2, 0.01, 0.02))
    assert wrap.certificate_ == expected
    assert wrap.calibrate(X, Y).certificate_ == expected


@pytest.mark.parametrize(
    ("ceilings", "alone"),
    [((0.1, 0.2), (None, None)), ((0.1, None), (0.01, None)), ((None, 0.2), (None, 0.01))],
)
def test_one_confidence_is_shared_among_the_ceilings_that_are_asked_for(
    ceilings: tuple[float | None, float | None], alone: tuple[float | None, float | None]
) -> None:
    wrap = PACWrap(distance, max_fpr=ceilings[0], max_fnr=ceilings[1], confidence=0.99).fit(X, Y)
    found = kept(wrap.certificate_)
    assert found is not None
    assert (found.max_fpr, found.max_fnr) == ceilings
    deltas = tuple(promise and promise.delta for promise in (found.fpr, found.fnr))
    if None in ceilings:
        assert deltas == pytest.approx(alone)
    assert wrap.certificate_.confidence >= 0.99
    by_deltas = PACWrap(distance, max_fpr=ceilings[0], max_fnr=ceilings[1])
    by_deltas.set_params(**{f"delta_{name}": one for name, one in zip(("fpr", "fnr"), deltas, strict=True)})
    assert by_deltas.fit(X, Y).certificate_.thresholds == wrap.certificate_.thresholds


@pytest.mark.parametrize("strategy", ["algorithm1", "hold_fnr", "hold_fpr"])
def test_without_abstention_every_strategy_decides_everything(strategy: str) -> None:
    wrap = PACWrap(forest(), random_state=0, overlap=strategy).fit(X, Y)
    assert wrap.certificate_.overlap.word == strategy
    assert wrap.certificate_.rule.single
    assert set(wrap.predict(NEW).tolist()) == {0, 1}
    np.testing.assert_array_equal(wrap.predict_set(NEW).sum(axis=1), 1)


def test_every_option_of_a_strategy_reaches_the_certificate() -> None:
    options: dict[str, Any] = {
        "step": 0.2,
        "growth": "double",
        "raised": "fpr",
        "relax_delta": True,
        "correction": None,
        "position": 0.25,
    }
    found = PACWrap(distance, overlap=Algorithm1(**options)).fit(X, Y).certificate_.overlap
    assert {name: getattr(found, name) for name in options} == options


@pytest.mark.parametrize(("max_fpr", "max_fnr"), [(0.1, None), (None, 0.1)])
@pytest.mark.parametrize("overlap", ["abstain", "algorithm1", "hold_fnr", "hold_fpr"])
def test_a_one_sided_promise_leaves_nothing_undecided(
    max_fpr: float | None, max_fnr: float | None, overlap: str
) -> None:
    wrap = PACWrap(distance, max_fpr=max_fpr, max_fnr=max_fnr, overlap=overlap).fit(X, Y)
    assert set(wrap.predict(NEW).tolist()) == {0, 1}
    assert (wrap.certificate_.thresholds.alarm_from is None) == (max_fpr is None)
    assert (wrap.certificate_.thresholds.clear_below is None) == (max_fnr is None)


def test_too_few_labels_abstain_instead_of_failing() -> None:
    wrap = PACWrap(distance).fit(X[580:620], Y[580:620])
    assert wrap.certificate_.regime is Regime.VACUOUS
    assert set(wrap.predict(NEW).tolist()) == {-1}


def test_one_row_calibrates_but_certifies_nothing() -> None:
    wrap = PACWrap(distance).fit(X[:1], Y[:1])
    assert (wrap.certificate_.fpr.n, wrap.certificate_.fnr.n) == (1, 0)
    assert wrap.predict(NEW[:1]).tolist() == [-1]


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_alone_promises_on_its_side(label: int) -> None:
    wrap = PACWrap(distance).fit(X[label == Y], Y[label == Y])
    assert wrap.certificate_.regime is Regime.VACUOUS
    assert set(wrap.predict(NEW).tolist()) == ({-1, 1} if label == 0 else {-1, 0})


def test_a_fitted_detector_is_calibrated_and_not_fitted_again() -> None:
    fitted = forest().fit(NORMAL)
    trees = list(fitted.estimators_)
    wrap = PACWrap(fitted).calibrate(NEW, NEW_Y)
    assert wrap.detector_ is fitted
    assert all(now is before for now, before in zip(fitted.estimators_, trees, strict=True))
    np.testing.assert_array_equal(wrap.decision_function(NEW), -fitted.score_samples(NEW))
    assert (wrap.certificate_.fpr.n, wrap.certificate_.fnr.n) == (400, 400)


def test_calibrating_after_fit_keeps_the_detector_and_renews_the_certificate() -> None:
    wrap = PACWrap(forest(), random_state=0).fit(X, Y)
    detector, first = wrap.detector_, wrap.certificate_
    assert wrap.calibrate(NEW, NEW_Y) is wrap
    assert wrap.detector_ is detector
    assert wrap.certificate_ != first
    assert wrap.certificate_.fpr.n == 400


@pytest.mark.parametrize("trained", [forest().fit(NORMAL), LogisticRegression().fit(X, Y)])
def test_a_frozen_detector_is_only_calibrated_on_all_rows(trained: Any) -> None:
    frozen = FrozenEstimator(trained)
    wrap = PACWrap(frozen).fit(NEW, NEW_Y)
    assert wrap.detector_ is frozen
    assert (wrap.certificate_.fpr.n, wrap.certificate_.fnr.n) == (400, 400)
    assert wrap.certificate_ == PACWrap(trained).calibrate(NEW, NEW_Y).certificate_


@pytest.mark.parametrize(
    "detector", [IForest(n_estimators=20, random_state=0), HBOS(), KNN()], ids=lambda d: type(d).__name__
)
def test_pyod_detectors_are_trained_on_normal_rows(detector: Any) -> None:
    before = dict(vars(detector))
    wrap = PACWrap(detector, max_fpr=0.2, max_fnr=0.2, random_state=0).fit(X, Y)
    assert wrap.detector_ is not detector
    assert vars(detector).keys() == before.keys()
    assert wrap.detector_.decision_scores_.size == 300
    metrics = evaluate(wrap.predict(NEW), NEW_Y)
    assert metrics.fpr.low < 0.2
    assert metrics.fnr.low < 0.2
    assert metrics.ambiguity.value < 0.5
    assert clone(wrap).detector.get_params() == detector.get_params()


def test_a_fitted_pyod_detector_is_calibrated() -> None:
    wrap = PACWrap(KNN().fit(NORMAL)).calibrate(NEW, NEW_Y)
    assert wrap.score(NEW, NEW_Y) > 0.5


def test_classifiers_are_trained_with_labels() -> None:
    for classifier in (LogisticRegression(), RandomForestClassifier(20, random_state=0)):
        wrap = PACWrap(classifier, random_state=0).fit(X, Y)
        assert wrap.detector_.classes_.tolist() == [0, 1]
        assert wrap.certificate_.fnr.n == 150
        assert wrap.score(NEW, NEW_Y) > 0.8


@pytest.mark.parametrize(
    ("normal", "anomaly"), [(1, -1), (1, 0), ("fine", "broken"), (False, True), (0.0, 1.0)]
)
@pytest.mark.parametrize(
    "detector", [forest(), LogisticRegression(), distance], ids=["forest", "LR", "function"]
)
def test_the_names_of_labels_change_nothing(detector: Any, normal: object, anomaly: object) -> None:
    def named(y: Any) -> Any:
        return np.array([anomaly if label else normal for label in y])

    plain = PACWrap(detector, random_state=0).fit(X, Y)
    wrap = PACWrap(detector, random_state=0, anomaly_label=anomaly).fit(X, named(Y))
    assert wrap.certificate_ == plain.certificate_
    np.testing.assert_array_equal(wrap.predict(NEW), plain.predict(NEW))
    assert wrap.score(NEW, named(NEW_Y)) == plain.score(NEW, NEW_Y)
    assert wrap.calibrate(NEW, named(NEW_Y)).certificate_ == plain.calibrate(NEW, NEW_Y).certificate_


@pytest.mark.parametrize(("normal", "anomaly"), [(1, -1), (1, 0), ("fine", "broken")])
def test_a_fitted_classifier_keeps_its_own_labels(normal: object, anomaly: object) -> None:
    names = np.array([normal, anomaly])
    y, new_y = names[Y], names[NEW_Y]
    classifier = LogisticRegression().fit(X, y)
    wrap = PACWrap(classifier, anomaly_label=anomaly).calibrate(NEW, new_y)
    assert wrap.score(NEW, new_y) > 0.8


def test_unknown_detectors_need_a_polarity_and_follow_it() -> None:
    class Unknown:
        def fit(self, X: Any) -> "Unknown":
            return self

        def score_samples(self, X: Any) -> Any:
            return -distance(X)

    with pytest.raises(PACWrapError, match="polarity"):
        PACWrap(Unknown()).fit(X, Y)
    wrap = PACWrap(Unknown(), polarity="lower", random_state=0).fit(X, Y)
    assert wrap.score(NEW, NEW_Y) > 0.5


@pytest.mark.parametrize("method", ["predict", "predict_set", "decision_function", "score_samples"])
@pytest.mark.parametrize(
    "detector", [forest(), forest().fit(NORMAL), distance], ids=["unfitted", "fitted", "fn"]
)
def test_before_calibration_nothing_is_answered(detector: Any, method: str) -> None:
    with pytest.raises(NotFittedError, match=r"call fit\(X, y\), or calibrate\(X, y\)") as caught:
        getattr(PACWrap(detector), method)(X)
    assert isinstance(caught.value, PACWrapError)


def test_an_unfitted_detector_cannot_be_calibrated() -> None:
    with pytest.raises(NotFittedError, match="IsolationForest is not fitted"):
        PACWrap(forest()).calibrate(X, Y)
