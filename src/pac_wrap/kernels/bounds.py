"""Numbers that scores of any type can be compared with as if both were doubles, on any processor."""

import sys
from math import copysign, inf, nextafter
from typing import Any, Final

import numpy as np

from pac_wrap.kernels.compiled import flushes

LEAST_NORMAL: Final = sys.float_info.min
_LEAST_NORMAL_32: Final = np.finfo(np.float32).tiny


def before(edge: float) -> float:
    """Return the bound for which `score > bound` is `score >= edge`.

    >>> before(1.0) < 1.0
    True
    """
    bound = nextafter(edge, -inf)
    # a zero must still lie above
    return -LEAST_NORMAL if flushes() and bound == 0.0 and copysign(1.0, bound) < 0.0 else bound


def narrowed(bound: float, kind: np.dtype[Any]) -> np.floating:
    """Return what scores of a type can be compared with, with `>` and `<=`, as if with this double.

    For float32 it is the largest one that is not above the bound: no float32 lies between the two.

    >>> float(narrowed(0.1, np.dtype(np.float32))) < 0.1
    True
    """
    if kind != np.float32:
        return np.float64(bound)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(bound)
        if narrow > np.float64(bound):
            narrow = np.nextafter(narrow, np.float32(-inf))
    return -_LEAST_NORMAL_32 if flushes() and bound < 0.0 == narrow else narrow


def raised(bound: float, kind: np.dtype[Any]) -> np.floating:
    """Return what scores of a type can be compared with, with `<` and `>=`, as if with this double.

    >>> float(raised(0.1, np.dtype(np.float32))) > 0.1
    True
    """
    return -narrowed(-bound, kind)
