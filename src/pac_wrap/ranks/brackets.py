"""Exact ranks of data that an engine counts: no score leaves it but the few around what is asked for.

The first scores say where to look, or a sample if they are of one class. The engine then counts, for each
class, the scores in some cells, and lists those of a few cells in full. Which cells matter is found by
rehearsal: whoever will ask is let loose on what is known so far, and what it asks for is noted.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from typing import Final, Generic, TypeVar

import numpy as np

from pac_wrap.base.floats import from_order_key, order_key
from pac_wrap.errors import InputError
from pac_wrap.ranks.grids import grid_around, grid_within, merged, near
from pac_wrap.ranks.kernels import as_digest
from pac_wrap.ranks.memory import Ranked
from pac_wrap.ranks.search import BOTH, CHANGED, Rank
from pac_wrap.ranks.spread import (
    Cells,
    Counter,
    Grid,
    Pair,
    Range,
    Sample,
    Some,
    Spread,
    bounds,
)

T = TypeVar("T")
# the first scores say nothing if a class has fewer of them
_ENOUGH: Final = 16
# up to this many scores are listed rather than counted once more, of so many cells: 4 MB
_FEW: Final = 3 << 17
_LISTED: Final = 1 << 12
# cells whose scores are counted at once
_AT_ONCE: Final = 12
_Chosen = tuple[int, int, Range]


class _Asked:
    """What is asked in a rehearsal: ranks, and keys that the scores of a class are counted below."""

    def __init__(self) -> None:
        self.ranks: dict[Rank, None] = {}
        self.below: dict[tuple[int, int], None] = {}


class _Rehearsed(Ranked):
    """The scores of one class, as far as they are known; what is not is guessed, and all questions noted."""

    def __init__(self, pair: Pair, label: int, digest: str, asked: _Asked) -> None:
        self.size, self.digest = pair[label].size, digest
        self._pair, self._label, self._asked = pair, label, asked

    def kth_smallest(self, k: int) -> float:
        """Return about the k-th smallest score."""
        self._asked.ranks[Rank(self._label, k)] = None
        return from_order_key(self._pair[self._label].guess(k))

    def count_below(self, threshold: float) -> int:
        """Return about how many scores are less than the threshold."""
        key = order_key(threshold)
        self._asked.below[self._label, key] = None
        return self._pair[self._label].count_below(key)

    def prefetch(self, ranks: Iterable[Rank]) -> None:
        """Do nothing: what is asked for is noted as it comes."""

    def kth_between(self, other: Ranked, low: float, high: float, share: float) -> float:
        """Return about the ceil(share m)-th smallest, or the first, of the m of both in [low, high]."""
        rank = self.rank_between(other, low, high, share)
        self._asked.ranks[rank] = None
        first, last = bounds(self._pair, rank)
        return from_order_key((first + last) // 2)


class Bracketed(Generic[T]):
    """What somebody makes of both classes of data that an engine counts; `answer` is exact in any case.

    `ask` is called with the classes until all that it asked for is known, first with guesses.
    """

    def __init__(self, counter: Counter, ask: Callable[[Ranked, Ranked], T]) -> None:
        self._counter = counter
        self._guess = guess = counter.guess()
        enough = guess.part == 1.0 or min(scores.size for scores in guess.classes) >= _ENOUGH
        self._shown = guess if enough else self.sample
        self._grids = [self._first(self._shown, ask)]
        cells, hash_sums = counter.count_all(self._grids[0])
        self.pair: Pair = (Spread.counted(cells, 0, 0), Spread.counted(cells, 1, 0))
        self.sizes = self.pair[0].size, self.pair[1].size
        self._digests = as_digest(hash_sums[0]), as_digest(hash_sums[1])
        self.answer = self._settled(ask)

    @cached_property
    def sample(self) -> Sample:
        """A random sample, drawn when it is first needed; all scores, if these are known."""
        return self._guess if self._guess.part == 1.0 else self._counter.sample()

    def _first(self, sample: Sample, ask: Callable[[Ranked, Ranked], T]) -> Grid:
        """Return the grid that suits what will be asked, as a sample suggests."""
        normal, anomalous = (Spread.estimated(scores, sample.part) for scores in sample.classes)
        asked, pair = _Asked(), (normal, anomalous)
        # a guess may break a rule that the scores keep
        with suppress(InputError):
            ask(*_rehearsed(pair, asked, (as_digest(0), as_digest(0))))
        return grid_around(pair, sample, asked.ranks, [key for _, key in asked.below])

    def _settled(self, ask: Callable[[Ranked, Ranked], T]) -> T:
        while True:
            asked = _Asked()
            refused: InputError | None = None
            try:
                answer = ask(*_rehearsed(self.pair, asked, self._digests))
            except InputError as error:
                refused = error
            wanted = self._open(asked)
            if wanted:
                self._narrow(wanted, near(self.pair, self._shown, asked.ranks))
            elif refused is not None:
                raise refused
            else:
                return answer

    def _open(self, asked: _Asked) -> list[_Chosen]:
        """Return the cells that must be looked into, in the order of asking."""
        found: dict[tuple[int, int], None] = {}
        near = []
        for rank in asked.ranks:
            low, high = bounds(self.pair, rank)
            if rank.label != BOTH and low < high:
                near.append((low, high))
                found |= self._within(rank.label, low, high)
        for label, key in asked.below:
            found |= {(label, origin): None for origin in self.pair[label].open_around(key)}
            # a threshold that was guessed: it will turn out to lie somewhere in the range of its rank
            for low, high in near:
                if low <= key <= high + 1:
                    found |= self._within(label, low, high)
        ranges = [spread.ranges for spread in self.pair]
        # a rank among all scores is counted from thresholds, and may still move by what is open there
        slack = sum(ranges[label][origin].scores for label, origin in found)
        for rank in asked.ranks:
            if rank.label == BOTH:
                first, last = max(1, rank.k - slack), min(rank.k + slack, sum(self.sizes))
                for ends, most in ((rank.k, rank.k), sum(self.sizes)), ((first, last), slack):
                    low, high = (bounds(self.pair, Rank(BOTH, end))[place] for place, end in enumerate(ends))
                    inside = self._within(0, low, high) | self._within(1, low, high)
                    # large cells wait until the rank is known to lie there
                    found |= {cell: None for cell in inside if ranges[cell[0]][cell[1]].scores <= most}
        return [(label, origin, ranges[label][origin]) for label, origin in found]

    def _within(self, label: int, low: int, high: int) -> dict[tuple[int, int], None]:
        return {(label, origin): None for origin in self.pair[label].open_within(low, high)}

    def _narrow(self, cells: list[_Chosen], listed: list[tuple[int, int]]) -> None:
        """Look into some of the cells that are wanted: list their scores, or count those of smaller cells."""
        large = [one for one in cells if one[2].scores > _FEW]
        number = (large or cells)[0][1] >> 32
        same = [cell for cell in cells if cell[1] >> 32 == number]
        # rather than listing them in several rounds
        many = len(same) <= _AT_ONCE and sum(cell[2].scores for cell in same) > _FEW
        if large or many:
            # small ones too, which would take a round of their own to be listed
            chosen = sorted(same, key=lambda one: -one[2].scores)[:_AT_ONCE]
            # a miss shows that the sample misleads
            grid = grid_within([cell[2] for cell in chosen], [] if number else listed)
            self._grids.append(grid)
            found = self._counter.count(grid, self._some(number, chosen))
            self._replace(chosen, found, len(self._grids) - 1)
            return
        rows = np.cumsum([cell[2].scores for cell in same])
        chosen = same[: min(_LISTED, max(1, int(np.searchsorted(rows, _FEW, "right"))))]
        self._replace(chosen, self._counter.gather(self._some(number, chosen)), -1)

    def _some(self, number: int, chosen: list[_Chosen]) -> Some:
        cells = [(label, origin & 0xFFFFFFFF) for label, origin, _ in chosen]
        return Some(self._grids[number], cells, merged([cell[2][:2] for cell in chosen]))

    def _replace(self, chosen: list[_Chosen], cells: Cells, number: int) -> None:
        """Put what was found in place of the cells that were looked into, if it can be the same scores."""
        pair = []
        for label, old in enumerate(self.pair):
            mine = sorted(cell[2] for cell in chosen if cell[0] == label)
            new = Spread.counted(cells, label, number)
            lows = np.array([one.low for one in mine], dtype=np.uint64)
            highs = np.array([one.high for one in mine], dtype=np.uint64)
            places = np.searchsorted(lows, new.low, "right") - 1
            if (places < 0).any() or (new.high > highs[places]).any():
                raise InputError(CHANGED)
            counted = np.bincount(places, weights=new.counts, minlength=len(mine))
            if counted.tolist() != [one.scores for one in mine]:
                raise InputError(CHANGED)
            gone = np.isin(old.origin, [cell[1] for cell in chosen if cell[0] == label])
            parts = [np.concatenate([a[~gone], b]) for a, b in zip(old, new, strict=True)]
            pair.append(Spread.of(parts[0], parts[1], parts[2], parts[4]))
        self.pair = pair[0], pair[1]


def _rehearsed(pair: Pair, asked: _Asked, digests: tuple[str, str]) -> tuple[Ranked, Ranked]:
    return _Rehearsed(pair, 0, digests[0], asked), _Rehearsed(pair, 1, digests[1], asked)
