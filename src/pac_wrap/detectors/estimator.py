"""PACWrap: a detector trained and calibrated the scikit-learn way; no statistics inside."""

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import ClassifierTags, Tags, get_tags

from pac_wrap.base.arguments import as_class_mask, check_choice
from pac_wrap.detectors.callers import check_callers
from pac_wrap.detectors.groups import certified, taken
from pac_wrap.detectors.predictor import CertifiedPredictor, all_or_nothing
from pac_wrap.detectors.rows import (
    Indices,
    TrainingRows,
    collected,
    repeated_rows,
    take_rows,
    warn_of_training_rows,
)
from pac_wrap.detectors.scores import Polarity, is_estimator, lineage, trainable
from pac_wrap.detectors.steadiness import check_batches, check_tolerance
from pac_wrap.detectors.training import (
    Share,
    TrainOn,
    as_subjects,
    check_share,
    passed_on,
    several_rows,
    train,
)
from pac_wrap.errors import DependenceWarning
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificates.certificate import Overlap
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.method.groups.values import GroupColumn
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.sampling import OF_SUBJECTS, assumed

_UNLABELLED: Final = (
    "there were no labels, so all rows count as normal, and the FPR is the share of alarms among rows like"
    " them",
)


class PACWrap(MetaEstimatorMixin, CertifiedPredictor):
    """Verdicts whose error rates are certified, around any anomaly detector.

    `predict` gives 1 (anomaly), 0 (normal) or -1 (abstains). With the chosen confidence, the
    rate of future normal points that are called anomalies is at most `max_fpr`, and that of future anomalies
    that are called normal at most `max_fnr`.

    Parameters
    ----------
    detector : scikit-learn or PyOD detector, classifier, torch module, function, or "precomputed"
        What gives the scores; see `anomaly_scores`. A detector that cannot be trained (a function, a torch
        module, a FrozenEstimator, "precomputed") is taken as it is, and `fit` only calibrates.
    max_fpr, max_fnr, delta_fpr, delta_fnr, confidence, shift, label_noise : optional
        The promised ceilings and how surely they hold, as in `Guarantee`; a ceiling of None promises nothing.
    overlap : str or Strategy
        What is done where the classes overlap: "abstain", "raise", "hold_fnr", "hold_fnr_if_needed",
        another word of `calibrate`, or a strategy with options such as `Raise(highest=0.2)`.
    train_on : {"auto", "normal", "unlabelled", "labelled"}
        What `fit` trains the detector on: normal rows only, all rows without labels, or all rows with labels.
        "auto" is "labelled" for classifiers and detectors whose `fit` demands y, else "normal". Under
        "normal" the detector needs no anomalies, so all of them calibrate; a search over detectors, such as
        `GridSearchCV`, takes some to choose by, ranks candidates with them unless it has a `scoring` of its
        own, and trains each on normal rows.
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
        `predict` compares copies of eight of them: a detector whose scores depend on their batch, or have
        changed since, is refused. Raise it for one that is merely not deterministic; with None nothing is
        compared and no row is kept. Scores that depend on the size of their batch only, as where neighbours
        tie, are noted in the certificate.
    random_state : int, RandomState or None
        Fixes the split. The detector has its own.
    together, pool : bool
        With groups: whether the promises of all of them hold at once, and whether those with too few labels
        follow one rule; see `calibrate_groups`.

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
        train_on: TrainOn = "auto",
        calibration_size: Share = "auto",
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
        """Split the rows by class, train the detector on one part and calibrate on the other.

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

        Returns
        -------
        PACWrap
            This object, with `detector_` and `certificate_`.

        Raises
        ------
        InputError
            If a parameter, the rows or the labels are wrong, or scores depend on the batch they are made in.

        Warns
        -----
        OverlapWarning
            If rows that calibrate have been trained on before, or by a pipeline or a search around it. Rows
            that repeat within X, so that one trains and its equal calibrates, are counted in the notes of the
            certificate's provenance.
        DependenceWarning
            If several calibration rows are of one subject.
        """
        with all_or_nothing(self):
            self._check_parameters()
            notes = _UNLABELLED if y is None else ()
            X, anomalous = self._labelled(X, y)
            X, members_of = self._with_groups(X, groups, reset=True)
            members = None if subjects is None else as_subjects(subjects, X, anomalous.size)
            check_callers(self._request().guarantee, *np.bincount(anomalous, minlength=2))
            self._check_features(X, None if trainable(self.detector) else self.detector, reset=True)
            self.__dict__.pop("_training_rows", None)
            routed = passed_on(self, self.detector, fit_params)
            if not trainable(self.detector):
                return self._calibrate(self.detector, X, anomalous, members, members_of, notes)
            detector, division = train(
                self.detector,
                X,
                anomalous,
                self._request().guarantee,
                train_on=self.train_on,
                share=self.calibration_size,
                random_state=self.random_state,
                subjects=members,
                polarity=self.polarity,
                fit_params=routed,
            )
            self._training_rows = TrainingRows.of(take_rows(X, division.train))
            self._trained_from = self.detector
            self._trained_on = tuple(np.bincount(anomalous[division.train], minlength=2).tolist())
            rows = division.calibrate
            members = None if members is None else members[rows]
            return self._calibrate(
                detector,
                take_rows(X, rows),
                anomalous[rows],
                members,
                taken(members_of, rows),
                notes,
                divided=True,
            )

    def calibrate(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        subjects: ArrayLike | None = None,
        groups: GroupColumn | str | None = None,
    ) -> Self:
        """Keep the trained detector and certify it on labelled rows it has not been trained on.

        Parameters
        ----------
        X : array-like
            The rows, as the detector takes them.
        y : array-like
            Their labels; as for `fit`.
        subjects : array-like, optional
            Whose row it is: several rows of one subject are not independent, and the certificate says so.
        groups : array-like or str, optional
            As for `fit`.

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
        notes = _UNLABELLED if y is None else ()
        X, anomalous = self._labelled(X, y)
        trained = hasattr(self, "_training_rows") and self._trained_from is self.detector
        with all_or_nothing(self):
            X, members_of = self._with_groups(X, groups, reset=True)
            if not trained:
                self.__dict__.pop("_training_rows", None)
            self._check_features(X, self.detector_ if trained else self.detector, reset=not trained)
            members = None if subjects is None else as_subjects(subjects, X, anomalous.size)
            detector = self.detector_ if trained else self.detector
            return self._calibrate(detector, X, anomalous, members, members_of, notes)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.max_fnr is not None
        tags.classifier_tags = ClassifierTags(multi_class=False)  # labels have two values
        if is_estimator(self.detector):
            tags.input_tags = get_tags(self.detector).input_tags
        return tags

    def _check_parameters(self) -> None:
        """Refuse bad parameters before any time is spent on training."""
        self._by_group()
        check_choice("train_on", self.train_on, ("auto", "normal", "unlabelled", "labelled"))
        check_choice("polarity", self.polarity, ("auto", "higher", "lower"))
        check_share(self.calibration_size)
        check_tolerance(self.score_tolerance)

    def _labelled(self, X: Any, y: ArrayLike | None) -> tuple[Any, NDArray[np.bool_]]:
        """Return the rows, and which are anomalous: none if there are no labels and only the FPR matters."""
        X = collected(X)
        if X is not None and y is None and self.max_fnr is None:
            y = np.zeros(X.shape[0] if hasattr(X, "shape") else len(X), dtype=int)
            return self._indexable(X, y)[0], y == 1
        X, y = self._indexable(X, y)
        return X, as_class_mask(y, self.anomaly_label)

    def _by_group(self) -> GroupRequest:
        return GroupRequest(self._request(), self.together, self.pool)

    def _request(self) -> Request:
        rates = self.max_fpr, self.max_fnr, self.delta_fpr, self.delta_fnr
        room = {"shift": self.shift, "label_noise": self.label_noise}
        return Request.of(Guarantee(*rates, confidence=self.confidence, **room), self.overlap)

    def _calibrate(
        self,
        detector: Any,
        X: Any,
        anomalous: NDArray[np.bool_],
        subjects: Indices | None,
        groups: Any,
        notes: tuple[str, ...],
        *,
        divided: bool = False,
    ) -> Self:
        """Certify a detector; `divided` says that the rows were just set apart from its training rows."""
        score = partial(self._scores, detector)
        scores = score(X)
        witness, sizes = check_batches(detector, score, X, scores, self.score_tolerance)
        notes += sizes
        if divided:
            notes += repeated_rows(self._training_rows, X)
        else:
            warn_of_training_rows(getattr(self, "_training_rows", None), detector, X, scores)
        asked, text = self._by_group(), None if subjects is None else several_rows(anomalous, subjects)
        if text:
            asked = replace(asked, request=asked.request.fixed)
        certificate = certified(scores, anomalous, groups, asked)
        if text:
            rooms = asked.request.guarantee.rooms
            certificate = replace(certificate, assumptions=assumed(OF_SUBJECTS, **rooms))
            warnings.warn(text, DependenceWarning, stacklevel=3)
        rows = self._trained_on if hasattr(self, "_training_rows") else None
        certificate = certificate.with_provenance(
            detector=lineage(detector), trained=rows, lowest=scores.min(), highest=scores.max(), notes=notes
        )
        self.detector_, self.certificate_, self._witness = detector, certificate, witness
        self._calibrated_with = scores, anomalous, groups  # for `report`
        return self
