"""Scores whose law is known: point masses, and a smooth part that holds the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import cauchy, norm, uniform

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Edge:
    """The masses at the score where a ceiling would be exceeded: strictly beyond it, and with it included.

    Without a point mass there, both are the ceiling itself.
    """

    beyond: float
    included: float


@dataclass(frozen=True)
class Population:
    """One class of points."""

    smooth: Any
    atoms: tuple[tuple[float, float], ...] = ()

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> Values:
        """Return independent scores."""
        scores = self.smooth.ppf(rng.random(shape))
        if self.atoms:
            values, masses = zip(*self.atoms, strict=True)
            part = np.searchsorted(np.cumsum(masses), rng.random(shape), side="right")
            scores = np.where(part < len(values), np.append(values, 0.0)[part], scores)
        return np.asarray(scores, dtype=np.float64)

    def reaching(self, threshold: Values | float) -> Values:
        """Return P(score >= threshold)."""
        return self._mass(threshold, self.smooth.sf, lambda atom, at: atom >= at)

    def below(self, threshold: Values | float) -> Values:
        """Return P(score < threshold)."""
        return self._mass(threshold, self.smooth.cdf, lambda atom, at: atom < at)

    def upper_edge(self, ceiling: float) -> Edge:
        """Return the masses above the score at which P(score >= s) first exceeds the ceiling, coming down."""
        return self._edge(ceiling, [(float(self.reaching(atom)) - mass, mass) for atom, mass in self.atoms])

    def lower_edge(self, ceiling: float) -> Edge:
        """Return the masses below the score at which P(score <= s) first exceeds the ceiling, coming up."""
        return self._edge(ceiling, [(float(self.below(atom)), mass) for atom, mass in self.atoms])

    def _mass(
        self,
        threshold: Values | float,
        smooth: Callable[[Values], Values],
        counts: Callable[[float, Values], NDArray[np.bool_]],
    ) -> Values:
        at = np.asarray(threshold, dtype=np.float64)
        rest = 1.0 - sum(mass for _, mass in self.atoms)
        return np.asarray(rest * smooth(at) + sum(mass * counts(atom, at) for atom, mass in self.atoms))

    @staticmethod
    def _edge(ceiling: float, atoms: list[tuple[float, float]]) -> Edge:
        for beyond, mass in atoms:
            # a mass that ends at the ceiling itself would leave the outcome to rounding
            assert min(abs(beyond - ceiling), abs(beyond + mass - ceiling)) > 1e-9
            if beyond < ceiling < beyond + mass:
                return Edge(beyond, beyond + mass)
        return Edge(ceiling, ceiling)


def uniform_scores(low: float, high: float) -> Population:
    """Return scores uniform between low and high."""
    return Population(uniform(low, high - low))


def normal_scores(mean: float) -> Population:
    """Return scores of a normal distribution with standard deviation 1."""
    return Population(norm(mean))


def heavy_scores(centre: float) -> Population:
    """Return Cauchy scores: no mean, no variance."""
    return Population(cauchy(centre))


def rounded_scores(mean: float, step: float) -> Population:
    """Return normal scores rounded to multiples of `step`: nothing but ties."""
    law = norm(mean)
    grid = np.arange(ceil((mean - 8) / step), ceil((mean + 8) / step)) * step
    edges = np.concatenate(([-np.inf], grid[1:] - step / 2, [np.inf]))
    return Population(law, tuple(zip(grid.tolist(), np.diff(law.cdf(edges)).tolist(), strict=True)))
