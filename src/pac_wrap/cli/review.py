"""pac-wrap review: the points of traffic to look at next, and what reviews have gained so far."""

from pathlib import Path
from typing import Annotated, Any

from pac_wrap.cli import options
from pac_wrap.cli.options import Promised, Reading, keep_apart, option
from pac_wrap.cli.process import progress_bar
from pac_wrap.errors import InputError


def review(
    reading: Annotated[Reading, "tables score review answers key delimiter"],
    promised: Annotated[
        Promised, "max_false_alarms min_precision max_anomalies max_alarms mistaken delta_fpr"
    ],
    max_fpr: str | None = option("Ceiling of the false positive rate; it needs --max-anomalies."),
    number: int = option("How many points at most.", "--number", "-n", default=20, min=1),
    output: Path | None = option(
        "Where to write them, the highest score first: .csv, .parquet or .jsonl.", "--output", "-o"
    ),
    form: options.Form = "text",
) -> None:
    """Name the points of traffic to review next: the highest scores that nobody has looked at.

    A point without a review counts as a false alarm; each that is right lets the threshold fall.
    Fill in the column of reviews that the output has (1 right, 0 wrong), and pass the file with --answers.
    Stop at any time: pac-wrap calibrate is valid whatever was reviewed, with the same options.

    Example:
    [bold]pac-wrap review days.csv --score s --max-false-alarms 20/50000 -o next.csv[/bold]
    """
    from contextlib import nullcontext

    from pac_wrap.base.files import whole_file
    from pac_wrap.report.render import short
    from pac_wrap.report.traffic import account_of_queue
    from pac_wrap.tables.decide import output_options, write_next
    from pac_wrap.tables.review import queue_of
    from pac_wrap.tables.table import found_files

    if not promised.of_traffic:
        raise InputError("add a promise about traffic, such as --max-false-alarms 20/50000")
    asked = promised.guarantee(max_fpr, None)
    how = "" if output is None else output_options(output.name)
    keep_apart([*reading.tables, *(reading.answers or ())], output)
    written: Any = nullcontext() if output is None else whole_file(output)
    with (
        progress_bar("reading") as progress,
        found_files(reading.tables) as found,
        written as target,
        reading.opened_found(found, progress, output=target) as table,
    ):
        rows = reading.source(table)
        queue, scores = queue_of(rows, reading.certify(rows, asked), number)
        chosen = queue.next(number)
        to = reading.score, reading.traffic.review, scores[chosen], target, how
        if target is not None and table.reader == "read_parquet":
            write_next(table, *to)
        elif target is not None:  # the columns that were not asked for are not there yet
            with reading.opened_found(found, progress, table.columns, output=target) as whole:
                write_next(whole, *to)
    account = account_of_queue(queue, chosen.size, None if output is None else str(output))
    options.tell(account, form, short(account, None))
