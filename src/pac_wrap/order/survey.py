"""The first pass over data that does not fit: all that can be counted before any rank is known."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.inputs import Scores
from pac_wrap.kernels import BITS, kernels
from pac_wrap.order.digests import as_digest

# leading bits from here on belong to negative numbers
_MINUS: Final = 1 << BITS - 1


@dataclass(frozen=True, slots=True)
class Survey:
    """How many scores of each class begin with each of 2^16 bit patterns, and their digests; surveys add up.

    >>> both = survey(np.array([1.0, 2.0]), np.zeros(0)) + survey(np.array([4.0]), np.array([2.0, 8.0]))
    >>> both.sizes, both.area
    ((3, 2), 0.75)
    """

    counts: NDArray[np.int64]
    mixed: tuple[int, int]

    def __add__(self, other: "Survey") -> "Survey":
        normal, anomalous = (a + b for a, b in zip(self.mixed, other.mixed, strict=True))
        return Survey(self.counts + other.counts, (normal, anomalous))

    @property
    def sizes(self) -> tuple[int, int]:
        """How many normal and how many anomalous scores there are."""
        normal, anomalous = self.counts.sum(axis=1).tolist()
        return normal, anomalous

    @property
    def digests(self) -> tuple[str, str]:
        """The digests of both classes."""
        return as_digest(self.mixed[0]), as_digest(self.mixed[1])

    @property
    def ordered(self) -> NDArray[np.int64]:
        """The counts in the order of the scores: those of negative numbers turn around."""
        return np.concatenate([self.counts[:, : _MINUS - 1 : -1], self.counts[:, :_MINUS]], axis=1)

    @property
    def area(self) -> float:
        """The AUC of all scores, those in one range counting as ties; both classes must have scores.

        For scores that come in no order, where evenly spaced ones cannot be picked.
        """
        return self._area(0.5)

    @property
    def largest_area(self) -> float:
        """The same with every such tie in favour of the anomaly: the AUC itself is no larger.

        >>> survey(np.array([1.0, 2.0]), np.array([1.0])).largest_area
        0.5
        """
        return self._area(1.0)

    def _area(self, tie: float) -> float:
        normal, anomalous = self.ordered.astype(np.float64)
        below = np.cumsum(normal) - (1.0 - tie) * normal
        return float(anomalous @ below / (normal.sum() * anomalous.sum()))


def survey(normal: Scores, anomalous: Scores) -> Survey:
    """Return the survey of one part of the data; NaN must not occur.

    >>> survey(np.array([1.0, 2.0]), np.zeros(0)).sizes
    (2, 0)
    """
    counts = np.zeros((2, 1 << BITS), dtype=np.int64)
    normal_sum, anomalous_sum = map(kernels().count_leading, (normal, anomalous), counts)
    return Survey(counts, (normal_sum, anomalous_sum))
