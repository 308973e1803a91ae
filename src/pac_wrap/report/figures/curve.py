"""The certified trade-off: which FNR can be promised with which FPR, at every threshold at once."""

import numpy as np
from matplotlib.axes import Axes

from pac_wrap.errors import InputError
from pac_wrap.method.curves.curve import Curve
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import decade_below, label_axes, log_ticks, prepare
from pac_wrap.report.words.numbers import ceiling, floored


def plot_curve(curve: Curve, ax: Axes | None = None, *, dark: bool = False) -> Axes:
    """Draw the bound of the FNR against that of the FPR, a point for every threshold; all hold at once.

    >>> from pac_wrap import certify_curve
    >>> ax = plot_curve(certify_curve(range(500), range(400, 900)))
    >>> ax.get_xscale()
    'log'
    """
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
