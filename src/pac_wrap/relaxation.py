"""One single threshold where abstaining is not allowed: Algorithm 1, corrected, or one side held."""

from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf, ldexp, nan
from typing import Final, Literal

import numpy as np

from pac_wrap.errors import InputError
from pac_wrap.foreign import quoted
from pac_wrap.guarantee import Budget, Guarantee
from pac_wrap.inputs import Scores, check_choice, check_rate, is_number
from pac_wrap.order import Ranked, count_below
from pac_wrap.thresholds import Thresholds, alarm_from, clear_below, find_thresholds

StrategyName = Literal["relax", "hold_fnr", "hold_fpr"]
_SMALLEST_STEP: Final = 0.0001
LARGEST: Final = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one single threshold is reached, and where it is put.

    `relax` raises the ceilings level by level until one threshold can keep both (Algorithm 1):
    `growth` is "linear" (by `step`) or "double"; `ceilings` says which are raised ("both", "fpr", "fnr");
    `relax_delta` raises their deltas instead, and certifies that of the last level divided by their number.
    `correction="share"` divides delta among the levels, which makes the result a theorem, eq. (15); None is
    the paper's version, which is false in general.
    `hold_fnr` keeps the FNR ceiling and certifies the smallest FPR that goes with it, eq. (16); `hold_fpr`
    mirrors it.
    `position` puts a relaxed threshold between alarm_from (0) and clear_below (1).
    """

    name: StrategyName = "relax"
    step: float = 0.1
    growth: Literal["linear", "double"] = "linear"
    ceilings: Literal["both", "fpr", "fnr"] = "both"
    relax_delta: bool = False
    correction: Literal["share"] | None = "share"
    position: float = 0.5

    def __post_init__(self) -> None:
        check_choice("strategy", self.name, ("relax", "hold_fnr", "hold_fpr"))
        check_choice("growth", self.growth, ("linear", "double"))
        check_choice("ceilings", self.ceilings, ("both", "fpr", "fnr"))
        check_choice("relax_delta", self.relax_delta, (True, False))
        check_choice("correction", self.correction, ("share", None))
        object.__setattr__(self, "step", check_rate("step", self.step))
        if self.step < _SMALLEST_STEP:
            raise InputError(
                f"step must be at least {_SMALLEST_STEP}, got {self.step!r}; every level costs part of delta"
            )
        position = nan
        if is_number(self.position):
            with suppress(OverflowError):  # compared as a float: a Decimal that is NaN would raise
                position = float(self.position)
        if not 0.0 <= position <= 1.0:
            raise InputError(
                f"position must lie between 0 (alarm_from) and 1 (clear_below), got {quoted(self.position)}"
            )
        object.__setattr__(self, "position", position)

    @property
    def relaxed_sides(self) -> tuple[str, ...]:
        """The sides whose ceiling (or delta) is raised: "fpr", "fnr" or both."""
        return ("fpr", "fnr") if self.ceilings == "both" else (self.ceilings,)

    def levels(self, guarantee: Guarantee) -> list[Guarantee]:
        """Return the promises that are tried, in order; each stays below 1. Fixed before any score is seen.

        >>> [level.max_fpr for level in Strategy(growth="double").levels(Guarantee())]
        [0.05, 0.1, 0.2, 0.4, 0.8]
        """
        prefix = "delta" if self.relax_delta else "max"
        starts = {f"{prefix}_{side}": getattr(guarantee, f"{prefix}_{side}") for side in self.relaxed_sides}
        levels, raised = [guarantee], starts
        while True:
            higher = {name: self._raise(start, len(levels)) for name, start in starts.items()}
            if min(higher.values()) >= 1.0:
                return levels
            # a side that would reach 1 stays where it is, while the other goes on
            raised = {name: value if value < 1.0 else raised[name] for name, value in higher.items()}
            levels.append(replace(guarantee, **raised))

    def _raise(self, start: float, times: int) -> float:
        if self.growth == "linear":
            return round(start + times * self.step, 12)
        # 2^times itself may be beyond every double
        return ldexp(start, times) if start < ldexp(1.0, -times) else 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy found: the budgets and thresholds it ended with, and tau if it was certified."""

    fpr: Budget | None
    fnr: Budget | None
    thresholds: Thresholds
    certified: Guarantee | None
    tau: float | None
    levels: int | None = None
    level: int | None = None


def single_threshold(
    normal: Scores | Ranked, anomalous: Scores | Ranked, guarantee: Guarantee, strategy: Strategy
) -> Outcome:
    """Return one threshold that keeps a promise on both sides, or an outcome without a tau."""
    if strategy.name == "relax":
        return _relax(normal, anomalous, guarantee, strategy)
    return (_hold_fnr if strategy.name == "hold_fnr" else _hold_fpr)(normal, anomalous, guarantee)


def feasible_levels(
    strategy: Strategy, guarantee: Guarantee, n_normal: int, n_anomalous: int
) -> list[Guarantee]:
    """Return the levels that so many labels can reach at all, or every level if they can reach none.

    Which ones they are is known before any score is seen, so the others take no share of delta.

    >>> [level.max_fpr for level in feasible_levels(Strategy(), Guarantee(), 2000, 30)]
    [0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]
    """
    levels = strategy.levels(guarantee)

    def feasible(skipped: int) -> bool:
        pair = level_budgets(strategy, levels[skipped], len(levels) - skipped, n_normal, n_anomalous)
        return all(budget.errors is not None for budget in pair)

    # a higher level with fewer others to share delta with has the larger budget
    return levels[bisect_left(range(len(levels)), True, key=feasible) :] or levels


def level_budgets(
    strategy: Strategy, level: Guarantee, count: int, n_normal: int, n_anomalous: int
) -> tuple[Budget, Budget]:
    """Return both budgets at a level, delta shared among `count` levels where the strategy says so."""
    # a side that is not raised has one and the same threshold at every level: nothing is chosen there
    raised = strategy.relaxed_sides if strategy.correction == "share" else ()
    return (
        Budget.fpr(n_normal, level, count if "fpr" in raised else 1),
        Budget.fnr(n_anomalous, level, count if "fnr" in raised else 1),
    )


def _relax(
    normal: Scores | Ranked, anomalous: Scores | Ranked, guarantee: Guarantee, strategy: Strategy
) -> Outcome:
    levels = feasible_levels(strategy, guarantee, normal.size, anomalous.size)

    def attempt(level: int) -> tuple[Budget, Budget, Thresholds]:
        fpr, fnr = level_budgets(strategy, levels[level], len(levels), normal.size, anomalous.size)
        return fpr, fnr, find_thresholds(normal, anomalous, fpr, fnr)

    # budgets, and with them the thresholds, are monotone in the level, so the first success can be bisected
    reached = bisect_left(range(len(levels)), True, key=lambda level: attempt(level)[2].separated)
    fpr, fnr, thresholds = attempt(min(reached, len(levels) - 1))
    if reached == len(levels):
        return Outcome(fpr, fnr, thresholds, None, None, len(levels))
    tau, certified = place(thresholds, strategy.position), survives(strategy, levels, reached)
    return Outcome(fpr, fnr, thresholds, certified, tau, len(levels), reached)


def survives(strategy: Strategy, levels: list[Guarantee], level: int) -> Guarantee:
    """Return the promise that survives the choice of a level: eq. (15)."""
    if not strategy.relax_delta or strategy.correction is None:
        return levels[level]
    # the ceilings are fixed, so violations are nested: the chosen level fails only where the last fails
    last = {
        f"delta_{side}": getattr(levels[-1], f"delta_{side}") / len(levels) for side in strategy.relaxed_sides
    }
    return replace(levels[level], **last)


def _hold_fnr(normal: Scores | Ranked, anomalous: Scores | Ranked, guarantee: Guarantee) -> Outcome:
    fnr = Budget.fnr(anomalous.size, guarantee)
    tau = min(clear_below(anomalous, fnr.errors), LARGEST)
    errors = normal.size - count_below(normal, tau)
    fpr = Budget.spent(errors, normal.size, guarantee.delta_fpr)
    thresholds = Thresholds(alarm_from(normal, errors) if fpr else None, tau)
    certified = replace(guarantee, max_fpr=fpr.rate if fpr else None)
    return Outcome(fpr, fnr, thresholds, certified, tau)


def _hold_fpr(normal: Scores | Ranked, anomalous: Scores | Ranked, guarantee: Guarantee) -> Outcome:
    fpr = Budget.fpr(normal.size, guarantee)
    tau = alarm_from(normal, fpr.errors)
    errors = anomalous.size if tau == inf else count_below(anomalous, tau)
    fnr = Budget.spent(errors, anomalous.size, guarantee.delta_fnr)
    thresholds = Thresholds(tau, clear_below(anomalous, errors) if fnr else None)
    certified = replace(guarantee, max_fnr=fnr.rate if fnr else None)
    return Outcome(fpr, fnr, thresholds, certified, tau)


def place(thresholds: Thresholds, position: float) -> float:
    """Return a finite point of [alarm_from, clear_below]."""
    assert thresholds.alarm_from is not None
    assert thresholds.clear_below is not None
    low, high = thresholds.alarm_from, min(thresholds.clear_below, LARGEST)
    return min(max(low * (1.0 - position) + high * position, low), high)
