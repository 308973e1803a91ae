"""Labelled scores in, certificate out."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, overload

from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_labelled, check_aligned, type_of
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate, Kinds, Overlap
from pac_wrap.method.clause import warn_of_lacking
from pac_wrap.method.groups.values import GroupColumn
from pac_wrap.method.kinds.calibrate import calibrate_kinds, classes_by_kind
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.request import Request, certify_classes, certify_divided, warned
from pac_wrap.method.robust.weights import Weights
from pac_wrap.method.weighted import certify_weighted, of_classes
from pac_wrap.ranks.kernels import kernels

if TYPE_CHECKING:
    from pac_wrap.method.groups.certificate import GroupCertificate


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
        `{"card stolen": scores, "account takeover": scores}`, the ceilings hold for every kind, and the
        largest of them for any mixture: eq. (61).
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


@overload
def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    by: GroupColumn,
    together: bool = False,
    pool: bool = False,
) -> "GroupCertificate": ...
@overload
def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    kinds: GroupColumn | None = None,
    weights: Weights | None = None,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> Certificate: ...
def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
    by: GroupColumn | None = None,
    together: bool = False,
    pool: bool = False,
    kinds: GroupColumn | None = None,
    weights: Weights | None = None,
    weight_bound: float | None = None,
    seed: int | None = None,
) -> "Certificate | GroupCertificate":
    """Return the certificate for one array of scores and one of labels, 0 (normal) and 1 (anomalous).

    With `by`, each group of points has a threshold and a promise of its own: the certificate that `calibrate`
    gives for its points. Where points belong to two groups at once (a tenant and a region), calibrate each
    column with half of delta, and decide where both agree.

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
    by : array-like, optional
        The group of each point: texts, whole numbers, dates, categories. What is missing is a group as well.
    together : bool
        With `by`: whether the promises of all groups are to hold at once, with the deltas of the guarantee:
        eqs. (53) to (54), eq. (111). Otherwise each holds by itself: eq. (52). The share of each group
        follows from the numbers of labels of all, and groups that are promised nothing take none.
    pool : bool
        With `by`: whether groups with too few labels follow one rule that is found from all of them. Its
        promise is about their mixture, as they stand in the table, and about none by itself: eq. (55).
    kinds : array-like, optional
        The kind of each point, for ceilings that hold for every kind; see `calibrate`. Empty or None for all
        points of a class that has no kinds.
    weights : array-like of float, or pair of such, optional
        How much more likely each point is in the future than at calibration; see `calibrate`. A class that
        does not shift has the bound as its weight.
    weight_bound : float, optional
        What no weight exceeds, not only in the sample; needed with weights.
    seed : int, optional
        The seed of the draw by weights; by default the system draws one.

    Returns
    -------
    Certificate or GroupCertificate
        That of `calibrate` for the two classes; with `by` the latter, which has one for each group.

    Raises
    ------
    InputError
        If the columns do not fit together, or one is none of its kind.

    Warns
    -----
    UpsideDownWarning
        If anomalies score significantly lower than normal points, or do in some group.
    VacuousWarning
        If something that was asked for is not promised, or nothing useful is to some groups.

    Examples
    --------
    >>> calibrate_labelled([0.1, 0.2, 0.9], [0, 0, 1]).regime.value
    'vacuous'
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = np.tile([0, 1], 1000)
    >>> tenants = np.repeat(["acme", "other"], 1000)
    >>> certificate = calibrate_labelled(rng.normal(4 * labels, 1), labels, by=tenants, together=True)
    >>> certificate.certificates["acme"].regime.value
    'separated'
    >>> certificate.verdicts([0.0, 5.0, 5.0], ["acme", "other", "never seen"])
    array([ 0,  1, -1], dtype=int8)
    """
    weighted = weights is not None or weight_bound is not None or seed is not None
    if by is None and (together or pool):
        raise InputError("together and pool are for groups; give by too, or leave them out")
    if by is not None and (weighted or kinds is not None):
        raise InputError("by goes with neither kinds nor weights; leave it out")
    if kinds is not None:
        if weighted:
            raise InputError("scores by kind take no weights; calibrate the kinds one by one")
        mark = guarantee.anomaly_label if isinstance(guarantee, Request) else anomaly_label
        given, _, mask = as_labelled(scores, labels, mark)
        check_aligned("scores", scores, "kinds", kinds)
        normal, anomalous = classes_by_kind(given, mask, kinds)
        return calibrate(normal, anomalous, guarantee, overlap=overlap)
    request = Request.of(guarantee, overlap, anomaly_label)
    if by is not None:
        from pac_wrap.method.groups.calibrate import GroupRequest, certify_labelled_groups, warned_of_groups

        asked = GroupRequest(request, together, pool)
        return warned_of_groups(certify_labelled_groups(asked, scores, labels, by))
    given, values, mask = as_labelled(scores, labels, request.anomaly_label)
    if weights is not None:
        check_aligned("scores", scores, "weights", weights)
        classes = given[~mask], given[mask]
        return warned(certify_weighted(request, classes, of_classes(weights, mask), weight_bound, seed))
    if weighted:
        name = "seed" if weight_bound is None else "weight_bound"
        raise InputError(f"{name} is for weights; give weights too, or leave it out")
    return warned(certify_divided(request, *kernels().divide(values, mask), type_of(given)))
