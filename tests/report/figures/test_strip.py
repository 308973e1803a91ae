"""Labels of lines: no line runs through more of them than it must."""

from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.method.rule import Rule
from pac_wrap.report.figures.strip import Place, arrange, flags_of


@given(st.lists(st.floats(0, 200), min_size=1, max_size=3), st.floats(60, 100))
def test_no_line_runs_through_a_label_of_two(lines: list[float], length: float) -> None:
    width = 200.0
    places = arrange(lines, [length] * len(lines), width)
    assert sorted(place.row for place in places) == list(range(len(lines)))
    starts = [
        max(0.0, min(x if place.side == "right" else x - length, width - length))
        for x, place in zip(lines, places, strict=True)
    ]
    through = [
        (i, j)
        for i, start in enumerate(starts)
        for j, x in enumerate(lines)
        if places[j].row > places[i].row and start < x < start + length
    ]
    assert len(through) <= max(0, len(lines) - 2)


def test_labels_stand_where_they_fit_and_say_what_begins_there() -> None:
    assert arrange([10.0, 20.0], [50.0, 50.0], 100.0) == [Place(1, "right"), Place(0, "right")]
    texts = [flag.text for flag in flags_of(Rule(normal_below=0.3, anomaly_from=0.7))]
    assert texts == ["anomaly from 0.7", "normal below 0.3"]
