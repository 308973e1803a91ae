"""The strip above the axes: threshold labels, notes and the legend, each in rows of its own."""

from collections.abc import Sequence
from itertools import zip_longest
from math import ceil
from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation, Transform, blended_transform_factory

from pac_wrap.report.figures.flags import Flag, Side, arrange
from pac_wrap.report.figures.look import Style, room, text_width, wrap

_GAP: Final = 3.0  # points between a line and its label
_EDGES: Final[tuple[Side, Side]] = ("left", "right")
_HANDLE, _PAD, _BETWEEN = 2.2, 0.6, 1.4  # of a legend, in units of the text size


class Strip:
    """Rows above the axes, filled from below; one label per row, so that no two labels can overlap."""

    def __init__(self, ax: Axes, look: Style) -> None:
        self._ax, self._look = ax, look
        self._row = 1.35 * look.size
        self._height = 3.0  # points used so far

    def flags(self, flags: Sequence[Flag]) -> None:
        """Draw each line up to a row of its own, where its label stands."""
        low, high = self._ax.get_xlim()
        width = room(self._ax)
        lines = [(flag.x - low) / (high - low) * width for flag in flags]
        lengths = [text_width(flag.text, self._look.size) + _GAP for flag in flags]
        above = blended_transform_factory(self._ax.transData, self._above())
        bottom = self._height
        for flag, place in zip(flags, arrange(lines, lengths, width), strict=True):
            self._height = bottom + place.row * self._row
            line: dict[str, Any] = {
                "color": self._look.text,
                "linestyle": flag.linestyle,
                "linewidth": flag.linewidth,
            }
            self._ax.axvline(flag.x, label=f"_{flag.text}", **line)
            top = (self._height + (self._look.size if place.fits else 0.0)) / 72.0
            self._ax.add_line(Line2D([flag.x] * 2, [0.0, top], transform=above, clip_on=False, **line))
            if place.fits:
                self._text(flag.text, (flag.x, self._height / 72.0), above, place.side)
            else:
                self._at_edge(flag.text, place.side)
        self._height = bottom + len(flags) * self._row

    def note(self, text: str, edge: Side = "left") -> None:
        """Write a text at one edge of the axes, in as many rows as it needs."""
        for line in reversed(wrap(text, room(self._ax), self._look.size)):
            self._at_edge(line, edge)
            self._height += self._row

    def edges(self, left: Sequence[str], right: Sequence[str]) -> None:
        """Write texts at both edges of the axes, two in a row where they fit."""
        for one, other in zip_longest(left, right, fillvalue=""):
            if text_width(f"{one}  {other}", self._look.size) <= room(self._ax):
                self._at_edge(one, "left")
                self._at_edge(other, "right")
                self._height += self._row
            else:
                for text, edge in zip((one, other), _EDGES, strict=True):
                    if text:
                        self.note(text, edge)

    def legend(self, handles: Sequence[Artist], columns: int) -> None:
        """Put a legend on top of the strip, in at most that many columns."""
        size = self._look.size
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
            labelcolor=self._look.text,
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

    def _at_edge(self, text: str, edge: Side) -> None:
        above = blended_transform_factory(self._ax.transAxes, self._above())
        place = (0.0 if edge == "left" else 1.0, self._height / 72.0)
        if text:
            self._text(text, place, above, "right" if edge == "left" else "left", gap=0.0)

    def _text(
        self, text: str, place: tuple[float, float], system: Transform, side: Side, gap: float = _GAP
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
            color=self._look.text,
            fontsize=self._look.size,
        )


def _columns_width(widths: Sequence[float], columns: int, size: float) -> float:
    parts = [part for part in np.array_split(np.asarray(widths), columns) if part.size]
    return float(sum(part.max() for part in parts)) + (len(parts) - 1) * _BETWEEN * size
