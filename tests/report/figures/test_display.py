"""The display class, and what happens without matplotlib."""

import subprocess
import sys
from importlib import import_module
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest

from pac_wrap import MissingExtraError, PACWrap, calibrate_labelled, evaluate
from pac_wrap.report import figures
from pac_wrap.report.figures import CertificateDisplay, new_axes
from pac_wrap.report.figures.display import Kind
from support.drawn import CERTIFICATE, LABELS, SCORES
from support.strategies import refusal

KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind != "boxes")
RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("kind", KINDS)
def test_display_draws_each_kind_on_the_given_axes(kind: Kind) -> None:
    ax = new_axes()
    display = CertificateDisplay.from_scores(CERTIFICATE, SCORES, LABELS, kind, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.plot(kind).ax_ is not ax


def test_display_draws_boxes_with_the_certificate_it_is_given() -> None:
    single = calibrate_labelled(SCORES, LABELS, overlap="algorithm1")
    display = CertificateDisplay(CERTIFICATE, SCORES[:400], SCORES[400:]).plot("boxes", single=single)
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
    assert "kind must be one of 'scores'" in refusal(display.plot, "pie")
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


def test_importing_the_library_imports_neither_matplotlib_nor_templates() -> None:
    code = (
        "import sys, pac_wrap, pac_wrap.report.pages.formats, pac_wrap.report.terminal\n"
        "assert not [name for name in sys.modules if name.startswith(('matplotlib', 'jinja2'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_what_they_are() -> None:
    assert figures.__all__ == [
        "CertificateDisplay",
        "Style",
        "new_axes",
        "plot_affordable",
        "plot_ambiguity",
        "plot_boxes",
        "plot_curve",
        "plot_held_out",
        "plot_plan",
        "plot_rates",
        "plot_scores",
        "style",
        "to_svg",
    ]
    assert all(getattr(figures, name).__doc__ for name in figures.__all__)
