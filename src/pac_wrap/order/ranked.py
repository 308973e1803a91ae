"""What a certificate needs to know about one class, wherever its scores live."""

from abc import ABC, abstractmethod
from struct import pack
from typing import Final

from pac_wrap.inputs import Scores
from pac_wrap.order import selection

_MINUS_ZERO: Final = pack("<d", -0.0)


class Ranked(ABC):
    """The scores of one class, asked only for their number, digest, ranks and counts."""

    size: int
    digest: str

    @abstractmethod
    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, counted from 1."""

    @abstractmethod
    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""


def kth_smallest(scores: Scores | Ranked, k: int) -> float:
    """Return the k-th smallest score, counted from 1, in linear time; zero has no sign.

    >>> import numpy as np
    >>> kth_smallest(np.array([3.0, 1.0, 2.0]), 2)
    2.0
    """
    found = scores.kth_smallest(k) if isinstance(scores, Ranked) else selection.select(scores, k)
    # by its bits: a processor that flushes subnormal numbers takes them for zeros in any comparison
    return 0.0 if pack("<d", found) == _MINUS_ZERO else found


def kth_largest(scores: Scores | Ranked, k: int) -> float:
    """Return the k-th largest score, counted from 1, in linear time.

    >>> import numpy as np
    >>> kth_largest(np.array([3.0, 1.0, 2.0]), 1)
    3.0
    """
    return kth_smallest(scores, scores.size - k + 1)


def count_below(scores: Scores | Ranked, threshold: float) -> int:
    """Return how many scores are less than the threshold.

    >>> import numpy as np
    >>> count_below(np.array([3.0, 1.0, 2.0]), 3.0)
    2
    """
    if isinstance(scores, Ranked):
        return scores.count_below(threshold)
    return selection.count_below(scores, threshold)
