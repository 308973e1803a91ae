"""Charts as plain data: intervals, lines, heat maps, boxes and panels; `figures` draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from pac_wrap import Certificate
from pac_wrap.tails import Rate

Kind = Literal["normal", "anomalous"]
KINDS: Final[tuple[Kind, Kind]] = ("normal", "anomalous")


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval that somebody else printed."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of an interval chart: our value with its interval, the exact value, and the printed one."""

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
    kind: Kind
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, label: str, kind: Kind, rates: Sequence[Rate]) -> "ChartLine":
        """Return the line of some rates, with their intervals as its band."""
        low, value, high = (tuple(getattr(rate, end) for rate in rates) for end in ("low", "value", "high"))
        return cls(label, kind, value, low, high)


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
class ScoreChart:
    """Both classes' scores with the thresholds asked for and the single one that was reached."""

    name: str
    title: str
    certificate: Certificate
    relaxed: Certificate
    normal: NDArray[np.float64]
    anomalous: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Marks:
    """One mark in each row of a panel, NaN for none, with a range if `low` and `high` are given.

    `look` is the kind of mark: our rate, the other of our two rates, an exact value, a rate of other methods,
    or for groups one rule for all and a rule of their own. `filled` says of each row whether its mark is.
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


Chart = IntervalChart | HeatMap | LineChart | ScoreChart | PanelChart
