"""Scores as unsigned 64-bit keys in the same order, so that ranges of scores are ranges of whole numbers."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.kernels import Floats

Keys = NDArray[np.uint64]
_SIGN: Final = np.uint64(1 << 63)
_TO_MASK: Final = np.int64(63)


def to_keys(scores: Floats) -> Keys:
    """Return keys that compare as the scores do; both zeros have one key, NaN must not occur.

    >>> keys = to_keys(np.array([-np.inf, -1.0, -0.0, 0.0, 5e-324, np.inf]))
    >>> (keys[1:] > keys[:-1]).tolist()
    [True, True, False, True, True]
    """
    keys = np.array(scores, dtype=np.float64).view(np.uint64)
    # in whole numbers, since a processor that flushes subnormal numbers would change them in a float sum
    keys[keys == _SIGN] = 0
    # negative numbers turn all their bits around, the others only the sign
    flips = (keys.view(np.int64) >> _TO_MASK).view(np.uint64)
    flips |= _SIGN
    keys ^= flips
    return keys


def from_key(key: int) -> float:
    """Return the score that has this key.

    >>> [from_key(int(key)) for key in to_keys(np.array([-2.5, 0.0, np.inf]))]
    [-2.5, 0.0, inf]
    """
    bits = key ^ (1 << 63) if key >> 63 else key ^ ((1 << 64) - 1)
    return float(np.uint64(bits).view(np.float64))
