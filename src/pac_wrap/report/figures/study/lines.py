"""Where the lines of an interval chart lie, counted in lines from the top."""

from dataclasses import dataclass
from typing import Final

from pac_wrap.experiments.study import Bar, Intervals
from pac_wrap.report.figures.look import text_width, wrap

_WIDEST: Final = 0.35  # of the width of the figure, for the label of a bar
_NEXT: Final = 0.8  # a further line of the same label is closer
_BOLD: Final = 1.15  # a heading is wider than plain text
_APART: Final = 0.35  # between two groups


@dataclass(frozen=True, slots=True)
class Lines:
    """Bars with their middle and wrapped label, headings with their middle, and the ends of each group.

    `room` is what the labels of the bars leave of the width, in points.
    """

    bars: tuple[tuple[float, str, Bar], ...]
    headings: tuple[tuple[float, str], ...]
    spans: tuple[tuple[float, float], ...]
    room: float

    @property
    def end(self) -> float:
        """Where the last group ends."""
        return max((bottom for _, bottom in self.spans), default=0.0)


def lay_out(picture: Intervals, size: float, width: float) -> Lines:
    """Return the lines of a chart in text of a size, on a figure so many points wide.

    >>> bars = (Bar("FPR", 0.03, 0.05, 0.04), Bar("FNR", 0.03, 0.05, 0.04))
    >>> lines = lay_out(Intervals("q1", "Violations", "share", None, "", (("LOF", bars),)), 9.0, 400.0)
    >>> lines.headings, [place for place, *_ in lines.bars], lines.spans
    (((0.5, 'LOF'),), [1.5, 2.5], ((1.0, 3.0),))
    """
    labels = {
        bar.label: wrap(bar.label, _WIDEST * width, size) for _, group in picture.groups for bar in group
    }
    widest = max((text_width(line, size) for lines in labels.values() for line in lines), default=0.0)
    room = width - widest - 3.0 * size
    bars, headings, spans = [], [], []
    top = 0.0
    for heading, group in picture.groups:
        for line in wrap(heading, room / _BOLD, size) if heading else []:
            headings.append((top + 0.5, line))
            top += 1.0
        start = top
        for bar in group:
            height = 1.0 + _NEXT * (len(labels[bar.label]) - 1)
            bars.append((top + height / 2.0, "\n".join(labels[bar.label]), bar))
            top += height
        spans.append((start, top))
        top += _APART
    return Lines(tuple(bars), tuple(headings), tuple(spans), room)
