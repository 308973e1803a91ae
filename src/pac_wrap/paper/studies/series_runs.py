"""LSTM detectors on series: trained once, scored step by step, divided into two parts and wrapped."""

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from joblib import Parallel, delayed

from pac_wrap.base.arguments import Scores
from pac_wrap.base.files import check_folder, whole_file
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies.algorithm1 import Algorithm1
from pac_wrap.paper.data import load
from pac_wrap.paper.data.registry import ENTRIES
from pac_wrap.paper.data.store import cache_folder
from pac_wrap.paper.studies.scored import PRINTED, SHARED, Wrapped, wrap_scores
from pac_wrap.paper.studies.study import Progress
from pac_wrap.series.points import Points
from pac_wrap.series.resampling import independent_violation
from pac_wrap.series.splits import SeriesSplit, block_split, random_split

LEVEL: Final = 0.1
ASKED: Final = Guarantee(LEVEL, LEVEL, LEVEL, LEVEL)
STRATEGIES: Final[dict[str, Overlap]] = {PRINTED: Algorithm1(correction=None), SHARED: Algorithm1()}
_METHOD: Final = 1  # part of the name of a cached file: raise it when the meaning of the scores changes


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

    @property
    def file(self) -> Path:
        """Where the scores are kept: a name that changes with the data, the detector and its settings."""
        settings = sorted((name, repr(value)) for name, value in self.detector.get_params().items())
        hashes = [file.sha256 for file in ENTRIES[self.data].files]
        told = repr((_METHOD, type(self.detector).__name__, settings, hashes, self.part, self.normalise))
        key = hashlib.sha256(told.encode()).hexdigest()[:16]
        return cache_folder() / "scores" / f"{self.data}-{self.part}-{key}.npy"

    def scores(self, file: Path | None = None) -> Scores:
        """Return one score per test step, NaN in the warm-up: from the cache, or after training."""
        data, kept = load(self.data, self.part), self.file if file is None else file
        with suppress(OSError, EOFError, ValueError):  # absent or damaged: train again
            found = np.load(kept, allow_pickle=False)
            if found.shape == (data.y.size - (data.n_train or 0),):
                return np.asarray(found)
        trained = self.detector.fit(data.X[: data.n_train])
        found = trained.decision_function(data.X[data.n_train :])
        if self.normalise:
            found = _normalised(found, trained.decision_function(data.X[: data.n_train]))
        check_folder(kept.parent)
        with whole_file(kept) as temporary, open(temporary, "wb") as stream:
            np.save(stream, found, allow_pickle=False)
        return np.asarray(found)


def train_all(
    trainings: Sequence[Training], progress: Progress, describe: Callable[[Training], str]
) -> list[Scores]:
    """Return the scores of every training, trained on all cores where they are not in the cache."""
    missing = [training for training in trainings if not training.file.exists()]
    # a worker may have another environment, so it is told the file
    jobs = (delayed(_train)(training, training.file) for training in missing)
    if missing:
        check_folder(missing[0].file.parent)
        progress(0.0, f"training {len(missing)} detectors")
        done = Parallel(n_jobs=min(len(missing), os.cpu_count() or 1), return_as="generator")(jobs)
        for place, _ in enumerate(done):
            progress((place + 1) / (len(missing) + 1), f"trained {describe(missing[place])}")
    return [training.scores() for training in trainings]


@dataclass(frozen=True, slots=True)
class SeriesRun:
    """One series, or windows of several, with one division into split: what the wrapper made of it."""

    title: str
    split: str
    share: float
    wrapped: Wrapped
    effective: tuple[float | None, float | None]
    expected: float

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of normal and anomalous calibration points."""
        return self.wrapped.normal.size, self.wrapped.anomalous.size


def divide(
    points: Points, seed: int, *, blocks: tuple[int, int] | None = None, share: float = 0.2
) -> SeriesSplit:
    """Return a division of the points: in blocks (so many steps, and the gap between them), or at random."""
    random = np.random.default_rng([seed, 9])
    if blocks is None:
        return random_split(points.labels, random, calibration=share)
    block, gap = blocks
    return block_split(
        points.positions,
        points.labels,
        random,
        calibration=share,
        block=block,
        gap=gap,
        extent=points.length,
    )


def wrap_series(title: str, points: Points, split: SeriesSplit, seed: int, share: float = 0.2) -> SeriesRun:
    """Return what the wrapper makes of a division: calibrated on one part, measured on the other."""
    calibration, test = split.calibration, split.test
    wrapped = wrap_scores(
        title,
        "LSTM",
        seed,
        (points.scores[calibration], points.labels[calibration]),
        (points.scores[test], points.labels[test]),
        ASKED,
        STRATEGIES,
    )
    found = [
        points.dependence(wrapped.certificate.thresholds, anomalous, calibration)
        for anomalous in (False, True)
    ]
    normal, anomalous = (None if one is None else one.effective for one in found)
    sizes, rest = (
        (int((y == 0).sum()), int((y == 1).sum())) for y in (points.labels[calibration], points.labels[test])
    )
    independent = independent_violation(sizes, rest, ASKED)
    expected = (independent.fpr or 0.0) + (independent.fnr or 0.0)
    return SeriesRun(title, split.kind, share, wrapped, (normal, anomalous), expected)


def _train(training: Training, file: Path) -> None:
    training.scores(file)


def _normalised(scores: Scores, training: Scores) -> Scores:
    least = np.finfo(np.float64).tiny
    usual = np.log(np.maximum(training[~np.isnan(training)], least))
    return np.asarray((np.log(np.maximum(scores, least)) - usual.mean()) / (usual.std() or 1.0))
