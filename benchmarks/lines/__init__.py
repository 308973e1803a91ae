"""The lines of the benchmark, in the order of the page: each takes a scale and returns a result."""

from collections.abc import Callable
from importlib import import_module

from benchmarks.record import Result
from benchmarks.timing import Scale

NAMES = (
    "calibrate",
    "verdicts",
    "single",
    "estimator",
    "violation",
    "startup",
    "labels",
    "reviewed",
    "classes",
    "groups",
    "curve",
    "raising",
    "watch",
    "files",
    "decide",
    "spark",
    "dask",
    "by_group",
    "pipe",
)


def line(name: str) -> Callable[[Scale], Result]:
    """Return the function `measure` of a line."""
    measure: Callable[[Scale], Result] = import_module(f"benchmarks.lines.{name}").measure
    return measure
