"""Calibration rows that something was trained on: what can be seen of it, and the warning that says so."""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import currentframe
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from pac_wrap.errors import OverlapWarning
from pac_wrap.inputs import Scores
from pac_wrap.rows import row_digests
from pac_wrap.scores import is_estimator

# where scikit-learn, PyOD and those who follow their templates keep rows, and scores, of the training data
_ROWS: Final = ("X_", "_fit_X", "X_fit_", "X_train_", "X_train", "support_vectors_", "subset")
_SCORES: Final = ("decision_scores_", "dist_")


@dataclass(frozen=True)
class TrainingRows:
    """What is remembered of the rows a detector was trained on: their digests, as they are and in float32."""

    exact: NDArray[np.uint64]
    single: NDArray[np.uint64]

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return the digests of the rows of X."""
        return cls(np.unique(row_digests(X)), np.unique(row_digests(X, single=True)))

    def count_in(self, X: Any) -> int:
        """Return how many rows of X are training rows, the float32 copy of one, or what one is a copy of.

        Rows that are merely close are not the same: float32 cannot tell seconds of one minute apart.
        """
        exact = row_digests(X)
        copies = np.isin(exact, self.single) | np.isin(row_digests(X, single=True), self.exact)
        return int(np.count_nonzero(np.isin(exact, self.exact) | copies))


def warn_of_overlap(training: TrainingRows | None, detector: Any, X: Any, scores: Scores) -> None:
    """Warn of calibration rows that the detector was trained on, here or elsewhere if it still holds them."""
    if training is not None:
        count, where = training.count_in(X), "also stand in the training data"
    else:
        count, where = _known_to(detector, X, scores), "are known to the detector from its training"
    if count:
        warnings.warn(
            f"{count:,} calibration rows {where}; if they are the same records the promise does not hold for"
            " them: calibrate on rows the detector has not seen",
            OverlapWarning,
            stacklevel=4,
        )


def warn_of_pipeline() -> None:
    """Warn if a pipeline that is being fitted has fitted its earlier steps on the rows to calibrate on."""
    if steps := _steps_fitted_around():
        inside = ", ".join(f"{step}()" for step in steps)
        warnings.warn(
            f"the pipeline around PACWrap has fitted {' and '.join(steps)} on the calibration rows too, so"
            f" the promise does not hold; put the steps inside: PACWrap(make_pipeline({inside}, detector))",
            OverlapWarning,
            stacklevel=5,
        )


def _known_to(detector: Any, X: Any, scores: Scores) -> int:
    """Return how many rows of X a detector holds, as rows or by their scores, from a training elsewhere.

    Neighbours, kernel densities, support vector machines and Gaussian processes keep training rows, in a
    pipeline as its last step sees them; PyOD's detectors and robust covariances keep training scores. A
    forest or a network keeps nothing that could be seen.
    """
    core, rows = _inside(detector, X)
    counts = [0]
    for part in _parts(core):
        for kept in _kept_rows(part):
            if len(kept.shape) == 2 and kept.shape[0] and kept.shape[1:] == _shape(rows)[1:]:
                counts.append(TrainingRows.of(kept).count_in(rows))
        counts.extend(_known_scores(vars(part).get(name), scores) for name in _SCORES)
    return max(counts)


def _inside(detector: Any, X: Any) -> tuple[Any, Any]:
    """Return the last estimator of pipelines, searches and frozen ones, and the rows as it sees them."""
    while True:
        if hasattr(detector, "steps"):
            if len(detector.steps) > 1:
                X = detector[:-1].transform(X)
            detector = detector.steps[-1][1]
        elif hasattr(detector, "best_estimator_"):
            detector = detector.best_estimator_
        elif isinstance(detector, FrozenEstimator):
            detector = detector.estimator
        else:
            return detector, X


def _parts(core: Any, seen: frozenset[int] = frozenset()) -> Iterator[Any]:
    """Yield a detector and those it holds as attributes: PyOD's wrap others."""
    if hasattr(core, "fit") and hasattr(core, "__dict__") and id(core) not in seen:
        yield core
        for value in vars(core).values():
            yield from _parts(value, seen | {id(core)})


def _kept_rows(part: Any) -> Iterator[Any]:
    for name, value in vars(part).items():
        if name in _ROWS and hasattr(value, "shape"):
            yield value
        elif hasattr(value, "get_arrays"):  # scikit-learn's trees of neighbours
            yield np.asarray(value.get_arrays()[0])


def _shape(rows: Any) -> tuple[int, ...]:
    return rows.shape if hasattr(rows, "shape") else np.shape(rows)


def _known_scores(kept: Any, scores: Scores) -> int:
    """Return the number of scores if all are among those kept, and too many differ for that to be chance."""
    if kept is None or np.ndim(kept) != 1:
        return 0
    values, counts = np.unique(scores.astype(np.float32), return_counts=True)
    if values.size < 2 or 2 * values.size < scores.size:
        return 0
    known, times = np.unique(np.asarray(kept, dtype=np.float32), return_counts=True)
    found = np.searchsorted(known, values).clip(max=known.size - 1)
    return scores.size if np.all((known[found] == values) & (counts <= times[found])) else 0


def _steps_fitted_around() -> list[str]:
    """Return the classes of the steps that pipelines up the stack have learned from the rows given to fit.

    A step that needs no fitting, by scikit-learn's tag, or that is frozen has learned nothing from them.
    """
    module = sys.modules.get("sklearn.pipeline")
    steps: list[str] = []
    frame = currentframe()
    while module is not None and frame is not None:
        if frame.f_code.co_name.startswith("fit"):
            pipeline = frame.f_locals.get("self")
            if isinstance(pipeline, module.Pipeline):
                steps[:0] = [type(step).__name__ for _, step in pipeline.steps[:-1] if _learns(step)]
        frame = frame.f_back
    return steps


def _learns(step: Any) -> bool:
    if step is None or step == "passthrough" or isinstance(step, FrozenEstimator):
        return False
    return not is_estimator(step) or bool(get_tags(step).requires_fit)
