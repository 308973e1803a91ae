"""Frames of any engine: its optional packages, the columns a frame must have, and those a detector scores."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import ScoreType
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, MissingExtraError, PrecisionWarning
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.tables.columns import require_column


def import_package(name: str, extra: str) -> ModuleType:
    """Return the module of a name; where it is missing, one sentence names the extra that brings it.

    >>> import_package("json.decoder", "spark").__name__
    'json.decoder'
    >>> import_package("no_such_engine", "spark")
    Traceback (most recent call last):
    ...
    pac_wrap.errors.MissingExtraError: no_such_engine is not installed; run pip install "pac-wrap-ad[spark]"
    """
    try:
        return import_module(name)
    except ImportError as error:
        missing = (error.name or name).split(".")[0]
        raise MissingExtraError(
            f'{missing} is not installed; run pip install "pac-wrap-ad[{extra}]"'
        ) from error


def require_columns(wanted: Sequence[Any], columns: Sequence[Any]) -> None:
    """Refuse a frame that lacks one of the columns or has it twice.

    >>> require_columns(["scor"], ["id", "score"])
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: there is no column 'scor'; did you mean 'score'? the columns are id, score
    """
    for name in wanted:
        if name not in columns:
            require_column(str(name), [str(column) for column in columns])
        if list(columns).count(name) > 1:
            raise InputError(f"there are two columns named {name!r}; rename one of them")


def warn_if_undecidable(certificate: Certificate, kind: ScoreType, score: str) -> None:
    """Warn the caller of `decide` if scores may have lost the digits that decide their verdicts.

    Nothing is computed yet, so nobody knows whether such a score occurs.
    """
    if values := certificate.undecidable(kind):
        warnings.warn(
            f"column {score!r} holds {kind}, but the certificate is of {certificate.score_type} scores: what"
            f" became {' or '.join(map(repr, values))} by rounding may get the wrong verdict; decide on"
            f" unrounded scores, or calibrate on {kind} ones",
            PrecisionWarning,
            stacklevel=3,
        )


def check_group(certificate: object, group: object) -> None:
    """Refuse what is no certificate, one of groups without their column, and a column without such a one."""
    if isinstance(certificate, KindCertificate):
        raise InputError("the certificate is of kinds, whose rule is that of its binding; pass that")
    if not isinstance(certificate, Certificate | GroupCertificate):
        raise InputError(
            f"certificate must be a Certificate or a GroupCertificate, got {quoted(certificate)}; read a file"
            " with the load of its class"
        )
    if isinstance(certificate, GroupCertificate) != (group is not None):
        which = "of groups: name their column" if group is None else "of no groups: leave the column out"
        raise InputError(f"the certificate is {which}, with group")


def refuse_changed(found: NDArray[np.int64], counted: NDArray[np.int64]) -> None:
    """Refuse groups of which either class has another size than was counted before."""
    if not np.array_equal(found, counted):
        raise InputError("the frame has other rows each time it is computed; cache or persist it first")


def features_of(
    detector: Any, features: Sequence[Any] | None, numbers: Callable[[], Iterable[Any]]
) -> list[Any]:
    """Return the columns asked for, else those the detector was fitted on, else all columns of numbers."""
    if features is not None:
        return list(features)
    return list(detector.feature_names_in_ if knows_names(detector) else numbers())


def check_features(detector: Any, features: Sequence[Any]) -> None:
    """Refuse another number of features than the detector was fitted on."""
    wanted = getattr(detector, "n_features_in_", len(features)) or 0
    if len(features) != wanted or not features:
        raise InputError(
            f"the detector was fitted on {wanted or 'some'} features, got {len(features)}:"
            f" {', '.join(map(str, features)) or 'no column holds numbers'}; name its columns with features"
        )


def knows_names(detector: Any) -> bool:
    """Return whether a detector was fitted on a frame, and wants to see the names of its columns again."""
    return getattr(detector, "feature_names_in_", None) is not None


def scorer(detector: Any) -> Callable[[Any], Scores]:
    """Return what turns rows into scores: a fitted detector, or a PACWrap around it."""
    # here, since they load scikit-learn, which calibrating does not need
    from pac_wrap.detectors.estimator import PACWrap
    from pac_wrap.detectors.scores import anomaly_scores

    return detector.decision_function if isinstance(detector, PACWrap) else partial(anomaly_scores, detector)
