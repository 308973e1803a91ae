"""Texts of a study: cells of its tables, emphasised words, the size and unit of what its figures say."""

import re
from collections.abc import Iterator
from math import isinf, isnan
from typing import Final

from pac_wrap.method.metrics import Rate
from pac_wrap.paper.studies.study import Cell, Interval, Spread, StudyTable

AXES_SHARE: Final = 0.775
"""The share of a figure's width that its axes take before the first layout."""

_MINUS: Final = "\N{MINUS SIGN}"
_EMPHASIS: Final = re.compile(r"(?<!\w)\*(\w(?:[^*\n]*\w)?)\*(?!\w)")
_PERCENT: Final = re.compile(r"\(%|\bin (?:%|percent\b)")


def cell_text(cell: Cell) -> str:
    """Return a cell on one line: three decimals, with the interval or the range behind the value.

    >>> cell_text(Rate(43, 1000, 0.0313, 0.0576)), cell_text(Spread(0.121, 0.11, 0.135))
    ('0.043 [0.031, 0.058]', '0.121 (0.110 to 0.135)')
    >>> cell_text(0.0001), cell_text(100_000), cell_text(True), cell_text(None)
    ('<0.001', '100,000', 'yes', '–')
    """
    return " ".join(cell_lines(cell))


def cell_lines(cell: Cell) -> tuple[str, ...]:
    """Return a cell in the lines it may be broken into, none of which should be.

    >>> cell_lines(Rate(43, 1000, 0.0313, 0.0576))
    ('0.043', '[0.031, 0.058]')
    """
    match cell:
        case str():
            return (cell,)
        case None:
            return ("\N{EN DASH}",)
        case bool():
            return ("yes" if cell else "no",)
        case int():
            return (f"{cell:,}".replace("-", _MINUS),)
        case float():
            return (_number(cell),)
        case Rate(n=0):
            return ("no points",)
        case Rate(low=low, high=high):
            return (_number(cell.value), _between(low, high))
        case Spread(mean, low, high):
            return (_number(mean),) if low == high else (_number(mean), f"({_bound(low)} to {_bound(high)})")
        case Interval(low, high):
            return (_between(low, high),)


def numeric_columns(table: StudyTable) -> dict[str, bool]:
    """Return for each column of a table, in order, whether it holds numbers, which are set flush right.

    >>> numeric_columns(StudyTable("t", "A table", ({"detector": "LOF", "n": 3, "rate": None},)))
    {'detector': False, 'n': True, 'rate': True}
    """
    heads = table.rows[0] if table.rows else {}
    return {head: not any(isinstance(row[head], str | bool) for row in table.rows) for head in heads}


def _number(value: float) -> str:
    """Return three decimals; it is 0 or 1 only where it is exactly that."""
    if isnan(value):
        return "\N{EN DASH}"
    if 0.0 < abs(value) < 0.0005:
        return "<0.001" if value > 0.0 else f">{_MINUS}0.001"
    if 0.9995 <= value < 1.0:
        return ">0.999"
    return _bound(value)


def _between(low: float, high: float) -> str:
    return f"[{_bound(low)}, {_bound(high)}]"


def _bound(value: float) -> str:
    if isinf(value):
        return "\N{INFINITY}" if value > 0.0 else f"{_MINUS}\N{INFINITY}"
    return f"{value + 0.0:z,.3f}".replace("-", _MINUS)


def emphasised(paragraph: str) -> Iterator[tuple[str, bool]]:
    """Yield a paragraph in pieces, each with whether it stands between stars and is emphasised.

    >>> list(emphasised("With *th* it is 2 * 3."))
    [('With ', False), ('th', True), (' it is 2 * 3.', False)]
    """
    for place, piece in enumerate(_EMPHASIS.split(paragraph)):
        if piece:
            yield piece, place % 2 == 1


def percent_factor(label: str) -> float:
    """Return what shares are multiplied by: 100 where their label says "(%" or "in percent", else 1.

    >>> percent_factor("violations (%)"), percent_factor("ambiguity in percent")
    (100.0, 100.0)
    >>> percent_factor("rate, with 95 % intervals")
    1.0
    """
    return 100.0 if _PERCENT.search(label) else 1.0


def text_size(width: float) -> float:
    """Return the size in points of the text on a figure so many inches wide.

    >>> text_size(6.5), text_size(3.2)
    (9.0, 7.5)
    """
    from pac_wrap.report.figures.styling import new_axes, prepare  # matplotlib: only figures need it

    return prepare(new_axes(width), dark=False)[1].size
