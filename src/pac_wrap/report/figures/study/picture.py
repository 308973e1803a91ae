"""A picture of a study as a figure with its title."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pac_wrap.experiments.study import Boxes, Curves, HeatMap, Intervals, Picture
from pac_wrap.report.figures.boxes import plot_boxes
from pac_wrap.report.figures.look import new_axes, style, wrap
from pac_wrap.report.figures.study.curves import plot_curves
from pac_wrap.report.figures.study.heatmap import heatmap_height, plot_heatmap
from pac_wrap.report.figures.study.intervals import intervals_height, plot_intervals
from pac_wrap.report.figures.study.size import text_size

_LARGER = 1.1  # a title than other text


def draw(picture: Picture, *, dark: bool = False, width: float = 6.5) -> Figure:
    """Return a new figure of a picture, `width` inches wide and as high as it needs, under its title.

    >>> from pac_wrap.experiments.study import Curve
    >>> curve = Curve("FPR", "normal", (0.04, 0.06), (0.03, 0.05), (0.05, 0.07))
    >>> shift = Curves("shift", "A shift", "gamma", "rate (%)", (0.0, 0.2), (curve,), 0.05, "promised")
    >>> draw(shift).get_suptitle()
    'A shift'
    """
    ax = _draw(picture, dark, width)
    figure = ax.get_figure(root=True)
    assert figure is not None
    size = _LARGER * text_size(width)
    lines = wrap(picture.title, 72.0 * width - 2.0 * size, size)
    height = float(figure.get_size_inches()[1]) + (1.3 * len(lines) + 0.5) * size / 72.0
    figure.set_size_inches(width, height)
    figure.suptitle(
        "\n".join(lines), x=0.5 * size / (72.0 * width), ha="left", size=size, color=style(dark).text
    )
    return figure


def _draw(picture: Picture, dark: bool, width: float) -> Axes:
    match picture:
        case Intervals():
            ax = new_axes(width, intervals_height(picture, width))
            return plot_intervals(picture, dark=dark, ax=ax)
        case HeatMap():
            return plot_heatmap(picture, dark=dark, ax=new_axes(width, heatmap_height(picture, width)))
        case Curves():
            return plot_curves(picture, dark=dark, ax=new_axes(width))
        case Boxes(certificate=certificate, relaxed=relaxed, normal=normal, anomalous=anomalous):
            return plot_boxes(certificate, relaxed, normal, anomalous, dark=dark, ax=new_axes(width))
