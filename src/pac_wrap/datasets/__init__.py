"""Data sets by name, one module each; nothing heavy is imported before one is loaded."""

from difflib import get_close_matches
from importlib import import_module

from pac_wrap.datasets.dataset import Dataset as Dataset
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.errors import InputError

__all__ = ["Dataset", "check_name", "load", "names"]


def load(name: str) -> Dataset:
    """Return a data set by its name, downloading its files if they are not on this machine.

    >>> load("tyroid")
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: there is no data set 'tyroid'; did you mean 'thyroid'? the data sets are \
thyroid, campaign, celeba, census, usps, mnist
    """
    check_name(name)
    loaded: Dataset = import_module(f"pac_wrap.datasets.{name}").load()
    return loaded


def names() -> tuple[str, ...]:
    """Return the names of the data sets.

    >>> names()
    ('thyroid', 'campaign', 'celeba', 'census', 'usps', 'mnist')
    """
    return tuple(ENTRIES)


def check_name(name: str) -> None:
    """Refuse a name that no data set has, and list those there are."""
    if name not in names():
        near = get_close_matches(str(name).lower(), names(), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"there is no data set {name!r}; {hint}the data sets are {', '.join(names())}")
