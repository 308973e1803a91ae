"""The synthetic data of the paper: two Gaussian clusters in six dimensions, and one that shifts in five."""

import numpy as np
from numpy.typing import NDArray


def two_gaussians(
    n_normal: int,
    n_anomalous: int,
    random: np.random.Generator,
    *,
    sigma: float = 1.0,
    margin: float = 5.0,
    dimension: int = 6,
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return rows X and labels y of two clusters with the same covariance sigma^2 I.

    The paper asks for "a margin of 5" between the classes and leaves its unit open. Here the means lie
    `margin` standard deviations apart, along the diagonal, so that sigma changes the scale and nothing else.

    >>> X, y = two_gaussians(3, 2, np.random.default_rng(0))
    >>> X.shape, y.tolist()
    ((5, 6), [0, 0, 0, 1, 1])
    """
    y = np.repeat(np.array([0, 1], dtype=np.int8), [n_normal, n_anomalous])
    X = random.normal(0.0, sigma, (y.size, dimension))
    X[n_normal:] += margin * sigma / np.sqrt(dimension)
    return X, y


def shifted_gaussians(
    n: int,
    gamma: float,
    random: np.random.Generator,
    *,
    sigma: float = 2.0,
    distance: float = 3.0,
    dimension: int = 5,
) -> NDArray[np.float64]:
    """Return n rows of N(gamma mu_normal + (1 - gamma) mu_anomalous, sigma^2 I).

    mu_normal is 0 and mu_anomalous is `distance` in every coordinate: gamma = 1 gives normal points,
    gamma = 0 anomalies, and anything between them points that have moved from one towards the other.

    >>> shifted_gaussians(2, 0.0, np.random.default_rng(0), sigma=0.0).tolist()
    [[3.0, 3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0, 3.0]]
    """
    return random.normal((1.0 - gamma) * distance, sigma, (n, dimension))
