"""Scored data sets, the training of detectors of series, and detectors wrapped in several ways."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from pac_wrap import (
    Algorithm1,
    Certificate,
    Guarantee,
    Hold,
    Raise,
    UpsideDownWarning,
    anomaly_scores,
    calibrate,
    evaluate,
)
from pac_wrap.method.metrics import Metrics
from pac_wrap.scoring import ranking_scorer
from pac_wrap_paper.baselines import f1_max
from pac_wrap_paper.data import load
from pac_wrap_paper.data.dataset import Dataset, Split, semi_supervised_split, two_gaussians
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import keep, result_file
from pac_wrap_paper.studies.study import Floats, Labels, Row, Spread, is_above

DETECTORS: Final = ("isolation forest", "LOF")
LEVEL: Final = 0.05
ASKED: Final = Guarantee(LEVEL, LEVEL)
PRINTED: Final = "relax, as printed"
PROVED: Final = "relax"
RAISED: Final = "raise"
STRATEGIES: Final[dict[str, Algorithm1 | Hold | Raise]] = {
    PRINTED: Algorithm1(correction=None),
    PROVED: Algorithm1(),
    "relax, step 0.01": Algorithm1(step=0.01),
    RAISED: Raise(),
    "hold_fnr": Hold("fnr"),
    "hold_fpr": Hold("fpr"),
}
_METHOD: Final = 1  # part of the name of a cached file: raise it when the meaning of the scores changes


@dataclass(frozen=True, slots=True)
class ScoredPopulation:
    """The scores of calibration and test points together, and how many of each class calibrate."""

    normal: Floats
    anomalous: Floats
    sizes: tuple[int, int]


def detector(name: str, seed: int) -> Any:
    """Return an untrained detector with scikit-learn's default settings."""
    return LocalOutlierFactor(novelty=True) if name == "LOF" else IsolationForest(random_state=seed)


def sigma_of(seed: int) -> float:
    """Return the standard deviation of the synthetic clusters: sigma^2 is uniform on [1, 100]."""
    return float(np.sqrt(np.random.default_rng([seed, 0]).uniform(1.0, 100.0)))


def synthetic_population(
    name: str, seed: int, *, margin: float = 5.0, n_train: int = 100_000, n_test: int = 50_000
) -> ScoredPopulation:
    """Return the two Gaussian clusters as a detector scores them; 2,000 points of each class calibrate."""
    n_calibration = 2_000
    random, sigma = np.random.default_rng([seed, 1]), sigma_of(seed)
    held_out = n_calibration + n_test
    X_train, _ = two_gaussians(n_train, 0, random, sigma=sigma, margin=margin)
    X, y = two_gaussians(held_out, held_out, random, sigma=sigma, margin=margin)
    scores = anomaly_scores(detector(name, seed).fit(X_train), X)
    return ScoredPopulation(scores[y == 0], scores[y == 1], (n_calibration, n_calibration))


def thyroid_population(name: str, seed: int) -> ScoredPopulation:
    """Return the thyroid rows that a detector was not trained on, scored; 30 % of them calibrate."""
    data = load("thyroid")
    split = semi_supervised_split(
        data.y, np.random.default_rng([seed, 2]), known=0, contamination=0.0, anomalies="hold_out"
    )
    held_out = np.concatenate([split.calibration, split.test])
    scores = anomaly_scores(detector(name, seed).fit(data.X[split.train]), data.X[held_out])
    y, calibrating = data.y[held_out], data.y[split.calibration]
    anomalies = int(calibrating.sum())
    return ScoredPopulation(scores[y == 0], scores[y == 1], (calibrating.size - anomalies, anomalies))


@dataclass(frozen=True, slots=True)
class Training:
    """One detector to be trained on the training part of one series, and to score its test part.

    With `normalise`, scores are compared across series: the logarithm, centred and scaled by what the same
    detector gives on the series it was trained on.
    """

    data: str
    part: str
    detector: Any
    normalise: bool = False

    def __str__(self) -> str:
        return self.part

    @property
    def files(self) -> tuple[Path]:
        """Where the scores are kept: a name that changes with the data, the detector and its settings."""
        settings = sorted((name, repr(value)) for name, value in self.detector.get_params().items())
        hashes = [file.sha256 for file in ENTRIES[self.data].files]
        told = (_METHOD, type(self.detector).__name__, settings, hashes, self.part, self.normalise)
        return (result_file("scores", f"{self.data}-{self.part}", told, "npy"),)

    def result(self, *files: Path) -> Floats:
        """Return one score per test step, NaN in the warm-up: from the cache, or after training."""
        data, (file,) = load(self.data, self.part), files or self.files
        with suppress(OSError, EOFError, ValueError):  # absent or damaged: train again
            found = np.load(file, allow_pickle=False)
            if found.shape == (data.y.size - (data.n_train or 0),):
                return np.asarray(found)
        trained = self.detector.fit(data.X[: data.n_train])
        found = trained.decision_function(data.X[data.n_train :])
        if self.normalise:
            found = _normalised(found, trained.decision_function(data.X[: data.n_train]))
        keep(file, np.asarray(found))
        return np.asarray(found)


def _normalised(scores: Floats, training: Floats) -> Floats:
    least = np.finfo(np.float64).tiny
    usual = np.log(np.maximum(training[~np.isnan(training)], least))
    return np.asarray((np.log(np.maximum(scores, least)) - usual.mean()) / (usual.std() or 1.0))


@dataclass(frozen=True, slots=True)
class Single:
    """One threshold: its certificate, and its error rates on the test part."""

    certificate: Certificate
    metrics: Metrics

    @property
    def max_fpr(self) -> float:
        """The certified ceiling of the FPR; 1 where nothing is certified."""
        ceiling = self.certificate.fpr.ceiling
        return 1.0 if ceiling is None else ceiling

    @property
    def max_fnr(self) -> float:
        """The certified ceiling of the FNR; 1 where nothing is certified."""
        ceiling = self.certificate.fnr.ceiling
        return 1.0 if ceiling is None else ceiling

    @property
    def eps(self) -> float:
        """The larger ceiling of both rates; 1 where nothing is certified."""
        return max(self.max_fpr, self.max_fnr)

    @property
    def broken(self) -> bool:
        """Whether a certified ceiling is significantly exceeded on the test part: at 5 % each."""
        rates = (self.metrics.fpr, self.certificate.fpr), (self.metrics.fnr, self.certificate.fnr)
        return any(is_above(rate, clause.ceiling) for rate, clause in rates)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The rates of a trained detector on one split: with F1-max, with two thresholds, and with one."""

    data: str
    detector: str
    seed: int
    normal: Floats
    anomalous: Floats
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
    calibration: tuple[Floats, Labels],
    test: tuple[Floats, Labels],
    asked: Guarantee,
    strategies: Mapping[str, Algorithm1 | Hold | Raise],
) -> Wrapped:
    """Calibrate on one pair of scores and labels in every way, and measure on another pair."""
    (scores, labels), (fresh, truth) = calibration, test
    normal, anomalous = scores[labels == 0], scores[labels == 1]
    singles = {}
    with warnings.catch_warnings():  # the AUC is reported beside every result
        warnings.simplefilter("ignore", UpsideDownWarning)
        certificate = calibrate(normal, anomalous, asked, overlap="abstain_always")
        for title, strategy in strategies.items():
            single = calibrate(normal, anomalous, asked, overlap=strategy)
            singles[title] = Single(single, evaluate(single.verdicts(fresh), truth))
    auc = ranking_scorer("precomputed", fresh, truth)
    original, two = (
        evaluate(rule.verdicts(fresh), truth) for rule in (f1_max(normal, anomalous), certificate)
    )
    return Wrapped(data, detector, seed, normal, anomalous, auc, original, certificate, two, singles)


def rate_cells(runs: Sequence[Wrapped], singles: Sequence[Single]) -> Row:
    """Return the columns of the printed tables, as spreads: one threshold as some of the runs have it."""
    row: Row = {}
    for name, found in (("or", [one.original for one in runs]), ("tt", [one.two for one in runs])):
        row |= _rates(name, found)
    row |= _rates("th", [single.metrics for single in singles])
    row["ERR"] = Spread.if_any([single.metrics.err.value for single in singles])
    return row | {"eps": Spread.if_any([single.max_fpr for single in singles])}


def _rates(name: str, found: Sequence[Metrics]) -> Row:
    return {
        f"FNR_{name}": Spread.if_any([metrics.fnr.value for metrics in found]),
        f"FPR_{name}": Spread.if_any([metrics.fpr.value for metrics in found]),
    }
