"""An axis of scores: the range that is drawn, the rule of a certificate on it, and what lies beyond."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from pac_wrap.base.arguments import Scores
from pac_wrap.method.rule import Rule
from pac_wrap.ranks.memory import kth_largest, kth_smallest
from pac_wrap.report.figures.strip import Flag, LeftRight, Strip
from pac_wrap.report.figures.styling import PlainTicks, Style, minus, number, room, round_ticks, text_width

_LARGEST: Final = 1e150  # beyond it, the arithmetic of a plotting library overflows
_RARE: Final = 0.005
_STRETCH: Final = 2.0
_MARGIN: Final = 0.02
_LEFT, _RIGHT = "\N{BLACK LEFT-POINTING SMALL TRIANGLE}", "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
_DASHED = (0, (5, 2))


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

    def apply(self, ax: Axes, style: Style) -> None:
        """Set the limits of the lower axis, with as many ticks as their labels leave room for."""
        ax.set_xlim(self.low, self.high)
        form = PlainTicks()
        ax.xaxis.set_major_formatter(form)

        def fits(most: int) -> bool:
            ticks = [tick for tick in round_ticks(most).tick_values(self.low, self.high) if tick in self]
            widths = [text_width(label, style.size) + 1.5 * style.size for label in form.format_ticks(ticks)]
            return sum(widths) <= room(ax)

        most = next((most for most in range(7, 1, -1) if fits(most)), 1)
        ax.xaxis.set_major_locator(round_ticks(most))


@dataclass(frozen=True, slots=True)
class Beyond:
    """Scores that are not drawn: where they are, at which edge they are marked, and how many."""

    place: str
    edge: LeftRight
    normal: int
    anomalous: int


def marks(rule: Rule) -> list[float]:
    """Return the scores that a picture of the rule has to contain."""
    return [rule.normal_below, rule.anomaly_from]


def flags_of(rule: Rule, span: float = inf) -> list[Flag]:
    """Return one labelled line per threshold, with digits enough for an axis of that span.

    >>> [flag.text for flag in flags_of(Rule(normal_below=0.3, anomaly_from=0.7))]
    ['anomaly from 0.7', 'normal below 0.3']
    """
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
        counts = [("normal", group.normal, 0.9), ("anomalous", group.anomalous, 0.8)]
        text = f"{group.place}: " + ", ".join(f"{count:,} {name}" for name, count, _ in counts if count)
        if group.edge == "left":
            left.append(f"{_LEFT} {text}")
        else:
            right.append(f"{text} {_RIGHT}")
        for name, count, height in counts:
            if count:
                _mark(ax, style, group.edge, name, height)
    strip.edges(left, right)


def shade(ax: Axes, style: Style, rule: Rule) -> list[Artist]:
    """Shade the scores that are abstained; return the legend entry, if there is anything to shade."""
    region = rule.ambiguity_region
    if region is None:
        return []
    low, high = np.clip(region, *ax.get_xlim())
    return [
        ax.axvspan(
            float(low),
            float(high),
            facecolor=style.faint,
            linewidth=0.0,
            zorder=0.5,
            label="abstains",
        )
    ]


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
