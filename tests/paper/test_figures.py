"""Pictures of studies: what is drawn is what the data say, nothing overlaps, and it reads on any page."""

from dataclasses import replace
from itertools import pairwise
from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure

from pac_wrap.report.figures import new_axes, style, to_svg
from pac_wrap_paper.figures import (
    COLOURS,
    draw,
    ink,
    moved_apart,
    plot_heatmap,
    plot_intervals,
    plot_lines,
    plot_thresholds,
)
from pac_wrap_paper.studies.charts import (
    Bar,
    Chart,
    ChartLine,
    HeatMap,
    Interval,
    IntervalChart,
    LineChart,
    Marks,
    Panel,
    PanelChart,
    ScoreChart,
)
from support.drawn import ANOMALOUS, FAILED, NORMAL, OVERLAPPING, SINGLE, legend, line, points, texts
from support.layout import PHONE, PRINT, faults

GRID = (0.01, 0.02, 0.05, 0.1, 0.2)
GAMMA = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.2)


def bars(shift: float = 0.0) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            f"{rate} {share} %",
            0.038 - 0.002 * i + shift,
            0.048 - 0.002 * i + shift,
            0.043 - 0.002 * i + shift,
            exact=0.0431 - 0.002 * i,
            printed=Interval(0.02, 0.031) if i % 2 else None,
        )
        for i, (rate, share) in enumerate((rate, share) for rate in ("FPR", "FNR") for share in (50, 75, 100))
    )


def curve(label: str, kind: Any, slope: float) -> ChartLine:
    values = [0.035 + slope * gamma for gamma in GAMMA]
    low, high = (tuple(value + by for value in values) for by in (-0.006, 0.008))
    return ChartLine(label, kind, tuple(values), low, high)


VIOLATIONS = IntervalChart(
    "violations",
    "How often a ceiling was exceeded in 10,000 trials, next to the exact probability and what was printed",
    "calibration sets whose rate exceeds its ceiling (%)",
    0.05,
    "delta, 5 %",
    tuple(
        (f"{data}, {detector}", bars())
        for data in ("synthetic", "thyroid")
        for detector in ("isolation forest", "local outlier factor")
    ),
)
AMBIGUITY = HeatMap(
    "ambiguity",
    "Share of points left undecided",
    "ceiling of both rates",
    "delta of both",
    GRID,
    GRID,
    tuple(tuple(0.95 - 3.0 * rate - delta for rate in GRID) for delta in GRID),
    "abstained (%); S separated, O overlapping",
    tuple(tuple("S" if rate > 0.05 else "O" for rate in GRID) for _ in GRID),
)
SHIFT = LineChart(
    "shift",
    "Rates under shift",
    "gamma, by which the test points are moved",
    "rate (% of class)",
    GAMMA,
    (curve("FPR", "normal", 0.05), curve("FNR", "anomalous", 0.6)),
    0.05,
    "ceiling 5 %",
)
CLOSE = replace(
    SHIFT,
    y_label="rate",
    lines=tuple(
        curve(f"{rate}, {detector}", kind, 0.1 + 0.01 * i)
        for i, detector in enumerate(("isolation forest", "LOF"))
        for rate, kind in (("FPR", "normal"), ("FNR", "anomalous"))
    ),
)
SCORES = ScoreChart("scores", "Scores and thresholds", OVERLAPPING, SINGLE, NORMAL, ANOMALOUS)
GROUP_ENDS = (
    ((0.037, 0.56, nan, 0.0), (0.065, 0.65, nan, 0.01)),
    ((0.029, 0.03, nan, 0.09), (0.054, 0.07, nan, 0.15)),
)
GROUPS = PanelChart(
    "groups",
    "Server machines: error rates on the other half, with intervals",
    ("all together", "machine 1-6", "machine 2-8", "machine 3-2"),
    tuple(
        Panel(
            axis,
            (
                Marks("one rule for all", "one", (0.05, 0.6, nan, 0.0), *GROUP_ENDS[0], (False, True) * 2),
                Marks("a rule for each group", "own", (0.04, 0.05, nan, 0.1), *GROUP_ENDS[1], (False,) * 4),
            ),
            limit,
            "ceiling",
            ("", "", "too few labels", ""),
        )
        for axis, limit in (("false alarms: FPR (%)", 0.05), ("missed anomalies: FNR (%)", 0.1))
    ),
    "filled: significantly above",
)
PANELS = PanelChart(
    "tables",
    "Table by table: promised, reached, broken",
    tuple(f"table {i}" for i in range(12)),
    (
        Panel(
            "error rate (%)",
            (
                Marks("FPR reached", "ours", tuple(0.004 * i for i in range(12))),
                Marks("FNR reached", "second", (*(0.05 - 0.004 * i for i in range(11)), float("nan"))),
            ),
            0.05,
            "promised",
        ),
        Panel(
            "divisions above the ceiling (%)",
            (
                Marks("allowed", "exact", (0.1,) * 12),
                Marks("conformal", "other", (0.45,) * 12),
                Marks("percentile", "another", (0.52,) * 12, (0.4,) * 12, (0.6,) * 12),
            ),
        ),
    ),
)
PICTURES: dict[str, Chart] = {
    "panels": PANELS,
    "violations": VIOLATIONS,
    "long labels": replace(
        VIOLATIONS,
        groups=(("a heading of many words " * 4, (Bar("a label of many words " * 3, 0.1, 0.2, 0.15),)),),
    ),
    "ambiguity": AMBIGUITY,
    "long notes": replace(AMBIGUITY, value_label="share", notes=(("[0.034, 0.046]",) * 5,) * 5),
    "longer notes": replace(AMBIGUITY, notes=(("incomprehensibilities",) * 5,) * 5),
    "crowded": replace(
        AMBIGUITY, x=GRID * 8, values=(tuple(np.linspace(0, 1, 40)),) * 5, notes=(("",) * 40,) * 5
    ),
    "shift": SHIFT,
    "close": CLOSE,
    "scores": SCORES,
    "groups": GROUPS,
    "many groups": replace(
        GROUPS,
        rows=GROUPS.rows * 10,
        panels=tuple(
            replace(
                panel,
                notes=panel.notes * 10,
                marks=tuple(
                    Marks(one.label, one.look, one.values * 10, one.low * 10, one.high * 10, one.filled * 10)
                    for one in panel.marks
                ),
            )
            for panel in GROUPS.panels
        ),
    ),
}


def axes_of(figure: Figure) -> Axes:
    return figure.axes[0]


def named(ax: Axes, label: str) -> list[tuple[list[float], list[float]]]:
    found = [points(one) for one in ax.get_lines() if one.get_label() == f"_{label}"]
    return [(x.tolist(), y.tolist()) for x, y in found]


@pytest.mark.parametrize(
    "width", [PHONE, pytest.param(PRINT, marks=pytest.mark.slow)], ids=["phone", "print"]
)
@pytest.mark.parametrize("name", PICTURES)
def test_no_text_overlaps_or_leaves_the_canvas(name: str, width: float) -> None:
    figure = draw(PICTURES[name], width=width)
    assert faults(axes_of(figure)) == []
    assert figure.get_size_inches()[0] == width
    # the title stands above in full
    assert figure.get_suptitle().split() == PICTURES[name].title.split()


# one of each kind
@pytest.mark.parametrize("name", ["panels", "violations", "crowded", "shift", "scores"])
def test_same_picture_gives_the_same_bytes_and_another_on_a_dark_page(name: str) -> None:
    light, again, dark = (to_svg(draw(PICTURES[name], dark=dark), "a chart") for dark in (False, False, True))
    assert light == again
    assert light != dark
    assert style(dark=True).text.lower() in dark
    assert style().text.lower() not in dark
    assert "<image" not in light or name == "crowded"  # only a colour bar is one


class TestIntervals:
    def test_marks_are_those_of_the_data(self) -> None:
        ax = plot_intervals(VIOLATIONS)
        every = [bar for _, group in VIOLATIONS.groups for bar in group]
        for (x, y), bar in zip(named(ax, "ours"), every, strict=True):
            assert x == pytest.approx([100 * bar.low, 100 * bar.value, 100 * bar.high])
            assert len(set(y)) == 1
        assert [x for x, _ in named(ax, "exact")] == [[100 * bar.exact] for bar in every if bar.exact]
        printed = [bar.printed for bar in every if bar.printed]
        assert len(printed) == 12
        assert [x for x, _ in named(ax, "printed interval")] == [
            [100 * one.low, 100 * one.high] for one in printed
        ]

    def test_labels_stand_at_their_bars_under_the_heading_of_their_group(self) -> None:
        ax = plot_intervals(VIOLATIONS)
        assert texts(ax) == [heading for heading, _ in VIOLATIONS.groups]
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == [bar.label for _, group in VIOLATIONS.groups for bar in group]
        heights = [y[0] for _, y in named(ax, "ours")]
        assert ax.get_yticks().tolist() == heights == sorted(heights)
        assert ax.yaxis_inverted()

    def test_limit_is_drawn_beside_every_group_and_not_through_headings(self) -> None:
        ax = plot_intervals(VIOLATIONS)
        limits = named(ax, "limit")
        assert [x for x, _ in limits] == [[5.0, 5.0]] * 4
        headings = [text.get_position()[1] for text in ax.texts]
        assert not any(top < height < bottom for _, (top, bottom) in limits for height in headings)
        assert ax.get_xlim()[0] == 0.0

    def test_legend_names_only_what_is_drawn(self) -> None:
        assert legend(plot_intervals(VIOLATIONS)) == [
            "ours, with its interval",
            "exact value",
            "printed interval",
            "delta, 5 %",
        ]
        plain = replace(VIOLATIONS, limit=None, groups=(("", (Bar("FPR", 0.1, 0.3, 0.2),)),), axis="share")
        ax = plot_intervals(plain)
        assert legend(ax) == []
        assert texts(ax) == []
        assert named(ax, "ours") == [([0.1, 0.2, 0.3], [0.5] * 3)]

    def test_grows_with_its_lines(self) -> None:
        one = replace(VIOLATIONS, groups=VIOLATIONS.groups[:1])
        heights = [draw(picture).get_size_inches()[1] for picture in (one, VIOLATIONS)]
        assert heights[0] < 4.0 < heights[1] < 9.0

    def test_rate_that_was_never_counted_leaves_its_place_empty(self) -> None:
        ax = plot_intervals(replace(VIOLATIONS, groups=(("", (Bar("FPR", 0.0, nan, nan),)),), limit=None))
        assert ax.get_xlim()[1] > 0.0


class TestHeatMap:
    def test_cells_say_their_value_in_percent_and_their_note(self) -> None:
        ax = plot_heatmap(AMBIGUITY)
        shown: dict[Any, list[str]] = {}
        for text in ax.texts[:50]:
            shown.setdefault(tuple(text.xy), []).append(text.get_text())  # type: ignore[attr-defined]  # an annotation
        assert len(shown) == 25
        for (column, row), words in shown.items():
            value, note = AMBIGUITY.values[row][column], AMBIGUITY.notes[row][column]
            assert words == [f"{100 * value:.1f}", note]
        mesh: Any = ax.collections[0]
        assert np.asarray(mesh.get_array()).ravel() == pytest.approx(100 * np.array(AMBIGUITY.values).ravel())

    def test_axes_carry_the_given_numbers_upwards(self) -> None:
        ax = plot_heatmap(AMBIGUITY)
        for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
            assert [label.get_text() for label in labels] == ["0.01", "0.02", "0.05", "0.1", "0.2"]
        low, high = ax.get_ylim()
        assert low < high
        assert texts(ax)[-1] == AMBIGUITY.value_label

    def test_other_values_have_three_digits(self) -> None:
        values = ((0.5, 1e-9, 0.0), (12.345, nan, -0.25))
        picture = replace(
            AMBIGUITY, x=GRID[:3], y=GRID[:2], values=values, value_label="shift", notes=(("",) * 3,) * 2
        )
        assert texts(plot_heatmap(picture))[:6] == [
            "0.500",
            "0.000",
            "0.000",
            "12.3",
            "\N{EN DASH}",
            "\N{MINUS SIGN}0.250",
        ]
        shares = replace(picture, values=((1e-9, 0.0, 1.0),) * 2, value_label="in percent")
        assert texts(plot_heatmap(shares))[:3] == ["<0.1", "0.0", "100.0"]

    def test_note_that_does_not_fit_is_left_out_and_numbers_give_way_to_a_colour_bar(self) -> None:
        long = replace(AMBIGUITY, notes=(("incomprehensibilities",) * 5,) * 5)
        assert len(texts(plot_heatmap(long, ax=new_axes(PRINT)))) == 25 + 1
        figure = draw(PICTURES["crowded"])
        assert len(figure.axes) == 2
        assert texts(figure.axes[0]) == [AMBIGUITY.value_label]

    def test_equal_values_are_drawn(self) -> None:
        picture = replace(AMBIGUITY, values=((0.5,) * 5,) * 5)
        assert texts(plot_heatmap(picture))[0] == "50.0"

    def test_numbers_can_be_read_and_colours_are_a_scale_of_greys(self) -> None:
        scale = Normalize(0.0, 1.0)
        lights = []
        for value in np.linspace(0.0, 1.0, 101):
            lights.append(luminance(COLOURS(value)))
            contrast = sorted((lights[-1] + 0.05, luminance(ink(float(value), scale, style())) + 0.05))
            assert contrast[1] / contrast[0] >= 4.5
        assert (np.diff(lights) < 0.0).all()


def luminance(colour: Any) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot(parts, [0.2126, 0.7152, 0.0722]))


class TestCurves:
    def test_lines_bands_and_limit_are_those_of_the_data(self) -> None:
        ax = plot_lines(SHIFT)
        for one in SHIFT.lines:
            x, y = points(line(ax, one.label))
            assert x.tolist() == list(GAMMA)
            assert y == pytest.approx(100 * np.array(one.values))
        assert set(points(line(ax, "ceiling"))[1]) == {5.0}
        assert len(ax.collections) == 2
        for band, one in zip(ax.collections, SHIFT.lines, strict=True):
            heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
            assert (heights.min(), heights.max()) == pytest.approx((100 * min(one.low), 100 * max(one.high)))
        assert ax.get_ylim()[0] == 0.0

    def test_labels_stand_at_the_ends_where_they_fit(self) -> None:
        ax = plot_lines(SHIFT)
        assert legend(ax) == []
        assert texts(ax) == ["ceiling 5 %", "FPR", "FNR"]

    def test_else_there_is_a_legend(self) -> None:
        ax = plot_lines(CLOSE)
        assert texts(ax) == []
        assert legend(ax) == [one.label for one in CLOSE.lines] + ["ceiling 5 %"]

    def test_curves_are_told_apart_without_colour(self) -> None:
        lines = [one for one in plot_lines(CLOSE).get_lines() if one.get_marker() != "None"]
        assert len({one.get_marker() for one in lines}) == len(lines) == 4
        assert len({(one.get_linestyle(), str(one._dash_pattern)) for one in lines}) == 4  # type: ignore[attr-defined]  # untold


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6), st.floats(1, 30))
def test_places_are_moved_apart_in_their_order_around_the_same_middle(
    places: list[float], gap: float
) -> None:
    found = moved_apart(places, gap)
    order = sorted(range(len(places)), key=lambda i: places[i])
    assert all(found[b] - found[a] >= gap - 1e-9 for a, b in pairwise(order))
    assert sum(found) == pytest.approx(sum(places), abs=1e-6)
    if min(np.diff(sorted(places)), default=gap) >= gap:
        assert found == pytest.approx(places)


class TestThresholds:
    def test_the_one_that_was_reached_is_dotted_and_said(self) -> None:
        ax = plot_thresholds(SCORES)
        last = ax.get_lines()[-1]
        assert last.get_xdata() == [SINGLE.rule.anomaly_from] * 2
        assert last.is_dashed()
        assert "dotted: one threshold, FPR <= 0.15" in ax.get_xlabel().replace("\n", " ")

    def test_that_none_was_reached_is_said(self) -> None:
        ax = plot_thresholds(replace(SCORES, relaxed=FAILED))
        assert FAILED.uncertified
        assert "no single threshold can be certified" in ax.get_xlabel().replace("\n", " ")
        assert len(ax.get_lines()) == len(plot_thresholds(SCORES).get_lines()) - 1
