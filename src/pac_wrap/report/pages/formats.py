"""A report in a file whose name says how: as one HTML page with its figures, as Markdown or as JSON."""

import os
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pac_wrap.base.arguments import Scores
from pac_wrap.base.files import write_whole
from pac_wrap.base.text import escape_markdown
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.rule import Rule
from pac_wrap.report.pages.content import TOLERATED, content_of, panels, to_json
from pac_wrap.report.pages.explorer import Explorer, script_data
from pac_wrap.report.pages.pictures import Bands, Histogram, Line, bands, flags, histograms, undecided
from pac_wrap.report.subject import Report
from pac_wrap.report.window import Window
from pac_wrap.report.words.certificate import lines_of
from pac_wrap.report.words.sentences import Status, promise, status

if TYPE_CHECKING:
    from jinja2 import Environment

# files, fonts and connections are not allowed at all, and no style or script but those of the page itself
_POLICY: Final = "default-src 'none'; style-src {}; {}base-uri 'none'; form-action 'none'"
# where a line may not break: within "5 %", "3 of 20", "from 0.5 on"
_TIED: Final = re.compile(r"(?<=\d) (?=%|of \d|on\b)|(?<=\d of) (?=\d)|(?<=from|elow) (?=[\d\N{MINUS SIGN}])")
_SECTIONS: Final = "sections.j2"
_RARE: Final = 0.01  # a prevalence to begin with, where no point tells one


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report whose format is that of the file's name: .html, .md or .json.

    The file appears whole or not at all.

    >>> from pac_wrap import calibrate
    >>> write_report(Report(calibrate(range(100), range(200, 300))), "report.pdf")
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
    """Return the report as one HTML file, with its pictures; nothing but its own script may run in it.

    >>> from pac_wrap import calibrate
    >>> to_html(Report(calibrate(range(100), range(200, 300))))[:15]
    '<!doctype html>'
    """
    content = content_of(report)
    rule = report.certificate.rule
    shown = shown_scores(rule, report.normal, report.anomalous, content.explorer, report.shares)
    script = ""
    if shown is not None and content.explorer is not None:
        script = "".join(map(_asset, ("numbers.js", "controls.js", "explorer.js")))
    return page(
        "report.html.j2",
        script,
        sections=_SECTIONS,
        content=content,
        shown=shown,
        tolerated=TOLERATED,
        panels=panels(report.certificate),
    )


def page(template: str, script: str = "", **content: object) -> str:
    """Return one HTML file from a template, in the style of all pages, under a policy that allows no more."""
    style = _asset("controls.css") + _asset("page.css")
    policy = _POLICY.format(_hash(style), f"script-src {_hash(script)}; " if script else "")
    made = _templates("html").get_template(template)
    return made.render(policy=policy, style=style, script=script, **content)


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of a page: both classes with the rule, and the curve with what its script needs."""

    scores: Histogram
    flags: tuple[Line, ...]
    undecided: tuple[str, str] | None
    tails: Histogram
    bands: Bands | None
    data: str
    prevalence: str


def shown_scores(
    rule: Rule,
    normal: Scores | None,
    anomalous: Scores | None,
    explorer: Explorer | None = None,
    shares: tuple[float, float] | None = None,
) -> Pictures | None:
    """Return the pictures of both classes and a rule, and of a curve if there is one."""
    if normal is None or anomalous is None:
        return None
    window = Window.around((normal, anomalous), [rule.normal_below, rule.anomaly_from])
    shares = shares or (_RARE, _RARE)
    prevalence = "-".join(f"{share:.4g}" for share in dict.fromkeys(shares))
    scores, tails = histograms(window, normal, anomalous)
    return Pictures(
        scores=scores,
        flags=flags(window, rule),
        undecided=undecided(window, rule),
        tails=tails,
        bands=None if explorer is None else bands(window, explorer.curve),
        data=""
        if explorer is None
        else script_data(explorer, window, rule.anomaly_from if rule.single else None),
        prevalence=prevalence,
    )


def _asset(name: str) -> str:
    return files("pac_wrap.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def to_markdown(report: Report) -> str:
    """Return the report as Markdown, without figures.

    >>> from pac_wrap import calibrate
    >>> to_markdown(Report(calibrate(range(100), range(200, 300)))).splitlines()[0]
    '# Error rates of an anomaly detector'
    """
    return markdown(_SECTIONS, content=content_of(report), tolerated=TOLERATED)


def markdown(sections: str, **content: object) -> str:
    """Return Markdown from a template of sections."""
    text = (
        _templates("markdown").get_template("report.md.j2").render(sections=sections, shown=None, **content)
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def to_notebook(certificate: Certificate) -> str:
    """Return a certificate as a notebook shows it: a few lines of HTML, without script or style of its own.

    >>> from pac_wrap import calibrate
    >>> to_notebook(calibrate(range(100), range(200, 300))).splitlines()[0]
    '<div class="pac-wrap">'
    """
    return notebook(status(Report(certificate)), promise(certificate), lines_of(certificate))


def notebook(said: Status, promised: str, lines: list[tuple[str, str]]) -> str:
    """Return a status, a promise and lines as a notebook shows them."""
    template = _templates("html").get_template("notebook.html.j2")
    return template.render(status=said, promise=promised, lines=lines).strip()


@cache
def _templates(form: Literal["html", "markdown"]) -> "Environment":
    """Return the templates, in which every text that is put in is escaped as the format needs it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def escaped(value: object) -> Markup:
        # what a macro returns has been escaped already
        return value if isinstance(value, Markup) else Markup(escape_markdown(str(value)))

    templates = Environment(
        loader=PackageLoader("pac_wrap.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=escaped if form == "markdown" else None,
    )
    templates.filters["base64"] = lambda text: b64encode(text.encode()).decode()
    templates.filters["counted"] = lambda value: f"{value:,}" if isinstance(value, int) else value
    templates.filters["tied"] = lambda text: _TIED.sub("\N{NO-BREAK SPACE}", text)
    return templates


_RENDERERS: Final[dict[str, Callable[[Report], str]]] = {
    ".html": to_html,
    ".md": to_markdown,
    ".json": to_json,
}
