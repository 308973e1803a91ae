"""A study for the terminal: a rich renderable, nothing printed here."""

from dataclasses import dataclass

import rich.table
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from pac_wrap.experiments.study import Study, Table
from pac_wrap.report.study.cells import cell_lines, cell_text, numeric_columns
from pac_wrap.report.study.columns import GAP, Column, blocks, widths
from pac_wrap.report.study.prose import pieces


def show_study(study: Study) -> RenderableType:
    """Return the tables and the findings of a study; detail tables are left out.

    >>> from rich.console import Console
    >>> table = Table("rates", "Violations", ({"detector": "LOF", "rate": 0.043},))
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

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide, narrow = (blocks(_columns(self.table, broken), options.max_width) for broken in (False, True))
        chosen = narrow if len(narrow) == 1 < len(wide) else wide
        for place, columns in enumerate(chosen):
            yield from [Text()] if place else []
            yield _side_by_side(columns, options.max_width)
        if not chosen:
            yield _lists(self.table)


def _columns(table: Table, broken: bool) -> list[Column]:
    return [
        Column(
            head,
            tuple(cell_lines(row[head]) if broken else (cell_text(row[head]),) for row in table.rows),
            numeric,
        )
        for head, numeric in numeric_columns(table).items()
    ]


def _side_by_side(columns: list[Column], room: int) -> RenderableType:
    table = rich.table.Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, GAP - 1, 0, 0), pad_edge=False)
    for column, width in zip(columns, widths(columns, room) or (), strict=True):
        table.add_column(Text(column.head), justify="right" if column.numeric else "left", width=width)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text("\n".join(lines)) for lines in cells))
    return table


def _lists(table: Table) -> RenderableType:
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
        words = Text.assemble(*((piece, "italic" if stressed else "") for piece, stressed in pieces(finding)))
        grid.add_row("\N{BULLET}", words)
    return grid
