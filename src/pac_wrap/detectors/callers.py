"""Who is calling: what scikit-learn's tools around an estimator do that its promise cannot bear.

They tell an estimator nothing, so the stack of calls is looked at. What is not recognised goes unnoticed.
"""

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from pac_wrap.detectors.scores import is_estimator
from pac_wrap.errors import InputError, OverlapWarning
from pac_wrap.method.promise import Guarantee

_RIGHT_OR_NOT: Final = ("accuracy_score", "balanced_accuracy_score")  # an abstention is not right
_FOLDS: Final = "sklearn.model_selection._validation"  # where scikit-learn fits and scores a fold


def check_callers(guarantee: Guarantee, normal: int, anomalous: int) -> None:
    """Warn of a pipeline or a search around PACWrap, and refuse a fold without a class that is promised.

    A pipeline has fitted its earlier steps on the rows to calibrate on, and a search has chosen among
    settings on them. A fold that lacks a class certifies nothing about it, and no score would tell.
    """
    steps: list[str] = []
    search, in_fold = None, False
    for frame in _callers():
        in_fold = in_fold or frame.f_globals.get("__name__") == _FOLDS
        if not frame.f_code.co_name.startswith("fit"):
            continue
        owner = frame.f_locals.get("self")
        if isinstance(owner, Pipeline):
            steps[:0] = [type(step).__name__ for _, step in owner.steps[:-1] if _learns(step)]
        elif hasattr(owner, "best_params_") and not in_fold:  # while it tries settings, folds lie between
            search = type(owner).__name__
    if in_fold:
        _check_fold(guarantee, (normal, anomalous))
    if steps:
        inside = ", ".join(f"{step}()" for step in steps)
        _warn(
            f"the pipeline around PACWrap has fitted {' and '.join(steps)} on the calibration rows too, so"
            f" the promise does not hold; put the steps inside: PACWrap(make_pipeline({inside}, detector))"
        )
    if search is not None:
        _warn(
            f"{search} around PACWrap has chosen its settings on the calibration rows too, so the promise"
            f" does not hold; put the search inside: PACWrap({search}(detector, ...)), or calibrate(X, y)"
            " best_estimator_ on rows that the search has not seen"
        )


def _check_fold(guarantee: Guarantee, sizes: tuple[int, int]) -> None:
    for n, name, promise in zip(sizes, ("normal", "anomalous"), (guarantee.fpr, guarantee.fnr), strict=True):
        if promise is not None and n == 0:
            raise InputError(
                f"none of the {sum(sizes):,} rows of this fold is {name}, so it cannot certify"
                f" {promise.name} <= {promise.ceiling:g}; keep both classes in every fold with"
                " cv=StratifiedKFold(5)"
            )


def check_metric(undecided: int, of: int, anomaly_label: object) -> None:
    """Refuse to answer a metric of scikit-learn that would take verdicts for something else.

    An abstention would count as a third class, and labels other than 0 and 1 would be compared with verdicts
    as they stand.
    """
    scorers = (one for one in _callers() if one.f_code.co_name == "_score")
    found = ((one, getattr(one.f_locals.get("self"), "_score_func", None)) for one in scorers)
    frame, metric = next((pair for pair in found if pair[1] is not None), (None, None))
    if frame is None or metric is None or not getattr(metric, "__module__", "").startswith("sklearn."):
        return
    if anomaly_label == 1:  # of two other whole numbers, the greater was taken for the anomalies
        values = np.unique(np.asarray(frame.f_locals.get("y_true", 1)))
        anomaly_label = 1 if np.isin(values, (0, 1)).all() else values[-1].item()
    if anomaly_label != 1:
        raise InputError(
            f"{metric.__name__} takes 1 for an anomaly, as verdicts do, but in y that is"
            f" anomaly_label={anomaly_label!r}; recode y as 0 and 1, or score with pac_wrap.scoring"
        )
    if undecided and metric.__name__ not in _RIGHT_OR_NOT:
        raise InputError(
            f"{metric.__name__} has no place for abstentions, which {undecided:,} of {of:,} verdicts are;"
            ' score with pac_wrap.scoring, or decide every row with overlap="raise"'
        )


def _warn(text: str) -> None:
    warnings.warn(text, OverlapWarning, stacklevel=5)


def _callers() -> Iterator[FrameType]:
    """Yield the frames of all calls under way, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _learns(step: Any) -> bool:
    """Return whether a step learns from rows: not if it needs no fitting, by its tag, or is frozen."""
    if step is None or step == "passthrough" or isinstance(step, FrozenEstimator):
        return False
    return not is_estimator(step) or bool(get_tags(step).requires_fit)
