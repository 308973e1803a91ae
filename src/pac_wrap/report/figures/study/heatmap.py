"""Values over a grid, as colours and as numbers."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize

from pac_wrap.experiments.study import HeatMap
from pac_wrap.report.figures.look import Style, label_axes, new_axes, number, prepare, room, text_width, wrap
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.study.grid import Grid, write_cells
from pac_wrap.report.figures.study.size import SHARE, text_size
from pac_wrap.report.figures.study.unit import unit

# one hue from light to dark, so that it reads in grey
COLOURS: Final = LinearSegmentedColormap.from_list("blue", ["#EAF3FA", "#7FB8DA", "#0072B2", "#003A5C"])
_AROUND: Final = 6.0  # height of the ticks and the labels, in units of the text size


def plot_heatmap(picture: HeatMap, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw the value of each cell as a colour and a number, with its note below where there is room.

    Shares are drawn in percent where the label of the values says so: (%). A colour bar stands in for numbers
    that do not fit.

    >>> values, notes = ((0.1, 0.2), (0.3, 0.4)), (("S", "S"), ("O", "V"))
    >>> x, y, label = (0.01, 0.05), (0.05, 0.1), "abstained (%)"
    >>> ax = plot_heatmap(HeatMap("q4", "Abstained", "epsilon", "delta", x, y, values, label, notes))
    >>> [text.get_text() for text in ax.texts][:4]
    ['10.0', 'S', '20.0', 'S']
    """
    ax, look = prepare(new_axes(height=heatmap_height(picture)) if ax is None else ax, dark)
    values = unit(picture.value_label) * np.array(picture.values, dtype=float)
    scale = Normalize(float(np.nanmin(values)), float(np.nanmax(values)))
    edges = (np.arange(len(axis) + 1) - 0.5 for axis in (picture.x, picture.y))
    mesh = ax.pcolormesh(*edges, values, cmap=COLOURS, norm=scale, edgecolor=look.faint, linewidth=0.5)
    cells = write_cells(picture, look.size, room(ax))
    for row, texts in enumerate(cells.values):
        for column, text in enumerate(texts):
            note = cells.notes[row][column] if cells.notes else ""
            _write(ax, cells, column, row, text, note, ink(float(values[row, column]), scale, look))
    if not cells.values:
        bar = ax.figure.colorbar(mesh, ax=ax)
        bar.ax.tick_params(color=look.muted, labelcolor=look.text, labelsize=look.size)
        bar.outline.set_edgecolor(look.muted)
    _ticks(ax, look, picture)
    ax.spines[["left", "bottom"]].set_visible(False)
    label_axes(ax, look, picture.x_label, picture.y_label)
    Strip(ax, look).note(picture.value_label)
    return ax


def heatmap_height(picture: HeatMap, width: float = 6.5) -> float:
    """Return the height in inches that gives every cell room for its texts.

    >>> flat = HeatMap("q4", "", "x", "y", (1.0,), (1.0,), ((0.5,),), "share", (("",),))
    >>> tall = HeatMap("q4", "", "x", "y", (1.0,), (1.0, 2.0), ((0.5,), (0.6,)), "share", (("",), ("",)))
    >>> heatmap_height(flat) < heatmap_height(tall)
    True
    """
    size = text_size(width)
    inner = SHARE * 72.0 * width
    rows = len(picture.y) * write_cells(picture, size, inner).cell_height
    labels = sum(len(wrap(label, inner, size)) for label in (picture.x_label, picture.value_label))
    return (rows + (_AROUND + 1.35 * labels) * size) / 72.0


def ink(value: float, scale: Normalize, look: Style) -> str:
    """Return black or white, whichever stands out more from the colour of a value."""
    if np.isnan(value):
        return look.text
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in COLOURS(float(scale(value)))[:3]
    )
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (light + 0.05) ** 2 > 0.05 * 1.05 else "#FFFFFF"


def _write(ax: Axes, cells: Grid, x: int, y: int, text: str, note: str, colour: str) -> None:
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


def _ticks(ax: Axes, look: Style, picture: HeatMap) -> None:
    """Label as many columns and rows as there is room for, evenly."""
    across, up = [number(value) for value in picture.x], [number(value) for value in picture.y]
    height = ax.bbox.height * 72.0 / ax.figure.dpi
    widest = max(text_width(text, look.size) for text in across) + look.size
    every = int(np.ceil(len(across) * widest / room(ax)))
    ax.set_xticks(range(0, len(across), every), across[::every])
    every = int(np.ceil(len(up) * 1.5 * look.size / height))
    ax.set_yticks(range(0, len(up), every), up[::every])
    ax.tick_params(length=0)
