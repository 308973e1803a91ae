"""The synthetic clusters have the means and the spread that their docstrings say."""

from math import sqrt

import numpy as np
import pytest

from pac_wrap_paper.data.dataset import shifted_gaussians, two_gaussians

N = 40_000
# a mean of N points leaves this many standard errors with a chance below 1e-6 in 20 coordinates together
ERRORS = 5.6


def test_two_gaussians_lie_the_margin_apart() -> None:
    X, y = two_gaussians(N, N, np.random.default_rng(0), sigma=3.0, margin=4.0)
    assert X.shape == (2 * N, 6)
    assert y.dtype == np.int8
    apart = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    assert np.abs(apart - 4 * 3 / sqrt(6)).max() < ERRORS * 3 * sqrt(2 / N)


@pytest.mark.parametrize("gamma", [0.0, 0.02, 0.1, 0.2, 1.0])
def test_shifted_gaussians_move_from_the_anomalies_to_the_normals(gamma: float) -> None:
    rows = shifted_gaussians(N, gamma, np.random.default_rng(1))
    assert rows.shape == (N, 5)
    assert np.abs(rows.mean(axis=0) - (1 - gamma) * 3).max() < ERRORS * 2 / sqrt(N)
    # the variance of a sample variance is 2 sigma^4 / (n - 1)
    assert np.abs(rows.var(axis=0, ddof=1) - 4).max() < ERRORS * 4 * sqrt(2 / (N - 1))
    # a shift of 0.02 moves the mean by 0.06, which is more than the tolerance
    assert ERRORS * 2 / sqrt(N) < 0.02 * 3


def test_one_seed_gives_one_sample() -> None:
    first, second = (shifted_gaussians(5, 0.5, np.random.default_rng(3)) for _ in range(2))
    assert (first == second).all()
    wide = shifted_gaussians(7, 0.0, np.random.default_rng(0), sigma=0.0, distance=2.0, dimension=3)
    assert wide.tolist() == [[2.0] * 3] * 7
