"""Rates against a quantity, with bands and a limit."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pac_wrap.experiments.study import Curve, Curves
from pac_wrap.report.figures.look import Style, label_axes, prepare, room, text_width
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.study.ends import spread
from pac_wrap.report.figures.study.unit import unit
from pac_wrap.report.figures.ticks import PlainTicks, round_ticks

_WIDEST: Final = 0.3  # of the axes' width, for a label at the end of a line
_HEIGHT: Final = 0.8  # of the axes' height before the first layout that is left after it
_FARTHEST: Final = 0.8  # rows that a label may be moved from the end of its line
_ROW: Final = 1.3  # between two labels, in units of the text size
# of each class in turn; the classes differ in marker and dashes, too
_MARKERS: Final = {"normal": ("o", "^", "P"), "anomalous": ("s", "D", "X")}
_DASHES: Final = {"normal": ("-", (0, (6, 2))), "anomalous": ((0, (4, 1.5)), (0, (3, 1, 1, 1)))}


def plot_curves(picture: Curves, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw each curve with its band, and the limit dashed; the labels stand at the ends where they fit.

    Shares are drawn in percent where the label of their axis says so: (%).

    >>> curve = Curve("FPR", "normal", (0.04, 0.06), (0.03, 0.05), (0.05, 0.07))
    >>> shift = Curves("shift", "Shift", "gamma", "rate (%)", (0.0, 0.2), (curve,), 0.05, "promised")
    >>> [text.get_text() for text in plot_curves(shift).texts]
    ['promised', 'FPR']
    """
    ax, look = prepare(ax, dark)
    times = unit(picture.y_label)
    handles = [_limit(ax, look, picture, times)]
    seen: list[str] = []
    for curve in picture.curves:
        handles.append(_draw(ax, look, picture.x, curve, times, seen.count(curve.kind)))
        seen.append(curve.kind)
    if min(min(curve.low) for curve in picture.curves) >= 0.0:
        ax.set_ylim(bottom=0.0)
    ax.margins(x=0.02)
    ax.xaxis.set_major_locator(round_ticks(6))
    ax.yaxis.set_major_locator(round_ticks(6))
    ax.xaxis.set_major_formatter(PlainTicks())
    ax.yaxis.set_major_formatter(PlainTicks())
    label_axes(ax, look, picture.x_label, picture.y_label)
    if not _label_ends(ax, look, handles):
        Strip(ax, look).legend([*handles[1:], handles[0]], columns=2)
    return ax


def _limit(ax: Axes, look: Style, picture: Curves, times: float) -> Line2D:
    return ax.axhline(
        picture.limit * times,
        color=look.text,
        linewidth=1.2,
        linestyle=(0, (2, 2)),
        zorder=1,
        label=picture.limit_label,
    )


def _draw(ax: Axes, look: Style, x: Sequence[float], curve: Curve, times: float, before: int) -> Line2D:
    """Draw a curve, in the dashes of its class that those before it have left."""
    colour = look.of_class(curve.kind)
    dashes, markers = _DASHES[curve.kind], _MARKERS[curve.kind]
    low, high = times * np.array(curve.low), times * np.array(curve.high)
    ax.fill_between(
        x,
        low,
        high,
        facecolor=(colour, 0.18),
        edgecolor=(colour, 0.7),
        linewidth=0.6,  # its edge tells a band from another without colour
        linestyle=dashes[before % len(dashes)],
        label=f"_{curve.label} band",
    )
    (line,) = ax.plot(
        x,
        times * np.array(curve.values),
        color=colour,
        linestyle=dashes[before % len(dashes)],
        marker=markers[before % len(markers)],
        markersize=5.0,
        markerfacecolor=colour if curve.kind == "normal" else "none",
        linewidth=1.6,
        label=curve.label,
    )
    return line


def _label_ends(ax: Axes, look: Style, lines: Sequence[Line2D]) -> bool:
    """Write each label beside the end of its line and return whether that can be done without overlap."""
    low, high = ax.get_ylim()
    height = _HEIGHT * ax.bbox.height * 72.0 / ax.figure.dpi
    ends = [float(np.asarray(line.get_ydata(), dtype=float)[-1]) for line in lines]
    places = [(end - low) / (high - low) * height for end in ends]
    texts = [str(line.get_label()) for line in lines]
    row = _ROW * look.size
    shifts = [new - old for new, old in zip(spread(places, row), places, strict=True)]
    narrow = all(text_width(text, look.size) <= _WIDEST * room(ax) for text in texts)
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
            color=look.text,
            size=look.size,
        )
    return True
