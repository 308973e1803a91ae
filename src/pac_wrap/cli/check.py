"""pac-wrap evaluate, verify, show and worth: whether a certificate holds, and what it promises."""

import warnings
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from pac_wrap.cli import options
from pac_wrap.cli.options import Reading, check_division, division_of, load_any
from pac_wrap.cli.process import say
from pac_wrap.errors import InputError, PACWrapWarning

if TYPE_CHECKING:
    from pac_wrap.method.verify import Verification


def evaluate(
    certificate: options.CertificateFile,
    tables: options.Tables,
    score: options.Score,
    label: options.Label,
    anomaly_label: options.AnomalyLabel = None,
    leave_out: options.LeaveOut = None,
    kind: options.Kind = None,
    group: options.Group = None,
    delimiter: options.Delimiter = None,
    form: options.Form = "text",
    quiet: options.Quiet = False,
) -> None:
    """Measure the error rates on labelled points that were not used to calibrate.

    Exit code 1 if a promised ceiling is significantly exceeded: one exact test of all ceilings at 5 %.

    That is for one look; a job that looks every night raises a false alarm sooner or later.

    Example: [bold]pac-wrap evaluate certificate.json test.csv --score score --label label[/bold]
    """
    from pac_wrap.report.groups import account_of_measured_groups
    from pac_wrap.report.results import account_of_evaluation, account_of_measured
    from pac_wrap.tables.calibrate import are_calibration
    from pac_wrap.tables.decide import evaluate_groups_table, evaluate_kinds_table, evaluate_table

    loaded = load_any(certificate, but=("classes", "curve"))
    reading = Reading(tables, score, label, anomaly_label, leave_out, delimiter, kind, group)
    check_division(loaded, kind=kind, group=group)
    with reading.opened("evaluating") as table:
        if kind is not None:
            account = account_of_measured(evaluate_kinds_table(reading.source(table), loaded))
        elif group is not None:
            account = account_of_measured_groups(loaded, evaluate_groups_table(reading.source(table), loaded))
        else:
            metrics = evaluate_table(reading.source(table, on_missing="abstain"), loaded)
            same = are_calibration(reading.source(table, loaded.score_type), loaded, metrics.sizes)
            account = account_of_evaluation(loaded, metrics, same)
            if not quiet:
                say(str(metrics.verdicts))
    options.tell(account, form)


def verify(
    certificate: options.CertificateFile,
    tables: options.Tables,
    score: options.Score,
    label: options.Label,
    anomaly_label: options.AnomalyLabel = None,
    leave_out: options.LeaveOut = None,
    kind: options.Kind = None,
    group: options.Group = None,
    weight: options.Weight = None,
    time: options.Time = None,
    series: options.Series = None,
    hold_out: options.HoldOut = None,
    seed: options.Seed = None,
    delimiter: options.Delimiter = None,
    form: options.Form = "text",
) -> None:
    """Recompute a certificate or a curve from the scores it was made from; exit code 1 if it differs.

    Detects a wrong file, a missing row or a changed score: accidents, not forgery.

    Not shown: that the detector gave these scores, that the labels are right, that nobody chose the rows.

    One made with --time needs the same options again, but for --every, which it knows.

    One made with --weight needs that, and the rows in the same order; it knows the bound and the seed.

    Example: [bold]pac-wrap verify certificate.json scores.csv --score score --label label[/bold]
    """
    from pac_wrap.report.account import account_of

    loaded = load_any(certificate, but=("classes",))
    columns = anomaly_label, leave_out, delimiter, kind, group, weight
    in_time: Any = {"time": time, "series": series, "hold_out": hold_out, "seed": seed}
    reading = Reading(tables, score, label, *columns, **in_time)
    if time is not None and (kind or group) is not None:
        raise InputError("--time goes with neither another --engine nor --kind; leave them out")
    _check_weight(loaded, weight, time)
    sampling = getattr(loaded, "sampling", None)
    if time is not None:
        if division_of(loaded) is not None or sampling is None or sampling.length != 1:
            raise InputError("--time is for certificates that were made with it; leave it out")
        if (hold_out is not None) != (sampling.split == "series"):
            raise InputError(
                "--hold-out is for certificates that were made with it; leave it out"
                if hold_out is not None
                else "some series were held out of the calibration; give --hold-out and --seed as they were"
                " then"
            )
        found = loaded.verify(*reading.steps(sampling.every)[2])
    else:
        check_division(loaded, kind=kind, group=group)
        done = False
        try:
            found = _verified(loaded, reading)
            done = bool(found)
        finally:
            if not done and sampling is not None:
                say("note: the certificate is of a time series; if it was made with --time, give that again")
    options.tell(account_of(found), form, str(found))


def _verified(loaded: Any, reading: Reading) -> "Verification":
    """Make a certificate or a curve again from all rows of some tables, and compare."""
    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.curves.curve import Curve, CurveRequest
    from pac_wrap.method.kinds import KindRequest
    from pac_wrap.method.verify import compare, request_of

    request: Any
    if reading.kind is not None:
        request = partial(KindRequest.again, loaded)
    elif reading.group is not None:
        request = request_of(loaded, reading.mark)
    elif isinstance(loaded, Curve):
        request = CurveRequest.of_curve(loaded, reading.mark)
    else:
        request = Request(loaded.guarantee, loaded.overlap, reading.mark)
    draws = getattr(getattr(loaded, "weighting", None), "draws", None)
    with reading.opened("verifying", 4) as table, warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        source = reading.source(table, loaded.score_type, draws=draws)
        return compare(loaded, reading.certify(source, request))


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
    certificate: options.CertificateFile,
    form: Annotated[Literal["text", "markdown", "json"], Option("--format", help="How to show it.")] = "text",
) -> None:
    """Show what a certificate or a curve promises, if it is whole and does not contradict itself.

    Its checksum detects accidents, not forgery: anyone who can write the file can make it match.

    Example: [bold]pac-wrap show certificate.json --format markdown[/bold]
    """
    from pac_wrap.report.account import account_of
    from pac_wrap.report.render import markdown

    loaded = load_any(certificate)
    if form == "json":
        typer.echo(loaded.to_json(), nl=False)
    elif form == "markdown":
        typer.echo(markdown(account_of(loaded, brief=True)), nl=False)
    else:
        typer.echo(str(loaded))


def worth(
    certificate: options.CertificateFile,
    prevalence: Annotated[
        str | None, Option(help="The share of anomalies among future points: 0.01, or a range, 0.01-0.03.")
    ] = None,
    per: Annotated[
        int | None,
        Option(min=1, help="With --prevalence: count the work for so many points; by default 1000."),
    ] = None,
    unlabelled: Annotated[
        list[str] | None, Option(help="A table of new points without labels; give it several times.")
    ] = None,
    score: Annotated[str | None, Option(help="With --unlabelled: the column of its scores.")] = None,
    delta: Annotated[float | None, Option(help="Chance that a share counted for this does not hold.")] = None,
    delimiter: options.Delimiter = None,
    form: options.Form = "text",
) -> None:
    """Say how many alarms are right, and how much work they make.

    With --prevalence: for a share of anomalies that you state; false alarms need no labelled anomaly.

    With --unlabelled: from new points whose labels nobody knows, without any labelled anomaly.

    That needs no prevalence, and bounds it too.

    Examples: [bold]pac-wrap worth certificate.json --prevalence 0.01[/bold],
    [bold]pac-wrap worth certificate.json --unlabelled new.csv --score score[/bold]
    """
    from pac_wrap.report.render import short
    from pac_wrap.report.results import account_of_worth
    from pac_wrap.tables.decide import count_table

    loaded = load_any(certificate, but=("classes", "curve"))
    if (by := division_of(loaded)) is not None:
        raise InputError(
            f"the certificate promises by {by}, and the worth of alarms depends on the mix of {by}s;"
            f" give one that was made without --{by}"
        )
    if prevalence is None and not unlabelled:
        raise InputError("say what is known: --prevalence 0.01, or --unlabelled new.parquet --score score")
    if prevalence is None and per is not None:
        raise InputError("--per counts the work at a prevalence; give --prevalence as well, or leave it out")
    if not unlabelled and (score is not None or delimiter is not None):
        raise InputError("--score and --delimiter are for --unlabelled; give it as well, or leave them out")
    found: dict[str, Any] = {}
    if prevalence is not None:
        share = options.shares_in(prevalence)
        found["workload"] = loaded.workload(share, 1000 if per is None else per, delta=delta)
        if loaded.fnr.certified is not None:
            found["precision"] = loaded.precision(share, delta=delta)
    if unlabelled:
        if score is None:
            raise InputError("--unlabelled needs the column of its scores; give --score")
        with Reading(unlabelled, score, delimiter=delimiter).opened("reading", in_order=True) as table:
            counted = count_table(table, loaded, score)
        stated = 0.05 if delta is None else delta
        found["counted"] = counted
        found["unlabelled"] = loaded.precision_from_counts(counted, stated)
        found["prevalence"] = loaded.prevalence_from_counts(counted, stated)
    account = account_of_worth(**found)
    options.tell(account, form, short(account))
