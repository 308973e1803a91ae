"""PACClassifier: what it promises is what calibrate_classes does with the classifier's scores."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from pac_wrap import (
    DetectorError,
    InputError,
    OverlapWarning,
    PACClassifier,
    VacuousWarning,
    calibrate_classes,
)

RNG = np.random.default_rng(2)
NAMES = np.array(["ant", "bee", "cat"])
Y = np.repeat(NAMES, 500)
X = RNG.normal(0, 1, (1500, 2)) + np.repeat([[0, 0], [5, 0], [0, 5]], 500, axis=0)
TRAIN, REST = np.arange(0, 1500, 2), np.arange(1, 1500, 2)


@pytest.mark.parametrize("classifier", [LogisticRegression(), RandomForestClassifier(20), SVC()])
def test_it_certifies_the_scores_of_its_classifier(classifier: BaseEstimator) -> None:
    wrap = PACClassifier(classifier.fit(X[TRAIN], Y[TRAIN]), max_error=0.1).calibrate(X[REST], Y[REST])
    name = "decision_function" if hasattr(classifier, "decision_function") else "predict_proba"
    scores = getattr(classifier, name)(X[REST])
    assert wrap.certificate_ == calibrate_classes(scores, Y[REST], 0.1, classes=classifier.classes_)
    np.testing.assert_array_equal(
        wrap.predict_set(X), wrap.certificate_.label_sets(wrap.decision_function(X))
    )
    assert wrap.score(X, Y) > 0.5


def test_fit_trains_on_one_part_and_calibrates_on_the_other() -> None:
    wrap = PACClassifier(LogisticRegression(), random_state=0, calibration_size=0.4).fit(X, Y)
    assert [one.n for one in wrap.certificate_.clauses] == [200, 200, 200]
    assert wrap.classes_.tolist() == NAMES.tolist()
    assert set(wrap.predict(X)) <= {-2, -1, 0, 1, 2}
    again = PACClassifier(LogisticRegression(), random_state=0, calibration_size=0.4).fit(X, Y)
    assert again.certificate_ == wrap.certificate_
    frozen = PACClassifier(FrozenEstimator(wrap.classifier_)).fit(X[REST], Y[REST])
    assert [one.n for one in frozen.certificate_.clauses] == [250, 250, 250]
    with pytest.warns(OverlapWarning, match="also in the training data"):
        wrap.calibrate(X, Y)


def test_two_classes_with_one_score_have_two_columns() -> None:
    rows = Y != "cat"
    wrap = PACClassifier(LogisticRegression(), random_state=0).fit(X[rows], Y[rows])
    scores = wrap.decision_function(X)
    np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])


def test_severities_give_every_row_a_class() -> None:
    wrap = PACClassifier(LogisticRegression(), severities=["cat", "ant", "bee"], random_state=0).fit(X, Y)
    assert set(wrap.predict(X)) == {0, 1, 2}
    assert wrap.certificate_.severities == (2, 0, 1)


def test_too_few_labels_are_said() -> None:
    with pytest.warns(VacuousWarning, match="'ant': 15 labels, too few"):
        PACClassifier(LogisticRegression(), random_state=0).fit(X[::17], Y[::17])


def test_a_classifier_that_has_changed_since_is_refused() -> None:
    wrap = PACClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    wrap.classifier_.fit(-X, Y)
    with pytest.raises(InputError, match="has changed since it was calibrated"):
        wrap.predict(X)
    careless = PACClassifier(LogisticRegression(), score_tolerance=None, random_state=0).fit(X, Y)
    careless.classifier_.fit(-X, Y)
    assert careless.predict(X).size == len(X)


def test_rows_need_not_be_a_table() -> None:
    words = [f"{name} {row}" for row, name in enumerate(Y)]
    pipeline = make_pipeline(CountVectorizer(analyzer="char"), LogisticRegression())
    wrap = PACClassifier(pipeline, random_state=0).fit(words, Y)
    assert wrap.predict(["bee 7"])[0] == 1


class Batch(ClassifierMixin, BaseEstimator):
    """Scores that depend on the batch they are made in."""

    def fit(self, rows: np.ndarray, y: np.ndarray) -> "Batch":
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows - rows.mean(axis=0))


class Silent(Batch):
    """No scores at all."""

    predict_proba = property()


def test_what_cannot_be_certified_is_refused() -> None:
    two = Y != "cat"
    with pytest.raises(InputError, match="depend on the other rows"):
        PACClassifier(Batch()).fit(X[two], Y[two])
    with pytest.raises(DetectorError, match="a column for each class"):
        PACClassifier(Silent()).fit(X, Y)
    with pytest.raises(NotFittedError, match="not calibrated yet"):
        PACClassifier(LogisticRegression()).predict(X)
    with pytest.raises(InputError, match="cannot be trained on these rows"):
        PACClassifier(LogisticRegression()).fit(X[:4], Y[:4])
    with pytest.raises(InputError, match="calibration_size must lie"):
        PACClassifier(LogisticRegression(), calibration_size=2.0).fit(X, Y)
    with pytest.raises(InputError, match="rows to train on and rows to calibrate on"):
        PACClassifier(LogisticRegression()).fit(X[:1], Y[:1])
    with pytest.raises(InputError, match="target y is None"):
        PACClassifier(LogisticRegression()).fit(X, None)  # type: ignore[arg-type]
    wrap = PACClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    with pytest.raises(InputError, match="features"):
        wrap.predict(X[:, :1])
    with pytest.raises(InputError, match="do not fit together"):
        wrap.calibrate(X, Y[1:])
