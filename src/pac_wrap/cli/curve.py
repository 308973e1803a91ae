"""pac-wrap curve: bounds at every threshold at once, and the certificate of one that is chosen from them."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from pac_wrap.cli.options import (
    NOT_CERTIFIED,
    AnomalyLabel,
    Delimiter,
    DeltaFnr,
    DeltaFpr,
    Form,
    Label,
    LeaveOut,
    Score,
    Tables,
    keep_apart,
    on_cluster,
)
from pac_wrap.cli.process import in_options
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.curves.certify import CurveRequest
    from pac_wrap.method.curves.curve import Curve

_TOP: Final = "The largest bound of the {} that matters; those below are lower for it. Fix it before looking."


def curve(
    tables: Tables,
    score: Score,
    label: Label,
    delta_fpr: DeltaFpr = None,
    delta_fnr: DeltaFnr = None,
    top_fpr: Annotated[float | None, typer.Option(help=_TOP.format("FPR"))] = None,
    top_fnr: Annotated[float | None, typer.Option(help=_TOP.format("FNR"))] = None,
    anomaly_label: AnomalyLabel = None,
    leave_out: LeaveOut = None,
    delimiter: Delimiter = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to save the curve.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Also draw it: .svg, .png or .pdf.")] = None,
    max_fpr: Annotated[float | None, typer.Option(help="Choose the threshold that keeps this FPR.")] = None,
    max_fnr: Annotated[float | None, typer.Option(help="Choose the threshold that keeps this FNR.")] = None,
    at: Annotated[float | None, typer.Option(help="Choose this threshold.")] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Where to save the certificate of the threshold that is chosen.")
    ] = None,
    engine: Annotated[
        Literal["duckdb", "spark", "dask"], typer.Option(help="What reads the tables; all give the same.")
    ] = "duckdb",
    master: Annotated[str | None, typer.Option(help="A cluster for --engine; else this machine.")] = None,
    form: Form = "text",
) -> None:
    """Bound both error rates at every threshold at once, so that one may be chosen after looking.

    Without a choice the curve is shown in a few lines, else the certificate of the threshold that is chosen.

    Exit code 1 if no threshold keeps the ceiling, or a rate is bounded nowhere; the curve is saved anyway.

    Example: [bold]pac-wrap curve scores.csv --score score --label label -o curve.json[/bold]
    """
    from pac_wrap.base.files import whole_file, write_text
    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.method.curves.certify import CurveRequest
    from pac_wrap.report.records import as_json

    if sum(one is not None for one in (max_fpr, max_fnr, at)) > 1:
        raise InputError("--max-fpr, --max-fnr and --at each choose a threshold; give one of them")
    if certificate is not None and max_fpr is max_fnr is at is None:
        raise InputError("--certificate needs a threshold: choose it with --max-fpr, --max-fnr or --at")
    if figure is not None and figure.suffix not in (".svg", ".png", ".pdf"):
        raise InputError(f"a figure ends in .svg, .png or .pdf, got {figure}")
    if leave_out and engine != "duckdb":
        raise InputError(f"--leave-out is for DuckDB, and not for the engine {engine}; leave --engine out")
    if master is not None and engine == "duckdb":
        raise InputError(f"DuckDB runs in this process; name the engine of {master} with --engine")
    keep_apart(tables, output, figure, certificate)
    request = CurveRequest(
        0.05 if delta_fpr is None else delta_fpr,
        0.05 if delta_fnr is None else delta_fnr,
        1 if anomaly_label is None else anomaly_label,
        top_fpr,
        top_fnr,
    )
    found = _read(tables, request, score, label, delimiter, leave_out or [], engine, master)
    found = found.with_provenance(tables=tuple(tables), date=now())
    chosen, ceiling, reason = None, max_fnr if max_fpr is None else max_fpr, ""
    if at is not None:
        chosen = found.at(at)
    elif ceiling is not None:
        try:
            chosen = found.choose(max_fpr=max_fpr, max_fnr=max_fnr)
        except InputError as error:
            if not 0.0 < ceiling < 1.0:
                raise
            reason = in_options(str(error))
    with ExitStack() as files:  # all of them, or none
        if output is not None:
            write_text(files.enter_context(whole_file(output)), found.to_json())
        if certificate is not None and chosen is not None:
            write_text(files.enter_context(whole_file(certificate)), chosen.to_json())
        if figure is not None:
            from matplotlib.figure import Figure

            from pac_wrap.report.figures.styling import to_svg

            drawn = found.plot().figure
            assert isinstance(drawn, Figure)
            file = files.enter_context(whole_file(figure))
            if figure.suffix == ".svg":  # the same bytes for the same curve
                write_text(file, to_svg(drawn, alt="the certified trade-off of both error rates"))
            else:
                drawn.savefig(file, format=figure.suffix[1:])
    shown = found if chosen is None else chosen
    if form == "json":
        typer.echo(as_json({"kept": False, "reason": reason}) if reason else shown.to_json(), nl=False)
    else:
        typer.echo(reason or str(shown.bare))
    if reason or found.empty:
        raise typer.Exit(NOT_CERTIFIED)


def _read(
    tables: list[str],
    request: "CurveRequest",
    score: str,
    label: str,
    delimiter: str | None,
    leave_out: list[str],
    engine: str,
    master: str | None,
) -> "Curve":
    from pac_wrap.method.certify import certify
    from pac_wrap.tables.calibrate import TableSource
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.table import open_found

    separator = check_delimiter(delimiter)
    with progress_bar("reading") as progress, found_files(tables) as found:
        if engine != "duckdb":
            cluster = on_cluster(engine, found, separator, master)
            made: Curve = cluster.certify(request, (score, label), request.label_text)
            return made
        with open_found(
            found,
            [score],
            label,
            passes=True,
            delimiter=separator,
            leave_out=leave_out,
            progress=progress,
        ) as table:
            return certify(TableSource(table, score, label, request.label_text), request)
