"""Spark: calibrate, decide and score DataFrames; the statistics live in `chunks`.

pac_wrap must be installed where the Python workers run. Only DataFrames are used, no RDDs.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, Unpack

from pac_wrap.calibration import StrategyOptions
from pac_wrap.certificate import Certificate
from pac_wrap.chunks import Part, PartTask, calibrate_parts
from pac_wrap.columns import refuse_added
from pac_wrap.engines.arrow import ANSWER, added, answer, scored, unpack
from pac_wrap.engines.columns import require_columns
from pac_wrap.engines.packages import import_package
from pac_wrap.errors import InputError, MissingExtraError
from pac_wrap.estimator import PACWrap
from pac_wrap.guarantee import Guarantee
from pac_wrap.relaxation import Strategy, StrategyName
from pac_wrap.scores import anomaly_scores
from pac_wrap.sql import between, prediction_set_sql, quote_name, verdict_sql

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
    if score == label:
        raise InputError(f"column {score!r} cannot be both the score and the label; name two columns")
    check_frame(df, {score: SCORES, label: LABELS})
    # mapInArrow trips over names with dots
    pairs = df.selectExpr(f"{_double(score)} AS score", f"{quote_name(label, 'spark')} AS label")
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

    A missing score is abstained on.
    """
    check_frame(df, {score: SCORES})
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
    known = getattr(detector, "feature_names_in_", None)
    if features is None:
        features = (
            [name for name, kind in df.dtypes if _base(kind) in _NUMBERS] if known is None else list(known)
        )
    check_frame(df, dict.fromkeys(features, SCORES))
    refuse_added(df.columns, [score])
    wanted = getattr(detector, "n_features_in_", len(features)) or 0
    if len(features) != wanted or not features:
        raise InputError(
            f"the detector was fitted on {wanted or 'some'} features, got {len(features)}:"
            f" {', '.join(features) or 'no column holds numbers'}; name its columns with features"
        )
    scores = (
        detector.decision_function if isinstance(detector, PACWrap) else partial(anomaly_scores, detector)
    )

    def batches(frames: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:  # type: ignore[name-defined]
        yield from scored(scores, known is not None, frames)

    rows = functions.struct(*(functions.expr(_double(name)).alias(name) for name in features))
    return df.withColumn(score, functions.pandas_udf(batches, "double")(rows))


def run_parts(pairs: Any, task: PartTask) -> Part:
    """Return the sum of the task's answers over all partitions; it is made on the workers, in a tree.

    The driver receives one row, however many rows and partitions there are.
    """

    def answers(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        yield from answer(task, TaskContext.get().partitionId(), batches)

    if task.bounds is not None:  # Spark drops the others before any Python sees them
        pairs = pairs.where(between("score", task.bounds))
    parts = pairs.mapInArrow(answers, ANSWER).repartition("number").mapInArrow(added, ANSWER)
    try:
        rows = parts.repartition(1).mapInArrow(added, ANSWER).collect()
    except import_package("pyspark.errors", "spark").PySparkException as error:
        if "No module named 'pac_wrap'" in str(error):
            raise MissingExtraError(
                "Spark's Python workers cannot import pac_wrap; install it where they run, or set"
                " PYSPARK_PYTHON to a Python that has it before the session starts"
            ) from error
        raise
    return unpack(rows[0].part) if rows else task(0, [])


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


def _base(kind: str) -> str:
    return kind.partition("(")[0].partition(" ")[0]


def _double(column: str) -> str:
    return f"CAST({quote_name(column, 'spark')} AS DOUBLE)"
