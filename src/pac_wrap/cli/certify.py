"""pac-wrap calibrate, curve, compare and recalibrate: commands that make a certificate or a curve."""

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Option

from pac_wrap.base.text import amount
from pac_wrap.cli import options
from pac_wrap.cli.options import Labelled, Promised, Reading, keep_apart, option
from pac_wrap.cli.process import FAILED, in_options, progress_bar, say
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.robust.weights import Draws
    from pac_wrap.report.account import Fact

_TOP: Final = "The largest {} bound that matters; smaller bounds become lower. Choose it before looking."


def calibrate(
    *,
    max_fpr: list[str] | None = option(
        "Ceiling of the false positive rate, or none; by default 0.05. With --kind it holds for every kind;"
        " repeat it as 'stolen=0.02' for single kinds, and '*=0.05' for all kinds together."
    ),
    max_fnr: list[str] | None = option("Ceiling of the false negative rate, in the same way."),
    promised: Promised,
    reading: Reading,
    together: bool = option(
        "With --group: the promises of all groups hold together.", "--together", default=False
    ),
    pool: bool = option(
        "With --group: groups with too few labels share one rule, promised for their mixture.",
        "--pool",
        default=False,
    ),
    overlap: options.OverlapWord = None,
    output: Path | None = option("Where to save the certificate.", "--output", "-o"),
    report: Path | None = option(
        "Also write a report: .html, .md, .json, .svg or .png; this loads the scores into memory."
    ),
    prevalence: str | None = option(
        "With --report: the share of anomalies among future points, 0.01 or a range such as 0.01-0.03; by"
        " default the share in the table."
    ),
    form: options.Form = "text",
    quiet: options.Quiet = False,
) -> None:
    """Certify thresholds from a table of scores and labels, which may be larger than memory.

    Exit code 0 if every requested rate is certified (for every kind; in at least one group), else 1.

    Example:
    [bold]pac-wrap calibrate scores.csv --score s --label y -o certificate.json[/bold]

    From traffic, all points that came, with the reviews of some:
    [bold]pac-wrap calibrate days.csv --score s --review v --max-false-alarms 20/50000[/bold]
    """
    from pac_wrap.method.calibrate import Request, drawn_by
    from pac_wrap.method.groups.calibrate import GroupRequest, request_of_columns
    from pac_wrap.report.account import account_of
    from pac_wrap.report.render import check_ending, short
    from pac_wrap.report.sentences import Origin

    asked = promised.guarantee(max_fpr, max_fnr)
    tables, label = reading.tables, reading.label
    kind, group, time = reading.kind, reading.group, reading.time
    if reading.weight is not None:
        _check_weighted(reading)
    options.check_traffic(asked.of_traffic, reading, overlap=overlap, prevalence=prevalence)
    if asked.of_traffic and len({one is None for one in (asked.fnr, reading.audit, promised.audits)}) > 1:
        raise InputError(
            "--max-fnr of traffic needs audits, and they are for nothing else; give --max-fnr, the column of"
            " points that a coin drew whatever their score with --audit, and its chance with --audits"
        )
    strategy = options.strategy_of(overlap, asked) if label is not None else "abstain"
    if time is not None and (kind is not None or reading.engine != "duckdb"):
        raise InputError("--time does not work with --kind or another --engine; remove them")
    if group is None and (together or pool):
        raise InputError("--together and --pool need groups; name their column with --group")
    if group is not None and any(one is not None for one in (kind, time, prevalence)):
        raise InputError("--group does not work with --kind, --time or --prevalence; remove one of them")
    if report is None and prevalence is not None:
        raise InputError("--prevalence needs --report; add --report, or use pac-wrap worth")
    shares = None if prevalence is None else options.shares_in(prevalence)
    if report is not None:
        check_ending(report)
    if group is not None:
        options.check_report(report, "groups", options.PAGES)
    if kind is not None and shares is not None:
        raise InputError("--prevalence does not work with --kind; remove one of them")
    request: Any = asked
    if label is not None:
        request, _ = request_of_columns(asked, strategy, reading.mark, group, together, pool, kind)
    elif group is not None:
        request = GroupRequest(Request(asked), together, pool)
    survived = drawn_by(reading.weight_bound, reading.seed if reading.weight else None)
    keep_apart([*tables, *(reading.answers or ())], output, report)
    facts: tuple[Fact, ...] = ()
    drawn: Any = ()
    if reading.unit is not None:
        certificate, drawn = _in_units(reading, request)
    elif time is not None:
        certificate, drawn, facts = _in_time(reading, request)
    else:
        bar = ("reading", None) if kind or group else ("calibrating", 4)
        certificate, drawn = _certified(reading, request, *bar, draws=report is not None, survived=survived)
    known: Any = {}
    if group is None:
        known = {"source": Origin(tuple(tables), reading.score, label or reading.traffic.review or "")}
        if label is not None:
            known |= {"prevalence": shares, "in_time": facts}
        elif drawn:
            known |= {"reviews": drawn[1], "audits": drawn[2]}
            drawn = drawn[:1]
    written = _write_all((output, certificate), (report, partial(account_of, certificate, *drawn, **known)))
    if written and not quiet:
        say(f"{_counted(certificate, label is None)} -> {', '.join(written)}")
    if form == "json":
        typer.echo(certificate.to_json(), nl=False)
    else:
        # a user who has just made a certificate knows its origin
        typer.echo(short(getattr(certificate, "bare", certificate), None, facts))
    if certificate.empty or getattr(certificate, "overstated", False):
        raise typer.Exit(FAILED)


def _counted(certificate: Any, of_traffic: bool) -> str:
    groups = getattr(certificate, "groups", None)
    normal, anomalous = certificate.sizes if groups is None else certificate.columns.n.sum(axis=1).tolist()
    rows = f"{amount(normal + anomalous, 'row')}: {normal:,} normal, {anomalous:,} anomalous"
    if (units := getattr(certificate, "units", None)) is not None and units.counted:
        both = ("days" if units.day else "normal", "events" if units.event else "anomalous")
        return f"{normal:,} {both[0]}, {anomalous:,} {both[1]}"
    if of_traffic and groups is None:
        seen = certificate.traffic
        reviews, alarms = amount(seen.found + seen.cleared, "review"), amount(seen.alarms, "alarm")
        return f"{amount(seen.points, 'row')} of traffic: {reviews}, {alarms}"
    if of_traffic:
        rows = f"{amount(normal + anomalous, 'row')} of traffic: {anomalous:,} found anomalous"
    return rows if groups is None else f"{rows}, {amount(len(groups), 'group')}"


def _check_weighted(reading: Reading) -> None:
    """Refuse a column of weights without a bound, and options that do not work with it."""
    engine = reading.engine
    if reading.weight_bound is None:
        raise InputError(
            "--weight needs --weight-bound, a bound that no weight exceeds anywhere; if there is none, clip"
            " the weights at the bound and tolerate the rest as shift with --shift tv:SHARE"
        )
    if engine != "duckdb":
        raise InputError(
            f"--weight needs rows in order, and {engine.capitalize()} has no order; remove --engine {engine}"
        )
    for name in ("kind", "group", "time"):
        if getattr(reading, name):
            raise InputError(f"--weight does not work with --{name}; remove one of them")


def _certified(
    reading: Reading,
    request: Any,
    doing: str = "reading",
    passes: int | None = None,
    *,
    draws: bool = False,
    survived: "Draws | None" = None,
) -> tuple[Any, Any]:
    """Return the certificate or curve of a request, and the scores that its report draws, if any."""
    from pac_wrap.method.provenance import now
    from pac_wrap.report.groups import worst
    from pac_wrap.tables.columns import only_in_csv
    from pac_wrap.tables.table import found_files

    made: Any = None
    grouped = reading.group is not None
    drawn: tuple[Any, ...] = ()
    with progress_bar(doing, passes) as progress, found_files(reading.tables) as found:
        if reading.engine != "duckdb":
            from pac_wrap.engines.files import EngineFiles

            if found.reader == "numpy":
                raise InputError(f"--engine {reading.engine} does not read NumPy files; remove it")
            if found.reader != "read_csv":
                only_in_csv(reading.delimiter)
            files = EngineFiles(reading.engine, found.files, found.reader, reading.delimiter, reading.master)
            if reading.label is None:
                made = files.certify_traffic(request, reading.traffic)
            else:
                made = files.certify(request, reading.columns, reading.anomaly_label)
        if made is None or (draws and not grouped):  # else an engine has done all there is to do
            with reading.opened_found(found, progress) as table:
                source = reading.source(table, draws=survived)
                made = reading.certify(source, request) if made is None else made
                if draws and grouped:
                    drawn = (source.classes(worst(made)),)
                elif draws and reading.label is None:
                    drawn = source.arrays()
                elif draws:
                    drawn = source.classes()
    return made.with_provenance(tables=tuple(reading.tables), date=now()), drawn


def _in_time(reading: Reading, request: "Request") -> "tuple[Any, list[NDArray[Any]], tuple[Fact, ...]]":
    """Return a certificate from rows in the order of time, their scores, and facts on their dependence."""
    import numpy as np

    from pac_wrap.report.results import facts_of_series
    from pac_wrap.series.points import calibrate_points

    points, split, classes = reading.steps(reading.every or 1)
    certificate = calibrate_points(points, request, split=split)
    certificate = _traced(certificate, reading, np.concatenate(classes))
    return certificate, classes, tuple(facts_of_series(points, certificate, reading.time or "", split))


def _in_units(reading: Reading, request: "Request") -> Any:
    from dataclasses import replace

    from pac_wrap.method.calibrate import warned
    from pac_wrap.method.groups.units import certify_units
    from pac_wrap.method.provenance import Day, Event, Units

    event = Event(reading.alarms or 1, reading.first) if reading.per in ("event", "both") else None
    counted = Units(None, event, Day(reading.more_than or 0) if reading.per in ("day", "both") else None)
    scores, anomalous, units = reading.in_units()
    made = certify_units(replace(request, anomaly_label=1), scores, anomalous, units, counted)
    # an event or a day has a score of its own, which no row shows
    drawn = () if counted.counted else (scores[~anomalous], scores[anomalous])
    return _traced(warned(made), reading, scores), drawn


def _traced(made: Any, reading: Reading, scores: "NDArray[Any]") -> Any:
    """Return a certificate with the origin of its scores, which were read into memory."""
    from pac_wrap.method.provenance import now

    where: Any = {"score": reading.score, "engine": "duckdb", "tables": tuple(reading.tables), "date": now()}
    return made.with_provenance(lowest=float(scores.min()), highest=float(scores.max()), **where)


def _write_all(*outputs: tuple[Path | None, Any]) -> list[str]:
    """Write all results and reports to the files that were named, or none; return the names of the files."""
    from pac_wrap.base.files import whole_file, write_text
    from pac_wrap.report.render import rendered

    named = [(path, made) for path, made in outputs if path is not None and made is not None]
    with ExitStack() as files:
        contents = [rendered(made(), path) if callable(made) else made.to_json() for path, made in named]
        for (path, _), content in zip(named, contents, strict=True):
            write_text(files.enter_context(whole_file(path)), content)
    return [str(path) for path, _ in named]


def curve(
    reading: Annotated[Labelled, "tables score label anomaly_label leave_out delimiter engine master"],
    delta_fpr: options.DeltaFpr = None,
    delta_fnr: options.DeltaFnr = None,
    top_fpr: float | None = option(_TOP.format("FPR")),
    top_fnr: float | None = option(_TOP.format("FNR")),
    output: Path | None = option("Where to save the curve.", "--output", "-o"),
    report: Path | None = option("Also draw it: .svg, .png or .pdf."),
    max_fpr: float | None = option("Choose the threshold that keeps this FPR ceiling."),
    max_fnr: float | None = option("Choose the threshold that keeps this FNR ceiling."),
    at: float | None = option("Choose this threshold."),
    certificate: Path | None = option("Where to save the certificate of the chosen threshold."),
    form: options.Form = "text",
) -> None:
    """Bound both error rates at every threshold together, so that you may choose one after looking.

    Prints the certificate of the threshold chosen by --max-fpr, --max-fnr or --at, else a short curve.
    Exit code 1 if no threshold keeps the ceiling, or a rate has no bound; the curve is saved anyway.

    Example:
    [bold]pac-wrap curve scores.csv --score s --label y -o curve.json[/bold]
    """
    from pac_wrap.method.curves.curve import CurveRequest
    from pac_wrap.report.account import account_of
    from pac_wrap.report.render import short

    if sum(one is not None for one in (max_fpr, max_fnr, at)) > 1:
        raise InputError("--max-fpr, --max-fnr and --at each choose a threshold; give only one of them")
    if certificate is not None and max_fpr is max_fnr is at is None:
        raise InputError("--certificate needs a threshold; choose one with --max-fpr, --max-fnr or --at")
    options.check_report(report, "a curve", options.PICTURES)
    keep_apart(reading.tables, output, report, certificate)
    delta_fpr, delta_fnr = (0.05 if delta is None else delta for delta in (delta_fpr, delta_fnr))
    found, _ = _certified(reading, CurveRequest(delta_fpr, delta_fnr, reading.mark, top_fpr, top_fnr))
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
    _write_all((output, found), (certificate, chosen), (report, partial(account_of, found)))
    shown = found if chosen is None else chosen
    if form == "json":
        refused = json.dumps({"kept": False, "reason": reason}, indent=2) + "\n"
        typer.echo(refused if reason else shown.to_json(), nl=False)
    else:
        typer.echo(reason or short(shown.bare, None))
    if reason or found.empty:
        raise typer.Exit(FAILED)


def compare(
    tables: options.Tables,
    score: Annotated[list[str], Option("--score", help="A column of scores; repeat it for each detector.")],
    label: options.Label,
    promised: Annotated[Promised, "delta_fpr delta_fnr confidence"],
    max_fpr: str = option("Ceiling of the false positive rate, or none.", default="0.05"),
    max_fnr: str = option("Ceiling of the false negative rate, or none.", default="0.05"),
    anomaly_label: options.AnomalyLabel = None,
    leave_out: options.LeaveOut = None,
    delimiter: options.Delimiter = None,
    key: str | None = option(
        "The column that identifies rows, if each table has other scores of the same rows."
    ),
    form: options.Form = "text",
) -> None:
    """Compare several detectors by the error rates they certify; all bounds hold together and share delta.

    Example:
    [bold]pac-wrap compare scores.csv --score forest --score lof --label y[/bold]

    Scores in several tables:
    [bold]pac-wrap compare a.csv b.csv --key id --score forest --score lof --label y[/bold]
    """
    from pac_wrap.method.comparison import compare_scores
    from pac_wrap.report.results import account_of_comparison
    from pac_wrap.tables.table import joined

    guarantee = promised.guarantee(max_fpr, max_fnr)
    if key is not None and len(tables) == 1:
        raise InputError(
            "--key joins several tables, and only one is named; name the others, or remove --key"
        )
    how: Any = {"anomaly_label": anomaly_label, "delimiter": delimiter}
    reading = Reading(tables=tables, score=score[0], label=label, leave_out=leave_out, **how)
    if key is not None and leave_out:
        raise InputError("--leave-out does not work with --key; delete those rows from all tables")
    try:
        if key is not None:
            with progress_bar("reading") as progress:
                columns = joined(tables, score, label, key, progress=progress, **how)
        else:
            with reading.opened("reading", more=score[1:], in_order=True) as table:
                columns = {name: table.labelled(name, label, anomaly_label) for name in score}
    except InputError as error:
        # --key does not help if a file is missing
        about_tables = any(word in str(error) for word in ("column", "formats"))
        if key is not None or len(tables) == 1 or not about_tables:
            raise
        raise InputError(
            f"{error}; if the tables have different scores of the same rows, join them with --key"
        ) from error
    options.tell(account_of_comparison(compare_scores(columns, guarantee), guarantee), form)


def recalibrate(
    certificate: options.CertificateFile,
    reading: Annotated[Reading, "tables score label review answers key anomaly_label leave_out delimiter"],
    output: Annotated[Path, Option("--output", "-o", help="Where to save the new certificate.")],
    own_delta: bool = option(
        "Give each certificate a delta of its own, instead of a share.", "--own-delta", default=False
    ),
) -> None:
    """Certify the same ceilings again from new points; the new certificate names the old one.

    Successors get a third, a sixth, a tenth, ... of the first delta; all deltas add up to at most twice it.
    With --own-delta each has the first delta again, and the deltas add up.
    Use points that came after an alarm, not the points that raised it. Exit code 1 if nothing is certified.

    Example:
    [bold]pac-wrap recalibrate certificate.json late.csv --score s --label y -o new.json[/bold]
    """
    from dataclasses import replace

    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.monitoring.monitor import successor
    from pac_wrap.report.render import short

    loaded = Certificate.load(certificate)
    options.check_traffic(loaded.guarantee.of_traffic, reading)
    if loaded.traffic is not None and loaded.fnr.asked is not None:
        raise InputError("a certificate with --max-fnr of traffic has no successors; use pac-wrap calibrate")
    if loaded.lineage is not None and loaded.lineage.ledger == own_delta:
        so_far, remedy = ("share one delta", "remove") if own_delta else ("each have their own delta", "add")
        raise InputError(
            f"certificates that follow each other here {so_far}, which cannot change; {remedy} --own-delta,"
            " or start again with pac-wrap calibrate"
        )
    asked, place = successor(loaded, not own_delta)
    keep_apart([*reading.tables, *(reading.answers or ()), certificate], output)
    labelled = Request(asked, loaded.overlap, reading.mark) if loaded.traffic is None else None
    made, _ = _certified(reading, labelled or asked)
    made = replace(made, lineage=place)
    made.save(output)
    typer.echo(short(made.bare, None))
    if made.empty:
        raise typer.Exit(FAILED)
