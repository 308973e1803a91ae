"""A report in a file whose name says how: as one HTML page with its figures, as Markdown or as JSON."""

import os
import re
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pac_wrap.base.files import write_whole
from pac_wrap.base.foreign import escape_markdown
from pac_wrap.errors import InputError, MissingExtraError, UpsideDownWarning
from pac_wrap.method.calibrate import calibrate
from pac_wrap.report.content import Content, content_of, to_json
from pac_wrap.report.numbers import ceiling
from pac_wrap.report.sentences import TOLERATED
from pac_wrap.report.subject import Report, error_rates, range_words, ranges

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes

    Draw = Callable[..., Axes]

# scripts, pictures, fonts and connections are not allowed at all, and no style but that of the page itself
_POLICY: Final = "default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'"
# where a line may not break: within "5 %", "3 of 20", "from 0.5 on"
_TIED: Final = re.compile(r"(?<=\d) (?=%|of \d|on\b)|(?<=\d of) (?=\d)|(?<=from|elow) (?=[\d\N{MINUS SIGN}])")
_WIDTH: Final = 3.2  # inches; text that can be read on a phone, and is not too large beside a caption
_DIGITS: Final = re.compile(r"(\.\d\d)\d+")


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
        import_module("pac_wrap.report.figures")
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


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure: what it is called, what it shows in words, and how it is drawn."""

    name: str
    title: str
    caption: str
    alt: str
    draw: "Draw"

    @property
    def svg(self) -> str:
        """The drawing, as an element of the page."""
        from pac_wrap.report.figures.styling import new_axes, to_svg

        figure = self.draw(ax=new_axes(_WIDTH)).get_figure(root=True)
        assert figure is not None
        return page_svg(to_svg(figure, alt=self.alt, prefix=f"{self.name}-"))


def page_figures(report: Report, content: Content) -> Iterator[PageFigure]:
    """Return the figures of a report in order."""
    from pac_wrap.report.figures.distributions import plot_boxes, plot_scores
    from pac_wrap.report.figures.plan import plot_plan
    from pac_wrap.report.figures.rates import plot_held_out, plot_rates

    certificate, normal, anomalous = report.certificate, report.normal, report.anomalous

    def drawn(plot: "Draw", *arguments: Any, **options: Any) -> "Draw":
        return lambda **page: plot(*arguments, **options, **page)

    counts = f"{normal.size:,} normal and {anomalous.size:,} anomalous calibration points"
    words = range_words(ranges(certificate.rule))
    rule = "; ".join(f"{verdict.name.lower()}: {text}" for verdict, text in words.items())
    yield PageFigure(
        "scores",
        "Scores of both classes.",
        "Each class adds up to 100 %.",
        f"Histogram of the scores of {counts}, in percent of each class. Verdicts: {rule}.",
        drawn(plot_scores, certificate, normal, anomalous),
    )
    yield PageFigure(
        "log",
        "The same on a log scale.",
        "It shows the tails, where the errors are.",
        f"Histogram of the scores of {counts}, in percent of each class, on a logarithmic scale."
        f" Verdicts: {rule}.",
        drawn(plot_scores, certificate, normal, anomalous, log=True),
    )
    if certificate.overlap.single:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UpsideDownWarning)
            asked = calibrate(normal, anomalous, certificate.guarantee)
        both = range_words(ranges(asked.rule))
        before = "; ".join(f"{verdict.name.lower()}: {text}" for verdict, text in both.items())
        yield PageFigure(
            "boxes",
            "Two thresholds, and the single one.",
            "Two thresholds leave points undecided where the ceilings asked for demand it; "
            + (
                "no single one was found."
                if certificate.certified is None
                else "the single one decides them all."
            ),
            f"Box plots of the scores of {counts}. Two thresholds as asked for, {before}."
            f" One threshold, {rule}.",
            drawn(plot_boxes, asked, certificate, normal, anomalous),
        )
    promised = [
        f"{rate.name} at most {ceiling(rate.certified)}"
        for rate in error_rates(certificate)
        if rate.certified is not None
    ]
    yield PageFigure(
        "rates",
        "Error rates against the threshold.",
        "A higher threshold gives fewer false alarms and more missed anomalies.",
        f"FPR and FNR of {counts} as one threshold moves along the scores, with exact upper bounds. Ceilings:"
        f" {', '.join(promised) or 'none certified'}. Verdicts: {rule}.",
        drawn(plot_rates, certificate, normal, anomalous),
    )
    if report.metrics is not None:
        found = "; ".join(
            f"{row.name} {row.measured}, ceiling {row.ceiling}, {row.finding}" for row in content.held_out
        )
        yield PageFigure(
            "held-out",
            "Measured on held-out points.",
            "Points that were not used to calibrate.",
            f"Rates on held-out points with exact intervals: {found}.",
            drawn(plot_held_out, certificate, report.metrics),
        )
    deltas = [rate.asked_delta for rate in error_rates(certificate) if rate.asked is not None]
    needs = "; ".join(f"{row.promise} needs at least {row.none_tolerated:,} labels" for row in content.plan)
    yield PageFigure(
        "plan",
        "How many labels a promise needs.",
        "The fewer errors are tolerated among the labels, the fewer labels are needed, and the more cautious"
        " the threshold becomes.",
        f"Labels of one class against the rate they certify, for some numbers of errors among them. {needs}.",
        drawn(plot_plan, delta=min(deltas), certificate=certificate),
    )


def page_svg(svg: str) -> str:
    """Return an SVG element for a page whose style sheet decides on colours and fonts, in fewer bytes.

    What matplotlib writes as a style becomes attributes, which any rule of the page overrides and for which
    its content policy needs no exception. Coordinates are given to a hundredth of a point.

    >>> page_svg('<g><path d="M 1.23456 2 \\n" style="fill: #abc; x: 1"/>\\n <text>1.234</text></g>')
    '<g><path d="M 1.23 2 " fill="#abc" x="1"/><text>1.234</text></g>'
    """

    def attributes(style: re.Match[str]) -> str:
        pairs = (declaration.split(":", 1) for declaration in style[1].split(";") if declaration.strip())
        return "".join(
            f' {name.strip()}="{value.strip()}"' for name, value in pairs if name.strip() != "font-family"
        )

    def shorten(tag: re.Match[str]) -> str:
        text = tag.group()
        if not text.startswith("<svg "):
            text = _DIGITS.sub(r"\1", text).replace("\n", "")
        return re.sub(r' style="([^"]*)"', attributes, text)

    return re.sub(r">\s+<", "><", re.sub(r"<[^<>]+>", shorten, svg))


_RENDERERS: Final[dict[str, Callable[[Report], str]]] = {
    ".html": to_html,
    ".md": to_markdown,
    ".json": to_json,
}
