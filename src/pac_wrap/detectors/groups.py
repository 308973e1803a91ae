"""Rows with their groups: taken from a column of X, which is then no feature, or given beside it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, check_aligned, check_same_length
from pac_wrap.base.foreign import listed, quoted
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.calibrate import GroupRequest, calibrate_groups
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.values import GroupColumn


def divided(X: Any, groups: GroupColumn | str | None) -> tuple[Any, Any]:
    """Return rows without their column of groups, and the groups; a text names a column of a data frame.

    >>> import pandas as pd
    >>> X, groups = divided(pd.DataFrame({"a": [1, 2], "tenant": ["x", "y"]}), "tenant")
    >>> list(X.columns), list(groups)
    (['a'], ['x', 'y'])
    """
    if groups is None:
        return X, None
    if not isinstance(groups, str):
        check_aligned("X", X, "groups", groups)
        rows, found = (_rows(one) for one in (X, groups))
        check_same_length("X", rows, "groups", found)
        return X, groups
    columns = getattr(X, "columns", None)
    if columns is None:
        raise InputError(
            f"groups={quoted(groups)} names a column, and X has no names; pass a data frame, or the groups"
            " themselves"
        )
    if groups not in columns:
        raise InputError(f"X has no column {quoted(groups)} of groups; its columns are {listed(columns)}")
    return (X.drop(columns=groups) if hasattr(X, "iloc") else X.drop(groups)), X[groups]


def taken(groups: Any, rows: Any) -> Any:
    """Return the groups of some rows, by position."""
    if groups is None:
        return None
    if hasattr(groups, "iloc"):
        return groups.iloc[rows]
    return groups[rows] if hasattr(groups, "shape") else [groups[row] for row in rows.tolist()]


def _rows(table: Any) -> int:
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


def certified(
    scores: Scores, anomalous: NDArray[np.bool_], groups: Any, request: GroupRequest
) -> Certificate | GroupCertificate:
    """Return the certificate of scores, by group if there are groups."""
    if groups is None:
        return calibrate(scores[~anomalous], scores[anomalous], request.request)
    return calibrate_groups(
        scores, anomalous, groups, request.request, together=request.together, pool=request.pool
    )
