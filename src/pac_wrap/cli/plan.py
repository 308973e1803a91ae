"""pac-wrap plan and pac-wrap demo: before there are labels."""

from pathlib import Path
from typing import Annotated

import typer

from pac_wrap.cli.options import keep_apart


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
    from pac_wrap.report.formats import check_suffix, write_report
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


def plan(
    max_fpr: Annotated[float | None, typer.Option(help="Ceiling of the false positive rate.")] = None,
    max_fnr: Annotated[float | None, typer.Option(help="Ceiling of the false negative rate.")] = None,
    delta: Annotated[float, typer.Option(help="Chance that a ceiling does not hold.")] = 0.05,
    labels: Annotated[
        int | None, typer.Option(min=0, help="Show what this many labels of one class can certify.")
    ] = None,
) -> None:
    """Say how many labels a promise needs, or what promise given labels can keep.

    Examples: [bold]pac-wrap plan --max-fnr 0.05 --delta 0.05[/bold], [bold]pac-wrap plan --labels 200[/bold]
    """
    from rich.console import Console

    from pac_wrap.method.promise import Guarantee
    from pac_wrap.report.terminal import show_plan, show_promises

    nothing_asked = max_fpr is None and max_fnr is None
    if labels is not None:
        Console().print(show_promises(labels, delta))
    if not nothing_asked:
        Console().print(show_plan(Guarantee(max_fpr, max_fnr, delta, delta)))
    elif labels is None:
        Console().print(show_plan(Guarantee(delta_fpr=delta, delta_fnr=delta)))
