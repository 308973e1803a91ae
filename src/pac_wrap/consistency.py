"""Whether what a certificate says follows from its own numbers: what was asked, counts and thresholds.

A file whose checksum fits may still have been made by anybody. What contradicts itself is not believed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, isclose
from typing import Final

from pac_wrap.guarantee import Budget, Guarantee
from pac_wrap.relaxation import Outcome, Strategy, feasible_levels, level_budgets, place, survives

# so many scores of a class are more than any engine counts; the exact tail stays quick up to there
MOST_SCORES: Final = 10**12
_RATES: Final = (("FPR", "normal"), ("FNR", "anomalous"))
# confidences and bounds come from SciPy, whose versions may differ in the last digits
_DIGITS: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """What a certificate claims: what was asked and found, and the size and crossing points of each class."""

    asked: Guarantee
    strategy: Strategy | None
    found: Outcome
    sizes: tuple[int, int]
    crossing: tuple[int | None, int | None]


def contradictions(claim: Claim) -> Iterator[str]:
    """Yield what does not fit together, the quick checks first: those behind them may rely on these."""
    yield from _sizes(claim)
    yield from _shape(claim)
    yield from _promise(claim)
    yield from _thresholds(claim)
    yield from _crossing(claim)
    yield from _tau(claim)


def _sizes(claim: Claim) -> Iterator[str]:
    if claim.sizes == (0, 0):
        yield "there is no score in either class"
    budgets = (claim.found.fpr, claim.found.fnr)
    for (rate, kind), n, crossing, budget in zip(_RATES, claim.sizes, claim.crossing, budgets, strict=True):
        if not 0 <= n <= MOST_SCORES:
            yield f"there cannot be {n:,} {kind} scores; a class has at most {MOST_SCORES:,}"
        if crossing is not None and not 0 <= crossing <= n:
            yield f"{crossing:,} of {n:,} {kind} scores cannot cross"
        if budget is not None and budget.n != n:
            yield f"the {rate} budget is for {budget.n:,} {kind} scores, not {n:,}"


def _shape(claim: Claim) -> Iterator[str]:
    """Yield what stands there and may not, or should and does not."""
    strategy, found = claim.strategy, claim.found
    relaxes = strategy is not None and strategy.name == "relax"
    if strategy is not None and None in (claim.asked.max_fpr, claim.asked.max_fnr):
        yield "a strategy needs two ceilings, and one is asked for"
    if (found.levels is not None) != relaxes or (found.level is not None and not relaxes):
        yield "level and levels belong to the strategy relax, and to no other"
    reached = relaxes and found.level is not None
    held = strategy is not None and not relaxes
    if (found.tau is not None) != (reached or held):
        yield "tau belongs to a strategy that has reached a threshold"
    if (found.certified is None) != (relaxes and not reached):
        yield "something is certified exactly if a threshold was reached"


def _promise(claim: Claim) -> Iterator[str]:
    """Yield where budgets and promise are not those that follow from what was asked and the counts."""
    found, (n_normal, n_anomalous) = claim.found, claim.sizes
    asked, strategy = claim.asked, claim.strategy
    fpr = None if asked.max_fpr is None else Budget.fpr(n_normal, asked)
    fnr = None if asked.max_fnr is None else Budget.fnr(n_anomalous, asked)
    certified: Guarantee | None = asked
    tolerance = [0.0, 0.0]
    if strategy is not None and strategy.name == "relax":
        levels = feasible_levels(strategy, asked, n_normal, n_anomalous)
        if found.levels != len(levels):
            yield f"there are {len(levels):,} levels, not {found.levels}"
        if found.level is not None and not 0 <= found.level < len(levels):
            yield f"level {found.level} is none of {len(levels):,}"
        level = len(levels) - 1 if found.level is None else found.level
        fpr, fnr = level_budgets(strategy, levels[level], len(levels), n_normal, n_anomalous)
        certified = None if found.level is None else survives(strategy, levels, level)
    elif strategy is not None and strategy.name == "hold_fnr":
        fpr, tolerance[0] = _spent(claim.crossing[0], n_normal, asked.delta_fpr), _DIGITS
        certified = replace(asked, max_fpr=None if found.fpr is None else found.fpr.rate)
    elif strategy is not None:
        fnr, tolerance[1] = _spent(claim.crossing[1], n_anomalous, asked.delta_fnr), _DIGITS
        certified = replace(asked, max_fnr=None if found.fnr is None else found.fnr.rate)
    yield from _budget("FPR", found.fpr, fpr, tolerance[0])
    yield from _budget("FNR", found.fnr, fnr, tolerance[1])
    if found.certified != certified:
        yield "what is certified does not follow from what was asked"


def _spent(crossing: int | None, n: int, delta: float) -> Budget | None:
    return None if crossing is None else Budget.spent(crossing, n, delta)


def _budget(rate: str, found: Budget | None, expected: Budget | None, tolerance: float) -> Iterator[str]:
    """Yield how a budget differs from the one that is expected, with a rate up to a relative tolerance."""
    if found is None or expected is None:
        if found is not expected:
            yield f"the {rate} must have {'no' if expected is None else 'a'} budget"
        return
    if found.delta != expected.delta or not isclose(found.rate, expected.rate, rel_tol=tolerance):
        yield (
            f"the {rate} budget is for the ceiling {expected.rate} at delta = {expected.delta}, not for"
            f" {found.rate} at {found.delta}"
        )
    # its own rate, in which the last digits may differ, must carry its errors as well
    exact = expected if found.rate == expected.rate else Budget.of(found.n, found.rate, found.delta)
    if found.errors != exact.errors:
        yield f"the {rate} budget is {exact.errors}, not {found.errors}"
    if not abs(found.confidence - exact.confidence) <= _DIGITS:
        yield f"the exact confidence of the {rate} is not {found.confidence}"


def _thresholds(claim: Claim) -> Iterator[str]:
    """Yield thresholds that no scores give: eqs. (7) and (9)."""
    found = claim.found
    for name, threshold, budget, never in (
        ("alarm_from", found.thresholds.alarm_from, found.fpr, inf),
        ("clear_below", found.thresholds.clear_below, found.fnr, -inf),
    ):
        if (threshold is None) != (budget is None):
            yield f"{name} and its budget must both be there, or neither"
        if budget is not None and budget.errors is None and threshold != never:
            yield f"{name} must be {never} where there are too few labels"
    if found.thresholds.alarm_from == -inf:
        yield "alarm_from must lie above some score, so it cannot be -inf"


def _crossing(claim: Claim) -> Iterator[str]:
    """Yield counts of crossing points that no scores give: eq. (13)."""
    found, (high, low) = claim.found, claim.crossing
    alarm_from, clear_below = found.thresholds.alarm_from, found.thresholds.clear_below
    if alarm_from is None or clear_below is None:
        if (high, low) != (None, None):
            yield "crossing points are counted only where there are two thresholds"
        return
    if high is None or low is None:
        yield "the crossing points of both classes must be counted where there are two thresholds"
        return
    for (_, kind), count, n, everything in zip(
        _RATES, (high, low), claim.sizes, (clear_below == -inf, alarm_from == inf), strict=True
    ):
        if everything and count != n:
            yield f"all {n:,} {kind} scores cross the other threshold, not {count:,}"
    if found.fpr is None or found.fpr.errors is None or found.fnr is None or found.fnr.errors is None:
        return
    separated = found.thresholds.separated
    within = high <= found.fpr.errors, low <= found.fnr.errors
    # above the largest double there is no threshold left, so normal scores up there cross nothing
    no_room = alarm_from == clear_below == inf
    for (_, kind), count, fits, free in zip(_RATES, (high, low), within, (no_room, False), strict=True):
        if fits != separated and not free:
            regime = "separated" if separated else "overlapping"
            yield (
                f"{count:,} crossing {kind} scores are {'within' if fits else 'beyond'} the budget, but the"
                f" thresholds are {regime}"
            )


def _tau(claim: Claim) -> Iterator[str]:
    strategy, found = claim.strategy, claim.found
    if strategy is None:
        return
    low, high = found.thresholds.alarm_from, found.thresholds.clear_below
    if strategy.name == "relax":
        if found.thresholds.separated != (found.level is not None):
            yield "a level is reached exactly if its thresholds are separated"
        expected = None if found.level is None else place(found.thresholds, strategy.position)
    else:
        if not found.thresholds.separated:
            yield "what is held on one side leaves the thresholds separated"
        expected = high if strategy.name == "hold_fnr" else low
    if found.tau != expected or (strategy.name == "hold_fnr" and found.tau == inf):
        yield f"tau = {found.tau!r} does not follow from alarm_from and clear_below"
