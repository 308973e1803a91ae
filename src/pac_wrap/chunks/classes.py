"""Scores and labels of one piece of the data, divided into the two classes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores, as_anomaly_mask, as_array, as_scores, check_aligned
from pac_wrap.kernels import kernels
from pac_wrap.precision import ScoreType, type_of


class Classes(NamedTuple):
    """The scores of both classes, what normal points are called here, and the type that the scores came in.

    The last two are None where there are no normal points, or no points at all.
    """

    normal: Scores
    anomalous: Scores
    normal_label: Any
    score_type: ScoreType | None


def split_classes(where: str, scores: ArrayLike, labels: ArrayLike, anomaly_label: object) -> Classes:
    """Return both classes of one piece; what is wrong is refused with the name of the piece.

    >>> split_classes("chunk 0", [0.1, 0.9], ["ok", "fault"], "fault").normal.tolist()
    [0.1]
    """
    name, score_name = f"labels of {where}", f"scores of {where}"
    check_aligned(score_name, scores, name, labels)
    given = as_array(scores, score_name)
    values = as_scores(given, score_name)
    mask = as_anomaly_mask(labels, anomaly_label, name)
    if values.size != mask.size:
        raise InputError(
            f"scores and labels of {where} must have the same length, got {values.size:,} and {mask.size:,}"
        )
    normal_label = None if mask.all() else as_array(labels, name)[int(mask.argmin())]
    kind = type_of(given) if given.size else None
    return Classes(*kernels().divide(values, mask), normal_label, kind)


def check_normal_labels(where: str, first: Any, other: Any, anomaly_label: object) -> None:
    """Refuse two pieces that call their normal points differently; one piece alone cannot tell."""
    as_anomaly_mask(np.array([first, other], dtype=object), anomaly_label, f"labels of {where}")
