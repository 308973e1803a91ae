"""What scikit-learn's tools around PACWrap do to its promise is told: pipelines, searches, folds, metrics."""

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.fixes import parse_version

from pac_wrap import InputError, OverlapWarning, PACWrap
from pac_wrap.scoring import ranking_scorer

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (300, 4)), RNG.normal(3, 1, (100, 4))]
Y = np.repeat([0, 1], [300, 100])  # sorted: a quarter of the rows, at the end, is anomalous
NEW = np.r_[RNG.normal(0, 1, (300, 4)), RNG.normal(3, 1, (100, 4))]
NEW_Y = Y
# before, it gives the scores of classifiers and of its own outlier detectors to metrics, and no others
OLD = parse_version(sklearn.__version__) < parse_version("1.9")
RANKED = pytest.param("roc_auc", marks=pytest.mark.skipif(OLD, reason="scikit-learn before 1.9 refuses it"))


def forest() -> IsolationForest:
    return IsolationForest(n_estimators=5, random_state=0)


def distance(X: Any) -> Any:
    return np.linalg.norm(X, axis=1)


AROUND = r"^the pipeline around PACWrap fitted {} on the calibration rows too, .*; put the steps inside: {}$"


class Learning(TransformerMixin, BaseEstimator):
    """A step that says nothing about itself."""

    def fit(self, X: Any, y: Any = None) -> "Learning":
        return self

    def transform(self, X: Any) -> Any:
        return X


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        ([StandardScaler()], "StandardScaler"),
        ([SelectKBest(k=2)], "SelectKBest"),
        ([FunctionTransformer(), StandardScaler(), SelectKBest(k=2)], "StandardScaler and SelectKBest"),
        ([Learning()], "Learning"),
        ([make_pipeline(StandardScaler(), SelectKBest(k=2))], "Pipeline"),
    ],
    ids=["scaler", "selector", "both", "unknown", "nested"],
)
@pytest.mark.parametrize("detector", [forest(), LogisticRegression(), lambda X: X[:, 0]])
def test_a_pipeline_that_learns_from_the_calibration_rows_is_warned_of(
    steps: list[Any], named: str, detector: Any
) -> None:
    inside = named.replace(" and ", "(), ") + "(), detector"
    message = AROUND.format(named, rf"PACWrap\(make_pipeline\({inside}\)\)".replace("()", r"\(\)"))
    with pytest.warns(OverlapWarning, match=message):
        make_pipeline(*steps, PACWrap(detector, random_state=0)).fit(X, Y)


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(PACWrap(forest())),
        make_pipeline(FunctionTransformer(), Normalizer(), PACWrap(forest(), random_state=0)),
        Pipeline([("none", None), ("all", "passthrough"), ("wrap", PACWrap(forest()))]),
        make_pipeline(FrozenEstimator(StandardScaler().fit(NEW)), PACWrap(forest())),
        PACWrap(make_pipeline(StandardScaler(), SelectKBest(k=2), LogisticRegression())),
    ],
    ids=["alone", "stateless", "nothing", "frozen", "inside"],
)
def test_steps_that_learn_nothing_from_them_are_not_warned_of(pipeline: Any) -> None:
    assert pipeline.fit(X, Y).predict(NEW).shape == (400,)


def test_pipelines_around_pipelines_and_searches_are_seen() -> None:
    inner = make_pipeline(SelectKBest(k=2), PACWrap(forest()))
    with pytest.warns(OverlapWarning, match="fitted StandardScaler and SelectKBest on"):
        make_pipeline(StandardScaler(), inner).fit(X, Y)
    tuned = GridSearchCV(PACWrap(forest()), {"max_fpr": [0.1, 0.2]}, cv=StratifiedKFold(2))
    with (
        pytest.warns(OverlapWarning, match="fitted StandardScaler on"),
        pytest.warns(OverlapWarning, match="GridSearchCV around PACWrap"),
    ):
        make_pipeline(StandardScaler(), tuned).fit(X, Y)


def test_calibrating_outside_a_pipeline_is_not_warned_of_although_one_was_imported() -> None:
    class Steps:
        """Not a pipeline, though it has steps and is fitted."""

        steps = 3

        def fit(self) -> Any:
            return PACWrap(forest(), random_state=0).fit(X, Y)

    assert Steps().fit().certificate_.fpr.n == 150


SEARCHED = (
    r"^GridSearchCV around PACWrap chose its settings on the calibration rows too, so the promise does"
    r" not hold; put the search inside: PACWrap\(GridSearchCV\(detector, ...\)\), or call"
    r" best_estimator_.calibrate\(X, y\) with rows that the search has not seen$"
)


def test_a_search_around_it_is_warned_of_once_when_it_fits_the_best() -> None:
    grid = {"detector__n_estimators": [3, 5]}
    search = GridSearchCV(PACWrap(forest(), random_state=0), grid, cv=StratifiedKFold(4))
    for _ in range(2):  # the second time it has a best estimator from before
        with pytest.warns(OverlapWarning, match=SEARCHED) as caught:
            search.fit(X, Y)
        assert len(caught) == 1
    search.best_estimator_.calibrate(NEW, NEW_Y)  # rows it has not seen: nothing to warn of
    GridSearchCV(PACWrap(forest()), grid, cv=StratifiedKFold(4), refit=False).fit(X, Y)


def test_every_search_is_warned_of_by_its_name() -> None:
    search = RandomizedSearchCV(PACWrap(forest()), {"max_fpr": [0.1, 0.2]}, n_iter=2, cv=StratifiedKFold(2))
    with pytest.warns(OverlapWarning, match=r"PACWrap\(RandomizedSearchCV\(detector, ...\)\)"):
        search.fit(X, Y)


def test_a_search_inside_chooses_on_training_rows_alone() -> None:
    seen: list[Any] = []

    def scorer(detector: Any, X: Any, y: Any) -> float:
        seen.append(X)
        return ranking_scorer(detector, X, y)

    search = GridSearchCV(
        OneClassSVM(), {"nu": [0.05, 0.5]}, scoring=scorer, cv=StratifiedKFold(2, shuffle=True)
    )
    wrap = PACWrap(search, train_on="labelled", random_state=0).fit(X, Y)
    assert wrap.detector_.best_params_["nu"] in (0.05, 0.5)
    assert (wrap.certificate_.fpr.n, wrap.certificate_.fnr.n) == (150, 59)
    assert len(np.unique(np.concatenate(seen), axis=0)) == 400 - 150 - 59
    assert wrap.score(NEW, NEW_Y) > 0.3
    classifier = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring="roc_auc")
    assert PACWrap(classifier, random_state=0).fit(X, Y).score(NEW, NEW_Y) > 0.8


def test_a_fold_without_anomalies_is_refused_in_one_sentence() -> None:
    wrap = PACWrap(forest(), random_state=0)
    match = (
        r"none of the 300 rows of this fold is anomalous, so it cannot certify FNR <= 0.05; keep both classes"
        r" in every fold with cv=StratifiedKFold\(5\)\s*$"
    )
    with pytest.raises(InputError, match=match):
        cross_val_score(wrap, X, Y, cv=4, error_score="raise")
    with pytest.warns(FitFailedWarning, match=match):
        scores = cross_val_score(wrap, X, Y, cv=4)
    assert np.isnan(scores).tolist() == [False, False, False, True]
    with pytest.raises(InputError, match=r"is normal, so it cannot certify FPR <= 0\.05"):
        cross_val_score(wrap, X, 1 - Y, cv=KFold(4), error_score="raise")
    with pytest.raises(InputError, match="is anomalous"):
        cross_val_predict(wrap, X, Y, cv=4)


@pytest.mark.slow
def test_the_fold_is_seen_in_another_process_too() -> None:
    with pytest.raises(InputError, match="this fold is anomalous"):
        cross_val_score(PACWrap(forest()), X, Y, cv=4, error_score="raise", n_jobs=2)


def test_folds_with_both_classes_are_what_it_is_scored_on() -> None:
    wrap = PACWrap(forest(), random_state=0)
    results = cross_validate(wrap, X, Y, cv=StratifiedKFold(4), return_estimator=True)
    assert [one.certificate_.fnr.n for one in results["estimator"]] == [75] * 4
    assert (results["test_score"] > 0.3).all()


def test_a_fold_may_lack_a_class_that_nothing_is_promised_of() -> None:
    scores = cross_val_score(PACWrap(forest(), max_fnr=None, random_state=0), X, Y, cv=4)
    assert np.isfinite(scores).all()
    # one row at a time is a fold that is scored, not fitted
    assert set(cross_val_score(PACWrap(distance), X[250:350], Y[250:350], cv=LeaveOneOut())) <= {0.0, 1.0}


def test_outside_folds_one_class_still_promises_on_its_side() -> None:
    wrap = PACWrap(distance).fit(X[:300], Y[:300])
    assert wrap.certificate_.fpr.n == 300


CLOSE = np.r_[RNG.normal(0, 1, (300, 4)), RNG.normal(1.5, 1, (100, 4))]
ABSTAINING: dict[str, Any] = {"max_fpr": 0.02, "max_fnr": 0.05, "overlap": "abstain_always"}


@pytest.mark.parametrize("metric", ["f1", "precision", "recall", "f1_macro"])
def test_a_metric_that_knows_no_abstention_is_refused_where_there_is_one(metric: str) -> None:
    wrap = PACWrap(distance, **ABSTAINING)
    with pytest.raises(InputError, match=r"_score cannot handle abstentions, and \d+ of 100 verdicts are"):
        cross_val_score(wrap, CLOSE, Y, cv=StratifiedKFold(4), scoring=metric, error_score="raise")
    with pytest.warns(UserWarning, match="cannot handle abstentions"):
        assert np.isnan(cross_val_score(wrap, CLOSE, Y, cv=StratifiedKFold(4), scoring=metric)).all()


@pytest.mark.parametrize("metric", ["f1", "precision", "recall", "balanced_accuracy", "f1_macro", RANKED])
def test_metrics_work_where_every_row_is_decided(metric: str) -> None:
    wrap = PACWrap(distance, max_fpr=0.05, max_fnr=0.05, overlap="raise")
    scores = cross_val_score(wrap, X, Y, cv=StratifiedKFold(4), scoring=metric, error_score="raise")
    assert (scores > 0.8).all()


def test_scores_and_accuracy_know_what_an_abstention_is() -> None:
    wrap = PACWrap(distance, **ABSTAINING)
    folds = StratifiedKFold(4)
    ours = cross_val_score(wrap, CLOSE, Y, cv=folds)
    np.testing.assert_allclose(cross_val_score(wrap, CLOSE, Y, cv=folds, scoring="accuracy"), ours)
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        balanced = cross_val_score(wrap, CLOSE, Y, cv=folds, scoring="balanced_accuracy")
    verdicts = cross_val_predict(wrap, CLOSE, Y, cv=folds)
    rights = [[np.mean(verdicts[test][Y[test] == k] == k) for k in (0, 1)] for _, test in folds.split(X, Y)]
    np.testing.assert_allclose(balanced, np.mean(rights, axis=1))


@pytest.mark.skipif(OLD, reason="scikit-learn before 1.9 refuses it")
def test_ranking_by_the_direction_of_the_detector_is_roc_auc() -> None:
    wrap = PACWrap(distance, **ABSTAINING)
    folds = StratifiedKFold(4)
    ranked = cross_val_score(wrap, CLOSE, Y, cv=folds, scoring="roc_auc")
    np.testing.assert_allclose(ranked, cross_val_score(wrap, CLOSE, Y, cv=folds, scoring=ranking_scorer))


def test_a_metric_of_ones_own_sees_every_verdict() -> None:
    def alarms(y: Any, verdicts: Any) -> float:
        return float(f1_score(y, verdicts == 1))

    wrap = PACWrap(distance, **ABSTAINING)
    assert (cross_val_score(wrap, CLOSE, Y, cv=StratifiedKFold(4), scoring=make_scorer(alarms)) > 0.1).all()


@pytest.mark.parametrize("metric", ["f1", RANKED, "accuracy"])
@pytest.mark.parametrize(("normal", "anomaly"), [(1, -1), ("fine", "broken")])
def test_a_metric_is_refused_where_it_would_mistake_the_labels(
    metric: str, normal: object, anomaly: object
) -> None:
    y = np.array([normal, anomaly])[Y]
    wrap = PACWrap(distance, anomaly_label=anomaly, overlap="raise")
    match = "_score takes 1 as an anomaly, as verdicts do, but y marks it by anomaly_label=.*; recode y as 0"
    with pytest.raises(InputError, match=match):
        cross_val_score(wrap, X, y, cv=StratifiedKFold(4), scoring=metric, error_score="raise")
    assert (cross_val_score(wrap, X, y, cv=StratifiedKFold(4)) > 0.8).all()


@pytest.mark.filterwarnings("ignore::pac_wrap.LabelWarning")
@pytest.mark.parametrize("metric", ["f1", RANKED, "accuracy"])
def test_a_metric_is_refused_where_the_greater_of_two_numbers_was_taken_for_the_anomalies(
    metric: str,
) -> None:
    wrap = PACWrap(distance, overlap="raise")
    with pytest.raises(InputError, match=r"_score takes 1 as an anomaly, .* y marks it by anomaly_label=2; "):
        cross_val_score(wrap, X, Y + 1, cv=StratifiedKFold(4), scoring=metric, error_score="raise")
    assert (cross_val_score(wrap, X, Y + 1, cv=StratifiedKFold(4)) > 0.8).all()


def test_scikit_learns_tag_of_a_classifier_asks_for_what_cannot_be_promised() -> None:
    """Decision 32: once these checks pass, it can be a classifier, and folds be stratified by default."""

    class Tagged(PACWrap):
        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.estimator_type = "classifier"
            return tags

    assert not is_classifier(PACWrap(forest()))
    asked = {"check_classifiers_train", "check_classifiers_classes"}
    failed: set[str] = set()
    for tagged, check in estimator_checks_generator(Tagged(LogisticRegression())):
        if check.func.__name__ in asked:
            try:
                check(tagged)
            except Exception:  # whatever it finds
                failed.add(check.func.__name__)
    assert failed == asked
