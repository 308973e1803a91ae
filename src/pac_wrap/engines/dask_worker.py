"""What a Dask worker does with one partition, a pandas frame: its share of a pass, verdicts, scores."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, ScoreType, as_scores, score_type
from pac_wrap.engines.frames import knows_names, scorer
from pac_wrap.method.rule import Rule, Verdict
from pac_wrap.method.thresholds import Thresholds
from pac_wrap.ranks.partitions import PartitionAnswer, PartitionTask, missing_labels
from pac_wrap.ranks.search import within

# a set's place: 1 if label 0 is possible, and 2 more if label 1 is
_SETS: Final = np.array(["{}", "{0}", "{1}", "{0,1}"], dtype=object)


def answer(task: PartitionTask, number: int, frame: Any) -> PartitionAnswer:
    """Return what a task gives for a partition whose columns are the scores and the labels."""
    scores, labels = frame.iloc[:, 0], frame.iloc[:, 1]
    if missing := int(labels.isna().sum()):
        return PartitionAnswer(None, problem=(number, missing_labels(number, missing, labels.size)))
    values = _numbers(scores)
    if task.bounds is not None and values.dtype.kind in "biuf":
        inside = np.flatnonzero(within(values, task.bounds))
        values, labels = values[inside], labels.iloc[inside]
    return task(number, [(values, labels.to_numpy())])


def verdicts(column: Any, rule: Rule) -> Any:
    """Return the verdicts of a column of scores; a missing one is abstained on."""
    scores, missing = _known(column)
    found = rule.verdicts(scores)
    found[missing] = Verdict.ABSTAIN
    return type(column)(found, index=column.index)


def prediction_sets(column: Any, exclusions: Thresholds) -> Any:
    """Return the labels still possible, as texts; both are where the score is missing."""
    scores, missing = _known(column)
    possible = exclusions.prediction_sets(scores) | missing[:, np.newaxis]
    return type(column)(_SETS[possible @ [1, 2]], index=column.index, dtype="string[pyarrow]")


def scored(frame: Any, detector: Any) -> Any:
    """Return the scores of a partition."""
    from pandas import Series
    from pandas.api.types import is_extension_array_dtype

    if frame.empty:
        return Series(np.empty(0), index=frame.index)
    rows = frame
    if not knows_names(detector):
        nullable = any(is_extension_array_dtype(kind) for kind in frame.dtypes)
        rows = frame.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else frame.to_numpy()
    return Series(scorer(detector)(rows), index=frame.index)


def column_type(kind: Any) -> ScoreType:
    """Return the type of scores in a column of this pandas type."""
    plain = getattr(kind, "numpy_dtype", kind)
    return score_type(plain) if isinstance(plain, np.dtype) else "float64"


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column as an array whose missing values are NaN; what holds no numbers stays as it is."""
    from pandas.api import types

    kind = column.dtype
    if types.is_object_dtype(kind):
        column = column.where(column.notna(), np.nan).infer_objects()
    elif types.is_extension_array_dtype(kind) and (types.is_numeric_dtype(kind) or types.is_bool_dtype(kind)):
        return np.asarray(column.to_numpy(dtype=column_type(kind), na_value=np.nan))
    return np.asarray(column.to_numpy())


def _known(column: Any) -> tuple[Scores, NDArray[np.bool_]]:
    """Return the scores, 0 where they are missing, and where that is."""
    values = _numbers(column)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    return as_scores(np.where(missing, 0.0, values), f"column {column.name!r}"), missing
