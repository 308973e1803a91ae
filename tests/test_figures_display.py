"""The display class, the colours, the SVG text, and what happens without matplotlib."""

import re
import subprocess
import sys
from importlib import import_module
from typing import Any, get_args
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from sklearn.ensemble import IsolationForest

from pac_wrap import MissingExtraError, PACWrap, calibrate, calibrate_labelled, evaluate
from pac_wrap.report import figures
from pac_wrap.report.figures import CertificateDisplay, new_axes, plot_plan, plot_scores, style, to_svg
from pac_wrap.report.figures.ambiguity import _COLOURS, _DIM
from pac_wrap.report.figures.display import Kind
from strategies import refusal

KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind != "boxes")
RANDOM = np.random.default_rng(3)
SCORES = np.r_[RANDOM.normal(0, 1, 400), RANDOM.normal(3, 1, 200)]
LABELS = np.repeat([0, 1], [400, 200])
CERTIFICATE = calibrate_labelled(SCORES, LABELS)


def figure_of(dark: bool = False) -> Figure:
    figure = plot_scores(CERTIFICATE, SCORES[:400], SCORES[400:], dark=dark).figure
    assert isinstance(figure, Figure)
    return figure


@pytest.mark.parametrize("kind", KINDS)
def test_display_draws_each_kind_on_the_given_axes(kind: Kind) -> None:
    ax = new_axes()
    display = CertificateDisplay.from_scores(CERTIFICATE, SCORES, LABELS, kind, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.plot(kind).ax_ is not ax


def test_display_draws_boxes_with_the_certificate_it_is_given() -> None:
    relaxed = calibrate_labelled(SCORES, LABELS, abstain=False)
    display = CertificateDisplay(CERTIFICATE, SCORES[:400], SCORES[400:]).plot("boxes", relaxed=relaxed)
    assert any("one threshold" in text.get_text() for text in display.ax_.texts)


def test_display_of_an_estimator_shows_its_scores_under_its_own_labels() -> None:
    X = np.r_[RANDOM.normal(0, 1, (600, 2)), RANDOM.normal(5, 1, (200, 2))]
    y = np.repeat(["ok", "bad"], [600, 200])
    wrap = PACWrap(IsolationForest(random_state=0), anomaly_label="bad", random_state=0).fit(X, y)
    display = CertificateDisplay.from_estimator(wrap, X, y, log=True)
    assert np.array_equal(display.anomalous, wrap.decision_function(X[600:]))
    assert display.normal.size == 600
    assert display.certificate is wrap.certificate_
    assert display.ax_.get_yscale() == "log"


def test_display_measures_its_own_scores() -> None:
    display = CertificateDisplay(CERTIFICATE, SCORES[:400], SCORES[400:])
    assert display.metrics == evaluate(CERTIFICATE.verdicts(SCORES), LABELS)


def test_display_refuses_what_it_does_not_know() -> None:
    display = CertificateDisplay(CERTIFICATE, SCORES, [])
    assert "kind must be one of 'scores'" in refusal(lambda: display.plot("pie"))  # type: ignore[arg-type]
    assert "same length" in refusal(lambda: CertificateDisplay.from_scores(CERTIFICATE, [1.0], [0, 1]))
    one, other = pd.Series([1.0, 2.0]), pd.Series([0, 1], index=[1, 0])
    assert "same index" in refusal(lambda: CertificateDisplay.from_scores(CERTIFICATE, one, other))


def test_figures_leave_pyplot_and_the_settings_alone() -> None:
    code = (
        "import sys, matplotlib\n"
        "names = [name for name in matplotlib.rcParams if name != 'backend']\n"
        "settings = lambda: [matplotlib.rcParams[name] for name in names]\n"
        "before = settings()\n"
        "from pac_wrap.report.figures import plot_plan, to_svg; to_svg(plot_plan([0]).figure)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert settings() == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def luminance(colour: object) -> float:
    channels = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]  # type: ignore[arg-type]
    return float(np.dot(channels, [0.2126, 0.7152, 0.0722]))


def contrast(one: object, other: object) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("dark", "page"), [(False, "#FFFFFF"), (True, "#1E1E1E")])
def test_colours_stand_out_from_their_page(dark: bool, page: str) -> None:
    look = style(dark)
    assert contrast(look.text, page) >= 7
    assert contrast(look.muted, page) >= 4.5
    assert contrast(look.normal, page) >= 3
    assert contrast(look.anomalous, page) >= 3


def test_numbers_on_the_heat_map_can_be_read() -> None:
    for height in np.linspace(0, 1, 101):
        assert contrast("#FFFFFF" if height < _DIM else "#000000", _COLOURS(height)[:3]) >= 4.5


def test_page_shows_through_and_text_takes_its_colour() -> None:
    for dark in (False, True):
        figure = figure_of(dark)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        assert np.asarray(canvas.buffer_rgba())[0, 0, 3] == 0
        (ax,) = figure.axes
        shown = [*ax.texts, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()]
        assert {text.get_color() for text in shown} == {style(dark).text}


def test_new_axes_have_the_size_that_is_asked_for() -> None:
    assert new_axes(5, 2).figure.get_figure(root=True).get_size_inches().tolist() == [5, 2]


def test_given_axes_keep_their_own_background() -> None:
    ax = Figure().add_subplot(facecolor="#123456")
    assert plot_plan([0], ax=ax) is ax
    assert to_hex(ax.get_facecolor(), keep_alpha=True) == "#123456ff"


class TestSvg:
    def test_same_figure_gives_the_same_bytes(self) -> None:
        assert to_svg(figure_of()) == to_svg(figure_of())
        assert to_svg(figure_of()) != to_svg(figure_of(dark=True))

    def test_is_one_element_with_text_as_text_and_nothing_loaded(self) -> None:
        svg = to_svg(figure_of(), alt='<scores> & "labels"')
        root = ElementTree.fromstring(svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.get("aria-label") == '<scores> & "labels"'
        written = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
        assert "anomalous, n = 200" in written
        assert not re.search(r"<(style|script|image|metadata|!DOCTYPE|\?xml)", svg)
        assert set(re.findall(r"\w+://[\w.]+", svg)) == {"http://www.w3.org"}
        assert re.findall(r"\b20\d\d-\d\d", svg) == []

    def test_ids_are_unique_within_and_between_figures_and_every_reference_is_met(self) -> None:
        svgs = [to_svg(figure_of()), to_svg(figure_of(dark=True)), to_svg(figure_of(), prefix="third-")]
        ids = [name for svg in svgs for name in re.findall(r'\sid="([^"]+)"', svg)]
        assert len(ids) == len(set(ids)) > 30
        for svg in svgs:
            own = set(re.findall(r'\sid="([^"]+)"', svg))
            used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
            assert used
            assert used <= own
        assert all(name.startswith("third-") for name in re.findall(r'\sid="([^"]+)"', svgs[2]))

    def test_hatches_are_not_washed_out_by_a_translucent_face(self) -> None:
        svg = to_svg(figure_of())
        hatched = re.findall(r'style="fill: url\(#[^"]*"', svg)
        assert hatched
        assert not any("fill-opacity" in one for one in hatched)

    def test_settings_of_the_caller_change_nothing(self) -> None:
        plain = to_svg(figure_of())
        with matplotlib.rc_context({"svg.fonttype": "path", "savefig.bbox": "tight"}):
            assert to_svg(figure_of()) == plain

    def test_is_small(self) -> None:
        random = np.random.default_rng(0)
        normal, anomalous = random.standard_cauchy(100_000), random.standard_cauchy(100_000) + 9
        display = CertificateDisplay(calibrate(normal, anomalous), normal, anomalous)
        for kind in KINDS:
            figure = display.plot(kind).figure_
            assert isinstance(figure, Figure)
            assert len(to_svg(figure)) < 80_000, kind


def test_without_matplotlib_one_sentence_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import pac_wrap, pac_wrap.report\n"
        "from pac_wrap import MissingExtraError, PACWrapError\n"
        "try:\n    import pac_wrap.report.figures\n"
        "except MissingExtraError as error:\n"
        "    assert isinstance(error, ImportError) and isinstance(error, PACWrapError)\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        'figures need matplotlib, which is not installed: pip install "pac-wrap-ad[plot]"\n'
    )


def test_without_matplotlib_the_import_fails_and_nothing_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "pac_wrap.report.figures")
    with pytest.raises(MissingExtraError, match="pip install"):
        import_module("pac_wrap.report.figures")
    assert "pac_wrap.report.figures" not in sys.modules


def test_importing_the_library_does_not_import_matplotlib() -> None:
    code = (
        "import sys, pac_wrap, pac_wrap.report, pac_wrap.report.terminal\n"
        "assert not [name for name in sys.modules if name.startswith('matplotlib')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_what_they_are() -> None:
    assert figures.__all__ == [
        "CertificateDisplay",
        "Style",
        "new_axes",
        "plot_ambiguity",
        "plot_boxes",
        "plot_held_out",
        "plot_plan",
        "plot_rates",
        "plot_scores",
        "style",
        "to_svg",
    ]
    assert all(getattr(figures, name).__doc__ for name in figures.__all__)
