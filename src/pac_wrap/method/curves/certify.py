"""Labelled scores in, certified curve out: from arrays, from a table with groups, and from chunks."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_labelled
from pac_wrap.base.floats import shared_together
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import certify
from pac_wrap.method.curves.curve import Curve, CurveRequest
from pac_wrap.method.groups.values import Group, GroupColumn, groups_beside
from pac_wrap.method.source import ChunkSource


def certify_curve(
    normal: ArrayLike,
    anomalous: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return bounds of both error rates that hold at every threshold together: eq. (36).

    If anomalies score significantly lower than normal points, it gives an `UpsideDownWarning`.

    Parameters
    ----------
    normal, anomalous : array-like of float
        The scores of each class, higher for more anomalous points. One class may be empty.
    delta_fpr, delta_fnr : float
        The chance, over draws of the calibration points, that any bound of the rate does not hold.
    top_fpr, top_fnr : float, optional
        The largest bound that matters. Larger bounds are not stated, and smaller ones become lower in return.
        Fix it before looking at the scores.

    Returns
    -------
    Curve
        The bounds, and the certificate of any threshold.

    Raises
    ------
    InputError
        If scores are not one-dimensional numbers, contain NaN, or are all missing.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> curve = certify_curve(rng.normal(0, 1, 2000), rng.normal(3, 1, 500))
    >>> certificate = curve.choose(max_fpr=0.05)
    >>> print(*certificate.promises, sep=", ")
    FPR <= 0.04979 (confidence 0.95), FNR <= 0.1484 (confidence 0.95)
    """
    request = CurveRequest(delta_fpr, delta_fnr, top_fpr=top_fpr, top_fnr=top_fnr)
    return request.certify_scores(normal, anomalous)


@overload
def certify_curve_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    by: GroupColumn,
    together: bool = False,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> dict[Group, Curve]: ...
@overload
def certify_curve_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve: ...
def certify_curve_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    by: GroupColumn | None = None,
    together: bool = False,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve | dict[Group, Curve]:
    """Return the curve for an array of scores and an array of labels, or a dict with a curve for each group.

    The other parameters are those of `certify_curve`.

    Parameters
    ----------
    scores, labels : array-like
        One score and one label per point, 0 (normal) or 1 (anomalous).
    anomaly_label : object
        The label that marks an anomaly.
    by : array-like, optional
        The group of each point; see `calibrate_labelled`.
    together : bool
        With `by`: whether the curves of all groups hold together, with these deltas: eq. (53).

    Examples
    --------
    >>> groups = ["a"] * 200 + ["b"] * 200
    >>> curves = certify_curve_labelled(range(400), [0, 1] * 200, by=groups, together=True)
    >>> round(curves["a"].normal.delta, 6)
    0.025321
    """
    asked = CurveRequest(delta_fpr, delta_fnr, top_fpr=top_fpr, top_fnr=top_fnr)
    given, values, mask = as_labelled(scores, labels, anomaly_label)
    wide = given if given.dtype.kind == "f" else values
    if by is None:
        if together:
            raise InputError("together is for groups; give by too, or remove together")
        return asked.certify_scores(wide[~mask], wide[mask])
    found = groups_beside(scores, values.size, by)
    if together:
        each = [shared_together(delta, len(found.values)) for delta in (asked.delta_fpr, asked.delta_fnr)]
        asked = replace(asked, delta_fpr=each[0], delta_fnr=each[1])
    order = np.argsort(found.codes, kind="stable")
    ends = np.cumsum(np.bincount(found.codes, minlength=len(found.values)))
    return {
        group: asked.certify_scores(wide[rows[~mask[rows]]], wide[rows[mask[rows]]])
        for group, rows in zip(found.values, np.split(order, ends[:-1]), strict=True)
    }


def certify_curve_chunks(
    chunks: Callable[[], Iterable[tuple[ArrayLike, ArrayLike]]],
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return the curve of data that is read in chunks, the same as `certify_curve` gives for all of it.

    The other parameters are those of `certify_curve`.

    Parameters
    ----------
    chunks : callable
        A function that starts a fresh iteration over pairs of scores and labels, the same pairs each time.
    anomaly_label : object
        The label that marks an anomaly.

    Examples
    --------
    >>> parts = [([0.1, 0.9], [0, 1]), ([], []), ([0.2], [0])]
    >>> certify_curve_chunks(lambda: parts) == certify_curve([0.1, 0.2], [0.9])
    True
    """
    request = CurveRequest(delta_fpr, delta_fnr, anomaly_label, top_fpr, top_fnr)
    return certify(ChunkSource(chunks, anomaly_label), request)
