"""PACClassifier: an estimator that trains and calibrates a classifier of several classes."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import ClassifierTags, Tags, check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pac_wrap.base.arguments import Scores, as_array, check_rate
from pac_wrap.detectors import safety
from pac_wrap.detectors.estimator import aligned, check_features, collected
from pac_wrap.detectors.scores import UnfittedError, class_scores, is_estimator, take_rows
from pac_wrap.detectors.training import check_chosen, divide_classes, untrained
from pac_wrap.errors import InputError
from pac_wrap.method.classes import calibrate_classes


class PACClassifier(MetaEstimatorMixin, BaseEstimator):
    """Wrap any classifier so that the errors of its label sets are certified for each class.

    `predict` gives the place in `classes_` of the only possible class, -1 if several are possible, and -2 if
    none is. With the chosen confidence, the share of a class's points on which that class is ruled out is at
    most its ceiling.

    Parameters
    ----------
    classifier : scikit-learn classifier
        A classifier whose `decision_function` or `predict_proba` has a column for each class. A
        FrozenEstimator is used as it is, and `fit` only calibrates.
    max_error, delta, confidence, severities : optional
        The ceiling of each class and its confidence, as in `calibrate_classes`.
    calibration_size : float
        The share of each class that `fit` sets aside to calibrate.
    score_tolerance, random_state : optional
        As in `PACWrap`.

    Attributes
    ----------
    classifier_ : object
        The classifier that gives the scores, trained by `fit` unless it is frozen.
    classes_ : ndarray
        The classes, in the order of its columns.
    certificate_ : ClassCertificate
        The promises about the classes.
    notes_ : tuple of str
        Further observations: repeated rows, and scores that depend on the size of their batch.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["ant", "bee", "cat"], 400)
    >>> X = rng.normal(0, 1, (1200, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], 400, axis=0)
    >>> wrap = PACClassifier(LogisticRegression(), random_state=0).fit(X, y)
    >>> wrap.predict([[0, 0], [6, 0], [3, 3]])
    array([ 0,  1, -2])
    """

    _witness: safety.Witness | None = None
    _training_rows: safety.TrainingRows | None = None

    def __init__(
        self,
        classifier: Any,
        *,
        max_error: float | Mapping[Any, float | None] = 0.05,
        delta: float | None = None,
        confidence: float | None = None,
        severities: Sequence[object] | None = None,
        calibration_size: float = 0.5,
        score_tolerance: float | None = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.max_error = max_error
        self.delta = delta
        self.confidence = confidence
        self.severities = severities
        self.calibration_size = calibration_size
        self.score_tolerance = score_tolerance
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train the classifier on one part of each class, calibrate it on the other, and return this object.

        Parameters
        ----------
        X, y : array-like
            The rows, as the classifier takes them, and their classes.

        Raises
        ------
        InputError
            If a parameter, the rows or the classes are wrong, or if scores depend on the rest of the batch.
        """
        X, y = self._rows(X, y)
        check_features(self, X, reset=True)
        if isinstance(self.classifier, FrozenEstimator):
            return self._calibrate(self.classifier, X, y, None)
        random = check_random_state(self.random_state)
        trained, left = divide_classes(y, check_rate("calibration_size", self.calibration_size), random)
        classifier = untrained(self.classifier, None if self.random_state is None else random)
        rows = take_rows(X, trained)
        try:
            classifier.fit(rows, y[trained])
        except ValueError as error:
            raise InputError(f"the classifier cannot be trained on these rows: {error}") from error
        check_chosen(classifier)
        known = safety.TrainingRows.of(rows)
        return self._calibrate(classifier, take_rows(X, left), y[left], known, "divided")

    def calibrate(self, X: Any, y: ArrayLike) -> Self:
        """Calibrate again, on labelled rows that did not train the classifier, and return this object.

        It replaces `certificate_`. The parameters are those of `fit`, and so are the errors.
        """
        X, y = self._rows(X, y)
        rows = self._training_rows
        check_features(self, X, reset=rows is None)
        return self._calibrate(self.classifier if rows is None else self.classifier_, X, y, rows)

    def decision_function(self, X: Any) -> Scores:
        """Return the score of each class for each row, higher for rows more like the class.

        The parameters are those of `fit`.
        """
        if not hasattr(self, "certificate_"):
            raise UnfittedError(
                "this PACClassifier is not calibrated yet; call fit(X, y), or calibrate(X, y) on a fitted"
                " classifier"
            )
        X = collected(X)
        check_features(self, X, reset=False)
        score = _Projected(self.classifier_)
        _ = score(X) if self._witness is None else self._witness.scores_of(X, self.classifier_, score)
        return score.matrix

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the place in `classes_` of each row's class; -1 if several are possible, -2 if none is.

        The parameters are those of `fit`.
        """
        scores = self.decision_function(X)
        return self.certificate_.verdicts(scores)

    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Return for each row which classes are possible, in the order of `classes_`.

        The parameters are those of `fit`.
        """
        scores = self.decision_function(X)
        return self.certificate_.label_sets(scores)

    def score(self, X: Any, y: ArrayLike) -> float:
        """Return the share of rows with the correct class; an undecided row does not count as correct.

        The parameters are those of `fit`.
        """
        X, y = self._rows(X, y)
        found = self.predict(X)
        return float(np.mean((found >= 0) & (self.classes_[np.maximum(found, 0)] == y)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags()
        if is_estimator(self.classifier):
            tags.input_tags = get_tags(self.classifier).input_tags
        return tags

    def _rows(self, X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
        if X is None or y is None:
            raise InputError(
                "PACClassifier requires y to be passed, but the target y is None; pass the labels of X"
            )
        safety.check_tolerance(self.score_tolerance)
        X, y = aligned(collected(X), y)
        try:
            classes = as_array(y, "y")
            classes = classes.ravel() if classes.ndim == 2 and classes.shape[1] == 1 else classes
            check_classification_targets(classes)
        except (ValueError, TypeError) as error:
            raise InputError(f"X and y do not fit together: {error}") from error
        return X, classes

    def _calibrate(
        self,
        classifier: Any,
        X: Any,
        y: NDArray[Any],
        rows: safety.TrainingRows | None,
        kind: safety.Kind = "calibration",
    ) -> Self:
        check_is_fitted(classifier)
        classes = np.asarray(classifier.classes_)
        score = _Projected(classifier)
        projected, scores = score(X), score.matrix
        witness, notes = safety.check_batches(classifier, score, X, projected, self.score_tolerance)
        notes += safety.check_training_rows(rows, classifier, X, scores[:, 0], kind)
        self.certificate_ = calibrate_classes(
            scores,
            y,
            self.max_error,
            delta=self.delta,
            confidence=self.confidence,
            classes=classes.tolist(),
            severities=self.severities,
        )
        self.classifier_, self.classes_ = classifier, classes
        self._witness, self.notes_, self._training_rows = witness, notes, rows or self._training_rows
        return self


class _Projected:
    """A number per row that changes with any class score: no weight is a sum of other weights."""

    matrix: Scores

    def __init__(self, classifier: Any) -> None:
        self._classifier = classifier

    def __call__(self, X: Any) -> Scores:
        self.matrix = class_scores(self._classifier, X)
        return np.asarray(self.matrix @ np.sqrt(np.arange(2.0, 2.0 + self.matrix.shape[1])))
