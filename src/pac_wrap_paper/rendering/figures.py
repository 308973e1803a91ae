"""A study's charts as figures with their titles; the heat map is drawn here."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from pac_wrap.report.figures.scores import plot_boxes
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import (
    Style,
    label_axes,
    new_axes,
    prepare,
    room,
    style,
    text_width,
    wrap,
)
from pac_wrap.report.numbers import minus, number
from pac_wrap_paper.rendering.panels import plot_panels
from pac_wrap_paper.rendering.rate_charts import intervals_height, plot_intervals, plot_lines
from pac_wrap_paper.rendering.text import AXES_SHARE, percent_factor, text_size
from pac_wrap_paper.studies.study import (
    BoxChart,
    Chart,
    HeatMap,
    IntervalChart,
    LineChart,
    PanelChart,
)

_USUAL: Final = 6.5  # inches
_WIDE: Final = 8.5
_TITLE: Final = 1.1  # size of a title, in units of the text size
# one hue from light to dark, so that it reads in grey
COLOURS: Final = LinearSegmentedColormap.from_list("blue", ["#EAF3FA", "#7FB8DA", "#0072B2", "#003A5C"])
_AROUND: Final = 6.0  # height of the ticks and the labels, in units of the text size
_LINE: Final = 1.25  # height of a line, in units of the text size
_MARGIN: Final = 4.0  # points that a column is wider than its texts
_SMALLEST: Final = 7.0  # points; a note is smaller than a value, but no smaller than this


def draw(chart: Chart, *, dark: bool = False, width: float | None = None) -> Figure:
    """Return a new figure of a chart, `width` inches wide and as high as it needs, under its title.

    By default it is 6.5 inches wide, and 8.5 with more than two panels side by side.

    >>> from pac_wrap_paper.studies.study import ChartLine
    >>> line = ChartLine("FPR", "normal", (0.04, 0.06), (0.03, 0.05), (0.05, 0.07))
    >>> shift = LineChart("shift", "A shift", "gamma", "rate (%)", (0.0, 0.2), (line,), 0.05, "promised")
    >>> draw(shift).get_suptitle()
    'A shift'
    """
    if width is None:
        width = _WIDE if isinstance(chart, PanelChart) and len(chart.panels) > 2 else _USUAL
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
        case PanelChart():
            return plot_panels(chart, dark=dark, width=width)


@dataclass(frozen=True, slots=True)
class CellTexts:
    """The texts of the values and of the notes, row by row; both are empty where they do not fit."""

    values: tuple[tuple[str, ...], ...]
    notes: tuple[tuple[str, ...], ...]
    size: float

    @property
    def small(self) -> float:
        """The size of a note in points."""
        return max(_SMALLEST, self.size - 1.5)

    @property
    def note_height(self) -> float:
        """The height of the tallest note in points."""
        lines = max((note.count("\n") + 1 for row in self.notes for note in row if note), default=0)
        return lines * _LINE * self.small

    @property
    def cell_height(self) -> float:
        """The height in points that a cell needs."""
        return (_LINE + 0.8) * self.size + self.note_height


def plot_heatmap(chart: HeatMap, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the value of each cell as a colour and a number, with its note below where there is room.

    Shares are drawn in percent where the label of the values says so: (%). A colour bar stands in for numbers
    that do not fit.

    >>> values, notes = ((0.1, 0.2), (0.3, 0.4)), (("S", "S"), ("O", "V"))
    >>> x, y, label = (0.01, 0.05), (0.05, 0.1), "abstained (%)"
    >>> ax = plot_heatmap(HeatMap("q4", "Abstained", "epsilon", "delta", x, y, values, label, notes))
    >>> [text.get_text() for text in ax.texts][:4]
    ['10.0', 'S', '20.0', 'S']
    """
    ax, style = prepare(new_axes(height=heatmap_height(chart)) if ax is None else ax, dark)
    values = percent_factor(chart.value_label) * np.array(chart.values, dtype=float)
    scale = Normalize(float(np.nanmin(values)), float(np.nanmax(values)))
    edges = (np.arange(len(axis) + 1) - 0.5 for axis in (chart.x, chart.y))
    mesh = ax.pcolormesh(*edges, values, cmap=COLOURS, norm=scale, edgecolor=style.faint, linewidth=0.5)
    cells = cell_texts(chart, style.size, room(ax))
    for row, texts in enumerate(cells.values):
        for column, text in enumerate(texts):
            note = cells.notes[row][column] if cells.notes else ""
            _write(ax, cells, column, row, text, note, ink(float(values[row, column]), scale, style))
    if not cells.values:
        bar = ax.figure.colorbar(mesh, ax=ax)
        bar.ax.tick_params(color=style.muted, labelcolor=style.text, labelsize=style.size)
        bar.outline.set_edgecolor(style.muted)
    _ticks(ax, style, chart)
    ax.spines[["left", "bottom"]].set_visible(False)
    label_axes(ax, style, chart.x_label, chart.y_label)
    Strip(ax, style).note(chart.value_label)
    return ax


def heatmap_height(chart: HeatMap, width: float = 6.5) -> float:
    """Return the height in inches that gives every cell room for its texts.

    >>> flat = HeatMap("q4", "", "x", "y", (1.0,), (1.0,), ((0.5,),), "share", (("",),))
    >>> tall = HeatMap("q4", "", "x", "y", (1.0,), (1.0, 2.0), ((0.5,), (0.6,)), "share", (("",), ("",)))
    >>> heatmap_height(flat) < heatmap_height(tall)
    True
    """
    size = text_size(width)
    inner = AXES_SHARE * 72.0 * width
    rows = len(chart.y) * cell_texts(chart, size, inner).cell_height
    labels = sum(len(wrap(label, inner, size)) for label in (chart.x_label, chart.value_label))
    return (rows + (_AROUND + 1.35 * labels) * size) / 72.0


def ink(value: float, scale: Normalize, style: Style) -> str:
    """Return black or white, whichever stands out more from the colour of a value."""
    if np.isnan(value):
        return style.text
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in COLOURS(float(scale(value)))[:3]
    )
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (light + 0.05) ** 2 > 0.05 * 1.05 else "#FFFFFF"


def _write(ax: Axes, cells: CellTexts, x: int, y: int, text: str, note: str, colour: str) -> None:
    """Write a value above the middle of its cell, as far as its note needs room below."""
    for words, size, up in (
        (text, cells.size, cells.note_height / 2.0 if note else 0.0),
        (note, cells.small, -0.6 * cells.size),
    ):
        if words:
            ax.annotate(
                words,
                (x, y),
                xytext=(0.0, up),
                textcoords="offset points",
                ha="center",
                va="center",
                color=colour,
                size=size,
            )


def _ticks(ax: Axes, style: Style, chart: HeatMap) -> None:
    """Label as many columns and rows as there is room for, evenly."""
    across, up = [number(value) for value in chart.x], [number(value) for value in chart.y]
    height = ax.bbox.height * 72.0 / ax.figure.dpi
    widest = max(text_width(text, style.size) for text in across) + style.size
    every = int(np.ceil(len(across) * widest / room(ax)))
    ax.set_xticks(range(0, len(across), every), across[::every])
    every = int(np.ceil(len(up) * 1.5 * style.size / height))
    ax.set_yticks(range(0, len(up), every), up[::every])
    ax.tick_params(length=0)


def cell_texts(chart: HeatMap, size: float, width: float) -> CellTexts:
    """Return what is written into a heat map's cells, in text of this size on axes this many points wide.

    >>> chart = HeatMap("q4", "", "", "", (0.1, 0.2), (0.05,), ((0.25, 0.0),), "(%)", (("[24, 26]", ""),))
    >>> cell_texts(chart, 9.0, 300.0)
    CellTexts(values=(('25.0', '0.0'),), notes=(('[24, 26]', ''),), size=9.0)
    >>> cell_texts(chart, 9.0, 60.0)
    CellTexts(values=(('25.0', '0.0'),), notes=(('[24,\\n26]', ''),), size=9.0)
    """
    column = width / max(len(chart.x), 1) - _MARGIN
    values = tuple(tuple(value_text(value, chart.value_label) for value in row) for row in chart.values)
    if not _fits([text for row in values for text in row], column, size):
        return CellTexts((), (), size)
    small = CellTexts((), (), size).small
    notes = tuple(tuple("\n".join(wrap(note, column, small)) for note in row) for row in chart.notes)
    lines = [line for row in notes for note in row for line in note.split("\n")]
    return CellTexts(values, notes if _fits(lines, column, small) else (), size)


def value_text(value: float, label: str) -> str:
    """Return a value: in percent with one decimal where the label says so, else with three digits.

    >>> value_text(0.1234, "abstained (%)"), value_text(1e-5, "abstained (%)"), value_text(0.12345, "AUC")
    ('12.3', '<0.1', '0.123')
    """
    if isnan(value):
        return "\N{EN DASH}"
    factor = percent_factor(label)
    if factor == 1.0:
        return minus(f"{value:z.3f}" if abs(value) <= 1.0 else f"{value:.3g}")
    return "<0.1" if 0.0 < factor * value < 0.05 else minus(f"{factor * value:z.1f}")


def _fits(texts: Sequence[str], width: float, size: float) -> bool:
    return all(text_width(text, size) <= width for text in texts)
