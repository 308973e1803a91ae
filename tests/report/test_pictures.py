"""The pictures of a page for any scores: all places lie within, no number is missing, no label is crowded."""

import re
from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import certify_curve
from pac_wrap.method.rule import Rule
from pac_wrap.report.pictures import Window, bands, flags, histograms, multiple, panels, thresholds
from support.strategies import score

scores = st.lists(score, max_size=30).map(np.array)


def numbers(path: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?[\d.]+(?:e[+-]\d+)?", path)]


@given(scores, scores, score, score)
def test_whatever_the_scores_are_everything_lies_in_the_picture(
    normal: np.ndarray, anomalous: np.ndarray, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    rule = Rule(normal_below=low, anomaly_from=high)
    classes = normal.astype(float), anomalous.astype(float)
    window = Window.around(classes, [low, high])
    for drawn in histograms(window, *classes):
        assert sum(len(tick.text) + 3 for tick in drawn["ticks"]) <= 44
        for line in (*drawn["ticks"], *drawn["levels"]):
            assert 0.0 <= float(line.at) <= 100.0
        for path, given_scores in ((drawn["normal"], classes[0]), (drawn["anomalous"], classes[1])):
            assert all(0.0 <= number <= 1000.0 for number in numbers(path))
            shown = (given_scores >= window.low) & (given_scores <= window.high)
            assert bool(path) == bool(shown.any())
        outside = sum(int(np.count_nonzero(~((one >= window.low) & (one <= window.high)))) for one in classes)
        counted = [
            int(text.replace(",", "")) for text in re.findall(r"([\d,]+) (?:normal|anom)", drawn["beyond"])
        ]
        assert sum(counted) == outside
    for flag in flags(window, rule):
        assert 0.0 <= float(flag.at) <= 100.0
    gap = thresholds(window, rule)["undecided"]
    assert (gap is None) == rule.single
    assert gap is None or float(gap[0]) + float(gap[1]) <= 100.001


def test_bars_stand_where_scores_are() -> None:
    linear, log = histograms(Window(0.0, 50.0), np.array([0.5, 0.5, 10.5]), np.empty(0))
    assert linear["normal"] == "M0 100V7.4H20V100ZM200 100V53.7H220V100Z"
    assert linear["anomalous"] == log["anomalous"] == ""
    assert [level.text for level in log["levels"]] == ["100 %"]


def test_texts_of_two_thresholds_point_away_from_each_other() -> None:
    window = Window(0.0, 1.0)

    def told(low: float, high: float) -> list[tuple[str, str]]:
        return [(flag.text.split()[0], flag.anchor) for flag in flags(window, Rule(low, high))]

    assert told(0.1, 0.2) == [("normal", "start"), ("anomaly", "start")]
    assert told(0.8, 0.9) == [("anomaly", "end"), ("normal", "end")]
    assert told(0.45, 0.7) == [("anomaly", "middle"), ("normal", "end")]
    assert told(0.3, 0.7) == [("anomaly", "middle"), ("normal", "middle")]
    assert told(0.4, 0.4) == [("anomaly", "middle")]
    assert told(-inf, 0.4) == [("anomaly", "middle")]
    assert told(-inf, inf) == []


def test_the_bounds_of_a_curve_are_drawn_where_they_lie() -> None:
    curve = certify_curve(np.arange(200.0), np.arange(100.0, 300.0))
    drawn = bands(Window(0.0, 300.0), curve)
    low = 10.0 ** -len(drawn["levels"])
    for path, rate in ((drawn["fpr"], curve.fpr), (drawn["fnr"], curve.fnr)):
        start, end = numbers(path)[1], numbers(path)[-2]
        for height, threshold in ((start, 0.0), (end, 300.0)):
            expected = 100.0 * np.log10(rate(threshold)) / np.log10(low)
            assert abs(height - expected) < 0.06


def test_scales_and_flags_have_these_texts() -> None:
    assert Window.around([np.array([0.0, 1.0, inf])], [2.0]) == Window(-0.04, 2.04)
    drawn, _ = histograms(Window(0.0, 10.0), np.arange(10.0), np.arange(5.0, 10.0))
    assert [tick.text for tick in drawn["ticks"]] == ["2", "4", "6", "8"]
    assert [level.text for level in drawn["levels"]] == ["5 %", "10 %", "15 %", "20 %"]
    found = bands(Window(0.0, 200.0), certify_curve(range(100), range(50, 150)))
    assert [level.text for level in found["levels"]] == ["10 %", "100 %"]
    texts = [flag.text for flag in flags(Window(0.0, 1.0), Rule(0.3, 0.7))]
    assert texts == ["anomaly \N{GREATER-THAN OR EQUAL TO} 0.7", "normal < 0.3"]
    small = multiple(Window(0.0, 1.0), Rule(0.5, 0.5), np.array([0.2]), np.array([0.8]), "a", "1 + 1")
    assert [flag.at for flag in small["flags"]] == ["50.000"]
    assert [tick.text for tick in small["ticks"]] == ["0.5"]
    assert [one["name"] for one in panels({"FPR": 0.05})][:2] == ["Total variation", "Density ratio"]
