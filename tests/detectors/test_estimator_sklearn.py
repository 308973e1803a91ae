"""PACWrap among scikit-learn's tools, and rows in every container."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pyod.models.knn import KNN
from scipy import sparse
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils import get_tags

from pac_wrap import Algorithm1, Hold, InputError, OverlapWarning, PACWrap

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(4, 1, (200, 3))]
Y = np.r_[np.zeros(400, dtype=int), np.ones(200, dtype=int)]
NAMES = ["width", "height", "depth"]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


def forest() -> IsolationForest:
    return IsolationForest(n_estimators=10, random_state=0)


def distance(X: Any) -> Any:
    return np.linalg.norm(X, axis=1)


def test_it_is_the_last_step_of_a_pipeline() -> None:
    wrap = PACWrap(OneClassSVM(), random_state=0)
    pipeline = make_pipeline(FrozenEstimator(StandardScaler().fit(X[::2])), wrap).fit(X, Y)
    scaled = pipeline[0].transform(X)
    np.testing.assert_array_equal(pipeline.predict(X), pipeline[-1].predict(scaled))
    np.testing.assert_array_equal(pipeline.decision_function(X), pipeline[-1].decision_function(scaled))
    assert pipeline.score(X, Y) > 0.8


def test_it_is_cross_validated() -> None:
    wrap = PACWrap(forest(), max_fpr=0.1, max_fnr=0.1, random_state=0)
    results = cross_validate(wrap, X, Y, cv=FOLDS, return_estimator=True)
    for estimator, score in zip(results["estimator"], results["test_score"], strict=True):
        assert estimator.certificate_.fpr.n in (133, 134)
        assert score > 0.8


def test_it_is_tuned() -> None:
    search = GridSearchCV(
        PACWrap(forest(), random_state=0),
        {"max_fpr": [0.05, 0.3], "max_fnr": [0.05, 0.2], "detector__n_estimators": [5, 10]},
        cv=FOLDS,
    )
    with pytest.warns(OverlapWarning, match="GridSearchCV around PACWrap"):
        search.fit(X, Y)
    assert len(search.cv_results_["params"]) == 8
    best = search.best_estimator_
    assert best.certificate_.guarantee.max_fpr == search.best_params_["max_fpr"]
    assert len(best.detector_.estimators_) == search.best_params_["detector__n_estimators"]
    assert len(set(search.cv_results_["mean_test_score"].round(12))) > 1


def test_what_is_done_where_classes_overlap_is_tuned() -> None:
    ways = ["abstain", "hold_fnr", Hold("fpr"), Algorithm1(step=0.2)]
    wrap = PACWrap(forest(), random_state=0, max_fpr=0.1, max_fnr=0.1)
    grid = {"overlap": ways, "confidence": [0.8, 0.9], "detector__n_estimators": [5]}
    search = GridSearchCV(wrap, grid, cv=FOLDS)
    with pytest.warns(OverlapWarning, match="GridSearchCV around PACWrap"):
        search.fit(X, Y)
    assert search.cv_results_["param_overlap"].tolist() == [way for _ in range(2) for way in ways]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    assert best.certificate_.overlap.word == getattr(best.overlap, "word", best.overlap)
    assert best.certificate_.confidence >= best.confidence


@pytest.mark.parametrize("overlap", ["hold_fpr", Hold("fnr"), Algorithm1(raised="fpr", step=0.05)], ids=str)
def test_a_strategy_and_a_confidence_are_parameters_like_others(overlap: Any) -> None:
    wrap = PACWrap(forest(), confidence=0.9, overlap=overlap, random_state=0)
    assert wrap.get_params()["overlap"] is overlap
    assert wrap.get_params()["confidence"] == 0.9
    copy = clone(wrap)
    assert copy.get_params(deep=False).keys() == wrap.get_params(deep=False).keys()
    assert (copy.overlap, copy.confidence, copy.delta_fpr) == (overlap, 0.9, None)
    assert copy.fit(X, Y).certificate_ == wrap.fit(X, Y).certificate_
    assert pickle.loads(pickle.dumps(wrap)).certificate_ == wrap.certificate_
    assert "overlap" in repr(wrap)


def test_a_clone_has_the_parameters_and_nothing_learned() -> None:
    wrap = PACWrap(forest(), max_fpr=0.01, anomaly_label=-1, random_state=3, overlap="hold_fpr")
    wrap.fit(X, np.where(Y == 1, -1, 1))
    copy = clone(wrap)
    ours, theirs = wrap.get_params(), copy.get_params()
    assert {k: v for k, v in ours.items() if k != "detector"} == {
        k: v for k, v in theirs.items() if k != "detector"
    }
    assert copy.detector is not wrap.detector
    assert not hasattr(copy, "certificate_")
    assert "max_fpr=0.01" in repr(copy)


def test_set_params_changes_what_the_next_fit_asks_for() -> None:
    wrap = PACWrap(forest()).set_params(max_fnr=None, detector__n_estimators=3).fit(X, Y)
    assert wrap.certificate_.guarantee.max_fnr is None
    assert len(wrap.detector_.estimators_) == 3


@pytest.mark.parametrize(
    "wrap",
    [
        PACWrap(forest(), random_state=0),
        PACWrap(LogisticRegression(), anomaly_label=1, random_state=0),
        PACWrap(FrozenEstimator(forest().fit(X[:200]))),
        PACWrap(distance),
        PACWrap(forest(), random_state=0, overlap="hold_fnr"),
    ],
    ids=["forest", "classifier", "frozen", "function", "one threshold"],
)
def test_a_pickled_wrapper_answers_alike(wrap: PACWrap) -> None:
    wrap.fit(X, Y)
    again = pickle.loads(pickle.dumps(wrap))
    assert again.certificate_ == wrap.certificate_
    np.testing.assert_array_equal(again.predict(X), wrap.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), wrap.decision_function(X))


def test_tags_are_those_of_a_wrapper_that_needs_two_labels() -> None:
    tags = get_tags(PACWrap(forest()))
    assert tags.target_tags.required
    assert tags.classifier_tags is not None
    assert not tags.classifier_tags.multi_class
    assert tags.input_tags.sparse
    assert not get_tags(PACWrap(make_pipeline(StandardScaler(), forest()))).input_tags.allow_nan
    # predict may abstain, so it is neither of scikit-learn's kinds
    assert not is_classifier(PACWrap(forest()))
    assert not is_outlier_detector(PACWrap(forest()))
    assert get_tags(PACWrap("precomputed")).target_tags.required
    assert not get_tags(PACWrap(forest(), max_fnr=None)).target_tags.required


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


def frame(kind: str, columns: list[str], rows: Any = X) -> Any:
    return FRAMES[kind](dict(zip(columns, rows.T, strict=True)))


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("detector", [forest(), LogisticRegression()], ids=["forest", "classifier"])
def test_frames_give_what_arrays_give_and_keep_their_names(kind: str, detector: Any) -> None:
    wrap = PACWrap(detector, random_state=0).fit(frame(kind, NAMES), Y)
    plain = PACWrap(detector, random_state=0).fit(X, Y)
    assert wrap.feature_names_in_.tolist() == NAMES
    assert wrap.detector_.feature_names_in_.tolist() == NAMES
    assert wrap.n_features_in_ == plain.n_features_in_ == 3
    assert not hasattr(plain, "feature_names_in_")
    # a frame lies column by column in memory, so sums may differ in the last digit
    np.testing.assert_allclose(wrap.decision_function(frame(kind, NAMES)), plain.decision_function(X))
    np.testing.assert_array_equal(wrap.predict(frame(kind, NAMES)), plain.predict(X))


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("method", ["predict", "calibrate"])
@pytest.mark.parametrize("columns", [["height", "width", "depth"], ["width", "height", "weight"]])
def test_other_names_or_another_order_are_refused(kind: str, method: str, columns: list[str]) -> None:
    wrap = PACWrap(forest(), random_state=0).fit(frame(kind, NAMES), Y)
    arguments = (frame(kind, columns), Y)[: 2 if method == "calibrate" else 1]
    with pytest.raises(InputError, match="feature names should match"):
        getattr(wrap, method)(*arguments)


NAMELESS: dict[str, Any] = {
    "LOF": LocalOutlierFactor(novelty=True),
    "LOF in a pipeline": make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True)),
    "LOF in a search": GridSearchCV(LocalOutlierFactor(novelty=True), {"n_neighbors": [20]}),
    "PyOD": KNN(),
    "function": lambda rows: np.asarray(rows)[:, 0],
    "frozen": FrozenEstimator(LocalOutlierFactor(novelty=True).fit(frame("pandas", NAMES, X[:99] + 0.1))),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("name", NAMELESS)
def test_names_are_compared_where_the_detector_does_not(name: str, kind: str) -> None:
    wrap = PACWrap(NAMELESS[name], random_state=0).fit(frame(kind, NAMES), Y)  # and warns of no lost names
    assert wrap.predict(frame(kind, NAMES)).shape == Y.shape
    wrap.calibrate(frame(kind, NAMES, X + 0.2), Y)
    start = r"^the feature names should match those that were passed during fit, but X "
    for columns, said in (
        (["height", "width", "depth"], "has them in another order; pass its columns in the order width, hei"),
        (["width", "height", "weight"], "lacks depth and adds weight; pass its columns in the order width"),
        (["width", "height"], "lacks depth; pass"),
        ([*NAMES, "weight"], "adds weight; pass"),
    ):
        other = frame(kind, columns, np.c_[X, X[:, 0]][:, : len(columns)])
        for method in (wrap.predict, wrap.decision_function, wrap.predict_set):
            with pytest.raises(InputError, match=start + said):
                method(other)
        if name != "function":  # which was trained on no names, and may be calibrated on others
            with pytest.raises(InputError, match=start + said):
                wrap.calibrate(other, Y)
    if name == "frozen":
        with pytest.raises(InputError, match=start + "has them in another order"):
            PACWrap(NAMELESS[name]).fit(frame(kind, ["height", "width", "depth"]), Y)
    else:  # what has no names any more is compared with none
        assert not hasattr(wrap.fit(X, Y), "feature_names_in_")


def test_rows_that_come_as_a_query_or_from_arrow_are_read() -> None:
    table = pl.DataFrame(dict(zip(NAMES, X.T, strict=True)))
    expected = PACWrap(forest(), random_state=0).fit(table, Y).predict(table)
    for given in (table.lazy(), table.to_arrow()):
        wrap = PACWrap(forest(), random_state=0).fit(given, Y)
        assert wrap.feature_names_in_.tolist() == NAMES
        np.testing.assert_array_equal(wrap.predict(given), expected)
        assert wrap.score(given, Y) == PACWrap(forest(), random_state=0).fit(table, Y).score(table, Y)
        assert wrap.decision_function(given).shape == Y.shape
    grouped = table.with_columns(tenant=pl.lit("a"))
    wrap = PACWrap(forest(), random_state=0).fit(grouped.lazy(), Y, groups="tenant")
    assert wrap.predict(grouped.to_arrow()).shape == Y.shape


def test_names_that_are_lost_or_no_texts_are_said() -> None:
    wrap = PACWrap(lambda rows: np.asarray(rows)[:, 0]).fit(frame("pandas", NAMES), Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but PACWrap was fitted with"):
        wrap.predict(X)
    rows = frame("pandas", NAMES).set_axis(["width", "height", 3], axis=1)
    with pytest.raises(InputError, match="only supported if all input features have string names"):
        PACWrap(forest()).fit(rows, Y)


def test_a_trained_detector_that_compares_no_names_is_compared_with() -> None:
    trained = LocalOutlierFactor(novelty=True).fit(frame("pandas", NAMES, X + 0.1))
    with pytest.raises(InputError, match="X has them in another order; pass its columns in the order width"):
        PACWrap(trained).calibrate(frame("pandas", ["height", "width", "depth"]), Y)


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_in_another_order_or_more_of_them_pass_if_the_detector_takes_them_by_name(kind: str) -> None:
    by_name = ColumnTransformer([("scaled", StandardScaler(), ["depth", "width"])])
    detector = make_pipeline(by_name, forest())
    wrap = PACWrap(detector, random_state=0).fit(frame(kind, NAMES), Y)
    expected = wrap.decision_function(frame(kind, NAMES))
    rows = np.c_[X[:, ::-1], X[:, 0] ** 2]
    other = frame(kind, ["depth", "height", "width", "extra"], rows)
    np.testing.assert_array_equal(wrap.decision_function(other), expected)
    np.testing.assert_array_equal(wrap.predict(other), wrap.predict(frame(kind, NAMES)))
    with pytest.warns(OverlapWarning, match="200 calibration rows are also in the training data"):
        wrap.calibrate(other, Y)
    with pytest.raises(InputError, match=r"cannot score these rows: .*width"):
        wrap.predict(frame(kind, ["depth", "height", "breadth"]))
    trained = detector.fit(frame(kind, NAMES), Y)
    np.testing.assert_allclose(
        PACWrap(trained).calibrate(other, Y).decision_function(frame(kind, NAMES)),
        PACWrap(trained).calibrate(frame(kind, NAMES), Y).decision_function(other),
    )


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_in_another_order_are_refused_for_a_detector_that_does_not_look(kind: str) -> None:
    wrap = PACWrap(KNN(), random_state=0).fit(frame(kind, NAMES), Y)
    with pytest.raises(InputError, match="feature names should match"):
        wrap.predict(frame(kind, NAMES[::-1]))
    with pytest.raises(InputError, match="X has 2 features"):
        PACWrap(KNN(), random_state=0).fit(X, Y).predict(X[:, :2])


def test_labels_come_in_a_series_with_any_index() -> None:
    index = np.arange(600)[::-1] % 7
    table = frame("pandas", NAMES).set_index(index)
    wrap = PACWrap(forest(), random_state=0).fit(table, pd.Series(Y, index=index))
    assert wrap.certificate_ == PACWrap(forest(), random_state=0).fit(X, Y).certificate_
    columns = PACWrap(forest(), random_state=0).fit(frame("polars", NAMES), pl.Series(Y))
    assert columns.certificate_ == wrap.certificate_


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_give_what_dense_rows_give(form: Any) -> None:
    detector = OneClassSVM()
    wrap = PACWrap(detector, random_state=0).fit(form(X), Y)
    plain = PACWrap(detector, random_state=0).fit(X, Y)
    np.testing.assert_allclose(wrap.decision_function(form(X)), plain.decision_function(X))
    np.testing.assert_array_equal(wrap.predict(form(X)), plain.predict(X))
    assert wrap.n_features_in_ == 3


def test_lists_and_texts_are_rows_too() -> None:
    lists = PACWrap(forest(), random_state=0).fit(X.tolist(), Y.tolist())
    assert lists.certificate_ == PACWrap(forest(), random_state=0).fit(X, Y).certificate_
    words = np.array(["ok fine good", "bad alarm fire"])
    texts = [f"{words[label]} {number}" for number, label in enumerate(Y)]
    detector = make_pipeline(CountVectorizer(max_features=6), OneClassSVM())
    wrap = PACWrap(detector, random_state=0).fit(texts, Y)
    assert wrap.predict(["ok fine good", "bad alarm fire"])[1] != 0
    assert wrap.certificate_.fnr.n == 200


def test_rows_of_a_function_may_have_any_shape() -> None:
    images = RNG.normal(0, 1, (600, 4, 4)) + 3.0 * Y[:, None, None]
    wrap = PACWrap(lambda X: np.asarray(X).mean(axis=(1, 2))).fit(images, Y)
    assert wrap.score(images, Y) > 0.8
    records = [{"value": value} for value in X[:, 0]]
    named = PACWrap(lambda X: np.array([record["value"] for record in X])).fit(records, Y)
    assert named.certificate_.fpr.n == 400
    assert PACWrap("precomputed").fit(X[:, 0], Y).certificate_ == named.certificate_
