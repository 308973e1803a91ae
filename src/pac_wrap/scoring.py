"""Scorers for scikit-learn's `scoring=` that account for abstentions, certificates and score direction."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_class_mask
from pac_wrap.detectors.estimator import PACWrap
from pac_wrap.detectors.scores import anomaly_scores, core_of
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.ranks.memory import auc

__all__ = ["certified_ceiling_scorer", "decided_share_scorer", "ranking_scorer"]


def decided_share_scorer(estimator: Any, X: Any, y: ArrayLike | None = None) -> float:
    """Return the share of rows with a verdict other than abstain; more is better.

    Parameters
    ----------
    estimator : PACWrap
        A fitted estimator, or a fitted pipeline or search that ends in one.
    X, y : array-like
        The rows to decide; the labels are ignored.

    Examples
    --------
    >>> from pac_wrap import PACWrap
    >>> wrap = PACWrap("precomputed", max_fpr=0.2, max_fnr=0.2).fit(range(100), [0] * 60 + [1] * 40)
    >>> decided_share_scorer(wrap, [0.0, 59.5, 100.0])
    1.0
    """
    _certified(estimator)
    return float(np.mean(estimator.predict(X) >= 0))


def certified_ceiling_scorer(estimator: Any, X: Any = None, y: ArrayLike | None = None) -> float:
    """Return minus the largest certified ceiling; more is better.

    It varies if the strategy raises ceilings (`overlap="raise"`, `"hold_fnr"`, ...). The score -1 means that
    an error rate has no bound. With groups, the worst group counts.

    Parameters
    ----------
    estimator : PACWrap
        A fitted estimator, or a fitted pipeline or search that ends in one.
    X, y : ignored
        Accepted because `scoring=` passes them.

    Examples
    --------
    >>> from pac_wrap import PACWrap
    >>> wrap = PACWrap("precomputed", max_fpr=0.2, max_fnr=0.1).fit(range(100), [0] * 60 + [1] * 40)
    >>> certified_ceiling_scorer(wrap)
    -0.2
    """
    found: Certificate | GroupCertificate = _certified(estimator).certificate_
    each = found.certificates.values() if isinstance(found, GroupCertificate) else [found]
    return -max(1.0 if one.empty else max(promise.ceiling for promise in one.promises) for one in each)


def ranking_scorer(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Return the chance that an anomaly outscores a normal row (the ROC AUC); more is better.

    scikit-learn's "roc_auc" expects higher scores for class 1, but its own outlier detectors give anomalies
    lower scores: a search for the best would find the worst. Classes of more than 10,000 rows are sampled.

    Parameters
    ----------
    estimator : PACWrap or detector
        A fitted estimator or a fitted detector.
    X, y : array-like
        The rows and their labels, with both classes; for a detector, 0 is normal and 1 anomalous.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> rng = np.random.default_rng(0)
    >>> forest = IsolationForest(random_state=0).fit(rng.normal(0, 1, (200, 2)))
    >>> ranking_scorer(forest, [[0, 0], [0, 1], [9, 9]], [0, 0, 1])
    1.0
    """
    found = core_of(estimator)
    certified = isinstance(found, PACWrap)
    anomalous = as_class_mask(y, found.anomaly_label if certified else 1)
    if anomalous.all() or not anomalous.any():
        raise InputError(
            f"a ranking needs rows of both classes, got {np.count_nonzero(anomalous):,} anomalous of"
            f" {anomalous.size:,}; keep both in every fold with cv=StratifiedKFold(5)"
        )
    scores = estimator.decision_function(X) if certified else anomaly_scores(estimator, X)
    return auc(scores[~anomalous], scores[anomalous])


def _certified(estimator: Any) -> PACWrap:
    found = core_of(estimator)
    if not isinstance(found, PACWrap):
        raise InputError(f"this scorer needs a PACWrap, got {type(found).__name__}, which has no certificate")
    return found
