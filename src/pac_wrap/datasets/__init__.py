"""Data sets by name, one module each; nothing heavy is imported before one is loaded."""

from difflib import get_close_matches
from importlib import import_module

from pac_wrap.datasets.dataset import Dataset as Dataset
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.errors import InputError

__all__ = ["Dataset", "check_name", "load", "names"]


def load(name: str, part: str | None = None) -> Dataset:
    """Return a data set by its name, downloading its files if they are not on this machine.

    The data sets of many series, nasa and smd, are loaded one part at a time: `load("nasa", "S-1")`.

    >>> load("tyroid")
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: there is no data set 'tyroid'; did you mean 'thyroid'? the data sets are \
thyroid, campaign, celeba, census, usps, mnist, nasa, smd
    >>> load("nasa")
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: part must name one of the 81 channels of nasa, such as 'P-1', 'S-1' or \
'E-1', got None; pac_wrap.datasets.nasa.channels() lists them
    """
    check_name(name)
    _check_part(name, part)
    module = import_module(f"pac_wrap.datasets.{name}")
    loaded: Dataset = module.load() if part is None else module.load(part)
    return loaded


def names() -> tuple[str, ...]:
    """Return the names of the data sets.

    >>> names()
    ('thyroid', 'campaign', 'celeba', 'census', 'usps', 'mnist', 'nasa', 'smd')
    """
    return tuple(ENTRIES)


def check_name(name: str) -> None:
    """Refuse a name that no data set has, and list those there are."""
    if name not in names():
        near = get_close_matches(str(name).lower(), names(), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"there is no data set {name!r}; {hint}the data sets are {', '.join(names())}")


def _check_part(name: str, part: str | None) -> None:
    """Refuse a part of a data set that has none, and no part of one that has some."""
    parts = ENTRIES[name].parts
    if parts is None and part is not None:
        raise InputError(f"part must be None for {name}, which has no parts, got {part!r}; leave it out")
    if parts is not None and part is None:
        *others, last = map(repr, parts.examples)
        some = f"{', '.join(others)} or {last}"
        raise InputError(
            f"part must name one of the {parts.count} {parts.kind} of {name}, such as {some}, got None;"
            f" pac_wrap.datasets.{name}.{parts.kind}() lists them"
        )
