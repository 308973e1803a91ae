"""A table of ADBench as detectors score it: cut, divided once, trained on, and kept in the cache."""

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from pac_wrap.base.files import check_folder, whole_file
from pac_wrap.detectors.scores import anomaly_scores
from pac_wrap.errors import InputError, PACWrapError
from pac_wrap.ranks.auc import auc
from pac_wrap_paper.adbench.detectors import DETECTORS, KNOWN
from pac_wrap_paper.data import load
from pac_wrap_paper.data.adbench import TABLES
from pac_wrap_paper.data.store import cache_folder
from pac_wrap_paper.studies.study import Progress

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
ENOUGH: Final = 100  # anomalies that a table must have
MOST: Final = 10_000  # rows that a larger table is cut to
KEPT: Final = 200  # anomalies that the cut leaves at least, if there are so many
TRAIN: Final = 0.3  # share of either class that trains
_METHOD: Final = 1  # part of the name of a cached file: raise it when the meaning of the scores changes


@dataclass(frozen=True)
class Scored:
    """The scores of one detector on one table; `failure` says why there are none.

    `train` are those of the rows that it was trained on, `normal` and `anomalous` those of the rest, sorted.
    """

    table: str
    detector: str
    train: Floats
    normal: Floats
    anomalous: Floats
    failure: str = ""

    @cached_property
    def auc(self) -> float:
        """The AUC on the rest of the table."""
        return auc(self.normal, self.anomalous)


def large_enough() -> tuple[str, ...]:
    """Return the names of the tables with enough anomalies.

    >>> len(large_enough()), len(TABLES)
    (29, 43)
    """
    return tuple(name for name, table in TABLES.items() if table.anomalies >= ENOUGH)


def kept_rows(y: NDArray[np.int8], random: np.random.Generator) -> tuple[Rows, Rows]:
    """Return the normal and the anomalous rows that are kept, in random order: 10,000 at most.

    Either class keeps its share of them, but no fewer than 200 anomalies are left if there were so many.

    >>> y = np.repeat(np.array([0, 1], np.int8), [99_000, 1_000])
    >>> normal, anomalous = kept_rows(y, np.random.default_rng(0))
    >>> normal.size, anomalous.size
    (9800, 200)
    """
    normal, anomalous = (random.permutation(np.flatnonzero(y == label)) for label in (0, 1))
    if y.size > MOST:
        few = max(round(MOST * anomalous.size / y.size), min(KEPT, anomalous.size))
        normal, anomalous = normal[: MOST - few], anomalous[:few]
    return normal, anomalous


@dataclass(frozen=True, slots=True)
class Scoring:
    """One detector to be trained on a part of one table, and to score the rest of it."""

    table: str
    detector: str
    seed: int

    @property
    def file(self) -> Path:
        """Where the scores are kept: a name that changes with the data, the detector and its package."""
        made = "pac-wrap" if self.detector in ("DevNet", "ECOD", "COPOD") else f"pyod {version('pyod')}"
        told = (_METHOD, TABLES[self.table].sha256, self.detector, made, version("scikit-learn"), self.seed)
        key = hashlib.sha256(repr(told).encode()).hexdigest()[:16]
        return cache_folder() / "scores" / f"adbench-{self.table}-{self.detector}-{key}.npz"

    def scored(self, file: Path | None = None) -> Scored:
        """Return the scores, from the cache or after training."""
        kept = self.file if file is None else file
        with suppress(OSError, EOFError, ValueError, KeyError), np.load(kept, allow_pickle=False) as found:
            train, normal, anomalous = (found[name] for name in ("train", "normal", "anomalous"))
            return Scored(self.table, self.detector, train, normal, anomalous, str(found["failure"]))
        made = self._trained()
        check_folder(kept.parent)
        with whole_file(kept) as temporary, open(temporary, "wb") as stream:
            np.savez(
                stream,
                train=made.train,
                normal=made.normal,
                anomalous=made.anomalous,
                failure=np.array(made.failure),
            )
        return made

    def _trained(self) -> Scored:
        data = load("adbench", self.table)
        parts = []
        for rows in kept_rows(data.y, np.random.default_rng([self.seed, 19])):
            trained = round(TRAIN * rows.size)
            parts.append((rows[:trained], rows[trained:]))
        trains = np.concatenate([train for train, _ in parts])
        scaler = StandardScaler().fit(data.X[trains].astype(np.float64))
        X, *rests = (
            scaler.transform(data.X[rows].astype(np.float64))
            for rows in (trains, *(rest for _, rest in parts))
        )
        try:
            train, *scores = self._scores(X, data.y[trains], rests)
            if not all(np.isfinite(one).all() for one in scores):  # PCA of PyOD, for an eigenvalue of 0
                raise InputError("scores must be finite, got infinite ones; leave the detector out")
        except (PACWrapError, ValueError) as error:  # PyOD's own refusals are ValueErrors
            nothing = np.empty(0)
            return Scored(self.table, self.detector, nothing, nothing, nothing, " ".join(str(error).split()))
        return Scored(self.table, self.detector, train, np.sort(scores[0]), np.sort(scores[1]))

    def _scores(self, X: Floats, y: NDArray[np.int8], rests: list[Floats]) -> Iterator[Floats]:
        """Yield the scores of the training rows and of each rest; missing ones are refused."""
        how = DETECTORS[self.detector]
        detector = how.make(self.seed)
        with warnings.catch_warnings():  # a division by zero becomes a missing score, which is refused
            warnings.simplefilter("ignore")
            if how.labels == "none":
                detector.fit(X)
                yield np.asarray(detector.decision_scores_, dtype=np.float64)
            else:
                told = y.copy()
                if how.labels == "few":  # the rows of a class are in random order
                    told[np.flatnonzero(y)[KNOWN:]] = 0
                detector.fit(X, told)
                yield anomaly_scores(detector, X)
            for rest in rests:
                yield anomaly_scores(detector, rest, polarity="higher" if how.labels == "none" else "auto")


def score_all(scorings: Sequence[Scoring], progress: Progress) -> list[Scored]:
    """Return the scores of every pair, trained on all cores where they are not in the cache."""
    missing = [scoring for scoring in scorings if not scoring.file.exists()]
    # a worker may have another environment, so it is told the file
    jobs = (delayed(_score)(scoring, scoring.file) for scoring in missing)
    if missing:
        check_folder(missing[0].file.parent)
        done = Parallel(n_jobs=min(len(missing), os.cpu_count() or 1), return_as="generator")(jobs)
        for place, _ in enumerate(done):
            one = missing[place]
            progress(place / len(missing), f"scored {one.table} with {one.detector}")
    return [scoring.scored() for scoring in scorings]


def _score(scoring: Scoring, file: Path) -> None:
    scoring.scored(file)
