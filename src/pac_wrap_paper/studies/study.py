"""The answer to a question of the paper: tables of rows, findings in words, and charts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from pac_wrap.tails import Rate
from pac_wrap_paper.studies.charts import Chart, Interval

Floats = NDArray[np.float64]
Labels = NDArray[np.int8]
Indices = NDArray[np.intp]
Progress = Callable[[float, str], None]
"""Takes the share done, 0 to 1, and what is being done."""


def silent(share: float, text: str) -> None:
    """Ignore progress."""


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

    @classmethod
    def if_any(cls, values: Sequence[float]) -> "Spread | None":
        """Return the spread of some values, or None where there are none."""
        return cls.over(values) if values else None


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
class Study:
    """The answer to one question: setting, tables, findings and charts.

    `setting` and `findings` are paragraphs; numbers in them come from the rows.
    """

    question: str
    title: str
    setting: tuple[str, ...]
    tables: tuple[StudyTable, ...]
    findings: tuple[str, ...]
    charts: tuple[Chart, ...]
