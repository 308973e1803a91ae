"""Several detectors on the same labels, compared by what all can certify at once."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy import bool_
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, check_aligned
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.curves.certify import certify_curve
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.promise import Guarantee
from pac_wrap.ranks.auc import auc, is_upside_down


@dataclass(frozen=True, slots=True)
class Contender:
    """One detector: its AUC, what it certifies with abstention, and with one threshold.

    `abstained` is the mean of the two classes' shares of abstained calibration points.
    """

    name: str
    auc: float | None
    abstaining: Certificate
    abstained: float
    single: Certificate

    @property
    def common_ceiling(self) -> float:
        """The larger of the two ceilings that one threshold keeps; 1 if none is certified."""
        certified = self.single.certified
        if certified is None:
            return 1.0
        return max(1.0 if rate is None else rate for rate in (certified.max_fpr, certified.max_fnr))


def compare_scores(
    columns: Mapping[str, tuple[Scores, NDArray[bool_]]],
    guarantee: Guarantee,
    *,
    one_threshold: str | Overlap = "algorithm1",
) -> list[Contender]:
    """Return the detectors, the one that abstains least first; every promise holds for all of them at once.

    Each column is the scores and where the labels mark an anomaly. Delta is divided among all certificates,
    two for each column (one if a single side is promised: they are then the same), so picking the best
    afterwards costs nothing more. `one_threshold` is the strategy of the second.
    """
    count = len(columns) * len(guarantee.promises)
    share = replace(guarantee, delta_fpr=guarantee.delta_fpr / count, delta_fnr=guarantee.delta_fnr / count)
    contenders = []
    for name, (scores, anomalous) in columns.items():
        check_aligned("scores", scores, "labels", anomalous)
        normal, strange = scores[~anomalous], scores[anomalous]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UpsideDownWarning)
            abstaining = calibrate(normal, strange, share)
            single = calibrate(normal, strange, share, overlap=one_threshold)
        classes = [values for values in (normal, strange) if values.size]
        area = _area(name, normal, strange)
        contenders.append(
            Contender(
                name,
                area,
                abstaining,
                sum(abstaining.ambiguity(values) for values in classes) / len(classes),
                single,
            )
        )
    return sorted(contenders, key=lambda one: (one.abstained, one.common_ceiling, one.name))


@dataclass(frozen=True, slots=True)
class CurveContender:
    """One detector: its AUC, and what it certifies at every threshold."""

    name: str
    auc: float | None
    curve: Curve

    @property
    def common_ceiling(self) -> float:
        """The least ceiling that some threshold keeps for both rates; 1 if none does."""
        _, fpr, fnr = self.curve.steps()
        return float(np.maximum(fpr, fnr).min())

    def fnr_at(self, max_fpr: float) -> float:
        """Return the least bound of the FNR where the FPR keeps a ceiling; 1 if it does nowhere."""
        _, fpr, fnr = self.curve.steps()
        return float(fnr[fpr <= max_fpr].min(initial=1.0))


def compare_curves(
    columns: Mapping[str, tuple[Scores, NDArray[bool_]]], delta_fpr: float = 0.05, delta_fnr: float = 0.05
) -> list[CurveContender]:
    """Return the detectors, the one with the least common ceiling first; all bounds of all hold at once.

    Each delta is divided once, among the detectors; any threshold of any of them may then be chosen.

    >>> labels = np.arange(400) >= 200
    >>> a, b = compare_curves({"one": (np.arange(400.0), labels), "two": (np.arange(400.0) % 300, labels)})
    >>> a.name, a.curve.normal.delta
    ('one', 0.025)
    """
    contenders = []
    for name, (scores, anomalous) in columns.items():
        check_aligned("scores", scores, "labels", anomalous)
        normal, strange = scores[~anomalous], scores[anomalous]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UpsideDownWarning)
            curve = certify_curve(normal, strange, delta_fpr / len(columns), delta_fnr / len(columns))
        contenders.append(CurveContender(name, _area(name, normal, strange), curve))
    return sorted(contenders, key=lambda one: (one.common_ceiling, one.name))


def _area(name: str, normal: Scores, anomalous: Scores) -> float | None:
    """Return the AUC of a detector, None without one of the classes; warn if it is upside down."""
    if not (normal.size and anomalous.size):
        return None
    area = auc(normal, anomalous)
    if is_upside_down(area, normal.size, anomalous.size):
        warnings.warn(
            f"{name!r}: anomalies score lower than normal points (AUC {area:.3f});"
            " if it is upside down, negate it",
            UpsideDownWarning,
            stacklevel=3,
        )
    return area
