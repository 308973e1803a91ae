"""The figures of a report, each drawn for light and dark pages and for wide and narrow ones."""

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pac_wrap.calibration import calibrate
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.report.content import Content
from pac_wrap.report.figures import (
    new_axes,
    plot_boxes,
    plot_held_out,
    plot_plan,
    plot_rates,
    plot_scores,
    to_svg,
)
from pac_wrap.report.ranges import range_words, ranges
from pac_wrap.report.result import Report
from pac_wrap.report.sides import sides
from pac_wrap.report.wording import ceiling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Draw = Callable[..., Axes]

_WIDTHS: Final = {"wide": 6.5, "narrow": 3.0}  # inches; a phone shows the narrow one without shrinking it
_DIGITS: Final = re.compile(r"(\.\d\d)\d+")


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: what it is called, what it shows in words, and how it is drawn."""

    name: str
    title: str
    caption: str
    alt: str
    draw: "Draw"

    def variants(self) -> Iterator[tuple[str, str, str]]:
        """Return (width, scheme, SVG) of each variant."""
        for width, inches in _WIDTHS.items():
            for scheme in ("light", "dark"):
                figure = self.draw(ax=new_axes(inches), dark=scheme == "dark").get_figure(root=True)
                assert figure is not None
                svg = to_svg(figure, alt=self.alt, prefix=f"{self.name}-{width}-{scheme}-")
                yield width, scheme, compact(svg)


def pictures(report: Report, content: Content) -> Iterator[Picture]:
    """Return the figures of a report in order."""
    certificate, normal, anomalous = report.certificate, report.normal, report.anomalous

    def drawn(plot: "Draw", *arguments: Any, **options: Any) -> "Draw":
        return lambda **page: plot(*arguments, **options, **page)

    counts = f"{normal.size:,} normal and {anomalous.size:,} anomalous calibration points"
    words = range_words(ranges(certificate.rule))
    rule = "; ".join(f"{verdict.name.lower()}: {text}" for verdict, text in words.items())
    yield Picture(
        "scores",
        "Scores of both classes.",
        "Each class adds up to 100 %.",
        f"Histogram of the scores of {counts}, in percent of each class. Verdicts: {rule}.",
        drawn(plot_scores, certificate, normal, anomalous),
    )
    yield Picture(
        "log",
        "The same on a log scale.",
        "It shows the tails, where the errors are.",
        f"Histogram of the scores of {counts}, in percent of each class, on a logarithmic scale."
        f" Verdicts: {rule}.",
        drawn(plot_scores, certificate, normal, anomalous, log=True),
    )
    if certificate.strategy is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UpsideDownWarning)
            asked = calibrate(normal, anomalous, certificate.guarantee)
        both = range_words(ranges(asked.rule))
        before = "; ".join(f"{verdict.name.lower()}: {text}" for verdict, text in both.items())
        yield Picture(
            "boxes",
            "Two thresholds, and the single one.",
            "Two thresholds leave points undecided, as far as what was asked for demands it; "
            + ("no single one was found." if certificate.tau is None else "the single one decides them all."),
            f"Box plots of the scores of {counts}. Two thresholds as asked for, {before}."
            f" One threshold, {rule}.",
            drawn(plot_boxes, asked, certificate, normal, anomalous),
        )
    promised = [
        f"{side.rate} at most {ceiling(side.certified)}"
        for side in sides(certificate)
        if side.certified is not None
    ]
    yield Picture(
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
        yield Picture(
            "held-out",
            "Measured on held-out points.",
            "Points that were not used to calibrate.",
            f"Rates on held-out points with exact intervals: {found}.",
            drawn(plot_held_out, certificate, report.metrics),
        )
    deltas = [side.asked_delta for side in sides(certificate) if side.asked is not None]
    needs = "; ".join(f"{row.promise} needs at least {row.none_tolerated:,} labels" for row in content.plan)
    yield Picture(
        "plan",
        "How many labels a promise needs.",
        "The fewer errors are tolerated among the labels, the fewer labels are needed, and the more cautious"
        " the threshold becomes.",
        f"Labels of one class against the rate they certify, for some numbers of errors among them. {needs}.",
        drawn(plot_plan, delta=min(deltas), certificate=certificate),
    )


def compact(svg: str) -> str:
    """Return the same SVG in fewer bytes: coordinates to a hundredth of a point, fonts left to the page.

    >>> compact('<g><path d="M 1.23456 2 \\n"/>\\n <text style="font-family: a, b; x: 1">1.234</text></g>')
    '<g><path d="M 1.23 2 "/><text style=" x: 1">1.234</text></g>'
    """

    def shorten(tag: re.Match[str]) -> str:
        text = tag.group()
        if text.startswith("<svg "):
            return text
        text = _DIGITS.sub(r"\1", text).replace("\n", "")
        return re.sub(r"font-family: [^;\"]*;", "", text)

    return re.sub(r">\s+<", "><", re.sub(r"<[^<>]+>", shorten, svg))
