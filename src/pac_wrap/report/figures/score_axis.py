"""An axis of scores: the rule of a certificate on it, and what lies beyond what is drawn."""

from collections.abc import Sequence
from math import inf

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from pac_wrap.base.arguments import Scores
from pac_wrap.method.rule import Rule
from pac_wrap.report.figures.strip import Flag, Strip
from pac_wrap.report.figures.styling import PlainTicks, Style, room, round_ticks, text_width
from pac_wrap.report.window import LeftRight, Window
from pac_wrap.report.words.numbers import number

_LEFT, _RIGHT = "\N{BLACK LEFT-POINTING SMALL TRIANGLE}", "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
_DASHED = (0, (5, 2))


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
