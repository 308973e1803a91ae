"""Panels: each group a row, its two rates beside the ceiling, filled where they are too high."""

from math import nan

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from pac_wrap.report.figures import style
from pac_wrap_paper.figures import draw
from pac_wrap_paper.studies.charts import Marks, Panel, PanelChart
from support.drawn import points, texts

MARKS = (
    Marks("one", "one", (0.05, 0.6, nan), (0.037, 0.56, nan), (0.065, 0.65, nan), (False, True, False)),
    Marks("own", "own", (0.04, 0.048, nan), (0.029, 0.03, nan), (0.054, 0.07, nan), (False,) * 3),
)
NOTES = ("", "", "too few labels")
CHART = PanelChart(
    "groups",
    "Groups",
    ("all together", "loud", "small"),
    (Panel("FPR (%)", MARKS, 0.05, "ceiling", NOTES), Panel("FNR", MARKS, 0.1, "ceiling", NOTES)),
    "filled: above",
)


def test_what_is_drawn_is_what_was_measured() -> None:
    left, right = draw(CHART).axes
    assert [text.get_text() for text in left.get_yticklabels()] == list(CHART.rows)
    marks = [line for line in left.get_lines() if not line.is_dashed()]
    drawn = {
        (round(float(x), 6), line.get_marker(), line.get_markerfacecolor() != "none")
        for line in marks
        for x in points(line)[0]
        if not np.isnan(x)
    }
    # told apart without colour
    assert drawn == {(5.0, "o", False), (4.0, "s", False), (60.0, "o", True), (4.8, "s", False)}
    assert {to_hex(line.get_color()) for line in marks if line.get_marker() == "o"} == {
        style().anomalous.lower()
    }
    one, own = (found for found in left.collections if isinstance(found, LineCollection))
    for found, expected in zip((one, own), MARKS, strict=True):
        ends = np.array([segment[:, 0] for segment in found.get_segments()[:2]])
        assert np.allclose(ends.T, 100 * np.array([expected.low[:2], expected.high[:2]]))
    assert [text for text in texts(left) if text] == ["too few labels"]
    ceilings = [
        float(points(line)[0][0]) for ax in (left, right) for line in ax.get_lines() if line.is_dashed()
    ]
    assert ceilings == [5.0, 0.1]


def test_two_marks_with_ranges_stand_apart_in_their_row_and_one_in_its_middle() -> None:
    both, alone = (
        draw(CHART).axes[0],
        draw(PanelChart("one", "One", CHART.rows, (Panel("FPR (%)", MARKS[:1]),))).axes[0],
    )
    heights = [
        [float(y) for line in ax.get_lines() for y in points(line)[1] if not line.is_dashed()]
        for ax in (both, alone)
    ]
    assert sorted({round(y % 1, 2) for y in heights[0]}) == [0.17, 0.83]
    assert {y % 1 for y in heights[1]} == {0.0}


def test_nothing_to_draw_leaves_the_rows_empty() -> None:
    nothing = Marks("own", "own", (nan,) * 3, (nan,) * 3, (nan,) * 3)
    ax = draw(PanelChart("none", "None", CHART.rows, (Panel("FPR (%)", (nothing,)),))).axes[0]
    assert ax.get_xlim() == (0.0, 1.0)


def test_a_phone_has_one_panel_above_the_other() -> None:
    wide, narrow = draw(CHART), draw(CHART, width=3.2)
    for figure in (wide, narrow):
        figure.draw_without_rendering()
    (one, two), (top, bottom) = ([ax.get_position() for ax in figure.axes] for figure in (wide, narrow))
    assert one.y0 == two.y0
    assert top.y0 > bottom.y1
