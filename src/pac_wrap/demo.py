"""The whole method once, on the paper's synthetic data: train, calibrate, and look at fresh points."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import IsolationForest

from pac_wrap.calibration import calibrate
from pac_wrap.certificate import Certificate
from pac_wrap.datasets.synthetic import two_gaussians
from pac_wrap.guarantee import Guarantee
from pac_wrap.inputs import Scores
from pac_wrap.metrics import Metrics, evaluate
from pac_wrap.scores import anomaly_scores


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo found: with abstention, with one threshold, and the fresh scores it was checked on."""

    margin: float
    trained_on: int
    calibration_normal: Scores
    calibration_anomalous: Scores
    normal: Scores
    anomalous: Scores
    abstaining: Certificate
    abstaining_metrics: Metrics
    single: Certificate
    single_metrics: Metrics


def run_demo(
    seed: int = 0,
    margin: float = 5.0,
    guarantee: Guarantee | None = None,
    *,
    n_train: int = 100_000,
    n_calibration: int = 2_000,
    n_test: int = 50_000,
    progress: Callable[[str], None] = lambda text: None,
) -> Demo:
    """Wrap an isolation forest on two Gaussian clusters and measure the error rates on fresh points."""
    random = np.random.default_rng(seed)
    sigma = float(np.sqrt(random.uniform(1.0, 100.0)))

    def draw(n_normal: int, n_anomalous: int) -> tuple[Scores, Scores]:
        X, y = two_gaussians(n_normal, n_anomalous, random, sigma=sigma, margin=margin)
        scores = anomaly_scores(detector, X)
        return scores[y == 0], scores[y == 1]

    progress(f"training an isolation forest on {n_train:,} normal points")
    X_train, _ = two_gaussians(n_train, 0, random, sigma=sigma, margin=margin)
    detector = IsolationForest(random_state=seed).fit(X_train)
    progress(f"calibrating on {n_calibration:,} labelled points of each class")
    calibration = draw(n_calibration, n_calibration)
    abstaining = calibrate(*calibration, guarantee)
    single = calibrate(*calibration, guarantee, abstain=False)
    progress(f"checking on {n_test:,} fresh points of each class")
    normal, anomalous = draw(n_test, n_test)
    scores, labels = np.r_[normal, anomalous], np.repeat([0, 1], [n_test, n_test])
    return Demo(
        margin=margin,
        trained_on=n_train,
        calibration_normal=calibration[0],
        calibration_anomalous=calibration[1],
        normal=normal,
        anomalous=anomalous,
        abstaining=abstaining,
        abstaining_metrics=evaluate(abstaining.verdicts(scores), labels),
        single=single,
        single_metrics=evaluate(single.verdicts(scores), labels),
    )
