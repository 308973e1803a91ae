"""Packages that a user might pick instead, beside those of `pac_wrap_paper.baselines`.

All of them get precomputed scores; none trains a model here. MAPIE asks for probabilities, so it gets scores
between 0 and 1.
"""

import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pac_wrap_paper.baselines import Controller, Crepes, both_classes, percentile

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
# which of the probed scores are alarms, after calibration on normal scores for a ceiling and a delta
Rule = Callable[[Floats, Floats, float, float], Mask]


def missing(package: str) -> str | None:
    """Return why a package cannot be used, or None."""
    return None if find_spec(package) else f"{package} is not installed"


def left_out() -> tuple[str, ...]:
    """Return which peers are missing, and why."""
    return tuple(filter(None, map(missing, ("mapie", "nonconformist", "crepes"))))


def squashed(scores: Floats) -> Floats:
    """Return scores between 0 and 1, in the same order."""
    return np.asarray(1.0 / (1.0 + np.exp(2.0 - scores)))


class Mapie:
    """Two controllers of MAPIE, one per error rate."""

    def __init__(self, ceiling: float = 0.05, delta: float = 0.05) -> None:
        self.fpr, self.recall = Controller("fpr", ceiling, delta), Controller("recall", ceiling, delta)

    def calibrate(self, rows: Floats, labels: NDArray[np.int64]) -> "Mapie":
        """Find the thresholds of both rates."""
        self.fpr.calibrate(rows, labels)
        self.recall.calibrate(rows, labels)
        return self

    def predict(self, rows: Floats) -> tuple[Any, Any]:
        """Return the verdicts of both thresholds."""
        return self.fpr.controller.predict(rows), self.recall.controller.predict(rows)


def probabilities(normal: Floats, anomalous: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return rows and labels as MAPIE takes them."""
    labels = np.repeat([0, 1], [normal.size, anomalous.size])
    return both_classes(squashed(np.concatenate([normal, anomalous]))), labels


class Nonconformist:
    """The inductive conformal classifier of nonconformist, one category per class."""

    def __init__(self) -> None:
        icp: Any = import_module("nonconformist.icp")
        self.classifier = icp.IcpClassifier(_Signed(), condition=lambda pair: pair[1], smoothing=False)

    def calibrate(self, normal: Floats, anomalous: Floats) -> "Nonconformist":
        """Sort the scores of both classes."""
        scores = np.concatenate([normal, anomalous])[:, np.newaxis]
        self.classifier.calibrate(scores, np.repeat([0, 1], [normal.size, anomalous.size]))
        return self

    def sets(self, scores: Floats, ceiling: float = 0.05) -> Mask:
        """Return where each label stays possible."""
        return np.asarray(self.classifier.predict(scores[:, np.newaxis], ceiling))


class _Signed:
    """Nonconformity of a score: itself for a normal label, negated for an anomalous one."""

    def score(self, rows: Floats, labels: NDArray[np.int64]) -> Floats:
        return np.where(labels == 0, rows[:, 0], -rows[:, 0])


def crepes_rule(normal: Floats, probes: Floats, ceiling: float, delta: float) -> Mask:
    """Return where crepes rules the normal label out."""
    return ~Crepes().calibrate(normal, normal[:1]).possible(probes, 0, ceiling)


def nonconformist_rule(normal: Floats, probes: Floats, ceiling: float, delta: float) -> Mask:
    """Return where nonconformist rules the normal label out."""
    return ~Nonconformist().calibrate(normal, normal[:1]).sets(probes, ceiling)[:, 0]


def mapie_set_rule(normal: Floats, probes: Floats, ceiling: float, delta: float) -> Mask:
    """Return where MAPIE's split conformal classifier, given one class, rules the normal label out."""
    mapie: Any = import_module("mapie.classification")
    low, high = probes.min() - 1.0, probes.max() + 1.0
    classifier = mapie.SplitConformalClassifier(_precomputed(low, high), confidence_level=1.0 - ceiling)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            classifier.conformalize(normal[:, np.newaxis], np.zeros(normal.size, dtype=int))
            _, sets = classifier.predict_set(probes[:, np.newaxis])
        except ValueError as error:
            if "too low" not in str(error):
                raise
            return np.zeros(probes.size, dtype=bool)
    return np.asarray(~sets[:, 0, 0])


def percentile_rule(normal: Floats, probes: Floats, ceiling: float, delta: float) -> Mask:
    """Return the points above the percentile that `contamination` means in scikit-learn and PyOD."""
    return np.asarray(percentile(normal, ceiling).verdicts(probes) == 1)


def _precomputed(low: float, high: float) -> Any:
    """Return a fitted classifier whose probability of an anomaly is the score, brought between 0 and 1."""
    base: Any = import_module("sklearn.base")

    class Precomputed(base.ClassifierMixin, base.BaseEstimator):
        classes_ = np.array([0, 1])

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def fit(self, X: Floats, y: Floats) -> "Precomputed":
            return self

        def predict_proba(self, X: Floats) -> Floats:
            chance = (np.asarray(X)[:, 0] - low) / (high - low)
            return np.column_stack([1.0 - chance, chance])

        def predict(self, X: Floats) -> NDArray[np.int64]:
            return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

    return Precomputed()
