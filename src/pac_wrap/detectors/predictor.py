"""What a calibrated detector says about new rows: scores, verdicts, prediction sets."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import validate_data

from pac_wrap.base.arguments import Scores, as_class_mask, check_aligned
from pac_wrap.detectors.callers import check_metric
from pac_wrap.detectors.groups import divided
from pac_wrap.detectors.rows import check_names, collected, names_of, warn_of_training_rows
from pac_wrap.detectors.scores import (
    Polarity,
    UnfittedError,
    anomaly_scores,
    is_estimator,
    takes_by_name,
    trainable,
)
from pac_wrap.detectors.steadiness import Witness
from pac_wrap.detectors.training import with_scoring
from pac_wrap.errors import InputError
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.values import GroupColumn
from pac_wrap.method.metrics import evaluate
from pac_wrap.method.worth.alarms import Prevalence


class CertifiedPredictor(BaseEstimator):
    """Decides rows by the scores of `detector_` and the rule of `certificate_`, once there are both."""

    detector: Any
    anomaly_label: object
    polarity: Polarity
    detector_: Any
    # a Certificate, or a GroupCertificate if there were groups
    certificate_: Any
    _group_column: str | None = None
    _witness: Witness | None = None
    # scores, marks of anomalies and groups
    _calibrated_with: tuple[Scores, NDArray[np.bool_], Any]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what `fit` takes for itself, and what it passes on to the detector's.

        Returns
        -------
        MetadataRouter
            As scikit-learn has it.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        if trainable(self.detector):
            mapping = MethodMapping().add(caller="fit", callee="fit")
            router.add(detector=with_scoring(self.detector, self.polarity), method_mapping=mapping)
        return router

    def predict(self, X: Any, *, groups: GroupColumn | None = None) -> NDArray[np.int8]:
        """Return the verdict on each row.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.
        groups : array-like, optional
            The group of each row, if it was calibrated by group and X has no column of them.

        Returns
        -------
        ndarray of int8
            1 (anomaly), 0 (normal) or -1 (abstains) for each row. A row that the detector scores with NaN
            is abstained on, with a `MissingScoreWarning`.

        Raises
        ------
        UnfittedError
            If nothing has been calibrated yet.
        InputError
            If the detector cannot score these rows, or has changed since it was calibrated.
        """
        X, members = self._with_groups(X, groups)
        scores = self.decision_function(X)
        given = (scores,) if members is None else (scores, members)
        verdicts: NDArray[np.int8] = self.certificate_.verdicts(*given)
        check_metric(int(np.count_nonzero(verdicts < 0)), verdicts.size, self.anomaly_label)
        return verdicts

    def predict_set(self, X: Any, *, groups: GroupColumn | None = None) -> NDArray[np.bool_]:
        """Return the labels that are still possible for each row.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.
        groups : array-like, optional
            As for `predict`.

        Returns
        -------
        ndarray of bool, shape (n, 2)
            Is label 0 (normal), is label 1 (anomalous) still possible?
        """
        X, members = self._with_groups(X, groups)
        scores = self.decision_function(X)
        given = (scores,) if members is None else (scores, members)
        sets: NDArray[np.bool_] = self.certificate_.prediction_sets(*given)
        return sets

    def decision_function(self, X: Any) -> Scores:
        """Return the detector's score of each row, higher for what is more anomalous.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.

        Returns
        -------
        ndarray of float
            One score per row, NaN where the detector gives none.
        """
        if not hasattr(self, "certificate_"):
            raise UnfittedError(
                "this PACWrap is not calibrated yet; call fit(X, y), or calibrate(X, y) on a fitted detector"
            )
        X = collected(X)
        if self._group_column is not None and self._group_column in getattr(X, "columns", ()):
            X, _ = divided(X, self._group_column)
        self._check_features(X, self.detector_)
        check_metric(0, 0, self.anomaly_label)
        score = partial(self._scores, self.detector_, missing=True)
        return score(X) if self._witness is None else self._witness.scores_of(X, self.detector_, score)

    def score_samples(self, X: Any) -> Scores:
        """Return the score in scikit-learn's direction, lower for what is more anomalous.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.

        Returns
        -------
        ndarray of float
            One score per row.
        """
        return -self.decision_function(X)

    def score(self, X: Any, y: ArrayLike, *, groups: GroupColumn | None = None) -> float:
        """Return the share of rows that are decided, and decided rightly.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.
        y : array-like
            Their labels.
        groups : array-like, optional
            As for `predict`.

        Returns
        -------
        float
            From 0 to 1.
        """
        X, y = self._indexable(X, y)
        return float(np.mean(self.predict(X, groups=groups) == as_class_mask(y, self.anomaly_label)))

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
        X, y : array-like, optional
            Rows that were neither trained nor calibrated on, and their labels.
        prevalence : float or pair of floats, optional
            The share of anomalies among future points; by default that of the calibration rows. A report by
            group takes none.
        groups : array-like, optional
            As for `predict`: the groups of these rows.

        Raises
        ------
        InputError
            If the rows calibrated it, which would prove nothing, or cannot be scored.
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
            X, y = self._indexable(X, y)
            rows, found = self._with_groups(X, groups)
            anomalous, scores = as_class_mask(y, self.anomaly_label), self.decision_function(X)
            self._refuse_calibrating(scores, anomalous)
            training = getattr(self, "_training_rows", None)
            warn_of_training_rows(training, self.detector_, rows, scores, held_out=True)
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

    def _refuse_calibrating(self, scores: Scores, anomalous: NDArray[np.bool_]) -> None:
        """Refuse rows that have the scores, class by class, that the certificate was made from."""
        made, marks, _ = self._calibrated_with
        pairs = ((scores[anomalous == mark], made[marks == mark]) for mark in (False, True))
        if all(np.array_equal(np.sort(one), np.sort(other)) for one, other in pairs):
            raise InputError(
                "these rows calibrated it, so what they show proves nothing; pass other rows, or none"
            )

    def _with_groups(
        self, X: Any, groups: GroupColumn | str | None, *, reset: bool = False
    ) -> tuple[Any, Any]:
        """Return rows without the column of groups, and the groups; with `reset`, remember that column."""
        X = collected(X)
        if reset:
            self._group_column = groups if isinstance(groups, str) else None
            return divided(X, groups)
        by_group = isinstance(getattr(self, "certificate_", None), GroupCertificate)
        if not by_group and groups is not None:
            raise InputError(
                "it was calibrated without groups; leave groups out, or pass them to fit as well"
            )
        wanted = self._group_column if groups is None and by_group else groups
        if by_group and wanted is None:
            raise InputError("it was calibrated by group; pass the group of each row with groups=")
        return divided(X, wanted)

    def _scores(self, detector: Any, X: Any, *, missing: bool = False) -> Scores:
        # a detector trained here was given the labels 0 and 1, whatever the caller's are
        label = 1 if hasattr(self, "_training_rows") else self.anomaly_label
        scores = anomaly_scores(detector, X, self.polarity, anomaly_label=label, missing=missing)
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if scores.size != rows:
            raise InputError(
                f"the detector gave {scores.size:,} scores for {rows:,} rows; one per row is needed"
            )
        return scores

    def _indexable(self, X: Any, y: ArrayLike | None) -> tuple[Any, ArrayLike]:
        if X is None:
            raise InputError("X must be a table of rows, got None")
        X = collected(X)
        if y is None:
            raise InputError(
                "PACWrap requires y to be passed, but the target y is None; pass the labels of these rows, or"
                " to fit max_fnr=None, which promises the FPR alone and takes all rows for normal"
            )
        check_aligned("X", X, "y", y)
        try:
            X, y = indexable(X, y)
        except (ValueError, TypeError) as error:
            raise InputError(f"X and y do not fit together: {error}") from error
        return X, y

    def _check_features(self, X: Any, trained: Any = None, *, reset: bool = False) -> None:
        """Compare the features with those that were seen before, or with `reset` keep their number and names.

        Names are compared with those that a trained detector has seen, and else with those kept here; not
        all detectors do so, and no function does. A detector that takes columns by name judges them itself,
        in whatever order they come. What is not a table has no features.
        """
        if len(getattr(X, "shape", (0, 0))) < 2:
            return
        if reset:
            self.__dict__.pop("feature_names_in_", None)
        seen = getattr(trained, "feature_names_in_", getattr(self, "feature_names_in_", None))
        if seen is not None and not takes_by_name(trained):
            check_names(list(seen), X)
        named = names_of(X) is not None if reset else seen is not None
        if not named and not is_estimator(self.detector):
            return
        if not reset and hasattr(trained, "feature_names_in_" if named else "n_features_in_"):
            return
        try:
            validate_data(self, X, skip_check_array=True, reset=reset)
        except (ValueError, TypeError) as error:
            raise InputError(str(error)) from error


@contextmanager
def all_or_nothing(estimator: CertifiedPredictor) -> Iterator[None]:
    """Leave an estimator as it was if fitting or calibrating fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
