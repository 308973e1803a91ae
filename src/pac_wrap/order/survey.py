"""The first pass over data that does not fit: all that can be counted before any rank is known."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.inputs import Scores
from pac_wrap.order.digests import CHUNK, Mixer, as_digest
from pac_wrap.order.keys import to_keys

# sign, exponent and four more bits: sixteen ranges between a number and its double
BITS: Final = 16


@dataclass(frozen=True, slots=True)
class Survey:
    """How many scores of each class lie in each of 2^16 ranges of keys, and their digests; surveys add up.

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
    def area(self) -> float:
        """The AUC of all scores, those in one range counting as ties; both classes must have scores.

        For scores that come in no order, where evenly spaced ones cannot be picked.
        """
        normal, anomalous = self.counts.astype(np.float64)
        below = np.cumsum(normal) - normal / 2.0
        return float(anomalous @ below / (normal.sum() * anomalous.sum()))


def survey(normal: Scores, anomalous: Scores) -> Survey:
    """Return the survey of one part of the data; NaN must not occur.

    >>> survey(np.array([1.0, 2.0]), np.zeros(0)).sizes
    (2, 0)
    """
    counts = np.zeros((2, 1 << BITS), dtype=np.int64)
    mixed = []
    for place, scores in enumerate((normal, anomalous)):
        mixer = Mixer(min(scores.size, CHUNK))
        for start in range(0, scores.size, CHUNK):
            chunk = scores[start : start + CHUNK]
            mixer.add(chunk)
            tops = (to_keys(chunk) >> np.uint64(64 - BITS)).view(np.int64)
            first = int(tops.min())
            found = np.bincount(tops - first)
            counts[place, first : first + found.size] += found
        mixed.append(mixer.total)
    return Survey(counts, (mixed[0], mixed[1]))
