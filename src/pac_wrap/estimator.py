"""PACWrap: the scikit-learn face. It gets scores out of a detector; no statistics inside."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import ClassifierTags, Tags, check_random_state, get_tags, indexable
from sklearn.utils.validation import validate_data

from pac_wrap.calibration import StrategyOptions, calibrate
from pac_wrap.certificate import Certificate
from pac_wrap.errors import InputError, VacuousWarning
from pac_wrap.guarantee import Guarantee
from pac_wrap.inputs import Scores, as_class_mask, check_aligned, check_choice, check_rate
from pac_wrap.overlap import TrainingRows, warn_of_overlap, warn_of_pipeline
from pac_wrap.relaxation import Strategy, StrategyName
from pac_wrap.rows import split_rows, take_rows
from pac_wrap.scores import Polarity, UnfittedError, anomaly_scores, is_estimator, takes_labels, untrained
from pac_wrap.steadiness import Witness, check_batches, check_tolerance

TrainOn = Literal["auto", "normal", "unlabelled", "labelled"]


class PACWrap(MetaEstimatorMixin, BaseEstimator):
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
    delta_fpr, delta_fnr : float
        The chance, over calibration draws, that the ceiling does not hold.
    abstain : bool
        Whether points may be left undecided. If not, `strategy` finds one threshold.
    strategy, step, growth, ceilings, relax_delta, correction, position
        How that one threshold is reached; see `Strategy`.
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
    detector_, certificate_ : the fitted detector and its certificate

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

    detector_: Any
    certificate_: Certificate
    _witness: Witness | None = None

    def __init__(
        self,
        detector: Any,
        *,
        max_fpr: float | None = 0.05,
        max_fnr: float | None = 0.05,
        delta_fpr: float = 0.05,
        delta_fnr: float = 0.05,
        abstain: bool = True,
        strategy: StrategyName = "relax",
        step: float = 0.1,
        growth: Literal["linear", "double"] = "linear",
        ceilings: Literal["both", "fpr", "fnr"] = "both",
        relax_delta: bool = False,
        correction: Literal["share"] | None = "share",
        position: float = 0.5,
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
        self.abstain = abstain
        self.strategy = strategy
        self.step = step
        self.growth = growth
        self.ceilings = ceilings
        self.relax_delta = relax_delta
        self.correction = correction
        self.position = position
        self.train_on = train_on
        self.calibration_size = calibration_size
        self.anomaly_label = anomaly_label
        self.polarity = polarity
        self.score_tolerance = score_tolerance
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Split the rows by class, train the detector on one part and calibrate on the other."""
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
        """Keep the trained detector and certify it on labelled rows it has not been trained on."""
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

    def predict(self, X: Any) -> NDArray[np.int8]:
        """Return 1 (anomaly), 0 (normal) or -1 (abstains) for each row."""
        scores = self.decision_function(X)
        return self.certificate_.verdicts(scores)

    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """Return an (n, 2) array: is label 0 (normal), is label 1 (anomalous) still possible?"""
        scores = self.decision_function(X)
        return self.certificate_.prediction_sets(scores)

    def decision_function(self, X: Any) -> Scores:
        """Return the detector's score of each row, higher for what is more anomalous."""
        if not hasattr(self, "certificate_"):
            raise UnfittedError(
                "this PACWrap is not calibrated yet; call fit(X, y), or calibrate(X, y) on a fitted detector"
            )
        self._check_features(X, reset=False)
        score = partial(self._scores, self.detector_)
        return score(X) if self._witness is None else self._witness.scores_of(X, self.detector_, score)

    def score_samples(self, X: Any) -> Scores:
        """Return the score in scikit-learn's direction, lower for what is more anomalous."""
        return -self.decision_function(X)

    def score(self, X: Any, y: ArrayLike) -> float:
        """Return the share of rows that are decided, and decided rightly."""
        X, y = self._indexable(X, y)
        return float(np.mean(self.predict(X) == as_class_mask(y, self.anomaly_label)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # labels have two values
        if is_estimator(self.detector):
            tags.input_tags = get_tags(self.detector).input_tags
        return tags

    def _check_parameters(self) -> None:
        """Refuse bad parameters before any time is spent on training."""
        self._guarantee()
        Strategy(self.strategy, **self._options())
        check_choice("abstain", self.abstain, (True, False))
        check_choice("train_on", self.train_on, ("auto", "normal", "unlabelled", "labelled"))
        check_choice("polarity", self.polarity, ("auto", "higher", "lower"))
        check_rate("calibration_size", self.calibration_size)
        check_tolerance(self.score_tolerance)

    def _guarantee(self) -> Guarantee:
        return Guarantee(self.max_fpr, self.max_fnr, self.delta_fpr, self.delta_fnr)

    def _options(self) -> StrategyOptions:
        return {
            "step": self.step,
            "growth": self.growth,
            "ceilings": self.ceilings,
            "relax_delta": self.relax_delta,
            "correction": self.correction,
            "position": self.position,
        }

    def _trainable(self) -> bool:
        return hasattr(self.detector, "fit") and not isinstance(self.detector, (FrozenEstimator, type))

    def _calibrate(self, detector: Any, X: Any, anomalous: NDArray[np.bool_]) -> Self:
        score = partial(self._scores, detector)
        scores = score(X)
        witness = check_batches(detector, score, X, scores, self.score_tolerance)
        warn_of_overlap(getattr(self, "_training_rows", None), detector, X, scores)
        certificate = calibrate(
            scores[~anomalous],
            scores[anomalous],
            self._guarantee(),
            abstain=self.abstain,
            strategy=self.strategy,
            **({} if self.abstain else self._options()),
        )
        self.detector_, self.certificate_, self._witness = detector, certificate, witness
        if certificate.empty:
            warnings.warn("; ".join(certificate.diagnosis), VacuousWarning, stacklevel=3)
        return self

    def _scores(self, detector: Any, X: Any) -> Scores:
        # a detector trained here was given the labels 0 and 1, whatever the caller's are
        label = 1 if hasattr(self, "_training_rows") else self.anomaly_label
        scores = anomaly_scores(detector, X, self.polarity, anomaly_label=label)
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if scores.size != rows:
            raise InputError(
                f"the detector gave {scores.size:,} scores for {rows:,} rows; one per row is needed"
            )
        return scores

    def _indexable(self, X: Any, y: ArrayLike) -> tuple[Any, ArrayLike]:
        check_aligned("X", X, "y", y)
        try:
            X, y = indexable(X, y)
        except (ValueError, TypeError) as error:
            raise InputError(f"X and y do not fit together: {error}") from error
        return X, y

    def _check_features(self, X: Any, *, reset: bool) -> None:
        """Keep, or compare with, the number and names of the features."""
        if not is_estimator(self.detector) or len(getattr(X, "shape", (0, 0))) < 2:
            return  # what is not a table has no features; the detector itself judges it
        try:
            validate_data(self, X, skip_check_array=True, reset=reset)
        except ValueError as error:
            raise InputError(str(error)) from error


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
