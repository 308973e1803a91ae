"""Error rates with their ceilings: exact bounds at every threshold, and what held-out points measure."""

from dataclasses import dataclass
from math import inf
from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores, as_scores
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.metrics import Metrics, Rate, upper_bounds
from pac_wrap.method.rule import Rule
from pac_wrap.report.figures.score_axis import apply_window, draw_flags, flags_of, marks, shade
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import (
    Style,
    decade_below,
    label_axes,
    log_ticks,
    percent,
    prepare,
    room,
    wrap,
)
from pac_wrap.report.subject import error_rates
from pac_wrap.report.window import Window
from pac_wrap.report.words.numbers import ceiling, confidence
from pac_wrap.tails.bounds import upper_bound

_GRID: Final = 190


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
    ax, style = prepare(ax, dark)
    rule = certificate.rule
    window = Window.around((normal, anomalous), marks(rule))
    apply_window(window, ax, style)
    chosen = [mark for mark in marks(rule) if mark is not None and mark in window]
    grid = np.union1d(np.linspace(window.low, window.high, _GRID), chosen)
    handles: list[Artist] = []
    lowest = []
    for curve in _curves(certificate, normal, anomalous):
        if curve.scores.size:
            handles += _draw_curve(ax, style, curve, grid, rule)
            lowest.append(curve.bounds(grid).min())
        if curve.ceiling is not None:
            handles.append(_draw_ceiling(ax, style, curve, asked=certificate.certified is None))
            lowest.append(curve.ceiling)
    ax.set_yscale("log")
    ax.set_ylim(decade_below(100.0 * min(lowest)), 130.0)
    log_ticks(ax.yaxis)
    shade(ax, style, rule)
    label_axes(ax, style, "threshold on the score (bounds are pointwise)", "error rate (% of class)")
    strip = Strip(ax, style)
    draw_flags(ax, style, strip, window, flags_of(rule, window.span), normal, anomalous)
    strip.legend(handles, columns=2)
    return ax


@dataclass(frozen=True, slots=True)
class ErrorCurve:
    """One error rate as a threshold moves: the sorted scores it is counted on, its ceiling and its delta."""

    name: str
    scores: Scores
    ceiling: float | None
    delta: float

    def errors(self, thresholds: ArrayLike) -> NDArray[np.intp]:
        """Return how many scores each threshold misjudges: normal ones reach it, anomalous ones do not."""
        below = np.searchsorted(self.scores, thresholds, side="left")
        return self.scores.size - below if self.name == "FPR" else below

    def bounds(self, thresholds: ArrayLike) -> NDArray[np.float64]:
        """Return the exact upper bound of the rate at each threshold."""
        return upper_bounds(self.errors(thresholds), self.scores.size, self.delta)


def _curves(certificate: Certificate, normal: Scores, anomalous: Scores) -> tuple[ErrorCurve, ErrorCurve]:
    """Return the FPR on the normal and the FNR on the anomalous scores, with what the certificate says."""
    kept = certificate.certified or certificate.guarantee
    fpr, fnr = certificate.normal.budget, certificate.anomalous.budget
    return (
        ErrorCurve("FPR", np.sort(normal), kept.max_fpr, kept.delta_fpr if fpr is None else fpr.delta),
        ErrorCurve("FNR", np.sort(anomalous), kept.max_fnr, kept.delta_fnr if fnr is None else fnr.delta),
    )


def _draw_curve(
    ax: Axes, style: Style, curve: ErrorCurve, grid: NDArray[np.float64], rule: Rule
) -> list[Artist]:
    fpr, n = curve.name == "FPR", curve.scores.size
    line: dict[str, Any] = {
        "color": style.normal if fpr else style.anomalous,
        "linestyle": "-" if fpr else (0, (4, 1.5)),
    }
    errors, bounds = curve.errors(grid), 100.0 * curve.bounds(grid)
    shares = 100.0 * errors / n
    (rate,) = ax.plot(grid, shares, label=f"{curve.name}, n = {n:,}", linewidth=1.8, **line)
    (bound,) = ax.plot(grid, bounds, label=f"bound at {confidence(curve.delta)}", linewidth=0.9, **line)
    ax.fill_between(grid, shares, bounds, where=errors > 0, color=line["color"], alpha=0.15, linewidth=0.0)
    tau = rule.anomaly_from if fpr else rule.normal_below
    if abs(tau) < inf:
        ax.plot(
            [tau],
            [100.0 * upper_bound(int(curve.errors(tau)), n, curve.delta)],
            linestyle="",
            marker="o" if fpr else "s",
            markersize=5 if fpr else 9,
            markerfacecolor=line["color"] if fpr else "none",
            markeredgecolor=line["color"],
            zorder=4,
            label=f"_{curve.name} chosen",
        )
    return [rate, bound]


def _draw_ceiling(ax: Axes, style: Style, curve: ErrorCurve, *, asked: bool) -> Artist:
    fpr = curve.name == "FPR"
    assert curve.ceiling is not None
    return ax.axhline(
        100.0 * curve.ceiling,
        color=style.normal if fpr else style.anomalous,
        linewidth=1.5,
        linestyle=(0, (2, 6)) if fpr else (5, (4, 4)),  # at the same height, they show in turn
        label=f"{'asked' if asked else 'ceiling'} {ceiling(curve.ceiling)}",
    )


def plot_held_out(
    certificate: Certificate, metrics: Metrics, *, dark: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw FPR, FNR and the share abstained per class, each with its exact interval, next to the ceilings.

    The axis is logarithmic: a rate of 0 is drawn as a mark at the left edge. A rate that is
    significantly above its ceiling is called out.

    >>> from pac_wrap import calibrate, evaluate
    >>> certificate = calibrate(range(100), range(50, 150))
    >>> metrics = evaluate(certificate.verdicts([0, 60, 120]), [0, 0, 1])
    >>> ax = plot_held_out(certificate, metrics)
    >>> [text.get_text() for text in ax.texts][0]
    'FPR 0 % [0, 84.2], n = 2; ceiling 5 %'
    """
    ax, style = prepare(ax, dark)
    certified = certificate.certified
    ceilings = (None, None) if certified is None else (certified.max_fpr, certified.max_fnr)
    over = [one.name for one in error_rates(certificate, metrics) if one.exceeded]
    rows: list[tuple[str, str, Rate, float | None]] = [
        ("FPR", "normal", metrics.fpr, ceilings[0]),
        ("FNR", "anomalous", metrics.fnr, ceilings[1]),
        ("abstained, normal", "normal", metrics.abstained_normal, None),
        ("abstained, anomalous", "anomalous", metrics.abstained_anomalous, None),
    ]
    drawn = [value for *_, rate, top in rows for value in (rate.value, rate.high, top or 0.0) if value > 0.0]
    left = decade_below(100.0 * min(drawn))
    ax.set_xscale("log")
    ax.set_xlim(left, 130.0)
    for place, (name, kind, rate, top) in enumerate(rows):
        _heading(ax, style, place, _sentence(name, rate, top, promised=place < 2, above=name in over))
        if rate.n:
            _interval(ax, style, place, name, kind, rate, left)
        if top is not None:
            ax.plot(
                [100 * top] * 2,
                [place + 0.02, place - 0.22],
                color=style.text,
                lw=2.5,
                label=f"_{name} ceiling",
            )
    ax.set_ylim(len(rows) - 0.65, -0.85)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    log_ticks(ax.xaxis)
    label_axes(ax, style, "share of the held-out class (%), log scale", "")
    Strip(ax, style).legend(
        [
            Line2D([], [], color=style.muted, marker="o", label="measured, exact interval"),
            Line2D([], [], color=style.text, marker="|", ls="", ms=10, mew=2.5, label="ceiling promised"),
        ],
        columns=2,
    )
    return ax


def _sentence(name: str, rate: Rate, top: float | None, *, promised: bool, above: bool) -> str:
    text = f"{name} {percent(rate.value)} % [{percent(rate.low)}, {percent(rate.high)}], n = {rate.n:,}"
    if not rate.n:
        text = f"{name}: no points"
    if not promised:
        return text
    if top is None:
        return f"{text}; nothing promised"
    return f"{text}; {'above ' if above else ''}ceiling {ceiling(top)}"


def _heading(ax: Axes, style: Style, place: int, text: str) -> None:
    ax.annotate(
        "\n".join(wrap(text, room(ax), style.size)),
        (0.0, place - 0.3),
        xycoords=ax.get_yaxis_transform(),
        xytext=(2.0, 1.0),
        textcoords="offset points",
        va="bottom",
        color=style.text,
        fontsize=style.size,
    )


def _interval(ax: Axes, style: Style, place: int, name: str, kind: str, rate: Rate, left: float) -> None:
    colour = style.of_class(kind)
    y = place - 0.1
    low = max(100 * rate.low, left)
    ax.plot([low, 100 * rate.high], [y, y], color=colour, linewidth=2.0, label=f"_{name} interval")
    for end in (rate.low, rate.high):
        if 100 * end > left:
            ax.plot([100 * end], [y], "|", color=colour, markersize=7, markeredgewidth=1.5)
    filled = name in ("FPR", "FNR")
    marker = ("o" if kind == "normal" else "s") if rate.count else "<"
    ax.plot(
        [max(100 * rate.value, left)],
        [y],
        marker,
        markersize=7,
        markeredgecolor=colour,
        markerfacecolor=colour if filled else "none",
        clip_on=False,
        label=f"_{name}",
    )
