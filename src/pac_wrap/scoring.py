"""Scorers for scikit-learn's `scoring=`, which know abstentions, certificates and the direction of scores."""

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
    """Return the share of rows that a certificate decides; more is better.

    Parameters
    ----------
    estimator : PACWrap
        Fitted; or a pipeline or search that ends in one.
    X, y : array-like
        The rows; labels are ignored.

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
    """Return minus the greatest ceiling that is certified, of those asked for: more is better.

    It varies where ceilings are raised (`overlap="raise"`, `"hold_fnr"`, ...); -1 means that an error rate
    may be anything. Of groups it is that of the worst.

    Parameters
    ----------
    estimator : PACWrap
        Fitted; or a pipeline or search that ends in one.
    X, y : ignored
        They are there so that it can be a `scoring=`.

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
    """Return the chance that an anomaly outscores a normal row, for detectors too; more is better.

    scikit-learn's "roc_auc" takes a higher score for class 1, but its own outlier detectors give anomalies
    lower ones: a search for the best would find the worst. Of more than 10,000 rows per class, so many count.

    Parameters
    ----------
    estimator : PACWrap or detector
        Fitted.
    X, y : array-like
        The rows and their labels, of both classes; for a detector 0 (normal) and 1 (anomalous).

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
        raise InputError(
            f"this scorer is about certificates, got {type(found).__name__}, which has none; score a PACWrap"
        )
    return found
