"""Data sets by name; nothing heavy is imported before one is loaded."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from pac_wrap import InputError
from pac_wrap_paper.data.dataset import Dataset as Dataset
from pac_wrap_paper.data.registry import ENTRIES, TABLES

__all__ = ["Dataset", "check_name", "files", "load", "names", "series_names"]


def load(name: str, part: str | None = None) -> Dataset:
    """Return a data set by its name, downloading its files if they are not on this machine.

    The data sets of many parts are loaded one part at a time, a series of nasa or smd, or a table of adbench:
    `load("nasa", "S-1")`.
    """
    check_name(name)
    _check_part(name, part)
    from pac_wrap_paper.data import series, tabular

    readers: dict[str, Callable[[], Dataset]] = {
        "nasa": lambda: series.load_nasa(str(part)),
        "smd": lambda: series.load_smd(str(part)),
        "adbench": lambda: tabular.load_adbench(str(part)),
        "census": tabular.load_census,
        "usps": lambda: tabular.load_digit_rows("usps"),
        "mnist": lambda: tabular.load_digit_rows("mnist"),
    }
    return readers[name]() if name in readers else tabular.load_table(name)


def files(name: str) -> tuple[Path, ...]:
    """Return the files of a data set as they were published, downloading those that are not on this machine.

    `load` gives numbers. The files have what it had to leave behind, such as the texts of the census.
    """
    check_name(name)
    from pac_wrap_paper.data.store import fetch

    return tuple(fetch(file) for file in ENTRIES[name].files)


def names() -> tuple[str, ...]:
    """Return the names of the data sets.

    >>> names()
    ('thyroid', 'campaign', 'celeba', 'census', 'usps', 'mnist', 'nasa', 'smd', 'adbench')
    """
    return tuple(ENTRIES)


def series_names(name: str) -> tuple[str, ...]:
    """Return the names of the parts that a data set consists of, each of which `load` takes; else nothing.

    >>> series_names("thyroid"), series_names("adbench")[:2]
    ((), ('ALOI', 'annthyroid'))
    """
    check_name(name)
    if ENTRIES[name].series is None:
        return ()
    if name == "adbench":
        return tuple(TABLES)
    from pac_wrap_paper.data import series

    return series.nasa_channels() if name == "nasa" else series.smd_machines()


def check_name(name: str) -> None:
    """Refuse a name that no data set has, and list those there are."""
    if name not in names():
        near = get_close_matches(str(name).lower(), names(), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"there is no data set {name!r}; {hint}the data sets are {', '.join(names())}")


def _check_part(name: str, part: str | None) -> None:
    """Refuse a part of a data set that has no series, and a missing one where it has."""
    series = ENTRIES[name].series
    if series is None and part is not None:
        raise InputError(f"part must be None for {name}, which has no parts, got {part!r}; leave it out")
    if series is not None and part is None:
        *others, last = map(repr, series.examples)
        some = f"{', '.join(others)} or {last}"
        raise InputError(
            f"part must name one of the {series.count} {series.kind} of {name}, such as {some}, got None;"
            f" pac_wrap_paper.data.series_names({name!r}) lists them"
        )
