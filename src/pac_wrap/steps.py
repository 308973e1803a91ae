"""A step function of the score at the speed of memory: no large temporaries, every core if it pays."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.cores import together, usable_cores
from pac_wrap.inputs import as_array, as_scores
from pac_wrap.kernels import Codes, before, kernels, narrowed

# up to so many scores one binary search is the faster way
_FEW: Final = 512
# threads pay from so many scores each on: starting one takes as long as deciding some hundred thousand
_MANY: Final = 1 << 22
_DOUBLE: Final = np.dtype(np.float64)
_SINGLE: Final = np.dtype(np.float32)


class Steps:
    """The code `codes[i]` for a score that reaches the first `i` of two edges at most, compared with `>=`.

    >>> Steps([0.3, 0.7], [0, -1, 1]).codes_of([0.1, 0.3, 0.9])
    array([ 0, -1,  1], dtype=int8)
    """

    def __init__(self, edges: Sequence[float], codes: Sequence[int]) -> None:
        bounds = [before(edge) for edge in edges] or [-inf]
        self._bounds, self._bounds_32 = (
            (narrowed(bounds[0], kind), narrowed(bounds[-1], kind)) for kind in (_DOUBLE, _SINGLE)
        )
        self._choice = codes[0], codes[1] if len(codes) == 3 else codes[-1], codes[-1]
        # only NaN lies beyond the last end
        self._ends = np.array([*bounds[: len(edges)], inf])
        self._codes = np.array(codes, dtype=np.int8)

    def codes_of(self, scores: ArrayLike) -> Codes:
        """Return the code of each score; what is no score is refused."""
        # what wraps an array, such as a memory map, is looked at as one: no copy
        array = scores if type(scores) is np.ndarray else as_array(scores, "scores")
        if array.ndim == 1:
            if array.size <= _FEW and array.dtype is _DOUBLE:
                try:
                    found: Codes = self._codes.take(self._ends.searchsorted(array))
                    return found
                except IndexError:  # a NaN, which has no code
                    return self._refused(array)
            if array.dtype.kind in "iu" or array.dtype in (np.float64, np.float32, np.float16):
                return self._many(array)
        return self._many(as_scores(array))

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
        low, high = self._bounds_32 if scores.dtype == _SINGLE else self._bounds
        return kernels().codes(scores, low, high, self._choice, codes)

    def _refused(self, scores: NDArray[Any]) -> Codes:
        """Refuse scores that hold a NaN; one that came and went is decided again."""
        return self._many(as_scores(scores).copy())
