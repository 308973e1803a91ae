"""How figures look: their colours on a light or dark page, text, numbers, ticks and labels; and as SVG."""

import re
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from io import BytesIO, StringIO
from math import floor, log10
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Formatter, LogLocator, MaxNLocator, NullFormatter

from pac_wrap.report.numbers import minus, number, written_alike

_NARROW: Final = 4.5  # inches; a narrower figure is read on a phone
_NARROW_AXES: Final = 250.0  # points
_SMALL, _LARGE = 7.5, 9.0
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_TIED: Final = re.compile(r" (?=[=%≤])|(?<=[=≤]) ")
_NO_METADATA: Final = {"Date": None, "Creator": None, "Format": None, "Type": None}
_SETTINGS: Final[dict[Any, Any]] = {"svg.fonttype": "none", "svg.hashsalt": "pac-wrap", "savefig.bbox": None}


@dataclass(frozen=True, slots=True)
class Style:
    """The colours of one kind of page, and the size of all text in points."""

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
    """Return the colours for a light or a dark page."""
    return _DARK if dark else _LIGHT


class _OwnAxes(Axes):
    """Axes that a notebook shows as the picture they are on, for pyplot does not show it."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        dark = self.xaxis.label.get_color() == _DARK.text
        # a page behind it may be dark or light, whatever the figure was drawn for
        page = "#1A1A1A" if dark else "white"
        self.figure.get_figure(root=True).savefig(picture, format="png", dpi=144, facecolor=page)
        return picture.getvalue()


def new_axes(width: float = 6.5, height: float | None = None) -> Axes:
    """Return the axes of a new, transparent figure that a notebook shows and pyplot does not know."""
    if height is None:
        height = width * (0.85 if width < _NARROW else 0.62)
    figure = Figure(figsize=(width, height), dpi=100, layout="constrained", facecolor="none")
    return figure.add_subplot(facecolor="none", axes_class=_OwnAxes)


def prepare(ax: Axes | None, dark: bool) -> tuple[Axes, Style]:
    """Return the axes to draw on, in the colours of the page, and the style with its size of text."""
    ax = new_axes() if ax is None else ax
    chosen = replace(style(dark), size=_SMALL if room(ax) < _NARROW_AXES else _LARGE)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(chosen.muted)
    ax.tick_params(which="both", color=chosen.muted, labelcolor=chosen.text, labelsize=chosen.size)
    for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
        label.set_color(chosen.text)
        label.set_fontsize(chosen.size)
    return ax, chosen


def room(ax: Axes) -> float:
    """Return the width of the axes in points; before the first layout, about what it will be."""
    return ax.bbox.width * 72.0 / ax.figure.dpi


def text_width(text: str, size: float) -> float:
    """Return the width of one line of text in points."""
    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0])


def wrap(text: str, width: float, size: float) -> list[str]:
    """Return the text in lines no wider than `width` points; a number stays with its sign and its name."""
    lines = [""]
    for word in _TIED.sub(_NO_BREAK, text).split(" "):
        longer = f"{lines[-1]} {word}".strip(" ")
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [line.replace(_NO_BREAK, " ") for line in lines]


def label_axes(ax: Axes, style: Style, x: str, y: str) -> None:
    """Label both axes, the lower one in as many lines as it needs."""
    ax.set_xlabel("\n".join(wrap(x, room(ax), style.size)))
    ax.set_ylabel(y)


class PlainTicks(Formatter):
    """Numbers written out with the fewest digits that tell the ticks apart; no offset hidden in a corner."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return one tick on its own."""
        return number(x)

    def format_ticks(self, values: Any) -> list[str]:
        """Return all ticks with the same number of digits."""
        return written_alike(values)


def round_ticks(most: int) -> MaxNLocator:
    """Return a locator of at most so many intervals between round numbers."""
    return MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1)


def log_ticks(axis: Axis) -> None:
    """Put ticks at powers of ten, written out."""
    axis.set_major_locator(LogLocator(numticks=7))
    axis.set_major_formatter(short_tick)
    axis.set_minor_formatter(NullFormatter())


def decade_below(value: float) -> float:
    """Return the power of ten at which a log scale begins, so that the value is well above its edge."""
    return float(10.0 ** floor(log10(value) - 0.3))


def short_tick(value: float, _: float = 0.0) -> str:
    """Return a tick of a log scale, as short as can be."""
    return minus(f"{value:g}")


def to_svg(figure: Figure, *, alt: str = "", prefix: str | None = None) -> str:
    """Return the figure as one SVG element: text as text, the same bytes every time, nothing loaded."""
    buffer = StringIO()
    with matplotlib.rc_context(_SETTINGS):
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].rstrip()
    # a style element would reach every element of the page; what it says is inherited from the root as well
    text, replaced = re.subn(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", text, count=1)
    assert replaced
    prefix = f"pw-{sha256(text.encode()).hexdigest()[:10]}-" if prefix is None else prefix
    named = re.compile(r'\sid="|href="#|url\(#')
    text = re.sub(r"<[^<>]+>", lambda tag: named.sub(rf"\g<0>{prefix}", tag[0]), text)
    label = f' role="img" aria-label="{escape(alt)}"' if alt else ""
    return text.replace("<svg", f'<svg style="stroke-linejoin:round;stroke-linecap:butt"{label}', 1)
