"""A certified curve for each group."""

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_array
from pac_wrap.base.floats import shared_together
from pac_wrap.method.curves.certify import certify_curve
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.groups.calibrate import checked
from pac_wrap.method.groups.values import Group, GroupColumn
from pac_wrap.method.promise import Guarantee


def certify_curve_groups(
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupColumn,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    together: bool = False,
    anomaly_label: object = 1,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> dict[Group, Curve]:
    """Return for each group the curve of bounds that hold at every threshold at once.

    Parameters
    ----------
    scores, labels, groups : array-like
        As in `calibrate_groups`.
    delta_fpr, delta_fnr : float
        The chance that some bound of the rate does not hold: in a group, or in any of them.
    together : bool
        Whether the curves of all groups are to hold at once, with these deltas: eq. (53).
    anomaly_label : object
        The label that marks an anomaly.
    top_fpr, top_fnr : float, optional
        The largest bound that matters; see `certify_curve`.

    Returns
    -------
    dict
        The curve of each group by its value.

    Raises
    ------
    InputError
        If the columns do not fit together, or one is none of its kind.

    Examples
    --------
    >>> curves = certify_curve_groups(range(400), [0, 1] * 200, ["a"] * 200 + ["b"] * 200, together=True)
    >>> round(curves["a"].normal.delta, 6)
    0.025321
    """
    values, mask, found, _ = checked(scores, labels, groups, anomaly_label)
    asked = Guarantee(delta_fpr=delta_fpr, delta_fnr=delta_fnr)
    count = len(found.values) if together else 1
    each = [shared_together(delta, count) for delta in (asked.delta_fpr, asked.delta_fnr)]
    given = as_array(scores, "scores")
    wide = given if given.dtype.kind == "f" else values
    tops = {"top_fpr": top_fpr, "top_fnr": top_fnr}
    order = np.argsort(found.codes, kind="stable")
    ends = np.cumsum(np.bincount(found.codes, minlength=len(found.values)))
    curves: dict[Group, Curve] = {}
    for group, rows in zip(found.values, np.split(order, ends[:-1]), strict=True):
        low, high = wide[rows[~mask[rows]]], wide[rows[mask[rows]]]
        curves[group] = certify_curve(low, high, each[0], each[1], **tops)
    return curves
