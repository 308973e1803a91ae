"""pac-wrap reproduce: the questions of the paper, answered again."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final

import typer

from pac_wrap.base.foreign import visible
from pac_wrap.cli.run import progress_bar
from pac_wrap.errors import InputError

ALL: Final = "all"
SERIES: Final = {"nasa", "smd"}  # their detectors need torch


def reproduce(
    questions: Annotated[list[str], typer.Argument(help="q1, q2, q3, q4, shift, nasa, smd, or all.")],
    trials: Annotated[
        int | None,
        typer.Option(
            help="Simulated calibrations; splits in q2; seeds in nasa and smd. By default 4000, 5, 3."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Fixes everything that is random.")] = 0,
    quick: Annotated[bool, typer.Option(help="Use less data, for a first look.")] = False,
    every_channel: Annotated[
        bool, typer.Option("--all", help="For nasa: every channel with enough labelled anomalies.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Also write tables (CSV), pages (Markdown) and figures (SVG) here.")
    ] = None,
) -> None:
    """Answer questions of the paper on its data, beside the printed numbers.

    Data sets that are not on this machine are downloaded: see pac-wrap data.

    Examples: [bold]pac-wrap reproduce q4[/bold], [bold]pac-wrap reproduce shift --quick --out results[/bold]
    """
    from rich.console import Console

    from pac_wrap.base.files import check_folder
    from pac_wrap.paper.rendering import show_study, write_study
    from pac_wrap.paper.studies import QUESTIONS, check_numbers, check_question, fetch_data, record
    from pac_wrap.paper.studies import reproduce as answer

    names = tuple(QUESTIONS) if ALL in questions else tuple(dict.fromkeys(questions))
    for name in questions:
        if name != ALL:
            check_question(name)
    check_numbers(seed, trials)
    if every_channel and "nasa" not in names:
        raise InputError("--all applies only to nasa; write: pac-wrap reproduce nasa --all")
    # what would fail at the end fails here, before an hour's work
    if out is not None:
        import_module("pac_wrap.report.figures")
        check_folder(out)
    if SERIES & set(names):
        import_module("pac_wrap.paper.detectors.lstm_network").import_torch()
    for name in names:
        fetch_data(name)
    for name in names:
        with progress_bar(name) as bar:
            study = answer(
                name,
                seed=seed,
                trials=trials,
                quick=quick,
                progress=partial(_show, bar, name),
                **({"everything": True} if every_channel and name == "nasa" else {}),
            )
        Console().print(show_study(study))
        if out is not None:
            written = write_study(study, out, record(name, seed=seed, trials=trials, quick=quick))
            typer.echo(f"{len(written)} files of {name} are in {visible(out)}")


def _show(bar: Callable[[float, str], None], name: str, share: float, text: str) -> None:
    bar(100.0 * share, f"{name}: {text}")
