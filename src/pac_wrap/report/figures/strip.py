"""The strip above the axes: labels of vertical lines, notes and the legend, each in rows of its own."""

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

from pac_wrap.report.figures.styling import Style, room, text_width, wrap
from pac_wrap.report.window import LeftRight

_GAP: Final = 3.0  # points between a line and its label
_EDGES: Final[tuple[LeftRight, LeftRight]] = ("left", "right")
_HANDLE, _PAD, _BETWEEN = 2.2, 0.6, 1.4  # of a legend, in units of the text size


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

    >>> arrange([10.0, 20.0], [50.0, 50.0], 100.0)
    [Place(row=1, side='right', fits=True), Place(row=0, side='right', fits=True)]
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
