"""Thresholds on one division of a table: those that people use, through their own packages, and ours."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isnan, nan
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import TunedThresholdClassifierCV

from pac_wrap.errors import InputError, UpsideDownWarning, VacuousWarning
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.curves.certify import certify_curve
from pac_wrap.method.curves.curve import Curve
from pac_wrap_paper.adbench.chance import ASKED, LEVEL
from pac_wrap_paper.baselines import f1_max, percentile
from pac_wrap_paper.peers import Controller, Crepes, both_classes

Floats = NDArray[np.float64]
DEFAULT: Final = 0.1  # PyOD's contamination


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The held-out rows of a table, divided: sorted scores of both classes, and what training left behind.

    `train` are the scores of the training rows, `share` the share of anomalies in the table, and
    `probability` turns scores into numbers between 0 and 1, fixed by the training rows.
    """

    normal: Floats
    anomalous: Floats
    other_normal: Floats
    other_anomalous: Floats
    train: Floats
    share: float
    probability: Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Setting:
    """Two thresholds and what they were set up for: ceilings of rates and of the share of alarms, or NaN.

    What lies below `normal_below` is not called an anomaly, what lies from `anomaly_from` on is not called
    normal. A single threshold is both; where both are said of a score, or neither, it is left undecided.
    """

    normal_below: float
    anomaly_from: float
    max_fpr: float = nan
    max_fnr: float = nan
    max_alarms: float = nan


NOTHING: Final = Setting(-inf, inf)
"""No threshold was found: every point is left undecided."""

Method = Callable[[Division], Setting]


def _single(threshold: float, **set_up: float) -> Setting:
    return Setting(threshold, threshold, **set_up)


def contamination(share: float) -> Method:
    """Return PyOD's threshold for a share of anomalies: that percentile of the training scores.

    It alarms above the threshold, not at it, and is set up for that share of alarms.
    """

    def method(division: Division) -> Setting:
        wanted = division.share if isnan(share) else share
        threshold = float(np.percentile(division.train, 100.0 * (1.0 - wanted)))
        return _single(float(np.nextafter(threshold, inf)), max_alarms=wanted)

    return method


def normal_percentile(division: Division) -> Setting:
    """Return the 95th percentile of the normal calibration scores, set up for an FPR of 5 %."""
    return _single(percentile(division.normal, LEVEL).rule.anomaly_from, max_fpr=LEVEL)


def greatest_f1(division: Division) -> Setting:
    """Return the threshold of greatest F1, set up for the two rates that it shows on the same points."""
    return _as_shown(division, f1_max(division.normal, division.anomalous).rule.anomaly_from)


def tuned(division: Division) -> Setting:
    """Return what `TunedThresholdClassifierCV` makes of scores, set up for the rates that it shows."""
    scores = np.concatenate([division.normal, division.anomalous])[:, np.newaxis]
    labels = np.repeat([0, 1], [division.normal.size, division.anomalous.size])
    search = TunedThresholdClassifierCV(_Scores(), response_method="decision_function")
    try:
        return _as_shown(division, float(search.fit(scores, labels).best_threshold_))
    except ValueError:  # it refuses scores that are nearly constant
        return NOTHING


def _as_shown(division: Division, threshold: float) -> Setting:
    flagged = division.normal.size - np.searchsorted(division.normal, threshold)
    missed = np.searchsorted(division.anomalous, threshold)
    return _single(
        threshold,
        max_fpr=float(flagged / division.normal.size),
        max_fnr=float(missed / division.anomalous.size),
    )


class _Scores(ClassifierMixin, BaseEstimator):
    """A classifier that is trained already: its decision is the only column."""

    def fit(self, X: Floats, y: NDArray[np.int64]) -> "_Scores":
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X: Floats) -> Floats:
        return X[:, 0]


def conformal(division: Division) -> Setting:
    """Return the two thresholds of crepes, one category per class, set up for 5 % each.

    What it rules out is a range of scores at either end, so it is found at the scores of the other points.
    """
    crepes = Crepes().calibrate(division.normal, division.anomalous)
    probes = np.union1d(division.other_normal, division.other_anomalous)
    alarms, clear = (probes[~crepes.possible(probes, label, LEVEL)] for label in (0, 1))
    anomaly_from = float(alarms[0]) if alarms.size else inf
    normal_below = float(np.nextafter(clear[-1], inf)) if clear.size else -inf
    return Setting(normal_below, anomaly_from, max_fpr=LEVEL, max_fnr=LEVEL)


def controlled(rate: Literal["fpr", "recall"]) -> Method:
    """Return MAPIE's controller of one rate, set up for 5 % with a confidence of 95 %.

    It takes probabilities and tries 100 thresholds between 0 and 1.
    """

    def method(division: Division) -> Setting:
        chance = division.probability(np.concatenate([division.normal, division.anomalous]))
        labels = np.repeat([0, 1], [division.normal.size, division.anomalous.size])
        found = Controller(rate, LEVEL, LEVEL).calibrate(both_classes(chance), labels)
        if found is None:
            return NOTHING
        scores = np.concatenate([division.other_normal, division.other_anomalous])
        # the least score that it would alarm at, among those that it is measured on
        alarms = scores[division.probability(scores) >= found]
        threshold = float(alarms.min()) if alarms.size else inf
        return _single(threshold, **{"max_fpr" if rate == "fpr" else "max_fnr": LEVEL})

    return method


def certified(overlap: str) -> Method:
    """Return what `calibrate` certifies at .05 and .05 with this strategy."""

    def method(division: Division) -> Setting:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UpsideDownWarning)
            warnings.simplefilter("ignore", VacuousWarning)
            certificate = calibrate(division.normal, division.anomalous, ASKED, overlap=overlap)
        return _promised(certificate)

    return method


def on_curve(choose: Callable[[Curve, Division], Certificate]) -> Method:
    """Return what the certified curve promises at a threshold that is chosen after looking at it."""

    def method(division: Division) -> Setting:
        try:
            return _promised(choose(_curve(division), division))
        except InputError:  # no threshold there bounds a rate
            return NOTHING

    return method


@lru_cache(maxsize=1)
def _curve(division: Division) -> Curve:
    """Return the curve of a division, which may be asked for several choices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        return certify_curve(division.normal, division.anomalous, LEVEL, LEVEL)


def _promised(certificate: Certificate) -> Setting:
    """Return the rule and the ceilings that are certified; NaN where too few labels leave nothing."""
    promised = certificate.certified
    sides = certificate.normal.budget, certificate.anomalous.budget
    ceilings = (nan, nan) if promised is None else (promised.max_fpr, promised.max_fnr)
    kept = [
        nan if ceiling is None or budget is None or budget.errors is None else ceiling
        for ceiling, budget in zip(ceilings, sides, strict=True)
    ]
    return Setting(certificate.rule.normal_below, certificate.rule.anomaly_from, kept[0], kept[1])


THEIRS: Final[dict[str, Method]] = {
    "contamination .1": contamination(DEFAULT),
    "contamination, true share": contamination(nan),
    "95th percentile of normals": normal_percentile,
    "greatest F1": greatest_f1,
    "TunedThresholdClassifierCV": tuned,
    "conformal (crepes)": conformal,
    "MAPIE, FPR": controlled("fpr"),
    "MAPIE, recall": controlled("recall"),
}
OURS: Final[dict[str, Method]] = {
    "abstain": certified("abstain"),
    "raise": certified("raise"),
    "hold_fnr": certified("hold_fnr"),
    "hold_fpr": certified("hold_fpr"),
    "curve": on_curve(lambda curve, division: curve.balanced()),
    "curve at F1": on_curve(
        lambda curve, division: curve.at(f1_max(division.normal, division.anomalous).rule.anomaly_from)
    ),
}
METHODS: Final[dict[str, Method]] = THEIRS | OURS
# the slow ones run on the first divisions only
FEWER: Final = {
    "conformal (crepes)": 5,
    "MAPIE, FPR": 5,
    "MAPIE, recall": 5,
    "TunedThresholdClassifierCV": 1,
}
