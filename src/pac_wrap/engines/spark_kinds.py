"""Kinds of points in a Spark DataFrame: counted by Spark, and each calibrated as any frame is."""

from typing import Any, Final

from pac_wrap.base.arguments import ScoreType
from pac_wrap.engines.kinds import KindsAsked
from pac_wrap.engines.spark_counts import SparkCounts, fetched, literal
from pac_wrap.engines.spark_groups import TEXTS, WHOLE, base_type
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.chunked import certify_counted
from pac_wrap.method.kinds.certificate import MOST_KINDS, KindCertificate
from pac_wrap.method.request import Request

_KINDS: Final = (*TEXTS, *WHOLE, "boolean", "date")
# the kinds of both classes, and the rows of both without one
_LISTED: Final = 2 * MOST_KINDS + 2


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
