"""A report into a file, in the format its name asks for."""

import os
from pathlib import Path
from typing import Final

from pac_wrap.errors import InputError
from pac_wrap.files import write_whole
from pac_wrap.report import html, jsontext, markdown
from pac_wrap.report.result import Report

_RENDERERS: Final = {".html": html.render, ".md": markdown.render, ".json": jsontext.render}


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report whose format is that of the file's name: .html, .md or .json.

    The file appears whole or not at all.

    >>> from pac_wrap import calibrate
    >>> write_report(Report(calibrate([0.1], [0.8]), [0.1], [0.8]), "report.pdf")
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: a report is written as .html, .md or .json, got 'report.pdf'; print the HTML \
file to get a PDF
    """
    write_whole(path, render_report(report, path))


def render_report(report: Report, path: str | os.PathLike[str]) -> str:
    """Return the text of a report in the format that a file's name asks for."""
    check_suffix(path)
    return _RENDERERS[Path(path).suffix.lower()](report)


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse a name whose format no report has, before any work is done."""
    if Path(path).suffix.lower() not in _RENDERERS:
        raise InputError(
            f"a report is written as .html, .md or .json, got {Path(path).name!r};"
            " print the HTML file to get a PDF"
        )
