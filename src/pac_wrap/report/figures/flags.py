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


def arrange(places: Sequence[float], lengths: Sequence[float], width: float) -> list[tuple[int, Side]]:
    """Return the row of each flag and the side its label runs to: no line through a label, if it can be.

    Next best is what keeps the labels above the axes.

    >>> arrange([10.0, 20.0], [50.0, 50.0], 100.0)
    [(1, 'right'), (0, 'right')]
    """
    sides: tuple[Side, ...] = ("right", "left")
    best: list[tuple[int, Side]] = []
    least = (inf, inf)
    for chosen in product(sides, repeat=len(places)):
        spans = [
            (x, x + length) if side == "right" else (x - length, x)
            for x, length, side in zip(places, lengths, chosen, strict=True)
        ]
        outside = sum(max(0.0, -start) + max(0.0, end - width) for start, end in spans)
        for rows in permutations(range(len(places))):
            crossed = sum(
                rows[other] > rows[i] and start < x < end
                for i, (start, end) in enumerate(spans)
                for other, x in enumerate(places)
            )
            if (crossed, outside) < least:
                least, best = (crossed, outside), list(zip(rows, chosen, strict=True))
    return best
