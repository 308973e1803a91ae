"""Labelled vertical lines, and how their labels are kept apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import inf
from typing import Any, Literal

Side = Literal["left", "right"]


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
    side: Side
    fits: bool = True


def arrange(lines: Sequence[float], lengths: Sequence[float], width: float) -> list[Place]:
    """Return where the labels go so that the fewest lines run through a label, each in a row of its own.

    A label that does not fit between its line and the edge is put at the edge, on top of its line.

    >>> arrange([10.0, 20.0], [50.0, 50.0], 100.0)
    [Place(row=1, side='right', fits=True), Place(row=0, side='right', fits=True)]
    """
    sides: tuple[Side, ...] = ("right", "left")
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
