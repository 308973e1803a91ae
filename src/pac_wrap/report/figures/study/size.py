"""The size of text on a figure of some width, known before it is drawn."""

from typing import Final

from pac_wrap.report.figures.look import new_axes, prepare

SHARE: Final = 0.775
"""The share of a figure's width that its axes take before the first layout."""


def text_size(width: float) -> float:
    """Return the size in points of the text on a figure so many inches wide.

    >>> text_size(6.5), text_size(3.2)
    (9.0, 7.5)
    """
    return prepare(new_axes(width), dark=False)[1].size
