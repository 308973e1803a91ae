"""Groups under one rule and under their own: what is counted, what is tested, and what is said of it."""

import warnings

import numpy as np
import pytest

from pac_wrap import Guarantee
from pac_wrap.series.points import joined, window_points
from pac_wrap_paper.studies import reproduce
from pac_wrap_paper.studies.charts import PanelChart
from pac_wrap_paper.studies.groups import SIGNIFICANT, Measured, Residual, Scored, measure
from support.datafolder import needs

ASKED = Guarantee(0.1, 0.1, 0.1, 0.1)
SIZES = {"quiet": 9000, "loud": 1000, "small": 60}


def made_up(seed: int = 0) -> Scored:
    """Return three groups: one whose normal points score high, which a large one hides, and a small one."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.array(list(SIZES), dtype=object), list(SIZES.values()))
    labels = (np.arange(groups.size) % 5 == 0).astype(np.int8)
    scores = random.normal(6.0 * labels + 4.0 * (groups == "loud"))
    return Scored("census", ASKED, scores, labels, groups, tuple(SIZES), ("random",))


@pytest.fixture(scope="module")
def found() -> Measured:
    return measure(made_up(), "random", 0)


def test_one_rule_keeps_its_promise_and_breaks_it_for_a_group(found: Measured) -> None:
    assert found.mixture_above == ()
    assert found.above("one") == ((), ("FPR",), ())
    assert found.above("own") == ((), (), ())
    assert (found.count("one"), found.count("own")) == (1, 0)
    loud = found.groups[1]
    assert loud.one.fpr.value > 0.4
    assert loud.own.fpr.value < 0.15
    assert sum(rate.n for rate in loud.rates("own")) + sum(loud.labels) == 1000


def test_the_level_is_shared_over_both_rates_of_all_groups(found: Measured) -> None:
    assert 1.0 - (1.0 - found.level) ** 6 == pytest.approx(SIGNIFICANT)


def test_a_group_with_too_few_labels_is_said_to_have_no_rule_of_its_own(found: Measured) -> None:
    small = found.groups[2]
    assert small.labels == (25, 3)
    assert small.enough == (True, False)
    assert small.vacuous
    assert not small.pooled, "there is no other group with too few labels"
    assert found.whole.promised == (True, True)


def test_the_pool_is_not_a_promise_of_their_own() -> None:
    scored = made_up()
    quiet = np.flatnonzero(scored.groups == "quiet")
    for number in range(20):
        scored.groups[quiet[60 * number : 60 * number + 60]] = f"tiny {number}"
    names = tuple(dict.fromkeys(scored.groups.tolist()))
    many = measure(scored._replace(names=names), "random", 0)
    tiny = [group for group in many.groups if group.name.startswith("tiny")]
    assert len(tiny) == 20
    assert all(group.pooled and group.promised == (False, False) for group in tiny)


def test_blocks_keep_their_distance_and_dependence_is_noticed() -> None:
    random = np.random.default_rng(0)
    labels = np.tile(np.repeat([0, 1], [1800, 200]), 10)
    noise = np.convolve(random.normal(size=labels.size + 99), np.full(100, 0.1), "valid")
    series = [window_points(noise + 3.0 * labels + shift, labels, every=5) for shift in (0.0, 1.0)]
    points = joined(series)
    groups = np.repeat(np.array(["a", "b"], dtype=object), points.scores.size // 2)
    scored = Scored("smd", ASKED, points.scores, points.labels, groups, ("a", "b"), ("blocks",), points)
    division = scored.divided("blocks", 0)
    calibrating, testing = (points.positions[part] for part in (division.calibration, division.test))
    assert np.abs(calibrating[:, None] - testing).min() >= 240
    assert all(group.dependent == (True, True) for group in measure(scored, "blocks", 0).groups)


def test_a_residual_is_large_where_steps_leave_their_plane() -> None:
    random = np.random.default_rng(0)
    steps = random.normal(size=(500, 1)) @ np.ones((1, 4)) + 0.01 * random.normal(size=(500, 4))
    detector = Residual().fit(steps)
    usual = detector.decision_function(steps)
    moved = steps.copy()
    moved[300, 0] += 1.0
    found = detector.decision_function(moved)
    assert found[300] > 100 * np.median(usual)
    np.testing.assert_array_equal(found[:300], usual[:300])


def test_a_series_that_never_changes_has_the_least_residual_until_it_does() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Residual().fit(np.ones((50, 2))).decision_function(np.vstack([np.ones((9, 2)), [[2.0, 1.0]]]))
    assert found[:9].tolist() == [1e-6] * 9
    assert found[9] >= 1.0


@pytest.mark.slow
def test_the_study_in_small() -> None:
    needs("nasa", "smd", "census")
    study = reproduce("groups", quick=True, trials=1)
    totals, rates = study.tables
    assert [row["divided"] for row in totals.rows] == ["at random", "in blocks"] * 2 + ["at random"]
    assert len(rates.rows) == 2 * 4 + 2 * 6 + 12
    assert all(isinstance(chart, PanelChart) for chart in study.charts)
    assert all(sentence.endswith(".") for sentence in (*study.setting, *study.findings))
    # at random, own rules keep what they promise
    assert [row["above, own rule"] for row in totals.rows if row["divided"] == "at random"] == [0, 0, 0]
