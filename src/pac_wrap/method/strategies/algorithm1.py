"""Algorithm 1 of the paper: raise the ceilings level by level until one threshold can keep both."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, ldexp
from typing import ClassVar, Final, Literal

from pac_wrap.base.arguments import as_float, check_choice, check_rate
from pac_wrap.base.foreign import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Budget, Guarantee
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.interface import (
    Claim,
    Class,
    Outcome,
    Strategy,
    budget_problems,
    end_problems,
    ranks_of,
)
from pac_wrap.method.thresholds import LARGEST, Thresholds, find_thresholds
from pac_wrap.ranks.search import Rank

_SMALLEST_STEP: Final = 0.0001
_NOTHING: Final = Rule(-inf, inf)


@dataclass(frozen=True, slots=True)
class Algorithm1(Strategy):
    """One threshold; the ceilings are raised level by level until it can keep both (the paper's Algorithm 1).

    Parameters
    ----------
    step : float
        By how much a level raises the ceilings.
    growth : "linear" or "double"
        Whether the ceilings are raised by `step`, or doubled.
    raised : "both", "fpr" or "fnr"
        Which ceilings are raised.
    relax_delta : bool
        Whether the deltas are raised instead; that of the last level, divided by their number, is certified.
    correction : "share" or None
        "share" divides delta among the levels, which makes the result a theorem, eq. (15). None is the
        paper's version, which is false in general.
    position : float
        Where the threshold lies between alarm_from (0) and clear_below (1).

    Raises
    ------
    InputError
        If an option is none of those, or out of its range.

    Examples
    --------
    >>> [level.max_fpr for level in Algorithm1(growth="double").levels(Guarantee())]
    [0.05, 0.1, 0.2, 0.4, 0.8]
    """

    tag: ClassVar[str] = "algorithm1"
    step: float = 0.1
    growth: Literal["linear", "double"] = "linear"
    raised: Literal["both", "fpr", "fnr"] = "both"
    relax_delta: bool = False
    correction: Literal["share"] | None = "share"
    position: float = 0.5

    def __post_init__(self) -> None:
        check_choice("growth", self.growth, ("linear", "double"))
        check_choice("raised", self.raised, ("both", "fpr", "fnr"))
        check_choice("relax_delta", self.relax_delta, (True, False))
        check_choice("correction", self.correction, ("share", None))
        object.__setattr__(self, "step", check_rate("step", self.step))
        if self.step < _SMALLEST_STEP:
            raise InputError(
                f"step must be at least {_SMALLEST_STEP}, got {self.step!r}; every level costs part of delta"
            )
        position = as_float(self.position)
        if not 0.0 <= position <= 1.0:
            raise InputError(
                f"position must lie between 0 (alarm_from) and 1 (clear_below), got {quoted(self.position)}"
            )
        object.__setattr__(self, "position", position)

    @property
    def proved(self) -> bool:
        """Whether delta is shared; the paper's version is no theorem."""
        return self.correction is not None

    @property
    def needs_more_labels(self) -> str | None:
        """That delta is shared among the levels."""
        return "Algorithm 1 shares delta among its levels, and needs more."

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        """Return the number of levels."""
        return len(self.feasible_levels(asked, sizes))

    def levels(self, asked: Guarantee) -> list[Guarantee]:
        """Return the promises that are tried, in order and below 1; fixed before any score is seen.

        Parameters
        ----------
        asked : Guarantee
            The first of them.

        Returns
        -------
        list of Guarantee
            All of them.
        """
        prefix = "delta" if self.relax_delta else "max"
        starts = {f"{prefix}_{side}": getattr(asked, f"{prefix}_{side}") for side in self._raised_sides}
        levels, raised = [asked], starts
        while True:
            higher = {name: self._raise(start, len(levels)) for name, start in starts.items()}
            if min(higher.values()) >= 1.0:
                return levels
            # a side that would reach 1 stays where it is, while the other goes on
            raised = {name: value if value < 1.0 else raised[name] for name, value in higher.items()}
            levels.append(replace(asked, **raised))

    def feasible_levels(self, asked: Guarantee, sizes: tuple[int, int]) -> list[Guarantee]:
        """Return the levels that so many labels can reach at all, or every level if they can reach none.

        Which ones they are is known before any score is seen, so the others take no share of delta.

        Parameters
        ----------
        asked : Guarantee
            The first of all levels.
        sizes : tuple of int
            How many normal and how many anomalous points there are.

        Returns
        -------
        list of Guarantee
            Those levels.

        Examples
        --------
        >>> [level.max_fpr for level in Algorithm1().feasible_levels(Guarantee(), (2000, 30))]
        [0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]
        """
        return list(_feasible_levels(self, asked, sizes))

    def _feasible_levels(self, asked: Guarantee, sizes: tuple[int, int]) -> list[Guarantee]:
        levels = self.levels(asked)

        def feasible(skipped: int) -> bool:
            pair = self._budgets(levels[skipped], len(levels) - skipped, sizes)
            return all(budget.errors is not None for budget in pair)

        # a higher level with fewer others to share delta with has the larger budget
        return levels[bisect_left(range(len(levels)), True, key=feasible) :] or levels

    def ranks(self, asked: Guarantee, sizes: tuple[int, int]) -> Iterator[Rank]:
        """Yield the ranks of every level."""
        levels = self.feasible_levels(asked, sizes)
        for level in levels:
            yield from ranks_of(self._budgets(level, len(levels), sizes), sizes)

    def decide(self, asked: Guarantee, normal: Class, anomalous: Class) -> Outcome:
        """Return the first level whose thresholds are separated, or the last one with nothing certified."""
        sizes = normal.size, anomalous.size
        levels = self.feasible_levels(asked, sizes)

        def attempt(level: int) -> tuple[Budget, Budget, Thresholds]:
            fpr, fnr = self._budgets(levels[level], len(levels), sizes)
            return fpr, fnr, find_thresholds(normal, anomalous, fpr, fnr)

        # budgets, and with them the thresholds, are monotone in the level: the first success can be bisected
        level = bisect_left(range(len(levels)), True, key=lambda level: attempt(level)[2].separated)
        fpr, fnr, thresholds = attempt(min(level, len(levels) - 1))
        certified = None if level == len(levels) else self._survives(levels, level)
        return Outcome(fpr, fnr, thresholds, certified, self._rule(thresholds, certified))

    def problems(self, claim: Claim) -> Iterator[str]:
        """Yield what does not follow from the level that was reached."""
        found, sizes = claim.found, claim.sizes
        levels = self.feasible_levels(claim.asked, sizes)
        level = self._level(levels, found)
        if level is None:
            yield f"the budgets are those of none of {len(levels):,} levels"
            return
        fpr, fnr = self._budgets(levels[level], len(levels), sizes)
        yield from budget_problems("FPR", found.fpr, fpr)
        yield from budget_problems("FNR", found.fnr, fnr)
        reached = found.certified is not None
        if found.thresholds.separated != reached:
            yield "a level is reached exactly if its thresholds are separated"
        if not reached and level != len(levels) - 1:
            yield "where no level is reached, the budgets are those of the last"
        certified = self._survives(levels, level) if reached else None
        yield from end_problems(claim, certified, self._rule(found.thresholds, certified))

    def summary(self, claim: Claim) -> str:
        """Return which level was reached, and what became of delta."""
        level, count = self._reached(claim)
        which = "none reached" if level is None else f"level {level + 1} reached"
        text = f"algorithm1: {which} of {count} fixed beforehand;"
        if not self.proved:
            return (
                f"{text} delta is not corrected for the choice of level, so the confidence is not guaranteed"
            )
        if self.relax_delta:
            return f"{text} the delta of the last one, divided by their number, survives the choice"
        return f"{text} delta shared equally among them, so the confidence survives the choice"

    def explanation(self, claim: Claim) -> Iterator[str]:
        """Yield what was raised, how far, and what became of delta."""
        level, count = self._reached(claim)
        sides = {"both": "both sides", "fpr": "the FPR", "fnr": "the FNR"}[self.raised]
        what = "deltas" if self.relax_delta else "ceilings"
        which = "none could be kept"
        if level is not None:
            which = f"number {level + 1:,} was the first that one threshold can keep"
        yield (
            f"Algorithm 1: {count:,} promises with rising {what} of {sides} were fixed beforehand and tried"
            f" in order; {which}."
        )
        if level is not None and self.proved:
            yield (
                "On a raised side, delta is shared equally among these promises, so the confidence survives"
                " the choice; the exact confidence above is that of a single one."
            )
        elif level is not None:
            yield "Delta was not corrected for the choice, so the confidence is not guaranteed."

    @property
    def _raised_sides(self) -> tuple[str, ...]:
        return ("fpr", "fnr") if self.raised == "both" else (self.raised,)

    def _raise(self, start: float, times: int) -> float:
        if self.growth == "linear":
            return round(start + times * self.step, 12)
        # 2^times itself may be beyond every double
        return ldexp(start, times) if start < ldexp(1.0, -times) else 1.0

    def _budgets(self, level: Guarantee, count: int, sizes: tuple[int, int]) -> tuple[Budget, Budget]:
        """Return both budgets at a level, delta shared among `count` levels if the correction says so."""
        # a side that is not raised has one and the same threshold at every level: nothing is chosen there
        raised = self._raised_sides if self.proved else ()
        assert level.fpr is not None
        assert level.fnr is not None
        return (
            level.fpr.budget(sizes[0], count if "fpr" in raised else 1),
            level.fnr.budget(sizes[1], count if "fnr" in raised else 1),
        )

    def _reached(self, claim: Claim) -> tuple[int | None, int]:
        """Return which level was reached, from 0, or None; and how many there are."""
        levels = self.feasible_levels(claim.asked, claim.sizes)
        return None if claim.found.certified is None else self._level(levels, claim.found), len(levels)

    def _level(self, levels: list[Guarantee], found: Outcome) -> int | None:
        """Return which level the budgets belong to: no two levels have the same ceilings and deltas."""
        if found.fpr is None or found.fnr is None:
            return None
        wanted = found.fpr.rate, found.fpr.delta, found.fnr.rate, found.fnr.delta
        shares = [len(levels) if self.proved and side in self._raised_sides else 1 for side in ("fpr", "fnr")]
        for number, one in enumerate(levels):
            deltas = one.delta_fpr / shares[0], one.delta_fnr / shares[1]
            if wanted == (one.max_fpr, deltas[0], one.max_fnr, deltas[1]):
                return number
        return None

    def _survives(self, levels: list[Guarantee], level: int) -> Guarantee:
        """Return the promise that survives the choice of a level: eq. (15)."""
        if not self.relax_delta or not self.proved:
            return levels[level]
        # the ceilings are fixed, so violations are nested: the chosen level fails only where the last fails
        last = {
            f"delta_{side}": getattr(levels[-1], f"delta_{side}") / len(levels) for side in self._raised_sides
        }
        return replace(levels[level], **last)

    def _rule(self, thresholds: Thresholds, certified: Guarantee | None) -> Rule:
        """Return the rule with one threshold, a finite point of [alarm_from, clear_below]."""
        if certified is None or thresholds.alarm_from is None or thresholds.clear_below is None:
            return _NOTHING
        low, high = thresholds.alarm_from, min(thresholds.clear_below, LARGEST)
        tau = min(max(low * (1.0 - self.position) + high * self.position, low), high)
        return Rule(tau, tau)


@lru_cache(maxsize=8)
def _feasible_levels(strategy: Algorithm1, asked: Guarantee, sizes: tuple[int, int]) -> tuple[Guarantee, ...]:
    """Return the levels, which may be ten thousand and are asked for several times."""
    return tuple(strategy._feasible_levels(asked, sizes))
