"""Algorithm 1 of the paper: raise the ceilings level by level until one threshold can keep both."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, ldexp
from typing import ClassVar, Final, Literal

from pac_wrap.base.arguments import check_choice, check_rate
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Budget, Guarantee
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.interface import (
    Claim,
    Class,
    Outcome,
    Strategy,
    budget_problems,
    check_position,
    end_problems,
    ranks_of,
)
from pac_wrap.method.thresholds import LARGEST, Thresholds, find_thresholds
from pac_wrap.ranks.search import Rank

_SMALLEST_STEP: Final = 0.0001
# more doublings take any double above 1
_DOUBLINGS: Final = 1100
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
        object.__setattr__(self, "position", check_position(self.position))

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
        return self._feasible(asked, sizes)[1]

    def levels(self, asked: Guarantee, sizes: tuple[int, int] | None = None) -> list[Guarantee]:
        """Return the promises that are tried, in order and below 1; fixed before any score is seen.

        Parameters
        ----------
        asked : Guarantee
            The first of them.
        sizes : tuple of int, optional
            How many normal and anomalous points there are: only the levels that so many labels can reach, or
            all if they can reach none. They are known before any score is seen, so the others take no share.

        Returns
        -------
        list of Guarantee

        Examples
        --------
        >>> [level.max_fpr for level in Algorithm1().levels(Guarantee(), (2000, 30))]
        [0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]
        """
        first, count = (0, self._count(asked)) if sizes is None else self._feasible(asked, sizes)
        return [self._level_at(asked, first + number) for number in range(count)]

    def ranks(self, asked: Guarantee, sizes: tuple[int, int]) -> Iterator[Rank]:
        """Yield the ranks of every level."""
        first, count = self._feasible(asked, sizes)
        for number in range(first, first + count):
            yield from ranks_of(self._budgets(self._level_at(asked, number), count, sizes), sizes)

    def decide(self, asked: Guarantee, normal: Class, anomalous: Class) -> Outcome:
        """Return the first level whose thresholds are separated, or the last one with nothing certified."""
        sizes = normal.size, anomalous.size
        first, count = self._feasible(asked, sizes)

        def attempt(level: int) -> tuple[Budget, Budget, Thresholds]:
            fpr, fnr = self._budgets(self._level_at(asked, first + level), count, sizes)
            return fpr, fnr, find_thresholds(normal, anomalous, fpr, fnr)

        # budgets, and with them the thresholds, are monotone in the level: the first success can be bisected
        level = bisect_left(range(count), True, key=lambda level: attempt(level)[2].separated)
        fpr, fnr, thresholds = attempt(min(level, count - 1))
        certified = None if level == count else self._survives(asked, first + level, first, count)
        return Outcome(fpr, fnr, thresholds, certified, self._rule(thresholds, certified))

    def problems(self, claim: Claim) -> Iterator[str]:
        """Yield what does not follow from the level that was reached."""
        found, sizes = claim.found, claim.sizes
        first, count = self._feasible(claim.asked, sizes)
        level = self._level(claim)
        if level is None:
            yield f"the budgets are those of none of {count:,} levels"
            return
        fpr, fnr = self._budgets(self._level_at(claim.asked, first + level), count, sizes)
        yield from budget_problems("FPR", found.fpr, fpr)
        yield from budget_problems("FNR", found.fnr, fnr)
        reached = found.certified is not None
        if found.thresholds.separated != reached:
            yield "a level is reached exactly if its thresholds are separated"
        if not reached and level != count - 1:
            yield "where no level is reached, the budgets are those of the last"
        certified = self._survives(claim.asked, first + level, first, count) if reached else None
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
        if times == 0:
            return start
        if self.growth == "linear":
            return round(start + times * self.step, 12)
        # 2^times itself may be beyond every double
        return ldexp(start, times) if start < ldexp(1.0, -times) else 1.0

    def _starts(self, asked: Guarantee) -> dict[str, float]:
        """Return what is raised, by its name in a guarantee, and where it starts."""
        prefix = "delta" if self.relax_delta else "max"
        return {f"{prefix}_{side}": getattr(asked, f"{prefix}_{side}") for side in self._raised_sides}

    def _last(self, start: float) -> int:
        """Return how often a ceiling or delta can be raised and stay below 1."""
        most = _DOUBLINGS if self.growth == "double" else int(1.0 / self.step) + 1
        return bisect_left(range(most + 1), True, key=lambda times: self._raise(start, times) >= 1.0) - 1

    def _count(self, asked: Guarantee) -> int:
        """Return the number of levels: raising goes on until every side would reach 1."""
        return 1 + max(map(self._last, self._starts(asked).values()))

    def _level_at(self, asked: Guarantee, number: int) -> Guarantee:
        """Return one level; a side that would reach 1 stays where it is, while the other goes on."""
        if number == 0:
            return asked
        starts = self._starts(asked)
        raised = {name: self._raise(start, min(number, self._last(start))) for name, start in starts.items()}
        return replace(asked, **raised)

    def _feasible(self, asked: Guarantee, sizes: tuple[int, int]) -> tuple[int, int]:
        """Return the first level that so many labels can reach, and how many there are from it on."""
        count = self._count(asked)

        def feasible(first: int) -> bool:
            pair = self._budgets(self._level_at(asked, first), count - first, sizes)
            return all(budget.errors is not None for budget in pair)

        # a higher level with fewer others to share delta with has the larger budget
        first = bisect_left(range(count), True, key=feasible)
        return (0, count) if first == count else (first, count - first)

    def _terms(self, level: Guarantee, count: int) -> tuple[float, float, float, float]:
        """Return ceiling and delta of both sides at a level; delta is shared, or not corrected."""
        # a side that is not raised has one and the same threshold at every level: nothing is chosen there
        raised = self._raised_sides if self.proved else ()
        assert level.max_fpr is not None
        assert level.max_fnr is not None
        return (
            level.max_fpr,
            level.delta_fpr / (count if "fpr" in raised else 1),
            level.max_fnr,
            level.delta_fnr / (count if "fnr" in raised else 1),
        )

    def _budgets(self, level: Guarantee, count: int, sizes: tuple[int, int]) -> tuple[Budget, Budget]:
        """Return both budgets at a level, one of `count`."""
        fpr, delta_fpr, fnr, delta_fnr = self._terms(level, count)
        return Budget.of(sizes[0], fpr, delta_fpr), Budget.of(sizes[1], fnr, delta_fnr)

    def _reached(self, claim: Claim) -> tuple[int | None, int]:
        """Return which level was reached, from 0, or None; and how many there are."""
        level = None if claim.found.certified is None else self._level(claim)
        return level, self._feasible(claim.asked, claim.sizes)[1]

    def _level(self, claim: Claim) -> int | None:
        """Return which level the budgets belong to: no two levels have the same ceilings and deltas."""
        fpr, fnr = claim.found.fpr, claim.found.fnr
        if fpr is None or fnr is None:
            return None
        first, count = self._feasible(claim.asked, claim.sizes)

        def terms(number: int) -> tuple[float, float, float, float]:
            return self._terms(self._level_at(claim.asked, first + number), count)

        # no term ever falls from one level to the next
        wanted = fpr.rate, fpr.delta, fnr.rate, fnr.delta
        number = bisect_left(range(count), wanted, key=terms)
        return number if number < count and terms(number) == wanted else None

    def _survives(self, asked: Guarantee, level: int, first: int, count: int) -> Guarantee:
        """Return the promise that survives the choice of a level: eq. (15)."""
        reached = self._level_at(asked, level)
        if not self.relax_delta or not self.proved:
            return reached
        # the ceilings are fixed, so violations are nested: the chosen level fails only where the last fails
        highest = self._level_at(asked, first + count - 1)
        return replace(reached, **{name: getattr(highest, name) / count for name in self._starts(asked)})

    def _rule(self, thresholds: Thresholds, certified: Guarantee | None) -> Rule:
        """Return the rule with one threshold, a finite point of [alarm_from, clear_below]."""
        if certified is None or thresholds.alarm_from is None or thresholds.clear_below is None:
            return _NOTHING
        low, high = thresholds.alarm_from, min(thresholds.clear_below, LARGEST)
        tau = min(max(low * (1.0 - self.position) + high * self.position, low), high)
        return Rule(tau, tau)
