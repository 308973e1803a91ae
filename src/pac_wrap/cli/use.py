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
    from pac_wrap.report.groups import account_of_measured_groups
    from pac_wrap.report.render import as_json, terminal
    from pac_wrap.report.results import account_of_evaluation, account_of_measured
    from pac_wrap.tables.calibrate import are_calibration
    from pac_wrap.tables.decide import evaluate_table
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.groups import evaluate_groups_table
    from pac_wrap.tables.kinds import evaluate_kinds_table
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
            account = account_of_measured(
                evaluate_kinds_table(table, loaded, (score, label, wanted[1]), anomaly_label)
            )
        elif isinstance(loaded, GroupCertificate):
            found = evaluate_groups_table(table, loaded, (score, label, wanted[1]), anomaly_label)
            account = account_of_measured_groups(loaded, found)
        else:
            metrics = evaluate_table(table, loaded, score=score, label=label, anomaly_label=anomaly_label)
            same = are_calibration(
                table, loaded, metrics.sizes, score=score, label=label, anomaly_label=anomaly_label
            )
            account = account_of_evaluation(loaded, metrics, same)
            if not quiet:
                say(str(metrics.verdicts))
    if form == "json":
        typer.echo(as_json(account), nl=False)
    else:
        Console().print(terminal(account))
    if account.status.exit_code:
        raise typer.Exit(account.status.exit_code)


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
    from pac_wrap.report.account import account_of
    from pac_wrap.report.render import as_json

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
        typer.echo(as_json(account_of(verification)), nl=False)
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
    from pac_wrap.method.curves.certify import CurveRequest, verify_curve_against
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.groups.certificate import GroupCertificate
    from pac_wrap.method.groups.verify import request_of, verify_groups_against
    from pac_wrap.method.kinds.certificate import KindCertificate
    from pac_wrap.method.weighted import WeightedRequest
    from pac_wrap.tables.calibrate import calibrate_scores, calibrate_table, labelled_of
    from pac_wrap.tables.files.text_format import check_delimiter
    from pac_wrap.tables.groups import calibrate_groups_table
    from pac_wrap.tables.kinds import recalibrate_kinds_table
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
        read = partial(calibrate_table, table, score=score, label=label, score_type=loaded.score_type)
        if isinstance(loaded, KindCertificate):
            again_by_kind = recalibrate_kinds_table(table, loaded, (score, label, wanted[1]), anomaly_label)
            return verify_kinds_against(loaded, again_by_kind)
        if isinstance(loaded, GroupCertificate):
            columns = score, label, wanted[1]
            asked = request_of(loaded, mark)
            made = calibrate_groups_table(table, asked, columns, anomaly_label, loaded.score_type)
            return verify_groups_against(loaded, made)
        if isinstance(loaded, Curve):
            return verify_curve_against(loaded, read(CurveRequest.of_curve(loaded, mark)))
        plain, drawn = Request(loaded.guarantee, loaded.overlap, mark), loaded.weighting
        request = plain if drawn is None else WeightedRequest(plain, drawn.draws)
        labelled = labelled_of(table, request, (score, label), weight, loaded.score_type)
        return verify_against(loaded, calibrate_scores(labelled, request))


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
    from pac_wrap.report.account import account_of
    from pac_wrap.report.render import markdown

    loaded = shown_of(certificate)
    if form == "json":
        typer.echo(loaded.to_json(), nl=False)
    elif form == "markdown":
        typer.echo(markdown(account_of(loaded, brief=True)), nl=False)
    else:
        typer.echo(str(loaded))
