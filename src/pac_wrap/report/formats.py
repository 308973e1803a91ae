"""A report as one HTML file, as Markdown or as JSON, and into a file whose name says which."""

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pac_wrap.base.files import write_whole
from pac_wrap.base.foreign import escape_markdown
from pac_wrap.errors import InputError, MissingExtraError
from pac_wrap.method.metrics import Metrics, Rate
from pac_wrap.report.content import Content, content_of
from pac_wrap.report.next_steps import TOLERATED
from pac_wrap.report.subject import Report
from pac_wrap.report.verdict_table import VerdictRow

if TYPE_CHECKING:
    from jinja2 import Environment

# scripts, pictures, fonts and connections are not allowed at all, and no style but that of the page itself
_POLICY: Final = "default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'"
# where a line may not break: within "5 %", "3 of 20", "from 0.5 on"
_TIED: Final = re.compile(r"(?<=\d) (?=%|of \d|on\b)|(?<=\d of) (?=\d)|(?<=from|elow) (?=[\d\N{MINUS SIGN}])")
_HEADER: Final = {"format": "pac-wrap report", "schema": 1}


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


def to_html(report: Report) -> str:
    """Return the report as one HTML file; needs matplotlib."""
    try:
        from pac_wrap.report.page_figures import page_figures
    except MissingExtraError as error:
        raise MissingExtraError(
            'an HTML report needs matplotlib, which is not installed: pip install "pac-wrap-ad[plot]", or'
            " write a .md or .json report"
        ) from error
    content = content_of(report)
    style = files("pac_wrap.report").joinpath("templates", "page.css").read_text(encoding="utf-8")
    return (
        _templates("html")
        .get_template("report.html.j2")
        .render(
            content=content,
            figures=list(page_figures(report, content)),
            policy=_POLICY.format(f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}"),
            style=style,
            tolerated=TOLERATED,
        )
    )


def to_markdown(report: Report) -> str:
    """Return the report as Markdown, without figures.

    >>> from pac_wrap import calibrate
    >>> to_markdown(Report(calibrate([0.1, 0.2], [0.8]), [0.1, 0.2], [0.8])).splitlines()[0]
    '# Error rates of an anomaly detector'
    """
    template = _templates("markdown").get_template("report.md.j2")
    return template.render(content=content_of(report), figures=[], tolerated=TOLERATED).rstrip() + "\n"


@cache
def _templates(form: Literal["html", "markdown"]) -> "Environment":
    """Return the templates, in which every text that is put in is escaped as the format needs it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def markdown(value: object) -> Markup:
        # what a macro returns has been escaped already
        return value if isinstance(value, Markup) else Markup(escape_markdown(str(value)))

    templates = Environment(
        loader=PackageLoader("pac_wrap.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=markdown if form == "markdown" else None,
    )
    templates.filters["base64"] = lambda text: b64encode(text.encode()).decode()
    templates.filters["counted"] = lambda value: f"{value:,}" if isinstance(value, int) else value
    templates.filters["tied"] = lambda text: _TIED.sub("\N{NO-BREAK SPACE}", text)
    return templates


def to_json(report: Report) -> str:
    """Return the report as strict JSON; `certificate` is the certificate as it is saved.

    >>> from pac_wrap import calibrate
    >>> text = to_json(Report(calibrate([0.1, 0.2], [0.8]), [0.1, 0.2], [0.8]))
    >>> json.loads(text)["status"]
    'too few labels'
    """
    content = content_of(report)
    data = _HEADER | {
        "title": content.title,
        "status": content.status,
        "promise": content.promise,
        "notes": content.notes,
        "warnings": content.warnings,
        "verdicts": [_verdict(row) for row in content.verdicts],
        "held_out": None if report.metrics is None else _metrics(report.metrics, content),
        "reached": [asdict(row) for row in content.evidence],
        "explanations": content.explanations,
        "assumptions": content.assumptions,
        "breaks": content.breaks,
        "not_promised": content.not_promised,
        "next_steps": content.next_steps,
        "plan": [asdict(row) for row in content.plan],
        "detector": report.detector,
        "source": None if report.source is None else asdict(report.source),
        "versions": dict(content.versions),
        "digests": dict(content.digests),
        "certificate": json.loads(content.certificate),
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _verdict(row: VerdictRow) -> dict[str, Any]:
    low, high = (None, None) if row.range is None else row.range
    return {
        "verdict": row.name,
        "code": int(row.verdict),
        "declared": row.range is not None,
        "from": low,
        "below": high,
        "scores": row.scores,
        "meaning": row.meaning,
        "normal": {"count": row.normal, "n": row.n_normal},
        "anomalous": {"count": row.anomalous, "n": row.n_anomalous},
    }


def _metrics(metrics: Metrics, content: Content) -> dict[str, Any]:
    rates = {name: _rate(getattr(metrics, name)) for name in metrics.__dataclass_fields__}
    findings = {name: row.finding for name, row in zip(("fpr", "fnr"), content.held_out, strict=False)}
    return rates | {"findings": findings}


def _rate(rate: Rate) -> dict[str, Any]:
    return asdict(rate) | {"value": rate.value if rate.n else None}


_RENDERERS: Final[dict[str, Callable[[Report], str]]] = {
    ".html": to_html,
    ".md": to_markdown,
    ".json": to_json,
}
