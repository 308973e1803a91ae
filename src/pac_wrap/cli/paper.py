"""pac-wrap reproduce and pac-wrap data: the experiments of the paper, and their data sets."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Argument

from pac_wrap.base.text import visible
from pac_wrap.cli.options import option
from pac_wrap.cli.process import progress_bar
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap_paper.data.registry import Entry

ALL: Final = "all"
SERIES: Final = {"nasa", "smd"}  # their detectors need torch
# no path is longer
_LONGEST_LINE: Final = 4200


def reproduce(
    questions: Annotated[
        list[str],
        Argument(
            help="Experiments: q1, q2, q3, q4, shift, nasa, smd, watch, groups, units, adbench, or all."
        ),
    ],
    trials: int | None = option(
        "Number of simulated calibrations (by default 4000), splits in q2 (5), seeds in nasa or smd (3),"
        " orders in watch (20), or divisions in groups (20) or adbench (50)."
    ),
    seed: int = option("Fixes everything random.", default=0, min=0),
    quick: bool = option("Use less data, for a first look.", default=False),
    every_channel: bool = option(
        "With nasa: use every channel that has enough labelled anomalies.", "--all", default=False
    ),
    out: Path | None = option("Folder for tables (CSV), pages (Markdown) and figures (SVG)."),
) -> None:
    """Repeat experiments of the paper on its data, and compare them with the printed numbers.

    Missing data sets are downloaded; see pac-wrap data.

    Example: [bold]pac-wrap reproduce q4[/bold]
    """
    from rich.console import Console

    from pac_wrap.base.files import check_folder
    from pac_wrap_paper.rendering import show_study, write_study
    from pac_wrap_paper.studies import QUESTIONS, check_numbers, check_question, fetch_data, record
    from pac_wrap_paper.studies import reproduce as answer

    names = tuple(QUESTIONS) if ALL in questions else tuple(dict.fromkeys(questions))
    for name in questions:
        if name != ALL:
            check_question(name)
    check_numbers(seed, trials)
    if every_channel and "nasa" not in names:
        raise InputError("--all works only with nasa; use pac-wrap reproduce nasa --all")
    # fail here, not after an hour of work
    if out is not None:
        import_module("pac_wrap.report.figures")
        check_folder(out)
    if SERIES & set(names):
        import_module("pac_wrap_paper.detectors.lstm").import_torch()
    if "adbench" in names:
        import_module("pac_wrap_paper.adbench.scoring").check_packages()
    for name in names:
        fetch_data(name)
    for name in names:
        how: Any = {"seed": seed, "trials": trials, "quick": quick}
        more = {"everything": True} if every_channel and name == "nasa" else {}
        with progress_bar(name) as bar:
            study = answer(name, **how, **more, progress=partial(_show, bar, name))
        Console().print(show_study(study))
        if out is not None:
            written = write_study(study, out, record(name, **how))
            typer.echo(f"{len(written)} files of {name} are in {visible(out)}")


def _show(bar: Callable[[float, str], None], name: str, share: float, text: str) -> None:
    bar(100.0 * share, f"{name}: {text}")


def show_list() -> None:
    """List the data sets with their size, licence and place on this machine.

    Example: [bold]pac-wrap data list[/bold]
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from pac_wrap_paper.data.registry import ENTRIES

    console = Console()
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("name", "rows x columns", "anomalies", "licence", "size", "where"):
        numbers = heading in ("rows x columns", "anomalies", "size")
        table.add_column(heading, justify="right" if numbers else "left", no_wrap=heading != "licence")
    for name, entry in ENTRIES.items():
        shape, size = f"{entry.rows:,} x {entry.columns:,}", f"{entry.size / 1e6:.1f} MB"
        table.add_row(name, shape, f"{entry.anomalies:,}", entry.licence, size, _place(entry))
    console.print(table)
    for name, entry in ENTRIES.items():
        if entry.series:
            console.print(f"{name}: {entry.series}", highlight=False)


def get(names: Annotated[list[str], Argument(help="Names from pac-wrap data list, or all.")]) -> None:
    """Download data sets, check every file by its hash, and print where the files are.

    Files that are already in the folder PAC_WRAP_DATA or in the cache are only checked.

    Example: [bold]pac-wrap data get thyroid usps[/bold]
    """
    from pac_wrap_paper.data import check_name
    from pac_wrap_paper.data import names as known
    from pac_wrap_paper.data.registry import ENTRIES
    from pac_wrap_paper.data.store import fetch

    wanted = known() if ALL in names else tuple(dict.fromkeys(names))
    for name in (name for name in names if name != ALL):
        check_name(name)
    for name in wanted:
        for file in ENTRIES[name].files:
            _say(fetch(file))


def where(
    name: Annotated[str | None, Argument(help="A data set; without it, only the folders are shown.")] = None,
) -> None:
    """Show where the files of a data set are, or which folders are searched for data.

    Example: [bold]pac-wrap data where thyroid[/bold]
    """
    from pac_wrap_paper.data import check_name
    from pac_wrap_paper.data.registry import ENTRIES
    from pac_wrap_paper.data.store import VARIABLE, cache_folder, data_folder, locate

    if name is None:
        folder, cache = data_folder(), cache_folder()  # without a home folder nothing is printed
        _say(f"folder: {folder or f'none; {VARIABLE} is not set'}")
        _say(f"cache: {cache}")
        return
    check_name(name)
    for file in ENTRIES[name].files:
        fetched = f"pac-wrap data get {name} fetches it"
        remedy = "put a copy into the folder PAC_WRAP_DATA" if file.original else fetched
        _say(locate(file) or f"{file.name} is not here; {remedy}")


def _say(line: object) -> None:
    typer.echo(visible(line, _LONGEST_LINE))


def _place(entry: "Entry") -> str:
    """Return where the files of a data set are: folder, cache, both, in part, or not here."""
    from pac_wrap_paper.data.store import in_data_folder, locate

    found = [locate(file) for file in entry.files]
    if None in found:
        return "not here" if found == [None] * len(found) else "in part"
    places = {"folder" if path is not None and in_data_folder(path) else "cache" for path in found}
    return " and ".join(sorted(places, reverse=True))
