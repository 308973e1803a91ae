"""What is written into the cells of a heat map, as far as there is room."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

from pac_wrap.experiments.study import HeatMap
from pac_wrap.report.figures.look import minus, text_width, wrap
from pac_wrap.report.figures.study.unit import unit

_LINE: Final = 1.25  # height of a line, in units of the text size
_MARGIN: Final = 4.0  # points that a column is wider than its texts
_SMALLEST: Final = 7.0  # points; a note is smaller than a value, but no smaller than this


@dataclass(frozen=True, slots=True)
class Grid:
    """The texts of the values and of the notes, row by row; both are empty where they do not fit."""

    values: tuple[tuple[str, ...], ...]
    notes: tuple[tuple[str, ...], ...]
    size: float

    @property
    def small(self) -> float:
        """The size of a note in points."""
        return max(_SMALLEST, self.size - 1.5)

    @property
    def note_height(self) -> float:
        """The height of the tallest note in points."""
        lines = max((note.count("\n") + 1 for row in self.notes for note in row if note), default=0)
        return lines * _LINE * self.small

    @property
    def cell_height(self) -> float:
        """The height in points that a cell needs."""
        return (_LINE + 0.8) * self.size + self.note_height


def write_cells(picture: HeatMap, size: float, width: float) -> Grid:
    """Return the texts of a heat map's cells in text of a size, on axes so many points wide.

    >>> picture = HeatMap("q4", "", "", "", (0.1, 0.2), (0.05,), ((0.25, 0.0),), "(%)", (("[24, 26]", ""),))
    >>> write_cells(picture, 9.0, 300.0)
    Grid(values=(('25.0', '0.0'),), notes=(('[24, 26]', ''),), size=9.0)
    >>> write_cells(picture, 9.0, 60.0)
    Grid(values=(('25.0', '0.0'),), notes=(('[24,\\n26]', ''),), size=9.0)
    """
    column = width / max(len(picture.x), 1) - _MARGIN
    values = tuple(tuple(value_text(value, picture.value_label) for value in row) for row in picture.values)
    if not _fits([text for row in values for text in row], column, size):
        return Grid((), (), size)
    small = Grid((), (), size).small
    notes = tuple(tuple("\n".join(wrap(note, column, small)) for note in row) for row in picture.notes)
    lines = [line for row in notes for note in row for line in note.split("\n")]
    return Grid(values, notes if _fits(lines, column, small) else (), size)


def value_text(value: float, label: str) -> str:
    """Return a value: in percent with one decimal where the label says so, else with three digits.

    >>> value_text(0.1234, "abstained (%)"), value_text(1e-5, "abstained (%)"), value_text(0.12345, "AUC")
    ('12.3', '<0.1', '0.123')
    """
    if isnan(value):
        return "\N{EN DASH}"
    times = unit(label)
    if times == 1.0:
        return minus(f"{value:z.3f}" if abs(value) <= 1.0 else f"{value:.3g}")
    return "<0.1" if 0.0 < times * value < 0.05 else minus(f"{times * value:z.1f}")


def _fits(texts: Sequence[str], width: float, size: float) -> bool:
    return all(text_width(text, size) <= width for text in texts)
