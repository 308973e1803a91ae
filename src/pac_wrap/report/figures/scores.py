"""The scores of both classes with the thresholds: histograms, and box plots."""

from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import Scores, as_scores
from pac_wrap.method.certificate import Certificate
from pac_wrap.report.figures.strip import Flag, Strip, apply_window, draw_flags, flags_of, marks, shade
from pac_wrap.report.figures.styling import (
    PlainTicks,
    decade_below,
    label_axes,
    log_ticks,
    prepare,
    round_ticks,
)
from pac_wrap.report.numbers import ceiling, number
from pac_wrap.report.pictures import Window

_BINS: Final = 40
_OUTLIERS: Final = 200  # more would not be told apart, and would swell an SVG file


def plot_scores(
    certificate: Certificate,
    normal: ArrayLike,
    anomalous: ArrayLike,
    *,
    log: bool = False,
    dark: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the distribution of the scores of each class, the thresholds and the scores that are abstained.

    Both classes share their bins; heights are percent of the class, infinite scores included in its n. Those,
    and rare ones far outside, are marked and counted at the edge.
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    ax, style = prepare(ax, dark)
    rule = certificate.rule
    window = Window.around((normal, anomalous), marks(rule))
    apply_window(window, ax, style)
    edges = np.linspace(window.low, window.high, _BINS + 1)
    shares = [100.0 * np.histogram(scores, edges)[0] / max(1, scores.size) for scores in (normal, anomalous)]
    heights = np.concatenate(shares)
    bottom = 0.0
    if log:
        bottom = decade_below(heights[heights > 0].min(initial=100.0))
        ax.set_yscale("log")
        log_ticks(ax.yaxis)
    else:
        ax.yaxis.set_major_locator(round_ticks(5))
        ax.yaxis.set_major_formatter(PlainTicks())
    ax.set_ylim(bottom, max(heights.max() * 1.05, bottom * 10.0, 1.0))
    handles: list[Artist] = []
    for name, share, size, hatch in zip(
        ("normal", "anomalous"), shares, (normal.size, anomalous.size), (None, "////"), strict=True
    ):
        colour = style.of_class(name)
        handles.append(
            ax.stairs(
                share,
                edges,
                baseline=bottom,
                fill=True,
                # an SVG file gives a hatch the opacity of its face, so a hatched face stays empty
                facecolor=(colour, 0.55) if hatch is None else "none",
                edgecolor=colour,
                linewidth=1.0,
                hatch=hatch,
                label=f"{name}, n = {size:,}",
            )
        )
    handles += shade(ax, style, rule)
    label_axes(ax, style, "score (higher is more anomalous)", "share of class (%)")
    strip = Strip(ax, style)
    draw_flags(ax, style, strip, window, flags_of(rule, window.span), normal, anomalous)
    strip.legend(handles, columns=3)
    return ax


def plot_boxes(
    certificate: Certificate,
    single: Certificate,
    normal: ArrayLike,
    anomalous: ArrayLike,
    *,
    dark: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the quartiles of both classes, the thresholds of a certificate and the single one of another.

    Whiskers reach the last score within 1.5 times the box.
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    ax, style = prepare(ax, dark)
    alone = marks(single.rule)[:1] if single.rule.single else []
    window = Window.around((normal, anomalous), [*marks(certificate.rule), *alone])
    apply_window(window, ax, style)
    names = []
    for place, name, scores in ((0, "anomalous", anomalous), (1, "normal", normal)):
        names.append(f"{name}\nn = {scores.size:,}")
        if scores.size:
            colour = style.of_class(name)
            line: dict[str, Any] = {"color": colour, "linewidth": 1.2}
            drawn = ax.bxp(
                [_box(scores, window)],
                positions=[place],
                orientation="horizontal",
                widths=0.5,
                patch_artist=True,
                manage_ticks=False,
                boxprops={
                    "facecolor": (colour, 0.55) if name == "normal" else "none",
                    "edgecolor": colour,
                    "hatch": None if name == "normal" else "////",
                },
                medianprops={"color": style.text, "linewidth": 2.0},
                whiskerprops=line,
                capprops=line,
                flierprops={"marker": "|", "markeredgecolor": colour, "markersize": 5.0},
            )
            drawn["boxes"][0].set_label(f"_{name}")
    ax.set_yticks([0, 1], names)
    ax.set_ylim(-0.6, 1.6)
    ax.tick_params(axis="y", length=0)
    label_axes(ax, style, "score (higher is more anomalous)", "")
    strip = Strip(ax, style)
    flags = flags_of(certificate.rule, window.span)
    flags += [Flag(tau, f"one threshold {number(tau, window.span)}", (0, (1, 1)), 2.2) for tau in alone]
    draw_flags(ax, style, strip, window, flags, normal, anomalous)
    strip.note(_outcome(single))
    return ax


def _box(scores: Scores, window: Window) -> dict[str, Any]:
    """Return the box of the scores, those beyond the window on its edge, with few enough outliers."""
    box = boxplot_stats(np.clip(scores, window.low, window.high))[0]
    cells = np.round((box["fliers"] - window.low) / (window.high - window.low) * _OUTLIERS)
    box["fliers"] = box["fliers"][np.unique(cells, return_index=True)[1]]
    return dict(box)


def _outcome(single: Certificate) -> str:
    if single.uncertified:
        return "no single threshold can be certified"
    sides = (("FPR", single.fpr.ceiling), ("FNR", single.fnr.ceiling))
    kept = [f"{name} \N{LESS-THAN OR EQUAL TO} {ceiling(rate)}" for name, rate in sides if rate is not None]
    return f"one threshold: {', '.join(kept)}"
