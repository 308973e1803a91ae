"""Spark: calibrate, decide and score DataFrames; the statistics live in `chunks`.

pac_wrap must be installed where the Python workers run. Only DataFrames are used, no RDDs.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, Unpack

from pac_wrap.calibration import StrategyOptions
from pac_wrap.certificate import Certificate
from pac_wrap.chunks import calibrate_parts
from pac_wrap.columns import refuse_added, require_two
from pac_wrap.engines.arrow import scored
from pac_wrap.engines.columns import require_columns, warn_if_undecidable
from pac_wrap.engines.features import check_features, features_of, knows_names, scorer
from pac_wrap.engines.packages import import_package
from pac_wrap.engines.spark_parts import run_parts
from pac_wrap.errors import InputError
from pac_wrap.guarantee import Guarantee
from pac_wrap.precision import ScoreType
from pac_wrap.relaxation import Strategy, StrategyName
from pac_wrap.sql import prediction_set_sql, quote_name, verdict_sql

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
SCORES: Final = (*_NUMBERS, "boolean")
LABELS: Final = (*SCORES, "string", "char", "varchar")


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

    Two to four passes are made, and each computes the frame again; `df.cache()` spares that where it is dear.
    """
    require_two(score, label)
    check_frame(df, {score: SCORES, label: LABELS})
    # mapInArrow trips over names with dots
    number = quote_name(score, "spark") if type_of(df, score) == "float32" else _double(score)
    pairs = df.selectExpr(f"{number} AS score", f"{quote_name(label, 'spark')} AS label")
    return calibrate_parts(
        partial(run_parts, pairs),
        guarantee,
        anomaly_label=anomaly_label,
        abstain=abstain,
        strategy=strategy,
        **options,
    )


def decide(df: Any, certificate: Certificate, *, score: str = "score") -> Any:
    """Return the frame with the columns `verdict` and `prediction_set`, as expressions of Spark's own.

    A missing score is abstained on. Where the frame's scores are of a narrower type than the certificate's,
    and that may change verdicts, a `PrecisionWarning` says so.
    """
    check_frame(df, {score: SCORES})
    warn_if_undecidable(certificate, type_of(df, score), score)
    refuse_added(df.columns, ["verdict", "prediction_set"])
    rule = certificate.rule
    verdict, labels = verdict_sql(rule, score, "spark"), prediction_set_sql(rule, score, "spark")
    return df.selectExpr("*", f"CAST({verdict} AS TINYINT) AS verdict", f"{labels} AS prediction_set")


def score(df: Any, detector: Any, *, features: Sequence[str] | None = None, score: str = "score") -> Any:
    """Return the frame with a column of anomaly scores, not yet computed; higher is more anomalous.

    The detector is a fitted one, or a PACWrap around it, and gets its features as float64. They are the
    columns it was fitted on if it knows their names, else all columns of numbers.
    """
    check_frame(df, {})
    pd, functions = import_package("pandas", "spark"), import_package("pyspark.sql.functions", "spark")
    features = features_of(
        detector, features, lambda: (name for name, kind in df.dtypes if _base(kind) in _NUMBERS)
    )
    check_frame(df, dict.fromkeys(features, SCORES))
    refuse_added(df.columns, [score])
    check_features(detector, features)
    scores, named = scorer(detector), knows_names(detector)

    def batches(frames: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:  # type: ignore[name-defined]  # pd is imported late
        yield from scored(scores, named, frames)

    rows = functions.struct(*(functions.expr(_double(name)).alias(name) for name in features))
    return df.withColumn(score, functions.pandas_udf(batches, "double")(rows))


def check_frame(df: Any, columns: dict[str, tuple[str, ...]]) -> None:
    """Refuse what is no Spark DataFrame, and columns that are absent or of other types than these."""
    if not isinstance(df, import_package("pyspark.sql", "spark").DataFrame):
        kind = f"{type(df).__module__.split('.')[0]} {type(df).__name__}"
        raise InputError(f"df must be a DataFrame of Spark, got {kind}; try spark.createDataFrame(df)")
    require_columns(list(columns), df.columns)
    for name, kinds in columns.items():
        kind = dict(df.dtypes)[name]
        if _base(kind) not in kinds:
            what = "labels: numbers, booleans or texts" if "string" in kinds else "numbers"
            raise InputError(f"column {name!r} must hold {what}, but its type is {kind}; pick another column")


def type_of(df: Any, score: str) -> ScoreType:
    """Return the type of a column of scores."""
    return "float32" if dict(df.dtypes).get(score) == "float" else "float64"


def _base(kind: str) -> str:
    return kind.partition("(")[0].partition(" ")[0]


def _double(column: str) -> str:
    return f"CAST({quote_name(column, 'spark')} AS DOUBLE)"
