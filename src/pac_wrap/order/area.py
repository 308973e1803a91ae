"""The area under the ROC curve: do anomalies outscore normal points, or significantly the other way round?"""

from math import log, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.inputs import Scores
from pac_wrap.kernels import Floats

_POINTS: Final = 10_000
_FEW: Final = 1000
# of a thousand points each: more than six standard deviations above one half
_CLEARLY: Final = 0.6
_GOLDEN: Final = (sqrt(5.0) - 1.0) / 2.0
# how often scores that are not upside down may be taken for it
_LEVEL: Final = 0.01


def is_upside_down(area: float, *sizes: int) -> bool:
    """Return whether an AUC of classes of these sizes is significantly below one half, at 1 %: eq. (25).

    m (ln 2 + a ln a + (1 - a) ln(1 - a)) >= ln 100, m being the smaller size. Holds whatever the two
    distributions, with ties; fewer than seven points of a class are never enough.

    >>> is_upside_down(0.1, 60, 20), is_upside_down(0.45, 60, 20), is_upside_down(0.0, 1000, 6)
    (True, False, False)
    """
    if area >= 0.5:
        return False
    divergence = log(2.0) + sum(share * log(share) for share in (area, 1.0 - area) if share > 0.0)
    # an AUC is taken on so many points of a class at most
    return min(*sizes, _POINTS) * divergence >= -log(_LEVEL)


def rough_auc(normal: Floats, anomalous: Floats) -> float:
    """Return the AUC of up to a thousand points of each class, or of more of them if those leave it open.

    Whether it is upside down is as in `auc`, unless chance plays a trick of more than six standard
    deviations.
    """
    few = (_scattered(scores) for scores in (normal, anomalous))
    area = auc(*few)
    return area if area > _CLEARLY else auc(normal, anomalous)


def auc(normal: Floats, anomalous: Floats) -> float:
    """Return the chance that an anomaly outscores a normal point, ties counting one half.

    Beyond 10,000 points per class it is taken on that many, evenly spaced in the order given.

    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    # both sorted: the search then walks through memory in order, four times as fast
    low, high = np.sort(spaced(normal)), np.sort(spaced(anomalous))
    below = np.searchsorted(low, high, side="left").sum(dtype=np.float64)
    not_above = np.searchsorted(low, high, side="right").sum(dtype=np.float64)
    return float((below + not_above) / (2.0 * low.size * high.size))


def spaced(scores: Floats) -> Scores:
    """Return the scores, or 10,000 of them that are evenly spaced in the order given.

    >>> spaced(np.arange(20_000.0))[[0, -1]].tolist()
    [0.0, 19999.0]
    """
    taken = scores if scores.size <= _POINTS else scores[spaced_positions(scores.size)]
    return taken.astype(np.float64, copy=False)


def spaced_positions(size: int) -> NDArray[np.intp]:
    """Return the positions that `spaced` takes among so many scores, in rising order.

    >>> spaced_positions(3).tolist()
    [0, 1, 2]
    """
    if size <= _POINTS:
        return np.arange(size, dtype=np.intp)
    return np.linspace(0, size - 1, _POINTS).astype(np.intp)


def scattered_positions(size: int, points: int) -> NDArray[np.intp]:
    """Return so many positions among `size`, spread evenly by steps of the golden ratio.

    No period in the scores keeps pace with them.

    >>> scattered_positions(100, 4).tolist()
    [0, 61, 23, 85]
    """
    steps = np.arange(points) * _GOLDEN
    steps -= np.floor(steps)
    return (steps * size).astype(np.intp)


def _scattered(scores: Floats) -> Floats:
    return scores if scores.size <= _FEW else scores[scattered_positions(scores.size, _FEW)]
