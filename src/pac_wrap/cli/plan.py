"""pac-wrap plan and demo: commands for a start without enough labels."""

from pathlib import Path
from typing import Annotated, Any

from pac_wrap.cli import options
from pac_wrap.cli.options import Promised, Reading, keep_apart, option
from pac_wrap.errors import InputError


def plan(
    promised: Annotated[
        Promised,
        "max_alarms max_false_alarms min_precision review_rate mistaken max_anomalies audits"
        " shift label_noise",
    ],
    max_fpr: float | None = option("Ceiling of the false positive rate."),
    max_fnr: float | None = option("Ceiling of the false negative rate."),
    delta: float = option("Chance that a ceiling does not hold.", default=0.05),
    traffic: int | None = option("Number of points of traffic at hand.", min=0),
    guess_alarms: float | None = option(
        "Of traffic: the share of points that should raise an alarm, a guess."
    ),
    guess_precision: float | None = option(
        "Of traffic: the share of alarms that review finds right, a guess."
    ),
    guess_prevalence: float | None = option("Of traffic: the share of anomalous points, a guess."),
    unit_points: int | None = option(
        "Count units, such as machines or patients, with this many points of a class each.", min=2
    ),
    guess_errors: float | None = option("Of units: the share of errors at the threshold, a guess."),
    guess_correlation: float | None = option(
        "Of units: the intraclass correlation of their errors, a guess."
    ),
    labels: int | None = option("Show the ceilings that this many labels of one class can certify.", min=0),
    normal: int | None = option("Number of normal labels at hand.", min=0),
    anomalous: int | None = option("Number of anomalous labels at hand.", min=0),
    pilot: list[str] | None = option(
        "Table of a pilot sample with labels, to estimate how many more labels are needed."
    ),
    score: str | None = option("With --pilot: the column of scores."),
    label: str | None = option("With --pilot: the column of labels."),
    anomaly_label: options.AnomalyLabel = None,
    leave_out: options.LeaveOut = None,
    delimiter: options.Delimiter = None,
    sequential: bool = option(
        "Plan for repeated looks at labels as they come.", "--sequential", default=False
    ),
    every: int | None = option("With --sequential: labels of a class between two looks; by default 20."),
    up_to: int | None = option("With --sequential: labels of a class at the last look; by default 2000."),
    true_rate: list[float] | None = option(
        "With --sequential: a true error rate to plan for; may be repeated."
    ),
    form: options.Form = "text",
) -> None:
    """Show how many labels a promise needs, or which promises your labels can keep.

    Example:
    [bold]pac-wrap plan --max-fnr 0.05 --delta 0.05[/bold]

    With labels at hand:
    [bold]pac-wrap plan --normal 6860 --anomalous 140[/bold]

    For traffic and reviewed alarms, with --unit-points for machines, patients or days:
    [bold]pac-wrap plan --max-false-alarms 20/50000 --guess-precision 0.8[/bold]
    """
    from pac_wrap.base.arguments import check_rate
    from pac_wrap.method.planning.plan import pilot_of
    from pac_wrap.method.promise import Guarantee
    from pac_wrap.method.strategies.looks import Looks
    from pac_wrap.report.results import account_of_plan

    check_rate("delta", delta)
    given = [rate for rate in (max_fpr, max_fnr) if rate is not None]
    others = promised.of_traffic
    fpr, fnr = (max_fpr, max_fnr) if given or others else (0.05, 0.05)
    others |= options.rooms_of(promised.shift, promised.label_noise)
    asked = Guarantee(fpr, fnr, delta, delta, **others)
    of_traffic = {"traffic": traffic, "guess_alarms": guess_alarms, "guess_precision": guess_precision}
    of_traffic |= {"guess_prevalence": guess_prevalence}
    if not asked.of_traffic and any(one is not None for one in of_traffic.values()):
        raise InputError(
            "--traffic and --guess-... need a promise about traffic; add one, such as --max-false-alarms"
        )
    of_units = {"unit_points": unit_points, "guess_errors": guess_errors}
    of_units |= {"guess_correlation": guess_correlation}
    if unit_points is None and (guess_errors is not None or guess_correlation is not None):
        raise InputError("--guess-errors and --guess-correlation need --unit-points; add it")
    if unit_points is not None and (pilot or sequential or labels is not None):
        raise InputError(
            "--labels, --pilot and --sequential count labels, and --unit-points counts units; give the"
            " numbers of units with --normal and --anomalous instead"
        )
    if asked.of_traffic and (pilot or sequential or {normal, anomalous, labels} != {None}):
        raise InputError(
            "--labels, --normal, --anomalous, --pilot and --sequential are for labelled classes; for traffic"
            " give --traffic and --guess-alarms instead"
        )
    if {normal, anomalous, labels} != {None} and any(asked.tolerates.values()):
        raise InputError(
            "--shift and --label-noise work only when planning for ceilings; remove --labels, --normal and"
            " --anomalous"
        )
    if not sequential and (true_rate or every is not None or up_to is not None):
        raise InputError("--true-rate, --every and --up-to need --sequential; add it")
    if not pilot and any(one is not None for one in (score, label, anomaly_label, leave_out, delimiter)):
        raise InputError(
            "--score, --label, --anomaly-label, --leave-out and --delimiter need --pilot; add it"
        )
    found = None
    if pilot:
        if score is None or label is None:
            raise InputError("--pilot needs the columns of its scores and labels; add --score and --label")
        columns: Any = {"score": score, "label": label, "anomaly_label": anomaly_label}
        reading = Reading(tables=pilot, **columns, leave_out=leave_out, delimiter=delimiter)
        with reading.opened("reading", in_order=True) as table:
            scores, marks = table.labelled(score, label, anomaly_label)
        found = pilot_of(scores[~marks], scores[marks], asked)
    account = account_of_plan(
        asked,
        delta,
        ceilings=given,
        labels=labels,
        sizes=(normal, anomalous),
        pilot=found,
        looks=Looks(20 if every is None else every, 2000 if up_to is None else up_to) if sequential else None,
        rates=true_rate or None,
        **of_traffic,
        **of_units,
    )
    options.tell(account, form)


def demo(
    seed: int = option("Fixes the random data and the isolation forest.", default=0, min=0),
    margin: float = option(
        "Distance of the classes in standard deviations; at 3 they overlap.", default=5.0, min=0.0
    ),
    report: Path | None = option("Also write a report: .html, .md, .json, .svg or .png."),
) -> None:
    """See PAC-Wrap at work: wrap an isolation forest on synthetic data and check it on fresh points.

    Example: [bold]pac-wrap demo[/bold]
    """
    from rich.console import Console

    from pac_wrap.cli.demo import run_demo, show_demo
    from pac_wrap.report.render import check_ending, write

    keep_apart([], report)
    if report is not None:
        check_ending(report)
    with Console(stderr=True).status("starting") as status:
        result = run_demo(seed, margin, progress=status.update)
    if report is not None:
        calibrated = result.calibration_normal, result.calibration_anomalous
        measured: Any = {"metrics": result.abstaining_metrics, "detector": "isolation forest"}
        write(result.abstaining, report, *calibrated, **measured)
    Console().print(show_demo(result))
