"""pac-wrap demo, calibrate and compare: the way to a certificate."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from pac_wrap.cli.certificates import end_with, write_certified
from pac_wrap.cli.in_time import Every, HoldOut, Seed, Series, Time, calibrate_in_time, check_in_time
from pac_wrap.cli.options import (
    AnomalyLabel,
    Confidence,
    Delimiter,
    DeltaFnr,
    DeltaFpr,
    Form,
    Group,
    Kind,
    Label,
    LabelNoiseOption,
    LeaveOut,
    MaxFnr,
    MaxFnrs,
    MaxFpr,
    MaxFprs,
    OverlapWord,
    Quiet,
    Score,
    ShiftOption,
    Tables,
    Weight,
    WeightBound,
    check_weighted,
    guarantee_of,
    keep_apart,
    on_cluster,
    shares_in,
    strategy_of,
)
from pac_wrap.cli.parts import Pool, Together, calibrate_by_group, calibrate_by_kind, check_by_group
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Fixes the data and the forest.")] = 0,
    margin: Annotated[
        float, typer.Option(min=0.0, help="Distance between the two classes in standard deviations.")
    ] = 5.0,
    report: Annotated[Path | None, typer.Option(help="Also write a report: .html, .md or .json.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Also save the screen as a picture.")] = None,
) -> None:
    """Wrap an isolation forest on synthetic data and check the promise on fresh points.

    Examples: [bold]pac-wrap demo[/bold], or with overlapping classes [bold]pac-wrap demo --margin 3[/bold]
    """
    from rich.console import Console

    from pac_wrap.base.files import write_whole
    from pac_wrap.cli.demo import run_demo, show_demo
    from pac_wrap.report.pages.formats import check_suffix, write_report
    from pac_wrap.report.subject import Report
    from pac_wrap.report.terminal import screen_svg

    keep_apart([], report, svg)
    if report is not None:
        check_suffix(report)

    with Console(stderr=True).status("starting") as status:
        result = run_demo(seed, margin, progress=status.update)
    shown = show_demo(result)
    if report is not None:
        calibrated = result.calibration_normal, result.calibration_anomalous
        write_report(
            Report(
                result.abstaining, *calibrated, metrics=result.abstaining_metrics, detector="isolation forest"
            ),
            report,
        )
    if svg is not None:
        write_whole(svg, screen_svg(shown, "pac-wrap demo"))
    Console().print(shown)


def calibrate(
    tables: Tables,
    score: Score,
    label: Label,
    max_fpr: MaxFprs = None,
    max_fnr: MaxFnrs = None,
    delta_fpr: DeltaFpr = None,
    delta_fnr: DeltaFnr = None,
    confidence: Confidence = None,
    shift: ShiftOption = None,
    label_noise: LabelNoiseOption = None,
    weight: Weight = None,
    weight_bound: WeightBound = None,
    anomaly_label: AnomalyLabel = None,
    leave_out: LeaveOut = None,
    kind: Kind = None,
    group: Group = None,
    together: Together = False,
    pool: Pool = False,
    time: Time = None,
    series: Series = None,
    every: Every = None,
    hold_out: HoldOut = None,
    seed: Seed = None,
    delimiter: Delimiter = None,
    overlap: OverlapWord = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to save the certificate.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a report: .html, .md or .json; reads scores into memory.")
    ] = None,
    prevalence: Annotated[
        str | None,
        typer.Option(
            help="With --report: the share of anomalies among future points, 0.01 or a range, 0.01-0.03;"
            " by default that of the table."
        ),
    ] = None,
    engine: Annotated[
        Literal["duckdb", "spark", "dask"],
        typer.Option(help="What reads the tables; all give the same certificate."),
    ] = "duckdb",
    master: Annotated[
        str | None,
        typer.Option(
            help="A cluster for --engine: Spark's master, such as local[2] or spark://host:7077, or the"
            " address of Dask's scheduler; by default this machine."
        ),
    ] = None,
    form: Form = "text",
    quiet: Quiet = False,
) -> None:
    """Certify thresholds from a table of scores and labels, which may be larger than memory.

    Exit code 0 if each rate that was asked for is certified; 1 if one is not.

    With --group, in one group at least; with --kind, for every kind.

    Example: [bold]pac-wrap calibrate scores.csv --score score --label label -o certificate.json[/bold]

    By weight: [bold]... --weight w --weight-bound 5[/bold]

    By kind: [bold]... --kind type --max-fnr "card stolen=0.02" --max-fnr "account takeover=0.1"[/bold]
    """
    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.calibrate import calibrate as calibrate_classes
    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.method.groups.calibrate import GroupRequest
    from pac_wrap.method.weighted import weighted_by
    from pac_wrap.report.pages.formats import check_suffix
    from pac_wrap.report.subject import Origin
    from pac_wrap.tables.calibrate import calibrate_scores
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.table import open_found
    from pac_wrap.tables.weighted import labelled_of

    asked = guarantee_of(max_fpr, max_fnr, delta_fpr, delta_fnr, confidence, shift, label_noise)
    strategy = strategy_of(overlap, asked)
    check_weighted(weight, weight_bound, engine, {"--kind": kind, "--group": group, "--time": time})
    check_in_time(time, series, every, hold_out, None if weight else seed, kind=kind, engine=engine)
    check_by_group(group, together or pool, (kind, time, prevalence))
    if leave_out and engine != "duckdb":
        raise InputError(f"--leave-out is for DuckDB, and not for the engine {engine}; leave --engine out")
    if master is not None and engine == "duckdb":
        raise InputError(f"DuckDB runs in this process; name the engine of {master} with --engine")
    if report is None and prevalence is not None:
        raise InputError("--prevalence is for --report; give it as well, or ask pac-wrap worth")
    shares = None if prevalence is None else shares_in(prevalence)
    if report is not None:
        check_suffix(report)
    if kind is not None:
        if shares is not None:
            raise InputError("--kind takes no --prevalence; leave the option out")
        columns, files = (score, label, kind), (output, report)
        calibrate_by_kind(
            tables,
            asked,
            strategy,
            columns,
            anomaly_label,
            delimiter,
            files,
            engine,
            master,
            leave_out=leave_out,
            form=form,
            quiet=quiet,
        )
        return
    request = Request.of(asked, strategy, 1 if anomaly_label is None else anomaly_label)
    if group is not None:
        by_group = GroupRequest(request, together, pool)
        columns, files = (score, label, group), (output, report)
        calibrate_by_group(
            tables,
            by_group,
            columns,
            delimiter,
            files,
            engine,
            master,
            leave_out=leave_out,
            form=form,
            quiet=quiet,
        )
        return
    if time is not None:
        calibrate_in_time(
            tables,
            request,
            (score, label, time, series),
            delimiter=delimiter,
            output=output,
            report=report,
            every=every,
            hold_out=hold_out,
            seed=seed,
            shares=shares,
            leave_out=leave_out,
            form=form,
            quiet=quiet,
        )
        return
    keep_apart(tables, output, report)
    separator = check_delimiter(delimiter)
    classes, asked_of = None, weighted_by(request, weight_bound, seed)
    with progress_bar("calibrating", 4) as progress, found_files(tables) as found, ExitStack() as opened:
        if engine != "duckdb":
            cluster = on_cluster(engine, found, separator, master)
            certificate = cluster.calibrate(request, score=score, label=label)
        if engine == "duckdb" or report is not None:
            wanted, passes = [score] if weight is None else [score, weight], weight is None
            table = opened.enter_context(
                open_found(
                    found,
                    wanted,
                    label,
                    passes=passes,
                    delimiter=separator,
                    leave_out=leave_out or (),
                    progress=progress,
                )
            )
            labelled = labelled_of(table, asked_of, (score, label), weight)
        if report is not None:  # which needs the scores themselves, so the files are read once for both
            classes = labelled.by_class()
        if engine == "duckdb":
            certificate = (
                calibrate_scores(labelled, asked_of)
                if classes is None or weight is not None
                else labelled.signed(calibrate_classes(*classes, request))
            )
    certificate = certificate.with_provenance(tables=tuple(tables), date=now())
    origin = Origin(tuple(tables), score, label)
    write_certified(certificate, classes, origin, output, report, shares, quiet=quiet)
    end_with(certificate, form)


def compare(
    tables: Tables,
    score: Annotated[
        list[str], typer.Option("--score", help="A column of scores; repeat it for each detector.")
    ],
    label: Label,
    max_fpr: MaxFpr = "0.05",
    max_fnr: MaxFnr = "0.05",
    delta_fpr: DeltaFpr = None,
    delta_fnr: DeltaFnr = None,
    confidence: Confidence = None,
    anomaly_label: AnomalyLabel = None,
    leave_out: LeaveOut = None,
    delimiter: Delimiter = None,
    key: Annotated[
        str | None,
        typer.Option(help="Each table has other scores of the same rows: the column that tells rows apart."),
    ] = None,
    form: Form = "text",
) -> None:
    """Compare several detectors by what they certify at every threshold, all at once: delta is shared.

    Examples: [bold]pac-wrap compare scores.csv --score forest --score lof --label label[/bold],
    [bold]pac-wrap compare forest.csv lof.parquet --key id --score forest --score lof --label label[/bold]
    """
    from rich.console import Console

    from pac_wrap.method.comparison import compare_scores
    from pac_wrap.report.records import as_json, comparison
    from pac_wrap.report.terminal import show_comparison
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.joined import joined
    from pac_wrap.tables.table import open_found

    guarantee = guarantee_of(max_fpr, max_fnr, delta_fpr, delta_fnr, confidence)
    if key is not None and len(tables) == 1:
        raise InputError("--key joins several tables, and there is one; leave it out, or name the others")
    separator = check_delimiter(delimiter)
    if key is not None and leave_out:
        raise InputError("--leave-out does not go with --key; leave those rows out of all tables")
    with progress_bar("reading") as progress:
        if key is not None:
            options = {"anomaly_label": anomaly_label, "delimiter": separator}
            columns = joined(tables, score, label, key, progress=progress, **options)
        else:
            with (
                _or_joined(tables),
                found_files(tables) as found,
                open_found(
                    found, score, label, delimiter=separator, leave_out=leave_out or (), progress=progress
                ) as table,
            ):
                columns = {name: table.labelled(name, label, anomaly_label) for name in score}
    compared = compare_scores(columns, guarantee)
    if form == "json":
        typer.echo(as_json(comparison(compared, guarantee)), nl=False)
    else:
        Console().print(show_comparison(compared, guarantee))


@contextmanager
def _or_joined(tables: list[str]) -> Iterator[None]:
    """Add to an error about several tables that they may be meant to be joined."""
    try:
        yield
    except InputError as error:
        # a file that is not there is no matter of joining
        if len(tables) == 1 or not any(word in str(error) for word in ("column", "formats")):
            raise
        raise InputError(
            f"{error}; if each has other scores of the same rows, join them with --key"
        ) from error
