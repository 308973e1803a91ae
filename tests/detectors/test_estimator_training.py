"""What fit trains on, what it sets aside, and what it leaves untouched."""

from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, clone
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pac_wrap import InputError, OverlapWarning, PACWrap
from pac_wrap.detectors.safety import row_digests
from pac_wrap.detectors.training import TrainOn
from pac_wrap.scoring import decided_share_scorer

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(3, 1, (100, 3))]
Y = np.r_[np.zeros(400, dtype=int), np.ones(100, dtype=int)]
NEW = RNG.normal(0, 1, (50, 3))


class Unlabelled(OutlierMixin, BaseEstimator):
    """Keeps what it was trained on, and would rather not see labels."""

    def fit(self, X: Any, y: Any = None) -> Self:
        self.X_, self.y_ = X, y
        return self

    def score_samples(self, X: Any) -> Any:
        return -np.asarray(X).sum(axis=1)


class Labelled(Unlabelled):
    """The same, but its fit demands labels."""

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]  # demands y
        return super().fit(X, y)


class Classifying(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it was trained on."""

    def fit(self, X: Any, y: Any = None) -> Self:
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def decision_function(self, X: Any) -> Any:
        return np.asarray(X).sum(axis=1)


def row_sums(rows: Any) -> Any:
    return np.asarray(rows).sum(axis=1)


def labels_of(rows: Any) -> list[int]:
    """Return the labels of rows taken from X, in order."""
    known = dict(zip(row_digests(X).tolist(), Y.tolist(), strict=True))
    return [known[digest] for digest in row_digests(rows).tolist()]


@pytest.mark.parametrize(
    ("detector", "train_on", "trained", "sees_labels"),
    [
        (Unlabelled(), "auto", (200, 0), False),
        (Unlabelled(), "normal", (200, 0), False),
        (Unlabelled(), "unlabelled", (200, 50), False),
        (Unlabelled(), "labelled", (200, 50), True),
        (Labelled(), "auto", (200, 50), True),
        (Labelled(), "labelled", (200, 50), True),
        (Classifying(), "auto", (200, 50), True),
        (Classifying(), "labelled", (200, 50), True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseEstimator) else str(value),
)
def test_each_way_of_training_shows_the_detector_its_rows_and_no_more(
    detector: Any, train_on: TrainOn, trained: tuple[int, int], sees_labels: bool
) -> None:
    wrap = PACWrap(detector, train_on=train_on, calibration_size=0.5, random_state=0).fit(X, Y)
    labels = labels_of(wrap.detector_.X_)
    assert (labels.count(0), labels.count(1)) == trained
    if sees_labels:
        assert wrap.detector_.y_.tolist() == labels
    else:
        assert wrap.detector_.y_ is None
    assert (wrap.certificate_.fpr.n, wrap.certificate_.fnr.n) == (200, 100 - trained[1])


def test_detectors_see_zeros_and_ones_whatever_the_labels_are() -> None:
    names = np.where(Y == 1, "broken", "fine")
    wrap = PACWrap(Labelled(), anomaly_label="broken", random_state=0).fit(X, names)
    assert wrap.detector_.y_.tolist() == labels_of(wrap.detector_.X_)


@pytest.mark.parametrize(("size", "normals", "anomalies"), [(0.1, 40, 10), (0.25, 100, 25), (0.9, 360, 90)])
def test_calibration_size_is_the_share_set_aside_of_each_class(
    size: float, normals: int, anomalies: int
) -> None:
    labelled = PACWrap(Labelled(), calibration_size=size).fit(X, Y).certificate_
    assert (labelled.fpr.n, labelled.fnr.n) == (normals, anomalies)
    unlabelled = PACWrap(Unlabelled(), calibration_size=size).fit(X, Y).certificate_
    assert (unlabelled.fpr.n, unlabelled.fnr.n) == (normals, 100)


def test_no_row_both_trains_and_calibrates() -> None:
    asked: list[Any] = []

    class Listening(Unlabelled):
        def score_samples(self, X: Any) -> Any:
            asked.append(X)
            return super().score_samples(X)

    wrap = PACWrap(Listening(), train_on="unlabelled", random_state=0).fit(X, Y)
    calibrated = asked[0]
    together = np.concatenate([row_digests(wrap.detector_.X_), row_digests(calibrated)])
    assert sorted(together.tolist()) == sorted(row_digests(X).tolist())


@pytest.mark.parametrize(
    "detector",
    [IsolationForest(n_estimators=5), make_pipeline(StandardScaler(), IsolationForest(n_estimators=5))],
    ids=["bare", "pipeline"],
)
def test_a_seed_repeats_everything_even_an_unseeded_detector(detector: Any) -> None:
    runs = [PACWrap(detector, random_state=seed).fit(X, Y) for seed in (0, 0, 1)]
    scores = [run.decision_function(NEW) for run in runs]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert runs[0].certificate_ == runs[1].certificate_
    assert not np.array_equal(scores[0], scores[2])


def test_a_detector_keeps_its_own_seed() -> None:
    wrap = PACWrap(IsolationForest(n_estimators=5, random_state=7), random_state=0).fit(X, Y)
    assert wrap.detector_.random_state == 7


def test_without_a_seed_splits_differ() -> None:
    first, second = (PACWrap(Unlabelled()).fit(X, Y).detector_.X_ for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("state", [np.random.RandomState(3), 3], ids=["RandomState", "int"])
def test_seeds_of_both_kinds_are_taken(state: Any) -> None:
    taken = PACWrap(Unlabelled(), random_state=state).fit(X, Y).detector_.X_
    np.testing.assert_array_equal(taken, PACWrap(Unlabelled(), random_state=3).fit(X, Y).detector_.X_)


def test_the_given_detector_is_copied_and_never_trained() -> None:
    forest = IsolationForest(n_estimators=5)
    wrap = PACWrap(forest, random_state=0).fit(X, Y)
    assert wrap.detector is forest
    assert wrap.detector_ is not forest
    assert not hasattr(forest, "estimators_")
    assert forest.random_state is None


def test_fitting_a_fitted_detector_trains_a_copy() -> None:
    fitted = LogisticRegression().fit(X[::2], Y[::2])
    coefficients = fitted.coef_.copy()
    wrap = PACWrap(fitted, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(fitted.coef_, coefficients)
    assert not np.array_equal(wrap.detector_.coef_, coefficients)


def test_detectors_without_parameters_are_copied_too() -> None:
    class Plain:
        trained = False

        def fit(self, X: Any) -> "Plain":
            self.trained = True
            return self

        def decision_function(self, X: Any) -> Any:
            return X.sum(axis=1)

    plain = Plain()
    wrap = PACWrap(plain, polarity="higher", random_state=0).fit(X, Y)
    assert wrap.detector_.trained
    assert not plain.trained


@pytest.mark.parametrize("count", [1, 7, 200])
def test_calibrating_on_training_rows_warns_with_their_number(count: int) -> None:
    wrap = PACWrap(Unlabelled(), random_state=0).fit(X, Y)
    rows = np.r_[wrap.detector_.X_[:count], NEW]
    with pytest.warns(OverlapWarning, match=rf"^{count} calibration rows are also in the training data"):
        wrap.calibrate(rows, np.zeros(len(rows), dtype=int))


def test_other_containers_and_types_do_not_hide_training_rows() -> None:
    whole = X.astype(np.float32)
    wrap = PACWrap(Unlabelled(), random_state=0).fit(whole, Y)
    with pytest.warns(OverlapWarning, match="^5 "):
        wrap.calibrate(wrap.detector_.X_[:5].astype(np.float64).tolist(), [0] * 5)


def test_new_rows_and_unknown_training_rows_do_not_warn() -> None:
    y = np.zeros(50, dtype=int)
    PACWrap(Unlabelled(), random_state=0).fit(X, Y).calibrate(NEW, y)
    forest = IsolationForest(n_estimators=5).fit(NEW)
    PACWrap(forest).calibrate(NEW, y)
    PACWrap(FrozenEstimator(forest)).fit(NEW, y)


def test_records_that_repeat_within_the_data_are_counted_by_fit() -> None:
    twice, y = np.r_[X[:400], X[:400]], np.zeros(800, dtype=int)
    wrap = PACWrap(Unlabelled(), max_fnr=None, random_state=0).fit(twice, y)  # and warns of nothing
    # a record that trains once calibrates once: its other copy
    _, copies = np.unique(row_digests(wrap.detector_.X_), return_counts=True)
    once = np.count_nonzero(copies == 1)
    assert 0 < once < 400
    (note,) = wrap.certificate_.provenance.notes
    assert note.startswith(f"{once} of 400 calibration rows equal a training row: this is harmless")
    assert type(wrap.certificate_).from_json(wrap.certificate_.to_json()).provenance.notes == (note,)
    with pytest.warns(OverlapWarning, match=f"^{copies.size} calibration rows are also in the training data"):
        wrap.calibrate(np.delete(twice, np.unique(twice[:, 0], return_index=True)[1], axis=0), y[:400])


@pytest.mark.parametrize(
    ("rows", "detector", "missing"),
    [
        ([0], Unlabelled(), "n_samples = 1, 0 of them anomalous"),
        ([450], Unlabelled(), "n_samples = 1, 1 of them anomalous"),
        (list(range(400, 500)), Unlabelled(), r"normal ones\).* got n_samples = 100, 100 of them"),
        ([0], Labelled(), r"of both classes\)"),
    ],
    ids=["one normal", "one anomaly", "anomalies only", "one labelled"],
)
def test_too_few_rows_to_train_and_calibrate_are_refused(
    rows: list[int], detector: Any, missing: str
) -> None:
    with pytest.raises(InputError, match=missing):
        PACWrap(detector, random_state=0).fit(X[rows], Y[rows])


@pytest.mark.parametrize(
    ("detector", "name", "trained"),
    [
        (IsolationForest(n_estimators=5), "IsolationForest", (200, 0)),
        (LogisticRegression(), "LogisticRegression", (200, 41)),
        (make_pipeline(StandardScaler(), LogisticRegression()), "Pipeline of LogisticRegression", (200, 41)),
        (FrozenEstimator(LogisticRegression().fit(X, Y)), "FrozenEstimator of LogisticRegression", None),
        (row_sums, "row_sums", None),
    ],
    ids=["forest", "classifier", "pipeline", "frozen", "function"],
)
def test_the_certificate_says_what_was_trained_on_how_many_rows(
    detector: Any, name: str, trained: tuple[int, int] | None
) -> None:
    wrap = PACWrap(detector, random_state=0).fit(X, Y)
    found, scores = wrap.certificate_.provenance, wrap.decision_function(X)
    assert found is not None
    assert (found.detector, found.trained) == (name, trained)
    assert found.lowest is not None
    assert found.lowest >= scores.min()
    if trained is None:
        assert (found.lowest, found.highest) == (scores.min(), scores.max())
        return
    told = " ".join(str(wrap.certificate_).split())
    assert f"detector {name}, trained on {trained[0]} normal and {trained[1]} anomalous rows" in told
    assert f"anomalous {100 - trained[1]} labels" in told
    again = wrap.calibrate(NEW + 9, np.ones(50)).certificate_.provenance
    assert again is not None
    assert again.trained == trained


def test_scores_computed_before_have_no_detector() -> None:
    found = PACWrap("precomputed").fit(X[:, 0], Y).certificate_.provenance
    assert found is not None
    assert (found.detector, found.trained) == (None, None)


@pytest.mark.parametrize("container", [np.asarray, np.ndarray.tolist, pd.DataFrame])
def test_without_labels_all_rows_count_as_normal_where_only_the_fpr_is_promised(container: Any) -> None:
    rows = X[:400]
    wrap = PACWrap(IsolationForest(n_estimators=5, random_state=0), max_fnr=None, random_state=0)
    labelled = clone(wrap).fit(container(rows), np.zeros(400, dtype=int)).certificate_
    assert wrap.fit(container(rows)).certificate_ == labelled
    (note,) = wrap.certificate_.provenance.notes
    assert note.startswith("there were no labels, so all rows count as normal")
    assert labelled.provenance.notes is None
    calibrated = PACWrap(wrap.detector_, max_fnr=None).calibrate(container(NEW))
    assert calibrated.certificate_.fpr.n == len(NEW)
    assert calibrated.certificate_.provenance.notes == (note,)
    # whatever the label of anomalies is called, and through scikit-learn's tools
    named = clone(wrap).set_params(anomaly_label="fraud").fit(container(rows))
    assert named.certificate_ == labelled
    shares = cross_val_score(wrap, rows, scoring=decided_share_scorer, cv=2)
    assert (shares == 1.0).all()


def test_labels_are_needed_where_the_fnr_is_promised() -> None:
    for method in (PACWrap(Unlabelled()).fit, PACWrap(Unlabelled().fit(X)).calibrate):
        with pytest.raises(InputError, match=r"requires y to be passed, .* or use max_fnr=None, which"):
            method(X)
    with pytest.raises(InputError, match="X must be a table of rows, got None"):
        PACWrap(Unlabelled(), max_fnr=None).fit(None)
    with pytest.raises(InputError, match=r"requires y to be passed"):
        PACWrap(Unlabelled(), max_fnr=None, random_state=0).fit(X[:400]).score(X, None)  # type: ignore[arg-type]  # on purpose
