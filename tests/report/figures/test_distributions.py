"""Scores and boxes: what the figure shows is what the certificate and the scores say."""

from math import inf
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle, StepPatch

from pac_wrap import Guarantee, Regime, calibrate
from pac_wrap.base.arguments import Scores
from pac_wrap.report.figures import plot_boxes, plot_scores
from support.drawn import ANOMALOUS, FAILED, NORMAL, OVERLAPPING, SINGLE, legend, points, texts, thresholds
from support.strategies import calibrate_quietly


def shaded(ax: Axes) -> tuple[float, float] | None:
    for patch in ax.patches:
        if patch.get_label() == "abstains":
            assert isinstance(patch, Rectangle)
            return patch.get_x(), patch.get_x() + patch.get_width()
    return None


def histograms(ax: Axes) -> dict[str, tuple[Scores, Scores]]:
    found = {}
    for patch in ax.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            found[str(patch.get_label()).split(",")[0]] = (np.asarray(values), np.asarray(edges))
    return found


class TestScores:
    def test_thresholds_and_ambiguity_region_are_those_of_the_rule(self) -> None:
        ax = plot_scores(OVERLAPPING, NORMAL, ANOMALOUS)
        rule = OVERLAPPING.rule
        assert thresholds(ax) == {"anomaly from": rule.anomaly_from, "normal below": rule.normal_below}
        assert shaded(ax) == pytest.approx(rule.ambiguity_region, rel=1e-12)
        assert legend(ax) == ["normal, n = 2,000", "anomalous, n = 300", "abstains"]

    @pytest.mark.parametrize("log", [False, True])
    def test_heights_are_percent_of_the_class_in_shared_bins(self, log: bool) -> None:
        drawn = histograms(plot_scores(OVERLAPPING, NORMAL, ANOMALOUS, log=log))
        edges = drawn["normal"][1]
        assert np.array_equal(edges, drawn["anomalous"][1])
        for name, scores in (("normal", NORMAL), ("anomalous", ANOMALOUS)):
            counts = drawn[name][0] * scores.size / 100
            assert counts.sum() == pytest.approx(scores.size)
            assert counts == pytest.approx(np.histogram(scores, edges)[0])

    def test_log_scale_reaches_below_the_smallest_share(self) -> None:
        ax = plot_scores(OVERLAPPING, NORMAL, ANOMALOUS, log=True)
        assert ax.get_yscale() == "log"
        assert 0 < ax.get_ylim()[0] <= 100 / NORMAL.size

    def test_log_scale_shows_bars_whose_share_is_a_power_of_ten(self) -> None:
        ax = plot_scores(OVERLAPPING, NORMAL[:10], ANOMALOUS[:10], log=True)
        shares = np.concatenate([heights for heights, _ in histograms(ax).values()])
        assert shares[shares > 0].min() == 10.0
        assert ax.get_ylim()[0] <= 5.0

    def test_single_threshold_stands_alone_and_nothing_is_shaded(self) -> None:
        ax = plot_scores(SINGLE, NORMAL, ANOMALOUS)
        assert thresholds(ax) == {"anomaly from": SINGLE.rule.anomaly_from}
        assert shaded(ax) is None

    @pytest.mark.parametrize("side", ["max_fpr", "max_fnr"])
    def test_one_sided_promise_has_one_threshold(self, side: str) -> None:
        promise = Guarantee(max_fnr=None) if side == "max_fpr" else Guarantee(max_fpr=None)
        certificate = calibrate(NORMAL, ANOMALOUS, promise)
        found = certificate.thresholds
        ax = plot_scores(certificate, NORMAL, ANOMALOUS)
        assert thresholds(ax) == {
            "anomaly from": found.alarm_from if side == "max_fpr" else found.clear_below
        }
        assert shaded(ax) is None

    def test_infinite_thresholds_are_named_at_the_edge_and_all_is_shaded(self) -> None:
        certificate = calibrate(NORMAL[:10], ANOMALOUS[:10])
        ax = plot_scores(certificate, NORMAL, ANOMALOUS)
        assert certificate.regime is Regime.VACUOUS
        assert thresholds(ax) == {}
        assert {"never an alarm ▸", "◂ never cleared"} <= set(texts(ax))
        assert shaded(ax) == pytest.approx(ax.get_xlim())

    def test_vacuous_one_sided_promise_says_what_happens_to_every_point(self) -> None:
        never = calibrate(NORMAL[:10], ANOMALOUS, Guarantee(max_fnr=None))
        always = calibrate(NORMAL, ANOMALOUS[:10], Guarantee(max_fpr=None))
        assert "never an alarm ▸" in texts(plot_scores(never, NORMAL, ANOMALOUS))
        assert "◂ always an alarm" in texts(plot_scores(always, NORMAL, ANOMALOUS))
        assert set(always.verdicts(NORMAL)) == {1}

    def test_half_vacuous_promise_is_shaded_to_the_edge(self) -> None:
        certificate = calibrate(NORMAL[:10], ANOMALOUS)
        ax = plot_scores(certificate, NORMAL, ANOMALOUS)
        assert thresholds(ax) == {"normal below": certificate.rule.normal_below}
        assert shaded(ax) == pytest.approx((certificate.rule.normal_below, ax.get_xlim()[1]))

    def test_infinite_scores_are_counted_and_marked_at_their_edge(self) -> None:
        normal = np.r_[NORMAL, [inf] * 3, [-inf] * 2]
        anomalous = np.r_[ANOMALOUS, [inf] * 30]
        ax = plot_scores(OVERLAPPING, normal, anomalous)
        assert {"at inf: 3 normal, 30 anomalous ▸", "◂ at \N{MINUS SIGN}inf: 2 normal"} <= set(texts(ax))
        marks = sorted(str(one.get_label()) for one in ax.get_lines() if "beyond" in str(one.get_label()))
        assert marks == ["_beyond left normal", "_beyond right anomalous", "_beyond right normal"]
        drawn = histograms(ax)
        assert drawn["normal"][0].sum() == pytest.approx(100 * 2000 / 2005)
        assert drawn["anomalous"][0].sum() == pytest.approx(100 * 300 / 330)

    def test_rare_outliers_are_counted_at_the_edge_instead_of_squeezing_the_rest(self) -> None:
        ax = plot_scores(OVERLAPPING, np.r_[NORMAL, 1e6, 1e300], ANOMALOUS)
        assert "off scale: 2 normal ▸" in texts(ax)
        assert ax.get_xlim()[1] < 10
        assert ax.get_xlim()[0] < min(NORMAL.min(), ANOMALOUS.min())

    def test_thresholds_far_from_zero_are_told_apart(self) -> None:
        certificate = calibrate(1e9 + NORMAL, 1e9 + ANOMALOUS)
        shown = {
            text.rsplit(" ", 1)[0]: float(text.rsplit(" ", 1)[1])
            for text in texts(plot_scores(certificate, 1e9 + NORMAL, 1e9 + ANOMALOUS))
        }
        assert shown["anomaly from"] == pytest.approx(certificate.rule.anomaly_from, abs=0.01, rel=0)
        assert shown["normal below"] == pytest.approx(certificate.rule.normal_below, abs=0.01, rel=0)

    def test_threshold_outside_the_scores_stretches_the_axis(self) -> None:
        ax = plot_scores(OVERLAPPING, NORMAL - 100, ANOMALOUS - 100)
        assert OVERLAPPING.rule.anomaly_from < ax.get_xlim()[1]

    @pytest.mark.parametrize(
        ("normal", "anomalous"),
        [([], [1.0, 2.0]), ([1.0, 2.0], []), ([3.0] * 9, [3.0] * 9), ([inf] * 3, [-inf]), ([0.0], [5e-324])],
    )
    def test_small_empty_constant_and_infinite_classes_are_drawn(self, normal: Any, anomalous: Any) -> None:
        certificate = calibrate_quietly(normal, anomalous)
        ax = plot_scores(certificate, normal, anomalous)
        low, high = ax.get_xlim()
        assert low < high
        assert f"normal, n = {len(normal)}" in legend(ax)
        plot_scores(certificate, normal, anomalous, log=True)
        plot_boxes(certificate, calibrate_quietly(normal, anomalous, overlap="algorithm1"), normal, anomalous)


class TestBoxes:
    def test_thresholds_are_the_two_asked_for_and_the_one_reached(self) -> None:
        ax = plot_boxes(OVERLAPPING, SINGLE, NORMAL, ANOMALOUS)
        rule = OVERLAPPING.rule
        assert thresholds(ax) == {
            "anomaly from": rule.anomaly_from,
            "normal below": rule.normal_below,
            "one threshold": SINGLE.rule.anomaly_from,
        }
        assert not SINGLE.uncertified
        assert SINGLE.fpr.ceiling == SINGLE.fnr.ceiling == 0.15
        assert "one threshold: FPR ≤ 15 %, FNR ≤ 15 %" in texts(ax)

    def test_boxes_span_the_quartiles(self) -> None:
        ax = plot_boxes(OVERLAPPING, SINGLE, NORMAL, ANOMALOUS)
        boxes = {patch.get_label(): patch for patch in ax.patches}
        for name, scores in (("_normal", NORMAL), ("_anomalous", ANOMALOUS)):
            x = np.asarray(boxes[name].get_path().vertices)[:, 0]
            assert (x.min(), x.max()) == pytest.approx(tuple(np.percentile(scores, [25, 75])))

    def test_outliers_are_thinned_but_never_moved(self) -> None:
        scores = np.random.default_rng(1).standard_cauchy(20_000)
        ax = plot_boxes(OVERLAPPING, SINGLE, scores, ANOMALOUS)
        fliers = [
            points(one)[0] for one in ax.get_lines() if one.get_marker() == "|" and len(points(one)[0]) > 2
        ]
        assert fliers
        low, high = ax.get_xlim()
        for found in fliers:
            assert found.size <= 201
            assert np.isin(found, np.r_[scores, ANOMALOUS, low, high]).all()

    def test_failure_to_reach_one_threshold_is_said(self) -> None:
        ax = plot_boxes(OVERLAPPING, FAILED, NORMAL, ANOMALOUS)
        assert FAILED.uncertified
        assert "one threshold" not in thresholds(ax)
        assert "no single threshold can be certified" in texts(ax)

    def test_one_sided_promise_has_its_one_threshold(self) -> None:
        alone = calibrate(NORMAL, ANOMALOUS, Guarantee(max_fnr=None), overlap="algorithm1")
        ax = plot_boxes(OVERLAPPING, alone, NORMAL, ANOMALOUS)
        assert thresholds(ax)["one threshold"] == alone.rule.anomaly_from
        assert "one threshold: FPR ≤ 5 %" in texts(ax)
