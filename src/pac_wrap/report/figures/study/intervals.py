"""Rates with intervals, one line each, next to what is exact and what was printed."""

from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pac_wrap.experiments.study import Bar, Intervals
from pac_wrap.report.figures.look import Style, new_axes, prepare, room, wrap
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.study.lines import Lines, lay_out
from pac_wrap.report.figures.study.size import SHARE, text_size
from pac_wrap.report.figures.study.unit import unit
from pac_wrap.report.figures.ticks import PlainTicks, round_ticks

_PITCH: Final = 1.7  # height of a line, in units of the text size
_AROUND: Final = 7.5  # the same for the legend, the ticks and the label below
_BELOW: Final = 0.3  # how far the printed interval lies below ours, in lines


def plot_intervals(picture: Intervals, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw each rate as a dot on its interval, with a diamond at the exact value and a bracket as printed.

    Shares are drawn in percent where the label of the axis says so: (%).

    >>> groups = (("synthetic, LOF", (Bar("FPR 50 %", 0.034, 0.052, 0.043, exact=0.0433),)),)
    >>> ax = plot_intervals(Intervals("q1", "Violations", "violations (%)", 0.05, "promised", groups))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['ours, with its interval', 'exact value', 'promised']
    """
    ax, look = prepare(new_axes(height=intervals_height(picture)) if ax is None else ax, dark)
    times = unit(picture.axis)
    lines = lay_out(picture, look.size, room(ax) / SHARE)
    for y, heading in lines.headings:
        beside = ax.get_yaxis_transform()
        ax.text(
            0.0, y, heading, va="center", color=look.text, size=look.size, weight="bold", transform=beside
        )
    called = {"ours": picture.value_label, "exact": picture.exact_label}
    handles: dict[str, Line2D] = {}
    for y, _, bar in lines.bars:
        for name, x, place, mark in _marks(look, bar, y):
            (drawn,) = ax.plot([share * times for share in x], [place] * len(x), label=f"_{name}", **mark)
            drawn.set_clip_on(False)
            handles.setdefault(name, Line2D([], [], label=called.get(name, name), **mark))
    ax.set_xlim(0.0, 1.04 * times * _farthest(picture, lines))
    ax.set_ylim(lines.end + 0.2, -0.1)
    ax.set_yticks([y for y, *_ in lines.bars], [label for _, label, _ in lines.bars])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    _upright(ax, lines, 0.0, "_zero", color=look.muted, linewidth=0.8)
    if picture.limit is not None:
        limit: dict[str, Any] = {"color": look.text, "linewidth": 1.2, "linestyle": (0, (4, 2.5))}
        _upright(ax, lines, picture.limit * times, "_limit", **limit)
        handles["limit"] = Line2D([], [], label=picture.limit_label, **limit)
    ax.xaxis.set_major_locator(round_ticks(6))
    ax.xaxis.set_major_formatter(PlainTicks())
    ax.set_xlabel("\n".join(wrap(picture.axis, min(room(ax), lines.room), look.size)))
    if len(handles) > 1:  # a single kind of mark is what the axis says
        Strip(ax, look).legend(list(handles.values()), columns=len(handles) if lines.room > room(ax) else 1)
    return ax


def intervals_height(picture: Intervals, width: float = 6.5) -> float:
    """Return the height in inches that gives every line its room.

    >>> groups = (("synthetic", (Bar("FPR", 0.03, 0.05, 0.04),)),)
    >>> one = Intervals("q1", "Violations", "share", None, "", groups)
    >>> many = Intervals("q1", "Violations", "share", None, "", 4 * groups)
    >>> intervals_height(one) < intervals_height(many)
    True
    """
    size = text_size(width)
    return (lay_out(picture, size, 72.0 * width).end * _PITCH + _AROUND) * size / 72.0


def _marks(look: Style, bar: Bar, y: float) -> list[tuple[str, tuple[float, ...], float, dict[str, Any]]]:
    """Return what is drawn for a bar: its name in the legend, the shares, the height, and the look."""
    ours = {"color": (look.normal, 0.5), "linewidth": 4.0, "solid_capstyle": "butt", "markevery": [1]}
    ours |= {"marker": "o", "markersize": 4.5, "markeredgewidth": 0.0, "markerfacecolor": look.normal}
    found: list[tuple[str, tuple[float, ...], float, dict[str, Any]]]
    found = [("ours", (bar.low, bar.value, bar.high), y, ours)]
    if bar.printed is not None:
        printed = {"color": look.muted, "linewidth": 1.0, "marker": "|", "markersize": 5.0}
        found.append(("printed interval", (bar.printed.low, bar.printed.high), y + _BELOW, printed))
    if bar.exact is not None:
        # hollow and larger than the dot, so that both are seen where they meet
        exact = {"color": look.text, "linestyle": "", "marker": "D", "markersize": 6.0}
        found.append(("exact", (bar.exact,), y, exact | {"markerfacecolor": "none"}))
    return found


def _farthest(picture: Intervals, lines: Lines) -> float:
    shares = [picture.limit or 0.0]
    for *_, bar in lines.bars:
        shares += [bar.high, bar.value, bar.exact or 0.0, bar.printed.high if bar.printed else 0.0]
    return float(np.nanmax(shares)) or 1.0


def _upright(ax: Axes, lines: Lines, x: float, name: str, **look: Any) -> None:
    """Draw an upright line in pieces, so that it does not run through the headings."""
    for top, bottom in lines.spans:
        ax.plot([x, x], [top, bottom], label=name, zorder=1, clip_on=False, **look)
