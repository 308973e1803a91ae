"""One threshold whose ceilings are raised as little as can be proved."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import ClassVar, Final, NamedTuple

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.floats import ceiling_up, rounded_down, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.method.strategies.interface import (
    MINUS,
    PLUS,
    REACHED,
    Asked,
    Claim,
    Decision,
    Found,
    Ranks,
    Strategy,
    are_separated,
    at_budgets,
    kept,
    ranks_of,
)
from pac_wrap.ranks.memory import Rank
from pac_wrap.tails.bounds import Budget, upper_bound
from pac_wrap.tails.levels import Ladder, local_level

# from so many points on, going through all rungs takes too long
_MOST: Final = 10**8
# rungs that are looked at together: in passes over the data, so many cost no more than one
_AT_ONCE: Final = 256
_SUFFICES: Final = (
    "one threshold would have kept what was asked, had overlap abstain been fixed before these labels were"
    " seen"
)


@dataclass(frozen=True, slots=True)
class Raise(Strategy):
    """One threshold; both ceilings are raised together, as little as can be proved.

    The larger class pays: it climbs a ladder with a rung for every number of errors, and its delta is nearly
    whole at each. The smaller class keeps its delta whole: eqs. (27) to (29). The ceilings keep the ratio
    that was asked for. A smaller class with too few labels gets the least ceiling that they can keep.

    Parameters
    ----------
    highest : float
        No ceiling is raised beyond this, unless it was asked for.

    Raises
    ------
    InputError
        If `highest` does not lie between 0 and 1, or, on calibration, if a class has more than 10^8 labels.

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
    highest: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "highest", check_rate("highest", self.highest))

    @property
    def needs_more_labels(self) -> str | None:
        """That delta is not quite whole at a rung."""
        return "A rung of the ladder has nearly all of delta, and needs a few more."

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        """Return the number of rungs."""
        return max(1, len(staircase(asked.promises, sizes, self.highest).rungs))

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        """Yield the ranks of some rungs, the first one first, and of what was asked for."""
        stair = self._stair(asked, n)
        yield from stair.ranks(stair.spread(0, len(stair.rungs)))
        yield from ranks_of(asked, n)

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return the first rung whose threshold both budgets allow: eq. (27)."""
        stair = self._stair(asked, ranks.n)
        whole = tuple(own for own in kept(asked, ranks) if own is not None)

        def tried(number: int) -> tuple[Found, ...]:
            return at_budgets(asked, ranks, stair.at(number))

        # thresholds and budgets are monotone in the rung: the first success can be bisected
        number, end = 0, len(stair.rungs)
        while number < end:
            some = stair.spread(number, end)
            ranks.prefetch(stair.ranks(some))
            place = bisect_left(some, True, key=lambda at: _separated(tried(at)))
            number = some[place - 1] + 1 if place else number
            end = some[place] if place < len(some) else end
        reached = number < len(stair.rungs)
        found = tried(min(number, len(stair.rungs) - 1)) if stair.rungs else whole
        tau = min(found[0 if stair.normal_pays else 1].key, REACHED)
        low, high = (tau, tau) if reached else (MINUS, PLUS)
        return Decision(found, low, high, found[0].key, found[1].key, reached, _separated(whole))

    def _stair(self, asked: Sequence[Asked], n: Sequence[int]) -> "Staircase":
        promises = tuple(one.promise for one in asked if one.promise is not None)
        return staircase(promises, (n[0], n[1]), self.highest)

    def summary(self, claim: Claim) -> str:
        """Return how far the ceilings were raised, and whether they had to be."""
        if claim.found.certified is None:
            return "raise: no ceilings up to the highest allowed could be kept with one threshold"
        text = "raise: kept as asked"
        if claim.found.certified != claim.asked:
            text = "raise: ceilings raised as little as can be proved"
        text = f"{text}; the choice is covered by delta"
        return f"{text}. {_SUFFICES}" if self._needlessly(claim) else text

    def explanation(self, claim: Claim) -> Iterator[str]:
        """Yield which class paid, and what abstaining only where needed would have kept."""
        stair = staircase(claim.asked.promises, claim.sizes, self.highest)
        if not stair.rungs:
            yield f"Strategy raise: too few labels for any ceiling up to {rounded_up(self.highest)}."
            return
        payer = "normal" if stair.normal_pays else "anomalous"
        which = "none could be kept"
        if claim.found.certified is not None:
            which = "the first that one threshold keeps is certified"
        yield (
            f"Strategy raise: {len(stair.rungs):,} rungs, one for each number of {payer} errors, were fixed"
            f" beforehand; {which}. The {payer} class pays for the choice: its delta at each rung is"
            f" {rounded_down(stair.ladder.level)}. The other keeps its delta whole."
        )
        if self._needlessly(claim):
            yield f"{_SUFFICES[0].upper()}{_SUFFICES[1:]}."

    def _needlessly(self, claim: Claim) -> bool:
        return claim.found.separable is True and claim.found.certified != claim.asked


class Staircase(NamedTuple):
    """The ladder of the class that pays, and the promise of the other; fixed by the request and the sizes."""

    normal_pays: bool
    ladder: Ladder
    rungs: range
    other: Promise
    others: int
    least: float

    def budgets(self, errors: int) -> tuple[Budget, Budget]:
        """Return the budgets of a rung, normal first."""
        ceiling = self.ladder.ceiling(errors)
        paid = Budget.of(self.ladder.n, ceiling, self.ladder.level)
        share = max(self.other.at_calibration * (ceiling / self.ladder.asked), self.least)
        if share != self.other.at_calibration:
            share = ceiling_up(share)
        kept = Budget.of(self.others, share, self.other.delta)
        return (paid, kept) if self.normal_pays else (kept, paid)

    def at(self, number: int) -> tuple[Budget, Budget]:
        """Return the budgets of a rung by its number, from 0."""
        return self.budgets(self.rungs[number])

    def spread(self, start: int, stop: int) -> range:
        """Return the numbers of a few rungs from start to stop, the first among them, evenly spaced."""
        return range(start, stop, max(1, ceil((stop - start) / _AT_ONCE)))

    def ranks(self, numbers: range) -> Iterator[Rank]:
        """Yield the ranks that decide whether some rungs are reached."""
        for number in numbers:
            normal, anomalous = self.at(number)
            if normal.errors is not None:
                yield Rank(0, normal.n - normal.errors)
            if anomalous.errors is not None:
                yield Rank(1, anomalous.errors + 1)


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
    # both ceilings rise by the same factor, and neither beyond the highest; it is those at calibration that
    # rise, eq. (70)
    first, second = payer.at_calibration, other.at_calibration
    tops = payer.allowing(highest), other.allowing(highest)
    factor = max(1.0, min(tops[0] / first, tops[1] / second))
    top = first * factor
    ladder = Ladder(n, first, local_level(n, first, payer.delta, top), top)
    least = upper_bound(0, others, other.delta)
    enough = least <= max(tops[1], second)
    rungs = range(ladder.first, ladder.last + 1) if enough else range(0)
    return Staircase(normal_pays, ladder, rungs, other, others, least)


def _separated(found: tuple[Found, ...]) -> bool:
    return bool(are_separated(found[0].key, found[1].key))
