"""PACWrap: an estimator that trains and calibrates a detector as scikit-learn does; no statistics here."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

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
    Polarity,
    UnfittedError,
    anomaly_scores,
    handed_on,
    is_estimator,
    lineage,
    take_rows,
)
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.precision import Prevalence
from pac_wrap.method.calibrate import Request, calibrate_labelled
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.units import as_units
from pac_wrap.method.groups.values import GroupColumn
from pac_wrap.method.metrics import evaluate
from pac_wrap.method.promise import Guarantee


def collected(X: Any) -> Any:
    """Return rows that can be indexed: a Polars LazyFrame is computed, an Arrow table becomes pandas."""
    lazy = type(X).__name__ == "LazyFrame" and type(X).__module__.partition(".")[0] == "polars"
    arrow = hasattr(X, "column_names") and hasattr(X, "to_pandas")
    return X.collect() if lazy else X.to_pandas() if arrow else X


def aligned(X: Any, y: ArrayLike) -> tuple[Any, Any]:
    """Return rows and labels that can be indexed; a mismatch raises an error."""
    check_aligned("X", X, "y", y)
    try:
        rows, labels = indexable(X, y)
    except (ValueError, TypeError) as error:
        raise InputError(f"X and y do not fit together: {error}") from error
    return rows, labels


def check_features(wrapper: BaseEstimator, X: Any, *, reset: bool) -> None:
    """Compare the number and names of features with those seen before; with `reset`, store them instead."""
    if len(getattr(X, "shape", (0, 0))) < 2:
        return  # only a table has features; the detector itself checks anything else
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
            f"groups={quoted(groups)} names a column, but X has no column names; pass a data frame, or the"
            " groups themselves"
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
    """Wrap any anomaly detector so that the error rates of its verdicts are certified.

    `predict` gives 1 (anomaly), 0 (normal) or -1 (abstain). With the chosen confidence, at most `max_fpr` of
    future normal points are called anomalies, and at most `max_fnr` of future anomalies are called normal.

    Parameters
    ----------
    detector : scikit-learn or PyOD detector, classifier, torch module, function, or "precomputed"
        The detector that gives the scores; see `anomaly_scores`. If it cannot be trained (a function, a torch
        module, a FrozenEstimator, "precomputed"), it is used as it is, and `fit` only calibrates.
    max_fpr, max_fnr, delta_fpr, delta_fnr, confidence, shift, label_noise : optional
        The promised ceilings and their confidence, as in `Guarantee`; a ceiling of None promises nothing.
    overlap : str or Strategy
        How points are decided if the classes overlap; see `calibrate`.
    train_on : {"auto", "normal", "unlabelled", "labelled"}
        The rows on which `fit` trains the detector: normal rows only, all rows without labels, or all rows
        with labels. "auto" is "labelled" for classifiers and detectors whose `fit` requires y, else "normal".
        With "normal", all anomalies calibrate; only a search over detectors, such as `GridSearchCV`, takes
        some of them to rank its candidates, unless it has a `scoring` of its own.
    calibration_size : "auto" or float
        The share of each class that `fit` sets aside to calibrate. "auto" is half. If half of a class is too
        little to certify its ceiling, it is the smallest certifying number, up to nine tenths of the class.
    anomaly_label : object
        The label of anomalies: 1 (against 0), -1 (against 1, as in scikit-learn), or a name.
    polarity : {"auto", "higher", "lower"}
        Whether anomalies score higher or lower; "auto" works for scikit-learn, PyOD, classifiers, functions.
    score_tolerance : float or None
        How much two scores of the same row may differ beyond rounding, as a share of the calibration scores'
        interquartile range. Up to 1,000 calibration rows are scored again in other batches, and `predict`
        scores copies of eight of them again. A detector whose scores depend on other rows, or have changed,
        raises an error; scores that depend only on the size of the batch, as with tied neighbours, are noted.
        Raise it for a detector that is not deterministic; with None, nothing is compared or stored.
    random_state : int, RandomState or None
        The seed of the split; the detector has its own.
    together, pool : bool
        With groups: whether the promises of all groups hold together, and whether groups with too few labels
        share one rule.

    Attributes
    ----------
    detector_ : object
        The detector that gives the scores, trained by `fit` if it can be trained.
    certificate_ : Certificate or GroupCertificate
        The promises, and the rule that the verdicts follow.

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
        units: GroupColumn | None = None,
        groups: GroupColumn | str | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train the detector on one part of each class, calibrate it on the other, and return this object.

        A detector that cannot be trained is calibrated on all rows.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.
        y : array-like
            The labels of the rows: 0 (normal) and 1 (anomalous), unless `anomaly_label` names another. They
            are optional with `max_fnr=None`: all rows then count as normal.
        units : array-like, optional
            The unit of each row, such as a patient or a machine. All rows of one train, or all calibrate, and
            the promise is about a random row of a random future unit, whatever depends on what within one.
            Their order in the test comes from the system, whatever `random_state` is.
        groups : array-like or str, optional
            The group of each row, such as a tenant, or the data frame column that holds it; that column is
            then not a feature. One detector is trained for all; each group has its own rule and promise.
        **fit_params : object
            Arguments for the detector's own `fit`, such as `sample_weight`. Arguments with one entry per row
            are cut to the training rows. With metadata routing, the detector gets those that it requested.

        Raises
        ------
        InputError
            If a parameter, the rows or the labels are wrong, or if scores depend on the rest of the batch.

        Warns
        -----
        OverlapWarning
            If calibration rows were used for training before, or by a pipeline or a search around this
            object. Calibration rows that merely equal a training row of X are counted in the certificate.
        """
        with all_or_nothing(self):
            X, anomalous, members, members_of, notes = self._given(X, y, units, groups)
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
            given = X, members, members_of
            X, members, members_of = (None if one is None else take_rows(one, rows) for one in given)
            return self._calibrate(detector, X, anomalous[rows], members, members_of, notes, kind="divided")

    def calibrate(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        units: GroupColumn | None = None,
        groups: GroupColumn | str | None = None,
    ) -> Self:
        """Calibrate again, on labelled rows that did not train the detector, and return this object.

        It replaces `certificate_`. The parameters are those of `fit`, and so are the errors.
        """
        trained = self._training_rows is not None and self._trained_from is self.detector
        detector = self.detector_ if trained else self.detector
        with all_or_nothing(self):
            X, anomalous, members, members_of, notes = self._given(X, y, units, groups)
            if not trained:
                self._training_rows = None
            self._check_features(X, detector, reset=not trained)
            return self._calibrate(detector, X, anomalous, members, members_of, notes)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the arguments that `fit` uses itself, and the arguments that it passes to the detector."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if training.trainable(self.detector):
            mapping = MethodMapping().add(caller="fit", callee="fit")
            router.add(detector=training.with_scoring(self.detector, self.polarity), method_mapping=mapping)
        return router

    def predict(self, X: Any, *, groups: GroupColumn | None = None) -> NDArray[np.int8]:
        """Return the verdict on each row: 1 (anomaly), 0 (normal) or -1 (abstain).

        A row with the score NaN gets the verdict -1, with a `MissingScoreWarning`.

        Parameters
        ----------
        X : array-like
            The rows to decide.
        groups : array-like, optional
            The group of each row, if calibration was by group and X has no column of groups.

        Raises
        ------
        UnfittedError
            If this object is not calibrated yet.
        InputError
            If the detector cannot score these rows, or has changed since calibration.
        """
        scored = self._scored(X, groups)
        verdicts: NDArray[np.int8] = self.certificate_.verdicts(*scored)
        safety.check_metric(int(np.count_nonzero(verdicts < 0)), verdicts.size, self.anomaly_label)
        return verdicts

    def predict_set(self, X: Any, *, groups: GroupColumn | None = None) -> NDArray[np.bool_]:
        """Return for each row whether label 0 (normal) and label 1 (anomalous) are possible, in two columns.

        The parameters are those of `predict`.
        """
        scored = self._scored(X, groups)
        sets: NDArray[np.bool_] = self.certificate_.prediction_sets(*scored)
        return sets

    def decision_function(self, X: Any) -> Scores:
        """Return the detector's score of each row, higher for more anomalous rows; NaN if it has none.

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
        """Return the score of each row in scikit-learn's direction, lower for more anomalous rows.

        The parameters are those of `predict`.
        """
        return -self.decision_function(X)

    def score(self, X: Any, y: ArrayLike, *, groups: GroupColumn | None = None) -> float:
        """Return the share of rows with the correct verdict; an abstention does not count as correct.

        The parameters are those of `fit`.
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
        """Write a report of the certificate, with the error rates on labelled rows if any are given.

        Parameters
        ----------
        path : str or path
            The file to write, whose name ends in .html, .md or .json.
        X, y, groups : array-like, optional
            Held-out rows, their labels, and their groups as for `predict`. The calibration rows themselves
            raise an error, since they are no evidence.
        prevalence : float or pair of floats, optional
            The share of anomalies among future points; by default their share among the calibration rows. A
            report by group takes none.
        """
        if not hasattr(self, "certificate_"):
            raise UnfittedError("this PACWrap is not calibrated yet; call fit(X, y) before report")
        by_group = isinstance(self.certificate_, GroupCertificate)
        if by_group and prevalence is not None:
            raise InputError("a report by group takes no prevalence; remove it")
        measured = None
        if X is not None or y is not None:
            if y is None:
                raise InputError("y must be the labels of the rows X, got None; pass both, or neither")
            X, anomalous = self._labelled(X, y)
            rows, found = self._with_groups(X, groups)
            scores = self.decision_function(X)
            made, marks, _ = self._calibrated_with
            pairs = ((scores[anomalous == mark], made[marks == mark]) for mark in (False, True))
            if all(np.array_equal(np.sort(one), np.sort(other)) for one, other in pairs):
                raise InputError(
                    "these are the calibration rows themselves, so they are no evidence; pass other labelled"
                    " rows"
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
                raise InputError("this PACWrap was calibrated by group; pass the group of each row as groups")
        elif groups is not None:
            raise InputError(
                "this PACWrap was calibrated without groups; remove groups, or pass them to fit as well"
            )
        return divided(collected(X), groups)

    def _scored(self, X: Any, groups: GroupColumn | None) -> tuple[Any, ...]:
        """Return the scores of rows, and their groups if calibration was by group."""
        X, members = self._with_groups(X, groups)
        scores = self.decision_function(X)
        return (scores,) if members is None else (scores, members)

    def _scores(self, detector: Any, X: Any, *, missing: bool = False) -> Scores:
        # a detector trained here has the labels 0 and 1, whatever labels the caller uses
        label = self.anomaly_label if self._training_rows is None else 1
        scores = anomaly_scores(detector, X, self.polarity, anomaly_label=label, missing=missing)
        if scores.size != (rows := _rows(X)):
            raise InputError(
                f"the detector gave {scores.size:,} scores for {rows:,} rows; it must give one per row"
            )
        return scores

    def _check_features(self, X: Any, trained: Any = None, *, reset: bool = False) -> None:
        if reset:
            self.__dict__.pop("feature_names_in_", None)
        names = list(getattr(X, "columns", ()))
        if not all(isinstance(name, str) for name in names):
            names = []
        seen = getattr(trained, "feature_names_in_", getattr(self, "feature_names_in_", None))
        # not all detectors compare names, and no function does; a detector that takes columns by name checks
        # them itself, in any order
        if seen is not None and names and names != list(seen) and not _takes_by_name(trained):
            lacks, adds = [one for one in seen if one not in names], [one for one in names if one not in seen]
            wrong = [f"{verb} {listed(ones)}" for verb, ones in (("lacks", lacks), ("adds", adds)) if ones]
            raise InputError(
                "the feature names should match those that were passed during fit, but X"
                f" {' and '.join(wrong) or 'has them in another order'};"
                f" pass its columns in the order {listed(list(seen))}"
            )
        named = bool(names) if reset else seen is not None
        stored = hasattr(trained, "feature_names_in_" if named else "n_features_in_")
        if (named or is_estimator(self.detector)) and (reset or not stored):
            check_features(self, X, reset=reset)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.max_fnr is not None
        tags.classifier_tags = ClassifierTags(multi_class=False)  # labels have two values
        if is_estimator(self.detector):
            tags.input_tags = get_tags(self.detector).input_tags
        return tags

    def _labelled(self, X: Any, y: ArrayLike | None) -> tuple[Any, NDArray[np.bool_]]:
        if X is None:
            raise InputError("X must be a table of rows, got None")
        X = collected(X)
        if y is None:
            raise InputError(
                "PACWrap requires y to be passed, but the target y is None; pass the labels of these rows, or"
                " use max_fnr=None, which promises the FPR alone and takes all rows as normal"
            )
        X, y = aligned(X, y)
        return X, as_class_mask(y, self.anomaly_label)

    def _given(
        self, X: Any, y: ArrayLike | None, units: GroupColumn | None, groups: GroupColumn | str | None
    ) -> tuple[Any, NDArray[np.bool_], NDArray[Any] | None, Any, tuple[str, ...]]:
        """Return the rows to certify with, a mask of anomalies, the units, the groups, and notes."""
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
                " rows like these",
            )
        else:
            X, anomalous = self._labelled(X, y)
        X, members_of = self._with_groups(X, groups, reset=True)
        if units is not None and members_of is not None:
            raise InputError("units cannot be combined with groups; remove one of them")
        members = None
        if units is not None:
            codes, names = as_units(units, X, anomalous.size, "X")
            members = np.array(names, dtype=object)[codes]
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
        units: NDArray[Any] | None,
        groups: Any,
        notes: tuple[str, ...],
        *,
        kind: safety.Kind = "calibration",
    ) -> Self:
        """Certify a detector on rows; "divided" rows were just split off from its training rows."""
        score = partial(self._scores, detector)
        scores = score(X)
        witness, sizes = safety.check_batches(detector, score, X, scores, self.score_tolerance)
        notes += sizes
        notes += safety.check_training_rows(self._training_rows, detector, X, scores, kind)
        columns: dict[str, Any] = {"units": units}
        if groups is not None:
            columns = {"by": groups, "together": self.together, "pool": self.pool}
        certificate: Any = calibrate_labelled(scores, anomalous, self._request(), **columns)
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
