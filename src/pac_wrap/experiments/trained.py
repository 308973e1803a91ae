"""Scores of trained time-series detectors, one per test step, kept in the cache: training takes minutes."""

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from joblib import Parallel, delayed

from pac_wrap.datasets import load
from pac_wrap.datasets.cache import cache_folder
from pac_wrap.datasets.registry import ENTRIES
from pac_wrap.experiments.study import Progress
from pac_wrap.files import check_folder, whole_file
from pac_wrap.inputs import Scores

_METHOD: Final = 1  # part of the name of a cached file: raise it when the meaning of the scores changes


@dataclass(frozen=True, slots=True)
class Task:
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


def train_all(tasks: Sequence[Task], progress: Progress, describe: Callable[[Task], str]) -> list[Scores]:
    """Return the scores of every task, trained on all cores where they are not in the cache."""
    missing = [task for task in tasks if not task.file.exists()]
    # a worker may have another environment, so it is told the file
    jobs = (delayed(_train)(task, task.file) for task in missing)
    if missing:
        check_folder(missing[0].file.parent)
        progress(0.0, f"training {len(missing)} detectors")
        done = Parallel(n_jobs=min(len(missing), os.cpu_count() or 1), return_as="generator")(jobs)
        for place, _ in enumerate(done):
            progress((place + 1) / (len(missing) + 1), f"trained {describe(missing[place])}")
    return [task.scores() for task in tasks]


def _train(task: Task, file: Path) -> None:
    task.scores(file)


def _normalised(scores: Scores, training: Scores) -> Scores:
    least = np.finfo(np.float64).tiny
    usual = np.log(np.maximum(training[~np.isnan(training)], least))
    return np.asarray((np.log(np.maximum(scores, least)) - usual.mean()) / (usual.std() or 1.0))
