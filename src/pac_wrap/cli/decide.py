"""pac-wrap decide: every row of a table with its verdict, in the format it came in, and how many of each."""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, cast

import typer

from pac_wrap.cli.certificates import deciding
from pac_wrap.cli.options import CertificateFile, Delimiter, Group, Quiet, Score, Tables, keep_apart
from pac_wrap.cli.process import say, standard_output
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.alarms.shares import Counted
    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.certificates.provenance import Doubt
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.tables.files.find import FoundFiles
    from pac_wrap.tables.files.text_format import ByteReader
    from pac_wrap.tables.table import Table

Format = Literal["jsonl", "csv", "parquet"]
OnMissing = Literal["abstain", "stop"]  # as in base.arguments, which loads numpy
_SAME_FORMAT: dict[str, Format] = {"read_csv": "csv", "read_json": "jsonl"}


@dataclass(frozen=True)
class _Job:
    """What is asked for: how a table is decided and where it is written."""

    certificate: "Certificate | GroupCertificate"
    score: str
    group: str | None
    output: Path | None
    form: Format | None
    delimiter: str | None
    on_missing: OnMissing
    source: str | None
    quiet: bool
    doubt: "Doubt"

    def tell(self, sentence: str) -> None:
        """Say something, unless it is to be quiet."""
        if not self.quiet:
            say(sentence)

    def tell_done(self, counted: "Counted") -> None:
        """Say what was done, and what is doubtful about it."""
        self.doubt.end()
        self.tell(str(counted) if self.output is None else f"{counted} -> {self.output}")


def decide(
    certificate: CertificateFile,
    tables: Tables,
    score: Score,
    group: Group = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write: .parquet, .csv, .csv.gz or .jsonl.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Format for standard output, a pipe or a device; by default that of the table. Parquet and"
            " NumPy become csv, which a terminal and a pipe can use.",
            show_default=False,
        ),
    ] = None,
    delimiter: Delimiter = None,
    on_missing: Annotated[
        OnMissing, typer.Option(help="Whether rows without a score are abstained on, or end it.")
    ] = "abstain",
    source_column: Annotated[
        str | None, typer.Option(help="A new column for the file that each row came from.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Add a verdict (1 anomaly, 0 normal, -1 abstains) and a prediction set to every row of a table.

    CSV or JSON lines on standard input, without -o, are decided as they arrive, in constant memory.

    A row whose score is missing (an empty cell, nan, null) is abstained on and counted.

    Cells of a CSV stay as they are; in JSON made from one, the score is a number and every other cell a text.

    Values of JSON stay as they are written; in Parquet a column of 64-bit integers or doubles has that type.

    JSON has no infinities: they are the texts "Infinity" and "-Infinity", and are read as such.

    Example: [bold]pac-wrap decide certificate.json new.csv --score score -o verdicts.parquet[/bold]
    """
    from pac_wrap.method.certificates.provenance import Doubt
    from pac_wrap.streams.answers import ADDED
    from pac_wrap.streams.decide import is_streamed
    from pac_wrap.tables.columns import refuse_added
    from pac_wrap.tables.files.text_format import check_delimiter, read_start, standard_input

    loaded, separator = deciding(certificate, group), check_delimiter(delimiter)
    if source_column is not None:
        refuse_added(ADDED, [source_column])
        if not source_column:
            raise InputError("--source-column must be the name of a column, got an empty one")
    doubt = Doubt(loaded.provenance, score)
    job = _Job(loaded, score, group, output, form, separator, on_missing, source_column, quiet, doubt)
    if output is not None:
        keep_apart([*tables, certificate], output)
        if form is not None and output.suffix:
            raise InputError(f"the name of {output} says its format; leave --format out")
    start = b""
    if tables == ["-"] and output is None:
        reader = standard_input()
        start = read_start(reader)
        if is_streamed(start) and form != "parquet":
            _decide_stream(job, reader, start)
            return
    _decide_table(job, tables, start)


def _decide_stream(job: _Job, reader: "ByteReader", start: bytes) -> None:
    """Write rows with their verdicts as they arrive; how many were decided is said at Ctrl-C too."""
    from pac_wrap.method.alarms.shares import Counted
    from pac_wrap.streams.answers import Asked
    from pac_wrap.streams.decide import decide_lines
    from pac_wrap.tables.files.text_format import is_json_line

    as_csv = job.form == "csv" or (job.form is None and not is_json_line(start))
    asked = Asked(job.score, as_csv, job.on_missing, job.source, job.group)
    # the last of all counts so far
    counted = deque([Counted()], maxlen=1)
    try:
        decide_lines(
            job.certificate,
            reader,
            start,
            standard_output(),
            asked,
            job.delimiter,
            said=counted.append,
            seen=job.doubt.see,
        )
    except KeyboardInterrupt:
        job.tell_done(counted[0])
        raise
    job.tell_done(counted[0])


def _decide_table(job: _Job, tables: list[str], start: bytes) -> None:
    """Write the whole table with its verdicts, or nothing at all."""
    from pac_wrap.base.files import scratch_file, whole_file
    from pac_wrap.tables.decide import output_options
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.table import open_found

    output = job.output
    with (
        progress_bar("deciding") as progress,
        found_files(tables, start) as found,
    ):
        named = output is not None and not _has_no_ending(output)
        options = output_options(output.name if output is not None and named else f".{_format(job, found)}")
        with scratch_file() if output is None else whole_file(output) as target:
            if found.reader == "read_csv" and "parquet" not in options:
                counted = _decide_csv(job, found, target, options, progress)
            elif found.reader == "read_json":
                counted = _decide_json(job, found, target, options)
            else:
                with open_found(
                    found,
                    [job.score],
                    job.group,
                    whole=True,
                    output=target,
                    source=job.source,
                    delimiter=job.delimiter,
                    progress=progress,
                ) as table:
                    job.doubt.see(table.first_scores(job.score))
                    counted = _decide_opened(job, table, target, options)
            if output is None:
                _copy_to(standard_output(), target)
    if job.form is None and not named and found.reader not in _SAME_FORMAT:
        job.tell("written as CSV, since the table's own format is no text; --format or -o says otherwise")
    job.tell_done(counted)


def _decide_opened(job: _Job, table: "Table", target: Path, options: str) -> "Counted":
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.tables.decide import decide_groups_table, decide_table

    if isinstance(job.certificate, GroupCertificate):
        columns = job.score, job.group or ""
        return decide_groups_table(table, job.certificate, columns, target, options, job.on_missing)
    return decide_table(table, job.certificate, job.score, target, options, job.on_missing)


def _format(job: _Job, found: "FoundFiles") -> Format:
    """Return the format of what has no ending: that of the table, or CSV where that is no text."""
    if job.form == "parquet" and job.output is None and standard_output().isatty():
        raise InputError("Parquet is not for a terminal; name a file with -o, or leave --format out")
    if job.form is not None:
        return job.form
    return _SAME_FORMAT.get(found.reader, "csv")


def _copy_to(out: BinaryIO, finished: Path) -> None:
    with finished.open("rb") as file:
        while chunk := file.read(1 << 20):
            out.write(chunk)
    out.flush()


def _has_no_ending(output: Path) -> bool:
    """Return whether an output is a pipe or a device, whose name says nothing of a format."""
    return output.suffix == "" and output.exists() and not output.is_file()


def _decide_csv(
    job: _Job, found: "FoundFiles", target: Path, options: str, progress: Callable[..., None]
) -> "Counted":
    """Write CSV files with their verdicts as CSV or JSON lines, packed if the options say so."""
    import gzip

    from pac_wrap.streams.answers import Asked
    from pac_wrap.streams.decide import decide_files
    from pac_wrap.tables.files.connection import Done

    asked = Asked(job.score, "csv" in options, job.on_missing, job.source, job.group)
    packed = "gzip" in options
    rows = _rows_of(found.files, asked.wanted, job.delimiter) if sys.stderr.isatty() else None

    def said(counted: "Counted") -> None:
        if rows:
            progress(Done(100.0 * counted.points / rows, rows=rows))

    with gzip.open(target, "wb", 6) if packed else target.open("wb") as out:
        return decide_files(
            job.certificate,
            found.files,
            found.source_names,
            cast(BinaryIO, out),
            asked,
            job.delimiter,
            said=said,
            seen=job.doubt.see,
        )


def _decide_json(job: _Job, found: "FoundFiles", target: Path, options: str) -> "Counted":
    """Write JSON files with their verdicts as JSON lines, CSV or Parquet, packed if the options say so."""
    import gzip

    from pac_wrap.streams.answers import Asked
    from pac_wrap.streams.decide import decide_json_files
    from pac_wrap.tables.files.text_format import only_in_csv

    only_in_csv(job.delimiter)
    asked = Asked(job.score, "csv" in options, job.on_missing, job.source, job.group)
    tables = job.certificate, found.files, found.source_names
    if "parquet" in options:
        return decide_json_files(*tables, target, asked, seen=job.doubt.see)
    with gzip.open(target, "wb", 6) if "gzip" in options else target.open("wb") as out:
        return decide_json_files(*tables, cast(BinaryIO, out), asked, seen=job.doubt.see)


def _rows_of(files: Sequence[Path], wanted: Sequence[str], delimiter: str | None) -> int | None:
    """Return how many rows CSV files have, if counting them is quick; what is wrong is said later."""
    from pac_wrap.tables.files.csv_files import survey

    total = 0
    for file in files:
        try:
            rows = survey(file, wanted, delimiter).rows
        except InputError:
            return None
        if rows is None:
            return None
        total += rows
    return total
