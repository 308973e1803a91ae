"""Score distributions of both classes, with the thresholds and what is abstained between them."""

from math import floor, log10

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from pac_wrap.certificate import Certificate
from pac_wrap.inputs import as_scores
from pac_wrap.report.figures.look import label_axes, prepare
from pac_wrap.report.figures.rule import draw_flags, flags_of, marks, shade
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.ticks import PlainTicks, log_ticks, round_ticks
from pac_wrap.report.figures.window import Window

_BINS = 40


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
    and rare ones far outside, are marked and counted at the edge. `log` draws the heights on a log scale.

    >>> from pac_wrap import calibrate
    >>> normal, anomalous = np.linspace(0, 5, 200), np.linspace(3, 9, 200)
    >>> ax = plot_scores(calibrate(normal, anomalous), normal, anomalous)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['normal, n = 200', 'anomalous, n = 200', 'abstains']
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    ax, look = prepare(ax, dark)
    rule = certificate.rule
    window = Window.around((normal, anomalous), marks(rule))
    window.apply(ax, look)
    edges = np.linspace(window.low, window.high, _BINS + 1)
    shares = [100.0 * np.histogram(scores, edges)[0] / max(1, scores.size) for scores in (normal, anomalous)]
    heights = np.concatenate(shares)
    bottom = 0.0
    if log:
        bottom = 10.0 ** floor(log10(heights[heights > 0].min(initial=100.0)))
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
        colour = look.of_class(name)
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
    handles += shade(ax, look, rule)
    label_axes(ax, look, "score (higher is more anomalous)", "share of class (%)")
    strip = Strip(ax, look)
    draw_flags(ax, look, strip, window, flags_of(rule, window.span), normal, anomalous)
    strip.legend(handles, columns=3)
    return ax
