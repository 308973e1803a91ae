"""One detector on one split of a data set, wrapped in every way that the questions ask about."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.baselines import f1_max
from pac_wrap.calibration import calibrate
from pac_wrap.certificate import Certificate
from pac_wrap.datasets.dataset import Dataset
from pac_wrap.datasets.split import Split
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.guarantee import Guarantee
from pac_wrap.inputs import Scores
from pac_wrap.metrics import Metrics, evaluate, exceeded
from pac_wrap.order import auc
from pac_wrap.relaxation import Strategy
from pac_wrap.scores import anomaly_scores

Labels = NDArray[np.int8]

LEVEL: Final = 0.05
ASKED: Final = Guarantee(LEVEL, LEVEL)
PRINTED: Final = "relax, as printed"
SHARED: Final = "relax"
STRATEGIES: Final = {
    PRINTED: Strategy("relax", correction=None),
    SHARED: Strategy("relax"),
    "relax, step .01": Strategy("relax", step=0.01),
    "hold_fnr": Strategy("hold_fnr"),
    "hold_fpr": Strategy("hold_fpr"),
}


@dataclass(frozen=True, slots=True)
class Single:
    """One threshold: its certificate, and its error rates on the test part."""

    certificate: Certificate
    metrics: Metrics

    @property
    def max_fpr(self) -> float:
        """The certified ceiling of the FPR; 1 where nothing is certified."""
        certified = self.certificate.certified
        return 1.0 if certified is None or certified.max_fpr is None else certified.max_fpr

    @property
    def max_fnr(self) -> float:
        """The certified ceiling of the FNR; 1 where nothing is certified."""
        certified = self.certificate.certified
        return 1.0 if certified is None or certified.max_fnr is None else certified.max_fnr

    @property
    def broken(self) -> bool:
        """Whether a certified ceiling is significantly exceeded on the test part."""
        certified = self.certificate.certified
        return bool(exceeded(self.metrics, certified))


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What a trained detector gives on one split: with F1-max, with two thresholds, and with one."""

    data: str
    detector: str
    seed: int
    normal: Scores
    anomalous: Scores
    auc: float
    original: Metrics
    certificate: Certificate
    two: Metrics
    singles: dict[str, Single]


def wrap(data: Dataset, split: Split, name: str, seed: int, detector: Any) -> Wrapped:
    """Calibrate a trained detector on the calibration part, and measure it on the test part only."""
    calibration = anomaly_scores(detector, data.X[split.calibration]), data.y[split.calibration]
    test = anomaly_scores(detector, data.X[split.test]), data.y[split.test]
    return wrap_scores(data.name, name, seed, calibration, test, ASKED, STRATEGIES)


def wrap_scores(
    data: str,
    detector: str,
    seed: int,
    calibration: tuple[Scores, Labels],
    test: tuple[Scores, Labels],
    asked: Guarantee,
    strategies: Mapping[str, Strategy],
) -> Wrapped:
    """Calibrate on one pair of scores and labels in every way, and measure on another pair."""
    (scores, labels), (fresh, truth) = calibration, test
    normal, anomalous = scores[labels == 0], scores[labels == 1]
    singles = {}
    with warnings.catch_warnings():  # the AUC is reported beside every result
        warnings.simplefilter("ignore", UpsideDownWarning)
        certificate = calibrate(normal, anomalous, asked)
        for title, strategy in strategies.items():
            single = calibrate(normal, anomalous, asked, abstain=False, strategy=strategy)
            singles[title] = Single(single, evaluate(single.verdicts(fresh), truth))
    return Wrapped(
        data,
        detector,
        seed,
        normal,
        anomalous,
        auc(fresh[truth == 0], fresh[truth == 1]),
        evaluate(f1_max(normal, anomalous).verdicts(fresh), truth),
        certificate,
        evaluate(certificate.verdicts(fresh), truth),
        singles,
    )


def training_rows(split: Split, total: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return every row that is neither calibrated nor tested with, as a fully supervised detector may use."""
    held_out = np.zeros(total, dtype=bool)
    held_out[split.calibration] = held_out[split.test] = True
    return np.flatnonzero(~held_out)
