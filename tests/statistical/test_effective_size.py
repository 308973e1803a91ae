"""How often dependence is told, and how often it is told where there is none.

Every comparison states its false-alarm rate, 1e-6, and proves its power.
"""

import warnings
from collections.abc import Iterator
from math import sqrt

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm

from pac_wrap import DependenceWarning, Guarantee
from pac_wrap.series import calibrate_points, effective_size, window_points
from pac_wrap.tails.bounds import error_budget, lower_bound
from statistical.claims import FALSE_ALARM, assert_at_most, assert_power
from support.slow import slow_but
from support.strategies import Floats


def autoregression(seed: int, trials: int, n: int, phi: float) -> Floats:
    """Return rows of x_t = phi x_{t-1} + e_t, each stationary: every x_t is standard normal."""
    noise = np.random.default_rng([seed, n]).standard_normal((trials, n))
    noise[:, 1:] *= sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=1))


def unwarned(rows: Iterator[Floats] | Floats) -> int:
    return sum(not effective_size(row).misleading for row in rows)


@pytest.mark.parametrize("n", slow_but(2, [60, 865, 80, 120, 170, 400]))
def test_strong_dependence_is_told_in_nine_of_ten_series(n: int) -> None:
    trials = 600
    assert_at_most(unwarned(autoregression(1, trials, n, 0.99)), trials, 0.1)
    assert_power(trials, 0.1, 0.22, at_most=True)


@pytest.mark.parametrize("phi", slow_but(1, [0.8, 0.9, 0.95, 0.99]))
@pytest.mark.parametrize("n", slow_but(1, [80, 120, 170]))
def test_from_a_coefficient_of_point_eight_on_it_is_told_in_98_of_100(n: int, phi: float) -> None:
    trials = 500
    assert_at_most(unwarned(autoregression(2, trials, n, phi)), trials, 0.02)
    assert_power(trials, 0.02, 0.1, at_most=True)


def test_it_is_told_also_where_only_one_step_in_twenty_is_a_point() -> None:
    # anomalies are rare: neighbours in order are far apart in time, but depend on each other all the same
    trials, random = 600, np.random.default_rng(3)
    rows = autoregression(3, trials, 1200, 0.99)
    chosen = (np.sort(random.choice(1200, 60, replace=False)) for _ in range(trials))
    assert_at_most(unwarned(row[places] for row, places in zip(rows, chosen, strict=True)), trials, 0.1)
    assert_power(trials, 0.1, 0.22, at_most=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "tied"])
@pytest.mark.parametrize(("n", "bound", "caught"), [(60, 0.1, 0.18), (170, 0.1, 0.18), (865, 0.01, 0.05)])
def test_independent_points_rarely_warn(n: int, bound: float, caught: float, kind: str) -> None:
    trials, random = 1200, np.random.default_rng([4, n])
    rows = random.normal(size=(trials, n))
    if kind == "tied":
        rows = np.round(rows)
    errors = error_budget(n, 0.05, 0.05) or 0  # so many lie beyond the threshold
    hits = sum(effective_size(row, errors=errors).misleading for row in rows)
    assert_at_most(hits, trials, bound)
    assert_power(trials, bound, caught, at_most=True)


@pytest.mark.parametrize("length", slow_but(1, [5, 20]))
def test_blocks_of_equal_scores_and_joined_series_with_levels_of_their_own_are_told(length: int) -> None:
    trials, n, random = 300, 400, np.random.default_rng(5)
    blocks = np.repeat(random.normal(size=(trials, n // length)), length, axis=1)
    levels = np.repeat(random.normal(size=(trials, length)), n // length, axis=1)
    for rows in (blocks, levels + random.normal(size=levels.shape)):
        assert_at_most(unwarned(rows), trials, 0.05)
    assert_power(trials, 0.05, 0.2, at_most=True)


@pytest.mark.parametrize("period", slow_but(1, [24, 12]))
def test_a_rhythm_of_many_windows_is_told(period: int) -> None:
    trials, n, random = 300, 170, np.random.default_rng(6)
    phase = 2 * np.pi * (np.arange(n) / period + random.random((trials, 1)))
    assert_at_most(unwarned(np.sin(phase) + random.normal(0, 0.5, phase.shape)), trials, 0.02)
    assert_power(trials, 0.02, 0.14, at_most=True)


@pytest.mark.parametrize("n", slow_but(1, [80, 120]))
def test_where_the_budget_is_nearly_none_broken_promises_are_warned_of(n: int) -> None:
    """At most one error is allowed, the ceiling breaks in most series, and hardly one goes unwarned."""
    trials, asked = 200, Guarantee(0.05, None, 0.05)
    broken = silent = 0
    for row in autoregression(7, trials, n, 0.99):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DependenceWarning)
            certificate = calibrate_points(window_points(row, np.zeros(n, dtype=int)), asked)
        budget, threshold = certificate.fpr.budget, certificate.thresholds.alarm_from
        assert budget is not None
        assert threshold is not None
        assert budget.errors in (0, 1)
        broken += bool(norm.sf(threshold) > 0.05)
        silent += not caught
    assert lower_bound(broken, trials, FALSE_ALARM) > 0.4
    assert_at_most(silent, trials, 0.1)
    assert_power(trials, 0.1, 0.35, at_most=True)
