"""Dask: calibrate, decide and score frames of dask.dataframe; the statistics live in `ranks` and `method`.

A worker is given one partition, a pandas frame: for its share of a pass, its verdicts or its scores.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, Final
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, ScoreType, as_scores, score_type
from pac_wrap.base.missing import missing_places
from pac_wrap.engines.frames import (
    check_features,
    features_of,
    import_package,
    knows_names,
    require_columns,
    scorer,
    warn_if_undecidable,
)
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.chunked import Asked, Sample, T, calibrate_parts
from pac_wrap.method.curves.certify import CurveRequest
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Rule
from pac_wrap.method.thresholds import Thresholds
from pac_wrap.ranks.partitions import PartitionAnswer, PartitionTask, missing_labels
from pac_wrap.ranks.search import within
from pac_wrap.tables.columns import refuse_added, require_two

# so many answers are added up in one step of the tree
_TOGETHER: Final = 8
# from so many partitions on, looking at one of them first saves more than it costs
_SAMPLED: Final = 4
# a set's place: 1 if label 0 is possible, and 2 more if label 1 is
_SETS: Final = np.array(["{}", "{0}", "{1}", "{0,1}"], dtype=object)


def calibrate(
    df: Any,
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: object = 1,
    overlap: str | Overlap | None = None,
) -> Certificate:
    """Return the certificate that `calibrate_labelled` gives for these two columns, byte for byte.

    The current scheduler looks at one partition and then makes one pass, or up to four where that partition
    is unlike the others; counts come back, and the few scores around the thresholds.
    """
    return certified(df, Request.of(guarantee, overlap, anomaly_label), score=score, label=label)


def certify_curve(
    df: Any,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: object = 1,
) -> Curve:
    """Return the curve that `pac_wrap.certify_curve` gives for these two columns, byte for byte."""
    return certified(df, CurveRequest(delta_fpr, delta_fnr, anomaly_label), score=score, label=label)


def certified(df: Any, request: Asked[T], *, score: str, label: str) -> T:
    """Return what a request gets from two columns."""
    _check(df, [label], [score])
    require_two(score, label)
    keys, graph = partitions_of(df[[score, label]])

    def run(task: PartitionTask, some: list[Any] = keys) -> PartitionAnswer:
        try:
            found: PartitionAnswer = sum_over_partitions(partial(_answer, task), some, graph)
        except PACWrapError:
            raise
        except ValueError as error:
            # such as read_csv raises where a column has another type than in the first rows
            reason = str(error).partition("\n")[0].rstrip(".")
            remedy = "fix them, or give their columns one type"
            raise InputError(f"the partitions cannot be read: {reason}; {remedy}") from error
        return found

    sample = Sample(partial(run, some=keys[len(keys) // 2 :][:1]), len(keys))
    return calibrate_parts(run, request, sample if len(keys) >= _SAMPLED else None)


def decide(df: Any, certificate: Certificate, *, score: str = "score") -> Any:
    """Return the frame with the columns `verdict` and `prediction_set`, not yet computed.

    A missing score is abstained on. Where the frame's scores are of a narrower type than the certificate's,
    and that may change verdicts, a `PrecisionWarning` says so.
    """
    _check(df, numbers=[score])
    warn_if_undecidable(certificate, _column_type(df[score].dtype), score)
    refuse_added(df.columns, ["verdict", "prediction_set"])
    scores, rule = df[score], certificate.rule
    return df.assign(
        verdict=scores.map_partitions(_verdicts, rule, meta=("verdict", "int8")),
        prediction_set=scores.map_partitions(
            _prediction_sets, certificate.exclusions, meta=("prediction_set", "string[pyarrow]")
        ),
    )


def score(df: Any, detector: Any, *, features: Sequence[str] | None = None, score: str = "score") -> Any:
    """Return the frame with a column of anomaly scores, not yet computed; higher is more anomalous.

    The detector is a fitted one, or a PACWrap around it. Its features are the columns it was fitted on if it
    knows their names, else all columns of numbers.
    """
    _check(df)
    features = features_of(detector, features, lambda: df.select_dtypes("number").columns)
    _check(df, numbers=features)
    refuse_added(df.columns, [score])
    check_features(detector, features)
    # as a task of its own the detector travels once to each worker, not with every partition
    sent = import_package("dask", "dask").delayed(detector, traverse=False)
    scores = df[features].map_partitions(_scored, sent, meta=(score, "float64"))
    return df.assign(**{score: scores})


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


def _check(df: Any, columns: Sequence[Any] = (), numbers: Sequence[Any] = ()) -> None:
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


def _answer(task: PartitionTask, number: int, frame: Any) -> PartitionAnswer:
    """Return what a task gives for a partition whose columns are the scores and the labels."""
    scores, labels = frame.iloc[:, 0], frame.iloc[:, 1]
    if missing := int(labels.isna().sum()):
        return PartitionAnswer(None, problem=(number, missing_labels(number, missing, labels.size)))
    values = _numbers(scores)
    if task.bounds is not None and values.dtype.kind in "biuf":
        inside = np.flatnonzero(within(values, task.bounds))
        values, labels = values[inside], labels.iloc[inside]
    return task(number, [(values, labels.to_numpy())])


def _verdicts(column: Any, rule: Rule) -> Any:
    """Return the verdicts of a column of scores; a missing one is abstained on."""
    found, _ = rule.decided(_scores(column))
    return type(column)(found, index=column.index)


def _prediction_sets(column: Any, exclusions: Thresholds) -> Any:
    """Return the labels still possible, as texts; both are where the score is missing."""
    scores = _scores(column)
    possible = exclusions.possible(scores, missing_places(scores))
    return type(column)(_SETS[possible @ [1, 2]], index=column.index, dtype="string[pyarrow]")


def _scored(frame: Any, detector: Any) -> Any:
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


def _column_type(kind: Any) -> ScoreType:
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
        return np.asarray(column.to_numpy(dtype=_column_type(kind), na_value=np.nan))
    return np.asarray(column.to_numpy())


def _scores(column: Any) -> Scores:
    """Return the scores of a column, NaN where they are missing."""
    return as_scores(_numbers(column), f"column {column.name!r}", missing=True)
