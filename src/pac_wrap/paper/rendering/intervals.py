"""A chart of rates with intervals, one line each, next to what is exact and what was printed."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pac_wrap.paper.rendering.text import AXES_SHARE, percent_factor, text_size
from pac_wrap.paper.studies.study import Bar, IntervalChart
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import (
    PlainTicks,
    Style,
    new_axes,
    prepare,
    room,
    round_ticks,
    text_width,
    wrap,
)

_PITCH: Final = 1.7  # height of a line, in units of the text size
_AROUND: Final = 7.5  # the same for the legend, the ticks and the label below
_BELOW: Final = 0.3  # how far the printed interval lies below ours, in lines
_WIDEST: Final = 0.35  # of the width of the figure, for the label of a bar
_NEXT: Final = 0.8  # a further line of the same label is closer
_BOLD: Final = 1.15  # a heading is wider than plain text
_APART: Final = 0.35  # between two groups


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the lines of a chart lie, counted in lines from the top.

    Bars have their middle and wrapped label, headings their middle; `spans` are the top and bottom of each
    group, and `room` is the width, in points, that the labels of the bars leave.
    """

    bars: tuple[tuple[float, str, Bar], ...]
    headings: tuple[tuple[float, str], ...]
    spans: tuple[tuple[float, float], ...]
    room: float

    @property
    def end(self) -> float:
        """Where the last group ends."""
        return max((bottom for _, bottom in self.spans), default=0.0)


def plot_intervals(chart: IntervalChart, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw each rate as a dot on its interval, with a diamond at the exact value and a bracket as printed.

    Shares are drawn in percent where the label of the axis says so: (%).

    >>> groups = (("synthetic, LOF", (Bar("FPR 50 %", 0.034, 0.052, 0.043, exact=0.0433),)),)
    >>> ax = plot_intervals(IntervalChart("q1", "Violations", "violations (%)", 0.05, "promised", groups))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['ours, with its interval', 'exact value', 'promised']
    """
    ax, style = prepare(new_axes(height=intervals_height(chart)) if ax is None else ax, dark)
    factor = percent_factor(chart.axis)
    lines = lay_out(chart, style.size, room(ax) / AXES_SHARE)
    for y, heading in lines.headings:
        beside = ax.get_yaxis_transform()
        ax.text(
            0.0, y, heading, va="center", color=style.text, size=style.size, weight="bold", transform=beside
        )
    called = {"ours": chart.value_label, "exact": chart.exact_label}
    handles: dict[str, Line2D] = {}
    for y, _, bar in lines.bars:
        for name, x, place, mark in _marks(style, bar, y):
            (drawn,) = ax.plot([share * factor for share in x], [place] * len(x), label=f"_{name}", **mark)
            drawn.set_clip_on(False)
            handles.setdefault(name, Line2D([], [], label=called.get(name, name), **mark))
    ax.set_xlim(0.0, 1.04 * factor * _farthest(chart, lines))
    ax.set_ylim(lines.end + 0.2, -0.1)
    ax.set_yticks([y for y, *_ in lines.bars], [label for _, label, _ in lines.bars])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    _upright(ax, lines, 0.0, "_zero", color=style.muted, linewidth=0.8)
    if chart.limit is not None:
        limit: dict[str, Any] = {"color": style.text, "linewidth": 1.2, "linestyle": (0, (4, 2.5))}
        _upright(ax, lines, chart.limit * factor, "_limit", **limit)
        handles["limit"] = Line2D([], [], label=chart.limit_label, **limit)
    ax.xaxis.set_major_locator(round_ticks(6))
    ax.xaxis.set_major_formatter(PlainTicks())
    ax.set_xlabel("\n".join(wrap(chart.axis, min(room(ax), lines.room), style.size)))
    if len(handles) > 1:  # a single kind of mark is what the axis says
        Strip(ax, style).legend(list(handles.values()), columns=len(handles) if lines.room > room(ax) else 1)
    return ax


def intervals_height(chart: IntervalChart, width: float = 6.5) -> float:
    """Return the height in inches that gives every line its room.

    >>> groups = (("synthetic", (Bar("FPR", 0.03, 0.05, 0.04),)),)
    >>> one = IntervalChart("q1", "Violations", "share", None, "", groups)
    >>> many = IntervalChart("q1", "Violations", "share", None, "", 4 * groups)
    >>> intervals_height(one) < intervals_height(many)
    True
    """
    size = text_size(width)
    return (lay_out(chart, size, 72.0 * width).end * _PITCH + _AROUND) * size / 72.0


def _marks(style: Style, bar: Bar, y: float) -> list[tuple[str, tuple[float, ...], float, dict[str, Any]]]:
    """Return what is drawn for a bar: its name in the legend, the shares, the height, and the style."""
    ours = {"color": (style.normal, 0.5), "linewidth": 4.0, "solid_capstyle": "butt", "markevery": [1]}
    ours |= {"marker": "o", "markersize": 4.5, "markeredgewidth": 0.0, "markerfacecolor": style.normal}
    found: list[tuple[str, tuple[float, ...], float, dict[str, Any]]]
    found = [("ours", (bar.low, bar.value, bar.high), y, ours)]
    if bar.printed is not None:
        printed = {"color": style.muted, "linewidth": 1.0, "marker": "|", "markersize": 5.0}
        found.append(("printed interval", (bar.printed.low, bar.printed.high), y + _BELOW, printed))
    if bar.exact is not None:
        # hollow and larger than the dot, so that both are seen where they meet
        exact = {"color": style.text, "linestyle": "", "marker": "D", "markersize": 6.0}
        found.append(("exact", (bar.exact,), y, exact | {"markerfacecolor": "none"}))
    return found


def _farthest(chart: IntervalChart, lines: Layout) -> float:
    shares = [chart.limit or 0.0]
    for *_, bar in lines.bars:
        shares += [bar.high, bar.value, bar.exact or 0.0, bar.printed.high if bar.printed else 0.0]
    return float(np.nanmax(shares)) or 1.0


def _upright(ax: Axes, lines: Layout, x: float, name: str, **marks: Any) -> None:
    """Draw an upright line in pieces, so that it does not run through the headings."""
    for top, bottom in lines.spans:
        ax.plot([x, x], [top, bottom], label=name, zorder=1, clip_on=False, **marks)


def lay_out(chart: IntervalChart, size: float, width: float) -> Layout:
    """Return where the lines of a chart lie, in text of this size on a figure this many points wide.

    >>> bars = (Bar("FPR", 0.03, 0.05, 0.04), Bar("FNR", 0.03, 0.05, 0.04))
    >>> lines = lay_out(IntervalChart("q1", "Violations", "share", None, "", (("LOF", bars),)), 9.0, 400.0)
    >>> lines.headings, [place for place, *_ in lines.bars], lines.spans
    (((0.5, 'LOF'),), [1.5, 2.5], ((1.0, 3.0),))
    """
    labels = {bar.label: wrap(bar.label, _WIDEST * width, size) for _, group in chart.groups for bar in group}
    widest = max((text_width(line, size) for lines in labels.values() for line in lines), default=0.0)
    room = width - widest - 3.0 * size
    bars, headings, spans = [], [], []
    top = 0.0
    for heading, group in chart.groups:
        for line in wrap(heading, room / _BOLD, size) if heading else []:
            headings.append((top + 0.5, line))
            top += 1.0
        start = top
        for bar in group:
            height = 1.0 + _NEXT * (len(labels[bar.label]) - 1)
            bars.append((top + height / 2.0, "\n".join(labels[bar.label]), bar))
            top += height
        spans.append((start, top))
        top += _APART
    return Layout(tuple(bars), tuple(headings), tuple(spans), room)
