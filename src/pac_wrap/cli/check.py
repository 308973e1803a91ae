"""pac-wrap evaluate, verify, show and worth: commands that examine a certificate."""

import warnings
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pac_wrap.cli import options
from pac_wrap.cli.options import Labelled, Reading, check_division, division_of, load_any, option
from pac_wrap.cli.process import say
from pac_wrap.errors import InputError, PACWrapWarning

if TYPE_CHECKING:
    from pac_wrap.method.verify import Verification


def evaluate(
    certificate: options.CertificateFile,
    reading: Annotated[Labelled, "tables score label anomaly_label leave_out kind group unit delimiter"],
    form: options.Form = "text",
    quiet: options.Quiet = False,
) -> None:
    """Measure the error rates of a certificate on labelled points that did not calibrate it.

    Exit code 1 if a promised ceiling is significantly exceeded: one exact test of all ceilings at 5 %.
    This test is for one look; for repeated looks, such as every night, use pac-wrap monitor.

    Example:
    [bold]pac-wrap evaluate certificate.json test.csv --score s --label y[/bold]
    """
    from pac_wrap.method.metrics import measured_traffic
    from pac_wrap.report.groups import account_of_measured_groups
    from pac_wrap.report.results import account_of_evaluation, account_of_measured
    from pac_wrap.tables.calibrate import are_calibration
    from pac_wrap.tables.decide import evaluate_groups_table, evaluate_kinds_table, evaluate_table

    loaded = load_any(certificate, but=("classes", "curve"))
    kind, group = reading.kind, reading.group
    check_division(loaded, kind=kind, group=group)
    if (found := options.units_of(loaded, reading)) is not None:
        rates, same = (do(*found[0], units=found[1]) for do in (loaded.evaluate, loaded.verify))
        options.tell(account_of_measured(rates, calibrated=bool(same)), form)
        return
    if group is not None and options.is_of_traffic(loaded):
        raise InputError(
            "the promises of these groups are about shares of traffic; evaluate a certificate for each group"
        )
    with reading.opened("evaluating") as table:
        if kind is not None:
            account = account_of_measured(evaluate_kinds_table(reading.source(table), loaded))
        elif group is not None:
            account = account_of_measured_groups(loaded, evaluate_groups_table(reading.source(table), loaded))
        else:
            metrics = evaluate_table(reading.source(table, on_missing="abstain"), loaded)
            if loaded.traffic is not None:
                account = account_of_measured(measured_traffic(loaded.clauses, metrics), "rate")
            else:
                same = are_calibration(reading.source(table, loaded.score_type), loaded, metrics.sizes)
                account = account_of_evaluation(loaded, metrics, same)
            if not quiet:
                say(str(metrics.verdicts))
    options.tell(account, form)


def verify(
    certificate: options.CertificateFile,
    reading: Annotated[
        Reading,
        "tables score label review answers key audit anomaly_label leave_out kind group unit weight"
        " time series hold_out seed delimiter",
    ],
    form: options.Form = "text",
) -> None:
    """Recompute a certificate or a curve from its scores; the exit code is 1 if it differs.

    This detects accidents, such as a wrong file, a missing row or a changed score, but no forgery.
    It cannot tell whether the detector gave these scores, the labels are right, or somebody chose the rows.
    Repeat --time and its options as at calibration, except --every; the certificate records it.
    Repeat --weight with the rows in the same order; the certificate records the bound and the seed.

    Example:
    [bold]pac-wrap verify certificate.json scores.csv --score s --label y[/bold]
    """
    from pac_wrap.report.account import account_of

    loaded = load_any(certificate, but=("classes",))
    time, kind, group, hold_out = reading.time, reading.kind, reading.group, reading.hold_out
    options.check_traffic(options.is_of_traffic(loaded), reading)
    fnr = loaded.fnr.asked if getattr(loaded, "traffic", None) is not None else None
    if fnr is not None and not fnr.by_audits:
        raise InputError("labelled anomalies calibrated this certificate too; verify it in Python")
    if fnr is not None and reading.audit is None:
        raise InputError("this certificate was made with audits; name their column with --audit")
    if time is not None and (kind or group) is not None:
        raise InputError("--time does not work with --kind or --group; remove one of them")
    _check_weight(loaded, reading.weight, time)
    sampling = getattr(loaded, "sampling", None)
    if (in_units := options.units_of(loaded, reading)) is not None:
        found = loaded.verify(*in_units[0], units=in_units[1])
    elif time is not None:
        if division_of(loaded) is not None or sampling is None or sampling.length != 1:
            raise InputError("--time needs a certificate that was made with --time; remove it")
        if (hold_out is not None) != (sampling.split == "series"):
            raise InputError(
                "--hold-out needs a certificate that was made with --hold-out; remove it"
                if hold_out is not None
                else "some series were held out of the calibration; repeat its --hold-out and --seed"
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
                say("note: the certificate is of a time series; if it was made with --time, repeat --time")
    options.tell(account_of(found), form, str(found))


def _verified(loaded: Any, reading: Reading) -> "Verification":
    """Return how a certificate or a curve differs from a new one, made from all rows of the tables."""
    from pac_wrap.method.calibrate import Request
    from pac_wrap.method.curves.curve import Curve, CurveRequest
    from pac_wrap.method.kinds import KindRequest
    from pac_wrap.method.verify import compare, request_of

    if reading.kind is not None:
        request: Any = partial(KindRequest.again, loaded)
    elif reading.group is not None:
        request = request_of(loaded, reading.mark)
    elif isinstance(loaded, Curve):
        request = CurveRequest.of_curve(loaded, reading.mark)
    elif reading.label is None:
        request = loaded.guarantee
    else:
        request = Request(loaded.guarantee, loaded.overlap, reading.mark)
    weighting = getattr(loaded, "weighting", None)
    draws = None if weighting is None else weighting.draws
    with reading.opened("verifying", 4) as table, warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        source = reading.source(table, loaded.score_type, draws=draws)
        return compare(loaded, reading.certify(source, request))


def _check_weight(loaded: object, weight: str | None, time: str | None) -> None:
    """Check that --weight is given exactly if the certificate was made with a column of weights."""
    weighting = getattr(loaded, "weighting", None)
    if weighting is None and weight is not None:
        raise InputError("the certificate was made without weights; remove --weight")
    if weighting is not None and weighting.intervals:
        raise InputError(
            "the weights of this certificate are intervals, which no column can hold; verify it in Python"
        )
    if weighting is not None and (weight is None or time is not None):
        raise InputError(
            "the certificate was made with weights; name their column with --weight, without --time"
        )


def show(
    certificate: options.CertificateFile,
    form: Literal["text", "markdown", "json"] = option(
        "Show text, markdown or json.", "--format", default="text"
    ),
) -> None:
    """Show what a certificate or a curve promises, after checking that its file is whole and consistent.

    The checksum detects accidents, not forgery: anyone who can write the file can make it match.

    Example: [bold]pac-wrap show certificate.json --format markdown[/bold]
    """
    from pac_wrap.report.account import account_of
    from pac_wrap.report.render import markdown, short

    loaded = load_any(certificate)
    if form == "json":
        typer.echo(loaded.to_json(), nl=False)
    elif form == "markdown":
        typer.echo(markdown(account_of(loaded, brief=True)), nl=False)
    else:
        typer.echo(short(loaded, None))


def worth(
    certificate: options.CertificateFile,
    prevalence: str | None = option("Share of anomalies among future points: 0.01, or a range: 0.01-0.03."),
    per: int | None = option(
        "With --prevalence: the number of points to count the work for; by default 1000.", min=1
    ),
    unlabelled: list[str] | None = option("A table of new points without labels; may be repeated."),
    score: str | None = option("With --unlabelled: the column of its scores."),
    points: int | None = option(
        "How many points come next, to bound the errors among them.", "--next", min=1
    ),
    delta: float | None = option("Chance that a bound from counted points, or one for --next, fails."),
    delimiter: options.Delimiter = None,
    form: options.Form = "text",
) -> None:
    """Bound the precision of the alarms, the work they make, and the errors among the next points.

    With --prevalence, you state the share of anomalies; bounds on false alarms need no labelled anomaly.

    Example:
    [bold]pac-wrap worth certificate.json --prevalence 0.01[/bold]

    With --unlabelled, alarms among new points are counted; no prevalence and no labelled anomaly is needed:
    [bold]pac-wrap worth certificate.json --unlabelled new.csv --score s[/bold]

    With --next 500, numbers of errors among the next 500 points are bounded, not rates of the long run.
    """
    from pac_wrap.report.render import short
    from pac_wrap.report.results import account_of_worth
    from pac_wrap.tables.decide import count_table

    loaded = load_any(certificate, but=("classes", "curve"))
    if (by := division_of(loaded)) == "group" or (by and points is None):
        raise InputError(
            f"the certificate has a promise for each {by}, and precision and numbers depend on the mix of"
            f" {by}s; use a certificate made without --{by}"
        )
    if prevalence is None and not unlabelled and points is None:
        raise InputError("add --prevalence 0.01, --unlabelled new.parquet --score score, or --next 500")
    if prevalence is None and per is not None:
        raise InputError("--per needs --prevalence; add --prevalence, or remove --per")
    if not unlabelled and (score is not None or delimiter is not None):
        raise InputError("--score and --delimiter need --unlabelled; add --unlabelled, or remove them")
    found: dict[str, Any] = {}
    if points is not None:
        found["among_next"] = loaded.among_next(points, delta=0.05 if delta is None else delta)
    if prevalence is not None:
        share = options.shares_in(prevalence)
        found["workload"] = loaded.workload(share, 1000 if per is None else per, delta=delta)
        if loaded.fnr.certified is not None:
            found["precision"] = loaded.precision(share, delta=delta)
    if unlabelled:
        if score is None:
            raise InputError("--unlabelled needs the column of its scores; add --score")
        new = Reading(tables=unlabelled, score=score, delimiter=delimiter)
        with new.opened("reading", in_order=True) as table:
            counted = count_table(table, loaded, score)
        stated = 0.05 if delta is None else delta
        found["counted"] = counted
        found["unlabelled"] = loaded.precision_from_counts(counted, stated)
        found["prevalence"] = loaded.prevalence_from_counts(counted, stated)
    account = account_of_worth(**found)
    options.tell(account, form, short(account, None))
