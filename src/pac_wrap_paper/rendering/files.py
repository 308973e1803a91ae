"""A study as files in a folder: CSV tables, SVG figures, a Markdown page, and how it was made."""

import csv
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from html import escape as escape_signs
from importlib import import_module
from io import StringIO
from pathlib import Path
from urllib.parse import quote

from pac_wrap.base.files import whole_file, write_text
from pac_wrap.base.text import escape_markdown
from pac_wrap.errors import InputError, OutputError
from pac_wrap.method.metrics import Rate
from pac_wrap_paper.rendering.text import cell_text, emphasised, numeric_columns
from pac_wrap_paper.studies.study import Cell, Chart, Interval, Spread, Study, StudyTable


def write_study(study: Study, folder: str | os.PathLike[str], meta: Mapping[str, object]) -> list[Path]:
    """Write the files of a study and return their paths; on any failure the folder stays as it was.

    Each table becomes `<question>-<table>.csv` and each chart `<question>-<chart>.svg`; `<question>.md`
    shows them, and `<question>.json` holds `meta`. The same study gives the same bytes.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = write_study(Study("q1", "Is it kept?", (), (), ("It is.",), ()), folder, {"seed": 0})
    >>> [path.name for path in written]
    ['q1.md', 'q1.json']
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
    # only charts need matplotlib; this module says how to get it, so it is asked first
    to_svg = import_module("pac_wrap.report.figures").to_svg
    from pac_wrap_paper.rendering.figures import draw

    figure = draw(chart)
    figure.set_facecolor("#FFFFFF")  # a file does not know the page it will stand on
    text: str = to_svg(figure, alt=chart.title)
    return text + "\n"


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

    >>> study = Study("q1", "Is it kept?", ("500 trials.",), (), ("It is.",), ())
    >>> print(markdown(study, {}), end="")
    ## Is it kept?
    <BLANKLINE>
    500 trials.
    <BLANKLINE>
    **What it shows.**
    <BLANKLINE>
    - It is.
    """
    blocks = [f"## {escape_markdown(study.title)}", *map(_paragraph, study.setting)]
    for table in study.tables:
        if not table.detail:
            blocks += [f"**{escape_markdown(table.title)}**", *([_table(table)] if table.rows else [])]
    for chart in study.charts:
        if chart.name in chart_files:
            blocks.append(f"![{escape_markdown(chart.title)}]({quote(chart_files[chart.name])})")
    if study.findings:
        blocks += ["**What it shows.**", "\n".join(f"- {_paragraph(finding)}" for finding in study.findings)]
    return "\n\n".join(blocks) + "\n"


def _paragraph(text: str) -> str:
    return "".join(
        f"*{escape_markdown(piece)}*" if stressed else escape_markdown(piece)
        for piece, stressed in emphasised(text)
    )


def _table(table: StudyTable) -> str:
    numeric = numeric_columns(table)
    lines = [
        [escape_markdown(head) for head in numeric],
        ["---:" if right else "---" for right in numeric.values()],
        *([_cell(row[head]) for head in numeric] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    # the brackets of an interval make no link, and read better without backslashes
    return escape_markdown(cell) if isinstance(cell, str) else escape_signs(cell_text(cell), quote=False)
