"""Figures of certificates and results: each function returns the matplotlib Axes it drew on.

Nothing here touches pyplot: a new figure belongs to the caller alone and needs no display.
"""

from pac_wrap.errors import MissingExtraError

try:
    import matplotlib as _matplotlib  # noqa: F401  (asked for first, so that its absence is one sentence)
except ImportError as error:
    raise MissingExtraError(
        'figures need matplotlib, which is not installed: pip install "pac-wrap-ad[plot]"'
    ) from error

from pac_wrap.report.figures.ceilings import plot_affordable, plot_curve
from pac_wrap.report.figures.scores import plot_boxes, plot_scores
from pac_wrap.report.figures.styling import Style, new_axes, style, to_svg

__all__ = [
    "Style",
    "new_axes",
    "plot_affordable",
    "plot_boxes",
    "plot_curve",
    "plot_scores",
    "style",
    "to_svg",
]
