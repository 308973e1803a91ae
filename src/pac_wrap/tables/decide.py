"""A certificate at work on an open table: its error rates there, and every row written with its verdict."""

from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from pac_wrap.base.arguments import Scores
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.metrics import Metrics, Tally, metrics_of, tally
from pac_wrap.method.rule import Verdict
from pac_wrap.method.worth.shares import Counted
from pac_wrap.tables.calibrate import LabelledScores
from pac_wrap.tables.columns import miscounted, refuse_added
from pac_wrap.tables.connection import first_line
from pac_wrap.tables.sql import (
    prediction_set_sql,
    quote_name,
    quote_number,
    quote_text,
    score_sql,
    verdict_sql,
)
from pac_wrap.tables.table import Table

_WRITERS: Final = {
    ".parquet": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


def evaluate_table(
    table: Table, certificate: Certificate, *, score: str, label: str, anomaly_label: str | None
) -> Metrics:
    """Return how a certificate does on two columns of an open table."""
    labelled = LabelledScores(table, score, label, anomaly_label)
    refuse_undecidable(table, certificate, score)
    counts: Tally = labelled(partial(tally_of, certificate))
    if anomaly_label is not None and not counts[1].any():
        labelled.check_labels()
    return metrics_of(counts)


def count_table(table: Table, certificate: Certificate, score: str) -> Counted:
    """Return how many rows of an open table are declared anomalies and normal."""
    rows = table.check_scores(score)
    refuse_undecidable(table, certificate, score)
    verdicts = f"SELECT {verdict_sql(certificate.rule, score)} AS verdict FROM {table.everything}"
    counts = ", ".join(f"count(*) FILTER (verdict = {one})" for one in (Verdict.ANOMALY, Verdict.NORMAL))
    alarms, clears = table.rows(f"SELECT {counts} FROM ({verdicts})")[0]
    return Counted(alarms, clears, rows)


def decide_table(table: Table, certificate: Certificate, score: str, target: Path, options: str) -> None:
    """Write all columns of a table, and the verdict and prediction set of every row, to a file.

    `options` are those of COPY. An OSError says why the file cannot be written.
    """
    rows = table.check_scores(score)
    refuse_undecidable(table, certificate, score)
    rule = certificate.rule
    added = {
        "verdict": verdict_sql(rule, score),
        "prediction_set": prediction_set_sql(certificate.exclusions, score),
    }
    copy_with(table, score, added, target, options, rows)


def copy_with(
    table: Table,
    score: str,
    added: dict[str, str],
    target: Path,
    options: str,
    rows: int,
    joined: str = "",
) -> None:
    """Write all columns and the added expressions to a file; any other number of rows is an error.

    `joined` may join each row with what the expressions need.
    """
    refuse_added(table.columns, added)
    extra = ", ".join(f"{expression} AS {quote_name(name)}" for name, expression in added.items())
    # here the score alone is written otherwise, and finding the types of all columns takes long
    alike = table.reader == "read_parquet" and not options.startswith("FORMAT json")
    columns = _written(table.types if alike else table.all_types(), score, options)
    # without a temporary file beside the target, which others could see and which has other permissions
    query = (
        f"COPY (SELECT written.{columns}, {extra} FROM {table.everything} AS written {joined})"
        f" TO {quote_text(str(target))} ({options}, USE_TMP_FILE false)"
    )
    try:
        written = table.rows(query)[0][0]
    except InputError as error:
        if isinstance(error.__cause__, duckdb.IOException) and "write" in str(error.__cause__).lower():
            raise OSError(first_line(error.__cause__)) from error
        raise
    if written != rows:
        raise miscounted(table.names, rows, written)


def output_options(name: str) -> str:
    """Return what DuckDB's COPY needs for a file name: Parquet, CSV or JSON lines, perhaps packed."""
    packed = name.lower().endswith(".gz")
    suffix = Path(name.lower().removesuffix(".gz")).suffix or name.lower()
    if suffix not in _WRITERS or (packed and suffix == ".parquet"):
        raise InputError(f"the output {name} has no known format; the endings are {', '.join(_WRITERS)}")
    return _WRITERS[suffix] + (", COMPRESSION gzip" if packed else "")


def _written(types: dict[str, str], score: str, options: str) -> str:
    """Return the columns as they are written.

    Where a float32 becomes text, it has all digits of the double that is compared. JSON has neither
    infinities nor NaN: they become the texts "Infinity", "-Infinity" and "NaN"; a column that was read from
    such texts and numbers has the type JSON.
    """
    kind, number = types[score], score_sql(score, types[score])
    if options.startswith("FORMAT json"):
        floats = {name: quote_name(name) for name, kind in types.items() if kind in ("FLOAT", "DOUBLE")}
        shown = floats | ({score: number} if kind in ("FLOAT", "VARCHAR", "JSON") else {})
        shown = {name: _json(value) for name, value in shown.items()}
    else:
        text = options.startswith("FORMAT csv")
        shown = {score: number} if kind == "JSON" or (kind == "FLOAT" and text) else {}
    replaced = ", ".join(f"{value} AS {quote_name(name)}" for name, value in shown.items())
    return f"* REPLACE ({replaced})" if replaced else "*"


def _json(number: str) -> str:
    words = f"CASE WHEN isnan({number}) THEN 'NaN' WHEN {number} > 0 THEN 'Infinity' ELSE '-Infinity' END"
    finite = f"{number} IS NULL OR isfinite({number})"
    return f"CASE WHEN {finite} THEN to_json({number}) ELSE to_json({words}) END"


def refuse_undecidable(table: Table, certificate: Certificate, score: str) -> None:
    """Refuse scores that have lost the digits on which their verdicts depend."""
    kind = table.score_type(score)
    if not (values := certificate.undecidable(kind)):
        return
    listed = ", ".join(map(quote_number, values))
    found = f"SELECT count(*) FROM source WHERE {table.score_sql(score)} IN ({listed})"
    if count := table.rows(found)[0][0]:
        raise InputError(
            f"{count:,} scores of column {score!r} cannot be decided: as {kind} they are"
            f" {' or '.join(map(repr, values))}, which stands for numbers on both sides of a threshold, and"
            f" the certificate is of {certificate.score_type} scores; give it such scores, or calibrate on"
            f" {kind} ones"
        )


def tally_of(certificate: Certificate, normal: Scores, anomalous: Scores) -> Tally:
    """Return how often each verdict falls on either class."""
    anomalies = np.repeat([False, True], [normal.size, anomalous.size])
    return tally(certificate.verdicts(np.concatenate([normal, anomalous])), anomalies)
