"""PACWrap: a detector trained and calibrated the scikit-learn way; no statistics inside."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.compose import ColumnTransformer
from sklearn.utils import ClassifierTags, Tags, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import validate_data

from pac_wrap.base.arguments import Scores, as_class_mask, check_aligned, check_choice, check_same_length
from pac_wrap.base.text import listed, quoted
from pac_wrap.detectors import safety, training
from pac_wrap.detectors.scores import (
    AnomalyScorer,
    Indices,
    Polarity,
    UnfittedError,
    anomaly_scores,
    handed_on,
    is_estimator,
    lineage,
    take_rows,
)
from pac_wrap.errors import DependenceWarning, InputError
from pac_wrap.method.alarms.precision import Prevalence
from pac_wrap.method.calibrate import Request, calibrate, calibrate_labelled
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.values import GroupColumn
from pac_wrap.method.metrics import evaluate
from pac_wrap.method.promise import OF_SUBJECTS, Guarantee, assumed


def collected(X: Any) -> Any:
    """Return rows that can be taken: a LazyFrame of Polars is computed, a table of Arrow becomes pandas'."""
    lazy = type(X).__name__ == "LazyFrame" and type(X).__module__.partition(".")[0] == "polars"
    arrow = hasattr(X, "column_names") and hasattr(X, "to_pandas")
    return X.collect() if lazy else X.to_pandas() if arrow else X


def aligned(X: Any, y: ArrayLike) -> tuple[Any, Any]:
    """Return rows and labels that can be indexed, or refuse those that do not fit together."""
    check_aligned("X", X, "y", y)
    try:
        rows, labels = indexable(X, y)
    except (ValueError, TypeError) as error:
        raise InputError(f"X and y do not fit together: {error}") from error
    return rows, labels


def check_features(wrapper: BaseEstimator, X: Any, *, reset: bool) -> None:
    """Compare the number and names of features with those a wrapper has seen, or with `reset` keep them."""
    try:
        validate_data(wrapper, X, skip_check_array=True, reset=reset)
    except (ValueError, TypeError) as error:
        raise InputError(str(error)) from error


def divided(X: Any, groups: GroupColumn | str | None) -> tuple[Any, Any]:
    """Return rows without their column of groups, and the groups; a text names a column of a data frame."""
    if groups is None:
        return X, None
    if not isinstance(groups, str):
        check_aligned("X", X, "groups", groups)
        check_same_length("X", _rows(X), "groups", _rows(groups))
        return X, groups
    columns = getattr(X, "columns", None)
    if columns is None:
        raise InputError(
            f"groups={quoted(groups)} names a column, and X has no names; pass a data frame, or the groups"
            " themselves"
        )
    if groups not in columns:
        raise InputError(f"X has no column {quoted(groups)} of groups; its columns are {listed(columns)}")
    return (X.drop(columns=groups) if hasattr(X, "iloc") else X.drop(groups)), X[groups]


def _rows(table: Any) -> int:
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Leave an estimator as it was if fitting or calibrating fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def _takes_by_name(detector: Any) -> bool:
    """Return whether a detector begins with a ColumnTransformer, which finds columns by their names."""
    while detector is not None and not isinstance(detector, ColumnTransformer):
        detector = detector.steps[0][1] if hasattr(detector, "steps") else handed_on(detector)
    return detector is not None


class PACWrap(AnomalyScorer, MetaEstimatorMixin, BaseEstimator):
    """Verdicts whose error rates are certified, around any anomaly detector.

    `predict` gives 1 (anomaly), 0 (normal) or -1 (abstains). With the chosen confidence, the rate of future
    normal points called anomalies is at most `max_fpr`, and of anomalies called normal at most `max_fnr`.

    Parameters
    ----------
    detector : scikit-learn or PyOD detector, classifier, torch module, function, or "precomputed"
        What gives the scores; see `anomaly_scores`. A detector that cannot be trained (a function, a torch
        module, a FrozenEstimator, "precomputed") is taken as it is, and `fit` only calibrates.
    max_fpr, max_fnr, delta_fpr, delta_fnr, confidence, shift, label_noise : optional
        The promised ceilings and how surely they hold, as in `Guarantee`; a ceiling of None promises nothing.
    overlap : str or Strategy
        What is done where the classes overlap; see `calibrate`.
    train_on : {"auto", "normal", "unlabelled", "labelled"}
        What `fit` trains the detector on: normal rows only, all rows without labels, or all rows with labels.
        "auto" is "labelled" for classifiers and detectors whose `fit` demands y, else "normal". Under
        "normal" all anomalies calibrate, but for some that a search over detectors, such as `GridSearchCV`,
        takes to choose by: it ranks candidates with them unless it has a `scoring` of its own.
    calibration_size : "auto" or float
        The share of each class that `fit` sets aside to calibrate. "auto" is half; of a class whose half is
        too few to certify its ceiling it is the least number that certifies, up to nine tenths of the class.
    anomaly_label : object
        The label of anomalies: 1 (against 0), -1 (against 1, as scikit-learn has it), or a name.
    polarity : {"auto", "higher", "lower"}
        Whether anomalies score higher or lower; "auto" knows scikit-learn, PyOD, classifiers and functions.
    score_tolerance : float or None
        How far two scores of a row may lie apart, as a share of the calibration scores' interquartile range,
        beyond what rounding does. Up to 1,000 calibration rows are scored again in other batches, and
        `predict` compares copies of eight of them: a detector whose scores depend on other rows, or have
        changed since, is refused; those that depend on the size of their batch only, as where neighbours tie,
        are noted. Raise it for one that is merely not deterministic; with None nothing is compared or kept.
    random_state : int, RandomState or None
        Fixes the split. The detector has its own.
    together, pool : bool
        With groups: whether the promises of all of them hold at once, and whether those with too few labels
        follow one rule.

    Attributes
    ----------
    detector_ : object
        The detector that gives the scores, trained by `fit` if it can be.
    certificate_ : Certificate or GroupCertificate
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

    # a Certificate, or a GroupCertificate if there were groups
    certificate_: Any
    _group_column: str | None = None
    _witness: safety.Witness | None = None
    _training_rows: safety.TrainingRows | None = None
    # scores, marks of anomalies and groups
    _calibrated_with: tuple[Scores, NDArray[np.bool_], Any]

    def __init__(
        self,
        detector: Any,
        *,
        max_fpr: float | None = 0.05,
        max_fnr: float | None = 0.05,
        delta_fpr: float | None = None,
        delta_fnr: float | None = None,
        confidence: float | None = None,
        shift: Any = None,
        label_noise: Any = None,
        overlap: str | Overlap = "abstain",
        train_on: training.TrainOn = "auto",
        calibration_size: training.Share = "auto",
        anomaly_label: object = 1,
        polarity: Polarity = "auto",
        score_tolerance: float | None = 1e-5,
        random_state: Any = None,
        together: bool = False,
        pool: bool = False,
    ) -> None:
        self.detector = detector
        self.max_fpr = max_fpr
        self.max_fnr = max_fnr
        self.delta_fpr = delta_fpr
        self.delta_fnr = delta_fnr
        self.confidence = confidence
        self.shift = shift
        self.label_noise = label_noise
        self.overlap = overlap
        self.train_on = train_on
        self.calibration_size = calibration_size
        self.anomaly_label = anomaly_label
        self.polarity = polarity
        self.score_tolerance = score_tolerance
        self.random_state = random_state
        self.together = together
        self.pool = pool

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        subjects: ArrayLike | None = None,
        groups: GroupColumn | str | None = None,
        **fit_params: Any,
    ) -> Self:
        """Return this object, its detector trained on a part of each class and calibrated on the other.

        A detector that cannot be trained is calibrated on all rows.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.
        y : array-like
            Their labels: 0 (normal) and 1 (anomalous), or what `anomaly_label` says. With `max_fnr=None` they
            may be left out: all rows then count as normal.
        subjects : array-like, optional
            Whose row it is, such as a patient or a machine: all rows of a subject train, or all calibrate.
        groups : array-like or str, optional
            The group of each row, such as a tenant, or the column of a data frame that holds it and is then
            no feature. One detector is trained for all; each group has its own rule and promise.
        **fit_params : object
            What the detector's own `fit` takes, such as `sample_weight`; of what has one entry per row, it
            gets those of the rows it is trained on. With metadata routing, what it has requested.

        Raises
        ------
        InputError
            If a parameter, the rows or the labels are wrong, or scores depend on the batch they are made in.

        Warns
        -----
        OverlapWarning
            If rows that calibrate have been trained on before, or by a pipeline or a search around it; the
            certificate's notes count those that repeat within X, so that one trains and its equal calibrates.
        DependenceWarning
            If several calibration rows are of one subject.
        """
        with all_or_nothing(self):
            X, anomalous, members, members_of, notes = self._given(X, y, subjects, groups)
            guarantee = self._request().guarantee
            safety.check_callers(guarantee, *np.bincount(anomalous, minlength=2))
            trains = training.trainable(self.detector)
            self._check_features(X, None if trains else self.detector, reset=True)
            self._training_rows = None
            routed = training.passed_on(self, self.detector, fit_params)
            if not trains:
                return self._calibrate(self.detector, X, anomalous, members, members_of, notes)
            detector, (trained, rows) = training.train(self, X, anomalous, guarantee, members, routed)
            self._training_rows = safety.TrainingRows.of(take_rows(X, trained))
            self._trained_from = self.detector
            self._trained_on = tuple(np.bincount(anomalous[trained], minlength=2).tolist())
            X, members, members_of = (
                None if one is None else take_rows(one, rows) for one in (X, members, members_of)
            )
            return self._calibrate(detector, X, anomalous[rows], members, members_of, notes, kind="divided")

    def calibrate(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        subjects: ArrayLike | None = None,
        groups: GroupColumn | str | None = None,
    ) -> Self:
        """Return this object with another `certificate_`, on labelled rows that did not train its detector.

        The other parameters are those of `fit`, which says what is refused.

        Parameters
        ----------
        subjects : array-like, optional
            Whose row it is: several rows of one subject are not independent, and the certificate says so.
        """
        trained = self._training_rows is not None and self._trained_from is self.detector
        detector = self.detector_ if trained else self.detector
        with all_or_nothing(self):
            X, anomalous, members, members_of, notes = self._given(X, y, subjects, groups)
            if not trained:
                self._training_rows = None
            self._check_features(X, detector, reset=not trained)
            return self._calibrate(detector, X, anomalous, members, members_of, notes)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the arguments that `fit` takes for itself, and those that it passes on to the detector's."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if training.trainable(self.detector):
            mapping = MethodMapping().add(caller="fit", callee="fit")
            router.add(detector=training.with_scoring(self.detector, self.polarity), method_mapping=mapping)
        return router

    def predict(self, X: Any, *, groups: GroupColumn | None = None) -> NDArray[np.int8]:
        """Return the verdict on each row: 1 (anomaly), 0 (normal) or -1 (abstains).

        A row that the detector scores with NaN is abstained on, with a `MissingScoreWarning`.

        Parameters
        ----------
        X : array-like
            The rows.
        groups : array-like, optional
            The group of each row, if it was calibrated by group and X has no column of them.

        Raises
        ------
        UnfittedError
            If nothing has been calibrated yet.
        InputError
            If the detector cannot score these rows, or has changed since it was calibrated.
        """
        scored = self._scored(X, groups)
        verdicts: NDArray[np.int8] = self.certificate_.verdicts(*scored)
        safety.check_metric(int(np.count_nonzero(verdicts < 0)), verdicts.size, self.anomaly_label)
        return verdicts

    def predict_set(self, X: Any, *, groups: GroupColumn | None = None) -> NDArray[np.bool_]:
        """Return whether label 0 (normal), and whether label 1 (anomalous), is possible for each row.

        The parameters are those of `predict`.
        """
        scored = self._scored(X, groups)
        sets: NDArray[np.bool_] = self.certificate_.prediction_sets(*scored)
        return sets

    def decision_function(self, X: Any) -> Scores:
        """Return the detector's score of each row, higher for what is more anomalous; NaN if it has none.

        The parameters are those of `predict`.
        """
        if not hasattr(self, "certificate_"):
            raise UnfittedError(
                "this PACWrap is not calibrated yet; call fit(X, y), or calibrate(X, y) on a fitted detector"
            )
        X = collected(X)
        if self._group_column is not None and self._group_column in getattr(X, "columns", ()):
            X, _ = divided(X, self._group_column)
        self._check_features(X, self.detector_)
        safety.check_metric(0, 0, self.anomaly_label)
        score = partial(self._scores, self.detector_, missing=True)
        return score(X) if self._witness is None else self._witness.scores_of(X, self.detector_, score)

    def score_samples(self, X: Any) -> Scores:
        """Return the score in scikit-learn's direction, lower for what is more anomalous.

        The parameters are those of `predict`.
        """
        return -self.decision_function(X)

    def score(self, X: Any, y: ArrayLike, *, groups: GroupColumn | None = None) -> float:
        """Return the share of rows that are decided, and decided rightly.

        The other parameters are those of `predict`.

        Parameters
        ----------
        y : array-like
            The labels of the rows.
        """
        X, anomalous = self._labelled(X, y)
        return float(np.mean(self.predict(X, groups=groups) == anomalous))

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        prevalence: Prevalence | None = None,
        groups: GroupColumn | None = None,
    ) -> None:
        """Write a report of the certificate, with the rates measured on labelled rows if there are any.

        Parameters
        ----------
        path : str or path
            The file: .html, .md or .json.
        X, y, groups : array-like, optional
            Rows that were neither trained nor calibrated on, their labels, and their groups as for `predict`;
            those that calibrated it are refused, as they would prove nothing.
        prevalence : float or pair of floats, optional
            The share of anomalies among future points; by default that of the calibration rows. A report by
            group takes none.
        """
        if not hasattr(self, "certificate_"):
            raise UnfittedError("this PACWrap is not calibrated yet; call fit(X, y) before report")
        by_group = isinstance(self.certificate_, GroupCertificate)
        if by_group and prevalence is not None:
            raise InputError("a report by group takes no prevalence; leave it out")
        measured = None
        if X is not None or y is not None:
            if y is None:
                raise InputError("the labels y of these rows are None; pass them, or no rows at all")
            X, anomalous = self._labelled(X, y)
            rows, found = self._with_groups(X, groups)
            scores = self.decision_function(X)
            made, marks, _ = self._calibrated_with
            pairs = ((scores[anomalous == mark], made[marks == mark]) for mark in (False, True))
            if all(np.array_equal(np.sort(one), np.sort(other)) for one, other in pairs):
                raise InputError(
                    "these rows calibrated it, so what they show proves nothing; pass other rows, or none"
                )
            safety.check_training_rows(self._training_rows, self.detector_, rows, scores, "held-out")
            if by_group:
                measured = self.certificate_.evaluate(scores, anomalous, found)
            else:
                measured = evaluate(self.certificate_.verdicts(scores), anomalous)
        scores, anomalous, own = self._calibrated_with
        name = type(self.detector_).__name__
        if by_group:
            self.certificate_.report(path, scores, anomalous, own, detector=name, measured=measured)
        else:
            classes = scores[~anomalous], scores[anomalous]
            self.certificate_.report(path, *classes, prevalence=prevalence, metrics=measured, detector=name)

    def _with_groups(
        self, X: Any, groups: GroupColumn | str | None, *, reset: bool = False
    ) -> tuple[Any, Any]:
        """Return rows without the column of groups, and the groups; with `reset`, remember that column."""
        if reset:
            self._group_column = groups if isinstance(groups, str) else None
        elif isinstance(getattr(self, "certificate_", None), GroupCertificate):
            groups = self._group_column if groups is None else groups
            if groups is None:
                raise InputError("it was calibrated by group; pass the group of each row with groups=")
        elif groups is not None:
            raise InputError(
                "it was calibrated without groups; leave groups out, or pass them to fit as well"
            )
        return divided(collected(X), groups)

    def _scored(self, X: Any, groups: GroupColumn | None) -> tuple[Any, ...]:
        """Return the scores of rows, and their groups if it was calibrated by group."""
        X, members = self._with_groups(X, groups)
        scores = self.decision_function(X)
        return (scores,) if members is None else (scores, members)

    def _scores(self, detector: Any, X: Any, *, missing: bool = False) -> Scores:
        # a detector trained here was given the labels 0 and 1, whatever the caller's are
        label = self.anomaly_label if self._training_rows is None else 1
        scores = anomaly_scores(detector, X, self.polarity, anomaly_label=label, missing=missing)
        if scores.size != (rows := _rows(X)):
            raise InputError(
                f"the detector gave {scores.size:,} scores for {rows:,} rows; one per row is needed"
            )
        return scores

    def _check_features(self, X: Any, trained: Any = None, *, reset: bool = False) -> None:
        """Compare the features with those that were seen before, or with `reset` remember them."""
        if len(getattr(X, "shape", (0, 0))) < 2:
            return  # what is not a table has no features
        if reset:
            self.__dict__.pop("feature_names_in_", None)
        names = list(getattr(X, "columns", ()))
        if not all(isinstance(name, str) for name in names):
            names = []
        seen = getattr(trained, "feature_names_in_", getattr(self, "feature_names_in_", None))
        # not all detectors compare names, and no function does; one that takes columns by name judges them
        # itself, in whatever order they come
        if seen is not None and names and names != list(seen) and not _takes_by_name(trained):
            apart = {
                "lacks": [one for one in seen if one not in names],
                "adds": [one for one in names if one not in seen],
            }
            wrong = [f"{verb} {listed(ones)}" for verb, ones in apart.items() if ones]
            raise InputError(
                "the feature names should match those that were passed during fit, but X"
                f" {' and '.join(wrong) or 'has them in another order'};"
                f" pass its columns in the order {listed(list(seen))}"
            )
        named = bool(names) if reset else seen is not None
        if not named and not is_estimator(self.detector):
            return
        if not reset and hasattr(trained, "feature_names_in_" if named else "n_features_in_"):
            return
        check_features(self, X, reset=reset)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.max_fnr is not None
        tags.classifier_tags = ClassifierTags(multi_class=False)  # labels have two values
        if is_estimator(self.detector):
            tags.input_tags = get_tags(self.detector).input_tags
        return tags

    def _labelled(self, X: Any, y: ArrayLike | None) -> tuple[Any, NDArray[np.bool_]]:
        """Return the rows, and which are anomalous."""
        if X is None:
            raise InputError("X must be a table of rows, got None")
        X = collected(X)
        if y is None:
            raise InputError(
                "PACWrap requires y to be passed, but the target y is None; pass the labels of these rows, or"
                " to fit max_fnr=None, which promises the FPR alone and takes all rows for normal"
            )
        X, y = aligned(X, y)
        return X, as_class_mask(y, self.anomaly_label)

    def _given(
        self, X: Any, y: ArrayLike | None, subjects: ArrayLike | None, groups: GroupColumn | str | None
    ) -> tuple[Any, NDArray[np.bool_], Indices | None, Any, tuple[str, ...]]:
        """Return the rows to certify with, which are anomalous, their subjects and groups, and notes."""
        # bad parameters are refused before any time is spent on training
        GroupRequest(self._request(), self.together, self.pool)
        check_choice("train_on", self.train_on, ("auto", "normal", "unlabelled", "labelled"))
        check_choice("polarity", self.polarity, ("auto", "higher", "lower"))
        training.check_share(self.calibration_size)
        safety.check_tolerance(self.score_tolerance)
        notes: tuple[str, ...] = ()
        if X is not None and y is None and self.max_fnr is None:
            X = collected(X)
            X, anomalous = aligned(X, np.zeros(_rows(X), dtype=bool))
            notes = (
                "there were no labels, so all rows count as normal, and the FPR is the share of alarms among"
                " rows like them",
            )
        else:
            X, anomalous = self._labelled(X, y)
        X, members_of = self._with_groups(X, groups, reset=True)
        members = None if subjects is None else training.as_subjects(subjects, X, anomalous.size)
        return X, anomalous, members, members_of, notes

    def _request(self) -> Request:
        rates = self.max_fpr, self.max_fnr, self.delta_fpr, self.delta_fnr
        tolerated = {"shift": self.shift, "label_noise": self.label_noise}
        return Request.of(Guarantee(*rates, confidence=self.confidence, **tolerated), self.overlap)

    def _calibrate(
        self,
        detector: Any,
        X: Any,
        anomalous: NDArray[np.bool_],
        subjects: Indices | None,
        groups: Any,
        notes: tuple[str, ...],
        *,
        kind: Literal["divided", "calibration"] = "calibration",
    ) -> Self:
        """Certify a detector; "divided" rows were just set apart from its training rows."""
        score = partial(self._scores, detector)
        scores = score(X)
        witness, sizes = safety.check_batches(detector, score, X, scores, self.score_tolerance)
        notes += sizes
        notes += safety.check_training_rows(self._training_rows, detector, X, scores, kind)
        text = None if subjects is None else training.several_rows(anomalous, subjects)
        request = self._request().fixed if text else self._request()
        certificate: Certificate | GroupCertificate
        if groups is None:
            certificate = calibrate(scores[~anomalous], scores[anomalous], request)
        else:
            certificate = calibrate_labelled(
                scores, anomalous, request, by=groups, together=self.together, pool=self.pool
            )
        if text:
            certificate = replace(
                certificate, assumptions=assumed(OF_SUBJECTS, **request.guarantee.tolerates)
            )
            warnings.warn(text, DependenceWarning, stacklevel=3)
        self.certificate_ = certificate.with_provenance(
            detector=lineage(detector),
            trained=None if self._training_rows is None else self._trained_on,
            lowest=scores.min(),
            highest=scores.max(),
            notes=notes,
        )
        self.detector_, self._witness = detector, witness
        self._calibrated_with = scores, anomalous, groups  # for `report`
        return self
