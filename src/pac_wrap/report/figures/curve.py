"""An error rate and its exact upper bound as one threshold moves along the scores."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv

from pac_wrap.certificate import Certificate
from pac_wrap.inputs import Scores


@dataclass(frozen=True, slots=True)
class Curve:
    """One error rate as the threshold moves: the scores it is counted on, its ceiling and its delta."""

    name: str
    scores: Scores
    ceiling: float | None
    delta: float

    def errors(self, thresholds: ArrayLike) -> NDArray[np.intp]:
        """Return how many scores each threshold misjudges: normal ones reach it, anomalous ones do not."""
        below = np.searchsorted(self.scores, thresholds, side="left")
        return self.scores.size - below if self.name == "FPR" else below

    def bounds(self, thresholds: ArrayLike) -> NDArray[np.float64]:
        """Return the exact upper bound of the rate at each threshold: eq. (5).

        >>> Curve("FPR", np.array([1.0, 2.0]), None, 0.05).bounds([3.0]).round(6).tolist()
        [0.776393]
        """
        # `upper_bound` but for the last digits, a hundred times quicker
        errors, n = self.errors(thresholds), self.scores.size
        bounds = betainccinv(errors + 1.0, np.maximum(n - errors, 1.0), self.delta)
        return np.where(errors < n, bounds, 1.0)


def curves_of(certificate: Certificate, normal: Scores, anomalous: Scores) -> tuple[Curve, Curve]:
    """Return the FPR on the normal and the FNR on the anomalous scores, with what the certificate says."""
    kept = certificate.certified or certificate.guarantee
    fpr, fnr = certificate.normal.budget, certificate.anomalous.budget
    return (
        Curve("FPR", np.sort(normal), kept.max_fpr, kept.delta_fpr if fpr is None else fpr.delta),
        Curve("FNR", np.sort(anomalous), kept.max_fnr, kept.delta_fnr if fnr is None else fnr.delta),
    )
