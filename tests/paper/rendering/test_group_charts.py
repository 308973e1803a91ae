"""Charts of groups: each group a line, its two rates beside the ceiling, filled where they are too high."""

from matplotlib.colors import to_hex

from pac_wrap.method.metrics import Rate
from pac_wrap.paper.rendering.figures import draw
from pac_wrap.paper.studies.study import GroupChart, Pair
from pac_wrap.report.figures import style
from support.drawn import points

PAIRS = (
    Pair("all together", Rate(50, 1000, 0.037, 0.065), Rate(40, 1000, 0.029, 0.054), (False, False)),
    Pair("loud", Rate(300, 500, 0.56, 0.65), Rate(24, 500, 0.03, 0.07), (True, False)),
    Pair("small", Rate(0, 0, 0.0, 1.0), None, (False, False), "too few labels"),
)
CHART = GroupChart("groups", "Groups", (("FPR (%)", 0.05, PAIRS), ("FNR", 0.1, PAIRS)))


def test_what_is_drawn_is_what_was_measured() -> None:
    left, right = draw(CHART).axes
    assert [text.get_text() for text in left.get_yticklabels()] == [pair.label for pair in PAIRS]
    marks = [line for line in left.get_lines() if line.get_label() in ("_above", "_within")]
    assert [round(float(points(line)[0][0]), 6) for line in marks] == [5.0, 4.0, 60.0, 4.8]
    filled = [line.get_markerfacecolor() != "none" for line in marks]
    assert filled == [False, False, True, False]
    assert [line.get_marker() for line in marks] == ["o", "s", "o", "s"], "told apart without colour"
    assert to_hex(marks[2].get_color()) == style().anomalous.lower()
    assert [note.get_text() for note in left.texts] == ["too few labels"]
    ceilings = [
        float(points(line)[0][0]) for ax in (left, right) for line in ax.get_lines() if line.is_dashed()
    ]
    assert ceilings == [5.0, 0.1]


def test_a_phone_has_one_panel_above_the_other() -> None:
    wide, narrow = draw(CHART), draw(CHART, width=3.2)
    for figure in (wide, narrow):
        figure.draw_without_rendering()
    (one, two), (top, bottom) = ([ax.get_position() for ax in figure.axes] for figure in (wide, narrow))
    assert one.y0 == two.y0
    assert top.y0 > bottom.y1
