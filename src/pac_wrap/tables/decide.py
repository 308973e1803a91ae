"""Evaluate a certificate on an open table, or write its rows: all with their verdicts, or those to review."""

from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from pac_wrap.base.arguments import OnMissing, Scores, warn
from pac_wrap.errors import InputError, MissingScoreWarning
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate, decided
from pac_wrap.method.groups.measure import GroupMeasured, measured, tallied
from pac_wrap.method.groups.values import NEVER
from pac_wrap.method.metrics import Measured, Metrics, Tally, measured_kinds, metrics_of, tally
from pac_wrap.method.rule import Counted, Verdict
from pac_wrap.tables import columns as checks
from pac_wrap.tables import sql
from pac_wrap.tables.calibrate import OWN, PLACE, Numbered, TableGroups, TableSource, group_sql
from pac_wrap.tables.files.connection import MisfitError, first_line, refusal
from pac_wrap.tables.files.csv_files import refuse_scores
from pac_wrap.tables.table import Table

# returns the expressions of the columns that are added
Answers = Callable[[sql.Compared], tuple[str, str]]
# a column that keeps the order of rows; no table has a column with this name
_ROW: Final = '"pac-wrap row"'
_WRITERS: Final = {
    ".parquet": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


def evaluate_table(source: TableSource, certificate: Certificate) -> Metrics:
    """Return the error rates of a certificate on labelled scores; points without a score are undecided."""
    refuse_undecidable(source.table, certificate, source.score)
    counts: Tally = source(partial(verdicts_of, certificate))
    if source.missing:
        warn(
            f"{source.missing:,} of {counts.sum():,} rows have no score in column {source.score!r}; they are"
            " undecided, which counts as no error",
            MissingScoreWarning,
        )
    if not counts[1].any():
        source.check_named()
    return metrics_of(counts)


def evaluate_kinds_table(source: TableSource, certificate: Certificate) -> tuple[Measured, ...]:
    """Return the error rates of a certificate on each kind of a table; see `Certificate.evaluate`."""
    refuse_undecidable(source.table, certificate, source.score)
    found = source(partial(verdicts_of, certificate))
    counts: dict[Any, dict[str | None, Any]] = {"normal": {}, "anomalous": {}}
    for one, count in zip(source.populations(), found, strict=True):
        counts[one.label][one.kind] = count
    return measured_kinds(certificate.clauses, counts)


def evaluate_groups_table(scores: TableGroups, certificate: GroupCertificate) -> GroupMeasured:
    """Return the error rates of a certificate on each group of a table."""
    rows = scores.rows
    checks.refuse_narrower(rows.table.score_type(rows.score), certificate, rows.score)
    places = certificate.lookup.places(scores.groups)
    counts = np.zeros((len(certificate.groups) + 1, 2, 3), dtype=np.int64)
    for numbers, block in scores.blocks():
        own = np.repeat(places[numbers], np.diff(block.starts))
        verdicts = decided(certificate.rules, block.scores, own)
        counts += tallied(verdicts, block.marks, own, len(certificate.groups))
    return measured(certificate, counts)


def count_table(
    table: Table, certificate: Certificate, score: str, on_missing: OnMissing = "abstain"
) -> Counted:
    """Return how many rows are declared anomalous and normal, in the pass that checks all scores."""
    table.require_numbers(score)
    refuse_undecidable(table, certificate, score)
    verdict = sql.verdict_sql(certificate.rule, sql.compared_number(table.score_sql(score)))
    tests = [f"{verdict} = {one}" for one in (Verdict.ANOMALY, Verdict.NORMAL)]
    rows, missing, alarms, clears = table.check_scores(score, on_missing, tests)
    return Counted(alarms, clears, rows, missing)


def decide_table(
    table: Table, certificate: Certificate, score: str, target: Path, options: str, on_missing: OnMissing
) -> Counted:
    """Write a table with the verdict and prediction set of every row, and return the counts of verdicts."""
    table.require_numbers(score)
    checks.refuse_added(table.columns, checks.ADDED)

    def answers(compared: sql.Compared) -> tuple[str, str]:
        exclusions = sql.prediction_set_sql(certificate.exclusions, compared)
        return sql.verdict_sql(certificate.rule, compared), exclusions

    copy = partial(copy_with, table, score, answers, target, options)
    if table.reader != "read_csv":
        counted = count_table(table, certificate, score, on_missing)
        copy(counted.points)
        return counted
    refuse_undecidable(table, certificate, score)
    rows = table.counted or 0
    if not rows:
        raise checks.no_rows(table.names)
    try:
        try:
            copy(rows)
        except MisfitError:  # threads that did not meet, or a score that is no number
            table.look_at_all_cells()
            copy(rows)
    except MisfitError as error:
        refuse_scores(table.csv_files, score, on_missing)
        raise checks.changed(table.names) from error
    number = sql.quote_name(score)
    tests = "verdict = 1", "verdict = 0", "true", f"{number} IS NULL OR isnan({number})"
    counts = ", ".join(f"count(*) FILTER ({one})" for one in tests)
    (found,) = table.rows(f"SELECT {counts} FROM read_parquet({sql.quote_text(str(target))})")
    counted = Counted(*found)
    if counted.missing and on_missing == "stop":
        refuse_scores(table.csv_files, score, on_missing)
        raise checks.changed(table.names)
    return counted


def decide_groups_table(
    table: Table,
    certificate: GroupCertificate,
    columns: tuple[str, str],
    target: Path,
    options: str,
    on_missing: OnMissing = "abstain",
) -> Counted:
    """Write a table with verdicts by the rule of each row's group, and return the counts of verdicts."""
    score = columns[0]
    checks.refuse_added(table.columns, checks.ADDED)
    checks.refuse_narrower(table.score_type(score), certificate, score)
    rows, missing = table.check_scores(score, on_missing)
    if table.reader == "read_csv":
        table.look_at_all_cells()
    types = table.types_of(table.everything)
    value = group_sql(table, columns, types)
    found = Numbered(table, value, table.everything, ", count(*) AS rows")
    places = certificate.lookup.places(found.groups)
    ends = dict(zip(sql.ENDS, (*certificate.rules, *certificate.exclusions), strict=True))
    numbered = {PLACE.strip('"'): np.arange(places.size)}
    table.register("rules", numbered | {name: end[places] for name, end in ends.items()})
    table.rows(f"CREATE TABLE ruled AS SELECT {OWN}, rules.* FROM numbered JOIN rules USING ({PLACE})")
    joined = f"LEFT JOIN ruled ON {value} IS NOT DISTINCT FROM ruled.{OWN}"
    copy_with(table, score, sql.answers_sql, target, options, rows, joined)
    verdict, _ = sql.answers_sql(sql.compared_number(sql.score_sql(score, types[score])))
    tests = ", ".join(f"count(*) FILTER (({verdict}) = {one})" for one in (Verdict.ANOMALY, Verdict.NORMAL))
    ((alarms, clears),) = table.rows(f"SELECT {tests} FROM {table.everything} {joined}")
    counts = np.array([row[2] for row in found.rows])
    return Counted(alarms, clears, rows, missing, int(counts[places == NEVER].sum()))


def copy_with(
    table: Table, score: str, answers: Answers, target: Path, options: str, rows: int, joined: str = ""
) -> None:
    """Write all columns and the answers for each score to a file, and check the number of rows."""
    # here only the score needs its type, and finding the types of all columns takes long
    alike = table.reader == "read_parquet" and not options.startswith("FORMAT json")
    types = table.types if alike else table.types_of(table.everything)
    columns, source = _written(types, score, options), table.everything
    compared = sql.compared_number(sql.score_sql(score, types[score]))
    if joined:  # a join loses the order of rows
        source = f"(SELECT *, row_number() OVER () AS {_ROW} FROM {source})"
    named = zip(answers(compared), checks.ADDED, strict=True)
    answered = ", ".join(f"{one} AS {name}" for one, name in named)
    query = f"SELECT written.{columns}, {answered} FROM {source} AS written {joined}"
    if joined:
        query = f"SELECT * EXCLUDE ({_ROW}) FROM ({query}) ORDER BY {_ROW}"
    copied(table.rows, query, target, options, table.names, rows)


def copied(
    run: Callable[[str], Any], query: str, target: Path, options: str, names: list[str], rows: int
) -> None:
    """Write the rows of a query to a file, and check their number."""
    # without a temporary file beside the target, which others could see and which has other permissions
    command = f"COPY ({query}) TO {sql.quote_text(str(target))} ({options}, USE_TMP_FILE false)"
    try:
        ((written,),) = run(command)
    except (InputError, duckdb.Error, RuntimeError) as error:
        cause = error.__cause__ if isinstance(error, InputError) else error
        if isinstance(cause, duckdb.IOException) and "write" in str(cause).lower():
            raise OSError(first_line(cause)) from error
        raise (error if isinstance(error, InputError) else refusal(error, names)) from cause
    checks.expect_rows(names, rows, written)


def write_next(table: Table, score: str, review: str | None, scores: Scores, target: Path, how: str) -> None:
    """Write all columns of the highest rows without a review, which have these scores, the highest first."""
    types, shown = table.types_of(table.everything), sql.quote_name(review or "review")
    if review is None and "review" in types:
        raise InputError("there is a column 'review' already; name it with --review, or rename it")
    state, number = sql.state_sql(shown if review in types else None), sql.score_sql(score, types[score])
    empty = "" if review in types else f", CAST(NULL AS TINYINT) AS {shown}"
    least = sql.quote_number(float(scores.min(initial=inf)))
    query = (
        f"SELECT {_written(types, score, how)}{empty} FROM {table.everything} WHERE"
        f" {state} = {checks.REVIEWS['']} AND {number} >= {least} AND NOT isnan({number})"
        f" ORDER BY {number} DESC, {', '.join(map(sql.quote_name, types))} LIMIT {scores.size}"
    )
    copied(table.rows, query, target, how, table.names, scores.size)


def output_options(name: str) -> str:
    """Return the options of DuckDB's COPY for a file name: Parquet, CSV or JSON lines, perhaps packed."""
    packed = name.lower().endswith(".gz")
    suffix = Path(name.lower().removesuffix(".gz")).suffix or name.lower()
    if suffix not in _WRITERS or (packed and suffix == ".parquet"):
        raise InputError(f"the output {name} has no known format; the endings are {', '.join(_WRITERS)}")
    return _WRITERS[suffix] + (", COMPRESSION gzip" if packed else "")


def _written(types: dict[str, str], score: str, options: str) -> str:
    """Return the columns as they are written: a float32 as its double, in JSON words for inf and NaN."""
    kind, number = types[score], sql.score_sql(score, types[score])
    if options.startswith("FORMAT json"):
        floats = {name: sql.quote_name(name) for name, kind in types.items() if kind in ("FLOAT", "DOUBLE")}
        shown = floats | ({score: number} if kind in ("FLOAT", "VARCHAR", "JSON") else {})
        shown = {name: _json(value) for name, value in shown.items()}
    else:
        text = options.startswith("FORMAT csv")
        shown = {score: number} if kind == "JSON" or (kind == "FLOAT" and text) else {}
    replaced = ", ".join(f"{value} AS {sql.quote_name(name)}" for name, value in shown.items())
    return f"* REPLACE ({replaced})" if replaced else "*"


def _json(number: str) -> str:
    words = f"CASE WHEN isnan({number}) THEN 'NaN' WHEN {number} > 0 THEN 'Infinity' ELSE '-Infinity' END"
    finite = f"{number} IS NULL OR isfinite({number})"
    return f"CASE WHEN {finite} THEN to_json({number}) ELSE to_json({words}) END"


def refuse_undecidable(table: Table, certificate: Certificate, score: str) -> None:
    """Refuse scores that have lost digits on which their verdicts depend."""
    kind = table.score_type(score)
    if not (values := certificate.undecidable(kind)):
        return
    listed = ", ".join(map(sql.quote_number, values))
    found = f"SELECT count(*) FROM source WHERE {table.score_sql(score)} IN ({listed})"
    if count := table.rows(found)[0][0]:
        raise InputError(
            f"{count:,} scores of column {score!r} cannot be decided: as {kind} they are"
            f" {' or '.join(map(repr, values))}, which stands for numbers on both sides of a threshold; use"
            f" {certificate.score_type} scores, as at calibration, or calibrate on {kind} scores"
        )


def verdicts_of(certificate: Certificate, *parts: Scores) -> Tally:
    """Return how often each part of the scores gets each verdict; see `tally`."""
    verdicts = (certificate.rule.decided(one)[0] for one in parts)
    return np.array([tally(one, np.zeros(one.size, dtype=bool))[0] for one in verdicts])
