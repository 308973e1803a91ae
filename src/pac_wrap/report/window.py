"""The scores that a picture shows: not stretched by rare ones, which are counted at the edge instead."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Final, Literal

import numpy as np

from pac_wrap.base.arguments import Scores
from pac_wrap.ranks.memory import kth_largest, kth_smallest
from pac_wrap.report.words.numbers import minus

LeftRight = Literal["left", "right"]
_LARGEST: Final = 1e150  # beyond it, the arithmetic of a plotting library overflows
_RARE: Final = 0.005
_STRETCH: Final = 2.0
_MARGIN: Final = 0.02


@dataclass(frozen=True, slots=True)
class Window:
    """The scores from `low` to `high`; a few that lie far outside are counted at the edge instead."""

    low: float
    high: float

    @classmethod
    def around(cls, classes: Sequence[Scores], marks: Sequence[float | None] = ()) -> "Window":
        """Return the range of all scores, but not stretched by rare ones; marks always lie inside.

        >>> Window.around([np.array([0.0, 1.0, np.inf])], [2.0])
        Window(low=-0.04, high=2.04)
        """
        drawn = [scores[np.abs(scores) <= _LARGEST] for scores in classes]
        ends = [end for scores in drawn if scores.size for end in _ends(scores)]
        ends += [mark for mark in marks if mark is not None and abs(mark) <= _LARGEST]
        low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
        largest = max(abs(low), abs(high))
        margin = _MARGIN * (high - low)
        if high - low <= 1e-9 * largest or high - low < 1e-290:
            margin = 0.1 * largest if largest > 1e-290 else 0.5
        return cls(low - margin, high + margin)

    @property
    def span(self) -> float:
        """The width of the window."""
        return self.high - self.low

    def __contains__(self, x: float) -> bool:
        return self.low <= x <= self.high

    def beyond(self, normal: Scores, anomalous: Scores) -> list["Beyond"]:
        """Return how many scores of each class are not drawn: far ones and infinite ones, at either edge."""
        groups = []
        ends: tuple[tuple[LeftRight, float], ...] = (("left", -inf), ("right", inf))
        for edge, end in ends:
            outside = [
                scores[scores < self.low if edge == "left" else scores > self.high]
                for scores in (normal, anomalous)
            ]
            infinite = [int(np.count_nonzero(scores == end)) for scores in outside]
            farther = [scores.size - count for scores, count in zip(outside, infinite, strict=True)]
            for place, counts in (("off scale", farther), (f"at {minus(str(end))}", infinite)):
                if any(counts):
                    groups.append(Beyond(place, edge, counts[0], counts[1]))
        return groups


@dataclass(frozen=True, slots=True)
class Beyond:
    """Scores that are not drawn: where they are, at which edge they are marked, and how many."""

    place: str
    edge: LeftRight
    normal: int
    anomalous: int


def _ends(scores: Scores) -> tuple[float, float]:
    """Return the least and the largest score, or where rare ones begin to stretch the range."""
    low, high = float(scores.min()), float(scores.max())
    rank = max(1, ceil(_RARE * scores.size))
    inner_low, inner_high = kth_smallest(scores, rank), kth_largest(scores, rank)
    reach = _STRETCH * (inner_high - inner_low)
    if reach == 0.0:
        return low, high
    near = scores[(scores >= inner_low - reach) & (scores <= inner_high + reach)]
    return float(near.min()), float(near.max())
