"""Studies for readers: on the terminal, and as files: CSV tables, SVG figures, a Markdown page."""

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import takewhile
from math import inf, isinf, isnan
from pathlib import Path
from typing import Final
from urllib.parse import quote

import rich.table
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from pac_wrap import InputError
from pac_wrap.base.files import whole_file, write_text
from pac_wrap.errors import OutputError
from pac_wrap.tails import Rate
from pac_wrap_paper.studies.charts import Chart, Interval
from pac_wrap_paper.studies.study import Cell, Spread, Study, StudyTable

_GAP: Final = 2  # blanks between two columns
_SHORT: Final = 12  # a text up to this length stays on one line
_MINUS: Final = "\N{MINUS SIGN}"
_EMPHASIS: Final = re.compile(r"(?<!\w)\*(\w(?:[^*\n]*\w)?)\*(?!\w)")
# what Markdown would read as its own markup
_MARKUP: Final = re.compile(r"[\\`*_{}\[\]#|~!$]")


def cell_text(cell: Cell) -> str:
    """Return a cell on one line: three decimals, with the interval or the range behind the value.

    >>> cell_text(Rate(43, 1000, 0.0313, 0.0576)), cell_text(Spread(0.121, 0.11, 0.135))
    ('0.043 [0.031, 0.058]', '0.121 (0.110 to 0.135)')
    >>> cell_text(0.0001), cell_text(100_000), cell_text(True), cell_text(None)
    ('<0.001', '100,000', 'yes', '–')
    """
    return " ".join(cell_lines(cell))


def cell_lines(cell: Cell) -> tuple[str, ...]:
    """Return a cell in the lines it may be broken into, none of which should be."""
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
    """Return for each column of a table, in order, whether it holds numbers, which are set flush right."""
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
    """Return the tables and the findings of a study; detail tables are left out."""
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
    """Return the columns in blocks that fit, each after the leading texts; none where that cannot be done."""
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


def write_study(study: Study, folder: str | os.PathLike[str], meta: Mapping[str, object]) -> list[Path]:
    """Write the files of a study and return their paths; on any failure the folder stays as it was.

    Each table becomes `<question>-<table>.csv` and each chart `<question>-<chart>.svg`; `<question>.md`
    shows them, and `<question>.json` holds `meta`. The same study gives the same bytes.
    """
    texts = _texts(study, meta)
    paths = [Path(folder) / name for name in texts]
    with _folder(Path(folder)), ExitStack() as files:
        for path, text in zip(paths, texts.values(), strict=True):
            if path.is_dir():
                raise OutputError(f"cannot write {path}: it is a folder; nothing was written")
            write_text(files.enter_context(whole_file(path)), text)
    return paths


def _texts(study: Study, meta: Mapping[str, object]) -> dict[str, str]:
    """Return the content of every file by its name."""
    for kind, names in (
        ("tables", [table.name for table in study.tables]),
        ("charts", [chart.name for chart in study.charts]),
    ):
        if len(set(names)) < len(names):
            raise InputError(f"{kind} of a study need different names, got {', '.join(names)}")
    texts = {f"{study.question}-{table.name}.csv": csv_text(table) for table in study.tables}
    files = {chart.name: f"{study.question}-{chart.name}.svg" for chart in study.charts}
    texts |= {files[chart.name]: _svg(chart) for chart in study.charts}
    texts[f"{study.question}.md"] = markdown(study, files)
    texts[f"{study.question}.json"] = (
        json.dumps(meta, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )
    return texts


def _svg(chart: Chart) -> str:
    # only charts need matplotlib; where it is missing, the first of these says how to get it
    from pac_wrap.report.figures import to_svg
    from pac_wrap_paper.figures import draw

    figure = draw(chart)
    figure.set_facecolor("#FFFFFF")  # a file does not know the page it will stand on
    return to_svg(figure, chart.title) + "\n"


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; remove what was made if anything fails."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"cannot write into {folder}: it is not a folder; nothing was written") from error
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot create the folder {folder}: {reason}; nothing was written") from error
    try:
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
        raise


def csv_text(table: StudyTable) -> str:
    """Return a table as CSV with every digit; a cell of several numbers takes a column for each.

    >>> table = StudyTable("t", "A table", ({"n": 1000, "FPR": Rate(43, 1000, 0.0313, 0.0576)},))
    >>> print(csv_text(table), end="")
    n,FPR count,FPR n,FPR low,FPR high
    1000,43,1000,0.0313,0.0576
    """
    rows = [{head: _fields(cell) for head, cell in row.items()} for row in table.rows]
    columns = [
        (head, name)
        for head in (rows[0] if rows else {})
        for name in dict.fromkeys(name for row in rows for name in row[head]) or ("",)
    ]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(f"{head} {name}".rstrip() for head, name in columns)
    writer.writerows([row[head].get(name, "") for head, name in columns] for row in rows)
    return text.getvalue()


def _fields(cell: Cell) -> dict[str, str]:
    """Return the values of a cell by name; the name of a single value is empty."""
    match cell:
        case None:
            return {}
        case bool():
            return {"": "true" if cell else "false"}
        case str() | int():
            return {"": str(cell)}
        case float():
            return {"": _digits(cell)}
        case Rate(count, n, low, high):
            return {"count": str(count), "n": str(n), "low": _digits(low), "high": _digits(high)}
        case Spread(mean, low, high):
            return {"mean": _digits(mean), "low": _digits(low), "high": _digits(high)}
        case Interval(low, high):
            return {"low": _digits(low), "high": _digits(high)}


def _digits(value: float) -> str:
    return repr(float(value))  # NumPy's floats are floats, too, but write their type


def markdown(study: Study, chart_files: Mapping[str, str]) -> str:
    """Return a study as Markdown; `chart_files` says where the chart of each name lies.

    Detail tables and charts without a file are left out.
    """
    blocks = [f"## {_escaped(study.title)}", *map(_paragraph, study.setting)]
    for table in study.tables:
        if not table.detail:
            blocks += [f"**{_escaped(table.title)}**", *([_table(table)] if table.rows else [])]
    for chart in study.charts:
        if chart.name in chart_files:
            blocks.append(f"![{_escaped(chart.title)}]({quote(chart_files[chart.name])})")
    if study.findings:
        blocks += ["**What it shows.**", "\n".join(f"- {_paragraph(finding)}" for finding in study.findings)]
    return "\n\n".join(blocks) + "\n"


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no end of a table cell."""
    return _MARKUP.sub(r"\\\g<0>", escape(" ".join(text.splitlines()), quote=False))


def _paragraph(text: str) -> str:
    return "".join(
        f"*{_escaped(piece)}*" if stressed else _escaped(piece) for piece, stressed in emphasised(text)
    )


def _table(table: StudyTable) -> str:
    numeric = numeric_columns(table)
    lines = [
        [_escaped(head) for head in numeric],
        ["---:" if right else "---" for right in numeric.values()],
        *([_cell(row[head]) for head in numeric] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    # the brackets of an interval make no link, and read better without backslashes
    return _escaped(cell) if isinstance(cell, str) else escape(cell_text(cell), quote=False)
