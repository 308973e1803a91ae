"""Panels side by side that share their rows: one row for each table or detector, one mark for each number."""

from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pac_wrap.paper.rendering.text import percent_factor, text_size
from pac_wrap.paper.studies.study import Marks, Panel, PanelChart
from pac_wrap.report.figures.styling import PlainTicks, Style, prepare, round_ticks, wrap

_PITCH: Final = 1.55  # height of a row, in units of the text size
_AROUND: Final = 4.5  # the same for the ticks, and for each line of a label or of the legend
_LINE: Final = 1.6
_LEGEND: Final = 3  # entries in a line
_LABEL: Final = 0.9  # of a panel's width, for its label


def plot_panels(chart: PanelChart, *, dark: bool = False, width: float = 8.5) -> Axes:
    """Draw every panel over the same rows, with one legend below, and return the axes of the first.

    Shares are drawn in percent where the label of an axis says so: (%). Marks differ in shape, not only in
    colour.

    >>> marks = Marks("ours", "ours", (0.04, 0.06))
    >>> panel = Panel("rate (%)", (marks,), 0.05, "promised")
    >>> chart = PanelChart("t", "Tables", ("cardio", "letter"), (panel,))
    >>> [text.get_text() for text in plot_panels(chart).get_yticklabels()]
    ['cardio', 'letter']
    """
    size = text_size(width)
    names = dict.fromkeys(
        label
        for panel in chart.panels
        for label in [*(one.label for one in panel.marks), panel.limit_label]
        if label
    )
    inner = 0.8 * 72.0 * width / len(chart.panels)
    labels = [wrap(panel.axis, _LABEL * inner, size) for panel in chart.panels]
    lines = max(map(len, labels)) + -(-len(names) // _LEGEND)
    height = (len(chart.rows) * _PITCH + _AROUND + lines * _LINE) * size / 72.0
    figure = Figure(figsize=(width, height), dpi=100, layout="constrained", facecolor="none")
    axes = figure.subplots(1, len(chart.panels), sharey=True, squeeze=False)[0]
    handles: dict[str, Line2D] = {}
    for ax, panel, label in zip(axes, chart.panels, labels, strict=True):
        ax.set_facecolor("none")
        _, style = prepare(ax, dark)
        _draw_panel(ax, style, panel, len(chart.rows), handles)
        ax.set_xlabel("\n".join(label), size=size)
        ax.tick_params(labelsize=size)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    axes[0].set_yticks(range(len(chart.rows)), chart.rows)
    axes[0].set_ylim(len(chart.rows) - 0.4, -0.6)
    figure.legend(
        handles=list(handles.values()),
        loc="outside lower center",
        ncols=min(_LEGEND, len(handles)),
        frameon=False,
        fontsize=size,
        labelcolor=style.text,
    )
    first: Axes = axes[0]
    return first


def _draw_panel(ax: Axes, style: Style, panel: Panel, rows: int, handles: dict[str, Line2D]) -> None:
    factor = percent_factor(panel.axis)
    for row in range(0, rows, 2):  # every other row is shaded, to lead the eye from panel to panel
        ax.axhspan(row - 0.5, row + 0.5, color=style.faint, alpha=0.35, linewidth=0.0, zorder=0)
    farthest = 0.0
    for marks in panel.marks:
        look = _look(style, marks)
        values = factor * np.array(marks.values)
        if marks.low:
            low, high = factor * np.array(marks.low), factor * np.array(marks.high)
            ax.hlines(range(rows), low, high, color=look["color"], linewidth=1.4, alpha=0.6, zorder=2)
            farthest = max(farthest, float(np.nanmax(high)))
        ax.plot(values, range(rows), linestyle="", zorder=3, clip_on=False, **look)
        farthest = max(farthest, float(np.nanmax(values)))
        handles.setdefault(marks.label, Line2D([], [], linestyle="", label=marks.label, **look))
    if panel.limit is not None:
        limit: dict[str, Any] = {"color": style.text, "linewidth": 1.1, "linestyle": (0, (4, 2.5))}
        ax.axvline(factor * panel.limit, zorder=1, **limit)
        farthest = max(farthest, factor * panel.limit)
        handles.setdefault(panel.limit_label, Line2D([], [], label=panel.limit_label, **limit))
    ax.set_xlim(0.0, 1.04 * farthest if farthest else 1.0)
    ax.xaxis.set_major_locator(round_ticks(5))
    ax.xaxis.set_major_formatter(PlainTicks())


def _look(style: Style, marks: Marks) -> dict[str, Any]:
    """Return colour, shape and filling of marks, which tell them apart without colour as well."""
    colour, shape, size, filled = {
        "ours": (style.normal, "o", 5.0, True),
        "second": (style.anomalous, "s", 5.0, False),
        "exact": (style.text, "D", 5.5, False),
        "other": (style.anomalous, "^", 5.0, True),
        "another": (style.muted, "x", 5.0, True),
    }[marks.look]
    return {
        "color": colour,
        "marker": shape,
        "markersize": size,
        "markerfacecolor": colour if filled else "none",
        "markeredgewidth": 1.2,
    }
