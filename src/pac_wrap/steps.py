"""A step function of the score, applied at the speed of memory: no large temporaries, every core."""

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
_CHUNK: Final = 1 << 16
# from so many scores on a second thread pays
_MANY: Final = 1 << 19
_DOUBLE: Final = np.dtype(np.float64)


class Steps:
    """The code `codes[i]` for a score that reaches exactly the first `i` edges, compared with `>=`.

    >>> Steps([0.3, 0.7], np.array([0, -1, 1], dtype=np.int8)).codes_of([0.1, 0.3, 0.9])
    array([ 0, -1,  1], dtype=int8)
    """

    def __init__(self, edges: Sequence[float], codes: Codes) -> None:
        # s > before is s >= edge, and right also where the processor flushes subnormal numbers to zero
        before = [nextafter(edge, -inf) for edge in edges]
        self._codes, self._first = codes, int(codes[0])
        jumps = (after - first for first, after in pairwise(codes.tolist()))
        # float64, so that narrower scores are widened for the comparison
        self._jumps = [(np.float64(edge), jump) for edge, jump in zip(before, jumps, strict=True)]
        # only NaN lies beyond the last one
        self._ends = np.array([*before, inf])

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
        parts = min(usable_cores(), scores.size // _MANY) or 1
        cuts = [scores.size * part // parts for part in range(parts + 1)]
        sound = together(
            [partial(self._fill, scores[start:end], codes[start:end]) for start, end in pairwise(cuts)]
        )
        return codes if all(sound) else self._refused(scores)

    def _fill(self, scores: NDArray[Any], codes: Codes) -> bool:
        """Write the codes, and return whether no score was NaN."""
        mask = np.empty(min(scores.size, _CHUNK), dtype=bool)
        # a signalling NaN would otherwise warn before it is refused
        with np.errstate(invalid="ignore"):
            for start in range(0, scores.size, _CHUNK):
                chunk, out = scores[start : start + _CHUNK], codes[start : start + _CHUNK]
                reached = mask[: chunk.size]
                if not np.equal(chunk, chunk, out=reached).all():
                    return False
                out.fill(self._first)
                for before, jump in self._jumps:
                    np.greater(chunk, before, out=reached)
                    change = np.add if jump > 0 else np.subtract
                    # once or twice, which is cheaper than a product
                    for _ in range(abs(jump)):
                        change(out, reached.view(np.int8), out=out)
        return True

    def _refused(self, scores: NDArray[Any]) -> Codes:
        """Refuse scores that hold a NaN; one that came and went is decided again."""
        return self._many(as_scores(scores).copy())
