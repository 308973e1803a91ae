"""Groups of a Spark DataFrame: one shuffle brings the rows of a group together, and workers calibrate them.

Only columns with a row for each group reach the driver. The workers are Python's, with pac_wrap installed.
Kinds, which are few, are counted instead, and each is calibrated as any frame is.
"""

from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from pac_wrap.base.arguments import ScoreType
from pac_wrap.engines.frames import import_package, refuse_changed
from pac_wrap.engines.spark_counts import SparkCounts, fetched, literal
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.chunked import certify_counted
from pac_wrap.method.groups.calibrate import NO_SCORES, GroupRequest
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.part import Part, whole_groups
from pac_wrap.method.groups.values import MOST_GROUPS, as_group, merged, text_of, texts_of, too_many
from pac_wrap.method.kinds.certificate import MOST_KINDS, KindCertificate
from pac_wrap.ranks.brackets import Bracketed
from pac_wrap.tables.groups import ENDS, answers_sql
from pac_wrap.tables.kinds import KindsAsked
from pac_wrap.tables.sql.expressions import Compared, quote_name

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_TEXTS: Final = ("string", "char", "varchar")
# the column that a small table is joined by; no frame has one of this name
_OWN: Final = "pac-wrap group"
_KINDS: Final = (*_TEXTS, *_WHOLE, "boolean", "date")
# the kinds of both classes, and the rows of both without one
_LISTED: Final = 2 * MOST_KINDS + 2
GROUPS: Final = (*_TEXTS, *_WHOLE, "float", "double", "boolean", "date")


class _Kind(NamedTuple):
    """A type of groups: its name in Spark and in Arrow, and what reads a text."""

    spark: str
    arrow: str
    read: Callable[[str], Any]

    def of(self, text: str | None) -> list[Any]:
        """Return the value of this type that a group with this text has, if there is one."""
        try:
            value = None if text is None else self.read(text)
        except (ValueError, LookupError):
            return []
        return [value] if text_of(as_group(value)) == text else []


def base_type(kind: str) -> str:
    """Return the name of a type of Spark's without its length or collation.

    >>> base_type("varchar(9)"), base_type("decimal(12,2)")
    ('varchar', 'decimal')
    """
    return kind.partition("(")[0].partition(" ")[0]


def _kind(df: Any, group: str) -> _Kind:
    base = base_type(dict(df.dtypes)[group])
    if base in _TEXTS:
        return _Kind("STRING", "string", str)
    if base in _WHOLE:
        return _Kind("BIGINT", "int64", int)
    if base == "boolean":
        return _Kind("BOOLEAN", "bool", {"true": True, "false": False}.__getitem__)
    if base == "date":
        return _Kind("DATE", "date32", date.fromisoformat)
    return _Kind("DOUBLE", "float64", float)


def group_sql(df: Any, group: str) -> str:
    """Return the expression for the group of a row of a frame, NULL where it is missing."""
    column, kind = quote_name(group, "spark"), _kind(df, group).spark
    value = f"CAST({column} AS {kind})"
    return f"IF(isnan({column}), NULL, {value})" if kind == "DOUBLE" else value


def certified_groups(rows: Any, request: GroupRequest, score_type: ScoreType) -> GroupCertificate:
    """Return the certificate of a frame with the columns `score` (double), `label` and `value`, the group."""
    functions = import_package("pyspark.sql.functions", "spark")
    label = request.request.anomaly_label
    mark = SparkCounts(rows.select("score", "label"), score_type, label).mark()
    wanted = ("count(*) AS rows", f"count_if({mark} = 1) AS anomalous")
    counted = rows.groupBy("value").agg(*map(functions.expr, wanted))
    known = fetched(counted.limit(MOST_GROUPS + 1))
    if not known.num_rows:
        raise InputError(NO_SCORES)
    if known.num_rows > MOST_GROUPS:
        raise too_many(MOST_GROUPS)
    found = merged(np.arange(known.num_rows), known.column("value").to_pylist())
    places = known.column("value"), {"place": found.codes}
    numbered = _joined(rows.selectExpr("score", f"{mark} = 1 AS mark", "value"), "value", *places)
    n = np.zeros((2, len(found.values)), dtype=np.int64)
    both, anomalous = (known.column(name).to_numpy() for name in ("rows", "anomalous"))
    np.add.at(n[0], found.codes, both - anomalous)
    np.add.at(n[1], found.codes, anomalous)
    each = request.each(n)
    near = numbered.select("place", "score", "mark").repartition("place")
    # by one whole number Spark sorts without comparisons; the scores of a group are sorted where they arrive
    made = near.sortWithinPartitions("place").mapInArrow(
        partial(_calibrated, each, score_type),
        ", ".join(f"{name} {'BIGINT' if whole else 'DOUBLE'}" for name, whole in Part.flat_types().items()),
    )
    columns = fetched(made)
    part = Part.from_flat({name: columns.column(name).to_numpy() for name in columns.column_names})
    refuse_changed(part.columns.n, n)
    pool = None
    if request.pool and (few := part.columns.vacuous).any():
        pool = _pooled(numbered, part.places[few], each, score_type)
    return request.certificate(part.columns, part.areas, found.values, score_type, pool)


def _calibrated(request: Request, score_type: ScoreType, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the columns of the groups of a partition; called in a worker."""
    import pyarrow as pa

    rows = (
        (
            batch.column(0).to_numpy(),
            batch.column(1).to_numpy(),
            batch.column(2).to_numpy(zero_copy_only=False),
        )
        for batch in batches
    )
    for places, block in whole_groups(rows):
        yield pa.RecordBatch.from_pydict(Part.of(request, places, block, score_type).flat())


def _pooled(numbered: Any, places: Any, request: Request, score_type: ScoreType) -> Certificate:
    """Return the certificate of the rows of some groups taken as one, found as that of any frame."""
    import pyarrow as pa

    functions = import_package("pyspark.sql.functions", "spark")
    few = numbered.sparkSession.createDataFrame(pa.table({"place": places}))
    pairs = numbered.join(functions.broadcast(few), "place", "left_semi").selectExpr("score", "mark AS label")
    counts = SparkCounts(pairs, score_type, 1)
    return Bracketed(counts, lambda low, high: request.certify(low, high, score_type)).answer


def decided_by_group(df: Any, certificate: GroupCertificate, score: str, group: str) -> Any:
    """Return a frame with the verdict and the prediction set of each row, by the rule of its group."""
    import pyarrow as pa

    kind = _kind(df, group)
    values = {
        place: value for place, text in enumerate(texts_of(certificate.groups)) for value in kind.of(text)
    }
    ends = zip(ENDS, (*certificate.rules, *certificate.exclusions), strict=True)
    known = pa.array(values.values(), type=pa.type_for_alias(kind.arrow))
    rules = known, {name: column[[*values]] for name, column in ends}
    verdict, labels = answers_sql(Compared.column(score, "spark"), "spark")
    return _joined(df.alias("given"), group_sql(df, group), *rules).selectExpr(
        "given.*", f"CAST({verdict} AS TINYINT) AS verdict", f"{labels} AS prediction_set"
    )


def _joined(frame: Any, value: str, groups: Any, columns: dict[str, Any]) -> Any:
    """Return a frame in which each row has the columns of its group, which an expression gives."""
    import pyarrow as pa

    functions = import_package("pyspark.sql.functions", "spark")
    small = frame.sparkSession.createDataFrame(pa.table({_OWN: groups, **columns}))
    same = functions.expr(f"{value} <=> {quote_name(_OWN, 'spark')}")
    return frame.join(functions.broadcast(small), same, "left")


def certified_kinds(rows: Any, asked: KindsAsked, score_type: ScoreType) -> KindCertificate:
    """Return the certificate of a frame with the columns `score` (double), `label` and `kind`."""
    kind = dict(rows.dtypes)["kind"]
    if base_type(kind) not in _KINDS:
        raise asked.refused(kind)
    mark = SparkCounts(rows.select("score", "label"), score_type, asked.anomaly_label).mark()
    # without a collation, which would take other texts for the same kind
    marked = rows.selectExpr("score", f"{mark} AS label", "nullif(CAST(kind AS STRING), '') AS kind")
    found = fetched(marked.groupBy("label", "kind").count().limit(_LISTED + 1))
    if found.num_rows > _LISTED:
        raise InputError(
            f"column {asked.column!r} names more than {MOST_KINDS} kinds of a class; at most so many can have"
            " their own ceilings, so merge some"
        )

    def pair(normal: str | None, anomalous: str | None, request: Request) -> Certificate:
        texts = ("true" if one is None else f"kind = {literal(one, 'string')}" for one in (normal, anomalous))
        chosen = " OR ".join(f"(label = {number} AND {text})" for number, text in enumerate(texts))
        pairs = marked.where(chosen).select("score", "label")
        return certify_counted(SparkCounts(pairs, score_type, 1), request)

    columns = (found.column(name).to_pylist() for name in ("label", "kind", "count"))
    return asked.certificate([*zip(*columns, strict=True)], pair)
