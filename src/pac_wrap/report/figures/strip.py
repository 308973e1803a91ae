"""The strip above the axes, in rows: labels of lines, notes, the legend; and the axis of scores below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product, zip_longest
from math import ceil, inf
from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation, Transform, blended_transform_factory

from pac_wrap.base.arguments import Scores
from pac_wrap.method.rule import Rule
from pac_wrap.report.figures.styling import PlainTicks, Style, room, round_ticks, text_width, wrap
from pac_wrap.report.numbers import number
from pac_wrap.report.pictures import LeftRight, Window

_GAP: Final = 3.0  # points between a line and its label
_EDGES: Final[tuple[LeftRight, LeftRight]] = ("left", "right")
_HANDLE, _PAD, _BETWEEN = 2.2, 0.6, 1.4  # of a legend, in units of the text size
_LEFT, _RIGHT = "\N{BLACK LEFT-POINTING SMALL TRIANGLE}", "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
_DASHED = (0, (5, 2))


@dataclass(frozen=True, slots=True)
class Flag:
    """A vertical line at x, and the label it carries above the axes."""

    x: float
    text: str
    linestyle: Any = "-"
    linewidth: float = 1.2


@dataclass(frozen=True, slots=True)
class Place:
    """The row of a label, the side of its line it stands on, and whether it fits between line and edge."""

    row: int
    side: LeftRight
    fits: bool = True


def arrange(lines: Sequence[float], lengths: Sequence[float], width: float) -> list[Place]:
    """Return where the labels go so that the fewest lines run through a label, each in a row of its own.

    A label that does not fit between its line and the edge is put at the edge, on top of its line.
    """
    sides: tuple[LeftRight, ...] = ("right", "left")
    best: list[Place] = []
    least = (inf, inf)
    for chosen in product(sides, repeat=len(lines)):
        starts = [
            x if side == "right" else x - length
            for x, length, side in zip(lines, lengths, chosen, strict=True)
        ]
        fits = [0.0 <= start <= width - length for start, length in zip(starts, lengths, strict=True)]
        starts = [max(0.0, min(start, width - length)) for start, length in zip(starts, lengths, strict=True)]
        for rows in permutations(range(len(lines))):
            crossed = sum(
                rows[other] > rows[i] and start < x < start + lengths[i]
                for i, start in enumerate(starts)
                for other, x in enumerate(lines)
            )
            if (crossed, fits.count(False)) < least:
                least = (crossed, fits.count(False))
                best = [Place(*place) for place in zip(rows, chosen, fits, strict=True)]
    return best


class Strip:
    """Rows above the axes, filled from below; one label per row, so that no two labels can overlap."""

    def __init__(self, ax: Axes, style: Style) -> None:
        self._ax, self._style = ax, style
        self._row = 1.35 * style.size
        self._height = 3.0  # points used so far

    def flags(self, flags: Sequence[Flag]) -> None:
        """Draw each line up to a row of its own, where its label stands."""
        low, high = self._ax.get_xlim()
        width = room(self._ax)
        lines = [(flag.x - low) / (high - low) * width for flag in flags]
        lengths = [text_width(flag.text, self._style.size) + _GAP for flag in flags]
        above = blended_transform_factory(self._ax.transData, self._above())
        bottom = self._height
        for flag, place in zip(flags, arrange(lines, lengths, width), strict=True):
            self._height = bottom + place.row * self._row
            line: dict[str, Any] = {
                "color": self._style.text,
                "linestyle": flag.linestyle,
                "linewidth": flag.linewidth,
            }
            self._ax.axvline(flag.x, label=f"_{flag.text}", **line)
            top = (self._height + (self._style.size if place.fits else 0.0)) / 72.0
            self._ax.add_line(Line2D([flag.x] * 2, [0.0, top], transform=above, clip_on=False, **line))
            if place.fits:
                self._text(flag.text, (flag.x, self._height / 72.0), above, place.side)
            else:
                self._at_edge(flag.text, place.side)
        self._height = bottom + len(flags) * self._row

    def note(self, text: str, edge: LeftRight = "left") -> None:
        """Write a text at one edge of the axes, in as many rows as it needs."""
        for line in reversed(wrap(text, room(self._ax), self._style.size)):
            self._at_edge(line, edge)
            self._height += self._row

    def edges(self, left: Sequence[str], right: Sequence[str]) -> None:
        """Write texts at both edges of the axes, two in a row where they fit."""
        for one, other in zip_longest(left, right, fillvalue=""):
            if text_width(f"{one}  {other}", self._style.size) <= room(self._ax):
                self._at_edge(one, "left")
                self._at_edge(other, "right")
                self._height += self._row
            else:
                for text, edge in zip((one, other), _EDGES, strict=True):
                    if text:
                        self.note(text, edge)

    def legend(self, handles: Sequence[Artist], columns: int) -> None:
        """Put a legend on top of the strip, in at most that many columns."""
        size = self._style.size
        self._height += 0.3 * size
        widths = [text_width(str(handle.get_label()), size) + (_HANDLE + _PAD) * size for handle in handles]
        while columns > 1 and _columns_width(widths, columns, size) > room(self._ax):
            columns -= 1
        self._ax.legend(
            handles=list(handles),
            loc="lower left",
            bbox_to_anchor=(0.0, self._height / 72.0),
            bbox_transform=self._above(),
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

    def _above(self) -> Transform:
        """Return the transform of inches counted from the upper left corner of the axes."""
        corner: Any = self._ax.transAxes  # affine, though its type does not say so
        return self._ax.figure.dpi_scale_trans + ScaledTranslation(0.0, 1.0, corner)

    def _at_edge(self, text: str, edge: LeftRight) -> None:
        above = blended_transform_factory(self._ax.transAxes, self._above())
        place = (0.0 if edge == "left" else 1.0, self._height / 72.0)
        if text:
            self._text(text, place, above, "right" if edge == "left" else "left", gap=0.0)

    def _text(
        self, text: str, place: tuple[float, float], system: Transform, side: LeftRight, gap: float = _GAP
    ) -> None:
        self._ax.annotate(
            text,
            place,
            xycoords=system,
            xytext=(gap if side == "right" else -gap, 0.0),
            textcoords="offset points",
            horizontalalignment="left" if side == "right" else "right",
            verticalalignment="bottom",
            annotation_clip=False,
            color=self._style.text,
            fontsize=self._style.size,
        )


def _columns_width(widths: Sequence[float], columns: int, size: float) -> float:
    parts = [part for part in np.array_split(np.asarray(widths), columns) if part.size]
    return float(sum(part.max() for part in parts)) + (len(parts) - 1) * _BETWEEN * size


def apply_window(window: Window, ax: Axes, style: Style) -> None:
    """Set the limits of the lower axis, with as many ticks as their labels leave room for."""
    ax.set_xlim(window.low, window.high)
    form = PlainTicks()
    ax.xaxis.set_major_formatter(form)

    def fits(most: int) -> bool:
        ticks = [tick for tick in round_ticks(most).tick_values(window.low, window.high) if tick in window]
        widths = [text_width(label, style.size) + 1.5 * style.size for label in form.format_ticks(ticks)]
        return sum(widths) <= room(ax)

    most = next((most for most in range(7, 1, -1) if fits(most)), 1)
    ax.xaxis.set_major_locator(round_ticks(most))


def marks(rule: Rule) -> list[float]:
    """Return the scores that a picture of the rule has to contain."""
    return [rule.normal_below, rule.anomaly_from]


def flags_of(rule: Rule, span: float = inf) -> list[Flag]:
    """Return one labelled line per threshold, with digits enough for an axis of that span."""
    low, high = rule.normal_below, rule.anomaly_from
    if rule.single:
        never = {inf: "never an alarm", -inf: "always an alarm"}
        return [Flag(high, never.get(high, f"anomaly from {number(high, span)}"), "-", 1.8)]
    return [
        Flag(high, "never an alarm" if high == inf else f"anomaly from {number(high, span)}"),
        Flag(low, "never cleared" if low == -inf else f"normal below {number(low, span)}", _DASHED),
    ]


def draw_flags(
    ax: Axes,
    style: Style,
    strip: Strip,
    window: Window,
    flags: Sequence[Flag],
    normal: Scores,
    anomalous: Scores,
) -> None:
    """Draw thresholds as lines; name at the edge what lies beyond it, thresholds as well as scores."""
    strip.flags([flag for flag in flags if flag.x in window])
    left = [f"{_LEFT} {flag.text}" for flag in flags if flag.x < window.low]
    right = [f"{flag.text} {_RIGHT}" for flag in flags if flag.x > window.high]
    for group in window.beyond(normal, anomalous):
        text = f"{group.place}: {', '.join(group.counted)}"
        if group.edge == "left":
            left.append(f"{_LEFT} {text}")
        else:
            right.append(f"{text} {_RIGHT}")
        for name, count, height in (("normal", group.normal, 0.9), ("anomalous", group.anomalous, 0.8)):
            if count:
                _mark(ax, style, group.edge, name, height)
    strip.edges(left, right)


def shade(ax: Axes, style: Style, rule: Rule) -> list[Artist]:
    """Shade the scores that are abstained; return the legend entry, if there is anything to shade."""
    region = rule.ambiguity_region
    if region is None:
        return []
    low, high = (float(end) for end in np.clip(region, *ax.get_xlim()))
    return [ax.axvspan(low, high, facecolor=style.faint, linewidth=0.0, zorder=0.5, label="abstains")]


def _mark(ax: Axes, style: Style, edge: LeftRight, name: str, height: float) -> None:
    ax.plot(
        [1.0 if edge == "right" else 0.0],
        [height],
        transform=ax.transAxes,
        linestyle="",
        marker=">" if edge == "right" else "<",
        markersize=0.7 * style.size,
        markerfacecolor=style.normal if name == "normal" else "none",
        markeredgecolor=style.of_class(name),
        clip_on=False,
        label=f"_beyond {edge} {name}",
    )
