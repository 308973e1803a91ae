"""A dozen detectors with their default settings, each a fixed function of a row once it is trained."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import skew
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from pac_wrap.errors import MissingExtraError
from pac_wrap_paper.detectors.devnet import DevNet

Floats = NDArray[np.float64]
KNOWN: Final = 30  # anomalies that DevNet is told of, as in its paper
_PACKAGES: Final = ("pyod", "crepes", "mapie")
_STEPS: Final = 1000  # its default of 100 is too few to converge on some tables


class ColumnTails:
    """ECOD and COPOD with a score that depends on its own row alone.

    PyOD ranks a row among the training rows *and the batch it came in*, so that a score changes with its
    company and no promise about it can be kept. Here every row is ranked among the training rows and itself,
    as PyOD would if rows came one at a time, with the skewness of the training rows.

    >>> random = np.random.default_rng(0)
    >>> detector = ColumnTails("ecod").fit(random.normal(size=(50, 2)))
    >>> rows = random.normal(size=(3, 2))
    >>> bool(detector.decision_function(rows)[0] == detector.decision_function(rows[:1])[0])
    True
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
    """How a detector is made and what its training may see: nothing, a few known anomalies, or all labels."""

    make: Callable[[int], Any]
    labels: Literal["none", "few", "all"]


def _pyod(module: str, name: str, **settings: Any) -> Callable[[int], Any]:
    """Return what makes a detector of PyOD; its seed is passed on if it takes one."""

    def make(seed: int) -> Any:
        seeds = {key: seed for key, value in settings.items() if value is None}
        return getattr(import_module(f"pyod.models.{module}"), name)(**seeds)

    return make


DETECTORS: Final[dict[str, Detector]] = {
    "IForest": Detector(_pyod("iforest", "IForest", random_state=None), "none"),
    "LOF": Detector(_pyod("lof", "LOF"), "none"),
    "KNN": Detector(_pyod("knn", "KNN"), "none"),
    "OCSVM": Detector(_pyod("ocsvm", "OCSVM"), "none"),
    "PCA": Detector(_pyod("pca", "PCA", random_state=None), "none"),
    "HBOS": Detector(_pyod("hbos", "HBOS"), "none"),
    "CBLOF": Detector(_pyod("cblof", "CBLOF", random_state=None), "none"),
    "GMM": Detector(_pyod("gmm", "GMM", random_state=None), "none"),
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
