"""Files of labelled scores, read and calibrated by a local Spark: what the command line asks for."""

import gzip
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import duckdb

from pac_wrap.calibration import StrategyOptions
from pac_wrap.certificate import Certificate
from pac_wrap.columns import no_rows
from pac_wrap.csvfiles import CsvFile, engine_files, expect_rows, refuse_scores
from pac_wrap.database import connected, file_text
from pac_wrap.engines.packages import import_package
from pac_wrap.engines.spark import LABELS, SCORES, calibrate, check_frame, type_of
from pac_wrap.engines.spark_session import local_session
from pac_wrap.errors import InputError
from pac_wrap.guarantee import Guarantee
from pac_wrap.labels import LOOKED_AT, anomaly_marks, without_case_sql
from pac_wrap.numerals import BLANKS, NUMBER
from pac_wrap.relaxation import Strategy, StrategyName
from pac_wrap.scratch import scratch_folder
from pac_wrap.sql import quote_name, quote_text


class _Form(NamedTuple):
    """How a file is to be read; files of one form are read together."""

    columns: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


def calibrate_files(
    files: Sequence[str],
    reader: Literal["read_csv", "read_parquet", "read_json"],
    guarantee: Guarantee | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate of the labelled scores in some files; a session is started if there is none.

    The certificate is the one that the files give in memory. Nothing is written but to a scratch folder.
    """
    with scratch_folder() as scratch, ExitStack() as stack:
        csv_files: list[CsvFile] = []
        if reader == "read_csv":
            csv_files = stack.enter_context(engine_files(files, (score, label), delimiter, scratch))
        stack.enter_context(_refusing(files))
        session = stack.enter_context(local_session())
        forms = _linked(files, reader, csv_files, (score, label), scratch)
        frames = [_read(session, reader, *group, (score, label)) for group in forms.items()]
        narrow = all(type_of(one, score) == "float32" for one in frames)
        frame = reduce(_union, (_columns(one, score, label, narrow) for one in frames))
        if reader != "read_parquet":  # texts are parsed once
            frame = frame.persist()
        try:
            marks = anomaly_marks(_counted(frame, files, score), label, anomaly_label)
            listed = ", ".join(map(quote_text, marks))
            certificate = calibrate(
                frame.selectExpr("score", f"label IN ({listed}) AS label"),
                guarantee,
                abstain=abstain,
                strategy=strategy,
                **options,
            )
        finally:
            frame.unpersist()
        try:
            expect_rows(csv_files, certificate.normal.n + certificate.anomalous.n)
        except InputError:  # Spark passes over rows without any content
            refuse_scores(csv_files, score)
            raise
        return certificate


def _linked(
    files: Sequence[str], reader: str, csv_files: Sequence[CsvFile], wanted: tuple[str, str], scratch: Path
) -> dict[_Form, list[str]]:
    """Return links to the files, by form: Spark takes some names for patterns and passes over others."""
    forms: dict[_Form, list[str]] = {}
    known: Sequence[CsvFile | str] = csv_files or files
    for number, file in enumerate(known):
        path = file.path if isinstance(file, CsvFile) else Path(file)
        if path.suffix.lower() == ".zst":
            raise InputError(f"Spark cannot unpack {path}; pack it with gzip, or let DuckDB read it")
        link = scratch / f"{number:06}{''.join(path.suffixes[-2:]).lower()}"
        link.symlink_to(path.absolute())
        forms.setdefault(_form(file, reader, wanted), []).append(str(link))
    return forms


def _form(file: CsvFile | str, reader: str, wanted: tuple[str, str]) -> _Form:
    if isinstance(file, CsvFile):
        # everything is stated: a quote is a character like any other, and nothing is a comment or trimmed
        options = {
            "sep": file.form.delimiter,
            "header": True,
            "quote": "",
            "escape": "",
            "encoding": "UTF-8",
            "nullValue": "",
            "ignoreLeadingWhiteSpace": False,
            "ignoreTrailingWhiteSpace": False,
            "maxColumns": len(file.form.names) + 1,
            "maxCharsPerColumn": -1,
            "multiLine": False,
        }
        return _Form(file.form.names, tuple(options.items()))
    if reader == "read_json":
        with (gzip.open if file.lower().endswith(".gz") else open)(file, "rb") as opened:
            array = opened.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        return _Form(wanted, (("multiLine", array),))
    # files whose columns differ in type are read apart
    listed = ", ".join(map(quote_name, wanted))
    with scratch_folder() as own, connected([Path(file)], own) as connection:
        source = file_text(Path(file), own)
        described = connection.execute(f"DESCRIBE SELECT {listed} FROM read_parquet({source})").fetchall()
    return _Form((), tuple(row[:2] for row in described))


def _read(session: Any, reader: str, form: _Form, links: list[str], wanted: tuple[str, str]) -> Any:
    if reader == "read_parquet":
        return session.read.parquet(*links)
    # with a row's other cells left out, nobody would notice that it has too many or too few
    options = {**dict(form.options), "mode": "FAILFAST", "columnPruning": False}
    if reader == "read_json":
        schema = ", ".join(f"{quote_name(name, 'spark')} STRING" for name in form.columns)
        return session.read.schema(schema).options(**options).json(links)
    schema = ", ".join(f"c{place} STRING" for place in range(len(form.columns)))
    places = [form.columns.index(name) for name in wanted]
    picked = [f"c{place} AS {quote_name(name, 'spark')}" for place, name in zip(places, wanted, strict=True)]
    return session.read.schema(schema).options(**options).csv(links).selectExpr(*picked)


def _columns(frame: Any, score: str, label: str, narrow: bool) -> Any:
    """Return the score, what is no number among the scores, and the label as a lower-case text.

    Scores become doubles unless they are float32 in all files: Spark would make float32 of whole numbers too.
    """
    check_frame(frame, {score: (*SCORES, "string"), label: LABELS})
    name = quote_name(score, "spark")
    text = without_case_sql(f"CAST({quote_name(label, 'spark')} AS STRING)", "spark")
    if dict(frame.dtypes)[score] != "string":
        number = name if narrow else f"CAST({name} AS DOUBLE)"
        return frame.selectExpr(f"{number} AS score", "CAST(NULL AS STRING) AS bad", f"{text} AS label")
    trimmed = f"trim(BOTH '{BLANKS}' FROM lower({name}))"
    # Java knows no sign of NaN
    number = f"IF({trimmed} RLIKE '^[+-]?nan$', CAST('NaN' AS DOUBLE), try_cast({name} AS DOUBLE))"
    # Java reads more as a number, 1.0d for one
    wrong = f"{name} IS NOT NULL AND ({number} IS NULL OR NOT {trimmed} RLIKE '^({NUMBER})$')"
    return frame.selectExpr(f"{number} AS score", f"IF({wrong}, {name}, NULL) AS bad", f"{text} AS label")


def _union(one: Any, other: Any) -> Any:
    return one.unionAll(other)


def _counted(frame: Any, files: Sequence[str], score: str) -> list[tuple[str | None, int]]:
    """Return the first labels and how often each occurs, after refusing scores that are no numbers."""
    functions = import_package("pyspark.sql.functions", "spark")
    sums = [functions.expr(one) for one in ("count(*) AS n", "count(bad) AS wrong", "min(bad) AS bad")]
    rows = frame.groupBy("label").agg(*sums).orderBy("label").limit(LOOKED_AT).collect()
    if not rows:
        raise no_rows(list(files))
    if wrong := sum(row.wrong for row in rows):
        example = min(row.bad for row in rows if row.wrong)
        others = f" and {wrong - 1:,} more" if wrong > 1 else ""
        raise InputError(f"column {score!r} must hold numbers, got {example!r:.60}{others}; fix those rows")
    return [(row.label, row.n) for row in rows]


@contextmanager
def _refusing(files: Sequence[str]) -> Iterator[None]:
    """Say in one sentence what Spark finds wrong with the files; its remarks about pandas are kept quiet."""
    errors = import_package("pyspark.errors", "spark"), import_package("py4j.protocol", "spark")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        try:
            yield
        except (errors[0].PySparkException, errors[1].Py4JError, duckdb.Error) as error:
            raise InputError(f"Spark cannot read {', '.join(files)}: {_reason(str(error))}") from error


def _reason(message: str) -> str:
    if "MALFORMED_RECORD" in message:
        return "a row does not fit the header, or a cell holds a line break; fix it or leave --engine out"
    lines = [
        line.strip()
        for line in message.splitlines()
        if re.match(r"[\w.]*(Exception|Error): |\[[A-Z_.]+\]", line.strip())
    ]
    return lines[-1] if lines else message.partition("\n")[0]
