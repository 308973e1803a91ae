"""Which columns of a frame a detector scores, and how: what the engines share."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from pac_wrap.errors import InputError
from pac_wrap.estimator import PACWrap
from pac_wrap.inputs import Scores
from pac_wrap.scores import anomaly_scores


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
    return detector.decision_function if isinstance(detector, PACWrap) else partial(anomaly_scores, detector)
