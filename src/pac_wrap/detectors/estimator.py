"""PACWrap: a detector trained and calibrated the scikit-learn way; no statistics inside."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import ClassifierTags, Tags, check_random_state, get_tags

from pac_wrap.base.arguments import as_class_mask, check_choice, check_rate
from pac_wrap.detectors.predictor import CertifiedPredictor
from pac_wrap.detectors.rows import (
    TrainingRows,
    split_rows,
    take_rows,
    warn_of_pipeline,
    warn_of_training_rows,
)
from pac_wrap.detectors.scores import Polarity, is_estimator, takes_labels, untrained
from pac_wrap.detectors.steadiness import check_batches, check_tolerance
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request, calibrate
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.promise import Guarantee

TrainOn = Literal["auto", "normal", "unlabelled", "labelled"]


class PACWrap(MetaEstimatorMixin, CertifiedPredictor):
    """Verdicts whose error rates are certified, around any anomaly detector.

    `predict` gives 1 (anomaly), 0 (normal) or -1 (abstains). With the chosen confidence, at most `max_fpr` of
    future normal points are called anomalies and at most `max_fnr` of future anomalies are called normal.

    Parameters
    ----------
    detector : scikit-learn or PyOD detector, classifier, torch module, function, or "precomputed"
        What gives the scores; see `anomaly_scores`. A detector that cannot be trained (a function, a torch
        module, a FrozenEstimator, "precomputed") is taken as it is, and `fit` only calibrates.
    max_fpr, max_fnr : float or None
        The promised ceilings; None promises nothing on that side.
    delta_fpr, delta_fnr : float, optional
        The chance, over calibration draws, that the ceiling does not hold; 0.05 each.
    confidence : float, optional
        Instead of deltas: how surely all ceilings hold together.
    overlap : str or Strategy
        What is done where the classes overlap: "abstain", "hold_fnr", "hold_fpr", "algorithm1", or a
        strategy with options such as `Algorithm1(step=0.05)`.
    train_on : {"auto", "normal", "unlabelled", "labelled"}
        What `fit` trains the detector on: normal rows only, all rows without labels, or all rows with labels.
        "auto" is "labelled" for classifiers and detectors whose `fit` demands y, else "normal". Under
        "normal" the detector needs no anomalies, so all of them calibrate.
    calibration_size : float
        The share of each class that `fit` sets aside to calibrate.
    anomaly_label : object
        The label of anomalies: 1 (against 0), -1 (against 1, as scikit-learn has it), or a name.
    polarity : {"auto", "higher", "lower"}
        Whether anomalies score higher or lower; "auto" knows scikit-learn, PyOD, classifiers and functions.
    score_tolerance : float or None
        How far two scores of a row may lie apart, as a share of the calibration scores' interquartile range,
        beyond what rounding does. Up to 1,000 calibration rows are scored again in other batches, and
        `predict` compares copies of eight of them: a detector whose scores depend on their batch, or have
        changed since, is refused. Raise it for one that is merely not deterministic; with None nothing is
        compared and no row is kept.
    random_state : int, RandomState or None
        Fixes the split. The detector has its own.

    Attributes
    ----------
    detector_ : object
        The detector that gives the scores, trained by `fit` if it can be.
    certificate_ : Certificate
        What is promised of them, and the rule that verdicts follow.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import IsolationForest
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (2000, 3)), rng.normal(4, 1, (300, 3))]
    >>> y = np.r_[np.zeros(2000), np.ones(300)]
    >>> wrap = PACWrap(IsolationForest(random_state=0), random_state=0).fit(X, y)
    >>> wrap.predict([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
    array([0, 1], dtype=int8)
    """

    def __init__(
        self,
        detector: Any,
        *,
        max_fpr: float | None = 0.05,
        max_fnr: float | None = 0.05,
        delta_fpr: float | None = None,
        delta_fnr: float | None = None,
        confidence: float | None = None,
        overlap: str | Overlap = "abstain",
        train_on: TrainOn = "auto",
        calibration_size: float = 0.5,
        anomaly_label: object = 1,
        polarity: Polarity = "auto",
        score_tolerance: float | None = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.detector = detector
        self.max_fpr = max_fpr
        self.max_fnr = max_fnr
        self.delta_fpr = delta_fpr
        self.delta_fnr = delta_fnr
        self.confidence = confidence
        self.overlap = overlap
        self.train_on = train_on
        self.calibration_size = calibration_size
        self.anomaly_label = anomaly_label
        self.polarity = polarity
        self.score_tolerance = score_tolerance
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Split the rows by class, train the detector on one part and calibrate on the other.

        A detector that cannot be trained is calibrated on all rows.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.
        y : array-like
            Their labels: 0 (normal) and 1 (anomalous), or what `anomaly_label` says.

        Returns
        -------
        PACWrap
            This object, with `detector_` and `certificate_`.

        Raises
        ------
        InputError
            If a parameter, the rows or the labels are wrong, or scores depend on the batch they are made in.
        """
        with _all_or_nothing(self):
            warn_of_pipeline()
            return self._calibrate(*self._trained(X, y))

    def _trained(self, X: Any, y: ArrayLike) -> tuple[Any, Any, NDArray[np.bool_]]:
        """Return the detector, trained if it can be, and the rows to calibrate on with their classes."""
        self._check_parameters()
        if X is None:
            raise InputError("X must be a table of rows, got None")
        if y is None:
            raise InputError(
                "PACWrap requires y to be passed, but the target y is None; labels are what it calibrates on"
            )
        X, y = self._indexable(X, y)
        anomalous = as_class_mask(y, self.anomaly_label)
        self._check_features(X, reset=True)
        self.__dict__.pop("_training_rows", None)
        if not self._trainable():
            return self.detector, X, anomalous
        train_on = self.train_on
        if train_on == "auto":
            train_on = "labelled" if takes_labels(self.detector) else "normal"
        random = check_random_state(self.random_state)
        train, held_out = split_rows(
            anomalous, self.calibration_size, random, keep_anomalies=train_on == "normal"
        )
        X_train = take_rows(X, train)
        detector = untrained(self.detector, None if self.random_state is None else random)
        try:
            detector.fit(X_train, *([anomalous[train].astype(int)] if train_on == "labelled" else []))
        except ValueError as error:
            raise InputError(f"the detector cannot be trained on these rows: {error}") from error
        self._training_rows, self._trained_from = TrainingRows.of(X_train), self.detector
        return detector, take_rows(X, held_out), anomalous[held_out]

    def calibrate(self, X: Any, y: ArrayLike) -> Self:
        """Keep the trained detector and certify it on labelled rows it has not been trained on.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.
        y : array-like
            Their labels.

        Returns
        -------
        PACWrap
            This object, with another `certificate_`.

        Raises
        ------
        InputError
            As for `fit`.
        """
        self._check_parameters()
        X, y = self._indexable(X, y)
        trained = hasattr(self, "_training_rows") and self._trained_from is self.detector
        with _all_or_nothing(self):
            if not trained:
                self.__dict__.pop("_training_rows", None)
            self._check_features(X, reset=not trained)
            return self._calibrate(
                self.detector_ if trained else self.detector, X, as_class_mask(y, self.anomaly_label)
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # labels have two values
        if is_estimator(self.detector):
            tags.input_tags = get_tags(self.detector).input_tags
        return tags

    def _check_parameters(self) -> None:
        """Refuse bad parameters before any time is spent on training."""
        self._request()
        check_choice("train_on", self.train_on, ("auto", "normal", "unlabelled", "labelled"))
        check_choice("polarity", self.polarity, ("auto", "higher", "lower"))
        check_rate("calibration_size", self.calibration_size)
        check_tolerance(self.score_tolerance)

    def _request(self) -> Request:
        asked = Guarantee(
            self.max_fpr, self.max_fnr, self.delta_fpr, self.delta_fnr, confidence=self.confidence
        )
        return Request.of(asked, self.overlap)

    def _trainable(self) -> bool:
        return hasattr(self.detector, "fit") and not isinstance(self.detector, (FrozenEstimator, type))

    def _calibrate(self, detector: Any, X: Any, anomalous: NDArray[np.bool_]) -> Self:
        score = partial(self._scores, detector)
        scores = score(X)
        witness = check_batches(detector, score, X, scores, self.score_tolerance)
        warn_of_training_rows(getattr(self, "_training_rows", None), detector, X, scores)
        certificate = calibrate(scores[~anomalous], scores[anomalous], self._request())
        self.detector_, self.certificate_, self._witness = detector, certificate, witness
        return self


@contextmanager
def _all_or_nothing(estimator: PACWrap) -> Iterator[None]:
    """Leave an estimator as it was if fitting or calibrating fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
