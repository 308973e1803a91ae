"""What dependence in time does to the promise: spaced points keep it, dense ones break it, blocks show it.

Every comparison states its false-alarm rate, 1e-6 unless it says otherwise, and proves its power.
"""

from collections.abc import Iterator
from math import floor, log1p, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import binom, hypergeom, norm

from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import alarm_from, clear_below
from pac_wrap.series import window_points
from pac_wrap.tails.bounds import error_budget, lower_bound
from statistical.claims import FALSE_ALARM, assert_at_most, assert_power, assert_rate
from support.points import points_at
from support.slow import slow_but
from support.strategies import Floats

PHI = 0.8
N, CEILING, DELTA = 100, 0.1, 0.1
SPACING = 48
TRIALS, AT_ONCE = 3000, 250
TENTH = Guarantee(0.1, 0.1, 0.1, 0.1)


def autoregression(random: np.random.Generator, shape: tuple[int, int], phi: float = PHI) -> Floats:
    """Return rows of x_t = phi x_{t-1} + e_t, each stationary: every x_t is standard normal."""
    noise = random.standard_normal(shape)
    noise[:, 1:] *= sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=1))


def calibrations(spacing: int, seed: int) -> Iterator[Floats]:
    """Return the N scores of each trial, `spacing` steps apart, all from a series of its own."""
    random = np.random.default_rng(seed)
    for _ in range(TRIALS // AT_ONCE):
        for row in autoregression(random, (AT_ONCE, spacing * N)):
            yield window_points(row, np.zeros(row.size), every=spacing).scores


def violations(spacing: int, anomalous: bool, seed: int) -> int:
    """Return in how many trials the true error rate, known from the normal law, exceeds its ceiling."""
    budget = error_budget(N, CEILING, DELTA)
    if anomalous:
        # every anomaly scores 3 more than a normal point
        rates = (norm.cdf(clear_below(row + 3.0, budget) - 3.0) for row in calibrations(spacing, seed))
    else:
        rates = (norm.sf(alarm_from(row, budget)) for row in calibrations(spacing, seed))
    return sum(bool(rate > CEILING) for rate in rates)


@pytest.mark.parametrize("anomalous", slow_but(1, [False, True]))
def test_spaced_points_of_a_mixing_process_keep_the_promise(anomalous: bool) -> None:
    # N points SPACING steps apart are an autoregression with phi^SPACING = r. The Kullback-Leibler divergence
    # of its law from that of N independent points is -(N - 1) log(1 - r^2) / 2, so by Pinsker's inequality
    # no probability differs between them by more than the square root of half of that.
    r = PHI**SPACING
    distance = sqrt(-(N - 1) * log1p(-(r**2)) / 4)
    budget = error_budget(N, CEILING, DELTA)
    assert budget is not None
    exact = float(binom.cdf(budget, N, CEILING))
    assert distance < 2e-4
    assert exact + distance <= DELTA
    hits = violations(SPACING, anomalous, seed=11)
    assert_at_most(hits, TRIALS, exact + distance)
    # one more error in the budget would be caught
    assert_power(TRIALS, exact + distance, float(binom.cdf(budget + 1, N, CEILING)), at_most=True)


@pytest.mark.parametrize("anomalous", slow_but(1, [False, True]))
def test_as_many_dense_points_break_it(anomalous: bool) -> None:
    hits = violations(1, anomalous, seed=12)
    assert lower_bound(hits, TRIALS, FALSE_ALARM) > 2 * DELTA


def excess(n: int, m: int, ceiling: float, budget: int | None) -> float:
    """Return the probability that more than the ceiling of m test points lie beyond a threshold of n points.

    All n + m are equally likely to calibrate. At most a test points lie beyond the (k+1)-th calibration point
    exactly if at least k + 1 of the a + k + 1 most extreme points calibrate.
    """
    if budget is None:
        return 0.0
    allowed = floor(ceiling * m + 1e-9)
    return float(hypergeom.cdf(budget, n + m, n, allowed + budget + 1))


SIZES = (2000, 400)


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.0, PHI])
def test_random_divisions_break_ceilings_as_often_whatever_the_dependence(phi: float) -> None:
    random = np.random.default_rng(13)
    labels = np.repeat([0, 1], SIZES)
    values = autoregression(random, (1, sum(SIZES)), phi)[0] + 3.0 * labels
    trials = 10_000
    found = window_points(values, labels).violation(TENTH, random, trials=trials)
    assert found.fpr is not None
    assert found.fnr is not None
    for rate, size in zip((found.fpr, found.fnr), SIZES, strict=True):
        n = size // 5
        budget = error_budget(n, 0.1, 0.1)
        assert budget is not None
        expected = excess(n, size - n, 0.1, budget)
        for wrong in (budget - 1, budget + 1):
            assert_power(trials, expected, excess(n, size - n, 0.1, wrong))
        assert_rate(rate.count, trials, expected)


# 20 blocks of 100 steps; points stand on the first 80 of each, so that a gap of 20 leaves none of them out
BLOCKS, BLOCK, POINTS, GAP = 20, 100, 80, 20
STEPS: NDArray[np.intp] = np.flatnonzero(np.arange(BLOCKS * BLOCK) % BLOCK < POINTS)
# in every second block the last 40 points are anomalous
LABELS: NDArray[np.bool_] = (STEPS // BLOCK % 2 == 1) & (STEPS % BLOCK >= POINTS // 2)
BLOCK_TRIALS = 2000


def block_hits(phi: float, trials: int, seed: int) -> tuple[int, int]:
    """Return how many of one division each of many series break the ceilings of FPR and FNR."""
    random = np.random.default_rng(seed)
    hits = [0, 0]
    for row in autoregression(random, (trials, BLOCKS * BLOCK), phi):
        values = row[STEPS] + 3.0 * LABELS
        points = points_at(STEPS, LABELS, values)
        found = points.violation(TENTH, random, trials=1, block=BLOCK, gap=GAP)
        assert found.fpr is not None
        assert found.fnr is not None
        hits[0] += found.fpr.count
        hits[1] += found.fnr.count
    return hits[0], hits[1]


def block_law() -> list[float]:
    """Return the exact probabilities of these hits if points are independent: sizes of parts are fixed."""
    parts = points_at(STEPS, LABELS).divided(np.random.default_rng(0), block=BLOCK, gap=GAP)
    assert parts.calibration.size + parts.test.size == STEPS.size
    law = []
    for kind in (False, True):
        n, m = (int((LABELS[part] == kind).sum()) for part in (parts.calibration, parts.test))
        budget = error_budget(n, 0.1, 0.1)
        law.append(excess(n, m, 0.1, budget))
        assert budget is not None
        for wrong in (budget - 2, budget + 2):
            assert_power(BLOCK_TRIALS, law[-1], excess(n, m, 0.1, wrong))
    return law


@pytest.mark.slow
def test_blocks_of_independent_points_break_ceilings_as_often_as_the_finite_test_part_explains() -> None:
    # blocks are drawn by labels, so the ranks of independent scores among them are random, as in one division
    for hits, expected in zip(block_hits(0.0, BLOCK_TRIALS, seed=14), block_law(), strict=True):
        assert_rate(hits, BLOCK_TRIALS, expected)
        assert 0.5 * DELTA < expected < 2 * DELTA


def test_blocks_of_dependent_points_show_that_the_promise_is_broken() -> None:
    trials = 800
    for hits, expected in zip(block_hits(PHI, trials, seed=15), block_law(), strict=True):
        assert lower_bound(hits, trials, FALSE_ALARM) > 1.5 * expected
