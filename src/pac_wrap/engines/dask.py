"""Dask: calibrate, decide and score frames of dask.dataframe; the statistics live in `chunks`."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, Final, Unpack
from uuid import uuid4

from pac_wrap.calibration import StrategyOptions
from pac_wrap.certificate import Certificate
from pac_wrap.chunks import Part, PartTask, calibrate_parts
from pac_wrap.columns import refuse_added
from pac_wrap.engines.columns import require_columns
from pac_wrap.engines.frames import part_of, prediction_sets, scored, verdicts
from pac_wrap.engines.packages import import_package
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.guarantee import Guarantee
from pac_wrap.relaxation import Strategy, StrategyName

# so many parts are added up in one step of the tree
_TOGETHER: Final = 8


def calibrate(
    df: Any,
    guarantee: Guarantee | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: object = 1,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate that `calibrate_labelled` gives for these two columns, byte for byte.

    Two to four passes are made by the current scheduler; only counts come back.
    """
    _check(df, [label], [score])
    if score == label:
        raise InputError(f"column {score!r} cannot be both the score and the label; name two columns")
    keys, graph = partitions_of(df[[score, label]])

    def run(task: PartTask) -> Part:
        try:
            part: Part = run_parts(partial(part_of, task), keys, graph)
        except PACWrapError:
            raise
        except ValueError as error:
            # such as read_csv raises where a column has another type than in the first rows
            reason = str(error).partition("\n")[0].rstrip(".")
            remedy = "mend them, or give their columns one type"
            raise InputError(f"the partitions cannot be read: {reason}; {remedy}") from error
        return part

    return calibrate_parts(
        run,
        guarantee,
        anomaly_label=anomaly_label,
        abstain=abstain,
        strategy=strategy,
        **options,
    )


def decide(df: Any, certificate: Certificate, *, score: str = "score") -> Any:
    """Return the frame with the columns `verdict` and `prediction_set`, not yet computed.

    A missing score is abstained on.
    """
    _check(df, numbers=[score])
    refuse_added(df.columns, ["verdict", "prediction_set"])
    scores, rule = df[score], certificate.rule
    return df.assign(
        verdict=scores.map_partitions(verdicts, rule, meta=("verdict", "int8")),
        prediction_set=scores.map_partitions(
            prediction_sets, rule, meta=("prediction_set", "string[pyarrow]")
        ),
    )


def score(df: Any, detector: Any, *, features: Sequence[str] | None = None, score: str = "score") -> Any:
    """Return the frame with a column of anomaly scores, not yet computed; higher is more anomalous.

    The detector is a fitted one, or a PACWrap around it. Its features are the columns it was fitted on if it
    knows their names, else all columns of numbers.
    """
    _check(df)
    named = getattr(detector, "feature_names_in_", None)
    if features is None:
        features = list(df.select_dtypes("number").columns if named is None else named)
    _check(df, numbers=features)
    refuse_added(df.columns, [score])
    wanted = getattr(detector, "n_features_in_", len(features)) or 0
    if len(features) != wanted or not features:
        raise InputError(
            f"the detector was fitted on {wanted or 'some'} features, got {len(features)}:"
            f" {', '.join(map(str, features)) or 'no column holds numbers'}; name its columns with features"
        )
    # as a task of its own the detector travels once to each worker, not with every partition
    sent = import_package("dask", "dask").delayed(detector, traverse=False)
    scores = df[list(features)].map_partitions(scored, sent, named is not None, meta=(score, "float64"))
    return df.assign(**{score: scores})


def partitions_of(df: Any) -> tuple[list[Any], dict[Any, Any]]:
    """Return the keys of a frame's partitions, and the graph that makes them; see Dask's collections."""
    # tuning would put small files together, and a partition's number would no longer be the one a user sees
    with import_package("dask", "dask").config.set({"optimization.tune.active": False}):
        frame = df.optimize()
    return list(frame.__dask_keys__()), dict(frame.__dask_graph__())


def run_parts(task: Callable[[int, Any], Any], keys: list[Any], graph: dict[Any, Any]) -> Any:
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


def _added(parts: list[Any]) -> Any:
    return reduce(add, parts)


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
