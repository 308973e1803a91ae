"""A study as Markdown."""

from collections.abc import Mapping
from html import escape as escape_signs
from urllib.parse import quote

from pac_wrap.experiments.study import Cell, Study, Table
from pac_wrap.report.markdown import escape
from pac_wrap.report.study.cells import cell_text, numeric_columns
from pac_wrap.report.study.prose import pieces


def markdown(study: Study, picture_files: Mapping[str, str]) -> str:
    """Return a study as Markdown; `picture_files` says where the picture of each name lies.

    Detail tables and pictures without a file are left out.

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
    parts = [f"## {escape(study.title)}", *map(_paragraph, study.setting)]
    for table in study.tables:
        if not table.detail:
            parts += [f"**{escape(table.title)}**", *([_table(table)] if table.rows else [])]
    for picture in study.pictures:
        if picture.name in picture_files:
            parts.append(f"![{escape(picture.title)}]({quote(picture_files[picture.name])})")
    if study.findings:
        parts += ["**What it shows.**", "\n".join(f"- {_paragraph(finding)}" for finding in study.findings)]
    return "\n\n".join(parts) + "\n"


def _paragraph(text: str) -> str:
    return "".join(f"*{escape(piece)}*" if stressed else escape(piece) for piece, stressed in pieces(text))


def _table(table: Table) -> str:
    numeric = numeric_columns(table)
    lines = [
        [escape(head) for head in numeric],
        ["---:" if right else "---" for right in numeric.values()],
        *([_cell(row[head]) for head in numeric] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    # the brackets of an interval make no link, and read better without backslashes
    return escape(cell) if isinstance(cell, str) else escape_signs(cell_text(cell), quote=False)
