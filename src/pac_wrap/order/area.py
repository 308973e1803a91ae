"""The area under the ROC curve: do anomalies outscore normal points?"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.inputs import Scores
from pac_wrap.kernels import Floats

_POINTS: Final = 10_000


def auc(normal: Floats, anomalous: Floats, points: int = _POINTS) -> float:
    """Return the chance that an anomaly outscores a normal point, ties counting one half.

    Beyond so many points per class it is taken on that many, evenly spaced in the order given.

    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    # both sorted: the search then walks through memory in order, four times as fast
    low, high = (np.sort(spaced(scores, points)) for scores in (normal, anomalous))
    below = np.searchsorted(low, high, side="left").sum(dtype=np.float64)
    not_above = np.searchsorted(low, high, side="right").sum(dtype=np.float64)
    return float((below + not_above) / (2.0 * low.size * high.size))


def spaced(scores: Floats, points: int) -> Scores:
    """Return the scores, or so many of them that are evenly spaced in the order given.

    >>> spaced(np.arange(20_000.0), 3).tolist()
    [0.0, 9999.0, 19999.0]
    """
    taken = scores if scores.size <= points else scores[spaced_positions(scores.size, points)]
    return taken.astype(np.float64, copy=False)


def spaced_positions(size: int, points: int = _POINTS) -> NDArray[np.intp]:
    """Return the positions that `spaced` takes among so many scores, in rising order.

    >>> spaced_positions(3).tolist()
    [0, 1, 2]
    """
    if size <= points:
        return np.arange(size, dtype=np.intp)
    return np.linspace(0, size - 1, points).astype(np.intp)
