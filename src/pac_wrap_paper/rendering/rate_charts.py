"""Charts of rates against a limit: intervals, one line each, or curves with bands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import (
    PlainTicks,
    Style,
    label_axes,
    new_axes,
    prepare,
    room,
    round_ticks,
    text_width,
    wrap,
)
from pac_wrap_paper.rendering.text import AXES_SHARE, percent_factor, text_size
from pac_wrap_paper.studies.study import Bar, ChartLine, IntervalChart, LineChart

_PITCH: Final = 1.7  # height of a line, in units of the text size
_AROUND: Final = 7.5  # the same for the legend, the ticks and the label below
_BELOW: Final = 0.3  # how far the printed interval lies below ours, in lines
_WIDEST_BAR: Final = 0.35  # of the width of the figure, for the label of a bar
_NEXT: Final = 0.8  # a further line of the same label is closer
_BOLD: Final = 1.15  # a heading is wider than plain text
_APART: Final = 0.35  # between two groups
_WIDEST_END: Final = 0.3  # of the axes' width, for a label at the end of a line
_HEIGHT: Final = 0.8  # of the axes' height before the first layout that is left after it
_FARTHEST: Final = 0.8  # rows that a label may be moved from the end of its line
_ROW: Final = 1.3  # between two labels, in units of the text size
# of each class in turn; the classes differ in marker and dashes, too
_MARKERS: Final = {"normal": ("o", "^", "P"), "anomalous": ("s", "D", "X")}
_DASHES: Final = {"normal": ("-", (0, (6, 2))), "anomalous": ((0, (4, 1.5)), (0, (3, 1, 1, 1)))}


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
    labels = {
        bar.label: wrap(bar.label, _WIDEST_BAR * width, size) for _, group in chart.groups for bar in group
    }
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
    narrow = all(text_width(text, style.size) <= _WIDEST_END * room(ax) for text in texts)
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
