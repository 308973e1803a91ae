"""Labelled scores in, certificate out."""

from collections.abc import Mapping
from typing import TypeVar

from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_anomaly_mask, as_array, as_scores, check_aligned, type_of
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate, Kinds, Overlap
from pac_wrap.method.clause import warn_of_lacking
from pac_wrap.method.kinds.calibrate import calibrate_kinds
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.request import Request, certify_classes, certify_divided, warned
from pac_wrap.method.robust.weights import Weights
from pac_wrap.method.weighted import certify_weighted, of_classes
from pac_wrap.ranks.kernels import kernels

T = TypeVar("T")


def calibrate(
    normal: ArrayLike | Kinds,
    anomalous: ArrayLike | Kinds,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    normal_weights: Weights | None = None,
    anomalous_weights: Weights | None = None,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> Certificate:
    """Return the certificate for the scores of labelled normal and labelled anomalous points.

    Too few labels never raise: the certificate is vacuous and says so.

    Parameters
    ----------
    normal, anomalous : array-like of float, or mapping of kinds to such
        The scores of each class, higher for what is more anomalous; infinities are scores too. By kind, as in
        `{"card stolen": scores, "account takeover": scores}`, the ceilings hold for every kind.
    guarantee : Guarantee or Request, optional
        What to promise; by default both rates at most 0.05, each with delta 0.05. A plain number is the
        ceiling of every kind, and each kind has its own delta.
    overlap : str or Strategy, optional
        What is done where the classes overlap: "abstain" (the default), "abstain_always", "raise",
        "hold_fnr", "hold_fpr", "hold_fnr_if_needed", "hold_fpr_if_needed", "algorithm1", or a strategy with
        options. Kinds take the abstaining ones, "hold_fnr" and "hold_fpr".
    normal_weights, anomalous_weights : array-like of float, or pair of such, optional
        How much more likely each point is in the future than at calibration, up to a factor: the promise is
        then about the future. A point survives with probability weight / bound, and those that do calibrate:
        eq. (78). The order of the points decides which do. A pair of lower and upper weights, with overlap
        "abstain" only, is for weights that are known so far: eq. (79).
    weight_bound : float, optional
        What no weight exceeds, not only in the sample; needed with weights.
    seed : int, optional
        The seed of the draw; by default the system draws one, and the certificate records it. Whoever gives
        one must not have tried it, or others, before: the promise is an average over seeds.

    Returns
    -------
    Certificate
        The rule, what it promises, and what that rests on, with a clause for each class or kind.

    Raises
    ------
    InputError
        If scores are not one-dimensional numbers, contain NaN, or there is none at all.

    Warns
    -----
    UpsideDownWarning
        If anomalies score significantly lower than normal points.
    VacuousWarning
        If something that was asked for is not promised.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> normal, anomalous = rng.normal(0, 1, 2000), rng.normal(4, 1, 2000)
    >>> certificate = calibrate(normal, anomalous, Guarantee(max_fpr=0.05, max_fnr=0.05))
    >>> certificate.regime.value, certificate.fpr.budget.errors
    ('separated', 83)
    >>> certificate.verdicts([-1.0, 1.9, 5.0])
    array([0, 0, 1], dtype=int8)
    """
    weights = normal_weights, anomalous_weights
    weighted = any(one is not None for one in weights)
    if not weighted and (weight_bound is not None or seed is not None):
        name = "seed" if weight_bound is None else "weight_bound"
        raise InputError(f"{name} is for weights; give normal_weights, anomalous_weights or both")
    if isinstance(normal, Mapping) or isinstance(anomalous, Mapping):
        if weighted:
            raise InputError("scores by kind take no weights; calibrate the kinds one by one")
        found = calibrate_kinds(normal, anomalous, guarantee, overlap)
        warn_of_lacking(found.clauses)
        return found
    if weighted:
        request = Request.of(guarantee, overlap)
        return warned(certify_weighted(request, (normal, anomalous), weights, weight_bound, seed))
    return warned(certify_classes(Request.of(guarantee, overlap), normal, anomalous))


def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    weights: Weights | None = None,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> Certificate:
    """Return the certificate for one array of scores and one of labels, 0 (normal) and 1 (anomalous).

    Parameters
    ----------
    scores : array-like of float
        One score per point, higher for what is more anomalous.
    labels : array-like
        One label per point.
    guarantee : Guarantee or Request, optional
        What to promise; by default both rates at most 0.05, each with delta 0.05.
    overlap : str or Strategy, optional
        What is done where the classes overlap; see `calibrate`.
    anomaly_label : object
        The label that marks an anomaly; -1 reads scikit-learn's +1 and -1.
    weights : array-like of float, or pair of such, optional
        How much more likely each point is in the future than at calibration; see `calibrate`. A class that
        does not shift has the bound as its weight.
    weight_bound : float, optional
        What no weight exceeds, not only in the sample; needed with weights.
    seed : int, optional
        The seed of the draw by weights; by default the system draws one.

    Returns
    -------
    Certificate
        That of `calibrate` for the two classes.

    Raises
    ------
    InputError
        If scores and labels do not fit together, or either is none of its kind.

    Examples
    --------
    >>> calibrate_labelled([0.1, 0.2, 0.9], [0, 0, 1]).regime.value
    'vacuous'
    """
    check_aligned("scores", scores, "labels", labels)
    request = Request.of(guarantee, overlap, anomaly_label)
    given = as_array(scores, "scores")
    values, mask = as_scores(given), as_anomaly_mask(labels, request.anomaly_label)
    if values.size != mask.size:
        raise InputError(
            f"scores and labels must have the same length, got {values.size:,} and {mask.size:,}"
        )
    if weights is not None:
        check_aligned("scores", scores, "weights", weights)
        classes = given[~mask], given[mask]
        return warned(certify_weighted(request, classes, of_classes(weights, mask), weight_bound, seed))
    if weight_bound is not None or seed is not None:
        name = "seed" if weight_bound is None else "weight_bound"
        raise InputError(f"{name} is for weights; give weights too, or leave it out")
    return warned(certify_divided(request, *kernels().divide(values, mask), type_of(given)))
