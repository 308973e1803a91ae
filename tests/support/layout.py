"""How a figure lies on its canvas: what overlaps, leaves it or is too small, on a phone and in print."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

PHONE, PRINT = 3.2, 6.5
TOLERANCE = 0.5  # pixels


def paint(figure: Figure) -> None:
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()


@contextmanager
def recorded(figure: Figure) -> Iterator[list[tuple[Text, Bbox]]]:
    """Draw a figure and yield every text that reached the canvas, with the place it took."""
    drawn: list[tuple[Text, Bbox]] = []
    original = Text.draw

    def draw(self: Text, renderer: Any) -> None:
        if self.get_visible() and self.get_text().strip():
            drawn.append((self, self.get_window_extent(renderer)))
        original(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", draw)
        paint(figure)
        yield drawn


def faults(ax: Axes) -> list[str]:
    figure = ax.get_figure(root=True)
    assert figure is not None
    found = []
    with recorded(figure) as drawn:
        assert len(drawn) > 4
        for text, box in drawn:
            inside = box.x0 > -TOLERANCE and box.x1 < figure.bbox.width + TOLERANCE
            if not (inside and box.y0 > -TOLERANCE and box.y1 < figure.bbox.height + TOLERANCE):
                found.append(f"{text.get_text()!r} leaves the canvas")
            if float(text.get_fontsize()) < 7:
                found.append(f"{text.get_text()!r} is too small")
        for (one, here), (other, there) in combinations(drawn, 2):
            wide = min(here.x1, there.x1) - max(here.x0, there.x0)
            high = min(here.y1, there.y1) - max(here.y0, there.y0)
            if wide > TOLERANCE and high > TOLERANCE:
                found.append(f"{one.get_text()!r} overlaps {other.get_text()!r}")
    return found
