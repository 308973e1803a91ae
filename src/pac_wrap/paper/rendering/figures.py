"""A study's charts as figures with their titles; the line chart is drawn here."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pac_wrap.paper.rendering.heatmap import heatmap_height, plot_heatmap
from pac_wrap.paper.rendering.intervals import intervals_height, plot_intervals
from pac_wrap.paper.rendering.text import percent_factor, text_size
from pac_wrap.paper.studies.study import BoxChart, Chart, ChartLine, HeatMap, IntervalChart, LineChart
from pac_wrap.report.figures.distributions import plot_boxes
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import (
    PlainTicks,
    Style,
    label_axes,
    new_axes,
    prepare,
    room,
    round_ticks,
    style,
    text_width,
    wrap,
)

_TITLE: Final = 1.1  # size of a title, in units of the text size
_WIDEST: Final = 0.3  # of the axes' width, for a label at the end of a line
_HEIGHT: Final = 0.8  # of the axes' height before the first layout that is left after it
_FARTHEST: Final = 0.8  # rows that a label may be moved from the end of its line
_ROW: Final = 1.3  # between two labels, in units of the text size
# of each class in turn; the classes differ in marker and dashes, too
_MARKERS: Final = {"normal": ("o", "^", "P"), "anomalous": ("s", "D", "X")}
_DASHES: Final = {"normal": ("-", (0, (6, 2))), "anomalous": ((0, (4, 1.5)), (0, (3, 1, 1, 1)))}


def draw(chart: Chart, *, dark: bool = False, width: float = 6.5) -> Figure:
    """Return a new figure of a chart, `width` inches wide and as high as it needs, under its title.

    >>> line = ChartLine("FPR", "normal", (0.04, 0.06), (0.03, 0.05), (0.05, 0.07))
    >>> shift = LineChart("shift", "A shift", "gamma", "rate (%)", (0.0, 0.2), (line,), 0.05, "promised")
    >>> draw(shift).get_suptitle()
    'A shift'
    """
    ax = _draw(chart, dark, width)
    figure = ax.get_figure(root=True)
    assert figure is not None
    size = _TITLE * text_size(width)
    lines = wrap(chart.title, 72.0 * width - 2.0 * size, size)
    height = float(figure.get_size_inches()[1]) + (1.3 * len(lines) + 0.5) * size / 72.0
    figure.set_size_inches(width, height)
    figure.suptitle(
        "\n".join(lines), x=0.5 * size / (72.0 * width), ha="left", size=size, color=style(dark).text
    )
    return figure


def _draw(chart: Chart, dark: bool, width: float) -> Axes:
    """Return the axes of a new figure on which a chart of any kind was drawn."""
    match chart:
        case IntervalChart():
            ax = new_axes(width, intervals_height(chart, width))
            return plot_intervals(chart, dark=dark, ax=ax)
        case HeatMap():
            return plot_heatmap(chart, dark=dark, ax=new_axes(width, heatmap_height(chart, width)))
        case LineChart():
            return plot_lines(chart, dark=dark, ax=new_axes(width))
        case BoxChart(certificate=certificate, relaxed=relaxed, normal=normal, anomalous=anomalous):
            return plot_boxes(certificate, relaxed, normal, anomalous, dark=dark, ax=new_axes(width))


def plot_lines(chart: LineChart, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw each line with its band, and the limit dashed; the labels stand at the ends where they fit.

    Shares are drawn in percent where the label of their axis says so: (%).

    >>> line = ChartLine("FPR", "normal", (0.04, 0.06), (0.03, 0.05), (0.05, 0.07))
    >>> shift = LineChart("shift", "Shift", "gamma", "rate (%)", (0.0, 0.2), (line,), 0.05, "promised")
    >>> [text.get_text() for text in plot_lines(shift).texts]
    ['promised', 'FPR']
    """
    ax, style = prepare(ax, dark)
    factor = percent_factor(chart.y_label)
    handles = [_limit(ax, style, chart, factor)]
    seen: list[str] = []
    for line in chart.lines:
        handles.append(_draw_line(ax, style, chart.x, line, factor, seen.count(line.kind)))
        seen.append(line.kind)
    if min(min(line.low) for line in chart.lines) >= 0.0:
        ax.set_ylim(bottom=0.0)
    ax.margins(x=0.02)
    ax.xaxis.set_major_locator(round_ticks(6))
    ax.yaxis.set_major_locator(round_ticks(6))
    ax.xaxis.set_major_formatter(PlainTicks())
    ax.yaxis.set_major_formatter(PlainTicks())
    label_axes(ax, style, chart.x_label, chart.y_label)
    if not _label_ends(ax, style, handles):
        Strip(ax, style).legend([*handles[1:], handles[0]], columns=2)
    return ax


def _limit(ax: Axes, style: Style, chart: LineChart, factor: float) -> Line2D:
    return ax.axhline(
        chart.limit * factor,
        color=style.text,
        linewidth=1.2,
        linestyle=(0, (2, 2)),
        zorder=1,
        label=chart.limit_label,
    )


def _draw_line(
    ax: Axes, style: Style, x: Sequence[float], line: ChartLine, factor: float, before: int
) -> Line2D:
    """Draw a line with its band, in the next dashes and marker of its class."""
    colour = style.of_class(line.kind)
    dashes, markers = _DASHES[line.kind], _MARKERS[line.kind]
    low, high = factor * np.array(line.low), factor * np.array(line.high)
    ax.fill_between(
        x,
        low,
        high,
        facecolor=(colour, 0.18),
        edgecolor=(colour, 0.7),
        linewidth=0.6,  # its edge tells a band from another without colour
        linestyle=dashes[before % len(dashes)],
        label=f"_{line.label} band",
    )
    (drawn,) = ax.plot(
        x,
        factor * np.array(line.values),
        color=colour,
        linestyle=dashes[before % len(dashes)],
        marker=markers[before % len(markers)],
        markersize=5.0,
        markerfacecolor=colour if line.kind == "normal" else "none",
        linewidth=1.6,
        label=line.label,
    )
    return drawn


def _label_ends(ax: Axes, style: Style, lines: Sequence[Line2D]) -> bool:
    """Write each label beside the end of its line and return whether that can be done without overlap."""
    low, high = ax.get_ylim()
    height = _HEIGHT * ax.bbox.height * 72.0 / ax.figure.dpi
    ends = [float(np.asarray(line.get_ydata(), dtype=float)[-1]) for line in lines]
    places = [(end - low) / (high - low) * height for end in ends]
    texts = [str(line.get_label()) for line in lines]
    row = _ROW * style.size
    shifts = [new - old for new, old in zip(moved_apart(places, row), places, strict=True)]
    narrow = all(text_width(text, style.size) <= _WIDEST * room(ax) for text in texts)
    if not narrow or max(map(abs, shifts)) > _FARTHEST * row:
        return False
    for text, end, shift in zip(texts, ends, shifts, strict=True):
        ax.annotate(
            text,
            (1.0, end),
            xycoords=ax.get_yaxis_transform(),
            xytext=(4.0, shift),
            textcoords="offset points",
            va="center",
            color=style.text,
            size=style.size,
        )
    return True


def moved_apart(places: Sequence[float], gap: float) -> list[float]:
    """Return places in the same order, at least `gap` apart and as near the given ones as possible.

    >>> moved_apart([10.0, 11.0, 40.0], 5.0)
    [8.0, 13.0, 40.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[list[int]] = []

    def start(group: list[int]) -> float:
        middle = sum(places[i] for i in group) / len(group)
        return middle - gap * (len(group) - 1) / 2.0

    for i in order:
        groups.append([i])
        while len(groups) > 1 and start(groups[-1]) < start(groups[-2]) + gap * len(groups[-2]):
            last = groups.pop()
            groups[-1] += last
    found = {i: start(group) + gap * rank for group in groups for rank, i in enumerate(group)}
    return [found[i] for i in range(len(places))]
