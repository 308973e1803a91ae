"""Strategies with one threshold for both classes, which raise the ceilings until it can keep them."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, ldexp
from typing import ClassVar, Final, Literal, NamedTuple

from pac_wrap.base.arguments import check_choice, check_rate
from pac_wrap.base.floats import ceiling_up, from_order_key, order_key, rounded_down, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.method.rule import LARGEST
from pac_wrap.method.strategies import interface
from pac_wrap.method.strategies.interface import Asked, Claim, Decision, Found, Ranks, Strategy
from pac_wrap.ranks.memory import Rank
from pac_wrap.tails.bounds import Budget, upper_bound
from pac_wrap.tails.levels import Ladder, fixed_level, local_level

# from this many points on, going through all rungs takes too long
_MOST: Final = 10**8
# rungs that are tried together: in passes over the data, this many cost no more than one
_AT_ONCE: Final = 256
_SMALLEST_STEP: Final = 0.0001
# more doublings take any double above 1
_DOUBLINGS: Final = 1100
_SIDES: Final = ("fpr", "fnr")
# about normal and about anomalous points
Promises = tuple[Promise, ...]
_SUFFICES: Final = (
    "one threshold would have kept the requested ceilings, had overlap abstain been fixed before these labels"
    " were seen"
)


@dataclass(frozen=True, slots=True)
class Raise(Strategy):
    """Use one threshold, and raise both ceilings together as little as can be proved.

    The larger class pays for the choice: each level of the ceilings allows it one error more, judged at
    nearly its whole delta. The smaller class keeps its whole delta: eqs. (27) to (29). The
    ceilings keep their requested ratio. If the smaller class has too few labels, it gets the lowest ceiling
    that they can certify. A class may have at most 10^8 labels.

    Parameters
    ----------
    highest : float
        The highest ceiling, between 0 and 1; a requested ceiling may be higher.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> certificate = calibrate(range(1000), range(900, 1900), overlap=Raise())
    >>> round(certificate.fpr.ceiling, 4), round(certificate.fnr.ceiling, 4)
    (0.0636, 0.0636)
    """

    tag: ClassVar[str] = "raise"
    on_arrays: ClassVar[bool] = False
    choices: ClassVar[str] = "rung"
    unreached: ClassVar[str] = "no ceilings up to the highest allowed can be kept by one threshold"
    needs_more_labels = "A level of raise has nearly the whole delta, so a few more labels are needed."
    highest: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "highest", check_rate("highest", self.highest))

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        return max(1, len(staircase(asked.promises, sizes, self.highest).rungs))

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        """Yield the ranks of some levels, the first one first, and of the requested ceilings."""
        stair = staircase(_promises(asked), (n[0], n[1]), self.highest)
        yield from _ranks(map(stair.at, stair.spread(0, len(stair.rungs))))
        yield from Strategy.ranks(self, asked, n)

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return the first level whose threshold both budgets allow: eq. (27)."""
        stair = staircase(_promises(asked), tuple(ranks.n), self.highest)
        whole = tuple(own for own in interface.kept(asked, ranks) if own is not None)

        def tried(number: int) -> tuple[Found, ...]:
            return interface.at_budgets(asked, ranks, stair.at(number))

        # thresholds and budgets are monotone in the rung: the first success can be bisected
        number, end = 0, len(stair.rungs)
        while number < end:
            some = stair.spread(number, end)
            ranks.prefetch(_ranks(map(stair.at, some)))
            place = bisect_left(some, True, key=lambda at: _separated(tried(at)))
            number = some[place - 1] + 1 if place else number
            end = some[place] if place < len(some) else end
        reached = number < len(stair.rungs)
        found = tried(min(number, len(stair.rungs) - 1)) if stair.rungs else whole
        tau = min(found[0 if stair.normal_pays else 1].key, interface.REACHED)
        low, high = (tau, tau) if reached else (interface.MINUS, interface.PLUS)
        return Decision(found, low, high, found[0].key, found[1].key, reached, _separated(whole))

    def summary(self, claim: Claim) -> str:
        if not claim.certified:
            return "raise: no ceilings up to the highest allowed could be kept with one threshold"
        how = "kept as requested" if claim.certified == claim.asked else "raised as little as can be proved"
        text = f"raise: ceilings {how}; the choice is covered by delta"
        return f"{text}; {_SUFFICES}" if self._needlessly(claim) else text

    def explanation(self, claim: Claim) -> Iterator[str]:
        stair = staircase(claim.asked, claim.sizes, self.highest)
        if not stair.rungs:
            yield f"Strategy raise: too few labels for any ceiling up to {rounded_up(self.highest)}."
            return
        payer = "normal" if stair.normal_pays else "anomalous"
        which = "the first that one threshold keeps is certified" if claim.certified else "none could be kept"
        yield (
            f"Strategy raise: {len(stair.rungs):,} levels, one for each number of {payer} errors, were fixed"
            f" beforehand; {which}. The {payer} class pays for the choice: its delta at each level is"
            f" {rounded_down(stair.ladder.level)}. The other class keeps its whole delta."
        )
        if self._needlessly(claim):
            yield f"{_SUFFICES[0].upper()}{_SUFFICES[1:]}."

    def _needlessly(self, claim: Claim) -> bool:
        return claim.separable is True and claim.certified != claim.asked


class Staircase(NamedTuple):
    """The ladder of the class that pays, and the promise of the other, as fixed by the request and sizes."""

    normal_pays: bool
    ladder: Ladder
    rungs: range
    other: Promise
    others: int
    least: float

    def at(self, number: int) -> tuple[Budget, Budget]:
        """Return the budgets of a rung by its number, from 0, normal first."""
        ceiling = self.ladder.ceiling(self.rungs[number])
        paid = Budget.of(self.ladder.n, ceiling, self.ladder.level)
        share = max(self.other.at_calibration * (ceiling / self.ladder.asked), self.least)
        if share != self.other.at_calibration:
            share = ceiling_up(share)
        whole = Budget.of(self.others, share, self.other.delta)
        return (paid, whole) if self.normal_pays else (whole, paid)

    def spread(self, start: int, stop: int) -> range:
        """Return the numbers of a few evenly spaced rungs from start to stop, the first included."""
        return range(start, stop, max(1, ceil((stop - start) / _AT_ONCE)))


@lru_cache(maxsize=64)
def staircase(asked: tuple[Promise, ...], sizes: tuple[int, int], highest: float) -> Staircase:
    """Return the staircase of a request: the larger class pays, and the normal one if both are equal."""
    if max(sizes) > _MOST:
        raise InputError(
            f'overlap="raise" takes at most {_MOST:,} labels of a class, got {max(sizes):,}; "hold_fnr" and'
            ' "hold_fpr" take any number'
        )
    normal_pays = sizes[0] >= sizes[1]
    payer, other = asked if normal_pays else asked[::-1]
    n, others = sizes if normal_pays else sizes[::-1]
    # both ceilings at calibration rise by the same factor, neither beyond the highest: eq. (70)
    first, second = payer.at_calibration, other.at_calibration
    tops = payer.allowing(highest), other.allowing(highest)
    factor = max(1.0, min(tops[0] / first, tops[1] / second))
    top = first * factor
    ladder = Ladder(n, first, local_level(n, first, payer.delta, top), top)
    least = upper_bound(0, others, other.delta)
    enough = least <= max(tops[1], second)
    rungs = range(ladder.first, ladder.last + 1) if enough else range(0)
    return Staircase(normal_pays, ladder, rungs, other, others, least)


def _promises(asked: Sequence[Asked]) -> Promises:
    return tuple(one.promise for one in asked if one.promise is not None)


def _ranks(budgets: Iterable[tuple[Budget, Budget]]) -> Iterator[Rank]:
    """Yield the ranks of the thresholds that pairs of budgets lead to: eqs. (7) and (9)."""
    for normal, anomalous in budgets:
        if normal.errors is not None:
            yield Rank(0, normal.n - normal.errors)
        if anomalous.errors is not None:
            yield Rank(1, anomalous.errors + 1)


def _separated(found: tuple[Found, ...]) -> bool:
    return bool(interface.are_separated(found[0].key, found[1].key))


@dataclass(frozen=True, slots=True)
class Algorithm1(Strategy):
    """Use one threshold, and raise the ceilings level by level until it keeps both (the paper's Algorithm 1).

    Parameters
    ----------
    step : float
        The amount by which each level raises the ceilings.
    growth : "linear" or "double"
        Whether each level adds `step` to the ceilings, or doubles them.
    raised : "both", "fpr" or "fnr"
        The ceilings that are raised.
    relax_delta : bool
        Whether to raise the deltas instead; the last level's delta, divided by the number of levels, is
        certified.
    correction : "exact" or None
        With "exact", every level is tried at the largest delta for which the result is proved, eq. (15). None
        is the paper's version, which is false in general.
    position : float
        The position of the threshold between alarm_from (0) and clear_below (1).

    Examples
    --------
    >>> [level.max_fpr for level in Algorithm1(growth="double").levels(Guarantee())]
    [0.05, 0.1, 0.2, 0.4, 0.8]
    """

    tag: ClassVar[str] = "algorithm1"
    on_arrays: ClassVar[bool] = False
    needs_more_labels = "A level of Algorithm 1 has only a part of delta, so more labels are needed."
    step: float = 0.1
    growth: Literal["linear", "double"] = "linear"
    raised: Literal["both", "fpr", "fnr"] = "both"
    relax_delta: bool = False
    correction: Literal["exact"] | None = "exact"
    position: float = 0.5

    def __post_init__(self) -> None:
        check_choice("growth", self.growth, ("linear", "double"))
        check_choice("raised", self.raised, ("both", "fpr", "fnr"))
        check_choice("relax_delta", self.relax_delta, (True, False))
        check_choice("correction", self.correction, ("exact", None))
        object.__setattr__(self, "step", check_rate("step", self.step))
        if self.step < _SMALLEST_STEP:
            raise InputError(
                f"step must be at least {_SMALLEST_STEP}, since every level costs part of delta, got"
                f" {self.step!r}"
            )
        object.__setattr__(self, "position", interface.check_position(self.position))

    @property
    def proved(self) -> bool:
        """Whether delta covers the choice of a level; the paper's version is not proved."""
        return self.correction is not None

    @property
    def keeps_delta(self) -> bool:
        """Whether delta is certified as requested, and not raised."""
        return self.proved and not self.relax_delta

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        return _planned(self, asked.promises, sizes).total

    def levels(self, asked: Guarantee, sizes: tuple[int, int] | None = None) -> list[Guarantee]:
        """Return the levels in the order in which they are tried, fixed before any score is seen.

        Parameters
        ----------
        asked : Guarantee
            The first level.
        sizes : tuple of int, optional
            The numbers of normal and of anomalous points. Levels that these labels cannot reach are then left
            out, unless all are. The sizes are known before any score is seen, so that costs nothing.
        """
        promises = asked.promises
        first = 0 if sizes is None else _planned(self, promises, sizes).first
        levels = (self._level_at(promises, number) for number in range(first, self._count(promises)))
        return [
            replace(asked, max_fpr=a.ceiling, max_fnr=b.ceiling, delta_fpr=a.delta, delta_fnr=b.delta)
            for a, b in levels
        ]

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        plan = _planned(self, _promises(asked), (n[0], n[1]))
        yield from _ranks(map(plan.budgets, range(plan.total)))

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return the first level with separated thresholds, or the last level with nothing certified."""
        plan = _planned(self, _promises(asked), tuple(ranks.n))

        def attempt(level: int) -> tuple[Found, ...]:
            return interface.at_budgets(asked, ranks, plan.budgets(level))

        # budgets, and so the thresholds, are monotone in the level: the first success can be bisected
        level = bisect_left(range(plan.total), True, key=lambda level: _separated(attempt(level)))
        found = attempt(min(level, plan.total - 1))
        edges = found[0].key, found[1].key
        if level == plan.total:
            return Decision(found, interface.MINUS, interface.PLUS, *edges, certified=False)
        alarm, clear = map(from_order_key, edges)
        high, share = min(clear, LARGEST), self.position
        tau = order_key(min(max(alarm * (1.0 - share) + high * share, alarm), high))
        pairs = zip(found, plan.survives(level), strict=True)
        made = tuple(own._replace(ceiling=one.ceiling, level=one.delta) for own, one in pairs)
        return Decision(made, tau, tau, *edges)

    def summary(self, claim: Claim) -> str:
        level, count = self._reached(claim)
        which = "none reached" if level is None else f"level {level + 1} reached"
        text = f"algorithm1: {which} of {count} fixed beforehand;"
        if not self.proved:
            return f"{text} delta is not corrected for that choice, so the confidence is not guaranteed"
        if self.relax_delta:
            return f"{text} the certified delta is that of the last level, divided by the number of levels"
        return f"{text} the choice is covered by delta"

    def explanation(self, claim: Claim) -> Iterator[str]:
        level, count = self._reached(claim)
        sides = {"both": "both sides", "fpr": "the FPR", "fnr": "the FNR"}[self.raised]
        what = "deltas" if self.relax_delta else "ceilings"
        text = f"Algorithm 1: {count:,} levels with rising {what} of {sides} were fixed beforehand and tried"
        if level is None:
            yield f"{text} in order; no level could be kept."
            return
        yield f"{text} in order; level {level + 1:,} was the first that one threshold can keep."
        if self.proved:
            _, fpr, _, fnr = map(rounded_down, _planned(self, claim.asked, claim.sizes).terms(level))
            yield (
                f"It was tried at a delta of {fpr} for the FPR and {fnr} for the FNR, so that the confidence"
                " covers the choice; the exact confidence above is that of a single promise."
            )
        else:
            yield "Delta was not corrected for the choice, so the confidence is not guaranteed."

    @property
    def _raised_sides(self) -> tuple[str, ...]:
        return _SIDES if self.raised == "both" else (self.raised,)

    def _raise(self, start: float, times: int) -> float:
        if self.growth == "linear":
            return round(start + times * self.step, 12) if times else start
        # 2^times itself may be beyond every double
        return ldexp(start, times) if start < ldexp(1.0, -times) else 1.0

    def _last(self, start: float) -> int:
        """Return how often a ceiling or a delta can be raised while it stays below 1."""
        most = _DOUBLINGS if self.growth == "double" else int(1.0 / self.step) + 1
        return bisect_left(range(most + 1), True, key=lambda times: self._raise(start, times) >= 1.0) - 1

    def _start(self, promise: Promise) -> float:
        return promise.delta if self.relax_delta else promise.ceiling

    def _count(self, asked: Promises) -> int:
        """Return the number of levels; the last is the one before every raised rate would reach 1."""
        starts = dict(zip(_SIDES, asked, strict=True))
        return 1 + max(self._last(self._start(starts[side])) for side in self._raised_sides)

    def _level_at(self, asked: Promises, number: int) -> Promises:
        """Return one level; a rate that would reach 1 stays where it is, while the other rises further."""

        def at(side: str, promise: Promise) -> Promise:
            if side not in self._raised_sides:
                return promise
            start = self._start(promise)
            raised = self._raise(start, min(number, self._last(start)))
            return replace(promise, delta=raised) if self.relax_delta else replace(promise, ceiling=raised)

        return tuple(map(at, _SIDES, asked))

    def _reached(self, claim: Claim) -> tuple[int | None, int]:
        """Return the level that was reached, counted from 0, or None, and the number of levels."""
        plan = _planned(self, claim.asked, claim.sizes)
        return plan.which(claim) if claim.certified else None, plan.total


class _Plan(NamedTuple):
    """The levels that are tried, from `first` on, with their deltas, or the part of delta that they get."""

    strategy: Algorithm1
    asked: Promises
    sizes: tuple[int, int]
    first: int
    total: int
    parts: tuple[int, int]
    deltas: tuple[float, float] | None = None

    def terms(self, number: int) -> tuple[float, float, float, float]:
        """Return the ceiling and the delta of both rates at a level; none falls from a level to the next."""
        fpr, fnr = self.strategy._level_at(self.asked, self.first + number)
        deltas = self.deltas or (fpr.delta / self.parts[0], fnr.delta / self.parts[1])
        return fpr.at_calibration, deltas[0], fnr.at_calibration, deltas[1]

    def budgets(self, number: int) -> tuple[Budget, Budget]:
        fpr, delta_fpr, fnr, delta_fnr = self.terms(number)
        return Budget.of(self.sizes[0], fpr, delta_fpr), Budget.of(self.sizes[1], fnr, delta_fnr)

    def which(self, found: Claim) -> int | None:
        """Return the level of a claim's budgets, since no two levels have the same ceilings and deltas."""
        if found.fpr is None or found.fnr is None:
            return None
        wanted = found.fpr.rate, found.fpr.delta, found.fnr.rate, found.fnr.delta
        number = bisect_left(range(self.total), wanted, key=self.terms)
        return number if number < self.total and self.terms(number) == wanted else None

    def survives(self, number: int) -> Promises:
        """Return the promises that hold although the level was chosen: Theorem 5."""
        if self.parts == (1, 1):
            return self.strategy._level_at(self.asked, self.first + number)
        # the ceilings are fixed, so violations are nested: the chosen level fails only where the last fails
        _, fpr, _, fnr = self.terms(self.total - 1)
        return tuple(replace(one, delta=delta) for one, delta in zip(self.asked, (fpr, fnr), strict=True))


@lru_cache(maxsize=64)
def _planned(strategy: Algorithm1, asked: Promises, sizes: tuple[int, int]) -> _Plan:
    """Return the levels that these numbers of labels can reach, or all if they can reach none."""
    count = strategy._count(asked)
    # a rate that is not raised has the same threshold at every level, so nothing is chosen there
    raised = strategy._raised_sides if strategy.proved else ()

    def plan(first: int) -> _Plan:
        fpr, fnr = (count - first if strategy.relax_delta and side in raised else 1 for side in _SIDES)
        return _Plan(strategy, asked, sizes, first, count - first, (fpr, fnr))

    def delta(n: int, promise: Promise, side: str) -> float:
        last = strategy._last(promise.ceiling) if side in raised else 0
        ceilings = (strategy._raise(promise.ceiling, min(number, last)) for number in range(first, count))
        return fixed_level(n, tuple(dict.fromkeys(map(promise.allowing, ceilings))), promise.delta)

    def feasible(first: int) -> bool:
        return all(budget.errors is not None for budget in plan(first).budgets(0))

    # a higher level, with fewer others, has the larger budget
    first = bisect_left(range(count), True, key=feasible) % count
    if strategy.relax_delta:
        return plan(first)
    fpr, fnr = map(delta, sizes, asked, _SIDES)
    return plan(first)._replace(deltas=(fpr, fnr))
