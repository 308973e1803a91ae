"""Dask: calibrate, decide and score frames of dask.dataframe; the statistics live in `chunks`."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from pac_wrap.calibration import StrategyOptions
from pac_wrap.certificate import Certificate
from pac_wrap.chunks import Part, PartTask, calibrate_parts
from pac_wrap.columns import refuse_added, require_two
from pac_wrap.engines.columns import require_columns, warn_if_undecidable
from pac_wrap.engines.dask_graph import partitions_of, run_parts
from pac_wrap.engines.features import check_features, features_of
from pac_wrap.engines.frames import column_type, part_of, prediction_sets, scored, verdicts
from pac_wrap.engines.packages import import_package
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.guarantee import Guarantee
from pac_wrap.relaxation import Strategy, StrategyName


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
    require_two(score, label)
    keys, graph = partitions_of(df[[score, label]])

    def run(task: PartTask) -> Part:
        try:
            part: Part = run_parts(partial(part_of, task), keys, graph)
        except PACWrapError:
            raise
        except ValueError as error:
            # such as read_csv raises where a column has another type than in the first rows
            reason = str(error).partition("\n")[0].rstrip(".")
            remedy = "fix them, or give their columns one type"
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

    A missing score is abstained on. Where the frame's scores are of a narrower type than the certificate's,
    and that may change verdicts, a `PrecisionWarning` says so.
    """
    _check(df, numbers=[score])
    warn_if_undecidable(certificate, column_type(df[score].dtype), score)
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
    features = features_of(detector, features, lambda: df.select_dtypes("number").columns)
    _check(df, numbers=features)
    refuse_added(df.columns, [score])
    check_features(detector, features)
    # as a task of its own the detector travels once to each worker, not with every partition
    sent = import_package("dask", "dask").delayed(detector, traverse=False)
    scores = df[features].map_partitions(scored, sent, meta=(score, "float64"))
    return df.assign(**{score: scores})


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
