"""Figures of certificates and results: each function returns matplotlib Axes, without pyplot or a display."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from io import BytesIO, StringIO
from math import ceil, floor, log10
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import Scores, as_scores
from pac_wrap.errors import InputError, MissingExtraError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.rule import Rule
from pac_wrap.method.traffic.calibrate import as_reviews
from pac_wrap.report.numbers import ceiling, minus, number, sure, written_alike
from pac_wrap.report.pictures import ByReview, Window, flags, not_drawn
from pac_wrap.report.sentences import CONSEQUENCES, ranges

try:
    import matplotlib
except ImportError as error:
    raise MissingExtraError(
        'figures need matplotlib, which is not installed: pip install "pac-wrap-ad[plot]"'
    ) from error

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Formatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation, Transform, blended_transform_factory

_NARROW: Final = 4.5  # inches; a narrower figure is read on a phone
_NARROW_AXES: Final = 250.0  # points
_SMALL, _LARGE = 7.5, 9.0
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_TIED: Final = re.compile(r" (?=[=%≤])|(?<=[=≤]) ")
_NO_METADATA: Final = {"Date": None, "Creator": None, "Format": None, "Type": None}
_SETTINGS: Final[dict[Any, Any]] = {"svg.fonttype": "none", "svg.hashsalt": "pac-wrap", "savefig.bbox": None}
_GAP: Final = 3.0  # points between a line and its label
_HANDLE, _PAD, _BETWEEN = 2.2, 0.6, 1.4  # of a legend, in units of the text size
_BINS: Final = 40


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


# Okabe and Ito's blue (their lighter one on a dark page) and vermilion suit every kind of colour vision
_LIGHT: Final = Style(text="#1A1A1A", muted="#595959", faint="#D9D9D9", normal="#0072B2", anomalous="#D55E00")
_DARK: Final = Style(text="#EDEDED", muted="#B3B3B3", faint="#4D4D4D", normal="#56B4E9", anomalous="#E8702A")


def style(dark: bool = False) -> Style:
    """Return the colours for a light or a dark page."""
    return _DARK if dark else _LIGHT


class _OwnAxes(Axes):
    """Axes that a notebook shows as a picture."""

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


def prepare(ax: Axes | None, dark: bool = False) -> tuple[Axes, Style]:
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


def plain_ticks(axis: Axis, most: int) -> MaxNLocator:
    """Put ticks at round numbers, with at most `most` intervals between them."""
    axis.set_major_formatter(PlainTicks())
    locator = MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1)
    axis.set_major_locator(locator)
    return locator


class Strip:
    """Rows above the axes, filled from below, so that no two texts can overlap."""

    def __init__(self, ax: Axes, style: Style) -> None:
        self._ax, self._style = ax, style
        self._row = 1.35 * style.size
        self._height = 3.0  # points used so far
        corner: Any = ax.transAxes  # affine, though its type does not say so
        # inches, counted from the upper left corner of the axes
        self._above = ax.figure.dpi_scale_trans + ScaledTranslation(0.0, 1.0, corner)

    def flag(self, x: float, text: str, anchor: str) -> None:
        """Draw an upright line up to a row of its own, where its text stands."""
        look: dict[str, Any] = {"color": self._style.text, "linewidth": 1.2}
        self._ax.axvline(x, label=f"_{text}", **look)
        top = (self._height + (0.0 if anchor == "middle" else self._style.size)) / 72.0
        upwards = blended_transform_factory(self._ax.transData, self._above)
        self._ax.add_line(Line2D([x] * 2, [0.0, top], transform=upwards, clip_on=False, **look))
        gap, align = {"start": (_GAP, "left"), "middle": (0.0, "center"), "end": (-_GAP, "right")}[anchor]
        self._write(text, x, self._ax.transData, gap, align)

    def note(self, text: str) -> None:
        """Write a text in as many rows as it needs."""
        for line in reversed(wrap(text, room(self._ax), self._style.size)):
            self._write(line, 0.0, self._ax.transAxes, 0.0, "left")

    def legend(self, handles: Sequence[Artist], columns: int) -> None:
        """Put a legend on top of the strip, in at most that many columns."""
        size = self._style.size
        self._height += 0.3 * size
        widths = [text_width(str(handle.get_label()), size) + (_HANDLE + _PAD) * size for handle in handles]
        while columns > 1:
            parts = [part.max() for part in np.array_split(np.asarray(widths), columns) if part.size]
            if sum(parts) + (len(parts) - 1) * _BETWEEN * size <= room(self._ax):
                break
            columns -= 1
        self._ax.legend(
            handles=list(handles),
            loc="lower left",
            bbox_to_anchor=(0.0, self._height / 72.0),
            bbox_transform=self._above,
            ncols=columns,
            fontsize=size,
            labelcolor=self._style.text,
            frameon=False,
            borderpad=0.0,
            borderaxespad=0.0,
            labelspacing=0.35,
            handlelength=_HANDLE,
            handletextpad=_PAD,
            columnspacing=_BETWEEN,
        )
        self._height += ceil(len(handles) / columns) * self._row

    def _write(self, text: str, x: float, across: Transform, gap: float, align: str) -> None:
        self._ax.annotate(
            text,
            (x, self._height / 72.0),
            xycoords=blended_transform_factory(across, self._above),
            xytext=(gap, 0.0),
            textcoords="offset points",
            horizontalalignment=align,
            verticalalignment="bottom",
            annotation_clip=False,
            color=self._style.text,
            fontsize=self._style.size,
        )
        self._height += self._row


def plot_scores(
    certificate: Certificate,
    normal: ArrayLike,
    anomalous: ArrayLike,
    *,
    dark: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the scores of each class in percent, and the thresholds; a note counts scores off the scale."""
    classes = {"normal": as_scores(normal, "normal"), "anomalous": as_scores(anomalous, "anomalous")}
    ax, style = prepare(ax, dark)
    rule = certificate.rule
    window = Window.around(list(classes.values()), [rule.normal_below, rule.anomaly_from])
    _score_axis(ax, style, window)
    edges = np.linspace(window.low, window.high, _BINS + 1)
    handles: list[Artist] = []
    highest = 1.0
    for name, scores in classes.items():
        shares = 100.0 * np.histogram(scores, edges)[0] / max(1, scores.size)
        highest = max(highest, 1.05 * shares.max())
        colour = style.of_class(name)
        bars = ax.stairs(
            shares,
            edges,
            fill=True,
            # an SVG file gives a hatch the opacity of its face, so a hatched face stays empty
            facecolor=(colour, 0.55) if name == "normal" else "none",
            edgecolor=colour,
            linewidth=1.0,
            hatch=None if name == "normal" else "////",
            label=f"{name}, n = {scores.size:,}",
        )
        handles.append(bars)
    ax.set_ylim(0.0, highest)
    label_axes(ax, style, "score (higher is more anomalous)", "share of the class (%)")
    return _told(ax, style, window, rule, handles, classes)


def plot_alarms(
    rule: Rule, scores: ArrayLike, reviews: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the highest scores of traffic in bars: found right, found wrong, and not reviewed."""
    values = as_scores(scores, "scores", missing=True)
    shown = ByReview.of(rule.anomaly_from, values, as_reviews(reviews, values.size))
    ax, style = prepare(ax)
    _score_axis(ax, style, shown.window)
    looks: tuple[dict[str, Any], ...] = (
        {"facecolor": style.anomalous, "edgecolor": style.anomalous},
        {"facecolor": "none", "edgecolor": style.normal, "hatch": "////"},
        {"facecolor": "none", "edgecolor": style.muted},
    )
    handles: list[Artist] = []
    base = np.zeros(shown.edges.size - 1)
    for (name, count), look in zip(shown.counts.items(), looks, strict=True):
        look |= {"baseline": base, "fill": True, "linewidth": 1.0, "label": f"{name}, {count.sum():,}"}
        base = base + count
        handles.append(ax.stairs(base, shown.edges, **look))
    ax.set_ylim(0.0, max(1.0, 1.05 * base.max()))
    label_axes(ax, style, "score (higher is more anomalous)", "points of traffic")
    return _told(ax, style, shown.window, rule, handles, shown.parts)


def _score_axis(ax: Axes, style: Style, window: Window) -> None:
    """Put a scale of scores below, with as many ticks as fit with their labels, and one of shares."""
    ax.set_xlim(window.low, window.high)
    for most in range(7, 0, -1):  # as many ticks as fit with their labels
        ticks = plain_ticks(ax.xaxis, most).tick_values(window.low, window.high)
        labels = written_alike(tick for tick in ticks if tick in window)
        if sum(text_width(label, style.size) + 1.5 * style.size for label in labels) <= room(ax):
            break
    plain_ticks(ax.yaxis, 5)


def _told(
    ax: Axes, style: Style, window: Window, rule: Rule, handles: list[Artist], drawn: dict[str, Scores]
) -> Axes:
    """Draw undecided scores, and write the thresholds, notes and the legend above."""
    if rule.ambiguity_region is not None:
        low, high = (float(end) for end in np.clip(rule.ambiguity_region, window.low, window.high))
        look: dict[str, Any] = {"facecolor": style.faint, "linewidth": 0.0, "zorder": 0.5}
        handles.append(ax.axvspan(low, high, label="undecided", **look))
    strip = Strip(ax, style)
    ends = {"normal": rule.normal_below, "anomaly": rule.anomaly_from}
    for flag in reversed(flags(window, rule)):
        strip.flag(ends[flag.text.split()[0]], flag.text, flag.anchor)
    for note in filter(None, (not_drawn(window, **drawn), CONSEQUENCES.get(frozenset(ranges(rule))))):
        strip.note(note)
    strip.legend(handles, columns=3)
    return ax


def plot_curve(curve: Curve, ax: Axes | None = None) -> Axes:
    """Draw the bound of the FNR against that of the FPR, with a point for every threshold."""
    _, fpr, fnr = curve.steps()
    known = (fpr < 1.0) & (fnr < 1.0)
    if not known.any():
        raise InputError("no threshold bounds both rates below 1, so there is no trade-off to draw")
    ax, style = prepare(ax)
    x, y = 100.0 * fpr[known][::-1], 100.0 * fnr[known][::-1]
    # the corners alone, of thousands of thresholds: the least y of each x, the least x of each y
    corners = np.append(x[1:] > x[:-1], True)
    x, y = x[corners], y[corners]
    corners = np.append(True, y[1:] < y[:-1])
    corners[-1] = True
    x, y = x[corners], y[corners]
    line: dict[str, Any] = {"color": style.text, "linewidth": 1.6, "label": "certified at every threshold"}
    handles = ax.step(x, y, where="post", **line)
    ax.fill_between(x, y, 100.0, step="post", color=style.faint, alpha=0.5, linewidth=0.0)
    best = int(np.argmin(np.maximum(x, y)))
    mark: dict[str, Any] = {"marker": "o", "markersize": 6, "markerfacecolor": "none", "linestyle": ""}
    label = f"both at most {ceiling(max(x[best], y[best]) / 100.0)}"
    handles += ax.plot([x[best]], [y[best]], markeredgecolor=style.text, label=label, **mark)
    # from a power of ten on, so that the least value is well above the edge
    low, left = (10.0 ** floor(log10(values.min()) - 0.3) for values in (y, x))
    ax.set(xscale="log", yscale="log", xlim=(left, 100.0), ylim=(low, 100.0))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_major_formatter(lambda value, _: minus(f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.grid(color=style.faint, linewidth=0.6)
    below = f"FPR at most (% of normal points, n = {curve.normal.n:,})"
    label_axes(ax, style, below, f"FNR at most (% of anomalies, n = {curve.anomalous.n:,})")
    strip = Strip(ax, style)
    strip.legend(handles, columns=2)
    strip.note(f"all bounds of both rates hold together with {sure(curve.confidence)} confidence")
    return ax


def to_svg(figure: Figure, alt: str) -> str:
    """Return the figure as one SVG element: text as text, the same bytes every time, nothing loaded."""
    buffer = StringIO()
    with matplotlib.rc_context(_SETTINGS):
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].rstrip()
    # a style element would reach every element of the page; what it says is inherited from the root as well
    text, replaced = re.subn(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", text, count=1)
    assert replaced
    prefix = f"pw-{sha256(text.encode()).hexdigest()[:10]}-"
    named = re.compile(r'\sid="|href="#|url\(#')
    text = re.sub(r"<[^<>]+>", lambda tag: named.sub(rf"\g<0>{prefix}", tag[0]), text)
    root = f'<svg style="stroke-linejoin:round;stroke-linecap:butt" role="img" aria-label="{escape(alt)}"'
    return text.replace("<svg", root, 1)
