"""Comparison of several detectors on the same labels, by bounds that hold for all of them together."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nextafter

import numpy as np
from numpy import bool_
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, check_aligned, check_delta
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.method.curves.curve import Curve, CurveRequest
from pac_wrap.method.promise import Guarantee, refuse_tolerance
from pac_wrap.method.rule import Thresholds, Verdict
from pac_wrap.ranks.memory import auc, is_upside_down


@dataclass(frozen=True, slots=True)
class Contender:
    """One detector: its name, AUC and curve, and the share of points that it leaves undecided."""

    name: str
    auc: float | None
    curve: Curve
    abstained: float

    @property
    def common_ceiling(self) -> float:
        """The lowest ceiling that one threshold keeps for both rates; 1 if no threshold does."""
        _, fpr, fnr = self.curve.steps()
        return float(np.maximum(fpr, fnr).min())

    def fnr_at(self, max_fpr: float) -> float:
        """Return the lowest bound of the FNR with the FPR within a ceiling; 1 if no threshold keeps it."""
        _, fpr, fnr = self.curve.steps()
        return float(fnr[fpr <= max_fpr].min(initial=1.0))

    def fpr_at(self, max_fnr: float) -> float:
        """Return the lowest bound of the FPR with the FNR within a ceiling; 1 if no threshold keeps it."""
        _, fpr, fnr = self.curve.steps()
        return float(fpr[fnr <= max_fnr].min(initial=1.0))


def compare_scores(
    columns: Mapping[str, tuple[Scores, NDArray[bool_]]], guarantee: Guarantee
) -> list[Contender]:
    """Return the detectors, the one that abstains least first; all bounds of all detectors hold together."""
    refuse_tolerance(
        guarantee,
        "a comparison",
        "compare without it, and calibrate the detector of your choice with it on other labels",
    )
    count = len(columns)
    names = "delta_fpr", "delta_fnr"
    deltas = [check_delta(f"{name} / {count}", getattr(guarantee, name) / count) for name in names]
    contenders = []
    for name, (scores, anomalous) in columns.items():
        check_aligned("scores", scores, "labels", anomalous)
        classes = scores[~anomalous], scores[anomalous]
        with warnings.catch_warnings(action="ignore", category=UpsideDownWarning):
            curve = CurveRequest(*deltas).certify_scores(*classes)
        area = auc(*classes) if classes[0].size and classes[1].size else None
        if area is not None and is_upside_down(area, classes[0].size, classes[1].size):
            warnings.warn(
                f"{name!r}: anomalies score lower than normal points (AUC {area:.3f});"
                " if the column is upside down, negate it",
                UpsideDownWarning,
                stacklevel=2,
            )
        contenders.append(Contender(name, area, curve, _abstained(curve, guarantee, classes)))
    return sorted(contenders, key=lambda one: (one.abstained, one.common_ceiling, one.name))


def _abstained(curve: Curve, guarantee: Guarantee, classes: tuple[Scores, Scores]) -> float:
    """Return the share of points between the thresholds that keep the ceilings, averaged over the classes."""
    alarm = clear = None
    if guarantee.max_fpr is not None:
        high = curve.normal.score_within(guarantee.max_fpr)
        alarm = inf if high is None else nextafter(high, inf)
    if guarantee.max_fnr is not None:
        low = curve.anomalous.score_within(guarantee.max_fnr)
        clear = -inf if low is None else low
    thresholds = Thresholds(alarm, clear)
    if thresholds.separated:
        return 0.0
    verdicts = [thresholds.rule.verdicts(values) for values in classes if values.size]
    return sum(float(np.mean(found == Verdict.ABSTAIN)) for found in verdicts) / len(verdicts)
