"""The tables of ADBench as a dozen detectors score them: cut, divided once, trained on, kept in the cache."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import skew
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from pac_wrap import InputError, MissingExtraError, PACWrapError, anomaly_scores
from pac_wrap.scoring import ranking_scorer
from pac_wrap_paper.data import load
from pac_wrap_paper.data.registry import TABLES
from pac_wrap_paper.data.store import keep, result_file
from pac_wrap_paper.detectors.devnet import DevNet
from pac_wrap_paper.studies.study import Floats, Indices

KNOWN: Final = 30  # anomalies that DevNet is told of, as in its paper
ENOUGH: Final = 100  # anomalies that a table must have
MOST: Final = 10_000  # rows that a larger table is cut to
KEPT: Final = 200  # anomalies that the cut leaves at least, if there are so many
TRAIN: Final = 0.3  # share of either class that trains
_METHOD: Final = 1  # part of the name of a cached file: raise it when the meaning of the scores changes
_PACKAGES: Final = ("pyod", "crepes", "mapie")
_STEPS: Final = 1000  # its default of 100 is too few to converge on some tables


class ColumnTails:
    """ECOD and COPOD with a score that depends on its own row alone.

    PyOD ranks a row among the training rows *and the batch it came in*, so that a score changes with its
    company and no promise about it can be kept. Here every row is ranked among the training rows and itself,
    as PyOD would if rows came one at a time, with the skewness of the training rows.
    """

    decision_scores_: Floats

    def __init__(self, kind: Literal["ecod", "copod"]) -> None:
        self.kind = kind

    def fit(self, X: Floats) -> Self:
        """Keep the training rows in the order of each column, and score them."""
        self._columns = np.sort(X, axis=0)
        skewness = np.sign(np.nan_to_num(skew(X, axis=0)))
        self._left, self._right = -np.sign(skewness - 1.0), np.sign(skewness + 1.0)
        self.decision_scores_ = self.decision_function(X)
        return self

    def decision_function(self, X: Floats) -> Floats:
        """Return the scores, summed over the columns: the logarithms of the tails, as PyOD combines them."""
        n = len(self._columns)
        scores = np.zeros(len(X))
        for place, column in enumerate(self._columns.T):
            below = -np.log((np.searchsorted(column, X[:, place], "right") + 1.0) / (n + 1.0))
            above = -np.log((n - np.searchsorted(column, X[:, place], "left") + 1.0) / (n + 1.0))
            skewed = below * self._left[place] + above * self._right[place]
            other = np.maximum(below, above) if self.kind == "ecod" else (below + above) / 2.0
            scores += np.maximum(skewed, other)
        return scores


@dataclass(frozen=True, slots=True)
class Detector:
    """How a detector is made and which labels its training sees: none, a few known anomalies, or all."""

    make: Callable[[int], Any]
    labels: Literal["none", "few", "all"]


def _pyod(name: str, seeded: bool) -> Callable[[int], Any]:
    """Return a function that makes a detector of PyOD; its seed is passed on if it takes one."""

    def make(seed: int) -> Any:
        kind = getattr(import_module(f"pyod.models.{name.lower()}"), name)
        return kind(random_state=seed) if seeded else kind()

    return make


# of PyOD, and whether they take a seed
_PYOD: Final = {
    **{"IForest": True, "LOF": False, "KNN": False, "OCSVM": False},
    **{"PCA": True, "HBOS": False, "CBLOF": True, "GMM": True},
}
DETECTORS: Final[dict[str, Detector]] = {
    **{name: Detector(_pyod(name, seeded), "none") for name, seeded in _PYOD.items()},
    "ECOD": Detector(lambda seed: ColumnTails("ecod"), "none"),
    "COPOD": Detector(lambda seed: ColumnTails("copod"), "none"),
    "DevNet": Detector(lambda seed: DevNet(random_state=seed), "few"),
    "boosting": Detector(lambda seed: HistGradientBoostingClassifier(random_state=seed), "all"),
    "logistic": Detector(lambda seed: LogisticRegression(max_iter=_STEPS), "all"),
}


def check_packages() -> None:
    """Refuse to begin without the packages that are compared, in one sentence."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"the study of ADBench compares with {' and '.join(missing)}, which"
            f' {"is" if len(missing) == 1 else "are"} not installed; run pip install "pac-wrap-ad[bench]"'
        )


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
        labels = np.repeat([0, 1], [self.normal.size, self.anomalous.size])
        return ranking_scorer("precomputed", np.append(self.normal, self.anomalous), labels)


def large_enough() -> tuple[str, ...]:
    """Return the names of the tables with enough anomalies."""
    return tuple(name for name, table in TABLES.items() if table.anomalies >= ENOUGH)


def kept_rows(y: NDArray[np.int8], random: np.random.Generator) -> tuple[Indices, Indices]:
    """Return the normal and the anomalous rows that are kept, in random order: 10,000 at most.

    Either class keeps its share of them, but at least 200 anomalies are kept if there are that many.
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

    def __str__(self) -> str:
        return f"{self.table} with {self.detector}"

    @property
    def files(self) -> tuple[Path]:
        """Where the scores are kept: a name that changes with the data, the detector and its package."""
        made = "pac-wrap" if self.detector in ("DevNet", "ECOD", "COPOD") else f"pyod {version('pyod')}"
        told = (_METHOD, TABLES[self.table].sha256, self.detector, made, version("scikit-learn"), self.seed)
        return (result_file("scores", f"adbench-{self.table}-{self.detector}", told, "npz"),)

    def result(self, *files: Path) -> Scored:
        """Return the scores, from the cache or after training."""
        (file,) = files or self.files
        with suppress(OSError, EOFError, ValueError, KeyError), np.load(file, allow_pickle=False) as found:
            train, normal, anomalous = (found[name] for name in ("train", "normal", "anomalous"))
            return Scored(self.table, self.detector, train, normal, anomalous, str(found["failure"]))
        made = self._trained()
        scores = {"train": made.train, "normal": made.normal, "anomalous": made.anomalous}
        keep(file, scores | {"failure": np.array(made.failure)})
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
