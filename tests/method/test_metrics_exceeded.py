"""Whether a ceiling is exceeded is one question with one answer: exit code, terminal, reports and figures."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import Guarantee, calibrate
from pac_wrap.method.metrics import Metrics, Rate, exceeded, is_exceeded, metrics_of
from pac_wrap.report.pages.content import to_json
from pac_wrap.report.pages.formats import to_html, to_markdown
from pac_wrap.report.subject import Report
from pac_wrap.report.terminal import show_evaluation
from statistical.claims import assert_at_most, assert_power
from support.shell import invoke, text_of, write
from support.strategies import exact_tail

NORMAL, ANOMALOUS = np.arange(100.0), np.arange(200.0, 300.0)
CERTIFICATE = calibrate(NORMAL, ANOMALOUS)
# of 100 points against 0.05: P(X >= 9) = .063, P(X >= 10) = .028 (between 2.5 % and 5 %), P(X >= 11) = .012
COUNTS = [(5, False), (9, False), (10, True), (11, True)]


def measured(alarms: int, misses: int = 0) -> Metrics:
    return metrics_of(np.array([[100 - alarms, alarms, 0], [misses, 100 - misses, 0]]))


@given(st.integers(1, 60), st.floats(0.001, 0.999), st.data())
def test_it_is_the_exact_one_sided_test_at_5_percent(n: int, rate: float, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    chance = 1 - exact_tail(errors - 1, n, rate) if errors else 1
    assert is_exceeded(rate, Rate(errors, n, 0.0, 1.0)) == (chance <= Fraction(0.05))


def test_nothing_is_exceeded_without_points_or_without_a_promise() -> None:
    assert not is_exceeded(0.05, Rate(0, 0, 0.0, 1.0))
    assert not is_exceeded(None, Rate(10, 10, 0.7, 1.0))


def test_a_promise_that_is_just_kept_is_called_broken_in_one_of_twenty_at_most() -> None:
    rng = np.random.default_rng(5)
    trials = 20_000
    counts = rng.binomial(400, 0.05, trials).tolist()
    hits = sum(is_exceeded(0.05, Rate(count, 400, 0.0, 1.0)) for count in counts)
    assert_at_most(hits, trials, 0.05)
    assert_power(trials, 0.05, 0.065, at_most=True)


@pytest.mark.parametrize(("count", "broken"), COUNTS)
def test_every_place_says_the_same(count: int, broken: bool) -> None:
    pytest.importorskip("matplotlib")
    from pac_wrap.report.figures import plot_held_out

    for name, metrics in (("FPR", measured(count)), ("FNR", measured(0, count))):
        report = Report(CERTIFICATE, NORMAL, ANOMALOUS, metrics=metrics)
        assert exceeded(metrics, Guarantee()) == ((name,) if broken else ())
        assert ("exceeded" in text_of(show_evaluation(CERTIFICATE, metrics))) == broken
        finding = json.loads(to_json(report))["held_out"]["findings"][name.lower()]
        assert ("significantly above" in finding) == broken
        # a page takes a second to draw
        for text in (to_markdown(report), *([to_html(report)] if count == 10 else [])):
            assert ("significantly above the ceiling" in text) == broken
            assert ("Do not rely on the promise" in text) == broken
        drawn = [text.get_text() for text in plot_held_out(CERTIFICATE, metrics).texts]
        assert any("above ceiling" in " ".join(text.split()) for text in drawn) == broken


@pytest.mark.parametrize(("count", "broken"), COUNTS)
def test_the_exit_code_says_the_same(count: int, broken: bool, tmp_path: Path) -> None:
    CERTIFICATE.save(tmp_path / "certificate.json")
    rows = [f"{'500' if i < count else '0'},0" for i in range(100)] + ["500,1"] * 100
    table = write(tmp_path / "new.csv", "\n".join(["score,label", *rows]) + "\n")
    done = invoke("evaluate", tmp_path / "certificate.json", table, "--score", "score", "--label", "label")
    assert done.code == (1 if broken else 0)
    assert ("exceeded" in done.out) == broken
