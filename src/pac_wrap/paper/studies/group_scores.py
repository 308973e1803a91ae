"""Scores whose points belong to groups: channels, machines, and people by sex and age."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import StandardScaler

from pac_wrap.base.arguments import Scores
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.tails.bounds import min_samples
from pac_wrap.paper.data import load
from pac_wrap.paper.data.series import nasa_channels, smd_machines
from pac_wrap.paper.data.tabular import census_people
from pac_wrap.paper.studies import nasa, smd
from pac_wrap.paper.studies.scored import Training, train_all
from pac_wrap.paper.studies.series_runs import ASKED as ASKED_OF_SERIES
from pac_wrap.paper.studies.series_runs import divide
from pac_wrap.paper.studies.study import Progress
from pac_wrap.series.points import Points
from pac_wrap.series.several import several_series
from pac_wrap.series.splits import random_split

Split = Literal["random", "blocks"]
Parts = tuple[NDArray[np.intp], NDArray[np.intp]]
SHARE: Final = 0.5
# of single steps, how far apart they are
EVERY: Final = {"smd": 5, "nasa": 1}
_BLOCKS: Final = {"smd": (smd.BLOCK, smd.GAP), "nasa": (nasa.BLOCK, nasa.GAP)}
ASKED_OF_PEOPLE: Final = Guarantee(max_fpr=0.05, max_fnr=0.05)
LEARNED: Final = 20_000
_ENDS: Final = (30, 40, 50, 60, 70)
BANDS: Final = ("below 30", "30 to 39", "40 to 49", "50 to 59", "60 to 69", "70 on")


class Residual(BaseEstimator):
    """What principal components leave unexplained of a step and of the mean of the steps before it.

    They explain `share` of the variance of the training part; a value further than `clip` of its standard
    deviations from the mean counts as that far.
    """

    def __init__(self, window: int = 30, share: float = 0.9, clip: float = 20.0, least: float = 1e-6) -> None:
        self.window, self.share, self.clip, self.least = window, share, clip, least

    def fit(self, X: NDArray[Any], y: object = None) -> Self:
        """Learn from the steps of a series, in their order."""
        rows = self._rows(X)
        self.scaler_ = StandardScaler().fit(rows)
        # a series that never changes has no components
        still = not self.scaler_.var_.any()
        self.components_ = None if still else PCA(n_components=self.share).fit(self._scaled(rows))
        return self

    def decision_function(self, X: NDArray[Any]) -> Scores:
        """Return the squared residual of each step, higher for what is more anomalous."""
        rows = self._scaled(self._rows(X))
        if self.components_ is not None:
            rows = rows - self.components_.inverse_transform(self.components_.transform(rows))
        return np.asarray(np.maximum((rows**2).sum(axis=1), self.least))

    def _rows(self, X: NDArray[Any]) -> NDArray[np.float64]:
        steps = np.asarray(X, dtype=np.float64)
        sums = np.vstack([np.zeros(steps.shape[1]), np.cumsum(steps, axis=0)])
        ends = np.arange(1, len(steps) + 1)
        starts = np.maximum(0, ends - self.window)
        return np.hstack([steps, (sums[ends] - sums[starts]) / (ends - starts)[:, None]])

    def _scaled(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.clip(self.scaler_.transform(rows), -self.clip, self.clip))


class Scored(NamedTuple):
    """Points with their groups, and how they are divided; `points` are those of series, in time."""

    data: str
    asked: Guarantee
    scores: Scores
    labels: NDArray[np.int8]
    groups: NDArray[np.object_]
    names: tuple[str, ...]
    splits: tuple[Split, ...]
    points: Points | None = None

    def divided(self, split: Split, seed: int) -> Parts:
        """Return which points calibrate and which are measured."""
        if self.points is None:
            drawn = random_split(self.labels, np.random.default_rng([seed, 17]), calibration=SHARE)
        else:
            blocks = _BLOCKS[self.data] if split == "blocks" else None
            drawn = divide(self.points, seed, blocks=blocks, share=SHARE)
        return drawn.calibration, drawn.test


def scored_series(data: str, names: Sequence[str], progress: Progress) -> Scored:
    """Return the steps of several series, each scored by its own detector, from the cache if possible."""
    trainings = [Training(data, name, Residual(), normalise=True) for name in names]
    scores = train_all(trainings, progress, lambda training: training.part)
    labels = [load(data, name).y[-one.size :] for name, one in zip(names, scores, strict=True)]
    found = several_series(
        names, [one.size for one in scores], np.concatenate(scores), np.concatenate(labels), every=EVERY[data]
    )
    points = found.points
    short = tuple(name.removeprefix("machine-") for name in found.names)
    groups = np.array(short, dtype=object)[found.series]
    return Scored(
        data, ASKED_OF_SERIES, points.scores, points.labels, groups, short, ("random", "blocks"), points
    )


def scored_people(train: int, seed: int = 0) -> Scored:
    """Return the people of the census's test file as boosted trees score them, by sex and age."""
    people = census_people()
    learned = np.random.default_rng(seed).permutation(people.n_train)[:train]
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=seed)
    trees.fit(people.X[learned], people.y[learned])
    rest = slice(people.n_train, None)
    bands = np.array(BANDS, dtype=object)[np.searchsorted(_ENDS, people.age[rest], side="right")]
    sexes = np.where(people.male[rest], "men, ", "women, ").astype(object)
    names = tuple(f"{sex}, {band}" for sex in ("men", "women") for band in BANDS)
    scores = np.asarray(trees.decision_function(people.X[rest]))
    return Scored("census", ASKED_OF_PEOPLE, scores, people.y[rest], sexes + bands, names, ("random",))


def usable_channels(most: int | None = None) -> tuple[str, ...]:
    """Return the first channels of which half of the anomalous steps are enough for the promise."""
    promise = ASKED_OF_SERIES.fnr
    assert promise is not None
    needed = min_samples(promise.ceiling, promise.delta)
    enough = (name for name in nasa_channels() if SHARE * np.count_nonzero(load("nasa", name).y) >= needed)
    return tuple(islice(enough, most))


def all_scored(quick: bool, progress: Progress) -> Iterator[Scored]:
    """Yield the three data sets with their groups; a quick look takes the first few of each."""
    yield scored_series("smd", smd_machines()[: 4 if quick else None], progress)
    yield scored_series("nasa", usable_channels(6 if quick else None), progress)
    progress(0.0, "scoring census")
    yield scored_people(2_000 if quick else LEARNED)
