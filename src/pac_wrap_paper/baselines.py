"""Thresholds that people use instead: conformal, the best F1, a percentile, and two packages.

The first three return a `Rule`, as a certificate has, so all are measured the same way. They promise no
confidence.
"""

import warnings
from fractions import Fraction
from importlib import import_module
from math import inf, nextafter
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap import Guarantee, InputError, Rule
from pac_wrap.base.arguments import as_scores, check_count, check_rate

__all__ = ["cpad", "cpad_budget", "f1_max", "percentile"]

Floats = NDArray[np.float64]
_LARGEST: Final = float(np.finfo(np.float64).max)


def cpad_budget(n: int, rate: float, delta: float | None = None) -> int | None:
    """Return how many errors among n points conformal prediction tolerates, or None: eq. (21).

    With k = floor(rate (n + 1)) it misses what lies below the k-th smallest anomaly, so k - 1 of them.

    Parameters
    ----------
    n, rate, delta : int, float, float
        How many points calibrate, the ceiling, and what is not used but stands there for `error_budget`.

    Examples
    --------
    >>> cpad_budget(170, 0.05), cpad_budget(865, 0.05), cpad_budget(10, 0.05)
    (7, 42, None)
    """
    # the rate is read as its shortest decimal, so that floor(0.29 * 100) is 29
    k = int(Fraction(repr(check_rate("rate", rate))) * (check_count("n", n) + 1))
    return k - 1 if k else None


def cpad(normal: ArrayLike, anomalous: ArrayLike, guarantee: Guarantee | None = None) -> Rule:
    """Return the two thresholds of class-conditional conformal prediction (Lei 2014): eq. (21).

    Each error rate is at most its ceiling on average over calibrations, but with many points nearly half
    of the calibrations break it.

    Parameters
    ----------
    normal, anomalous, guarantee : array-like, array-like, Guarantee
        Calibration scores of the two classes, and the ceilings; the deltas are not used.

    Examples
    --------
    >>> cpad(np.arange(100.0), np.arange(90.0, 190.0))
    Rule(normal_below=94.0, anomaly_from=95.00000000000001)
    """
    asked = Guarantee() if guarantee is None else guarantee
    if not isinstance(asked, Guarantee):
        raise InputError(f"guarantee must be a Guarantee, got {asked!r:.200}; write Guarantee(max_fpr=0.05)")
    normal, anomalous = np.sort(as_scores(normal, "normal")), np.sort(as_scores(anomalous, "anomalous"))
    found = []
    if asked.max_fpr is not None:
        errors = cpad_budget(normal.size, asked.max_fpr)
        found.append(inf if errors is None else nextafter(normal[-1 - errors], inf))
    if asked.max_fnr is not None:
        errors = cpad_budget(anomalous.size, asked.max_fnr)
        found.append(-inf if errors is None else min(float(anomalous[errors]), _LARGEST))
    return Rule(min(found), max(found))


def f1_max(normal: ArrayLike, anomalous: ArrayLike) -> Rule:
    """Return the single threshold with the greatest F1 on these scores; among equals the highest.

    F1 = 2 TP / (2 TP + FP + FN). It promises nothing about points it has not seen.

    Parameters
    ----------
    normal, anomalous : array-like
        Scores of the two classes.

    Examples
    --------
    >>> f1_max([0.0, 1.0, 2.0], [2.0, 3.0, 4.0])
    Rule(normal_below=2.0, anomaly_from=2.0)
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    if anomalous.size == 0:
        raise InputError("anomalous is empty, so no threshold has an F1; pass at least one anomalous score")
    candidates = np.unique(anomalous)[::-1]
    hits = anomalous.size - np.searchsorted(np.sort(anomalous), candidates)
    alarms = hits + normal.size - np.searchsorted(np.sort(normal), candidates)
    # a threshold of inf would never alarm
    tau = min(float(candidates[np.argmax(2.0 * hits / (alarms + anomalous.size))]), _LARGEST)
    return Rule(tau, tau)


def percentile(normal: ArrayLike, contamination: float = 0.05) -> Rule:
    """Return the threshold above which a share `contamination` of the normal scores lies.

    This is what the parameter of that name does in scikit-learn and PyOD, here on normal points.

    Parameters
    ----------
    normal, contamination : array-like, float
        Scores of normal points, and the share of them that raises an alarm.

    Examples
    --------
    >>> percentile(np.arange(101.0), 0.1).verdicts([89.0, 91.0])
    array([0, 1], dtype=int8)
    """
    normal = as_scores(normal, "normal")
    if normal.size == 0:
        raise InputError("normal is empty, so it has no percentile; pass at least one normal score")
    # those libraries interpolate between scores, so this does too, except between infinities
    method: Literal["linear", "higher"] = "linear" if np.isfinite(normal).all() else "higher"
    level = 1.0 - check_rate("contamination", contamination)
    tau = min(nextafter(float(np.quantile(normal, level, method=method)), inf), _LARGEST)
    return Rule(tau, tau)


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
        """Return the threshold for the probability of an anomaly, or None if no threshold tried suffices."""
        with warnings.catch_warnings():  # it warns where it finds none
            warnings.simplefilter("ignore")
            self.controller.calibrate(rows, labels)
        picked = self.controller.best_predict_param
        return None if picked is None else float(picked)


def both_classes(chance: Floats) -> Floats:
    """Return rows as MAPIE takes them: the probabilities of both classes, from that of an anomaly."""
    return np.column_stack([1.0 - chance, chance])
