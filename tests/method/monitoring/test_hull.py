"""Scores against the hull of two bands: what is allowed is never bet against, and what is not is found."""

from math import inf, log

import numpy as np
import pytest

from pac_wrap import certify_curve
from pac_wrap.method.monitoring.alarm import Hull, hull_of
from statistical.claims import assert_at_most, assert_power

RNG = np.random.default_rng(0)
CURVE = certify_curve(RNG.normal(size=2000), RNG.normal(4, 1, size=300))
NONE = np.empty(0, dtype=np.int64)


def found(hull: Hull, scores: np.ndarray, alpha: float = 0.01) -> int | None:
    """The row of the alarm."""
    rows = np.arange(1, scores.size + 1)
    bets = hull.bets
    reached = bets.took(bets.unplaced(), hull.cells(scores), rows, NONE, -log(alpha))[2]
    return None if reached is None else reached.point + 1


def stream(rows: int, prevalence: np.ndarray | float, drift: float = 0.0) -> np.ndarray:
    anomalous = RNG.random(rows) < prevalence
    return np.where(anomalous, RNG.normal(4, 1, rows), RNG.normal(drift, 1, rows))


def hull() -> Hull:
    made = hull_of(CURVE)
    assert made is not None
    return made


def test_no_bet_wins_on_average_at_any_prevalence_and_the_worst_case_is_attained() -> None:
    """Normal points as far up, and anomalies as far down, as the bands allow."""
    bets = np.exp(hull().bets.logs)
    for (low, high, a, b), factors in zip(hull().pairs, bets, strict=True):
        below, between, above = factors[0], factors[low + 1], factors[-1]
        assert low < high
        assert min(below, above) > 0.0
        for prevalence in np.linspace(0.0, 1.0, 11):
            shares = (1 - prevalence) * a, (1 - prevalence) * (1 - a) + prevalence * (1 - b), prevalence * b
            mean = float(np.dot(shares, (below, between, above)))
            assert mean == pytest.approx(1.0, abs=1e-12)


def test_the_bands_hold_where_a_pair_says_so() -> None:
    for low, high, a, b in hull().pairs:
        assert CURVE.fpr(hull().edges[low]) == pytest.approx(1.0 - a)
        assert CURVE.fnr(hull().edges[high]) == pytest.approx(1.0 - b)


def test_a_prevalence_that_changes_at_every_point_is_no_alarm() -> None:
    """20 streams of 3,000 points at alpha = .05; the bands hold here, so the chance is at most that."""
    waves = 0.5 + 0.5 * np.sin(np.arange(3000) / 50.0)
    hits = sum(found(hull(), stream(3000, waves), 0.05) is not None for _ in range(20))
    assert_at_most(hits, 20, 0.05)
    assert_power(20, 0.05, 0.75, at_most=True)


@pytest.mark.parametrize(("prevalence", "most"), [(0.01, 200), (0.3, 500)])
def test_normal_points_that_drift_are_found_without_a_label(prevalence: float, most: int) -> None:
    rows = [found(hull(), stream(1000, prevalence, drift=1.0)) for _ in range(20)]
    assert max(row if row is not None else 10**9 for row in rows) < most


def test_scores_of_only_one_class_are_no_alarm() -> None:
    """A change of prevalence explains them, up to all anomalies."""
    assert found(hull(), RNG.normal(4, 1, 5000)) is None
    assert found(hull(), np.full(5000, inf)) is None
    assert found(hull(), np.full(5000, -inf)) is None


def test_classes_that_lie_upon_each_other_leave_nothing_between() -> None:
    assert hull_of(certify_curve([1.0] * 50, [1.0] * 50)) is None
    assert hull_of(certify_curve([1.0], [2.0])) is None


def test_float32_scores_are_compared_as_such() -> None:
    """0.1 as a double is a score of the calibration, as a float32: it stays below the threshold above it."""
    normal, anomalous = np.full(500, 0.1, dtype=np.float32), np.full(500, 9.0, dtype=np.float32)
    made = hull_of(certify_curve(normal, anomalous))
    assert made is not None
    np.testing.assert_array_equal(
        made.cells(np.array([0.1, float(np.float32(0.1)), 9.0])), [0, 0, made.edges.size]
    )


def test_the_thresholds_and_shares_are_those_of_the_theory() -> None:
    """Eq. (91): where the bands keep .01, .03, .08, .2 and .4, and .5, .2, .08 and .03 of the largest bet."""
    levels, curve = (0.01, 0.03, 0.08, 0.2, 0.4), certify_curve(range(1000), range(2000, 3000))
    hull = hull_of(curve)
    assert hull is not None
    lows = hull.edges[sorted({low for low, _, _, _ in hull.pairs})]
    highs = hull.edges[sorted({high for _, high, _, _ in hull.pairs})]
    for keeps, edges, step in ((curve.fpr, lows[::-1], -1.0), (curve.fnr, highs, 1.0)):
        assert len(edges) == len(levels)
        for edge, level in zip(edges, levels, strict=True):
            assert keeps(edge) <= level < keeps(edge + step)  # and at the next score no more
    *_, a, b = hull.pairs[0]
    largest = min(a / (1.0 - a), b / (1.0 - b))
    shares = np.expm1(hull.bets.logs[:4].max(axis=1)) / largest
    np.testing.assert_allclose(shares, (0.5, 0.2, 0.08, 0.03))
