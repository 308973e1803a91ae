"""pac-wrap monitor: whether a certificate still keeps its promises, night after night or as rows arrive."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pac_wrap.cli.options import AnomalyLabel, CertificateFile, Delimiter, Score, Tables, keep_apart
from pac_wrap.cli.process import progress_bar, say
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.watch.monitor import Monitor
    from pac_wrap.streams.watch import Rows
    from pac_wrap.tables.text_format import ByteReader

ALARM = 1
Format = Literal["text", "json", "prometheus"]
# seconds from one saving to the next, while rows arrive
_PATIENCE = 1.0


@dataclass(frozen=True)
class _Job:
    """What is watched, how rows are read, and what is written."""

    monitor: "Monitor"
    certificate: "Certificate"
    score: str
    label: str | None
    anomaly_label: str | None
    delimiter: str | None
    name: str | None
    late: bool
    state: Path
    output: Path | None
    form: Format
    page: Path | None

    def feed(self, batches: "Iterator[Rows]") -> Iterator[None]:
        """Feed all rows as one batch, part by part, and say an alarm as soon as it comes."""
        more = False
        for rows in batches:
            before = self.monitor.alarms
            verdicts, _ = self.certificate.rule.decided(rows.scores)
            self.monitor.update(
                verdicts, rows.labels, scores=rows.scores, id=self.name, late=self.late, more=more
            )
            for alarm in self.monitor.alarms:
                if alarm not in before:
                    say(str(alarm))
            more = True
            yield

    def save(self) -> None:
        """Write the state, and what is to be read of it."""
        from pac_wrap.base.files import write_whole

        self.monitor.save(self.state)
        if self.output is not None:
            write_whole(self.output, self.text())
        if self.page is not None:
            from pac_wrap.report.watch import monitor_page

            write_whole(self.page, monitor_page(self.monitor))

    def text(self) -> str:
        """Return what is shown of the monitor."""
        from pac_wrap.report.watch import monitor_json, monitor_metrics

        forms: dict[Format, Callable[[Monitor], str]] = {
            "text": lambda monitor: f"{monitor}\n",
            "json": monitor_json,
            "prometheus": monitor_metrics,
        }
        return forms[self.form](self.monitor)


def monitor(
    certificate: CertificateFile,
    tables: Tables,
    score: Score,
    state: Annotated[
        Path, typer.Option(help="Where the monitor remembers what it has seen; made if it is not there.")
    ],
    label: Annotated[
        str | None, typer.Option(help="The column of labels: 0/1 or true/false, empty where there is none.")
    ] = None,
    curve: Annotated[
        Path | None, typer.Option(help="A curve made by pac-wrap curve: watch the scores without labels too.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Chance of a false alarm, ever.")] = 0.01,
    name: Annotated[
        str | None, typer.Option("--id", help="The name of this batch; the same one twice is refused.")
    ] = None,
    late: Annotated[
        bool, typer.Option("--late", help="These rows were fed before, without their labels.")
    ] = False,
    anomaly_label: AnomalyLabel = None,
    delimiter: Delimiter = None,
    form: Annotated[Format, typer.Option("--format", help="How to show it.")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it, instead of standard output.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Also write a page with the wealth over time.")] = None,
) -> None:
    """Watch whether a certificate still keeps its promises; exit code 1 from the first alarm on.

    Run it as often as you like, each time with the rows that are new: the chance of a false alarm, ever, is
    alpha, and that of the certificate itself to be wrong.

    CSV or JSON lines on standard input are watched as they arrive. An alarm is said at once, and the state is
    saved every second: after an interruption, go on with the row after those that it counts ("rows").

    Which rows get a label must not depend on their scores. Labels may be missing, or come later with --late.

    Example: [bold]pac-wrap monitor certificate.json new.csv --score s --label y --state watch.json[/bold]
    """
    from pac_wrap.base.locks import held
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.watch.monitor import Monitor
    from pac_wrap.streams.decide import is_streamed, read_start
    from pac_wrap.tables.text_format import check_delimiter, standard_input

    loaded = Certificate.load(certificate)
    watched = Monitor(loaded, None if curve is None else Curve.load(curve), alpha)
    separator = check_delimiter(delimiter)
    inputs = [*tables, certificate, *([] if curve is None else [curve])]
    keep_apart(inputs, state, output, page)
    if late and label is None:
        raise InputError("--late is for labels that come later; name their column with --label")
    columns = score, label, anomaly_label, separator
    job = _Job(watched, loaded, *columns, name, late, state, output, form, page)
    with held(state):
        if state.exists():
            watched.load(state)
        start = b""
        if tables == ["-"]:
            reader = standard_input()
            start = read_start(reader)
        if start and is_streamed(start):
            _watch_stream(job, reader, start)
        else:
            _watch_table(job, tables, start)
    if output is None:
        typer.echo(job.text(), nl=False)
    if watched.alarm is not None:
        raise typer.Exit(ALARM)


def _watch_stream(job: _Job, reader: "ByteReader", start: bytes) -> None:
    """Watch rows as they arrive; what was counted is saved every second and whatever ends it."""
    from pac_wrap.streams.watch import rows_of_lines

    before, saved = job.monitor.rows, time.monotonic()
    columns = job.score, job.label, job.anomaly_label, job.delimiter
    try:
        for _ in job.feed(rows_of_lines(reader, start, *columns)):
            if time.monotonic() - saved > _PATIENCE:
                job.save()
                saved = time.monotonic()
    except InputError as error:
        counted = job.monitor.rows - before
        if not counted:
            raise
        raise InputError(f"{error}; rows watched before it: {counted:,}") from error
    finally:
        if job.monitor.rows > before:
            job.save()


def _watch_table(job: _Job, tables: list[str], start: bytes) -> None:
    """Watch a whole table, or nothing of it: the state is saved at the end."""
    from pac_wrap.streams.watch import rows_of_table
    from pac_wrap.tables.decide import refuse_undecidable
    from pac_wrap.tables.find import found_files
    from pac_wrap.tables.table import open_found

    with (
        progress_bar("watching") as progress,
        found_files(tables, start) as found,
        open_found(found, [job.score], job.label, delimiter=job.delimiter, progress=progress) as table,
    ):
        table.require_numbers(job.score)
        refuse_undecidable(table, job.certificate, job.score)
        for _ in job.feed(rows_of_table(table, job.score, job.label, job.anomaly_label)):
            pass
    job.save()
