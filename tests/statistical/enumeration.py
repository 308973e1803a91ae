"""Every calibration sample of a tiny population, and the exact probability of each.

What `calibrate` answers depends on the sample only. So it is called once per pair of multisets, and its
answers are then weighed with every population whose probabilities are multiples of 1 / `PARTS`: 165 for each
class, 27,225 pairs. Probabilities are counts among `PARTS**(n + m)` equally likely draws: whole numbers below
2**53, so nothing is rounded.
"""

import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import factorial, floor, inf, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap import Certificate, Guarantee, UpsideDownWarning, calibrate
from pac_wrap.method.certificate import Overlap
from support.kept import kept

SUPPORT: Final = (-inf, 0.0, 1.0, inf)
PARTS: Final = 8

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]


def compositions(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Return every way to put `total` equal things into `cells` cells."""
    for bars in combinations(range(total + cells - 1), cells - 1):
        edges = (-1, *bars, total + cells - 1)
        yield tuple(edges[i + 1] - edges[i] - 1 for i in range(cells))


# one row per population: how many of the parts of its mass each score carries
POPULATIONS: Final[Whole] = np.array(list(compositions(PARTS, len(SUPPORT))))


@cache
def weights(n: int) -> Whole:
    """Return how many of the `PARTS**n` draws give each sample, per population (rows) and sample."""
    samples = list(compositions(n, len(SUPPORT)))
    orders = np.array([factorial(n) // prod(map(factorial, sample)) for sample in samples])
    powers = POPULATIONS[:, None, :] ** np.array(samples)[None, :, :]
    return np.asarray(orders * powers.prod(axis=2), dtype=np.int64)


class Answers:
    """The certificates of every pair of samples: those of n normal and of m anomalous scores."""

    def __init__(self, n: int, m: int, certify: Callable[[list[float], list[float]], Certificate]) -> None:
        self.n, self.m, self.draws = n, m, PARTS ** (n + m)
        assert self.draws < 2**53
        with warnings.catch_warnings():
            # a random sample may well look upside down
            warnings.simplefilter("ignore", UpsideDownWarning)
            self.grid = [[certify(normal, anomalous) for anomalous in scores(m)] for normal in scores(n)]

    def read(self, value: Callable[[Certificate], Any]) -> NDArray[Any]:
        """Return a value of each certificate; rows are normal samples, columns anomalous ones."""
        return np.array([[value(certificate) for certificate in row] for row in self.grid])

    def deltas(self, side: str) -> set[float]:
        """Return the certified deltas of a side, "fpr" or "fnr"."""
        certified = (kept(certificate) for row in self.grid for certificate in row)
        return {getattr(promise, f"delta_{side}") for promise in certified if promise is not None}

    def too_many_alarms(self) -> Flags:
        """Return whether P(verdict 1 | normal) exceeds its ceiling, per population and pair of samples."""
        return self.exceeds(self.read(lambda certificate: certificate.verdicts(SUPPORT) == 1), "max_fpr")

    def too_many_misses(self) -> Flags:
        """Return whether P(verdict 0 | anomalous) exceeds its ceiling, per population and pair of samples."""
        return self.exceeds(self.read(lambda certificate: certificate.verdicts(SUPPORT) == 0), "max_fnr")

    def exceeds(self, region: Flags, ceiling: str) -> Flags:
        """Return whether a region of scores carries more than the certified ceiling, in each population.

        A ceiling is the exact value of its double; where nothing is promised, nothing can be violated.
        """
        ceilings = self.read(lambda certificate: getattr(kept(certificate), ceiling, None) or 1.0)
        allowed = np.array([[floor(Fraction(value) * PARTS) for value in row] for row in ceilings])
        masses = np.einsum("ijs,ps->pij", region.astype(np.int64), POPULATIONS)
        return np.asarray(masses > allowed)

    def count_alarms(self, violated: Flags) -> Whole:
        """Return in how many draws the FPR is violated, per normal (row) and anomalous population."""
        return _whole(np.einsum("pi,pij->pj", weights(self.n), violated) @ weights(self.m).T)

    def count_misses(self, violated: Flags) -> Whole:
        """Return in how many draws the FNR is violated, per normal (row) and anomalous population."""
        return _whole(weights(self.n) @ np.einsum("qj,qij->iq", weights(self.m), violated))

    def count_either(self, alarms: Flags, misses: Flags) -> Whole:
        """Return in how many draws either rate is violated, per normal (row) and anomalous population."""
        normal, anomalous = weights(self.n).astype(float), weights(self.m).astype(float)
        rows = [
            np.einsum("qj,qj->q", np.tensordot(weight, mask | misses, axes=(0, 1)), anomalous)
            for weight, mask in zip(normal, alarms, strict=True)
        ]
        return _whole(np.array(rows))

    def worst(self, count: Whole) -> Fraction:
        """Return the largest probability over all pairs of populations."""
        return Fraction(int(count.max()), self.draws)


@cache
def answers(
    n: int,
    m: int,
    guarantee: Guarantee,
    overlap: str | Overlap = "abstain",
) -> Answers:
    """Return the answers of `calibrate` to every pair of samples."""
    return Answers(n, m, lambda x, y: calibrate(x, y, guarantee, overlap=overlap))


def scores(n: int) -> list[list[float]]:
    """Return every sample of n scores, in the order of `weights`."""
    return [list(np.repeat(SUPPORT, sample)) for sample in compositions(n, len(SUPPORT))]


def _whole(counts: NDArray[Any]) -> Whole:
    return np.asarray(counts).astype(np.int64)
