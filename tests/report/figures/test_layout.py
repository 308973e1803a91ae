"""Nothing overlaps or leaves the canvas, on a phone and in print, whatever the scores are."""

from collections.abc import Callable
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes

from pac_wrap import Guarantee
from pac_wrap.base.arguments import Scores
from pac_wrap.report.figures import new_axes, plot_affordable, plot_boxes, plot_scores, style
from pac_wrap.report.figures.strip import Strip
from support.layout import PHONE, PRINT, faults
from support.slow import slow_but
from support.strategies import calibrate_quietly, guarantee, scores


def every_figure(normal: Scores, anomalous: Scores, promise: Guarantee) -> dict[str, Callable[..., Axes]]:
    two = calibrate_quietly(normal, anomalous, promise)
    one = calibrate_quietly(normal, anomalous, promise, overlap="algorithm1")
    return {
        "scores": lambda **page: plot_scores(two, normal, anomalous, **page),
        "log": lambda **page: plot_scores(one, normal, anomalous, log=True, **page),
        "boxes": lambda **page: plot_boxes(two, one, normal, anomalous, **page),
        "affordable": lambda **page: plot_affordable(6860, 140, **page),
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


@settings(max_examples=6)
@given(scores(min_size=1), scores(), guarantee, st.sampled_from([PHONE, PRINT]))
def test_wild_scores_overlap_nothing(
    normal: Scores, anomalous: Scores, promise: Guarantee, width: float
) -> None:
    two = calibrate_quietly(normal, anomalous, promise)
    one = calibrate_quietly(normal, anomalous, promise, overlap="algorithm1")
    assert faults(plot_scores(two, normal, anomalous, log=True, ax=new_axes(width))) == []
    assert faults(plot_boxes(two, one, normal, anomalous, ax=new_axes(width))) == []


def test_text_too_long_for_its_edge_takes_more_rows() -> None:
    ax = new_axes(PHONE)
    Strip(ax, style()).edges(["left " * 20, "short"], ["", "right " * 20])
    assert len(ax.texts) > 5
    assert faults(ax) == []


def test_the_check_itself_sees_overlap_small_print_and_what_leaves_the_canvas() -> None:
    ax = plot_affordable(6860, 140, ax=new_axes(PHONE))
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
