"""How wide the columns of a table are, so that no number is broken."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import inf

from rich.cells import cell_len

GAP = 2
"""Blanks between two columns."""

_SHORT = 12  # a text up to this length stays on one line


@dataclass(frozen=True, slots=True)
class Column:
    """A head and the lines of each cell; a word is never broken, nor is a number or a short text."""

    head: str
    cells: tuple[tuple[str, ...], ...]
    numeric: bool

    @property
    def least(self) -> int:
        """The width below which something would be broken."""
        lines = [line for cell in self.cells for line in cell]
        longest = inf if self.numeric else _SHORT
        kept = [word for line in lines for word in ([line] if cell_len(line) <= longest else line.split())]
        return _widest([*kept, *self.head.split()])

    @property
    def most(self) -> int:
        """The width at which nothing wraps."""
        return _widest([self.head, *(line for cell in self.cells for line in cell)])


def widths(columns: Sequence[Column], room: int) -> list[int] | None:
    """Return the width of each column, or None where they do not fit side by side.

    Text is given room before the heads of numbers, which are folded unless they fit on one line.

    >>> text = Column("score", (("isolation forest",),), numeric=False)
    >>> number = Column("violations counted", (("0.043",),), numeric=True)
    >>> widths([text, number], 80), widths([text, number], 30), widths([text, number], 20)
    ([16, 18], [16, 10], None)
    """
    found = [column.least for column in columns]
    free = room - sum(found) - GAP * (len(columns) - 1)
    if free < 0:
        return None
    for i in sorted(range(len(columns)), key=lambda i: columns[i].numeric):
        wanted = columns[i].most - found[i]
        given = 0 if columns[i].numeric and wanted > free else min(wanted, free)
        found[i] += given
        free -= given
    return found


def blocks(columns: Sequence[Column], room: int) -> list[list[Column]]:
    """Return the columns in blocks that fit, each after the leading texts; none where that cannot be done.

    >>> text = Column("score", (("LOF",),), numeric=False)
    >>> one, two = (Column(head, (("0.043",),), numeric=True) for head in ("FPR", "FNR"))
    >>> [[column.head for column in block] for block in blocks([text, one, two], 15)]
    [['score', 'FPR'], ['score', 'FNR']]
    >>> blocks([text, one, two], 10)
    []
    """
    if widths(columns, room) is not None:
        return [list(columns)]
    leading = list(takewhile(lambda column: not column.numeric, columns))
    found: list[list[Column]] = []
    for column in columns[len(leading) :]:
        if widths([*leading, column], room) is None:
            return []
        if not found or widths([*found[-1], column], room) is None:
            found.append([*leading])
        found[-1].append(column)
    return found


def _widest(texts: Sequence[str]) -> int:
    return max(map(cell_len, texts), default=1)
