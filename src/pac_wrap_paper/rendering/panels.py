"""Panels side by side that share their rows: one for each table or group, a mark for each number."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pac_wrap.report.figures.styling import PlainTicks, Style, new_axes, prepare, room, round_ticks, wrap
from pac_wrap_paper.rendering.text import percent_factor, text_size
from pac_wrap_paper.studies.study import Marks, Panel, PanelChart

_PITCH, _PAIRED = 1.55, 1.9  # height of a row with one range or with two, in units of the text size
_MANY: Final = 30  # more rows are drawn closer, with smaller labels
_CLOSER, _SMALL = 1.3, 7.0
_AROUND: Final = 4.5  # the same for the ticks, and for each line of a label or of the legend
_LINE: Final = 1.6
_LEGEND: Final = 3  # entries in a line
_LABEL: Final = 0.9  # of a panel's width, for its label
_NARROW: Final = 250.0  # points; on a phone one panel stands above the other
_APART: Final = 0.34  # of a row, between marks that have ranges


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
    size, count, rows = text_size(width), len(chart.panels), len(chart.rows)
    narrow = room(new_axes(width)) < _NARROW
    shape, columns = ((count, 1), 1) if narrow else ((1, count), _LEGEND)
    ranges = max(sum(bool(marks.low) for marks in panel.marks) for panel in chart.panels)
    small, pitch = (size, _PITCH if ranges < 2 else _PAIRED) if rows <= _MANY else (_SMALL, _CLOSER)
    axes_labels = [wrap(panel.axis, _LABEL * 0.8 * 72.0 * width / shape[1], size) for panel in chart.panels]
    figure = Figure(figsize=(width, width), dpi=100, layout="constrained", facecolor="none")
    axes = figure.subplots(*shape, sharey=True, squeeze=False).ravel()
    handles: dict[str, Line2D] = {}
    for ax, panel, label in zip(axes, chart.panels, axes_labels, strict=True):
        ax.set_facecolor("none")
        style = replace(prepare(ax, dark)[1], size=size)
        _draw_panel(ax, style, panel, rows, handles)
        ax.set_xlabel("\n".join(label), size=size)
        ax.tick_params(axis="x", labelsize=size)
        ax.tick_params(axis="y", length=0, labelsize=small)
        ax.spines["left"].set_visible(False)
    axes[0].set_yticks(range(rows), chart.rows)
    axes[0].set_ylim(rows - 0.4, -0.6)
    if chart.filled_label:
        mark = Line2D([], [], linestyle="", marker="D", color=style.muted, label=chart.filled_label)
        handles[chart.filled_label] = mark
    around = _AROUND + _LINE * max(map(len, axes_labels))
    height = shape[0] * (rows * pitch * small + around * size) + -(-len(handles) // columns) * _LINE * size
    figure.set_figheight(height / 72.0)
    figure.legend(
        handles=list(handles.values()),
        loc="outside lower center",
        ncols=min(columns, len(handles)),
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
    ranges = [marks for marks in panel.marks if marks.low]
    farthest = 0.0
    for marks in panel.marks:
        look = _look(style, marks)
        at = np.arange(rows, dtype=np.float64)
        values = factor * np.array(marks.values)
        if marks.low:
            at += _APART * (ranges.index(marks) - (len(ranges) - 1) / 2)
            low, high = factor * np.array(marks.low), factor * np.array(marks.high)
            ax.hlines(at, low, high, color=look["color"], linewidth=1.4, alpha=0.6, zorder=2)
            farthest = max(farthest, float(np.nanmax(high, initial=0.0)))
        filled = np.array(marks.filled or (False,) * rows)
        for chosen, inside in ((~filled, look), (filled, look | {"markerfacecolor": look["color"]})):
            if chosen.any():
                ax.plot(values[chosen], at[chosen], linestyle="", zorder=3, clip_on=False, **inside)
        farthest = max(farthest, float(np.nanmax(values, initial=0.0)))
        handles.setdefault(marks.label, Line2D([], [], linestyle="", label=marks.label, **look))
    if panel.limit is not None:
        limit: dict[str, Any] = {"color": style.text, "linewidth": 1.1, "linestyle": (0, (4, 2.5))}
        ax.axvline(factor * panel.limit, zorder=1, **limit)
        farthest = max(farthest, factor * panel.limit)
        handles.setdefault(panel.limit_label, Line2D([], [], label=panel.limit_label, **limit))
    for row, note in enumerate(panel.notes):
        ax.text(
            1.0,
            row + _APART / 2,
            note,
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="center",
            color=style.muted,
            size=style.size,
        )
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
        "one": (style.anomalous, "o", 5.0, False),
        "own": (style.normal, "s", 5.0, False),
    }[marks.look]
    return {
        "color": colour,
        "marker": shape,
        "markersize": size,
        "markerfacecolor": colour if filled else "none",
        "markeredgewidth": 1.2,
    }
