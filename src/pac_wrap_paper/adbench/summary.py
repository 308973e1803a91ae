"""All outcomes summed up, every table counting once, and detectors ranked by what can be certified."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from pac_wrap.tails import error_budget
from pac_wrap_paper.adbench.chance import LEVEL, chances, fixed_chance, held_chance, of_others, p_value
from pac_wrap_paper.adbench.methods import OURS, Outcomes
from pac_wrap_paper.baselines import cpad_budget
from pac_wrap_paper.studies.study import Floats, Spread

SIDES = ("FPR", "FNR")


@dataclass(frozen=True)
class Judged:
    """The number of divisions above what they were set up for, the expected number, and a p-value."""

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
        return Spread.if_any(means)

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
        """Return the largest expected share above, where it is known and something was promised."""

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
    """Return the mean of the numbers that are not missing, NaN if all are."""
    kept = [float(value) for value in values if not np.isnan(value)]
    return sum(kept) / len(kept) if kept else nan


def middle(spread: Spread | None) -> float:
    """Return the mean of a spread, NaN if there is none."""
    return nan if spread is None else spread.mean


def undecided(one: Outcomes, method: str) -> float:
    """Return the share of divisions in which a method found no threshold and decided nothing."""
    return mean((one.of(method, "decided") == 0.0).astype(float))


def chance_of(one: Outcomes, method: str, rate: str, *, whole: bool = False) -> Floats | None:
    """Return for every division the largest chance that a rate exceeds what a method was set up for.

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


@dataclass(frozen=True, slots=True)
class Standing:
    """One detector on one table: its AUC, and the certified ceilings on average over divisions.

    `ceiling` is the larger of the two that `raise` certifies, 1 where it certifies none, and `decided` the
    share of points that `abstain` decides at 0.05 and 0.05. The other fields are about the held-out rows:
    `crossing` is the least rate that both errors can have at once, `cleared` the share below the score at
    which the budget of the anomalies puts a threshold on average, and `alarmed` the share above the score
    at which the budget of the normal points puts one.
    """

    table: str
    detector: str
    auc: float
    ceiling: float
    decided: float
    crossing: float
    cleared: float
    alarmed: float

    @property
    def ends(self) -> float:
        """The share of held-out rows beyond either of the two scores."""
        return min(1.0, self.cleared + self.alarmed)

    @classmethod
    def of(cls, one: Outcomes) -> "Standing":
        """Return the standing of a detector from its outcomes."""
        ceilings = np.maximum(one.of("raise", "max FPR"), one.of("raise", "max FNR"))
        normal, anomalous = one.scored.normal, one.scored.anomalous
        return cls(
            one.scored.table,
            one.scored.detector,
            one.scored.auc,
            mean(np.where(np.isnan(ceilings), 1.0, ceilings)),
            mean(one.of("abstain", "decided")),
            equal_error(normal, anomalous),
            float(np.mean(np.append(normal, anomalous) < _usual(anomalous, one.sizes[1]))),
            float(np.mean(np.append(normal, anomalous) > -_usual(-normal[::-1], one.sizes[0]))),
        )


def _usual(scores: Floats, n: int) -> float:
    """Return about where the (k + 1)-th smallest of n of these scores lies; k is their error budget.

    On average it has the share (k + 1) / (n + 1) of the scores up to it; -inf if n is too small.
    """
    budget = error_budget(n, LEVEL, LEVEL)
    if budget is None:
        return -inf
    return float(scores[max(0, int((budget + 1) / (n + 1) * scores.size) - 1)])


def equal_error(normal: Floats, anomalous: Floats) -> float:
    """Return the least rate that neither error exceeds at some threshold; both arrays are sorted."""
    thresholds = np.append(anomalous, np.inf)
    flagged = 1.0 - np.searchsorted(normal, thresholds) / normal.size
    missed = np.searchsorted(anomalous, thresholds) / anomalous.size
    return float(np.maximum(flagged, missed).min())


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's correlation of two orders, ties sharing their ranks; NaN if one of them is flat.

    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), rank_correlation([1.0, 2.0], [1.0, 1.0])
    (1.0, nan)
    """
    ranks = rankdata(first), rankdata(second)
    if min(np.ptp(ranks[0]), np.ptp(ranks[1])) == 0.0:
        return float("nan")
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)


@dataclass(frozen=True, slots=True)
class Board:
    """One table's detectors in three orders: by AUC, by the certified ceiling, by the decided share."""

    standings: tuple[Standing, ...]

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.standings[0].table

    def best(self, field: str) -> Standing:
        """Return the best detector by a field; among equals, the one with the greater AUC."""
        return max(self.standings, key=lambda one: (_good(one, field), one.auc))

    def agreement(self, field: str, other: str = "auc") -> float:
        """Return the rank correlation of two orders, good first in both."""
        first, second = ([_good(one, name) for one in self.standings] for name in (field, other))
        return rank_correlation(first, second)

    @property
    def inversion(self) -> tuple[Standing, Standing]:
        """The pair of detectors whose better one by AUC decides less by most; that one comes first."""
        pairs = [(a, b) for a in self.standings for b in self.standings if a.auc >= b.auc]
        return max(pairs, key=lambda pair: pair[1].decided - pair[0].decided)

    def rank(self, one: Standing, field: str) -> int:
        """Return the place of a detector by a field, from 1."""
        return 1 + sum(_good(other, field) > _good(one, field) for other in self.standings)


def _good(one: Standing, field: str) -> float:
    """Return a field of a standing, so that more is better."""
    value: float = getattr(one, field)
    return -value if field in ("ceiling", "crossing") else value


def boards(outcomes: Sequence[Outcomes]) -> tuple[Board, ...]:
    """Return the board of every table."""
    standings = [Standing.of(one) for one in outcomes]
    tables = dict.fromkeys(one.table for one in standings)
    return tuple(Board(tuple(one for one in standings if one.table == table)) for table in tables)
