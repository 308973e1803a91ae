"""pac-wrap demo, calibrate and compare: the way to a certificate."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pac_wrap.cli.certificates import end_with, tell_written, write_certified
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
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.certificates.verify import Verification
    from pac_wrap.method.groups.calibrate import GroupRequest
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.promise import Guarantee
    from pac_wrap.series.points import Several
    from pac_wrap.series.splits import SeriesSplit
    from pac_wrap.tables.sql.expressions import Dialect

Together = Annotated[
    bool, typer.Option("--together", help="With --group: the promises of all groups hold at once.")
]
Pool = Annotated[
    bool,
    typer.Option(
        "--pool",
        help="With --group: those with too few labels follow one rule, promised for their mixture.",
    ),
]


def check_by_group(group: str | None, options: bool, others: tuple[object, ...]) -> None:
    """Refuse options that mean nothing without --group, or that do not go with it."""
    if group is None and options:
        raise InputError("--together and --pool are for groups; name their column with --group")
    if group is not None and any(one is not None for one in others):
        raise InputError("--group goes with neither --kind nor --time nor --prevalence; leave it out")


def calibrate_by_group(
    tables: list[str],
    request: "GroupRequest",
    columns: tuple[str, str, str],
    delimiter: str | None,
    files: tuple[Path | None, Path | None],
    engine: str,
    master: str | None,
    *,
    leave_out: list[str] | None,
    form: str,
    quiet: bool,
) -> None:
    """Certify thresholds for each group that a column names; `files` are those of certificate and report."""
    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.method.certify import certify_groups
    from pac_wrap.report.pages.groups import page_of_groups, worst
    from pac_wrap.report.pages.parts import render_parts
    from pac_wrap.tables.calibrate import TableGroups
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.table import open_found

    output, report = files
    keep_apart(tables, output, report)
    score, label, group = columns
    drawn = None
    separator = check_delimiter(delimiter)
    with progress_bar("reading") as progress, found_files(tables) as found:
        if engine == "duckdb":
            with open_found(
                found,
                [score, group],
                label,
                passes=True,
                delimiter=separator,
                leave_out=leave_out or (),
                progress=progress,
            ) as table:
                scores = TableGroups(table, columns, request.request.label_text)
                certificate = certify_groups(scores, request)
                if report is not None:
                    drawn = scores.classes(worst(certificate))
        else:
            cluster = on_cluster(engine, found, separator, master)
            certificate = cluster.certify(request, columns, request.request.label_text)
    certificate = certificate.with_provenance(tables=tuple(tables), date=now())
    texts = {} if output is None else {output: certificate.to_json()}
    if report is not None:
        texts[report] = render_parts(page_of_groups(certificate, drawn), report)
    _write(texts)
    if not quiet and texts:
        normal, anomalous = map(int, certificate.columns.n.sum(axis=1))
        tell_written(normal, anomalous, texts, f", {len(certificate.groups):,} groups")
    end_with(certificate, form)


def print_rules(
    certificate: "GroupCertificate", score: str, group: str, dialect: "Dialect", join_table: str | None
) -> None:
    """Print the rules of groups as one expression, or as a table to be joined."""
    from pac_wrap.tables.sql.group_rules import group_verdict_sql, join_sql

    if join_table is None:
        typer.echo(group_verdict_sql(certificate, score, group, dialect))
        return
    for statement in join_sql(certificate, score, group, join_table, dialect):
        typer.echo(statement)


def calibrate_by_kind(
    tables: list[str],
    asked: "Guarantee",
    overlap: str,
    columns: tuple[str, str, str],
    anomaly_label: str | None,
    delimiter: str | None,
    files: tuple[Path | None, Path | None],
    engine: str,
    master: str | None,
    *,
    leave_out: list[str] | None,
    form: str,
    quiet: bool,
) -> None:
    """Certify thresholds whose ceilings hold for every kind; `files` are those of certificate and report."""
    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.method.certify import certify_kinds
    from pac_wrap.method.kinds.calibrate import KindRequest
    from pac_wrap.method.kinds.part import points_of
    from pac_wrap.method.request import as_strategy
    from pac_wrap.report.pages.kinds import page_of_kinds
    from pac_wrap.report.pages.parts import render_parts
    from pac_wrap.tables.calibrate import TableSource
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.table import open_found

    output, report = files
    keep_apart(tables, output, report)
    score, label, kind = columns
    scores: Any = None, None
    separator, request = check_delimiter(delimiter), partial(KindRequest.of, asked, as_strategy(overlap))
    with progress_bar("reading") as progress, found_files(tables) as found, ExitStack() as opened:
        if engine != "duckdb":
            cluster = on_cluster(engine, found, separator, master)
            certificate = cluster.certify(request, columns, anomaly_label, kind=True)
        if engine == "duckdb" or report is not None:
            table = opened.enter_context(
                open_found(
                    found,
                    [score, kind],
                    label,
                    passes=True,
                    delimiter=separator,
                    leave_out=leave_out or (),
                    progress=progress,
                )
            )
            source = TableSource(table, score, label, anomaly_label, kind=kind)
        if engine == "duckdb":
            certificate = certify_kinds(source, request)
        if report is not None:
            scores = source.by_kind()
    certificate = certificate.with_provenance(tables=tuple(tables), date=now())
    texts = {} if output is None else {output: certificate.to_json()}
    if report is not None:
        texts[report] = render_parts(page_of_kinds(certificate, *scores), report)
    _write(texts)
    if not quiet:
        normal, anomalous = map(points_of, (certificate.normal, certificate.anomalous))
        tell_written(normal, anomalous, texts)
    end_with(certificate, form)


def _write(texts: dict[Path, str]) -> None:
    """Write all of some files, or none."""
    from pac_wrap.base.files import whole_file, write_text

    with ExitStack() as files:
        for path, text in texts.items():
            write_text(files.enter_context(whole_file(path)), text)


# the label of anomalies, those to be left out, and the delimiter
Reading = tuple[str | None, list[str] | None, str | None]
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
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        help="With --hold-out: fixes which series are drawn. With --weight: fixes which points are, instead"
        " of a seed from the system; it must not have been tried before.",
    ),
]


def check_in_time(
    time: str | None,
    series: str | None,
    every: int | None,
    hold_out: float | None,
    seed: int | None,
    *,
    kind: str | None,
    engine: str = "duckdb",
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
    shares: tuple[float, float] | None,
    leave_out: list[str] | None,
    form: str,
    quiet: bool,
) -> None:
    """Certify thresholds from rows in the order of time, and say how far they depend on each other."""
    import numpy as np

    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.report.subject import Origin
    from pac_wrap.report.words.in_order import lines_of_several
    from pac_wrap.series.points import calibrate_points

    score, label, time, _ = columns
    keep_apart(tables, output, report)
    reading = (request.label_text, leave_out, delimiter)
    several, split = _taken(tables, columns, reading, every or 1, hold_out, seed)
    certificate = calibrate_points(several.points, request, split=split)
    classes = _classes(several, split)
    used = np.concatenate(classes)
    certificate = certificate.with_provenance(
        score=score,
        tables=tuple(tables),
        engine="duckdb",
        lowest=float(used.min()),
        highest=float(used.max()),
        date=now(),
    )
    lines = tuple(lines_of_several(several, certificate, time, split))
    origin = Origin(tuple(tables), score, label)
    write_certified(certificate, classes, origin, output, report, shares, lines, quiet=quiet)
    end_with(certificate, form, lines)


def verify_in_time(
    certificate: object,
    tables: list[str],
    columns: tuple[str, str, str, str | None],
    reading: Reading,
    hold_out: float | None,
    seed: int | None,
) -> "Verification":
    """Make a certificate again from rows in the order of time; it says itself how many steps were taken."""
    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.certificates.verify import verify

    sampling = certificate.sampling if isinstance(certificate, Certificate) else None
    if not isinstance(certificate, Certificate) or sampling is None or sampling.length != 1:
        raise InputError("--time is for certificates that were made with it; leave it out")
    if (hold_out is not None) != (sampling.split == "series"):
        raise InputError(
            "--hold-out is for certificates that were made with it; leave it out"
            if hold_out is not None
            else "some series were held out of the calibration; give --hold-out and --seed as they were then"
        )
    several, split = _taken(tables, columns, reading, sampling.every, hold_out, seed)
    return verify(certificate, *_classes(several, split))


def _taken(
    tables: list[str],
    columns: tuple[str, str, str, str | None],
    reading: Reading,
    every: int,
    hold_out: float | None,
    seed: int | None,
) -> "tuple[Several, SeriesSplit | None]":
    """Return the steps of all series, and which of them calibrate if some are held out."""
    import numpy as np

    from pac_wrap.series.points import several_series
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.in_order import rows_in_time
    from pac_wrap.tables.table import open_table

    score, label, time, series = columns
    anomaly_label, leave_out, delimiter = reading
    wanted = [score, time, *([] if series is None else [series])]
    options: Any = {"delimiter": check_delimiter(delimiter), "leave_out": leave_out or ()}
    with (
        progress_bar("reading") as progress,
        open_table(tables, wanted, label, progress=progress, **options) as table,
    ):
        rows = rows_in_time(table, score, label, anomaly_label, time, series)
    several = several_series(rows.names, rows.sizes, rows.scores, rows.anomalous, every=every)
    if hold_out is None:
        return several, None
    return several, several.divided(np.random.default_rng(seed or 0), calibration=1.0 - hold_out)


def _classes(several: "Several", split: "SeriesSplit | None") -> "list[NDArray[Any]]":
    """Return the scores of either class that calibrate."""
    among = None if split is None else split.calibration
    return [several.points.scores[several.points.of_class(one, among)] for one in (False, True)]


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
    from pac_wrap.method.certificates.provenance import now
    from pac_wrap.method.certify import certify, drawn_by
    from pac_wrap.method.groups.calibrate import GroupRequest
    from pac_wrap.report.pages.formats import check_suffix
    from pac_wrap.report.subject import Origin
    from pac_wrap.tables.calibrate import TableSource
    from pac_wrap.tables.files.find import found_files
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.table import open_found

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
    classes, draws = None, drawn_by(weight_bound, seed)
    with progress_bar("calibrating", 4) as progress, found_files(tables) as found, ExitStack() as opened:
        if engine != "duckdb":
            cluster = on_cluster(engine, found, separator, master)
            certificate = cluster.certify(request, (score, label), request.label_text)
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
            source = TableSource(table, score, label, request.label_text, weight=weight, draws=draws)
        if engine == "duckdb":
            certificate = certify(source, request)
        if report is not None:
            classes = source.classes()
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
    from pac_wrap.tables.table import joined, open_found

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
