"""Error rates and their exact upper bounds at every threshold, with the ceilings and the threshold chosen."""

from math import floor, inf, log10
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from pac_wrap.binomial import upper_bound
from pac_wrap.certificate import Certificate
from pac_wrap.inputs import as_scores
from pac_wrap.report.figures.curve import Curve, curves_of
from pac_wrap.report.figures.look import Style, label_axes, prepare
from pac_wrap.report.figures.rule import draw_flags, flags_of, marks, shade, single_of
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.ticks import log_ticks
from pac_wrap.report.figures.window import Window
from pac_wrap.report.wording import ceiling, confidence
from pac_wrap.thresholds import Thresholds

_GRID = 190


def plot_rates(
    certificate: Certificate,
    normal: ArrayLike,
    anomalous: ArrayLike,
    *,
    dark: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw FPR and FNR against the threshold, each with its exact upper bound, eq. (5), and its ceiling.

    The bounds use the deltas of the certificate and are pointwise: each holds for one threshold that was
    fixed beforehand. A dot (FPR) and a square (FNR) mark the bound at the thresholds of the rule.

    >>> from pac_wrap import calibrate
    >>> normal, anomalous = np.linspace(0, 5, 200), np.linspace(3, 9, 200)
    >>> ax = plot_rates(calibrate(normal, anomalous), normal, anomalous)
    >>> [text.get_text() for text in ax.get_legend().get_texts()][:3]
    ['FPR, n = 200', 'bound at 95 %', 'ceiling 5 %']
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    ax, look = prepare(ax, dark)
    rule = certificate.rule
    window = Window.around((normal, anomalous), marks(rule))
    window.apply(ax, look)
    chosen = [mark for mark in marks(rule) if mark is not None and mark in window]
    grid = np.union1d(np.linspace(window.low, window.high, _GRID), chosen)
    handles: list[Artist] = []
    lowest = []
    for curve in curves_of(certificate, normal, anomalous):
        if curve.scores.size:
            handles += _draw_curve(ax, look, curve, grid, rule)
            lowest.append(curve.bounds(grid).min())
        if curve.ceiling is not None:
            handles.append(_draw_ceiling(ax, look, curve, asked=certificate.certified is None))
            lowest.append(curve.ceiling)
    ax.set_yscale("log")
    ax.set_ylim(10.0 ** floor(log10(100.0 * min(lowest))), 130.0)
    log_ticks(ax.yaxis)
    shade(ax, look, rule)
    label_axes(ax, look, "threshold on the score (bounds are pointwise)", "error rate (% of class)")
    strip = Strip(ax, look)
    draw_flags(ax, look, strip, window, flags_of(rule, window.span), normal, anomalous)
    strip.legend(handles, columns=2)
    return ax


def _draw_curve(
    ax: Axes, look: Style, curve: Curve, grid: NDArray[np.float64], rule: Thresholds
) -> list[Artist]:
    fpr, n = curve.name == "FPR", curve.scores.size
    line: dict[str, Any] = {
        "color": look.normal if fpr else look.anomalous,
        "linestyle": "-" if fpr else (0, (4, 1.5)),
    }
    errors, bounds = curve.errors(grid), 100.0 * curve.bounds(grid)
    shares = 100.0 * errors / n
    (rate,) = ax.plot(grid, shares, label=f"{curve.name}, n = {n:,}", linewidth=1.8, **line)
    (bound,) = ax.plot(grid, bounds, label=f"bound at {confidence(curve.delta)}", linewidth=0.9, **line)
    ax.fill_between(grid, shares, bounds, where=errors > 0, color=line["color"], alpha=0.15, linewidth=0.0)
    tau = rule.alarm_from if fpr else rule.clear_below
    tau = single_of(rule) if rule.single else tau
    if tau is not None and abs(tau) < inf:
        ax.plot(
            [tau],
            [100.0 * upper_bound(int(curve.errors(tau)), n, curve.delta)],
            marker="o" if fpr else "s",
            markersize=5 if fpr else 9,
            markerfacecolor=line["color"] if fpr else "none",
            markeredgecolor=line["color"],
            zorder=4,
            label=f"_{curve.name} chosen",
        )
    return [rate, bound]


def _draw_ceiling(ax: Axes, look: Style, curve: Curve, *, asked: bool) -> Artist:
    fpr = curve.name == "FPR"
    assert curve.ceiling is not None
    return ax.axhline(
        100.0 * curve.ceiling,
        color=look.normal if fpr else look.anomalous,
        linewidth=1.5,
        linestyle=(0, (2, 6)) if fpr else (5, (4, 4)),  # at the same height, they show in turn
        label=f"{'asked' if asked else 'ceiling'} {ceiling(curve.ceiling)}",
    )
