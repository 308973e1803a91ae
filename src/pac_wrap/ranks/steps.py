"""A step function of the score at the speed of memory: no large temporaries, every core if it pays."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_array, as_scores
from pac_wrap.base.floats import flushes, is_delicate, just_below, largest_up_to
from pac_wrap.ranks.kernels import kernels, together, usable_cores
from pac_wrap.ranks.plain import Codes

# scores per thread from which threads pay: starting one takes as long as deciding some hundred thousand
_MANY: Final = 1 << 22
_DOUBLE: Final = np.dtype(np.float64)
_SINGLE: Final = np.dtype(np.float32)


class Steps:
    """The code `codes[i]` for a score that reaches the first `i` of two edges at most, compared with `>=`.

    `ends` and `codes` are for a binary search, the faster way for few scores.

    >>> Steps([0.3, 0.7], [0, -1, 1]).codes_of([0.1, 0.3, 0.9])
    array([ 0, -1,  1], dtype=int8)
    """

    def __init__(self, edges: Sequence[float], codes: Sequence[int]) -> None:
        bounds = [just_below(edge) for edge in edges] or [-inf]
        self._bounds, self._bounds_32 = (
            (largest_up_to(bounds[0], kind), largest_up_to(bounds[-1], kind)) for kind in (_DOUBLE, _SINGLE)
        )
        self._choice = codes[0], codes[1] if len(codes) == 3 else codes[-1], codes[-1]
        # only NaN lies beyond the last end
        self.ends = np.array([*bounds[: len(edges)], inf])
        self.codes = np.array(codes, dtype=np.int8)
        self.delicate = any(map(is_delicate, edges))
        self._flushing = flushes()

    def outdated(self) -> bool:
        """Return whether the processor has begun or ceased to flush since, and an edge lies next to zero."""
        return self.delicate and flushes() != self._flushing

    def codes_of(self, scores: ArrayLike) -> Codes:
        """Return the code of each score; what is no score is refused."""
        # what wraps an array, such as a memory map, is looked at as one: no copy
        array = scores if type(scores) is np.ndarray else as_array(scores, "scores")
        kind = array.dtype
        if array.ndim == 1 and (kind.kind in "iu" or kind in (np.float64, np.float32, np.float16)):
            return self._many(array)
        return self._many(as_scores(array))

    def _many(self, scores: NDArray[Any]) -> Codes:
        codes = np.empty(scores.size, dtype=np.int8)
        if scores.size < 2 * _MANY:
            return codes if self._fill(scores, codes) else self._refused(scores)
        threads = min(usable_cores(), scores.size // _MANY)
        cuts = [scores.size * number // threads for number in range(threads + 1)]
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
