"""Packages that a user might pick instead, each made to do the same with anomaly scores and labels."""

import warnings
from importlib import import_module
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Crepes:
    """The conformal classifier of crepes, one category per class."""

    def __init__(self) -> None:
        crepes: Any = import_module("crepes")
        self.classifier = crepes.ConformalClassifier()

    def calibrate(self, normal: Floats, anomalous: Floats) -> Self:
        """Fit; crepes only stores the scores and does the work with each prediction."""
        classes = np.repeat([0, 1], [normal.size, anomalous.size])
        self.classifier.fit(np.concatenate([normal, -anomalous]), bins=classes)
        return self

    def possible(self, scores: Floats, label: int, ceiling: float = 0.05) -> NDArray[np.bool_]:
        """Return where a label stays possible; p-values are not smoothed, so nothing is random."""
        signed = scores if label == 0 else -scores
        bins = np.full(scores.size, label)
        sets = self.classifier.predict_set(signed, bins=bins, confidence=1.0 - ceiling, smoothing=False)
        return np.asarray(sets, dtype=bool).ravel()


class Controller:
    """MAPIE's controller of one error rate: learn then test, so with a confidence."""

    def __init__(
        self, rate: Literal["fpr", "recall"], ceiling: float = 0.05, delta: float = 0.05, **options: Any
    ) -> None:
        control: Any = import_module("mapie.risk_control")
        target = ceiling if rate == "fpr" else 1.0 - ceiling
        self.controller = control.BinaryClassificationController(
            lambda rows: rows, rate, target, confidence_level=1.0 - delta, **options
        )

    def calibrate(self, rows: Floats, labels: NDArray[np.int64]) -> float | None:
        """Return the threshold for the probability of an anomaly, or None if none of those tried will do."""
        with warnings.catch_warnings():  # it warns where it finds none
            warnings.simplefilter("ignore")
            self.controller.calibrate(rows, labels)
        picked = self.controller.best_predict_param
        return None if picked is None else float(picked)


def both_classes(chance: Floats) -> Floats:
    """Return rows as MAPIE takes them: the probabilities of both classes, from that of an anomaly.

    >>> both_classes(np.array([0.25])).tolist()
    [[0.75, 0.25]]
    """
    return np.column_stack([1.0 - chance, chance])
