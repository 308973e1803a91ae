"""Scores in memory, read once: NaN check, digest and a bracket around the wanted rank in one pass."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.errors import InputError
from pac_wrap.inputs import as_array, as_scores
from pac_wrap.kernels import Floats
from pac_wrap.order.digests import as_digest, digest
from pac_wrap.order.ranked import Ranked
from pac_wrap.order.selection import SMALL, Bracket, count_below, select


def unchecked(values: ArrayLike, name: str) -> Floats:
    """Return values as a one-dimensional array; if it is large, NaN has not been looked for yet.

    Large float32 arrays stay as they are: a wider copy would cost more than all the rest.
    """
    array: NDArray[Any] = as_array(values, name)
    if array.ndim == 1 and array.size > SMALL and array.dtype in (np.float64, np.float32):
        return array
    return as_scores(array, name)


class Held(Ranked):
    """The scores of one class in memory, as `unchecked` gives them; the ranks near `k` cost next to nothing.

    >>> normal = Held(np.array([3.0, 1.0, 2.0]), "normal", 3)
    >>> normal.kth_smallest(2), normal.count_below(2.0), normal.size
    (2.0, 1, 3)
    """

    def __init__(self, scores: Floats, name: str, k: int) -> None:
        self.size, self._scores = scores.size, scores
        self._bracket: Bracket | None = None
        if scores.size <= SMALL:
            self.digest = digest(scores)
            return
        self._bracket = Bracket.around(scores, k)
        self.digest = as_digest(self._bracket.found.mixed)
        if self._bracket.found.nan:
            as_scores(scores, name)
            raise InputError(f"{name} changed while they were read; pass an array that nobody writes to")

    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, from the bracket if it lies there."""
        found = None if self._bracket is None else self._bracket.kth_smallest(k)
        return select(self._scores, k) if found is None else found

    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""
        return count_below(self._scores, threshold)
