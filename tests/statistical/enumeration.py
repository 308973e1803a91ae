"""Every calibration sample of a tiny population, and the exact probability of each.

What `calibrate` answers depends on the sample only. So it is called once per pair of multisets, and its
answers are then weighed with every population whose probabilities are multiples of 1 / `PARTS`: 165 for each
class, 27,225 pairs. Probabilities are counts among `PARTS**(n + m)` equally likely draws: whole numbers below
2**53, so nothing is rounded.
"""

import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from math import factorial, floor, inf, prod
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pac_wrap import Certificate, Guarantee, UpsideDownWarning, calibrate
from pac_wrap.method.certificate import Overlap
from support.kept import kept

SUPPORT: Final = (-inf, 0.0, 1.0, inf)
PARTS: Final = 8

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
Side = Literal["fpr", "fnr"]


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

    @cached_property
    def verdicts(self) -> NDArray[np.int8]:
        """The verdict on each score of the support, for each pair of samples."""
        return self.read(lambda certificate: certificate.verdicts(SUPPORT))

    def deltas(self, side: Side) -> set[float]:
        """Return the certified deltas of a side."""
        certified = (kept(certificate) for row in self.grid for certificate in row)
        return {getattr(promise, f"delta_{side}") for promise in certified if promise is not None}

    def ceilings(self, side: Side) -> NDArray[np.float64]:
        """Return the certified ceilings of a side; 1 where nothing is promised, so nothing can be broken."""
        clauses = self.read(lambda certificate: getattr(certificate, side).certified)
        return np.array([[1.0 if clause is None else clause.ceiling for clause in row] for row in clauses])

    @cached_property
    def stated(self) -> float:
        """The confidence in both ceilings together; it is higher only where one is not promised."""
        found = [certificate for row in self.grid for certificate in row]
        both = {one.confidence for one in found if None not in (one.fpr.certified, one.fnr.certified)}
        assert len(both) <= 1
        return min(one.confidence for one in found)

    @cached_property
    def too_many_alarms(self) -> Flags:
        """Whether P(verdict 1 | normal) exceeds its ceiling, per population and pair of samples."""
        return self.exceeds(self.verdicts == 1, "fpr")

    @cached_property
    def too_many_misses(self) -> Flags:
        """Whether P(verdict 0 | anomalous) exceeds its ceiling, per population and pair of samples."""
        return self.exceeds(self.verdicts == 0, "fnr")

    def exceeds(self, region: Flags, side: Side) -> Flags:
        """Return whether a region of scores carries more than the certified ceiling, in each population.

        A ceiling is the exact value of its double.
        """
        ceilings, place = np.unique(self.ceilings(side), return_inverse=True)
        allowed = np.array([floor(Fraction(value) * PARTS) for value in ceilings])[place]
        return np.asarray(masses(region) > allowed.reshape(region.shape[:2]))

    def count_alarms(self, violated: Flags) -> Whole:
        """Return in how many draws the FPR is violated, per normal (row) and anomalous population."""
        return _whole(_weighed(violated, self.n, 1).sum(axis=1) @ weights(self.m).T)

    def count_misses(self, violated: Flags) -> Whole:
        """Return in how many draws the FNR is violated, per normal (row) and anomalous population."""
        return _whole(weights(self.n) @ _weighed(violated, self.m, 2).sum(axis=2).T)

    def count_either(self, alarms: Flags, misses: Flags) -> Whole:
        """Return in how many draws either rate is violated, per normal (row) and anomalous population."""
        both = np.tensordot(_weighed(alarms, self.n, 1), _weighed(misses, self.m, 2), axes=((1, 2), (1, 2)))
        return self.count_alarms(alarms) + self.count_misses(misses) - _whole(both)

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


def masses(region: Flags) -> Whole:
    """Return how many of the parts of each population a region of scores carries, per pair of samples."""
    return np.asarray(np.moveaxis(region.astype(np.int64) @ POPULATIONS.T, -1, 0))


def _weighed(violated: Flags, size: int, axis: int) -> NDArray[np.float64]:
    """Return the draws of each sample along an axis, where violated; doubles, as all stay below 2**53."""
    return np.asarray(np.expand_dims(weights(size).astype(np.float64), 3 - axis) * violated)


def _whole(counts: NDArray[np.float64]) -> Whole:
    return np.asarray(counts).astype(np.int64)
