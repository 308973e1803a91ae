"""Spark: calibrate, decide and score DataFrames; the statistics live in `ranks` and `method`.

Only DataFrames are used, no RDDs, so that Spark Connect will do. Only `calibrate_groups` and `score` need
Python workers, and pac_wrap where they run.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pac_wrap.base.arguments import ScoreType
from pac_wrap.engines.frames import (
    check_features,
    check_group,
    features_of,
    import_package,
    knows_names,
    require_columns,
    scorer,
    warn_if_undecidable,
)
from pac_wrap.engines.spark_counts import SparkCounts
from pac_wrap.engines.spark_groups import (
    GROUPS,
    base_type,
    certified_groups,
    certified_kinds,
    decided_by_group,
    group_sql,
)
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.chunked import Asked, T, calibrate_counted
from pac_wrap.method.curves.certify import CurveRequest
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.groups.calibrate import GroupRequest, warned_of_groups
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.method.kinds.part import warn_of_lacking
from pac_wrap.method.promise import Guarantee
from pac_wrap.tables.columns import refuse_added, refuse_as_third, require_two
from pac_wrap.tables.groups import refuse_narrower
from pac_wrap.tables.kinds import KindsAsked
from pac_wrap.tables.sql.expressions import prediction_set_sql, quote_name, verdict_sql

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
SCORES: Final = (*_NUMBERS, "boolean")
LABELS: Final = (*SCORES, "string", "char", "varchar")


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

    Three jobs or more compute the frame, the first of them only its first rows; `df.cache()` avoids that
    where it is expensive.

    Parameters
    ----------
    df : DataFrame of Spark
        The labelled points.
    score, label : str
        The columns of scores and labels; the rest is as in `calibrate_labelled`.

    Examples
    --------
    >>> calibrate(df).normal.n  # doctest: +SKIP
    900
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
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return the curve that `pac_wrap.certify_curve` gives for these two columns, byte for byte.

    Parameters
    ----------
    df, score, label : DataFrame of Spark and str
        The labelled points, and the names of their columns; the rest is as in `pac_wrap.certify_curve`.

    Examples
    --------
    >>> certify_curve(df).at(900.0).certified.max_fnr < 0.1  # doctest: +SKIP
    True
    """
    request = CurveRequest(delta_fpr, delta_fnr, anomaly_label, top_fpr, top_fnr)
    return certified(df, request, score=score, label=label)


def calibrate_groups(
    df: Any,
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    group: str = "group",
    together: bool = False,
    pool: bool = False,
    anomaly_label: object = 1,
    overlap: str | Overlap | None = None,
) -> GroupCertificate:
    """Return the certificate that `pac_wrap.calibrate_groups` gives for these columns, byte for byte.

    One shuffle brings the rows of each group together, in order, and Python workers, where pac_wrap must be
    installed, calibrate them. The driver gets a row for each group. Two small jobs before it count labels and
    groups; three after it find the pool.

    Parameters
    ----------
    df, score, label, group : DataFrame of Spark and str
        The labelled points, and the names of their columns; the rest is as in `pac_wrap.calibrate_groups`.

    Examples
    --------
    >>> sorted(calibrate_groups(df).groups)  # doctest: +SKIP
    ['even', 'odd']
    """
    request = GroupRequest(Request.of(guarantee, overlap, anomaly_label), together, pool)
    return warned_of_groups(certified_by_group(df, request, score=score, label=label, group=group))


def calibrate_kinds(
    df: Any,
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    kind: str = "kind",
    anomaly_label: object = 1,
    overlap: str | Overlap | None = None,
) -> KindCertificate:
    """Return the certificate that `pac_wrap.calibrate` gives for the same scores by kind, byte for byte.

    A class none of whose rows names a kind has none. One job counts labels, one the kinds, and each kind
    takes three or more, like `calibrate`.

    Parameters
    ----------
    df, score, label, kind : DataFrame of Spark and str
        The labelled points, and the names of their columns; the rest is as in `pac_wrap.calibrate`.

    Examples
    --------
    >>> [part.name for part in calibrate_kinds(df).anomalous]  # doctest: +SKIP
    ['x']
    """
    asked = KindsAsked.of(guarantee, overlap, anomaly_label, kind)
    found = certified_by_kind(df, asked, score=score, label=label, kind=kind)
    warn_of_lacking((*found.normal, *found.anomalous))
    return found


def certified_by_group(
    df: Any, request: GroupRequest, *, score: str, label: str, group: str
) -> GroupCertificate:
    """Return what a request gets from three columns."""
    require_two(score, label)
    check_frame(df, {score: SCORES, label: LABELS, group: GROUPS})
    refuse_as_third(group, (score, label))
    columns = {"score": _double(score), "label": _label(df, label), "value": group_sql(df, group)}
    rows = df.selectExpr(*(f"{value} AS {name}" for name, value in columns.items()))
    return certified_groups(rows, request, type_of(df, score))


def certified_by_kind(df: Any, asked: KindsAsked, *, score: str, label: str, kind: str) -> KindCertificate:
    """Return what is asked for of the kinds in three columns."""
    require_two(score, label)
    check_frame(df, {score: SCORES, label: LABELS, kind: ()})
    refuse_as_third(kind, (score, label), "kind")
    columns = {"score": _double(score), "label": _label(df, label), "kind": quote_name(kind, "spark")}
    rows = df.selectExpr(*(f"{value} AS {name}" for name, value in columns.items()))
    return certified_kinds(rows, asked, type_of(df, score))


def certified(df: Any, request: Asked[T], *, score: str, label: str) -> T:
    """Return what a request gets from two columns."""
    require_two(score, label)
    check_frame(df, {score: SCORES, label: LABELS})
    pairs = df.selectExpr(f"{_double(score)} AS score", f"{_label(df, label)} AS label")
    return calibrate_counted(SparkCounts(pairs, type_of(df, score), request.anomaly_label), request)


def decide(
    df: Any, certificate: Certificate | GroupCertificate, *, score: str = "score", group: str | None = None
) -> Any:
    """Return the frame with the columns `verdict` and `prediction_set`, as expressions of Spark's own.

    A missing score is abstained on. Where the frame's scores are of a narrower type than the certificate's,
    and that may change verdicts, a `PrecisionWarning` says so. A certificate of groups needs the column
    `group`; its rules are joined to the rows, groups that were never seen are abstained on, and scores of a
    narrower type are refused.

    Parameters
    ----------
    df : DataFrame of Spark
        The points.
    certificate : Certificate or GroupCertificate
        What decides.
    score, group : str
        The columns of scores and, for a certificate of groups, of groups.

    Examples
    --------
    >>> decide(df, calibrate(df)).columns  # doctest: +SKIP
    ['score', 'label', 'verdict', 'prediction_set']
    """
    check_group(certificate, group)
    check_frame(df, {score: SCORES})
    refuse_added(df.columns, ["verdict", "prediction_set"])
    if isinstance(certificate, GroupCertificate):
        check_frame(df, {str(group): GROUPS})
        refuse_narrower(type_of(df, score), certificate, score)
        return decided_by_group(df, certificate, score, str(group))
    warn_if_undecidable(certificate, type_of(df, score), score)
    verdict = verdict_sql(certificate.rule, score, "spark")
    labels = prediction_set_sql(certificate.exclusions, score, "spark")
    return df.selectExpr("*", f"CAST({verdict} AS TINYINT) AS verdict", f"{labels} AS prediction_set")


def score(df: Any, detector: Any, *, features: Sequence[str] | None = None, score: str = "score") -> Any:
    """Return the frame with a column of anomaly scores, not yet computed; higher is more anomalous.

    The detector is a fitted one, or a PACWrap around it, and gets its features as float64. They are the
    columns it was fitted on if it knows their names, else all columns of numbers.

    Parameters
    ----------
    df : DataFrame of Spark
        The rows.
    detector : object
        What gives the scores.
    features : sequence of str, optional
        The columns that it gets.
    score : str
        The column that is added.

    Examples
    --------
    >>> score(df, lambda X: -X[:, 0], features=["score"], score="turned").columns  # doctest: +SKIP
    ['score', 'label', 'turned']
    """
    check_frame(df, {})
    pd, functions = import_package("pandas", "spark"), import_package("pyspark.sql.functions", "spark")
    features = features_of(
        detector, features, lambda: (name for name, kind in df.dtypes if base_type(kind) in _NUMBERS)
    )
    check_frame(df, dict.fromkeys(features, SCORES))
    refuse_added(df.columns, [score])
    check_features(detector, features)
    scores, named = scorer(detector), knows_names(detector)

    def batches(frames: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:  # type: ignore[name-defined]  # pd is imported late
        for frame in frames:
            yield pd.Series(scores(frame if named else frame.to_numpy()) if len(frame) else [], dtype=float)

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
        if kinds and base_type(kind) not in kinds:
            labels = "labels: numbers, booleans or texts" if "string" in kinds else "numbers"
            what = "groups: texts, numbers, dates or booleans" if kinds is GROUPS else labels
            raise InputError(f"column {name!r} must hold {what}, but its type is {kind}; pick another column")


def type_of(df: Any, score: str) -> ScoreType:
    """Return the type of a column of scores."""
    return "float32" if dict(df.dtypes).get(score) == "float" else "float64"


def _label(df: Any, label: str) -> str:
    name = quote_name(label, "spark")
    # without a collation, which would take other texts for the same label
    return name if base_type(dict(df.dtypes)[label]) in SCORES else f"CAST({name} AS STRING)"


def _double(column: str) -> str:
    return f"CAST({quote_name(column, 'spark')} AS DOUBLE)"
