"""What people use today instead: conformal thresholds, the best F1, a percentile. No confidence is promised.

Each returns `Thresholds`, whose `rule` decides like that of a certificate, so all are measured the same way.
"""

from fractions import Fraction
from math import inf, nextafter
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_scores, check_count, check_rate
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import as_guarantee
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.thresholds import Thresholds, alarm_from, clear_below

_LARGEST: Final = float(np.finfo(np.float64).max)


def cpad_budget(n: int, rate: float, delta: float | None = None) -> int | None:
    """Return how many errors among n points conformal prediction tolerates, or None: eq. (21).

    With k = floor(rate (n + 1)) it misses what lies below the k-th smallest anomaly, so k - 1 of them.

    Parameters
    ----------
    n : int
        How many points of one class calibrate.
    rate : float
        The ceiling of the error rate.
    delta : float, optional
        Not used; it is there so that this can stand in for `error_budget`.

    Returns
    -------
    int or None
        The errors tolerated, or None if n is too small for the rate.

    Raises
    ------
    InputError
        If n or the rate breaks a rule.

    Examples
    --------
    >>> cpad_budget(170, 0.05), cpad_budget(865, 0.05), cpad_budget(10, 0.05)
    (7, 42, None)
    """
    # the rate is read as its shortest decimal, so that floor(0.29 * 100) is 29
    k = int(Fraction(repr(check_rate("rate", rate))) * (check_count("n", n) + 1))
    return k - 1 if k else None


def cpad(normal: ArrayLike, anomalous: ArrayLike, guarantee: Guarantee | None = None) -> Thresholds:
    """Return the two thresholds of class-conditional conformal prediction (Lei 2014): eq. (21).

    Each error rate is at most its ceiling on average over calibrations, but with many points nearly half
    of the calibrations break it.

    Parameters
    ----------
    normal, anomalous : array-like
        Calibration scores of the two classes.
    guarantee : Guarantee, optional
        The ceilings; its deltas are not used.

    Returns
    -------
    Thresholds
        One threshold for each ceiling.

    Raises
    ------
    InputError
        If the scores break a rule.

    Examples
    --------
    >>> cpad(np.arange(100.0), np.arange(90.0, 190.0))
    Thresholds(alarm_from=95.00000000000001, clear_below=94.0)
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    asked = as_guarantee(guarantee)
    low = high = None
    if asked.max_fpr is not None:
        low = alarm_from(normal, cpad_budget(normal.size, asked.max_fpr))
    if asked.max_fnr is not None:
        high = clear_below(anomalous, cpad_budget(anomalous.size, asked.max_fnr))
    return Thresholds(low, high)


def f1_max(normal: ArrayLike, anomalous: ArrayLike) -> Thresholds:
    """Return the single threshold with the greatest F1 on these scores; among equals the highest.

    F1 = 2 TP / (2 TP + FP + FN). It promises nothing about points it has not seen.

    Parameters
    ----------
    normal, anomalous : array-like
        Scores of the two classes.

    Returns
    -------
    Thresholds
        The same threshold for both rates.

    Raises
    ------
    InputError
        If there is no anomalous score.

    Examples
    --------
    >>> f1_max([0.0, 1.0, 2.0], [2.0, 3.0, 4.0]).alarm_from
    2.0
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    if anomalous.size == 0:
        raise InputError("anomalous is empty, so no threshold has an F1; pass at least one anomalous score")
    candidates = np.unique(anomalous)[::-1]
    hits = anomalous.size - np.searchsorted(np.sort(anomalous), candidates)
    alarms = hits + normal.size - np.searchsorted(np.sort(normal), candidates)
    # a threshold of inf would never alarm
    tau = min(float(candidates[np.argmax(2.0 * hits / (alarms + anomalous.size))]), _LARGEST)
    return Thresholds(tau, tau)


def percentile(normal: ArrayLike, contamination: float = 0.05) -> Thresholds:
    """Return the threshold above which a share `contamination` of the normal scores lies.

    This is what the parameter of that name does in scikit-learn and PyOD, here on normal points.

    Parameters
    ----------
    normal : array-like
        Scores of normal points.
    contamination : float
        The share of them that is to be flagged.

    Returns
    -------
    Thresholds
        The same threshold for both rates.

    Raises
    ------
    InputError
        If there is no normal score, or the share is not between 0 and 1.

    Examples
    --------
    >>> percentile(np.arange(101.0), 0.1).rule.verdicts([89.0, 91.0])
    array([0, 1], dtype=int8)
    """
    normal = as_scores(normal, "normal")
    if normal.size == 0:
        raise InputError("normal is empty, so it has no percentile; pass at least one normal score")
    # those libraries interpolate between scores, so this does too, except between infinities
    method: Literal["linear", "higher"] = "linear" if np.isfinite(normal).all() else "higher"
    level = 1.0 - check_rate("contamination", contamination)
    tau = min(nextafter(float(np.quantile(normal, level, method=method)), inf), _LARGEST)
    return Thresholds(tau, tau)
