"""What the tests of the figures share: labelled scores, their certificates, and how a figure is read back."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pac_wrap import calibrate, calibrate_labelled
from pac_wrap.base.arguments import Scores
from pac_wrap.report.figures import plot_scores
from support.strategies import calibrate_quietly

RANDOM = np.random.default_rng(20220814)
NORMAL, ANOMALOUS = RANDOM.normal(0.0, 1.0, 2000), RANDOM.normal(2.5, 1.2, 300)
OVERLAPPING = calibrate(NORMAL, ANOMALOUS)
SINGLE = calibrate(NORMAL, ANOMALOUS, overlap="algorithm1")
# fewer, with labels
SCORES, LABELS = np.r_[NORMAL[:400], ANOMALOUS[:200] + 0.5], np.repeat([0, 1], [400, 200])
CERTIFICATE = calibrate_labelled(SCORES, LABELS)
FAILED = calibrate_quietly([5.0], [1.0], overlap="algorithm1")


def scores_figure(dark: bool = False) -> Figure:
    figure = plot_scores(CERTIFICATE, SCORES[:400], SCORES[400:], dark=dark).figure
    assert isinstance(figure, Figure)
    return figure


def line(ax: Axes, label: str, colour: str | None = None) -> Line2D:
    (found,) = (
        one
        for one in ax.get_lines()
        if str(one.get_label()).startswith(label)
        and (colour is None or to_hex(one.get_color()).upper() == colour)
    )
    return found


def points(one: Line2D) -> tuple[Scores, Scores]:
    return np.asarray(one.get_xdata(), dtype=float), np.asarray(one.get_ydata(), dtype=float)


def thresholds(ax: Axes) -> dict[str, float]:
    """Return what is drawn as a vertical line across the axes, by the words of its label."""
    found = {}
    for one in ax.get_lines():
        x, y = points(one)
        if y.tolist() == [0.0, 1.0] and one.get_transform() == ax.get_xaxis_transform():
            found[str(one.get_label()).removeprefix("_").rsplit(" ", 1)[0]] = float(x[0])
    return found


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend(ax: Axes) -> list[str]:
    shown = ax.get_legend()
    return [] if shown is None else [text.get_text() for text in shown.get_texts()]
