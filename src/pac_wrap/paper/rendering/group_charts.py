"""Charts of groups under two rules: one line for each group, a panel for each rate, and its ceiling."""

from dataclasses import replace
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pac_wrap.method.metrics import Rate
from pac_wrap.paper.rendering.text import percent_factor, text_size
from pac_wrap.paper.studies.study import GroupChart, Pair
from pac_wrap.report.figures.styling import PlainTicks, Style, new_axes, prepare, room, round_ticks, style

_PITCH: Final = 1.9  # height of a line, in units of the text size
_MANY: Final = 30  # more lines are drawn closer, with smaller labels
_CLOSER, _SMALL = 1.3, 7.0
_AROUND: Final = 5.0  # the same for the ticks and the label below a panel
_LINES: Final = 1.7  # and for a line of the legend
_NARROW: Final = 250.0  # points
_APART: Final = 0.17  # of either mark from the middle of its line
_SIZE: Final = 5.0  # of a mark, in points
_CEILING: Final[dict[str, Any]] = {"linewidth": 1.2, "linestyle": (0, (4, 2.5))}


def plot_groups(chart: GroupChart, *, dark: bool = False, width: float = 6.5) -> Axes:
    """Draw both rates of each group with their intervals, filled where they are significantly too high.

    Shares are drawn in percent where the label of the panel says so: (%).

    >>> pair = Pair("machine 1", Rate(30, 100, 0.21, 0.4), Rate(4, 100, 0.01, 0.1), (True, False))
    >>> ax = plot_groups(GroupChart("smd", "Machines", (("false alarms (%)", 0.05, (pair,)),)))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['machine 1']
    """
    size = text_size(width)
    narrow = room(new_axes(width)) < _NARROW  # on a phone one panel stands above the other
    lines = max(len(pairs) for _, _, pairs in chart.panels)
    labels, pitch = (size, _PITCH) if lines <= _MANY else (_SMALL, _CLOSER)
    below = _LINES * (4 if narrow else 1)
    height = lines * pitch * labels + _AROUND * size
    figure = Figure(
        figsize=(width, ((len(chart.panels) if narrow else 1) * height + below * size) / 72.0),
        dpi=100,
        layout="constrained",
        facecolor="none",
    )
    shape = (len(chart.panels), 1) if narrow else (1, len(chart.panels))
    panels = figure.subplots(*shape, sharey=True, squeeze=False).ravel()
    for ax, (label, ceiling, pairs) in zip(panels, chart.panels, strict=True):
        ax.set_facecolor("none")
        colours = replace(prepare(ax, dark)[1], size=size)
        factor = percent_factor(label)
        for at, pair in enumerate(pairs):
            _draw(ax, colours, at, pair, factor)
        ax.axvline(factor * ceiling, color=colours.text, zorder=1, **_CEILING)
        ax.axhline(0.5, color=colours.faint, linewidth=1.0, zorder=0)
        ax.set_ylim(len(pairs) - 0.4, -0.6)
        ax.set_xlim(left=0.0)
        ax.xaxis.set_major_locator(round_ticks(5))
        ax.xaxis.set_major_formatter(PlainTicks())
        ax.tick_params(axis="y", length=0, labelsize=labels)
        ax.tick_params(axis="x", labelsize=size)
        ax.set_xlabel(label, size=size)
    first: Axes = panels[0]
    first.set_yticks(range(lines), [pair.label for pair in chart.panels[0][2]])
    figure.legend(
        handles=_legend(style(dark)),
        loc="outside lower left",
        ncols=1 if narrow else 4,
        frameon=False,
        fontsize=size,
        labelcolor=style(dark).text,
        handletextpad=0.4,
        columnspacing=1.4,
        borderaxespad=0.2,
    )
    return first


def _draw(ax: Axes, colours: Style, at: int, pair: Pair, factor: float) -> None:
    """Draw the two rates of a group, or say why its own rule promises none."""
    for rate, off, marker, colour, above in (
        (pair.one, -_APART, "o", colours.anomalous, pair.above[0]),
        (pair.own, _APART, "s", colours.normal, pair.above[1]),
    ):
        if rate is not None and rate.n:
            _mark(ax, at + off, rate, marker, colour, factor, filled=above)
    if pair.note:
        ax.annotate(
            pair.note,
            (1.0, at + 1.5 * _APART),
            xycoords=ax.get_yaxis_transform(),
            ha="right",
            va="center",
            color=colours.muted,
            size=colours.size,
        )


def _mark(ax: Axes, at: float, rate: Rate, marker: str, colour: str, factor: float, *, filled: bool) -> None:
    ax.plot([factor * rate.low, factor * rate.high], [at, at], color=colour, linewidth=1.2, label="_interval")
    ax.plot(
        [factor * rate.value],
        [at],
        marker,
        color=colour,
        markerfacecolor=colour if filled else "none",
        markersize=_SIZE,
        clip_on=False,
        zorder=3,
        label=f"_{'above' if filled else 'within'}",
    )


def _legend(colours: Style) -> list[Line2D]:
    def mark(marker: str, colour: str, label: str, *, filled: bool = False) -> Line2D:
        inside = colour if filled else "none"
        return Line2D(
            [], [], marker=marker, linestyle="", color=colour, mfc=inside, markersize=_SIZE, label=label
        )

    return [
        mark("o", colours.anomalous, "one rule for all"),
        mark("s", colours.normal, "a rule for each group"),
        mark("D", colours.muted, "filled: significantly above", filled=True),
        Line2D([], [], label="ceiling", **_CEILING, color=colours.text),
    ]
