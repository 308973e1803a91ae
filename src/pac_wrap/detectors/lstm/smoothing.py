"""The exponentially weighted moving average of errors (Hundman and others, 2018)."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def smoothed(errors: Floats, span: float) -> Floats:
    """Return the exponentially weighted mean of each error and all before it; a span of 1 changes nothing.

    The error of k steps ago weighs (1 - 2 / (span + 1))^k, and the weights of each mean sum to one, as in
    pandas' `ewm(span=span).mean()`.

    >>> smoothed(np.array([0.0, 0.0, 3.0, 0.0]), span=3).round(3)
    array([0.   , 0.   , 1.714, 0.8  ])
    """
    from scipy.signal import lfilter

    keep = 1.0 - 2.0 / (span + 1.0)
    sums = lfilter([1.0], [1.0, -keep], errors)
    weights = lfilter([1.0], [1.0, -keep], np.ones_like(errors))
    means: Floats = np.asarray(sums / weights, dtype=np.float64)
    return means
