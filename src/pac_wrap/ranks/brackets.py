"""Exact ranks of data that an engine counts: no score leaves it but the few around what is asked for.

The first scores say where to look, or a sample if they are of one class. The engine then counts, for each
class, the scores in some cells, and lists those of a few cells in full. Which cells matter is found by
rehearsal: whoever will ask is let loose on what is known so far, and what it asks for is noted.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from math import ceil, sqrt
from typing import Final, Generic, TypeVar

import numpy as np

from pac_wrap.base.floats import from_order_key, just_below, order_key, order_keys
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import as_digest, kernels
from pac_wrap.ranks.memory import Ranked
from pac_wrap.ranks.search import BOTH, CHANGED, Bounds, Rank
from pac_wrap.ranks.spread import (
    CHECK,
    GREATEST,
    LEAST,
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
# standard deviations of a sample's rank on both sides; a miss, once in 400 times, only costs another round
_MARGIN: Final = 3.0
# edges of cells that are placed one by one; an engine compares each score with six of them, by halving
_KNOTS: Final = 48
_GIVEN: Final = 4
# so few edges suffice by themselves: an engine adds up what lies between them, without looking for cells
_EDGES: Final = 12
# a score that occurs more often than this among the first is shared by many
_OFTEN: Final = 7
# the first scores say nothing if a class has fewer of them
_SHOWN: Final = 16
# cells between the edges, in all
_CELLS: Final = 1 << 12
_MOST_CELLS: Final = 1 << 17
# up to this many scores are listed rather than counted once more, of so many cells: 4 MB
_FEW: Final = 3 << 17
_LISTED: Final = 1 << 12
# ranges that an engine compares scores with before it looks for their cells
_RANGES: Final = 8
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
        shown = guess.part == 1.0 or min(scores.size for scores in guess.classes) >= _SHOWN
        self._grids = [_grid_around(guess if shown else self.sample, ask)]
        cells, hash_sums = counter.count_all(self._grids[0])
        self.pair: Pair = (Spread.counted(cells, 0, 0), Spread.counted(cells, 1, 0))
        self._checks = cells.checks or {}
        self.sizes = self.pair[0].size, self.pair[1].size
        self._digests = as_digest(hash_sums[0]), as_digest(hash_sums[1])
        self.answer = self._settled(ask)

    @cached_property
    def sample(self) -> Sample:
        """A random sample, drawn when it is first needed; all scores, if these are known."""
        return self._guess if self._guess.part == 1.0 else self._counter.sample()

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
                self._narrow(wanted)
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

    def _narrow(self, cells: list[_Chosen]) -> None:
        """Look into some of the cells that are wanted: list their scores, or count those of smaller cells."""
        large = [one for one in cells if one[2].scores > _FEW]
        number = (large or cells)[0][1] >> 32
        same = [cell for cell in cells if cell[1] >> 32 == number]
        # rather than listing them in several rounds
        many = len(same) <= _KNOTS // 4 and sum(cell[2].scores for cell in same) > _FEW
        if large or many:
            # small ones too, which would take a round of their own to be listed
            chosen = sorted(same, key=lambda one: -one[2].scores)[: _KNOTS // 4]
            grid = _grid_within([cell[2] for cell in chosen])
            self._grids.append(grid)
            found = self._counter.count(grid, self._some(number, chosen))
            self._replace(chosen, found, len(self._grids) - 1)
            return
        rows = np.cumsum([cell[2].scores for cell in same])
        chosen = same[: min(_LISTED, max(1, int(np.searchsorted(rows, _FEW, "right"))))]
        self._replace(chosen, self._counter.gather(self._some(number, chosen)), -1)

    def _some(self, number: int, chosen: list[_Chosen]) -> Some:
        cells = [(label, origin & 0xFFFFFFFF) for label, origin, _ in chosen]
        return Some(self._grids[number], cells, _merged([cell[2][:2] for cell in chosen]))

    def _replace(self, chosen: list[_Chosen], cells: Cells, number: int) -> None:
        """Put what was found in place of the cells that were looked into, if it can be the same scores."""
        self._check(chosen, cells, number)
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

    def _check(self, chosen: list[_Chosen], cells: Cells, number: int) -> None:
        """Refuse listed scores whose hashes do not add up to those of the cells that they came from."""
        keys = order_keys(cells.least)
        for origin, (low, high, _) in {cell[1]: cell[2] for cell in chosen}.items():
            check = self._checks.pop(origin, None)
            classes = {label for label, one in enumerate(self.pair) if origin in one.origin}
            if check is None or number >= 0 or classes > {cell[0] for cell in chosen if cell[1] == origin}:
                continue
            mine = (np.uint64(low) <= keys) & (keys <= np.uint64(high))
            if (kernels().mix(np.repeat(cells.least[mine], cells.counts[mine])) - check) % CHECK:
                raise InputError(CHANGED)


def _rehearsed(pair: Pair, asked: _Asked, digests: tuple[str, str]) -> tuple[Ranked, Ranked]:
    return _Rehearsed(pair, 0, digests[0], asked), _Rehearsed(pair, 1, digests[1], asked)


def _grid_around(sample: Sample, ask: Callable[[Ranked, Ranked], object]) -> Grid:
    """Return a grid that is fine where, as a sample suggests, the ranks lie that will be asked for."""
    low, high = (Spread.estimated(scores, sample.part) for scores in sample.classes)
    asked, pair = _Asked(), (low, high)
    # a guess may break a rule that the scores keep
    with suppress(InputError):
        ask(*_rehearsed(pair, asked, (as_digest(0), as_digest(0))))
    brackets = _united(_bracket(pair, rank, sample) for rank in asked.ranks)
    ends = [end for low, high in brackets for end in (low, high + 1)]
    # a threshold that was given is asked for as it is
    given = [key for _, key in asked.below if not any(low <= key <= high + 1 for low, high in brackets)]
    if len(ends) + len(given) <= _EDGES and (sample.part == 1.0 or not _shared(pair, brackets)):
        return Grid.of([*ends, *given], lambda low, high: False, 1)
    if len(ends) > _KNOTS:
        ends = [ends[place] for place in np.linspace(0, len(ends) - 1, _KNOTS).astype(int)]
    cells = min(max(_CELLS, 64 * len(asked.ranks)), _MOST_CELLS)

    def fine(low: int, high: int) -> bool:
        return any(low <= last and first < high for first, last in brackets)

    return Grid.of([*ends, *given[:_GIVEN]], fine, cells)


def _shared(pair: Pair, brackets: list[tuple[int, int]]) -> bool:
    """Return whether many rows share a score within brackets, which cells tell from others unlisted."""
    often = (one.high[_OFTEN:][one.high[_OFTEN:] == one.high[:-_OFTEN]] for one in pair)
    return any(((low <= keys) & (keys <= high)).any() for keys in often for low, high in brackets)


def _bracket(pair: Pair, rank: Rank, sample: Sample) -> tuple[int, int]:
    """Return two keys that the score at a rank very likely lies between."""
    sizes, points = [one.size for one in pair], [scores.size for scores in sample.classes]
    size, taken, k = rank.of(sizes), rank.of(points), rank.k
    margin = 0
    if sample.part < 1.0:
        margin = ceil(_MARGIN * sqrt(k * (size - k) / taken) + 2 * size / taken)
    low = LEAST if k <= margin else bounds(pair, Rank(rank.label, k - margin))[0]
    high = GREATEST if k + margin > size else bounds(pair, Rank(rank.label, k + margin))[1]
    return low, high


def _grid_within(ranges: list[Range]) -> Grid:
    """Return a grid that divides some ranges evenly by their keys, whatever lies between them."""
    knots, parts = [], _KNOTS // len(ranges)
    for low, high, _ in ranges:
        steps = min(parts - 1, high + 1 - low)
        knots += [low + (high + 1 - low) * step // steps for step in range(steps + 1)]
    return Grid.of(knots, lambda low, high: any(one.low <= low <= one.high for one in ranges), _CELLS)


def _united(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same keys as ranges that do not meet, in order."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def _merged(ranges: Iterable[tuple[int, int]]) -> Bounds:
    """Return a few pairs of scores that all ranges lie between; the widest gaps are left out."""
    united = _united(ranges)
    gaps = sorted(range(1, len(united)), key=lambda place: united[place - 1][1] - united[place][0])
    starts = [0, *sorted(gaps[: _RANGES - 1]), len(united)]
    # one below, since some order -0.0 before 0.0
    return tuple(
        (just_below(from_order_key(united[first][0])), from_order_key(united[last - 1][1]))
        for first, last in pairwise(starts)
    )
