"""Numbers of independent points against processes whose autocorrelation is known."""

from math import exp, pi, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.signal import lfilter
from scipy.stats import norm

from pac_wrap.series import dependence
from support.slow import slow_but
from support.strategies import Floats

REPEATS, LENGTH = 200, 20_000


def series(phi: float, repeats: int, length: int, seed: int) -> Floats:
    """Return rows of x_t = phi x_{t-1} + e_t, each stationary with variance 1."""
    noise = np.random.default_rng(seed).standard_normal((repeats, length))
    noise[:, 1:] *= sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=1))


def exceedance_correlation(r: float, level: float) -> float:
    """Return the correlation of 1(X >= level) and 1(Y >= level), X and Y normal with correlation r.

    P(X >= u, Y >= u) = p^2 + the integral from 0 to r of their density at (u, u): Plackett 1954.
    """
    p = norm.sf(level)
    area, _ = quad(lambda s: exp(-(level**2) / (1 + s)) / (2 * pi * sqrt(1 - s * s)), 0, r)
    return float(area / (p * (1 - p)))


def assert_recovered(estimates: list[float], truth: float) -> None:
    """Fail unless the mean of the estimates is within 5 % of the truth.

    Five standard errors of the mean are less than that, so an estimator without bias would raise a false
    alarm with probability 6e-7, and one that is wrong by 10 % would be caught with the same certainty.
    """
    mean, error = float(np.mean(estimates)), float(np.std(estimates)) / sqrt(len(estimates))
    assert 5 * error < 0.05 * truth, (mean, error, truth)
    assert abs(mean - truth) < 0.05 * truth, (mean, error, truth)


@pytest.mark.parametrize("phi", slow_but(1, [0.9, 0.0, 0.5]))
def test_the_mean_of_an_autoregression_counts_as_known(phi: float) -> None:
    rows = series(phi, REPEATS, LENGTH, seed=1)
    assert_recovered([dependence(row).effective for row in rows], LENGTH * (1 - phi) / (1 + phi))


@pytest.mark.parametrize(
    ("phi", "level"), slow_but(1, [(0.9, 1.6448536), (0.8, 0.0), (0.5, -1.0)], several=True)
)
def test_exceedances_of_an_autoregression_count_as_known(phi: float, level: float) -> None:
    lags = range(1, int(np.log(1e-9) / np.log(phi)))
    truth = LENGTH / (1 + 2 * sum(exceedance_correlation(phi**k, level) for k in lags))
    rows = series(phi, REPEATS, LENGTH, seed=2)
    assert_recovered([dependence(row >= level).effective for row in rows], truth)


def test_points_with_holes_count_by_the_variance_of_their_mean() -> None:
    random = np.random.default_rng(3)
    positions = np.flatnonzero(random.random(4000) < 0.4)
    phi = 0.8
    covariance = phi ** np.abs(positions[:, None] - positions)
    truth = positions.size**2 / float(covariance.sum())
    rows = series(phi, REPEATS, 4000, seed=4)[:, positions]
    assert_recovered([dependence(row, positions).effective for row in rows], truth)
