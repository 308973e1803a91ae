"""A report as one HTML file: nothing is loaded, nothing runs, and it can be read on any screen or printed."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from pac_wrap.report.content import Content, content_of
from pac_wrap.report.document import Block, File, Points, Section, Table, Text, sections
from pac_wrap.report.result import Report

# inline styles are needed by the figures; scripts, pictures, fonts and connections are not allowed at all
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# where a line may not break: within "5 %", "3 of 20", "from 0.5 on"
_TIED: Final = re.compile(r"(?<=\d) (?=%|of \d|on\b)|(?<=\d of) (?=\d)|(?<=from|elow) (?=[\d\N{MINUS SIGN}])")


def render(report: Report) -> str:
    """Return the report as one HTML file; needs matplotlib."""
    content = content_of(report)
    style = files("pac_wrap.report").joinpath("page.css").read_text(encoding="utf-8")
    body = "\n".join(_section(section, report, content) for section in sections(content))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(content.title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{escape(content.title)}</h1>
{body}
</main>
</body>
</html>
"""


def _section(section: Section, report: Report, content: Content) -> str:
    blocks = "\n".join(text for block in section.blocks for text in _block(block, report, content))
    heading = f'<h2 id="{section.name}">{escape(section.title)}</h2>'
    return f'<section aria-labelledby="{section.name}">\n{heading}\n{blocks}\n</section>'


def _block(block: Block, report: Report, content: Content) -> Iterator[str]:
    match block:
        case Text(text, kind):
            mark = "<strong>Warning.</strong> " if kind == "warning" else ""
            yield f'<p class="{kind}">{mark}{_set(text)}</p>'
        case Points(lead, items):
            if lead:
                yield f'<p class="lead">{_set(lead)}</p>'
            listed = "\n".join(f"<li>{_set(item)}</li>" for item in items)
            yield f"<ul>\n{listed}\n</ul>"
        case Table():
            yield _table(block)
        case File(name, text):
            data = b64encode(text.encode()).decode()
            yield (
                f'<p><a class="download" download="{escape(name)}"'
                f' href="data:application/json;base64,{data}">Save {escape(name)}</a></p>'
            )
            yield (
                f'<div class="file" tabindex="0" role="region" aria-label="{escape(name)}">'
                f"<pre><code>{escape(text)}</code></pre></div>"
            )
        case _:
            yield from _figures(block.names, report, content)


def _table(table: Table) -> str:
    """Return a table that stacks its cells on a phone; the roles keep it a table for screen readers."""
    heads = "".join(f'<th scope="col" role="columnheader">{_set(name)}</th>' for name in table.head)
    rows = []
    for first, *others in table.rows:
        cells = "".join(
            f'<td role="cell" data-head="{escape(name)}">{_cell(text, table.verbatim)}</td>'
            for name, text in zip(table.head[1:], others, strict=True)
        )
        head = f'<th scope="row" role="rowheader">{_cell(first, table.verbatim)}</th>'
        rows.append(f'<tr role="row">{head}{cells}</tr>')
    caption, kind = _set(table.caption), "verbatim" if table.verbatim else "told"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}">\n'
        f'<table role="table" class="{kind}">\n<caption>{caption}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{chr(10).join(rows)}\n</tbody>\n</table>\n</div>'
    )


def _figures(names: Sequence[str], report: Report, content: Content) -> Iterator[str]:
    # matplotlib is an extra: only here is it needed, and its absence is one sentence
    from pac_wrap.report.pictures import pictures

    for picture in pictures(report, content):
        if picture.name not in names:
            continue
        drawings = "\n".join(
            f'<div class="{width} {scheme}">{svg}</div>' for width, scheme, svg in picture.variants()
        )
        yield (
            f'<figure id="figure-{picture.name}">\n<figcaption><strong>{_set(picture.title)}</strong>'
            f" {_set(picture.caption)}</figcaption>\n{drawings}\n</figure>"
        )


def _cell(text: str, verbatim: bool) -> str:
    return f"<bdi>{escape(text)}</bdi>" if verbatim else _set(text)


def _set(text: str) -> str:
    """Return our own words as HTML; a number stays with its sign, a count with its total."""
    return _TIED.sub("\N{NO-BREAK SPACE}", escape(text))
