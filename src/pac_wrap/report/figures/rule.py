"""What a certificate's rule looks like on an axis of scores."""

from collections.abc import Sequence
from math import inf

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from pac_wrap.inputs import Scores
from pac_wrap.report.figures.flags import Flag, Side
from pac_wrap.report.figures.look import Style, number
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.window import Window
from pac_wrap.thresholds import Thresholds

_LEFT, _RIGHT = "\N{BLACK LEFT-POINTING SMALL TRIANGLE}", "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
_DASHED = (0, (5, 2))


def marks(rule: Thresholds) -> list[float | None]:
    """Return the scores that a picture of the rule has to contain."""
    return [rule.alarm_from, rule.clear_below]


def single_of(rule: Thresholds) -> float | None:
    """Return the one threshold of a rule that never abstains, or None.

    >>> single_of(Thresholds(alarm_from=0.7, clear_below=None))
    0.7
    """
    if not rule.single:
        return None
    return rule.clear_below if rule.alarm_from is None else rule.alarm_from


def flags_of(rule: Thresholds, span: float = inf) -> list[Flag]:
    """Return one labelled line per threshold, with digits enough for an axis of that span.

    >>> [flag.text for flag in flags_of(Thresholds(alarm_from=0.7, clear_below=0.3))]
    ['alarm from 0.7', 'clear below 0.3']
    """
    alarm, clear = rule.alarm_from, rule.clear_below
    tau = single_of(rule)
    if tau is not None:
        never = {inf: "never an alarm", -inf: "always an alarm"}
        return [Flag(tau, never.get(tau, f"anomaly from {number(tau, span)}"), "-", 1.8)]
    assert alarm is not None
    assert clear is not None
    return [
        Flag(alarm, "never an alarm" if alarm == inf else f"alarm from {number(alarm, span)}"),
        Flag(clear, "never cleared" if clear == -inf else f"clear below {number(clear, span)}", _DASHED),
    ]


def draw_flags(
    ax: Axes,
    look: Style,
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
                _mark(ax, look, group.edge, name, height)
    strip.edges(left, right)


def shade(ax: Axes, look: Style, rule: Thresholds) -> list[Artist]:
    """Shade the scores that are abstained; return the legend entry, if there is anything to shade."""
    region = rule.ambiguity_region
    if region is None:
        return []
    low, high = np.clip(region, *ax.get_xlim())
    return [
        ax.axvspan(
            float(low),
            float(high),
            facecolor=look.faint,
            linewidth=0.0,
            zorder=0.5,
            label="abstains",
        )
    ]


def _mark(ax: Axes, look: Style, edge: Side, name: str, height: float) -> None:
    ax.plot(
        [1.0 if edge == "right" else 0.0],
        [height],
        transform=ax.transAxes,
        marker=">" if edge == "right" else "<",
        markersize=0.7 * look.size,
        markerfacecolor=look.normal if name == "normal" else "none",
        markeredgecolor=look.of_class(name),
        clip_on=False,
        label=f"_beyond {edge} {name}",
    )
