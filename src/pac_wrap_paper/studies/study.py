"""What a question of the paper returns: tables of rows, findings in words, and charts as plain data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from pac_wrap import Certificate, Rate

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
Indices = NDArray[np.intp]
Progress = Callable[[float, str], None]
"""Takes the share done, 0 to 1, and what is being done."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over seeds with the smallest and the largest value.

    >>> Spread.over([0.1, 0.2, 0.6])
    Spread(mean=0.3, low=0.1, high=0.6)
    """

    mean: float
    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of some values."""
        return cls(round(sum(values) / len(values), 12), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval that somebody else printed."""

    low: float
    high: float


Cell = str | int | float | bool | None | Rate | Spread | Interval
Row = dict[str, Cell]


def is_above(rate: Rate, ceiling: float | None, level: float = 0.05) -> bool:
    """Return whether a measured rate is significantly above its ceiling: the exact binomial test, eq. (24).

    >>> [is_above(Rate(errors, 100, 0.0, 1.0), 0.05) for errors in (9, 10)]
    [False, True]
    """
    if ceiling is None or not rate.count:
        return False
    return bool(betainc(rate.count, rate.n - rate.count + 1, ceiling) <= level)


@dataclass(frozen=True, slots=True)
class StudyTable:
    """Rows with the same keys, which are the column heads; `name` goes into the name of its file.

    `detail` marks a table that is written to a file and not shown.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of an interval chart: ours with its interval, the exact value, and what was printed."""

    label: str
    low: float
    high: float
    value: float
    exact: float | None = None
    printed: Interval | None = None


@dataclass(frozen=True, slots=True)
class IntervalChart:
    """Rates with intervals, one line each, in groups, against a limit."""

    name: str
    title: str
    axis: str
    limit: float | None
    limit_label: str
    groups: tuple[tuple[str, tuple[Bar, ...]], ...]
    value_label: str = "ours, with its interval"
    exact_label: str = "exact value"


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Values over a grid, values[i][j] at y[i] and x[j]; `notes` is a second line of text in each cell."""

    name: str
    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    value_label: str
    notes: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line of a chart with its band; `kind` chooses the colour of a class."""

    label: str
    kind: Literal["normal", "anomalous"]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Rates against a quantity, with bands, against a limit."""

    name: str
    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    lines: tuple[ChartLine, ...]
    limit: float
    limit_label: str


@dataclass(frozen=True, slots=True)
class BoxChart:
    """Both classes' scores with the thresholds asked for and the single one that was reached."""

    name: str
    title: str
    certificate: Certificate
    relaxed: Certificate
    normal: Floats
    anomalous: Floats


@dataclass(frozen=True, slots=True)
class Marks:
    """One mark in each row of a panel, NaN for none, with a range if `low` and `high` are given.

    `look` says what it is: ours, or the other of our two rates, an exact value, what others do, or of groups
    one rule for all and a rule of their own. `filled` says of each row whether its mark is.
    """

    label: str
    look: Literal["ours", "second", "exact", "other", "another", "one", "own"]
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    filled: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """Marks against one axis, a limit where there is one, and notes at the end of rows."""

    axis: str
    marks: tuple[Marks, ...]
    limit: float | None = None
    limit_label: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PanelChart:
    """Panels side by side that share their rows; `filled_label` says what a filled mark means."""

    name: str
    title: str
    rows: tuple[str, ...]
    panels: tuple[Panel, ...]
    filled_label: str = ""


Chart = IntervalChart | HeatMap | LineChart | BoxChart | PanelChart


@dataclass(frozen=True, slots=True)
class Study:
    """The answer to one question: what was done, what came out, what it means.

    `setting` and `findings` are paragraphs; numbers in them come from the rows.
    """

    question: str
    title: str
    setting: tuple[str, ...]
    tables: tuple[StudyTable, ...]
    findings: tuple[str, ...]
    charts: tuple[Chart, ...]
