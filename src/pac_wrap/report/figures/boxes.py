"""Box plot of both classes, with the thresholds as asked for and the single one that was reached."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from numpy.typing import ArrayLike

from pac_wrap.certificate import Certificate
from pac_wrap.inputs import Scores, as_scores
from pac_wrap.report.figures.flags import Flag
from pac_wrap.report.figures.look import label_axes, number, prepare
from pac_wrap.report.figures.rule import draw_flags, flags_of, marks, single_of
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.window import Window
from pac_wrap.report.wording import ceiling

_OUTLIERS = 200  # more would not be told apart, and would swell an SVG file


def plot_boxes(
    certificate: Certificate,
    relaxed: Certificate,
    normal: ArrayLike,
    anomalous: ArrayLike,
    *,
    dark: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the quartiles of both classes, the thresholds of a certificate and the single one of another.

    `certificate` is one with two thresholds, `relaxed` one made with `abstain=False`; the ceilings it ended
    with are written above. Whiskers reach the last score within 1.5 times the box.

    >>> from pac_wrap import calibrate
    >>> normal, anomalous = np.linspace(0, 5, 200), np.linspace(3, 9, 200)
    >>> relaxed = calibrate(normal, anomalous, abstain=False)
    >>> ax = plot_boxes(calibrate(normal, anomalous), relaxed, normal, anomalous)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['anomalous\\nn = 200', 'normal\\nn = 200']
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    ax, look = prepare(ax, dark)
    tau = single_of(relaxed.rule)
    window = Window.around((normal, anomalous), [*marks(certificate.rule), tau])
    window.apply(ax, look)
    names = []
    for place, name, scores in ((0, "anomalous", anomalous), (1, "normal", normal)):
        names.append(f"{name}\nn = {scores.size:,}")
        if scores.size:
            colour = look.of_class(name)
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
                medianprops={"color": look.text, "linewidth": 2.0},
                whiskerprops=line,
                capprops=line,
                flierprops={"marker": "|", "markeredgecolor": colour, "markersize": 5.0},
            )
            drawn["boxes"][0].set_label(f"_{name}")
    ax.set_yticks([0, 1], names)
    ax.set_ylim(-0.6, 1.6)
    ax.tick_params(axis="y", length=0)
    label_axes(ax, look, "score (higher is more anomalous)", "")
    strip = Strip(ax, look)
    flags = flags_of(certificate.rule, window.span)
    if tau is not None:
        flags.append(Flag(tau, f"one threshold {number(tau, window.span)}", (0, (1, 1)), 2.2))
    draw_flags(ax, look, strip, window, flags, normal, anomalous)
    strip.note(_outcome(relaxed))
    return ax


def _box(scores: Scores, window: Window) -> dict[str, Any]:
    """Return the box of the scores, those beyond the window on its edge, with few enough outliers."""
    box = boxplot_stats(np.clip(scores, window.low, window.high))[0]
    cells = np.round((box["fliers"] - window.low) / (window.high - window.low) * _OUTLIERS)
    box["fliers"] = box["fliers"][np.unique(cells, return_index=True)[1]]
    return dict(box)


def _outcome(relaxed: Certificate) -> str:
    certified = relaxed.certified
    if certified is None:
        return "no single threshold can be certified"
    sides = (("FPR", certified.max_fpr), ("FNR", certified.max_fnr))
    kept = [f"{name} \N{LESS-THAN OR EQUAL TO} {ceiling(rate)}" for name, rate in sides if rate is not None]
    return f"one threshold: {', '.join(kept)}"
