"""A study for the terminal: a rich renderable, nothing printed here."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import inf
from typing import Final

import rich.table
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from pac_wrap.paper.rendering.text import cell_lines, cell_text, emphasised, numeric_columns
from pac_wrap.paper.studies.study import Study, StudyTable

_GAP: Final = 2  # blanks between two columns
_SHORT: Final = 12  # a text up to this length stays on one line


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


def show_study(study: Study) -> RenderableType:
    """Return the tables and the findings of a study; detail tables are left out.

    >>> from rich.console import Console
    >>> table = StudyTable("rates", "Violations", ({"detector": "LOF", "rate": 0.043},))
    >>> Console(width=40).print(show_study(Study("q1", "Kept?", (), (table,), ("It is.",), ())))
    Kept?
    <BLANKLINE>
    Violations
    detector   rate
    ───────────────
    LOF       0.043
    <BLANKLINE>
    What it shows
    • It is.
    """
    parts: list[RenderableType] = [Text(study.title, style="bold")]
    for table in study.tables:
        if not table.detail:
            parts += [Text(), Text(table.title, style="italic"), *([_Fitting(table)] if table.rows else [])]
    if study.findings:
        parts += [Text(), Text("What it shows", style="bold"), _findings(study)]
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class _Fitting:
    """A table that breaks no number, whatever the width of the terminal.

    Where it is too wide, intervals go below their values, or columns below others, or rows become lists.
    """

    table: StudyTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide, narrow = (
            column_blocks(_columns(self.table, broken), options.max_width) for broken in (False, True)
        )
        chosen = narrow if len(narrow) == 1 < len(wide) else wide
        for place, columns in enumerate(chosen):
            yield from [Text()] if place else []
            yield _side_by_side(columns, options.max_width)
        if not chosen:
            yield _lists(self.table)


def _columns(table: StudyTable, broken: bool) -> list[Column]:
    return [
        Column(
            head,
            tuple(cell_lines(row[head]) if broken else (cell_text(row[head]),) for row in table.rows),
            numeric,
        )
        for head, numeric in numeric_columns(table).items()
    ]


def _side_by_side(columns: list[Column], room: int) -> RenderableType:
    table = rich.table.Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, _GAP - 1, 0, 0), pad_edge=False)
    for column, width in zip(columns, widths(columns, room) or (), strict=True):
        table.add_column(Text(column.head), justify="right" if column.numeric else "left", width=width)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text("\n".join(lines)) for lines in cells))
    return table


def _lists(table: StudyTable) -> RenderableType:
    rows: list[RenderableType] = []
    for row in table.rows:
        grid = rich.table.Table.grid(padding=(0, 2, 0, 0))
        for head, cell in row.items():
            grid.add_row(Text(head), Text(cell_text(cell)))
        rows += [Text(), grid]
    return Group(*rows)


def _findings(study: Study) -> RenderableType:
    grid = rich.table.Table.grid(padding=(0, 1))
    for finding in study.findings:
        words = Text.assemble(
            *((piece, "italic" if stressed else "") for piece, stressed in emphasised(finding))
        )
        grid.add_row("\N{BULLET}", words)
    return grid


def widths(columns: Sequence[Column], room: int) -> list[int] | None:
    """Return the width of each column, or None where they do not fit side by side.

    Text is given room before the heads of numbers, which are folded unless they fit on one line.

    >>> text = Column("score", (("isolation forest",),), numeric=False)
    >>> number = Column("violations counted", (("0.043",),), numeric=True)
    >>> widths([text, number], 80), widths([text, number], 30), widths([text, number], 20)
    ([16, 18], [16, 10], None)
    """
    found = [column.least for column in columns]
    free = room - sum(found) - _GAP * (len(columns) - 1)
    if free < 0:
        return None
    for i in sorted(range(len(columns)), key=lambda i: columns[i].numeric):
        wanted = columns[i].most - found[i]
        given = 0 if columns[i].numeric and wanted > free else min(wanted, free)
        found[i] += given
        free -= given
    return found


def column_blocks(columns: Sequence[Column], room: int) -> list[list[Column]]:
    """Return the columns in blocks that fit, each after the leading texts; none where that cannot be done.

    >>> text = Column("score", (("LOF",),), numeric=False)
    >>> one, two = (Column(head, (("0.043",),), numeric=True) for head in ("FPR", "FNR"))
    >>> [[column.head for column in block] for block in column_blocks([text, one, two], 15)]
    [['score', 'FPR'], ['score', 'FNR']]
    >>> column_blocks([text, one, two], 10)
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
