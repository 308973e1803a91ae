"""The type of scores: which one it is, rounding to it, and the doubles where rounded scores change sides."""

from collections.abc import Iterable
from functools import lru_cache
from math import ceil, copysign, frexp, inf, ldexp, nextafter
from struct import pack, unpack
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.inputs import Scores
from pac_wrap.kernels import LEAST_NORMAL

ScoreType = Literal["float64", "float32", "float16"]
# from the widest to the narrowest
_TYPES: Final[tuple[ScoreType, ...]] = ("float64", "float32", "float16")


class _Format(NamedTuple):
    """A binary format of IEEE 754: how many digits, the least number 2^least, overflow from 2^top on."""

    digits: int
    least: int
    top: int

    def spacing(self, value: float) -> float:
        """Return the distance from a number to the next one away from zero."""
        return ldexp(1.0, max(frexp(value)[1] - self.digits, self.least) if value else self.least)


_FORMATS: Final[dict[ScoreType, _Format]] = {
    "float32": _Format(24, -149, 128),
    "float16": _Format(11, -24, 16),
}


def score_type(dtype: Any) -> ScoreType:
    """Return the type of scores that come as this NumPy type: wider floats and whole numbers are doubles.

    >>> score_type(np.dtype(">f4")), score_type(np.dtype(int))
    ('float32', 'float64')
    """
    kind = np.dtype(dtype)
    name = f"float{8 * kind.itemsize}"
    return next((one for one in _TYPES if kind.kind == "f" and one == name), "float64")


def type_of(*arrays: NDArray[Any]) -> ScoreType:
    """Return the type that all arrays have, float64 if they differ; an empty one takes that of the others.

    >>> type_of(np.zeros(2, dtype=np.float32), np.zeros(0))
    'float32'
    """
    return common_type(score_type(array.dtype) for array in arrays if array.size) or "float64"


def common_type(types: Iterable[ScoreType | None]) -> ScoreType | None:
    """Return the type that all have, float64 if they differ, None if there is none; None has no say.

    >>> common_type(["float32", None]), common_type(["float32", "float16"]), common_type([])
    ('float32', 'float64', None)
    """
    found = {one for one in types if one is not None}
    return found.pop() if len(found) == 1 else "float64" if found else None


def is_narrower(one: ScoreType, other: ScoreType) -> bool:
    """Return whether a type has fewer digits than another.

    >>> is_narrower("float32", "float64")
    True
    """
    return _TYPES.index(one) > _TYPES.index(other)


def rounded(scores: ArrayLike, kind: ScoreType) -> Scores:
    """Return scores rounded to a type, ties to even and overflow to infinity, as doubles.

    >>> rounded([0.3, 1e39], "float32").tolist()
    [0.30000001192092896, inf]
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(scores, dtype=np.float64).astype(kind, copy=False).astype(np.float64, copy=False)


def rounding_edge(threshold: float, kind: ScoreType) -> float:
    """Return the least double that, rounded to a type, reaches the threshold: eq. (26).

    Rounding keeps the order, so `rounded(score) >= threshold` is `score >= rounding_edge(threshold)`.

    >>> rounding_edge(0.3, "float32")  # the next float32 above 0.3, less half a step
    0.29999999701976776
    """
    return threshold if kind == "float64" or threshold == -inf else _edge(pack("<d", threshold), kind)


@lru_cache(maxsize=64)
def _edge(bits: bytes, kind: ScoreType) -> float:
    """Return the edge of a threshold, given by its bits: some processors take subnormal numbers for zeros."""
    threshold: float = unpack("<d", bits)[0]
    form = _FORMATS[kind]
    if abs(threshold) < LEAST_NORMAL and any(bits[:-1]):
        # no rounded score lies between 0 and here
        threshold = copysign(LEAST_NORMAL, threshold)
    # 2^top stands for infinity: scores round to it as if it were the next number after the largest
    top = ldexp(1.0, form.top)
    largest = top - form.spacing(top / 2.0)
    threshold = min(threshold, top)
    step = form.spacing(threshold)
    reached = max(ceil(threshold / step) * step, -largest)
    # what is less lies closer together below a positive power of two
    below = form.spacing(nextafter(reached, 0.0) if reached > 0.0 else reached)
    middle = reached - below / 2.0
    even = reached / form.spacing(reached) % 2.0 == 0.0
    return middle if even else nextafter(middle, inf)


def straddled(edge: float, kind: ScoreType) -> float | None:
    """Return the number of a type that stands for doubles on both sides of an edge, None if there is none.

    >>> straddled(0.3, "float32"), straddled(rounding_edge(0.3, "float32"), "float32")
    (0.30000001192092896, None)
    """
    nearest = float(rounded(edge, kind))
    return nearest if edge > rounding_edge(nearest, kind) else None


def represents(kind: ScoreType, value: float) -> bool:
    """Return whether a type holds a double exactly.

    >>> represents("float32", 0.5), represents("float32", 0.3)
    (True, False)
    """
    return bool(rounded(value, kind) == value)
