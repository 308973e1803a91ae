"""What can be promised: which FNR with which FPR at every threshold, and which ceilings labels can keep."""

from itertools import pairwise
from math import floor, log10
from typing import Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from pac_wrap.base.arguments import check_count
from pac_wrap.errors import InputError
from pac_wrap.method.curves.curve import Curve
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import Style, decade_below, label_axes, log_ticks, prepare
from pac_wrap.report.numbers import ceiling, confidence, floored
from pac_wrap.tails.bounds import error_budget, upper_bound

_LARGEST: Final = 0.5
_POINTS: Final = 160
_DASHES: Final = {"normal": "-", "anomalous": (0, (6, 2))}
_MARKERS: Final = {"normal": "o", "anomalous": "X"}


def plot_curve(curve: Curve, ax: Axes | None = None, *, dark: bool = False) -> Axes:
    """Draw the bound of the FNR against that of the FPR, a point for every threshold; all hold at once."""
    _, fpr, fnr = curve.steps()
    known = (fpr < 1.0) & (fnr < 1.0)
    if not known.any():
        raise InputError("no threshold bounds both rates below 1, so there is no trade-off to draw")
    ax, style = prepare(ax, dark)
    x, y = 100.0 * fpr[known][::-1], 100.0 * fnr[known][::-1]
    # the corners alone, of thousands of thresholds: the least y of each x, the least x of each y
    corners = np.append(x[1:] > x[:-1], True)
    x, y = x[corners], y[corners]
    corners = np.append(True, y[1:] < y[:-1])
    corners[-1] = True
    x, y = x[corners], y[corners]
    (line,) = ax.step(
        x, y, where="post", color=style.text, linewidth=1.6, label="certified at every threshold"
    )
    ax.fill_between(x, y, 100.0, step="post", color=style.faint, alpha=0.5, linewidth=0.0)
    best = int(np.argmin(np.maximum(x, y)))
    larger = ceiling(max(x[best], y[best]) / 100.0)
    (mark,) = ax.plot(
        [x[best]],
        [y[best]],
        linestyle="",
        marker="o",
        markersize=6,
        markerfacecolor="none",
        markeredgecolor=style.text,
        label=f"both at most {larger}",
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(decade_below(x.min()), 100.0)
    ax.set_ylim(decade_below(y.min()), 100.0)
    log_ticks(ax.xaxis)
    log_ticks(ax.yaxis)
    ax.grid(color=style.faint, linewidth=0.6)
    label_axes(
        ax,
        style,
        f"FPR at most (% of normal points, n = {curve.normal.n:,})",
        f"FNR at most (% of anomalies, n = {curve.anomalous.n:,})",
    )
    strip = Strip(ax, style)
    strip.legend([line, mark], columns=2)
    strip.note(f"all bounds hold at once, both rates together at confidence {floored(curve.confidence)}")
    return ax


def plot_affordable(
    normal: int | None,
    anomalous: int | None,
    delta: float = 0.05,
    *,
    dark: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw which ceilings so many labels of each class can keep, and how many errors they may then show.

    A line starts at the least ceiling, which tolerates no error, and rises towards the ceiling itself, which
    only endless labels could show.
    """
    sizes = {
        name: check_count(name, n)
        for name, n in (("normal", normal), ("anomalous", anomalous))
        if n is not None
    }
    least = {name: upper_bound(0, n, delta) for name, n in sizes.items()}
    drawn = {name: rate for name, rate in least.items() if rate < _LARGEST}
    if not drawn:
        raise InputError(
            "so few labels keep no ceiling below 50 %, so there is nothing to draw; label at least"
            f" {_fewest(delta)} of a class"
        )
    ax, style = prepare(ax, dark)
    handles: list[Artist] = [_line(ax, style, name, sizes[name], rate, delta) for name, rate in drawn.items()]
    ax.set_xscale("log")
    # from a power of ten on, so that two numbers at least stand below the axis
    ax.set_xlim(10.0 ** floor(log10(100.0 * min(drawn.values()))), 100.0 * _LARGEST)
    ax.set_ylim(-2.0, 100.0)
    ax.grid(color=style.faint, linewidth=0.6)
    log_ticks(ax.xaxis)
    label_axes(
        ax,
        style,
        f"ceiling (%), each at confidence {confidence(delta)}",
        "errors tolerated among the labels,\nin % of the ceiling",
    )
    strip = Strip(ax, style)
    for name, rate in reversed(least.items()):
        strip.note(f"{name}: ceilings from {ceiling(rate)} on")
    strip.legend(handles, columns=len(handles))
    return ax


def _line(ax: Axes, style: Style, name: str, n: int, least: float, delta: float) -> Artist:
    """Draw one class: the budget in percent of what the ceiling allows, at the ceiling where each begins."""
    rates = np.geomspace(least, _LARGEST, _POINTS)
    budgets = [error_budget(n, float(rate), delta) or 0 for rate in rates]
    # each budget where it begins: between two, the tolerated share of the ceiling only falls
    steps = [(0, least), *((after, 0.0) for before, after in pairwise(budgets) if after > before)]
    starts = [(errors, start or upper_bound(errors, n, delta)) for errors, start in steps]
    x = [100.0 * start for _, start in starts]
    y = [100.0 * errors / (n * start) for errors, start in starts]
    (line,) = ax.plot(
        x,
        y,
        color=style.of_class(name),
        linestyle=_DASHES[name],
        marker=_MARKERS[name],
        markevery=[0],
        markersize=6.0,
        linewidth=1.6,
        clip_on=False,
        label=f"{name}, n = {n:,}",
    )
    return line


def _fewest(delta: float) -> int:
    return next(n for n in range(1, 10_000) if upper_bound(0, n, delta) < _LARGEST)
