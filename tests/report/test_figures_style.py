"""Colours that can be read on their page, sizes as asked for, and SVG that is small and loads nothing."""

import re
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

from pac_wrap import calibrate, certify_curve
from pac_wrap.report.figures import (
    PlainTicks,
    new_axes,
    plot_curve,
    plot_scores,
    style,
    to_svg,
    wrap,
)
from support.drawn import scores_figure


def luminance(colour: Any) -> float:
    channels = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot(channels, [0.2126, 0.7152, 0.0722]))


def contrast(one: object, other: object) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("dark", "page"), [(False, "#FFFFFF"), (True, "#1E1E1E")])
def test_colours_stand_out_from_their_page(dark: bool, page: str) -> None:
    chosen = style(dark)
    assert contrast(chosen.text, page) >= 7
    assert contrast(chosen.muted, page) >= 4.5
    assert contrast(chosen.normal, page) >= 3
    assert contrast(chosen.anomalous, page) >= 3


def test_page_shows_through_and_text_takes_its_colour() -> None:
    for dark in (False, True):
        figure = scores_figure(dark)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        assert np.asarray(canvas.buffer_rgba())[0, 0, 3] == 0
        (ax,) = figure.axes
        shown = [*ax.texts, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()]
        assert {text.get_color() for text in shown} == {style(dark).text}


@pytest.mark.parametrize(("dark", "page"), [(False, 1.0), (True, 0.1)])
def test_a_notebook_shows_what_was_drawn(dark: bool, page: float) -> None:
    formatter = pytest.importorskip("IPython.core.formatters").PNGFormatter()
    normal, anomalous = range(1000), range(900, 1900)
    ax = plot_scores(calibrate(normal, anomalous), normal, anomalous, dark=dark)
    pixels = imread(BytesIO(formatter(ax)))
    width, height = ax.figure.get_figure(root=True).get_size_inches()
    assert pixels.shape[:2] == (round(144 * height), round(144 * width))
    assert pixels[0, 0, :3] == pytest.approx(page, abs=0.01)
    assert pixels[..., :3].std() > 0.05


def test_new_axes_have_the_size_that_is_asked_for() -> None:
    assert new_axes(5, 2).figure.get_figure(root=True).get_size_inches().tolist() == [5, 2]


def test_given_axes_keep_their_own_background() -> None:
    ax = Figure().add_subplot(facecolor="#123456")
    assert plot_curve(certify_curve(range(100), range(200, 300)), ax) is ax
    assert to_hex(ax.get_facecolor(), keep_alpha=True) == "#123456ff"


@given(st.text("abc =%≤", max_size=60), st.floats(20, 200))
def test_wrapping_keeps_every_word_in_order(text: str, width: float) -> None:
    assert " ".join(wrap(text, width, 9.0)).split() == text.split()


def test_ticks_are_told_apart_and_exact_enough() -> None:
    form = PlainTicks()
    assert form.format_ticks([]) == []
    assert form.format_ticks([0.0]) == ["0"]
    assert form.format_ticks([-0.2, 5e-17, 0.2]) == ["\N{MINUS SIGN}0.2", "0.0", "0.2"]
    assert form.format_ticks([1e300, 2e300]) == ["1e+300", "2e+300"]
    assert form.format_ticks([1000000005.0]) == ["1000000005"]
    assert form(0.25) == "0.25"


def test_sizes_lines_and_ticks_are_these() -> None:
    figure = new_axes(3.2).get_figure(root=True)
    assert figure is not None
    assert figure.get_size_inches().tolist() == [3.2, 2.72]
    assert wrap("classes of n = 1,000", 60.0, 9.0) == ["classes of", "n = 1,000"]
    ax = plot_curve(certify_curve(range(1000), range(2000, 3000)))
    low, high = ax.get_xlim()
    assert (low, high) == (0.1, 100.0)
    assert ax.xaxis.get_major_formatter().format_ticks([0.1, 100.0]) == ["0.1", "100"]


def svg_of(alt: str = "scores", dark: bool = False) -> str:
    return to_svg(scores_figure(dark), alt)


class TestSvg:
    def test_same_figure_gives_the_same_bytes(self) -> None:
        assert svg_of() == svg_of()
        assert svg_of() != svg_of(dark=True)

    def test_is_one_element_with_text_as_text_and_nothing_loaded(self) -> None:
        svg = svg_of('<scores> & "labels"')
        root = ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.get("aria-label") == '<scores> & "labels"'
        written = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
        assert "anomalous, n = 200" in written
        assert not re.search(r"<(style|script|image|metadata|!DOCTYPE|\?xml)", svg)
        assert set(re.findall(r"\w+://[\w.]+", svg)) == {"http://www.w3.org"}
        assert re.findall(r"\b20\d\d-\d\d", svg) == []

    def test_ids_are_unique_within_and_between_figures_and_every_reference_is_met(self) -> None:
        svgs = [svg_of(), svg_of(dark=True)]
        ids = [name for svg in svgs for name in re.findall(r'\sid="([^"]+)"', svg)]
        assert len(ids) == len(set(ids)) > 30
        for svg in svgs:
            own = set(re.findall(r'\sid="([^"]+)"', svg))
            used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
            assert used
            assert used <= own

    def test_hatches_are_not_washed_out_by_a_translucent_face(self) -> None:
        svg = svg_of()
        hatched = re.findall(r'style="fill: url\(#[^"]*"', svg)
        assert hatched
        assert not any("fill-opacity" in one for one in hatched)

    def test_settings_of_the_caller_change_nothing(self) -> None:
        plain = svg_of()
        with matplotlib.rc_context({"svg.fonttype": "path", "savefig.bbox": "tight"}):
            assert svg_of() == plain

    def test_is_small(self) -> None:
        random = np.random.default_rng(0)
        normal, anomalous = random.standard_cauchy(100_000), random.standard_cauchy(100_000) + 9
        certificate = calibrate(normal, anomalous)
        ax = plot_scores(certificate, normal, anomalous)
        assert len(to_svg(ax.figure.get_figure(root=True), "scores")) < 80_000
