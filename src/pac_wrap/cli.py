"""The command line: parse, call, render; nothing else. Heavy imports wait until a command needs them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from pac_wrap.errors import PACWrapError
from pac_wrap.version import __version__

app = typer.Typer(
    help="Certified false positive and false negative rates around any anomaly detector.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command line; an error of ours becomes one sentence and exit code 2."""
    try:
        app()
    except PACWrapError as error:
        sys.stderr.write(f"pac-wrap: {error}\n")
        sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pac-wrap {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Fixes the data and the forest.")] = 0,
    margin: Annotated[
        float, typer.Option(min=0.0, help="Distance of the two classes in standard deviations.")
    ] = 5.0,
    svg: Annotated[Path | None, typer.Option(help="Also save the screen as a picture.")] = None,
) -> None:
    """Wrap an isolation forest on synthetic data and check the promise on fresh points.

    Examples: [bold]pac-wrap demo[/bold], or with overlapping classes [bold]pac-wrap demo --margin 3[/bold]
    """
    from rich.console import Console

    from pac_wrap.demo import run_demo
    from pac_wrap.files import write_whole
    from pac_wrap.report.terminal import picture, show_demo

    with Console(stderr=True).status("starting") as status:
        result = run_demo(seed, margin, progress=status.update)
    shown = show_demo(result)
    Console().print(shown)
    if svg is not None:
        write_whole(svg, picture(shown, "pac-wrap demo"))


@app.command()
def plan(
    max_fpr: Annotated[float | None, typer.Option(help="Ceiling of the false positive rate.")] = None,
    max_fnr: Annotated[float | None, typer.Option(help="Ceiling of the false negative rate.")] = None,
    delta: Annotated[float, typer.Option(help="Chance that a ceiling does not hold.")] = 0.05,
    labels: Annotated[
        int | None, typer.Option(min=0, help="Instead: what this many labels of one class can promise.")
    ] = None,
) -> None:
    """Say how many labels a promise needs, or what promise given labels can keep.

    Examples: [bold]pac-wrap plan --max-fnr 0.05 --delta 0.05[/bold], [bold]pac-wrap plan --labels 200[/bold]
    """
    from rich.console import Console

    from pac_wrap.guarantee import Guarantee
    from pac_wrap.report.terminal import show_plan, show_promises

    nothing_asked = max_fpr is None and max_fnr is None
    if labels is not None:
        Console().print(show_promises(labels, delta))
    if not nothing_asked:
        Console().print(show_plan(Guarantee(max_fpr, max_fnr, delta, delta)))
    elif labels is None:
        Console().print(show_plan(Guarantee(delta_fpr=delta, delta_fnr=delta)))
