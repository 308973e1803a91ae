"""pac-wrap evaluate, verify and show: whether a certificate holds, and what it promises."""

import warnings
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pac_wrap.cli.certificates import any_of, columns_of, shown_of
from pac_wrap.cli.certify import HoldOut, Reading, Seed, Series, Time, check_in_time, verify_in_time
from pac_wrap.cli.options import (
    AnomalyLabel,
    CertificateFile,
    Delimiter,
    Form,
    Group,
    Kind,
    Label,
    LeaveOut,
    Quiet,
    Score,
    Tables,
    Weight,
)
from pac_wrap.cli.process import say
from pac_wrap.cli.progress import progress_bar
from pac_wrap.errors import InputError, PACWrapWarning

if TYPE_CHECKING:
    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.certificates.verify import Verification
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.kinds.certificate import KindCertificate

FAILED = 1


def evaluate(
    certificate: CertificateFile,
    tables: Tables,
    score: Score,
    label: Label,
    anomaly_label: AnomalyLabel = None,
    leave_out: LeaveOut = None,
    kind: Kind = None,
    group: Group = None,
    delimiter: Delimiter = None,
    form: Form = "text",
    quiet: Quiet = False,
) -> None:
    """Measure the error rates on labelled points that were not used to calibrate.

    Exit code 1 if a promised ceiling is significantly exceeded: one exact test of all ceilings at 5 %.

    That is for one look; a job that looks every night raises a false alarm sooner or later.

    Example: [bold]pac-wrap evaluate certificate.json test.csv --score score --label label[/bold]
    """
    from rich.console import Console

    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.kinds.certificate import KindCertificate
    from pac_wrap.report.records import as_json, by_group, by_kind, evaluation
    from pac_wrap.report.subject import error_rates
    from pac_wrap.report.terminal import show_evaluation
    from pac_wrap.report.words.groups import show_groups
    from pac_wrap.report.words.kinds import show_measured
    from pac_wrap.tables.calibrate import TableGroups, TableSource, are_calibration
    from pac_wrap.tables.decide import evaluate_groups_table, evaluate_kinds_table, evaluate_table
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.table import open_table

    loaded = any_of(certificate)
    separator = check_delimiter(delimiter)
    if not isinstance(loaded, (KindCertificate, GroupCertificate)):
        loaded = Certificate.load(certificate)
    wanted = columns_of(loaded, score, kind, group)
    with (
        progress_bar("evaluating") as progress,
        open_table(
            tables,
            wanted,
            label,
            passes=True,
            delimiter=separator,
            leave_out=leave_out or (),
            progress=progress,
        ) as table,
    ):
        if isinstance(loaded, KindCertificate):
            source = TableSource(table, score, label, anomaly_label, kind=wanted[1])
            measured = evaluate_kinds_table(source, loaded)
            if form == "json":
                typer.echo(as_json(by_kind(measured)), nl=False)
            else:
                Console().print(show_measured(measured))
            if any(one.exceeded for one in measured):
                raise typer.Exit(FAILED)
            return
        if isinstance(loaded, GroupCertificate):
            groups = TableGroups(table, (score, label, wanted[1]), anomaly_label)
            found = evaluate_groups_table(groups, loaded)
            if form == "json":
                typer.echo(as_json(by_group(loaded, found)), nl=False)
            else:
                Console().print(show_groups(loaded, found))
            if found.exceeded:
                raise typer.Exit(FAILED)
            return
        source = TableSource(table, score, label, anomaly_label, on_missing="abstain")
        metrics = evaluate_table(source, loaded)
        again = TableSource(table, score, label, anomaly_label, score_type=loaded.score_type)
        same = are_calibration(again, loaded, metrics.sizes)
    if not quiet:
        say(str(metrics.verdicts))
    if form == "json":
        typer.echo(as_json(evaluation(loaded, metrics, same)), nl=False)
    else:
        Console().print(show_evaluation(loaded, metrics, same))
    if any(side.exceeded for side in error_rates(loaded, metrics)):
        raise typer.Exit(FAILED)


def verify(
    certificate: CertificateFile,
    tables: Tables,
    score: Score,
    label: Label,
    anomaly_label: AnomalyLabel = None,
    leave_out: LeaveOut = None,
    kind: Kind = None,
    group: Group = None,
    weight: Weight = None,
    time: Time = None,
    series: Series = None,
    hold_out: HoldOut = None,
    seed: Seed = None,
    delimiter: Delimiter = None,
    form: Form = "text",
) -> None:
    """Recompute a certificate or a curve from the scores it was made from; exit code 1 if it differs.

    Detects a wrong file, a missing row or a changed score: accidents, not forgery.

    Not shown: that the detector gave these scores, that the labels are right, that nobody chose the rows.

    One made with --time needs the same options again, but for --every, which it knows.

    One made with --weight needs that, and the rows in the same order; it knows the bound and the seed.

    Example: [bold]pac-wrap verify certificate.json scores.csv --score score --label label[/bold]
    """
    from pac_wrap.report.records import as_json
    from pac_wrap.report.records import verification as record

    loaded = any_of(certificate)
    check_in_time(time, series, None, hold_out, seed, kind=kind or group)
    _check_weight(loaded, weight, time)
    if time is not None:
        columns, drawn = (score, label, time, series), (hold_out, seed)
        reading = anomaly_label, leave_out, delimiter
        verification = verify_in_time(loaded, tables, columns, reading, *drawn)
    else:
        wanted = columns_of(loaded, score, kind, group)
        done = False
        try:
            verification = _verified(
                loaded, tables, wanted, label, weight, (anomaly_label, leave_out, delimiter)
            )
            done = bool(verification)
        finally:
            if not done and getattr(loaded, "sampling", None) is not None:
                say("note: the certificate is of a time series; if it was made with --time, give that again")
    if form == "json":
        typer.echo(as_json(record(verification)), nl=False)
    else:
        typer.echo(str(verification))
    if not verification:
        raise typer.Exit(FAILED)


def _verified(
    loaded: "Certificate | KindCertificate | GroupCertificate | Curve",
    tables: list[str],
    wanted: list[str],
    label: str,
    weight: str | None,
    reading: Reading,
) -> "Verification":
    """Make a certificate again from all rows of some tables, and compare."""
    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.certificates.verify import verify_against, verify_kinds_against
    from pac_wrap.method.certify import certify, certify_groups, certify_kinds
    from pac_wrap.method.curves.certify import CurveRequest, verify_curve_against
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.groups.verify import request_of, verify_groups_against
    from pac_wrap.method.kinds.calibrate import KindRequest
    from pac_wrap.method.kinds.certificate import KindCertificate
    from pac_wrap.tables.calibrate import TableGroups, TableSource
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.table import open_table

    anomaly_label, leave_out, delimiter = reading
    options: Any = {"delimiter": check_delimiter(delimiter), "leave_out": leave_out or ()}
    mark = 1 if anomaly_label is None else anomaly_label
    score, passes = wanted[0], weight is None
    read_too = wanted if weight is None else [*wanted, weight]
    with (
        progress_bar("verifying", 4) as progress,
        open_table(tables, read_too, label, passes=passes, progress=progress, **options) as table,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", PACWrapWarning)
        read = partial(TableSource, table, score, label, anomaly_label, score_type=loaded.score_type)
        if isinstance(loaded, KindCertificate):
            again_by_kind = certify_kinds(read(kind=wanted[1]), partial(KindRequest.again, loaded))
            return verify_kinds_against(loaded, again_by_kind)
        if isinstance(loaded, GroupCertificate):
            columns = score, label, wanted[1]
            asked = request_of(loaded, mark)
            groups = TableGroups(table, columns, anomaly_label, loaded.score_type)
            made = certify_groups(groups, asked)
            return verify_groups_against(loaded, made)
        if isinstance(loaded, Curve):
            return verify_curve_against(loaded, certify(read(), CurveRequest.of_curve(loaded, mark)))
        drawn = None if loaded.weighting is None else loaded.weighting.draws
        request = Request(loaded.guarantee, loaded.overlap, mark)
        return verify_against(loaded, certify(read(weight=weight, draws=drawn), request))


def _check_weight(loaded: object, weight: str | None, time: str | None) -> None:
    """Refuse a column of weights for a certificate without any, and one with weights without their column."""
    weighting = getattr(loaded, "weighting", None)
    if weighting is None and weight is not None:
        raise InputError("the points of this certificate have no weights; leave --weight out")
    if weighting is not None and weighting.intervals:
        raise InputError(
            "the weights of this certificate are intervals, which no column holds; call verify in Python"
        )
    if weighting is not None and (weight is None or time is not None):
        raise InputError(
            "the points of this certificate were drawn by weights; name their column with --weight, without"
            " --time"
        )


def show(
    certificate: CertificateFile,
    form: Annotated[
        Literal["text", "markdown", "json"], typer.Option("--format", help="How to show it.")
    ] = "text",
) -> None:
    """Show what a certificate or a curve promises, if it is whole and does not contradict itself.

    Its checksum detects accidents, not forgery: anyone who can write the file can make it match.

    Example: [bold]pac-wrap show certificate.json --format markdown[/bold]
    """
    from pac_wrap.base.text import escape_markdown
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.kinds.certificate import KindCertificate
    from pac_wrap.method.kinds.classes import ClassCertificate
    from pac_wrap.report.words.certificate import lines_of, lines_of_curve
    from pac_wrap.report.words.groups import lines_of_groups
    from pac_wrap.report.words.kinds import lines_of_classes, lines_of_kinds

    loaded = shown_of(certificate)
    if form == "json":
        typer.echo(loaded.to_json(), nl=False)
    elif form == "markdown":
        curve = isinstance(loaded, Curve)
        if isinstance(loaded, GroupCertificate):
            lines = lines_of_groups(loaded)
        elif isinstance(loaded, KindCertificate):
            lines = lines_of_kinds(loaded)
        elif isinstance(loaded, ClassCertificate):
            lines = lines_of_classes(loaded)
        else:
            lines = lines_of_curve(loaded) if isinstance(loaded, Curve) else lines_of(loaded)
        rows = (f"| {name} | {escape_markdown(text)} |" for name, text in lines)
        typer.echo("\n".join([f"| {'curve' if curve else 'certificate'} | |", "|---|---|", *rows]))
    else:
        typer.echo(str(loaded))
