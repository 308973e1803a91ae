"""pac-wrap calibrate and pac-wrap compare: labelled scores in, certificates out."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Literal

import typer

from pac_wrap.cli.options import (
    AnomalyLabel,
    Delimiter,
    DeltaFnr,
    DeltaFpr,
    Label,
    MaxFnr,
    MaxFpr,
    Score,
    Step,
    Tables,
    guarantee_of,
    keep_apart,
)
from pac_wrap.cli.run import progress_bar

NOT_CERTIFIED = 1
_SINGLE = "One threshold"
_RELAX = "Strategy relax: one level after the other, with higher ceilings"


def calibrate(
    tables: Tables,
    score: Score,
    label: Label,
    max_fpr: MaxFpr = "0.05",
    max_fnr: MaxFnr = "0.05",
    delta_fpr: DeltaFpr = 0.05,
    delta_fnr: DeltaFnr = 0.05,
    anomaly_label: AnomalyLabel = None,
    delimiter: Delimiter = None,
    abstain: Annotated[
        bool, typer.Option(help="Leave points undecided, or use one threshold.", rich_help_panel=_SINGLE)
    ] = True,
    strategy: Annotated[
        Literal["relax", "hold_fnr", "hold_fpr"],
        typer.Option(
            help="Raise the ceilings until one threshold keeps them, or hold one and certify the other.",
            rich_help_panel=_SINGLE,
        ),
    ] = "relax",
    step: Annotated[
        float, typer.Option(help="How much a level raises the ceilings.", rich_help_panel=_RELAX)
    ] = 0.1,
    growth: Annotated[
        Literal["linear", "double"], typer.Option(help="How the levels grow.", rich_help_panel=_RELAX)
    ] = "linear",
    ceilings: Annotated[
        Literal["both", "fpr", "fnr"], typer.Option(help="Which ceilings are raised.", rich_help_panel=_RELAX)
    ] = "both",
    relax_delta: Annotated[
        bool, typer.Option(help="Raise the deltas instead.", rich_help_panel=_RELAX)
    ] = False,
    correction: Annotated[
        Literal["share", "none"],
        typer.Option(help="Whether the levels share delta.", rich_help_panel=_RELAX),
    ] = "share",
    position: Annotated[
        float,
        typer.Option(
            help="Where the threshold lies, from 0 (alarm_from) to 1 (clear_below).", rich_help_panel=_RELAX
        ),
    ] = 0.5,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to save the certificate.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a report: .html, .md or .json; reads scores into memory.")
    ] = None,
    engine: Annotated[
        Literal["duckdb", "spark", "dask"], typer.Option(help="What reads the tables; all give the same.")
    ] = "duckdb",
) -> None:
    """Certify thresholds from a table of scores and labels, larger than memory if need be.

    Exit code 0 if something is certified, 1 if there are too few labels or no threshold is possible.

    Example: [bold]pac-wrap calibrate scores.csv --score score --label label -o certificate.json[/bold]
    """
    from pac_wrap.csvform import check_delimiter
    from pac_wrap.engines.by_name import calibrate_with
    from pac_wrap.files import whole_file, write_text
    from pac_wrap.report.result import Report, Source
    from pac_wrap.report.write import check_suffix, render_report
    from pac_wrap.tables import open_table

    guarantee = guarantee_of(max_fpr, max_fnr, delta_fpr, delta_fnr)
    if report is not None:
        check_suffix(report)
    keep_apart(tables, output, report)
    separator = check_delimiter(delimiter)
    with (
        progress_bar("reading") as progress,
        open_table(tables, [score], label, passes=True, delimiter=separator, progress=progress) as table,
    ):
        certificate = calibrate_with(
            engine,
            table,
            guarantee,
            score=score,
            label=label,
            anomaly_label=anomaly_label,
            abstain=abstain,
            strategy=strategy,
            step=step,
            growth=growth,
            ceilings=ceilings,
            relax_delta=relax_delta,
            correction=None if correction == "none" else correction,
            position=position,
        )
        if report is not None:
            scores, anomalous = table.labelled(score, label, anomaly_label)
    texts = {} if output is None else {output: certificate.to_json()}
    if report is not None:
        shown = Report(
            certificate, scores[~anomalous], scores[anomalous], Source(tuple(tables), score, label)
        )
        texts[report] = render_report(shown, report)
    with ExitStack() as files:  # all of them, or none
        for path, text in texts.items():
            write_text(files.enter_context(whole_file(path)), text)
    typer.echo(str(certificate))
    if certificate.empty:
        raise typer.Exit(NOT_CERTIFIED)


def compare(
    tables: Tables,
    score: Annotated[list[str], typer.Option("--score", help="A column of scores; give it several times.")],
    label: Label,
    max_fpr: MaxFpr = "0.05",
    max_fnr: MaxFnr = "0.05",
    delta_fpr: DeltaFpr = 0.05,
    delta_fnr: DeltaFnr = 0.05,
    anomaly_label: AnomalyLabel = None,
    delimiter: Delimiter = None,
    step: Step = 0.1,
) -> None:
    """Compare several detectors on the same labels; delta is shared, so that all promises hold at once.

    Example: [bold]pac-wrap compare scores.csv --score forest --score lof --label label[/bold]
    """
    from rich.console import Console

    from pac_wrap.comparison import compare_scores
    from pac_wrap.csvform import check_delimiter
    from pac_wrap.report.terminal import show_comparison
    from pac_wrap.tables import open_table

    guarantee = guarantee_of(max_fpr, max_fnr, delta_fpr, delta_fnr)
    separator = check_delimiter(delimiter)
    with (
        progress_bar("reading") as progress,
        open_table(tables, score, label, delimiter=separator, progress=progress) as table,
    ):
        columns = {name: table.labelled(name, label, anomaly_label) for name in score}
    Console().print(show_comparison(compare_scores(columns, guarantee, step=step)))
