"""Scored populations of the paper's first question: a detector trained on normal points, and who is left."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from pac_wrap.datasets import load
from pac_wrap.datasets.split import semi_supervised_split
from pac_wrap.datasets.synthetic import two_gaussians
from pac_wrap.inputs import Scores
from pac_wrap.scores import anomaly_scores

DETECTORS: Final = ("isolation forest", "LOF")


@dataclass(frozen=True, slots=True)
class Population:
    """The scores of calibration and test points together, and how many of each class calibrate."""

    normal: Scores
    anomalous: Scores
    sizes: tuple[int, int]


def detector(name: str, seed: int) -> Any:
    """Return an untrained detector with scikit-learn's default settings."""
    if name == "LOF":
        return LocalOutlierFactor(novelty=True)
    return IsolationForest(random_state=seed)


def sigma_of(seed: int) -> float:
    """Return the standard deviation of the synthetic clusters: sigma^2 is uniform on [1, 100].

    >>> 1.0 <= sigma_of(0) <= 10.0
    True
    """
    return float(np.sqrt(np.random.default_rng([seed, 0]).uniform(1.0, 100.0)))


def synthetic_population(
    name: str, seed: int, *, margin: float = 5.0, n_train: int = 100_000, n_test: int = 50_000
) -> Population:
    """Return the two Gaussian clusters as a detector scores them; 2,000 points of each class calibrate."""
    n_calibration = 2_000
    random, sigma = np.random.default_rng([seed, 1]), sigma_of(seed)
    held_out = n_calibration + n_test
    X_train, _ = two_gaussians(n_train, 0, random, sigma=sigma, margin=margin)
    X, y = two_gaussians(held_out, held_out, random, sigma=sigma, margin=margin)
    scores = anomaly_scores(detector(name, seed).fit(X_train), X)
    return Population(scores[y == 0], scores[y == 1], (n_calibration, n_calibration))


def thyroid_population(name: str, seed: int) -> Population:
    """Return the thyroid rows that a detector was not trained on, scored; 30 % of them calibrate."""
    data = load("thyroid")
    split = semi_supervised_split(
        data.y, np.random.default_rng([seed, 2]), known=0, contamination=0.0, anomalies="hold_out"
    )
    held_out = np.concatenate([split.calibration, split.test])
    scores = anomaly_scores(detector(name, seed).fit(data.X[split.train]), data.X[held_out])
    y, calibrating = data.y[held_out], data.y[split.calibration]
    anomalies = int(calibrating.sum())
    return Population(scores[y == 0], scores[y == 1], (calibrating.size - anomalies, anomalies))
