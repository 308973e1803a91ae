"""Where scores lie that an engine counts: so many in each cell of a grid, from the least to the greatest."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, ScoreType
from pac_wrap.base.floats import Bits, from_order_key, order_key, order_keys
from pac_wrap.errors import InputError
from pac_wrap.ranks.search import BOTH, CHANGED, Bounds, Rank

Counts = NDArray[np.int64]
LEAST, GREATEST = order_key(-inf), order_key(inf)


class Sample(NamedTuple):
    """Some scores of both classes, and what part they are of all; 1 if they are all there are."""

    classes: tuple[Scores, Scores]
    part: float


class Piece(NamedTuple):
    """The cells from one knot to the next: the number of the first, how many, and how many per unit.

    A score has the number first + min(floor((score - low) * scale), cells - 1); the scale of one cell is 0.
    Where there are 0 cells, all have the number of the first, and each different score is a cell of its own.
    """

    low: float
    scale: float
    first: int
    cells: int


class Grid(NamedTuple):
    """Cells in the order of the scores: below the first knot, from each to the next so many, and beyond.

    A cell is told by its number. Engines need only agree with themselves about it: a greater score must not
    have a smaller number.

    >>> [piece.first for piece in Grid((0.0, 1.0), (4,)).pieces]
    [1, 5]
    """

    knots: tuple[float, ...]
    cells: tuple[int, ...]

    @property
    def pieces(self) -> Iterator[Piece]:
        """The cells from each knot on."""
        first = 1
        for (low, high), cells in zip(pairwise(self.knots), self.cells, strict=True):
            yield Piece(low, cells / (high - low) if cells > 1 else 0.0, first, cells)
            first += max(1, cells)
        if self.knots:
            yield Piece(self.knots[-1], 0.0, first, 1)

    @classmethod
    def of(
        cls,
        keys: Iterable[int],
        fine: Callable[[int, int], bool],
        cells: int,
        listed: Iterable[tuple[int, int]] = (),
    ) -> "Grid":
        """Return the grid with knots at some keys; the pieces that must be fine share so many cells.

        The others have one each, as have those whose ends are too close, or too far apart. Within ranges of
        keys that are to be listed each score has its own.
        """
        ends = [end for low, high in listed for end in (low, high + 1)]
        ordered = sorted({key for key in (*keys, *ends) if LEAST < key <= GREATEST})
        knots = tuple(map(from_order_key, ordered))
        chosen = [fine(*pair) for pair in pairwise(ordered)]
        each = max(1, cells // max(1, sum(chosen)))
        found = []
        for (low, high), one in zip(pairwise(knots), chosen, strict=True):
            # a width of zero: two numbers that the processor takes for zero
            fits = 0.0 < high - low < inf and each / (high - low) < inf
            found.append(each if one and fits else 1)
        for place, key in enumerate(ordered[:-1]):
            if any(low <= key <= high for low, high in listed):
                found[place] = 0
        return cls(knots, tuple(found))

    @property
    def listed(self) -> list[tuple[float, float]]:
        """The knots between which each different score is a cell of its own, the second not included."""
        return [ends for ends, cells in zip(pairwise(self.knots), self.cells, strict=True) if not cells]


class Cells(NamedTuple):
    """What an engine counted: class, number of the cell, scores in it, and the least and greatest of them.

    Scores that are listed in full have a cell each, of any number. Without `ends`, the least and greatest
    are only those that a cell might hold.
    """

    labels: Counts
    numbers: Counts
    counts: Counts
    least: Scores
    greatest: Scores
    ends: bool = True


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
        """Return the first scores that can be had; they may differ from the others, and the part is a guess.

        A part of 1 is none: these are all scores.
        """

    def sample(self) -> Sample:
        """Return a random sample of the scores."""

    def count_all(self, grid: Grid) -> tuple[Cells, tuple[int, int]]:
        """Return the cells that have scores, and the sums of hashes of both classes; refuse what is wrong."""

    def count(self, grid: Grid, within: Some) -> Cells:
        """Return the cells that have scores, of those that lie within some of another grid."""

    def gather(self, within: Some) -> Cells:
        """Return all different scores within some cells, each as a cell of its own."""


class Range(NamedTuple):
    """Keys from low to high, and how many scores have one of them."""

    low: int
    high: int
    scores: int


class Spread(NamedTuple):
    """Where the scores of a class lie: so many in each of some ranges of keys, in order.

    `origin` says of which cell a range came: a range of several scores comes with its two ends as ranges of
    their own.
    """

    low: Bits
    high: Bits
    counts: Counts
    up_to: Counts
    origin: Counts

    @classmethod
    def of(cls, low: Bits, high: Bits, counts: Counts, origin: Counts) -> "Spread":
        """Return ranges in order."""
        order = np.lexsort((high, low))
        counts = counts[order]
        return cls(low[order], high[order], counts, counts.cumsum(), origin[order])

    @classmethod
    def estimated(cls, scores: Scores, part: float) -> "Spread":
        """Return where all scores may lie, if these are so large a part of them."""
        high = np.sort(order_keys(scores))
        low = high if part == 1.0 else np.concatenate([high[:1], high[:-1]])
        ends = np.rint(np.arange(1, high.size + 1) / part).astype(np.int64)
        return cls(low, high, np.diff(ends, prepend=0), ends, np.full(high.size, -1))

    @classmethod
    def counted(cls, cells: Cells, label: int, grid: int) -> "Spread":
        """Return where the scores of a class lie, given its cells of the grid with a number."""
        mine = cells.labels == label
        low, high = order_keys(cells.least[mine]), order_keys(cells.greatest[mine])
        counts, origin = cells.counts[mine], (grid << 32) + cells.numbers[mine]
        if (counts < 1).any() or (low > high).any():
            raise InputError(CHANGED)
        if not cells.ends:
            return cls.of(low, high, counts, origin)
        if ((counts == 1) & (low < high)).any():
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
        """The least and greatest key, and how many scores, by cell."""
        origins, places = np.unique(self.origin, return_inverse=True)
        first = np.searchsorted(self.origin[order := np.argsort(self.origin, kind="stable")], origins)
        counts = np.bincount(places, weights=self.counts, minlength=origins.size)
        lows = self.low[order][first]
        high = np.maximum.reduceat(self.high[order], first) if first.size else lows
        parts = (origins.tolist(), lows.tolist(), high.tolist(), counts.astype(np.int64).tolist())
        return {origin: Range(low, high, scores) for origin, low, high, scores in zip(*parts, strict=True)}

    @property
    def size(self) -> int:
        """How many scores there are."""
        return int(self.up_to[-1]) if self.up_to.size else 0

    def at(self, k: int) -> Range:
        """Return the range of keys that holds the k-th smallest."""
        place = int(np.searchsorted(self.up_to, k))
        return Range(int(self.low[place]), int(self.high[place]), int(self.counts[place]))

    def guess(self, k: int) -> int:
        """Return a key near that of the k-th smallest, as if scores were spread evenly in their range."""
        low, high, count = self.at(k)
        return low + (high - low) * (2 * self.number(k) - 1) // (2 * count)

    def number(self, k: int) -> int:
        """Return the number of the k-th smallest among those of its range."""
        place = int(np.searchsorted(self.up_to, k))
        return k - int(self.up_to[place] - self.counts[place])

    def count_below(self, key: int) -> int:
        """Return about how many keys are less."""
        first, last = self.around(key)
        below = int(self.up_to[first - 1]) if first else 0
        for low, high, count in zip(
            *(part[first:last].tolist() for part in (self.low, self.high, self.counts)), strict=True
        ):
            # number j lies at low + (high - low) (2 j - 1) / (2 count)
            below += min(count, (2 * count * (key - low) // max(1, high - low) + 1) // 2)
        return below

    def around(self, key: int) -> tuple[int, int]:
        """Return the first and one after the last of the ranges with keys on both sides: below, and not."""
        if key > GREATEST:
            return self.low.size, self.low.size
        return int(np.searchsorted(self.high, np.uint64(key))), int(np.searchsorted(self.low, np.uint64(key)))

    def open_within(self, low: int, high: int) -> list[int]:
        """Return of which cells those ranges came that are no single score and meet some keys."""
        first = int(np.searchsorted(self.high, np.uint64(low)))
        last = int(np.searchsorted(self.low, np.uint64(high), "right"))
        return self._open(first, last)

    def open_around(self, key: int) -> list[int]:
        """Return the same for ranges with keys on both sides of this one."""
        return self._open(*self.around(key))

    def _open(self, first: int, last: int) -> list[int]:
        part = slice(first, last)
        found: list[int] = self.origin[part][self.low[part] < self.high[part]].tolist()
        return found


Pair = tuple[Spread, Spread]


def bounds(pair: Pair, rank: Rank) -> tuple[int, int]:
    """Return two keys that the score at a rank lies between; where they are equal, it is known."""
    if rank.label != BOTH:
        return pair[rank.label].at(rank.k)[:2]
    counts = np.concatenate([one.counts for one in pair])
    ends = []
    for keys in (np.concatenate([one.low for one in pair]), np.concatenate([one.high for one in pair])):
        order = np.argsort(keys, kind="stable")
        ends.append(int(keys[order[np.searchsorted(counts[order].cumsum(), rank.k)]]))
    return ends[0], ends[1]


def least_auc(pair: Pair) -> float:
    """Return what the AUC is at least, ties counting one half; both classes must have scores.

    >>> low, high = Spread.estimated(np.array([1.0, 2.0]), 1.0), Spread.estimated(np.array([2.0, 3.0]), 1.0)
    >>> least_auc((low, high))
    0.875
    """
    normal, anomalous = pair
    order = np.argsort(normal.high, kind="stable")
    up_to = np.concatenate([[0], normal.counts[order].cumsum()]).astype(np.float64)
    sure = sum(up_to[np.searchsorted(normal.high[order], anomalous.low, side)] for side in ("left", "right"))
    return float(anomalous.counts @ sure / (2.0 * normal.size * anomalous.size))
