"""pac-wrap plan and demo: before there are labels, or enough of them."""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from pac_wrap.cli import options
from pac_wrap.cli.options import Reading, keep_apart
from pac_wrap.errors import InputError


def plan(
    max_fpr: Annotated[float | None, Option(help="Ceiling of the false positive rate.")] = None,
    max_fnr: Annotated[float | None, Option(help="Ceiling of the false negative rate.")] = None,
    delta: Annotated[float, Option(help="Chance that a ceiling does not hold.")] = 0.05,
    shift: options.ShiftOption = None,
    label_noise: options.LabelNoiseOption = None,
    labels: Annotated[
        int | None, Option(min=0, help="Show what this many labels of one class can certify.")
    ] = None,
    normal: Annotated[int | None, Option(min=0, help="How many normal labels there are.")] = None,
    anomalous: Annotated[int | None, Option(min=0, help="How many anomalous labels there are.")] = None,
    pilot: Annotated[
        list[str] | None,
        Option(help="Scores and labels of a pilot sample: say how many more are likely to be needed."),
    ] = None,
    score: Annotated[str | None, Option(help="The pilot's column of scores.")] = None,
    label: Annotated[str | None, Option(help="The pilot's column of labels: 0/1 or true/false.")] = None,
    anomaly_label: options.AnomalyLabel = None,
    leave_out: options.LeaveOut = None,
    delimiter: options.Delimiter = None,
    sequential: Annotated[
        bool, Option("--sequential", help="Plan for labels that are looked at as they come.")
    ] = False,
    every: Annotated[
        int | None, Option(help="With --sequential: labels of a class between two looks; by default 20.")
    ] = None,
    up_to: Annotated[
        int | None, Option(help="With --sequential: labels of a class at the last look; by default 2000.")
    ] = None,
    true_rate: Annotated[
        list[float] | None,
        Option(help="With --sequential: a true rate of errors to plan for; give it several times."),
    ] = None,
    form: options.Form = "text",
) -> None:
    """Say how many labels a promise needs, or what promise given labels can keep.

    Examples: [bold]pac-wrap plan --max-fnr 0.05 --delta 0.05[/bold],
    [bold]pac-wrap plan --normal 6860 --anomalous 140[/bold],
    [bold]pac-wrap plan --pilot scores.csv --score score --label label[/bold],
    [bold]pac-wrap plan --sequential --max-fpr 0.05 --true-rate 0.02[/bold]
    """
    from pac_wrap.base.arguments import check_rate
    from pac_wrap.method.planning.plan import pilot_of
    from pac_wrap.method.promise import Guarantee
    from pac_wrap.method.strategies.looks import Looks
    from pac_wrap.report.results import account_of_plan

    check_rate("delta", delta)
    given = [rate for rate in (max_fpr, max_fnr) if rate is not None]
    ceilings = (max_fpr, max_fnr) if given else (0.05, 0.05)
    asked = Guarantee(*ceilings, delta, delta, **options.rooms_of(shift, label_noise))
    if any(one is not None for one in (normal, anomalous, labels)) and any(asked.tolerates.values()):
        raise InputError(
            "--shift and --label-noise are for a ceiling and the labels it needs; leave out --labels,"
            " --normal and --anomalous"
        )
    if not sequential and (true_rate or every is not None or up_to is not None):
        raise InputError("--true-rate, --every and --up-to are for --sequential; give it as well")
    if not pilot and any(one is not None for one in (score, label, anomaly_label, leave_out, delimiter)):
        raise InputError(
            "--score, --label, --anomaly-label, --leave-out and --delimiter are for --pilot; give it as well"
        )
    found = None
    if pilot:
        if score is None or label is None:
            raise InputError("--pilot needs the columns of its scores and labels; give --score and --label")
        reading = Reading(pilot, score, label, anomaly_label, leave_out, delimiter)
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
    )
    options.tell(account, form)


def demo(
    seed: Annotated[int, Option(min=0, help="Fixes the data and the forest.")] = 0,
    margin: Annotated[
        float, Option(min=0.0, help="Distance between the two classes in standard deviations.")
    ] = 5.0,
    report: Annotated[
        Path | None, Option(help="Also write a report: .html, .md or .json, or a picture: .svg or .png.")
    ] = None,
) -> None:
    """Wrap an isolation forest on synthetic data and check the promise on fresh points.

    Examples: [bold]pac-wrap demo[/bold], or with overlapping classes [bold]pac-wrap demo --margin 3[/bold]
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
