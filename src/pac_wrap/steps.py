"""A step function of the score at the speed of memory: no large temporaries, every core if it pays."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import inf, nextafter
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.cores import together, usable_cores
from pac_wrap.inputs import as_scores

Codes = NDArray[np.int8]

# up to so many scores one binary search is the faster way
_FEW: Final = 512
# a chunk of doubles and its masks stay in the second-level cache
_CHUNK: Final = 1 << 17
# threads pay from so many scores each on, since they wait for each other between the operations
_MANY: Final = 1 << 22
_DOUBLE: Final = np.dtype(np.float64)


class Steps:
    """The code `codes[i]` for a score that reaches the first `i` of two edges at most, compared with `>=`.

    >>> Steps([0.3, 0.7], [0, -1, 1]).codes_of([0.1, 0.3, 0.9])
    array([ 0, -1,  1], dtype=int8)
    """

    def __init__(self, edges: Sequence[float], codes: Sequence[int]) -> None:
        # s > before is s >= edge, and right also where the processor flushes subnormal numbers to zero
        before = [nextafter(edge, -inf) for edge in edges] or [-inf]
        self._low, self._high = before[0], before[-1]
        self._below, self._above = codes[0], codes[-1]
        self._between = (codes[1] if len(codes) == 3 else codes[-1]) - codes[-1]
        # only NaN lies beyond the last end
        self._ends = np.array([*before[: len(edges)], inf])
        self._codes = np.array(codes, dtype=np.int8)

    def codes_of(self, scores: ArrayLike) -> Codes:
        """Return the code of each score; what is no score is refused."""
        if type(scores) is np.ndarray and scores.ndim == 1:
            if scores.size <= _FEW and scores.dtype is _DOUBLE:
                try:
                    found: Codes = self._codes.take(self._ends.searchsorted(scores))
                    return found
                except IndexError:  # a NaN, which has no code
                    return self._refused(scores)
            if scores.dtype.kind in "iu" or scores.dtype in (np.float64, np.float32, np.float16):
                return self._many(scores)
        return self._many(as_scores(scores))

    def _many(self, scores: NDArray[Any]) -> Codes:
        codes = np.empty(scores.size, dtype=np.int8)
        if scores.size < 2 * _MANY:
            return codes if self._fill(scores, codes) else self._refused(scores)
        parts = min(usable_cores(), scores.size // _MANY)
        cuts = [scores.size * part // parts for part in range(parts + 1)]
        sound = together(
            [partial(self._fill, scores[start:end], codes[start:end]) for start, end in pairwise(cuts)]
        )
        return codes if all(sound) else self._refused(scores)

    def _fill(self, scores: NDArray[Any], codes: Codes) -> bool:
        """Write the codes, and return whether no score was NaN."""
        low, high = _as_compared(self._low, scores.dtype), _as_compared(self._high, scores.dtype)
        buffers = np.empty((2, min(scores.size, _CHUNK)), dtype=bool)
        # a signalling NaN would otherwise warn before it is refused
        with np.errstate(invalid="ignore"):
            for start in range(0, scores.size, _CHUNK):
                chunk, out = scores[start : start + _CHUNK], codes[start : start + _CHUNK]
                within, spare = buffers[:, : chunk.size]
                reached = np.greater(chunk, low, out=out.view(bool))
                np.less_equal(chunk, high, out=within)
                # neither holds for NaN, and one of them for every other score
                if not np.logical_or(reached, within, out=spare).all():
                    return False
                if self._between:
                    between = np.logical_and(reached, within, out=within).view(np.int8)
                    np.multiply(between, np.int8(self._between), out=between)
                _scale(out, self._above - self._below)
                if self._between:
                    np.add(out, between, out=out)
                if self._below:
                    np.add(out, np.int8(self._below), out=out)
        return True

    def _refused(self, scores: NDArray[Any]) -> Codes:
        """Refuse scores that hold a NaN; one that came and went is decided again."""
        return self._many(as_scores(scores).copy())


def _scale(codes: Codes, factor: int) -> None:
    if factor != 1:
        np.multiply(codes, np.int8(factor), out=codes)


def _as_compared(bound: float, kind: np.dtype[Any]) -> np.floating:
    """Return what scores of a type can be compared with, with `>` and `<=`, as if with this double.

    For float32 it is the largest one that is not above the bound: no float32 lies between the two.
    """
    if kind != np.float32:
        return np.float64(bound)
    with np.errstate(over="ignore"):
        narrow = np.float32(bound)
    return np.nextafter(narrow, np.float32(-inf)) if narrow > np.float64(bound) else narrow
