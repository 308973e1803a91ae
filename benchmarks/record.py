"""The result of a line of the benchmark: plain records, with their aims."""

import json
import operator
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pac_wrap.base.files import whole_file

Role = Literal["ours", "limit", "peer"]
_SENSES: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}
_PACKAGES = (
    "pac-wrap-ad",
    "numpy",
    "scipy",
    "scikit-learn",
    "duckdb",
    "typer",
    "mapie",
    "crepes",
    "nonconformist",
    "dask",
    "pyspark",
)


class SkipError(Exception):
    """A line that cannot run here; the message says why."""


@dataclass(frozen=True)
class Aim:
    """The bound that a value has to keep; the sense is <=, >= or =."""

    sense: str
    bound: float

    def met(self, value: float) -> bool:
        """Return whether the value keeps the bound."""
        return _SENSES[self.sense](value, self.bound)


@dataclass(frozen=True)
class Timing:
    """Seconds of one method: the median of its runs, the fastest, the slowest, and of processor time.

    `ratio` is the median of the ratios to the reference's neighbouring runs, `fastest_ratio` that of the
    fastest runs, which a busy machine distorts less.
    """

    method: str
    role: Role
    median: float
    fastest: float
    slowest: float
    processor: float
    ratio: float
    fastest_ratio: float


@dataclass(frozen=True)
class Comparison:
    """Methods that did the same thing in turns; the aim is about how `judged` compares with the reference."""

    case: str
    size: int | None
    rounds: int
    timings: tuple[Timing, ...]
    judged: Role = "ours"
    aim: Aim | None = None

    def of(self, role: Role) -> Timing:
        """Return the timing of the first method in a role."""
        return next(timing for timing in self.timings if timing.role == role)

    @property
    def value(self) -> float:
        """The ratio that the aim is about."""
        return self.of(self.judged).ratio


@dataclass(frozen=True)
class Growth:
    """How the median time grows: the exponent of the size, by least squares over `sizes`."""

    case: str
    method: str
    exponent: float
    sizes: tuple[int, ...]
    aim: Aim | None = None

    @property
    def value(self) -> float:
        """What the aim is about."""
        return self.exponent


@dataclass(frozen=True)
class Measure:
    """A number other than a time: one cell of a table, by row and column; None where there is none."""

    row: str
    column: str
    value: float | None
    unit: str
    aim: Aim | None = None


@dataclass(frozen=True)
class Result:
    """The results of one line; `left_out` says which methods are missing and why."""

    name: str
    title: str
    about: str
    scale: str
    comparisons: tuple[Comparison, ...] = ()
    growths: tuple[Growth, ...] = ()
    measures: tuple[Measure, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def judged(self) -> tuple[Comparison | Growth | Measure, ...]:
        """The records that have an aim."""
        records: tuple[Comparison | Growth | Measure, ...]
        records = self.comparisons + self.growths + self.measures
        return tuple(one for one in records if one.aim is not None)


def is_met(record: Comparison | Growth | Measure) -> bool | None:
    """Return whether a record keeps its aim, or None if it has none."""
    if record.aim is None:
        return None
    return record.value is not None and record.aim.met(record.value)


def environment() -> dict[str, str]:
    """Return the versions, and the number of processors that may be used; nothing else about the machine."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found | {"system": sys.platform, "processors": str(len(os.sched_getaffinity(0)))}


def save(result: Result, folder: Path, load: float | None = None) -> None:
    """Write a result as JSON, whole or not at all; `load` is how busy the machine was before it ran."""
    record = asdict(result)
    for name in ("comparisons", "growths", "measures"):
        for entry, one in zip(record[name], getattr(result, name), strict=True):
            entry["met"] = is_met(one)
    made = environment() | ({} if load is None else {"load before": f"{load:.1f}"})
    text = json.dumps(record | {"environment": made}, indent=1) + "\n"
    with whole_file(folder / f"{result.name}.json") as target:
        target.write_text(text, encoding="utf-8", newline="\n")


def load(path: Path) -> tuple[Result, dict[str, str]]:
    """Return a saved result and the environment it was made in."""
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    made = record.pop("environment")
    kinds: dict[str, Callable[..., Any]] = {
        "comparisons": Comparison,
        "growths": Growth,
        "measures": Measure,
    }
    for name, kind in kinds.items():
        record[name] = tuple(_revived(kind, entry) for entry in record[name])
    record["left_out"] = tuple(record["left_out"])
    return Result(**record), made


def _revived(kind: Callable[..., Any], entry: dict[str, Any]) -> Any:
    del entry["met"]
    if entry["aim"] is not None:
        entry["aim"] = Aim(**entry["aim"])
    if "timings" in entry:
        entry["timings"] = tuple(Timing(**timing) for timing in entry["timings"])
    if "sizes" in entry:
        entry["sizes"] = tuple(entry["sizes"])
    return kind(**entry)
