"""pac-wrap decide and sql: the verdict of every row, from pac-wrap or from a database."""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Literal, cast

import typer
from typer import Argument

from pac_wrap.cli import options
from pac_wrap.cli.options import Promised, keep_apart, option
from pac_wrap.cli.process import FAILED, progress_bar, say, standard_output
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.promise import Guarantee
    from pac_wrap.method.provenance import Doubt
    from pac_wrap.method.rule import Counted
    from pac_wrap.streams.decide import Asked
    from pac_wrap.tables.files.text_format import ByteReader
    from pac_wrap.tables.table import FoundFiles

Format = Literal["jsonl", "csv", "parquet"]
OnMissing = Literal["abstain", "stop"]  # as in base.arguments, which loads numpy
_SAME_FORMAT: dict[str, Format] = {"read_csv": "csv", "read_json": "jsonl"}
# answers of a database are a few hundred rows
_MOST: Final = 1 << 24


@dataclass(frozen=True)
class _Job:
    """How a table is decided, and where the verdicts are written."""

    certificate: "Certificate | GroupCertificate"
    asked: "Asked"
    output: Path | None
    form: Format | None
    delimiter: str | None
    quiet: bool
    doubt: "Doubt"

    def tell(self, sentence: str) -> None:
        if not self.quiet:
            say(sentence)

    def tell_done(self, counted: "Counted") -> None:
        """Report what was done, and any doubts about it."""
        self.doubt.end()
        self.tell(str(counted) if self.output is None else f"{counted} -> {self.output}")


def decide(
    certificate: options.CertificateFile,
    tables: options.Tables,
    score: options.Score,
    group: options.Group = None,
    output: Path | None = option("Where to write: .parquet, .csv, .csv.gz or .jsonl.", "--output", "-o"),
    form: Format | None = option(
        "Format on standard output, a pipe or a device: jsonl, csv or parquet; by default the format of the"
        " table, and csv for Parquet and NumPy.",
        "--format",
        show_default=False,
    ),
    delimiter: options.Delimiter = None,
    on_missing: OnMissing = option("Abstain on rows without a score, or stop there.", default="abstain"),
    source_column: str | None = option("The name of a new column with the file that each row came from."),
    quiet: options.Quiet = False,
) -> None:
    """Add a verdict (1 anomaly, 0 normal, -1 abstain) and a prediction set to every row of a table.

    CSV or JSON lines on standard input, without -o, are decided as they arrive, in constant memory.
    Rows with a missing score (an empty cell, nan, null) get the verdict -1 and are counted.
    Cells of a CSV stay as they are; as JSON, the score becomes a number and every other cell a text.
    Values of JSON stay as they are; as Parquet, a column of 64-bit integers or doubles keeps its type.
    JSON has no infinities; the texts "Infinity" and "-Infinity" stand for them.

    Example:
    [bold]pac-wrap decide certificate.json new.csv --score s -o verdicts.parquet[/bold]
    """
    from pac_wrap.method.provenance import Doubt
    from pac_wrap.streams.decide import Asked, is_streamed
    from pac_wrap.tables.columns import ADDED, refuse_added
    from pac_wrap.tables.files.text_format import read_start, standard_input

    loaded = _deciding(certificate, group)
    if source_column is not None:
        refuse_added(ADDED, [source_column])
        if not source_column:
            raise InputError("--source-column must name a new column, got an empty name")
    asked = Asked(score, form == "csv", on_missing, source_column, group)
    job = _Job(loaded, asked, output, form, delimiter, quiet, Doubt(loaded.provenance, score))
    if output is not None:
        keep_apart([*tables, certificate], output)
        if form is not None and output.suffix:
            raise InputError(f"the ending of {output} sets the format; remove --format")
    start = b""
    if tables == ["-"] and output is None:
        reader = standard_input()
        start = read_start(reader)
        if is_streamed(start) and form != "parquet":
            _decide_stream(job, reader, start)
            return
    _decide_table(job, tables, start)


def _deciding(path: Path, group: str | None) -> Any:
    """Return the certificate in a file, after checking --group."""
    loaded = options.load_any(path, but=("classes", "curve"))
    options.check_division(loaded, group=group)
    return loaded


def _decide_stream(job: _Job, reader: "ByteReader", start: bytes) -> None:
    """Write rows with their verdicts as they arrive; Ctrl-C too reports how many were decided."""
    from pac_wrap.method.rule import Counted
    from pac_wrap.streams.decide import decide_lines
    from pac_wrap.tables.files.text_format import is_json_line

    asked = job.asked
    if job.form is None:
        asked = asked._replace(as_csv=not is_json_line(start))
    # the last of all counts so far
    counted = deque([Counted()], maxlen=1)
    told: Any = {"said": counted.append, "seen": job.doubt.see}
    try:
        decide_lines(job.certificate, reader, start, standard_output(), asked, job.delimiter, **told)
    except KeyboardInterrupt:
        job.tell_done(counted[0])
        raise
    job.tell_done(counted[0])


def _decide_table(job: _Job, tables: list[str], start: bytes) -> None:
    """Write the whole table with its verdicts, or nothing at all."""
    from pac_wrap.base.files import scratch_file, whole_file
    from pac_wrap.tables.decide import decide_groups_table, decide_table, output_options
    from pac_wrap.tables.table import found_files, open_found

    output, asked = job.output, job.asked
    # the name of a pipe or a device shows no format
    named = output is not None and (output.suffix != "" or not output.exists() or output.is_file())
    with progress_bar("deciding") as progress, found_files(tables, start) as found:
        if not named and job.form == "parquet" and output is None and standard_output().isatty():
            raise InputError("a terminal cannot show Parquet; name a file with -o, or remove --format")
        # without a name it is that of the table, or CSV where that is no text
        form = job.form or _SAME_FORMAT.get(found.reader, "csv")
        how = output_options(output.name if output is not None and named else f".{form}")
        with scratch_file() if output is None else whole_file(output) as target:
            if found.reader == "read_json" or (found.reader == "read_csv" and "parquet" not in how):
                counted = _decide_texts(job, found, target, how, progress)
            else:
                more: Any = {"source": asked.source, "delimiter": job.delimiter, "progress": progress}
                opened = open_found(found, [asked.score], asked.group, whole=True, output=target, **more)
                with opened as table:
                    job.doubt.see(table.first_scores(asked.score))
                    one, written = cast(Any, job.certificate), (target, how, asked.on_missing)
                    if asked.group is not None:
                        counted = decide_groups_table(table, one, (asked.score, asked.group), *written)
                    else:
                        counted = decide_table(table, one, asked.score, *written)
            if output is None:
                with target.open("rb") as file:
                    copyfileobj(file, standard_output(), 1 << 20)
                standard_output().flush()
    if job.form is None and not named and found.reader not in _SAME_FORMAT:
        job.tell("written as CSV, since the format of the table is not text; --format or -o can change it")
    job.tell_done(counted)


def _decide_texts(
    job: _Job, found: "FoundFiles", target: Path, how: str, progress: Callable[..., None]
) -> "Counted":
    """Write CSV or JSON files with their verdicts, as CSV, JSON lines (both also gzipped) or Parquet."""
    import gzip

    from pac_wrap.streams.decide import decide_files
    from pac_wrap.tables.files.connection import Done

    asked, as_json = job.asked._replace(as_csv="csv" in how), found.reader == "read_json"
    counts = not as_json and sys.stderr.isatty()
    rows = _rows_of(found.files, asked.wanted, job.delimiter) if counts else None

    def said(counted: "Counted") -> None:
        if rows:
            progress(Done(100.0 * counted.points / rows, rows=rows))

    tables = job.certificate, found.files, found.source_names
    told: Any = {"said": said, "seen": job.doubt.see, "as_json": as_json}
    if "parquet" in how:
        return decide_files(*tables, target, asked, job.delimiter, **told)
    with gzip.open(target, "wb", 6) if "gzip" in how else target.open("wb") as out:
        return decide_files(*tables, cast(BinaryIO, out), asked, job.delimiter, **told)


def _rows_of(files: Sequence[Path], wanted: Sequence[str], delimiter: str | None) -> int | None:
    """Return the number of rows of CSV files if that is quick to count; errors are reported later."""
    from pac_wrap.tables.files.csv_files import survey

    try:
        counts = [survey(file, wanted, delimiter).rows for file in files]
    except InputError:
        return None
    return None if None in counts else sum(filter(None, counts))


def sql(
    certificate: Annotated[
        Path | None, Argument(help="The certificate whose rule is printed; none with --calibrate.")
    ] = None,
    *,
    promised: Annotated[
        Promised,
        "delta_fpr delta_fnr confidence max_alarms max_false_alarms min_precision review_rate mistaken"
        " max_anomalies",
    ],
    score: options.Score = "score",
    group: options.Group = None,
    join_table: str | None = option(
        "For a certificate of groups: print a table of rules with this name, and a join."
    ),
    dialect: Literal["duckdb", "postgres", "spark", "ansi"] = option(
        "duckdb, postgres, spark or ansi.", default="duckdb"
    ),
    calibrate: bool = option(
        "Print the next statement that calibrates a table.", "--calibrate", default=False
    ),
    table: str | None = option("With --calibrate: the table or view, such as schema.table."),
    label: str | None = option("With --calibrate: the column of labels; by default label."),
    review: str | None = option("With --calibrate, of traffic: the column of what reviews found."),
    anomaly_label: options.AnomalyLabel = None,
    max_fpr: str | None = option("Ceiling of the false positive rate, or none; by default 0.05."),
    max_fnr: str | None = option("Ceiling of the false negative rate, or none; by default 0.05."),
    overlap: options.OverlapWord = None,
    answers: Path | None = option(
        "With --calibrate: the answers so far, CSV with headers; - is standard input."
    ),
    output: Path | None = option("With --calibrate: where to save the certificate.", "--output", "-o"),
) -> None:
    """Print a rule as an exact SQL expression; it abstains on NaN and NULL.

    Example:
    [bold]pac-wrap sql certificate.json --score s --dialect postgres[/bold]

    With --calibrate and a promise, print the next of a few statements that calibrate a table in its database.
    Append each answer to a file and run the command again with --answers, until it prints the certificate.
    All output is SQL; the certificate is a comment. The answers hold only counts and a few scores by rank.

    Example:
    [bold]pac-wrap sql --calibrate --table t --score s --label y --answers answers.csv[/bold]
    """
    from pac_wrap.base.arguments import label_of
    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.provenance import now
    from pac_wrap.tables.database import TRAFFIC, Source, UnansweredError, from_answers
    from pac_wrap.tables.sql import group_verdict_sql, join_sql, verdict_sql

    if not calibrate:
        named: dict[str, Any] = {"table": table, "label": label, "review": review}
        named |= {"anomaly_label": anomaly_label, "max_fpr": max_fpr, "max_fnr": max_fnr}
        named |= vars(promised) | {"overlap": overlap, "answers": answers}
        for_calibrate = {f"--{name.replace('_', '-')}": one for name, one in named.items()} | {"-o": output}
        if given := [option for option, value in for_calibrate.items() if value is not None]:
            raise InputError(f"{given[0]} works only with --calibrate; add --calibrate, or remove {given[0]}")
        if certificate is None:
            raise InputError(
                "name the certificate whose rule to print, or make one with --calibrate and --table"
            )
        rule = _deciding(certificate, group)
        if group is None:
            if join_table is not None:
                raise InputError("--join-table needs a certificate of groups; remove it")
            typer.echo(verdict_sql(rule.rule, score, dialect))
        elif join_table is None:
            typer.echo(group_verdict_sql(rule, score, group, dialect))
        else:
            for statement in join_sql(rule, score, group, join_table, dialect):
                typer.echo(statement)
        return
    if certificate is not None or table is None:
        raise InputError("--calibrate makes a new certificate; name none, and add the table with --table")
    if group is not None or join_table is not None:
        raise InputError(
            "--calibrate makes a certificate without groups; remove --group and --join-table, or export the"
            " scores, labels and groups and use pac-wrap calibrate --group"
        )
    keep_apart([] if answers is None else [answers], output)
    asked = promised.guarantee(max_fpr, max_fnr)
    request: Request | Guarantee = asked
    source = Source(table, score, review, dialect, TRAFFIC)
    if asked.of_traffic and (label, anomaly_label, overlap) != (None, None, None):
        raise InputError(
            "--label, --anomaly-label and --overlap are for labelled points, not traffic; remove them"
        )
    if review is not None and not asked.of_traffic:
        raise InputError(
            "--review needs a promise about traffic, such as --max-false-alarms 20/50000; add one"
        )
    if not asked.of_traffic:
        request = Request.of(asked, options.strategy_of(overlap, asked), label_of(anomaly_label))
        source = Source(table, score, label or "label", dialect)
    try:
        found = from_answers(_answers_in(answers), request, source)
    except UnansweredError as next_one:
        file = "a file" if answers is None else str(answers)
        _comment(f"pac-wrap: statement {next_one.number}, {next_one.statement.purpose}")
        _comment(f"append its answer, as CSV with a header, to {file}, and run the same command again")
        typer.echo(next_one.statement.text)
        return
    found = found.with_provenance(date=now())
    if output is not None:
        found.save(output)
    _comment("pac-wrap: every statement is answered" + ("; save the certificate with -o" * (output is None)))
    for line in str(found.bare).splitlines():
        _comment(line)
    if found.empty:
        raise typer.Exit(FAILED)


def _comment(line: str) -> None:
    from pac_wrap.base.text import message

    typer.echo(f"-- {message(line)}")


def _answers_in(answers: Path | None) -> str:
    """Return the answers so far; a missing file means none."""
    from pac_wrap.tables.files.text_format import standard_input

    content = b""
    if str(answers) == "-":
        content = standard_input().read(_MOST + 1)
    elif answers is not None and answers.exists():
        with answers.open("rb") as file:
            content = file.read(_MOST + 1)
    if len(content) > _MOST:
        raise InputError(f"{answers} is larger than 16 MB, more than answers need; name the file of answers")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{answers} is not UTF-8; make the database write UTF-8") from error
