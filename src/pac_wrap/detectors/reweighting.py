"""Weights of calibration points, estimated from unlabelled new points by a classifier of the two samples."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import check_count
from pac_wrap.errors import InputError
from pac_wrap.method.robust.weights import check_bound

_FOLDS: Final = 5
_ASSUMES: Final = (
    "assumed, not shown: these weights are right up to a factor, no point anywhere weighs more than the"
    " bound, and within each class only the features have shifted, not the meaning of a label; a shift that"
    " the classifier does not see is not weighted"
)


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedWeights:
    """Estimated weights of calibration points; printed, they state what a promise with them assumes.

    Attributes
    ----------
    weights : ndarray of float
        The weight of each calibration point, from 0 to the bound.
    bound, clipped : float and int
        The bound at which weights were clipped, and how many were.
    """

    weights: NDArray[np.float64]
    bound: float
    clipped: int

    def __str__(self) -> str:
        share = float(self.weights.mean() / self.bound)
        return (
            f"{self.weights.size:,} weights up to {self.bound:g}, {self.clipped:,} of them clipped there;"
            f" about {share:.0%} of the points will survive the draw\n{_ASSUMES}"
        )


def estimate_weights(
    calibration: ArrayLike, new: ArrayLike, *, bound: float, classifier: Any = None, seed: int = 0
) -> EstimatedWeights:
    """Estimate how much more likely each calibration point is among new points, with a classifier.

    The classifier learns to tell calibration points from new points. Its cross-fitted odds, divided by the
    odds of the two sample sizes, estimate the density ratio, which is clipped at the bound. The error of this
    estimate has no bound. The result prints what a certificate with these weights assumes. It also assumes
    that the calibration points have the natural proportion of classes, or that all points, calibration and
    new, belong to one class.

    Parameters
    ----------
    calibration, new : array-like, shape (points, features)
        All calibration points, and new points without labels.
    bound : float
        The largest weight; larger ones are clipped. Pass it to `calibrate` as `weight_bound` too.
    classifier : scikit-learn classifier, optional
        A classifier with `predict_proba`; by default a logistic regression on scaled features.
    seed : int
        The seed of the folds.

    Returns
    -------
    EstimatedWeights
        Its attribute `weights` is in the order of the calibration points.

    Raises
    ------
    InputError
        If there are fewer than five points of either sample, or the bound is not a positive number.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> found = estimate_weights(rng.normal(0, 1, (500, 1)), rng.normal(1, 1, (500, 1)), bound=8)
    >>> found.weights.shape, bool(found.weights.max() <= 8)
    ((500,), True)
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    limit = check_bound(bound)
    sizes = len(calibration), len(new)  # type: ignore[arg-type]  # tables have a length
    if min(sizes) < _FOLDS:
        raise InputError(
            f"estimate_weights needs at least {_FOLDS} calibration and {_FOLDS} new points, got {sizes[0]:,}"
            f" and {sizes[1]:,}"
        )
    tables = np.asarray(calibration), np.asarray(new)
    if tables[0].shape[1:] != tables[1].shape[1:] or tables[0].ndim < 2:
        raise InputError(
            "calibration and new must be tables with the same features, got the shapes"
            f" {tables[0].shape} and {tables[1].shape}; pass the same columns for both"
        )
    rows, source = np.concatenate(tables), np.repeat((0, 1), sizes)
    if classifier is None:
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=check_count("seed", seed))
    chances = cross_val_predict(classifier, rows, source, cv=folds, method="predict_proba")[: sizes[0], 1]
    with np.errstate(divide="ignore"):
        ratios = chances / (1.0 - chances) * (sizes[0] / sizes[1])
    return EstimatedWeights(np.minimum(ratios, limit), limit, int(np.count_nonzero(ratios > limit)))
