"""The partitions of a Dask frame, each a pandas frame: tasks for all of them, and columns as arrays."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any, Final
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, ScoreType, as_scores, score_type
from pac_wrap.engines.frames import import_package, knows_names, require_columns, scorer
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.method.chunked import Asked, Sample, T, certify_parts
from pac_wrap.method.rule import Rule
from pac_wrap.ranks.partitions import PartitionAnswer, PartitionTask, missing_labels
from pac_wrap.ranks.search import within

# so many answers are added up in one step of the tree
_TOGETHER: Final = 8
# from so many partitions on, looking at one of them first saves more than it costs
_SAMPLED: Final = 4


def answered(task: Callable[[int, Any], Any], keys: list[Any], graph: dict[Any, Any]) -> Any:
    """Return the sum of task(number, partition) over some partitions; say so where they cannot be read."""
    try:
        return sum_over_partitions(task, keys, graph)
    except PACWrapError:
        raise
    except ValueError as error:
        # such as read_csv raises where a column has another type than in the first rows
        reason = str(error).partition("\n")[0].rstrip(".")
        remedy = "fix them, or give their columns one type"
        raise InputError(f"the partitions cannot be read: {reason}; {remedy}") from error


@dataclass(frozen=True, slots=True)
class Seen:
    """What a first look at some partitions gives: what is wrong with them, and how many rows are of what."""

    answer: PartitionAnswer
    rows: Counter[Any] = field(default_factory=Counter)

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(self.answer + other.answer, self.rows + other.rows)


def rows_of(normal: Scores, anomalous: Scores) -> int:
    """Return how many scores there are: the task of a first look."""
    return normal.size + anomalous.size


def certified_pairs(df: Any, request: Asked[T]) -> T:
    """Return what a request gets from a frame whose columns are the scores and the labels."""
    keys, graph = partitions_of(df)

    def run(task: PartitionTask, some: list[Any] = keys) -> PartitionAnswer:
        found: PartitionAnswer = answered(partial(answer_of, task), some, graph)
        return found

    sample = Sample(partial(run, some=keys[len(keys) // 2 :][:1]), len(keys))
    return certify_parts(run, request, sample if len(keys) >= _SAMPLED else None)


def partitions_of(df: Any) -> tuple[list[Any], dict[Any, Any]]:
    """Return the keys of a frame's partitions, and the graph that makes them; see Dask's collections."""
    # tuning would put small files together, and a partition's number would no longer be the one a user sees
    with import_package("dask", "dask").config.set({"optimization.tune.active": False}):
        frame = df.optimize()
    return list(frame.__dask_keys__()), dict(frame.__dask_graph__())


def sum_over_partitions(task: Callable[[int, Any], Any], keys: list[Any], graph: dict[Any, Any]) -> Any:
    """Return the sum of task(number, partition) over all partitions, added up on the workers in a tree."""
    delayed = import_package("dask.delayed", "dask")
    name = f"pac-wrap-{uuid4().hex}"
    # the task has a key of its own, so that it travels once to each worker
    added: dict[Any, Any] = {name: task}

    def keyed(calls: list[tuple[Any, ...]]) -> list[Any]:
        places = [(name, len(added) + place) for place in range(len(calls))]
        added.update(zip(places, calls, strict=True))
        return places

    keys = keyed([(_call, name, number, key) for number, key in enumerate(keys)])
    while len(keys) > 1:
        groups = range(0, len(keys), _TOGETHER)
        keys = keyed([(_added, keys[start : start + _TOGETHER]) for start in groups])
    return delayed.Delayed(keys[0], graph | added).compute()


def _call(task: Any, number: int, partition: Any) -> Any:
    return task(number, partition)


def _added(answers: list[Any]) -> Any:
    return reduce(add, answers)


def check_frame(df: Any, columns: Sequence[Any] = (), numbers: Sequence[Any] = ()) -> None:
    """Refuse what is no Dask frame, and columns that are absent or hold no numbers where they should."""
    if not isinstance(df, import_package("dask.dataframe", "dask").DataFrame):
        kind = f"{type(df).__module__.split('.')[0]} {type(df).__name__}"
        raise InputError(
            f"df must be a DataFrame of dask.dataframe, got {kind}; make one, for example with"
            " dask.dataframe.from_pandas(df, npartitions=8) or read_parquet"
        )
    from pandas.api import types

    require_columns([*columns, *numbers], list(df.columns))
    for name in numbers:
        kind = df.dtypes[name]
        known = (types.is_numeric_dtype, types.is_bool_dtype, types.is_object_dtype)
        if not any(fits(kind) for fits in known) and kind != "category":
            raise InputError(
                f"column {name!r} must hold numbers, but its type is {kind}; pick another column"
            )


def answer_of(task: PartitionTask, number: int, frame: Any) -> PartitionAnswer:
    """Return what a task gives for a partition whose columns are the scores and the labels."""
    scores, labels = frame.iloc[:, 0], frame.iloc[:, 1]
    if missing := int(labels.isna().sum()):
        return PartitionAnswer(None, problem=(number, missing_labels(number, missing, labels.size)))
    values = numbers_of(scores)
    if task.bounds is not None and values.dtype.kind in "biuf":
        inside = np.flatnonzero(within(values, task.bounds))
        values, labels = values[inside], labels.iloc[inside]
    return task(number, [(values, labels.to_numpy())])


def column_type(kind: Any) -> ScoreType:
    """Return the type of scores in a column of this pandas type."""
    plain = getattr(kind, "numpy_dtype", kind)
    return score_type(plain) if isinstance(plain, np.dtype) else "float64"


def numbers_of(column: Any) -> NDArray[Any]:
    """Return a column as an array whose missing values are NaN; what holds no numbers stays as it is."""
    from pandas.api import types

    kind = column.dtype
    if types.is_object_dtype(kind):
        column = column.where(column.notna(), np.nan).infer_objects()
    elif types.is_extension_array_dtype(kind) and (types.is_numeric_dtype(kind) or types.is_bool_dtype(kind)):
        return np.asarray(column.to_numpy(dtype=column_type(kind), na_value=np.nan))
    return np.asarray(column.to_numpy())


def scores_of(column: Any) -> Scores:
    """Return the scores of a column, NaN where they are missing."""
    return as_scores(numbers_of(column), f"column {column.name!r}", missing=True)


def verdicts_of(column: Any, rule: Rule) -> Any:
    """Return the verdicts of a column of scores; a missing one is abstained on."""
    found, _ = rule.decided(scores_of(column))
    return type(column)(found, index=column.index)


def scored_by(frame: Any, detector: Any) -> Any:
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
