"""All outcomes of the study, summed up: every table counts once, whatever its size."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np
from numpy.typing import NDArray

from pac_wrap_paper.adbench.chance import (
    LEVEL,
    Floats,
    chances,
    fixed_chance,
    held_chance,
    of_others,
    p_value,
)
from pac_wrap_paper.adbench.measure import Outcomes
from pac_wrap_paper.adbench.methods import OURS
from pac_wrap_paper.baselines import cpad_budget
from pac_wrap_paper.studies.study import Spread

SIDES = ("FPR", "FNR")


@dataclass(frozen=True)
class Judged:
    """How many divisions were above what they were set up for, how many had to be expected, and a p-value."""

    count: int
    expected: float
    n: int
    p_value: float


@dataclass(frozen=True)
class Summary:
    """The outcomes of all tables and detectors; `seed` draws the detector whose division is judged."""

    outcomes: tuple[Outcomes, ...]
    seed: int

    @cached_property
    def by_table(self) -> dict[str, list[Outcomes]]:
        """The outcomes of each table, one for each detector that scored it."""
        found: dict[str, list[Outcomes]] = {}
        for one in self.outcomes:
            found.setdefault(one.scored.table, []).append(one)
        return found

    def over_tables(self, value: Callable[[Outcomes], float]) -> Spread | None:
        """Return the mean of the tables' means, with the least and the largest; None if no table has one."""
        means = [mean([value(one) for one in group]) for group in self.by_table.values()]
        means = [found for found in means if not np.isnan(found)]
        return Spread.over(means) if means else None

    def mean_of(self, method: str, field: str) -> Spread | None:
        """Return the mean of a field over tables, detectors and divisions."""
        return self.over_tables(lambda one: mean(one.of(method, field)))

    def reached(self, method: str, rate: str) -> Spread | None:
        """Return the mean of a rate where a method was set up for one; None if it never was."""
        return self.over_tables(
            lambda one: nan if np.isnan(one.above(method, rate)).all() else mean(one.of(method, rate))
        )

    def above(self, method: str, rate: str, *, whole: bool = False) -> Spread | None:
        """Return how often a rate was above what the method was set up for, where it was for something."""
        return self.over_tables(lambda one: mean(one.above(method, rate, whole=whole)))

    def chance(self, method: str, rate: str, *, whole: bool = False) -> Spread | None:
        """Return how often that had to be expected, at most, where it is known and something was promised."""

        def expected(one: Outcomes) -> float:
            found = chance_of(one, method, rate, whole=whole)
            return nan if found is None or np.isnan(one.above(method, rate)).all() else mean(found)

        return self.over_tables(expected)

    def judged(self, method: str, rate: str, *, whole: bool = False, everyone: bool = False) -> Judged | None:
        """Return the verdict on the first division of one detector per table, or of all with `everyone`.

        The detector is drawn beforehand. Given the scores, divisions of their own are independent, and each
        exceeds with a chance that is known or bounded.
        """
        random = np.random.default_rng([self.seed, 21])
        broken, probabilities = 0, []
        for group in self.by_table.values():
            drawn = group[int(random.integers(len(group)))]
            for one in group if everyone else [drawn]:
                found = chance_of(one, method, rate, whole=whole)
                above = one.above(method, rate, whole=whole)
                if found is not None and above.size and found[0]:  # 0 where nothing can be broken
                    broken += int(above[0] == 1.0)
                    probabilities.append(float(found[0]))
        if not probabilities:
            return None
        return Judged(broken, sum(probabilities), len(probabilities), p_value(broken, probabilities))


def mean(values: Iterable[float] | NDArray[np.float64]) -> float:
    """Return the mean of the numbers that are there, NaN if none is.

    >>> mean([1.0, nan, 2.0]), mean([nan])
    (1.5, nan)
    """
    kept = [float(value) for value in values if not np.isnan(value)]
    return sum(kept) / len(kept) if kept else nan


def middle(spread: Spread | None) -> float:
    """Return the mean of a spread, NaN if there is none."""
    return nan if spread is None else spread.mean


def undecided(one: Outcomes, method: str) -> float:
    """Return the share of divisions in which a method found no threshold and decided nothing."""
    return mean((one.of(method, "decided") == 0.0).astype(float))


def chance_of(one: Outcomes, method: str, rate: str, *, whole: bool = False) -> Floats | None:
    """Return the chance, at most, that a rate exceeds what a method was set up for, for every division.

    None where it is not known. On a side that is not held it is exact, given the other class.
    """
    if rate not in SIDES:
        return None
    side = SIDES.index(rate)
    n, m = one.sizes[side], one.others[side]
    if method == ("hold_fnr", "hold_fpr")[side]:
        beyond = np.round(one.of(method, f"all {rate}") * (n + m))
        return held_chance(n, m, LEVEL, beyond, whole=whole)
    if method in OURS:
        found = chances(one.sizes, one.others)[method][side]
        chance = found.whole if whole else found.rest
    elif method == "conformal (crepes)" and not whole:
        budget = cpad_budget(n, LEVEL)
        chance = fixed_chance(n, n + m, {} if budget is None else of_others({budget: LEVEL}, m))
    else:
        return None
    return None if chance is None else np.full(len(one.values[method]), chance)
