"""A report as Markdown: one file that reads well as plain text, too."""

import re
from typing import Final

from pac_wrap.report.content import content_of
from pac_wrap.report.document import Block, File, Points, Table, Text, sections
from pac_wrap.report.result import Report

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ACTIVE: Final = re.compile(r"[\\`*_{}\[\]#|~!$]")


def render(report: Report) -> str:
    """Return the report as Markdown.

    >>> from pac_wrap import calibrate
    >>> render(Report(calibrate([0.1, 0.2], [0.8]), [0.1, 0.2], [0.8])).splitlines()[0]
    '# Error rates of an anomaly detector'
    """
    content = content_of(report)
    parts = [f"# {escape(content.title)}"]
    for section in sections(content):
        blocks = [text for block in section.blocks if (text := _block(block))]
        if blocks:
            parts += [f"## {escape(section.title)}", *blocks]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no end of a table cell.

    >>> escape("<b>|a_b`")
    '&lt;b&gt;\\\\|a\\\\_b\\\\`'
    """
    text = "".join(_ENTITIES.get(sign, sign) for sign in " ".join(text.splitlines()))
    return _ACTIVE.sub(r"\\\g<0>", text)


def _block(block: Block) -> str:
    match block:
        case Text(text, kind):
            marked = {"promise": "**{}**", "warning": "> **Warning.** {}"}.get(kind, "{}")
            return marked.format(escape(text))
        case Points(lead, items):
            listed = "\n".join(f"- {escape(item)}" for item in items)
            return f"{escape(lead)}\n\n{listed}" if lead else listed
        case Table(caption, head, rows):
            lines = [head, ("---",) * len(head), *(tuple(map(escape, row)) for row in rows)]
            table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
            return f"{escape(caption)}\n\n{table}"
        case File(name, text):
            return f"{escape(name)}:\n\n```json\n{text}```"
        case _:  # figures
            return ""
