"""pac-wrap monitor: does a certificate still keep its promises?"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from pac_wrap.cli import options
from pac_wrap.cli.options import check_division, division_of, keep_apart, load_any, option
from pac_wrap.cli.process import FAILED, progress_bar, say
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from io import BufferedReader

    from pac_wrap.method.monitoring.monitor import Monitor
    from pac_wrap.streams.monitor import Columns, Rows

Format = Literal["text", "json", "prometheus"]
# seconds from one saving to the next, while rows arrive
_PATIENCE = 1.0


@dataclass(frozen=True)
class _Job:
    """A monitor, how its rows are read, and where its state and results are written."""

    monitor: "Monitor"
    columns: "Columns"
    delimiter: str | None
    name: str | None
    late: bool
    state: Path
    output: Path | None
    form: Format
    report: Path | None

    def text(self) -> str:
        from pac_wrap.report.account import account_of
        from pac_wrap.report.monitor import monitor_metrics
        from pac_wrap.report.render import as_json

        if self.form == "prometheus":
            return monitor_metrics(self.monitor)
        return as_json(account_of(self.monitor)) if self.form == "json" else f"{self.monitor}\n"

    def save(self) -> None:
        from pac_wrap.base.files import write_whole
        from pac_wrap.report.render import write

        self.monitor.save(self.state)
        if self.output is not None:
            write_whole(self.output, self.text())
        if self.report is not None:
            write(self.monitor, self.report)

    def feed(self, parts: "Iterator[Rows]", whole: bool = False) -> Iterator[None]:
        """Feed all rows, batch by batch or as one, and report every alarm immediately."""
        from pac_wrap.method.certificate import Certificate
        from pac_wrap.method.groups.certificate import decided
        from pac_wrap.streams.monitor import whole_batches

        units = self.monitor.in_units is not None
        whole = whole or units or self.columns.batch is not None
        batches = whole_batches(parts) if whole else (("", rows) for rows in parts)
        for number, (name, rows) in enumerate(batches):
            told: Any = {"together": whole, "more": not whole and number > 0, "id": name or self.name}
            told["reviews" if self.monitor.asked.of_traffic else "labels"] = rows.labels
            before, one = set(self.monitor.alarms), self.monitor.certificate
            if isinstance(one, Certificate):
                verdicts, _ = one.rule.decided(rows.scores)
                if units:
                    told["units"] = rows.groups or []
            else:
                told["groups"] = rows.groups or []
                verdicts = decided(one.rules, rows.scores, one.lookup.places(told["groups"]))
            self.monitor.update(verdicts, scores=rows.scores, late=self.late, **told)
            for alarm in self.monitor.alarms:
                if alarm not in before:
                    say(str(alarm))
            yield

    def watch_lines(self, reader: "BufferedReader", start: bytes) -> None:
        """Feed rows as they arrive; the state is saved every second, and however the command ends."""
        from pac_wrap.streams.monitor import WhileQuiet, rows_of_lines

        before = saved = self.monitor.rows
        at = time.monotonic()

        def save() -> None:
            nonlocal saved, at
            if self.monitor.rows > saved:
                self.save()
                saved, at = self.monitor.rows, time.monotonic()

        patient = WhileQuiet(reader, _PATIENCE, save)
        try:
            for _ in self.feed(rows_of_lines(patient, start, self.columns, self.delimiter)):
                if time.monotonic() - at > _PATIENCE:
                    save()
        except InputError as error:
            if counted := self.monitor.rows - before:
                raise InputError(f"{error}; rows monitored before it: {counted:,}") from error
            raise
        finally:
            save()

    def watch_table(self, tables: list[str], start: bytes) -> None:
        """Feed a whole table or nothing: the state is saved at the end."""
        from pac_wrap.method.certificate import Certificate
        from pac_wrap.streams.monitor import rows_of_table
        from pac_wrap.tables.columns import refuse_narrower
        from pac_wrap.tables.decide import refuse_undecidable
        from pac_wrap.tables.table import found_files, open_found

        (score, label), one = self.columns[:2], self.monitor.certificate
        wanted = [name for name in self.columns.wanted if name != label]
        with (
            progress_bar("monitoring") as progress,
            found_files(tables, start) as found,
            open_found(found, wanted, label, delimiter=self.delimiter, progress=progress) as table,
        ):
            table.require_numbers(score)
            if isinstance(one, Certificate):
                refuse_undecidable(table, one, score)
            else:
                refuse_narrower(table.score_type(score), one, score)
            for _ in self.feed(rows_of_table(table, self.columns), self.monitor.asked.of_traffic):
                pass
        self.save()


def monitor(
    certificate: options.CertificateFile,
    tables: options.Tables,
    score: options.Score,
    state: Annotated[
        Path, Option(help="The file that keeps the state of the monitor between runs; created if missing.")
    ],
    label: str | None = option("The column of labels: 0/1 or true/false, empty for rows without a label."),
    review: options.Review = None,
    group: options.Group = None,
    unit: str | None = option("The column of units, for a certificate made with --unit; each counts once."),
    batch: str | None = option(
        "The column that names the batch of each row; the rows of a batch count together."
    ),
    curve: Path | None = option("A curve made by pac-wrap curve, to monitor scores without labels too."),
    alpha: float = option("Chance that the monitor ever raises a false alarm.", default=0.01),
    name: str | None = option("The name of this batch; a name that was used before is refused.", "--id"),
    late: bool = option("The rows were monitored before without labels or reviews.", "--late", default=False),
    anomaly_label: options.AnomalyLabel = None,
    delimiter: options.Delimiter = None,
    form: Format = option("Show text, json or prometheus.", "--format", default="text"),
    output: Path | None = option("Where to write the result, instead of standard output.", "--output", "-o"),
    report: Path | None = option("Also write a page with the evidence over time."),
) -> None:
    """Monitor whether a certificate still keeps its promises; run it as often as you like, on new rows.

    The exit code is 1 from the first alarm on, and 1 as long as no point was counted.
    Alpha is the chance that a false alarm is ever raised, in addition to that of a wrong certificate.
    CSV or JSON lines on standard input are monitored as they arrive, and alarms are reported immediately.
    The state is saved every second; after an interruption, skip as many rows as its "rows" says.
    Which rows get a label, and the order of the labels, must not depend on scores or verdicts.
    If the order may depend on them, name whole batches with --batch, such as all labels of a day.
    The rows of a batch must be adjacent, and a batch must not come again.
    Labels may be missing, or come later with --late.
    A certificate of traffic needs --review instead: every alarm of a batch must be reviewed, other rows not.
    Its batches, such as files, must come in their order; without --review, their alarms alone are counted.
    With --group, every group of the certificate is monitored by itself, and all of them share alpha.
    With --unit, units are counted instead of rows, so that a batch must hold all rows of its units.

    Example:
    [bold]pac-wrap monitor certificate.json new.csv --score s --label y --state m.json[/bold]
    """
    from pac_wrap.base.files import held
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.monitoring.monitor import KINDS_APART, Monitor
    from pac_wrap.streams.decide import is_streamed
    from pac_wrap.streams.monitor import Columns
    from pac_wrap.tables.files.text_format import read_start, standard_input

    loaded = load_any(certificate, but=("classes", "curve"))
    if division_of(loaded) == "kind":
        raise InputError(f"the certificate has a promise for each kind; {KINDS_APART}")
    check_division(loaded, group=group)
    options.check_units(loaded, unit)
    if group is not None and curve is not None:
        raise InputError("--curve needs a certificate without groups; remove --curve")
    watched = Monitor(loaded, None if curve is None else Curve.load(curve), alpha)
    if (label if watched.asked.of_traffic else review) is not None:
        raise InputError("--review is for a certificate of traffic, and --label for any other; use the other")
    keep_apart([*tables, certificate, *([] if curve is None else [curve])], state, output, report)
    options.check_report(report, "a monitor", options.PAGES)
    marks = label if review is None else review
    for given, wanted in (("--anomaly-label", anomaly_label is not None), ("--late", late)):
        if wanted and marks is None:
            raise InputError(f"{given} needs labels; name their column with --label, or --review of traffic")
    if batch is not None and name is not None:
        raise InputError("--batch names the batch of each row already; remove --id")
    columns = Columns(score, marks, unit or group, anomaly_label, batch, "group" if unit is None else "unit")
    job = _Job(watched, columns, delimiter, name, late, state, output, form, report)
    with held(state):
        if state.exists():
            watched.load(state)
        start = b""
        if tables == ["-"]:
            reader = standard_input()
            start = read_start(reader)
        if start and is_streamed(start):
            job.watch_lines(reader, start)
        else:
            job.watch_table(tables, start)
    if output is None:
        typer.echo(job.text(), nl=False)
    if watched.alarm is not None or not watched.points:
        raise typer.Exit(FAILED)
