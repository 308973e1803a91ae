"""Figures show what certificate, scores and labels say; nothing overlaps, on a phone and in print."""

from collections.abc import Callable
from math import inf
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle, StepPatch

from pac_wrap import Curve, Guarantee, Regime, calibrate, certify_curve
from pac_wrap.base.arguments import Scores
from pac_wrap.report.figures import Strip, new_axes, plot_curve, plot_scores, style
from support.drawn import ANOMALOUS, NORMAL, OVERLAPPING, SINGLE, legend, texts, thresholds
from support.examples import examples
from support.layout import PHONE, PRINT, faults
from support.slow import slow_but
from support.strategies import calibrate_quietly, guarantee, scores


def shaded(ax: Axes) -> tuple[float, float] | None:
    for patch in ax.patches:
        if patch.get_label() == "undecided":
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
        assert thresholds(ax) == {"anomaly ≥": rule.anomaly_from, "normal <": rule.normal_below}
        assert shaded(ax) == pytest.approx(rule.ambiguity_region, rel=1e-12)
        assert legend(ax) == ["normal, n = 2,000", "anomalous, n = 300", "undecided"]

    def test_heights_are_percent_of_the_class_in_shared_bins(self) -> None:
        drawn = histograms(plot_scores(OVERLAPPING, NORMAL, ANOMALOUS))
        edges = drawn["normal"][1]
        assert np.array_equal(edges, drawn["anomalous"][1])
        for name, one in (("normal", NORMAL), ("anomalous", ANOMALOUS)):
            counts = drawn[name][0] * one.size / 100
            assert counts.sum() == pytest.approx(one.size)
            assert counts == pytest.approx(np.histogram(one, edges)[0])

    def test_single_threshold_stands_alone_and_nothing_is_shaded(self) -> None:
        ax = plot_scores(SINGLE, NORMAL, ANOMALOUS)
        assert thresholds(ax) == {"anomaly ≥": SINGLE.rule.anomaly_from}
        assert shaded(ax) is None

    @pytest.mark.parametrize("side", ["max_fpr", "max_fnr"])
    def test_one_sided_promise_has_one_threshold(self, side: str) -> None:
        promise = Guarantee(max_fnr=None) if side == "max_fpr" else Guarantee(max_fpr=None)
        certificate = calibrate(NORMAL, ANOMALOUS, promise)
        found = certificate.thresholds
        ax = plot_scores(certificate, NORMAL, ANOMALOUS)
        expected = found.alarm_from if side == "max_fpr" else found.clear_below
        assert thresholds(ax) == {"anomaly ≥": expected}
        assert shaded(ax) is None

    def test_of_infinite_thresholds_it_is_said_what_they_do_and_all_is_shaded(self) -> None:
        certificate = calibrate(NORMAL[:10], ANOMALOUS[:10])
        ax = plot_scores(certificate, NORMAL, ANOMALOUS)
        assert certificate.regime is Regime.VACUOUS
        assert thresholds(ax) == {}
        assert texts(ax) == ["every point is left undecided"]
        assert shaded(ax) == pytest.approx(ax.get_xlim())

    def test_vacuous_one_sided_promise_says_what_happens_to_every_point(self) -> None:
        never = calibrate(NORMAL[:10], ANOMALOUS, Guarantee(max_fnr=None))
        always = calibrate(NORMAL, ANOMALOUS[:10], Guarantee(max_fpr=None))
        assert texts(plot_scores(never, NORMAL, ANOMALOUS)) == ["every point is called normal"]
        assert texts(plot_scores(always, NORMAL, ANOMALOUS)) == ["every point is called an anomaly"]
        assert set(always.verdicts(NORMAL)) == {1}

    def test_half_vacuous_promise_is_shaded_to_the_edge(self) -> None:
        certificate = calibrate(NORMAL[:10], ANOMALOUS)
        ax = plot_scores(certificate, NORMAL, ANOMALOUS)
        assert thresholds(ax) == {"normal <": certificate.rule.normal_below}
        assert "no anomaly is ever declared" in texts(ax)
        assert shaded(ax) == pytest.approx((certificate.rule.normal_below, ax.get_xlim()[1]))

    def test_infinite_scores_are_counted_with_their_edge(self) -> None:
        normal = np.r_[NORMAL, [inf] * 3, [-inf] * 2]
        anomalous = np.r_[ANOMALOUS, [inf] * 30]
        ax = plot_scores(OVERLAPPING, normal, anomalous)
        said = " ".join(reversed(texts(ax)))
        assert (
            "Not drawn: 2 normal at \N{MINUS SIGN}inf (left); 3 normal and 30 anomalous at inf (right)."
            in said
        )
        drawn = histograms(ax)
        assert drawn["normal"][0].sum() == pytest.approx(100 * 2000 / 2005)
        assert drawn["anomalous"][0].sum() == pytest.approx(100 * 300 / 330)

    def test_rare_outliers_are_counted_instead_of_squeezing_the_rest(self) -> None:
        ax = plot_scores(OVERLAPPING, np.r_[NORMAL, 1e6, 1e300], ANOMALOUS)
        assert "Not drawn: 2 normal off scale (right)." in texts(ax)
        assert ax.get_xlim()[1] < 10
        assert ax.get_xlim()[0] < min(NORMAL.min(), ANOMALOUS.min())

    def test_thresholds_far_from_zero_are_told_apart(self) -> None:
        certificate = calibrate(1e9 + NORMAL, 1e9 + ANOMALOUS)
        shown = {
            text.rsplit(" ", 1)[0]: float(text.rsplit(" ", 1)[1])
            for text in texts(plot_scores(certificate, 1e9 + NORMAL, 1e9 + ANOMALOUS))
        }
        assert shown["anomaly ≥"] == pytest.approx(certificate.rule.anomaly_from, abs=0.01, rel=0)
        assert shown["normal <"] == pytest.approx(certificate.rule.normal_below, abs=0.01, rel=0)

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


RNG = np.random.default_rng(5)
CURVES = {
    "few": certify_curve(RNG.normal(0, 1, 30), RNG.normal(2, 1, 12)),
    "usual": certify_curve(RNG.normal(0, 1, 900), RNG.normal(3, 1, 200)),
    "many": certify_curve(RNG.normal(0, 1, 90_000), RNG.normal(5, 1, 30_000)),
    "one each": certify_curve([0.0], [1.0]),
}


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("width", [PHONE, PRINT])
def test_nothing_overlaps_around_a_curve(curve: Curve, width: float) -> None:
    assert faults(plot_curve(curve, new_axes(width))) == []


def test_a_step_is_the_least_fnr_that_goes_with_an_fpr() -> None:
    curve = CURVES["usual"]
    line = plot_curve(curve).get_lines()[0]
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    assert line.get_drawstyle() == "steps-post"
    assert (np.diff(x) >= 0).all()
    for ceiling in (0.03, 0.05, 0.2):
        kept = curve.choose(max_fpr=ceiling).guarantee
        assert y[np.searchsorted(x, 100 * ceiling, side="right") - 1] == pytest.approx(
            100 * (kept.max_fnr or 1)
        )


def every_figure(normal: Scores, anomalous: Scores, promise: Guarantee) -> dict[str, Callable[..., Axes]]:
    two = calibrate_quietly(normal, anomalous, promise)
    one = calibrate_quietly(normal, anomalous, promise, overlap="algorithm1")
    return {
        "scores": lambda **page: plot_scores(two, normal, anomalous, **page),
        "one threshold": lambda **page: plot_scores(one, normal, anomalous, **page),
    }


def samples() -> dict[str, tuple[Scores, Scores, Guarantee]]:
    random = np.random.default_rng(5)
    normal, anomalous = random.normal(0, 1, 2000), random.normal(2.5, 1.2, 300)
    some = np.r_[normal, [np.inf] * 3, [-np.inf] * 4, 60.0]
    return {
        "overlapping": (normal, anomalous, Guarantee()),
        "separated": (normal, anomalous + 5, Guarantee(0.01, 0.02, 0.001, 0.003)),
        "vacuous": (normal[:30], anomalous[:20], Guarantee()),
        "infinite": (some, np.r_[anomalous, [np.inf] * 30, [-np.inf] * 2], Guarantee()),
        "offset": (1e9 + normal, 1e9 + anomalous, Guarantee(max_fpr=0.123456)),
        "tiny, one-sided": (1e-9 * normal, 1e-9 * anomalous, Guarantee(max_fnr=None)),
        "constant": (np.full(100, 7.0), np.full(100, 7.0), Guarantee()),
        "no anomalies": (normal, anomalous[:0], Guarantee(max_fpr=None)),
    }


SAMPLES = samples()


@pytest.mark.parametrize("width", [PHONE, PRINT], ids=["phone", "print"])
@pytest.mark.parametrize("sample", slow_but(4, SAMPLES))
def test_no_text_overlaps_or_leaves_the_canvas(sample: str, width: float) -> None:
    for name, draw in every_figure(*SAMPLES[sample]).items():
        assert faults(draw(ax=new_axes(width))) == [], name


def test_a_narrower_phone_will_do() -> None:
    for name, draw in every_figure(*SAMPLES["infinite"]).items():
        assert faults(draw(ax=new_axes(3.0))) == [], name


@settings(max_examples=examples(6))
@given(scores(min_size=1), scores(), guarantee, st.sampled_from([PHONE, PRINT]))
def test_wild_scores_overlap_nothing(
    normal: Scores, anomalous: Scores, promise: Guarantee, width: float
) -> None:
    two = calibrate_quietly(normal, anomalous, promise)
    one = calibrate_quietly(normal, anomalous, promise, overlap="algorithm1")
    for certificate in (two, one):
        assert faults(plot_scores(certificate, normal, anomalous, ax=new_axes(width))) == []


def test_a_long_note_takes_more_rows() -> None:
    ax = new_axes(PHONE)
    strip = Strip(ax, style())
    strip.note("left " * 20)
    strip.note("short")
    assert len(ax.texts) > 2
    assert faults(ax) == []


def test_the_check_itself_sees_overlap_small_print_and_what_leaves_the_canvas() -> None:
    ax = plot_curve(CURVES["usual"], new_axes(PHONE))
    ax.text(0.5, 0.5, "one", transform=ax.transAxes, fontsize=6)
    ax.text(0.51, 0.5, "other", transform=ax.transAxes)
    ax.text(-3.0, 0.5, "gone", transform=ax.transAxes).set_in_layout(False)
    assert faults(ax) == [
        "'one' is too small",
        "'gone' leaves the canvas",
        "'one' overlaps 'other'",
    ]


def test_a_million_scores_are_drawn_within_a_second() -> None:
    random = np.random.default_rng(0)
    normal, anomalous = random.normal(0, 1, 1_000_000), random.normal(2.5, 1.2, 1_000_000)
    for name, draw in every_figure(normal, anomalous, Guarantee()).items():
        start = process_time()
        draw()
        assert process_time() - start < 1.0, name
