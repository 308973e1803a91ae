"""Scores and labels of one piece of the data, divided into the two classes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores, as_anomaly_mask, as_array, as_scores
from pac_wrap.kernels import kernels


class Classes(NamedTuple):
    """The scores of both classes, and what normal points are called here; None if there are none."""

    normal: Scores
    anomalous: Scores
    normal_label: Any


def split_classes(where: str, scores: ArrayLike, labels: ArrayLike, anomaly_label: object) -> Classes:
    """Return both classes of one piece; what is wrong is refused with the name of the piece.

    >>> split_classes("chunk 0", [0.1, 0.9], ["ok", "fault"], "fault").normal.tolist()
    [0.1]
    """
    values = as_scores(scores, f"scores of {where}")
    name = f"labels of {where}"
    mask = as_anomaly_mask(labels, anomaly_label, name)
    if values.size != mask.size:
        raise InputError(
            f"scores and labels of {where} must have the same length, got {values.size:,} and {mask.size:,}"
        )
    normal_label = None if mask.all() else as_array(labels, name)[int(mask.argmin())]
    return Classes(*kernels().divide(values, mask), normal_label)


def check_normal_labels(where: str, first: Any, other: Any, anomaly_label: object) -> None:
    """Refuse two pieces that call their normal points differently; one piece alone cannot tell."""
    as_anomaly_mask(np.array([first, other], dtype=object), anomaly_label, f"labels of {where}")
