"""pac-wrap calibrate --time: certificates of scores in the order of time, of one series or of several."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pac_wrap.cli.options import NOT_CERTIFIED, keep_apart
from pac_wrap.cli.process import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.calibrate import Request

Time = Annotated[
    str | None,
    typer.Option(
        "--time", help="A column of times: rows are ordered by it, and how far they depend is judged."
    ),
]
Series = Annotated[
    str | None, typer.Option("--series", help="With --time: a column that names the series of each row.")
]
Every = Annotated[
    int | None, typer.Option("--every", min=1, help="With --time: take one in so many steps of a series.")
]
HoldOut = Annotated[
    float | None,
    typer.Option(
        "--hold-out",
        help="With --series: the share of whole series that do not calibrate, and show how the rule does.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="With --hold-out: fixes which series.")]


def check_in_time(
    time: str | None,
    series: str | None,
    every: int | None,
    hold_out: float | None,
    seed: int | None,
    *,
    kind: str | None,
    engine: str,
) -> None:
    """Refuse options that mean nothing without another one, or that do not go with --time."""
    if time is not None and (kind is not None or engine != "duckdb"):
        raise InputError("--time goes with neither another --engine nor --kind; leave them out")
    for option, value, needed, other in (
        ("--series", series, "--time", time),
        ("--every", every, "--time", time),
        ("--hold-out", hold_out, "--series", series),
        ("--seed", seed, "--hold-out", hold_out),
    ):
        if value is not None and other is None:
            raise InputError(f"{option} goes with {needed}; add that, or leave {option} out")


def calibrate_in_time(
    tables: list[str],
    request: "Request",
    columns: tuple[str, str, str, str | None],
    *,
    delimiter: str | None,
    output: Path | None,
    report: Path | None,
    every: int | None,
    hold_out: float | None,
    seed: int | None,
) -> None:
    """Certify thresholds from rows in the order of time, and say how far they depend on each other."""
    import numpy as np

    from pac_wrap.base.arguments import as_scores
    from pac_wrap.base.files import whole_file, write_text
    from pac_wrap.method.provenance import now
    from pac_wrap.report.formats import check_suffix, render_report
    from pac_wrap.report.in_time import lines_of_several
    from pac_wrap.report.subject import Origin, Report
    from pac_wrap.series.points import calibrate_points
    from pac_wrap.series.several import several_series
    from pac_wrap.tables.in_time import rows_in_time
    from pac_wrap.tables.table import open_table
    from pac_wrap.tables.text_format import check_delimiter

    score, label, time, series = columns
    if report is not None:
        check_suffix(report)
    keep_apart(tables, output, report)
    wanted = [score, time, *([] if series is None else [series])]
    with (
        progress_bar("reading") as progress,
        open_table(tables, wanted, label, delimiter=check_delimiter(delimiter), progress=progress) as table,
    ):
        rows = rows_in_time(table, score, label, request.label_text, time, series)
    several = several_series(rows.names, rows.sizes, rows.scores, rows.anomalous, every=every or 1)
    split = (
        None
        if hold_out is None
        else several.divided(np.random.default_rng(seed or 0), calibration=1.0 - hold_out)
    )
    certificate = calibrate_points(several.points, request, split=split)
    among = None if split is None else split.calibration
    classes = [several.points.scores[several.points.of_class(one, among)] for one in (False, True)]
    used = np.concatenate(classes)
    certificate = certificate.with_provenance(
        score=score,
        tables=tuple(tables),
        engine="duckdb",
        lowest=float(used.min()),
        highest=float(used.max()),
        date=now(),
    )
    texts = {} if output is None else {output: certificate.to_json()}
    if report is not None:
        normal, anomalous = map(as_scores, classes)
        shown = Report(certificate, normal, anomalous, Origin(tuple(tables), score, label))
        texts[report] = render_report(shown, report)
    with ExitStack() as files:  # all of them, or none
        for path, text in texts.items():
            write_text(files.enter_context(whole_file(path)), text)
    typer.echo(str(certificate.bare))
    for heading, text in lines_of_several(several, certificate, time, split):
        typer.echo(f"{heading:<10} {text}")
    if certificate.empty:
        raise typer.Exit(NOT_CERTIFIED)
