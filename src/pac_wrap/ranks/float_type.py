"""Scores rounded to their type: rounding to it, and the doubles where rounded scores change sides."""

from functools import lru_cache
from math import ceil, frexp, inf, ldexp, nextafter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import SCORE_TYPES, Scores, ScoreType
from pac_wrap.base.floats import away_from_zero, from_order_key, order_key


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


def is_narrower(one: ScoreType, other: ScoreType) -> bool:
    """Return whether a type has fewer digits than another.

    >>> is_narrower("float32", "float64")
    True
    """
    return SCORE_TYPES.index(one) > SCORE_TYPES.index(other)


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
    return threshold if kind == "float64" or threshold == -inf else _edge(order_key(threshold), kind)


@lru_cache(maxsize=64)
def _edge(key: int, kind: ScoreType) -> float:
    """Return the edge of a threshold, given by its key: as numbers, a cache may take two for the same."""
    form = _FORMATS[kind]
    # between 0 and the least normal number lies no rounded score
    threshold = away_from_zero(from_order_key(key))
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
