"""Exact ranks of data that an engine counts: only the few scores around the needed ranks leave the engine.

The first scores, or a sample if they are of one class, guide the search. The engine then counts, for each
class, the scores in some cells, and lists those of a few cells in full. Which cells matter is found by
rehearsal: the request runs on what is known so far, and the ranks that it asks for are noted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from math import ceil, expm1, inf, log, log1p, sqrt
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import Bits, ScoreType, from_order_key, just_below, order_key, order_keys
from pac_wrap.errors import InputError
from pac_wrap.ranks.memory import Rank, Ranked
from pac_wrap.ranks.passes import CHANGED, Bounds, Parts, Unions

Counts = NDArray[np.int64]
KeyRanges = Iterable[tuple[int, int]]
LEAST, GREATEST = order_key(-inf), order_key(inf)


class Sample(NamedTuple):
    """Some scores of each part (class or kind), and their share of all scores; 1 if they are all."""

    classes: Sequence[Scores]
    part: float


class Piece(NamedTuple):
    """The cells from one knot to the next: the number of the first cell, the count, and the cells per unit.

    A score has the number first + min(floor((score - low) * scale), cells - 1); the scale of one cell is 0.
    With 0 cells, all scores have the number of the first cell, and each distinct score is its own cell.
    """

    low: float
    scale: float
    first: int
    cells: int


class Grid(NamedTuple):
    """Cells in the order of the scores: below the first knot, between knots, and beyond the last knot."""

    knots: tuple[float, ...]
    cells: tuple[int, ...]

    @property
    def pieces(self) -> Iterator[Piece]:
        first = 1
        for (low, high), cells in zip(pairwise(self.knots), self.cells, strict=True):
            yield Piece(low, cells / (high - low) if cells > 1 else 0.0, first, cells)
            first += max(1, cells)
        if self.knots:
            yield Piece(self.knots[-1], 0.0, first, 1)

    @classmethod
    def of(
        cls, keys: Iterable[int], fine: Callable[[int, int], bool], cells: int, listed: KeyRanges = ()
    ) -> "Grid":
        """Return the grid with knots at some keys; pieces that must be fine share a number of cells."""
        ends = [end for low, high in listed for end in (low, high + 1)]
        ordered = sorted({key for key in (*keys, *ends) if LEAST < key <= GREATEST})
        knots = tuple(map(from_order_key, ordered))
        chosen = [fine(*pair) for pair in pairwise(ordered)]
        each = max(1, cells // max(1, sum(chosen)))
        found = []
        for (low, high), one in zip(pairwise(knots), chosen, strict=True):
            # the width is zero for two numbers that the processor flushes to zero
            fits = 0.0 < high - low < inf and each / (high - low) < inf
            found.append(each if one and fits else 1)
        for place, key in enumerate(ordered[:-1]):
            if any(low <= key <= high for low, high in listed):
                found[place] = 0
        return cls(knots, tuple(found))

    @property
    def listed(self) -> list[tuple[float, float]]:
        """The pairs of knots between which each distinct score is its own cell, the second one excluded."""
        return [ends for ends, cells in zip(pairwise(self.knots), self.cells, strict=True) if not cells]


class Cells(NamedTuple):
    """Counted cells: class, number of the cell, scores in it, and the lowest and highest of them."""

    labels: Counts
    numbers: Counts
    counts: Counts
    least: Scores
    greatest: Scores


class Some(NamedTuple):
    """Some cells of a grid: pairs of a class and a number, and ranges of scores that hold them all."""

    grid: Grid
    cells: list[tuple[int, int]]
    bounds: Bounds


class Counter(Protocol):
    """Data in an engine that can count it."""

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores."""

    def guess(self) -> Sample:
        """Return the first available scores, and a guess of their share; 1 means that they are all."""

    def sample(self) -> Sample:
        """Return a random sample of the scores."""

    def count_all(self, grid: Grid) -> tuple[Cells, tuple[int, ...]]:
        """Return the cells that have scores, and the sum of hashes of each part; wrong data are refused."""

    def count(self, grid: Grid, within: Some) -> Cells:
        """Return the cells that have scores, among those within some cells of another grid."""

    def gather(self, within: Some) -> Cells:
        """Return all distinct scores within some cells, each as its own cell."""


class Range(NamedTuple):
    """Keys from low to high, and how many scores have one of them."""

    low: int
    high: int
    scores: int


class Spread(NamedTuple):
    """The distribution of a class's scores: counted ranges of keys, in order, and the cell of each."""

    low: Bits
    high: Bits
    counts: Counts
    up_to: Counts
    origin: Counts

    @classmethod
    def of(cls, low: Bits, high: Bits, counts: Counts, origin: Counts) -> "Spread":
        order = np.lexsort((high, low))
        counts = counts[order]
        return cls(low[order], high[order], counts, counts.cumsum(), origin[order])

    @classmethod
    def together(cls, spreads: "Sequence[Spread]") -> "Spread":
        if len(spreads) == 1:
            return spreads[0]
        low, high, counts, _, origin = (np.concatenate(parts) for parts in zip(*spreads, strict=True))
        return cls.of(low, high, counts, origin)

    @classmethod
    def estimated(cls, scores: Scores, part: float) -> "Spread":
        """Return the estimated spread of all scores, given some of them and their share."""
        high = np.sort(order_keys(scores))
        low = high if part == 1.0 else np.concatenate([high[:1], high[:-1]])
        ends = np.rint(np.arange(1, high.size + 1) / part).astype(np.int64)
        return cls(low, high, np.diff(ends, prepend=0), ends, np.full(high.size, -1))

    @classmethod
    def counted(cls, cells: Cells, label: int, grid: int) -> "Spread":
        """Return the spread of a class's scores, given its cells in the grid with this number."""
        mine = cells.labels == label
        low, high = order_keys(cells.least[mine]), order_keys(cells.greatest[mine])
        counts, origin = cells.counts[mine], (grid << 32) + cells.numbers[mine]
        if (counts < 1).any() or (low > high).any() or ((counts == 1) & (low < high)).any():
            raise InputError(CHANGED)
        wide = low < high
        one, inner = np.ones(int(wide.sum()), dtype=np.int64), wide & (counts > 2)
        return cls.of(
            np.concatenate([low[~wide], low[wide], high[wide], low[inner]]),
            np.concatenate([high[~wide], low[wide], high[wide], high[inner]]),
            np.concatenate([counts[~wide], one, one, counts[inner] - 2]),
            np.concatenate([origin[~wide], origin[wide], origin[wide], origin[inner]]),
        )

    @property
    def ranges(self) -> dict[int, Range]:
        """The lowest and highest key, and the number of scores, by cell."""
        origins, places = np.unique(self.origin, return_inverse=True)
        first = np.searchsorted(self.origin[order := np.argsort(self.origin, kind="stable")], origins)
        counts = np.bincount(places, weights=self.counts, minlength=origins.size)
        lows = self.low[order][first]
        high = np.maximum.reduceat(self.high[order], first) if first.size else lows
        parts = (origins.tolist(), lows.tolist(), high.tolist(), counts.astype(np.int64).tolist())
        return {origin: Range(low, high, scores) for origin, low, high, scores in zip(*parts, strict=True)}

    @property
    def size(self) -> int:
        return int(self.up_to[-1]) if self.up_to.size else 0

    def at(self, k: int) -> Range:
        """Return the range of keys that holds the k-th smallest."""
        place = int(np.searchsorted(self.up_to, k))
        return Range(int(self.low[place]), int(self.high[place]), int(self.counts[place]))

    def guess(self, k: int) -> int:
        """Return a key near the k-th smallest, as if the scores of a range were spread evenly."""
        low, high, count = self.at(k)
        return low + (high - low) * (2 * self.number(k) - 1) // (2 * count)

    def number(self, k: int) -> int:
        """Return the number of the k-th smallest among those of its range."""
        place = int(np.searchsorted(self.up_to, k))
        return k - int(self.up_to[place] - self.counts[place])

    def count_below(self, key: int) -> int:
        """Return approximately how many keys are less."""
        first, last = self.around(key)
        below = int(self.up_to[first - 1]) if first else 0
        ranges = (part[first:last].tolist() for part in (self.low, self.high, self.counts))
        for low, high, count in zip(*ranges, strict=True):
            # number j lies at low + (high - low) (2 j - 1) / (2 count)
            below += min(count, (2 * count * (key - low) // max(1, high - low) + 1) // 2)
        return below

    def around(self, key: int) -> tuple[int, int]:
        """Return the first, and one after the last, of the ranges with keys on both sides of a key."""
        if key > GREATEST:
            return self.low.size, self.low.size
        return int(np.searchsorted(self.high, np.uint64(key))), int(np.searchsorted(self.low, np.uint64(key)))

    def open_within(self, low: int, high: int) -> list[int]:
        """Return the cells of ranges with more than one score that overlap the keys from low to high."""
        first = int(np.searchsorted(self.high, np.uint64(low)))
        part = slice(first, int(np.searchsorted(self.low, np.uint64(high), "right")))
        return list(self.origin[part][self.low[part] < self.high[part]].tolist())


Spreads = Sequence[Spread]


def bounds(spreads: Spreads, rank: Rank) -> tuple[int, int]:
    """Return two keys between which the score at a rank lies; if they are equal, it is known."""
    if isinstance(rank.label, int):
        return spreads[rank.label].at(rank.k)[:2]
    some = [spreads[one] for one in rank.label]
    counts = np.concatenate([one.counts for one in some])
    ends = []
    for keys in (np.concatenate([one.low for one in some]), np.concatenate([one.high for one in some])):
        order = np.argsort(keys, kind="stable")
        ends.append(int(keys[order[np.searchsorted(counts[order].cumsum(), rank.k)]]))
    return ends[0], ends[1]


def least_auc(normal: Spread, anomalous: Spread) -> float:
    """Return a lower bound of the AUC, ties counting one half; both classes must have scores."""
    order = np.argsort(normal.high, kind="stable")
    up_to = np.concatenate([[0], normal.counts[order].cumsum()]).astype(np.float64)
    sure = sum(up_to[np.searchsorted(normal.high[order], anomalous.low, side)] for side in ("left", "right"))
    return float(anomalous.counts @ sure / (2.0 * normal.size * anomalous.size))


# standard deviations of a sample's rank on both sides; a miss, once in 400 times, only costs another round
_MARGIN: Final = 3.0
# edges of cells that are placed one by one; an engine compares each score with six of them, by halving
_KNOTS: Final = 48
_GIVEN: Final = 4
# with so few edges, an engine adds up the scores between them without looking for cells
_EDGES: Final = 12
# a score that occurs more often than this among the first is shared by many
_OFTEN: Final = 7
# cells between the edges, in all
_CELLS: Final = 1 << 12
_MOST_CELLS: Final = 1 << 17
# around a rank this part of a cell's scores, and this many standard deviations, are listed on either side;
# only for a few ranks, and no more scores than these: 4 MB
_NEARER: Final = 128
_SPREAD: Final = 3.0
_NEAR_RANKS: Final = 4
_NEAR: Final = 1 << 17
# ranges that an engine compares scores with before it looks for their cells
_RANGES: Final = 8


def grid_around(pair: Spreads, sample: Sample, ranks: Iterable[Rank], below: Iterable[int]) -> Grid:
    """Return a grid that is fine where a sample puts the scores at some ranks, with knots at some keys."""
    ranks = [*ranks]
    brackets = _united(_bracket(pair, rank, sample) for rank in ranks)
    ends = [end for low, high in brackets for end in (low, high + 1)]
    # a given threshold is counted as it is
    given = [key for key in below if not any(low <= key <= high + 1 for low, high in brackets)]
    if len(ends) + len(given) <= _EDGES:
        # cells separate scores that many rows share from others without listing them
        often = [one.high[_OFTEN:][one.high[_OFTEN:] == one.high[:-_OFTEN]] for one in pair]
        shared = (((low <= keys) & (keys <= high)).any() for keys in often for low, high in brackets)
        if sample.part == 1.0 or not any(shared):
            return Grid.of([*ends, *given], lambda low, high: False, 1)
    if len(ends) > _KNOTS:
        ends = [ends[place] for place in np.linspace(0, len(ends) - 1, _KNOTS).astype(int)]
    cells = min(max(_CELLS, 64 * len(ranks)), _MOST_CELLS)
    knots = [*ends, *given[:_GIVEN]]
    return Grid.of(knots, lambda low, high: any(low <= b and a < high for a, b in brackets), cells)


def near(pair: Spreads, sample: Sample, ranks: Iterable[Rank]) -> list[tuple[int, int]]:
    """Return small ranges of keys that very likely hold the scores at a few ranks."""
    cells = []
    for label, k in ranks:
        if not isinstance(label, int):
            continue
        cell = pair[label].at(k)
        if 0.0 < from_order_key(cell.high) - from_order_key(cell.low) < inf:
            cells.append((cell, pair[label].number(k), sample.classes[label]))
    if len(cells) > _NEAR_RANKS:
        return []
    found = _united(_around(*cell) for cell in cells)
    scores = sum(one.count_below(high + 1) - one.count_below(low) for low, high in found for one in pair)
    return found if scores <= _NEAR else []


def _around(cell: Range, number: int, scores: Scores) -> tuple[int, int]:
    """Return two keys around the score of some number in a cell, given a sample of its class."""
    # the density there is modelled as exp(slope t), t from 0 to 1, estimated from the scores on both sides
    low, high = from_order_key(cell.low), from_order_key(cell.high)
    width = 2.0 * (high - low)
    before, after = (
        1 + np.count_nonzero((left <= scores) & (scores < right))
        for left, right in ((low - width, low), (high, high + width))
    )
    # the middles of both sides are three cells apart
    slope = log(after / before) / 3.0 or 1e-9
    # a share has a standard deviation of at most 1 / (2 sqrt(n))
    away = 1.0 / _NEARER + _SPREAD / (2.0 * sqrt(cell.scores))
    ends = []
    for share in (number / cell.scores - away, number / cell.scores + away):
        place = log1p(min(max(share, 0.0), 1.0) * expm1(slope)) / slope
        ends.append(order_key(low + place * (high - low)))
    return max(ends[0], cell.low), min(ends[1], cell.high)


def _bracket(pair: Spreads, rank: Rank, sample: Sample) -> tuple[int, int]:
    """Return two keys between which the score at a rank very likely lies."""
    sizes, points = [one.size for one in pair], [scores.size for scores in sample.classes]
    size, taken, k = rank.of(sizes), rank.of(points), rank.k
    margin = 0
    if sample.part < 1.0:
        margin = ceil(_MARGIN * sqrt(k * (size - k) / taken) + 2 * size / taken)
    low = LEAST if k <= margin else bounds(pair, Rank(rank.label, k - margin))[0]
    high = GREATEST if k + margin > size else bounds(pair, Rank(rank.label, k + margin))[1]
    return low, high


def grid_within(ranges: list[Range], listed: list[tuple[int, int]]) -> Grid:
    """Return a grid that divides some ranges evenly by their keys, or lists some of their scores."""
    if listed:
        ends = [end for low, high, _ in ranges for end in (low, high + 1)]
        return Grid.of(ends, lambda low, high: False, 1, listed)
    knots, parts = [], _KNOTS // len(ranges)
    for low, high, _ in ranges:
        steps = min(parts - 1, high + 1 - low)
        knots += [low + (high + 1 - low) * step // steps for step in range(steps + 1)]
    return Grid.of(knots, lambda low, high: any(one.low <= low <= one.high for one in ranges), _CELLS)


def _united(ranges: KeyRanges) -> list[tuple[int, int]]:
    """Return ranges of keys joined so that no two meet, in order."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def merged(ranges: KeyRanges) -> Bounds:
    """Return a few pairs of scores that all ranges lie between; the widest gaps are left out."""
    united = _united(ranges)
    gaps = sorted(range(1, len(united)), key=lambda place: united[place - 1][1] - united[place][0])
    starts = [0, *sorted(gaps[: _RANGES - 1]), len(united)]
    # one below, since some order -0.0 before 0.0
    return tuple(
        (just_below(from_order_key(united[first][0])), from_order_key(united[last - 1][1]))
        for first, last in pairwise(starts)
    )


T = TypeVar("T")
# the first scores are not used if a class has fewer of them
_ENOUGH: Final = 16
# up to this many scores, of this many cells, are listed rather than counted again: 4 MB
_FEW: Final = 3 << 17
_LISTED: Final = 1 << 12
# cells whose scores are counted at once
_AT_ONCE: Final = 12
_Chosen = tuple[int, int, Range]


class _Rehearsal(Parts):
    """Answers that are known so far, or guessed; it notes the requested ranks and the keys to count below."""

    def __init__(self, spreads: Spreads, hash_sums: Sequence[int]) -> None:
        super().__init__([one.size for one in spreads], hash_sums)
        self.ranks: dict[Rank, None] = {}
        self.below: dict[tuple[int, int], None] = {}
        self._spreads = spreads

    def score(self, rank: Rank) -> float:
        self.ranks[rank] = None
        if isinstance(rank.label, int):
            return from_order_key(self._spreads[rank.label].guess(rank.k))
        first, last = bounds(self._spreads, rank)
        return from_order_key((first + last) // 2)

    def count_below(self, parts: tuple[int, ...], threshold: float) -> int:
        key = order_key(threshold)
        self.below |= dict.fromkeys((part, key) for part in parts)
        return sum(self._spreads[part].count_below(key) for part in parts)

    def find(self, ranks: Iterable[Rank]) -> None:
        """Do nothing, since ranks are noted when they are requested."""


class Bracketed(Generic[T]):
    """The exact answer of `ask`, called as often as needed, on parts of data that an engine counts."""

    def __init__(self, counter: Counter, of: Unions, ask: Callable[[Sequence[Ranked]], T]) -> None:
        self._counter = counter
        self._guess = guess = counter.guess()
        enough = guess.part == 1.0 or min(scores.size for scores in guess.classes) >= _ENOUGH
        shown = guess if enough else self.sample
        spreads = [Spread.estimated(scores, shown.part) for scores in shown.classes]
        asked = _Rehearsal(spreads, (0,) * len(spreads))
        # a guess may violate a rule that the true scores satisfy
        with suppress(InputError):
            ask(asked.ranked(of))
        self._grids = [grid_around(spreads, shown, asked.ranks, [key for _, key in asked.below])]
        cells, hash_sums = counter.count_all(self._grids[0])
        self.spreads = [Spread.counted(cells, part, 0) for part in range(len(hash_sums))]
        while True:
            asked, refused = _Rehearsal(self.spreads, hash_sums), None
            try:
                self.answer = ask(asked.ranked(of))
            except InputError as error:
                refused = error
            if not (wanted := self._open(asked)):
                break
            self._narrow(wanted, near(self.spreads, shown, asked.ranks))
        if refused is not None:
            raise refused

    @cached_property
    def sample(self) -> Sample:
        """A random sample, drawn when it is first needed; all scores, if these are known."""
        return self._guess if self._guess.part == 1.0 else self._counter.sample()

    def _open(self, asked: _Rehearsal) -> list[_Chosen]:
        """Return the cells that must be examined, in the order in which they were needed."""
        found: dict[tuple[int, int], None] = {}
        near = []
        for rank in asked.ranks:
            low, high = bounds(self.spreads, rank)
            if isinstance(rank.label, int) and low < high:
                near.append((low, high))
                found |= self._within(rank.label, low, high)
        for label, key in asked.below:
            found |= self._within(label, key, key - 1)
            # a threshold that was guessed: it will turn out to lie somewhere in the range of its rank
            for low, high in near:
                if low <= key <= high + 1:
                    found |= self._within(label, low, high)
        ranges = [spread.ranges for spread in self.spreads]
        # a rank among several parts may be counted from thresholds, and may still move by what is open there
        slack = sum(ranges[label][origin].scores for label, origin in found)
        for rank in asked.ranks:
            if isinstance(rank.label, int):
                continue
            size = sum(self.spreads[part].size for part in rank.label)
            first, last = max(1, rank.k - slack), min(rank.k + slack, size)
            for ends, most in ((rank.k, rank.k), size), ((first, last), slack):
                low, high = (bounds(self.spreads, Rank(rank.label, end))[at] for at, end in enumerate(ends))
                for part in rank.label:
                    # large cells wait until the rank is known to lie there
                    inside = self._within(part, low, high)
                    found |= {cell: None for cell in inside if ranges[part][cell[1]].scores <= most}
        return [(label, origin, ranges[label][origin]) for label, origin in found]

    def _within(self, label: int, low: int, high: int) -> dict[tuple[int, int], None]:
        return {(label, origin): None for origin in self.spreads[label].open_within(low, high)}

    def _narrow(self, cells: list[_Chosen], listed: list[tuple[int, int]]) -> None:
        """Examine some of the wanted cells: list their scores, or count the scores of smaller cells."""
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
        """Replace the examined cells by what was found in them, if that can be the same scores."""
        spreads = []
        for label, old in enumerate(self.spreads):
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
            spreads.append(Spread.of(parts[0], parts[1], parts[2], parts[4]))
        self.spreads = spreads
