"""Colours on a light or a dark page, the size of text, and how numbers and long labels are written."""

import re
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

_NARROW: Final = 4.5  # inches; a narrower figure is read on a phone
_NARROW_AXES: Final = 250.0  # points
_SMALL, _LARGE = 7.5, 9.0
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_TIED: Final = re.compile(r" (?=[=%≤])|(?<=[=≤]) ")


@dataclass(frozen=True, slots=True)
class Style:
    """The colours of one kind of page, and the size of all text in points.

    >>> style(dark=True).of_class("anomalous")
    '#E8702A'
    """

    text: str
    muted: str
    faint: str
    normal: str
    anomalous: str
    size: float = _LARGE

    def of_class(self, name: str) -> str:
        """Return the colour of a class."""
        return self.normal if name == "normal" else self.anomalous


# Okabe and Ito's blue and vermilion stay apart for every kind of colour vision; on a dark page the blue is
# their lighter one
_LIGHT: Final = Style(text="#1A1A1A", muted="#595959", faint="#D9D9D9", normal="#0072B2", anomalous="#D55E00")
_DARK: Final = Style(text="#EDEDED", muted="#B3B3B3", faint="#4D4D4D", normal="#56B4E9", anomalous="#E8702A")


def style(dark: bool = False) -> Style:
    """Return the colours for a light or a dark page.

    >>> style().normal, style(dark=True).normal
    ('#0072B2', '#56B4E9')
    """
    return _DARK if dark else _LIGHT


def new_axes(width: float = 6.5, height: float | None = None) -> Axes:
    """Return the axes of a new, transparent figure, `width` inches wide, that pyplot knows nothing of.

    >>> new_axes(3.2).get_figure().get_size_inches().tolist()
    [3.2, 2.72]
    """
    if height is None:
        height = width * (0.85 if width < _NARROW else 0.62)
    figure = Figure(figsize=(width, height), dpi=100, layout="constrained", facecolor="none")
    return figure.add_subplot(facecolor="none")


def prepare(ax: Axes | None, dark: bool) -> tuple[Axes, Style]:
    """Return the axes to draw on, in the colours of the page, and the style with its size of text."""
    ax = new_axes() if ax is None else ax
    look = replace(style(dark), size=_SMALL if room(ax) < _NARROW_AXES else _LARGE)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(look.muted)
    ax.tick_params(which="both", color=look.muted, labelcolor=look.text, labelsize=look.size)
    for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
        label.set_color(look.text)
        label.set_fontsize(look.size)
    return ax, look


def room(ax: Axes) -> float:
    """Return the width of the axes in points; before the first layout, about what it will be."""
    return ax.bbox.width * 72.0 / ax.figure.dpi


def text_width(text: str, size: float) -> float:
    """Return the width of one line of text in points."""
    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0])


def wrap(text: str, width: float, size: float) -> list[str]:
    """Return the text in lines no wider than `width` points; a number stays with its sign and its name.

    >>> wrap("classes of n = 1,000", 60.0, 9.0)
    ['classes of', 'n = 1,000']
    """
    lines = [""]
    for word in _TIED.sub(_NO_BREAK, text).split(" "):
        longer = f"{lines[-1]} {word}".strip(" ")
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [line.replace(_NO_BREAK, " ") for line in lines]


def label_axes(ax: Axes, look: Style, x: str, y: str) -> None:
    """Label both axes, the lower one in as many lines as it needs."""
    ax.set_xlabel("\n".join(wrap(x, room(ax), look.size)))
    ax.set_ylabel(y)


def minus(text: str) -> str:
    """Return a number's text with a minus sign instead of a hyphen."""
    return text.replace("-", "\N{MINUS SIGN}")


def number(value: float, span: float = inf) -> str:
    """Return a number with four digits, or as many as place it on an axis of that span.

    >>> number(1.23456), number(1e9 + 1.5, span=10.0), number(inf)
    ('1.235', '1000000001.5', 'inf')
    """
    texts = (f"{value:.{digits}g}" for digits in range(4, 18))
    return minus(
        next(text for text in texts if float(text) == value or abs(float(text) - value) <= 1e-3 * span)
    )


def percent(share: float) -> str:
    """Return a share in percent, without the sign; it is 100 only where it is exactly that.

    >>> percent(0.12345), percent(0.99999)
    ('12.3', '99.9')
    """
    text = f"{100.0 * share:.3g}"
    return "99.9" if text == "100" and share < 1.0 else text
