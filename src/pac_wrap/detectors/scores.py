"""Anomaly scores of any detector, with the direction of each library's scores; no other module knows it."""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from threading import Lock
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from pac_wrap.base.arguments import Scores, as_scores, check_choice
from pac_wrap.base.text import quoted
from pac_wrap.errors import DetectorError, InputError, PACWrapError

Polarity = Literal["auto", "higher", "lower"]
Indices = NDArray[np.intp]
_MODE_LOCK = Lock()


class AnomalyScorer:
    """Base of detectors whose `decision_function` is higher for more anomalous rows, such as PACWrap."""


class UnfittedError(PACWrapError, NotFittedError):
    """The detector, or the wrapper, has to be fitted or calibrated first."""


def anomaly_scores(
    detector: Any, X: Any, polarity: Polarity = "auto", *, anomaly_label: object = 1, missing: bool = False
) -> Scores:
    """Return one score per row of X, higher for more anomalous rows.

    Parameters
    ----------
    detector : object
        A fitted scikit-learn outlier detector, density estimator or classifier, a PyOD detector, a torch
        module or function that returns one score per row (higher is more anomalous), or "precomputed" if X
        holds the scores themselves.
    X : array-like
        The rows, as the detector takes them.
    polarity : "auto", "higher" or "lower"
        Whether anomalies score higher or lower; required for a detector of any other kind.
    anomaly_label : object
        The class of anomalies, for a classifier.
    missing : bool
        Whether scores may be missing: NaN is then returned, otherwise it raises an error.

    Returns
    -------
    ndarray of float

    Raises
    ------
    UnfittedError
        If the detector is not fitted.
    DetectorError
        If the detector has no usable scores, or their direction is unknown.
    InputError
        If the detector cannot score these rows.

    Examples
    --------
    >>> anomaly_scores(lambda X: X[:, 0], np.array([[1.0, 5.0], [2.0, 6.0]]))
    array([1., 2.])
    """
    check_choice("polarity", polarity, ("auto", "higher", "lower"))
    raw, flip = _scorer(detector, anomaly_label, known=polarity != "auto")
    name = detector_name(detector)
    # LocalOutlierFactor drops a data frame's names itself, and then warns that there are none
    unnamed = hasattr(X, "columns") and hasattr(core_of(detector, trained=False), "novelty")
    try:
        if _is_a(detector, "pyod."):
            check_is_fitted(detector, "decision_scores_")
        with warnings.catch_warnings() if unnamed else nullcontext():
            if unnamed:
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            values = raw(X)
    except NotFittedError as error:
        raise UnfittedError(
            f"the detector {name} is not fitted; fit it first, or call PACWrap.fit(X, y)"
        ) from error
    except ValueError as error:
        raise InputError(f"the detector {name} cannot score these rows: {error}") from error
    except NotImplementedError as error:
        raise DetectorError(
            f"the detector {name} scores only the rows it was trained on: {error};"
            " use a detector that scores new rows"
        ) from error
    scores = as_scores(values, f"the scores of {name}", missing=missing)
    return -scores if (flip if polarity == "auto" else polarity == "lower") else scores


def is_estimator(detector: Any) -> bool:
    """Return whether a detector follows scikit-learn's protocol of tags and parameters."""
    return hasattr(detector, "__sklearn_tags__") and not isinstance(detector, type)


def _scorer(detector: Any, anomaly_label: object, *, known: bool) -> tuple[Callable[[Any], Any], bool]:
    """Return the function that gives a detector's raw scores, and whether anomalies score lower."""
    if isinstance(detector, str) and detector == "precomputed":
        return lambda X: X, False
    if isinstance(detector, type):
        raise DetectorError(
            f"the detector is the class {detector.__name__}, not an object; write {detector.__name__}(...)"
        )
    if _is_a(detector, "torch.nn"):
        return partial(_torch_scores, detector), False
    if _is_a(core_of(detector, trained=False), "pyod.", "pac_wrap_paper.detectors."):
        return _method(detector, "decision_function"), False
    if is_estimator(detector):
        if is_classifier(detector):
            _method(detector, "decision_function", "predict_proba")
            return partial(_classifier_scores, detector, anomaly_label), False
        if is_outlier_detector(detector) or is_density(detector):
            return _method(detector, "score_samples", "decision_function"), True
    if not hasattr(detector, "fit") and callable(detector):
        return detector, False
    if known:
        return _method(detector, "decision_function", "score_samples", "__call__"), False
    _method(detector, "decision_function", "score_samples")
    raise DetectorError(
        f"whether anomalies score higher or lower with {detector_name(detector)} is unknown;"
        ' pass polarity="higher" or polarity="lower"'
    )


def _method(detector: Any, *ways: str) -> Callable[[Any], Any]:
    for name in ways:
        if hasattr(detector, name):
            return cast(Callable[[Any], Any], getattr(detector, name))
    remedy = "pass a function that returns one score per row instead"
    if hasattr(core_of(detector, trained=False), "novelty"):
        remedy = "fit LocalOutlierFactor with novelty=True"
    raise DetectorError(f"{detector_name(detector)} gives no scores: it has no {' or '.join(ways)}; {remedy}")


def class_scores(classifier: Any, X: Any) -> Scores:
    """Return a column of scores for each class; a single score of two classes becomes (-score, score)."""
    # the decision function comes first: probabilities are squashed, and saturated ones tie
    for name in ("decision_function", "predict_proba"):
        if not hasattr(classifier, name):
            continue
        scores = np.asarray(getattr(classifier, name)(X))
        if scores.ndim == 1 and len(classifier.classes_) == 2:
            scores = np.column_stack([-scores, scores])
        if scores.ndim == 2 and scores.shape[1] == len(classifier.classes_):
            return scores
    raise DetectorError(
        f"{detector_name(classifier)} has neither a decision_function nor predict_proba with a column for"
        " each class; wrap another classifier, or call calibrate_classes with your own scores"
    )


def _classifier_scores(classifier: Any, anomaly_label: object, X: Any) -> Scores:
    scores, classes = class_scores(classifier, X), list(classifier.classes_)
    if len(classes) != 2 or anomaly_label not in classes:
        raise DetectorError(
            f"{detector_name(classifier)} has the classes {classes}, but must have two, one of them the"
            f" anomaly label {anomaly_label!r}; train it on normal and anomalous points"
        )
    return scores[:, classes.index(anomaly_label)]


def _torch_scores(module: Any, X: Any) -> Any:
    import torch

    example = next(module.parameters(), torch.empty(0))
    dtype = example.dtype if example.is_floating_point() else torch.get_default_dtype()
    rows = X if isinstance(X, torch.Tensor) else torch.tensor(np.asarray(X), dtype=dtype)
    # the evaluation mode is that of the whole module, so two threads may not switch it at once
    with _MODE_LOCK:
        modes = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            with torch.no_grad():
                output = module(rows.to(example.device))
        finally:
            for part, training in modes:
                part.training = training
    values = output.detach().cpu().to(torch.float64).numpy()
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def is_density(detector: Any) -> bool:
    """Return whether a detector estimates a density, which is low for anomalies."""
    # KernelDensity does not carry the tag of a density estimator
    tagged = get_tags(detector).estimator_type == "density_estimator"
    return tagged or type(core_of(detector, trained=False)).__name__ == "KernelDensity"


def _is_a(detector: Any, *packages: str) -> bool:
    """Return whether the object's class, or a base of it, comes from one of these packages, unimported."""
    return any(f"{base.__module__}.".startswith(packages) for base in type(detector).__mro__)


def detector_name(detector: Any) -> str:
    """Return a detector's name for messages: the name of the function or class, or the text itself."""
    if isinstance(detector, str):
        return quoted(detector)
    return str(getattr(detector, "__name__", type(detector).__name__))


def handed_on(detector: Any, *, trained: bool = True) -> Any:
    """Return the estimator inside a pipeline, a search or (if not `trained`) any wrapper; else None."""
    if hasattr(detector, "steps"):
        return detector.steps[-1][1]
    if isinstance(detector, FrozenEstimator) or not trained:
        return getattr(detector, "estimator", None)
    return getattr(detector, "best_estimator_", None)


def core_of(detector: Any, *, trained: bool = True) -> Any:
    """Return the estimator that gives the scores inside pipelines, searches and frozen estimators."""
    while (inner := handed_on(detector, trained=trained)) is not None:
        detector = inner
    return detector


def lineage(detector: Any) -> str | None:
    """Return a detector's name for certificates: its own, and the name of the estimator inside."""
    if isinstance(detector, str):
        return None
    outer, core = detector_name(detector), core_of(detector)
    return outer if core is detector else f"{outer} of {detector_name(core)}"


def take_rows(X: Any, rows: Indices) -> Any:
    """Return the given rows of an array, frame, sparse matrix or list, in the same kind of container."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]
