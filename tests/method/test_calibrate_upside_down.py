"""Scores are called upside down only if that is significant, at 1 %, and the warning points at the user."""

import inspect
import warnings
from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from pac_wrap import PACWrap, UpsideDownWarning, calibrate, calibrate_chunks, calibrate_labelled
from pac_wrap.method.calibrate import Request, certify
from pac_wrap.method.comparison import compare_scores
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.source import PartitionSource
from pac_wrap.ranks.memory import auc, is_upside_down
from pac_wrap.ranks.passes import survey
from pac_wrap.report.sentences import Report, warnings_of
from statistical.claims import assert_at_most, assert_power
from support.slow import slow_but
from support.strategies import Floats, calibrate_quietly, scores

LEVEL = 0.01


def draw_apart(rng: np.random.Generator, area: float, sizes: tuple[int, int]) -> tuple[Floats, Floats]:
    """Draw Gaussian scores of two classes whose AUC is `area`."""
    gap = np.sqrt(2.0) * norm.ppf(area)
    return rng.normal(size=sizes[0]), rng.normal(gap, 1.0, sizes[1])


@pytest.mark.parametrize("few", [1, 2, 6, 7, 8, 20, 59, 60, 500, 9_999])
def test_the_level_is_kept_where_the_auc_varies_most(few: int) -> None:
    # anomalies lie below or above all normal points with one half each: the AUC is the share above
    fires = [k for k in range(few + 1) if is_upside_down(k / few, 10**6, few)]
    false_alarm = binom.cdf(fires[-1], few, 0.5) if fires else 0.0
    assert fires == list(range(len(fires)))
    assert false_alarm <= LEVEL
    # and it is not kept by never warning
    assert (few < 7) == (not fires)
    assert not fires or false_alarm > LEVEL / 25


@pytest.mark.parametrize("sizes", slow_but(1, [(60, 20), (20, 60), (7, 7), (300, 300)]))
@pytest.mark.parametrize("kind", ["alike", "anomalies at both ends", "normals at both ends", "tied"])
def test_scores_that_are_not_upside_down_are_called_so_in_one_of_a_hundred_at_most(
    kind: str, sizes: tuple[int, int]
) -> None:
    rng = np.random.default_rng(12)
    trials, hits = 3000, 0
    for _ in range(trials):
        normal, anomalous = rng.normal(size=sizes[0]), rng.normal(size=sizes[1])
        if kind == "anomalies at both ends":
            anomalous = np.sign(anomalous) * 9.0
        elif kind == "normals at both ends":
            normal = np.sign(normal) * 9.0
        elif kind == "tied":
            normal, anomalous = np.sign(normal), np.sign(anomalous)
        hits += is_upside_down(auc(normal, anomalous), *sizes)
    assert_at_most(hits, trials, LEVEL)
    assert_power(trials, LEVEL, 0.03, at_most=True)


@pytest.mark.parametrize(("area", "sizes"), [(0.1, (60, 20)), (0.05, (2000, 12)), (0.3, (1000, 100))])
def test_scores_that_are_clearly_upside_down_are_found(area: float, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(13)
    trials = 1000
    missed = sum(not is_upside_down(auc(*draw_apart(rng, area, sizes)), *sizes) for _ in range(trials))
    assert_at_most(missed, trials, 0.1)
    assert_power(trials, 0.1, 0.2, at_most=True)


@given(st.floats(0.0, 1.0), st.integers(1, 10**9), st.integers(1, 10**9))
def test_it_is_the_bound_on_the_smaller_class(area: float, one: int, other: int) -> None:
    bound = log(2) + sum(x * log(x) for x in (area, 1 - area) if x > 0)
    m = min(one, other, 10_000)
    if abs(m * bound - log(100)) > 1e-6:
        assert is_upside_down(area, one, other) == (area < 0.5 and m * bound >= log(100))
    assert is_upside_down(area, one, other) == is_upside_down(area, other, one)


@given(scores(1, 20), scores(1, 20))
def test_the_area_of_a_survey_that_is_tested_is_never_below_the_true_one(
    normal: Floats, anomalous: Floats
) -> None:
    found = survey(normal, anomalous)
    assert found.largest_auc() >= auc(normal, anomalous) - 1e-12


def everywhere(normal: Floats, anomalous: Floats) -> dict[str, Callable[[], Any]]:
    """Return every way to be told that scores are upside down; each warns, or returns sentences."""
    values = np.concatenate([normal, anomalous])
    labels = np.repeat([0, 1], [normal.size, anomalous.size])
    report = Report(calibrate_quietly(normal, anomalous), normal, anomalous)
    return {
        "calibrate": lambda: calibrate(normal, anomalous),
        "calibrate_labelled": lambda: calibrate_labelled(values, labels),
        "calibrate_chunks": lambda: calibrate_chunks(lambda: [(values, labels)]),
        "partitions": lambda: certify(PartitionSource(lambda task: task(0, values, labels), 1), Request()),
        "PACWrap": lambda: PACWrap(lambda X: X[:, 0]).calibrate(values[:, None], labels),
        "compare": lambda: compare_scores({"a": (values, labels == 1)}, Guarantee()),
        "report": lambda: [text for text in warnings_of(report) if "score lower" in text],
    }


@pytest.mark.parametrize("way", everywhere(np.zeros(1), np.ones(1)))
def test_every_way_warns_of_what_is_significant_and_of_nothing_else(way: str) -> None:
    rng = np.random.default_rng(14)
    for area, expected in ((0.1, True), (0.47, False)):
        action = everywhere(*draw_apart(rng, area, (100, 60)))[way]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = action()
        told = answer if way == "report" else [w for w in caught if w.category is UpsideDownWarning]
        assert len(told) == expected, area


@pytest.mark.parametrize("way", ["calibrate", "calibrate_labelled", "calibrate_chunks", "partitions"])
def test_the_warning_points_at_the_line_that_called(way: str) -> None:
    low, high = np.arange(80.0), np.arange(100.0, 180.0)
    action = everywhere(high, low)[way]
    line = inspect.getsourcelines(action)[1]
    with pytest.warns(UpsideDownWarning) as caught:
        action()
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


@pytest.mark.parametrize("name", ["pac_wrap_mine", "mine", None])
def test_a_module_whose_name_is_like_ours_is_the_user_too(name: str | None) -> None:
    space: dict[str, Any] = {"calibrate": calibrate} | ({} if name is None else {"__name__": name})
    code = compile("calibrate(list(range(100, 180)), list(range(80)))", "theirs.py", "exec")
    with pytest.warns(UpsideDownWarning) as caught:
        exec(code, space)
    assert [warning.filename for warning in caught] == ["theirs.py"]
