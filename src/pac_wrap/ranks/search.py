"""Exact ranks of data that does not fit: ranges of keys are counted and refined until each rank is alone.

    search = RankSearch.begin(total(survey(*piece) for piece in pieces), wanted)
    while not search.done:
        search = search.advance(total(search(*piece) for piece in pieces))

A search is small, can be pickled, and is called with each piece of the data wherever that lives; what it
returns adds up in any order. Four passes suffice for 16 ranks, whatever the scores; two or three are usual.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import Bits, from_order_key, just_below, order_key, order_keys
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import as_digest, kernels
from pac_wrap.ranks.plain import BITS

Bounds = tuple[tuple[float, float], ...]
CHANGED: Final = "the scores changed between two passes; give the same ones every time"

# leading bits from here on belong to negative numbers
_MINUS: Final = 1 << BITS - 1
_COUNTERS: Final = 1 << 20
# up to this many keys are gathered and sorted rather than counted once more
_FEW: Final = 1 << 18
_CHUNK: Final = 1 << 17
_LEAST, _GREATEST = order_key(-inf), order_key(inf)
# the label of both classes together
BOTH: Final = (0, 1)


@dataclass(frozen=True, slots=True)
class Survey:
    """How many scores of each part begin with each of 2^16 bit patterns, and their digests; surveys add up.

    The parts are the two classes, or their kinds, those of normal points first.

    >>> both = survey(np.array([1.0, 2.0]), np.zeros(0)) + survey(np.array([4.0]), np.array([2.0, 8.0]))
    >>> both.sizes
    (3, 2)
    """

    counts: NDArray[np.int64]
    hash_sums: tuple[int, ...]

    def __add__(self, other: "Survey") -> "Survey":
        sums = tuple(a + b for a, b in zip(self.hash_sums, other.hash_sums, strict=True))
        return Survey(self.counts + other.counts, sums)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many scores each part has."""
        return tuple(self.counts.sum(axis=1).tolist())

    @property
    def digests(self) -> tuple[str, ...]:
        """The digest of each part."""
        return tuple(map(as_digest, self.hash_sums))

    @property
    def ordered(self) -> NDArray[np.int64]:
        """The counts in the order of the scores: those of negative numbers turn around."""
        return np.concatenate([self.counts[:, : _MINUS - 1 : -1], self.counts[:, :_MINUS]], axis=1)

    def largest_auc(self, normal: Sequence[int] = (0,), anomalous: Sequence[int] = (1,)) -> float:
        """Return what the AUC of some parts is at most: all scores of one range count for the anomaly.

        >>> survey(np.array([1.0, 2.0]), np.array([1.0])).largest_auc()
        0.5
        """
        ordered = self.ordered.astype(np.float64)
        low, high = (ordered[list(parts)].sum(axis=0) for parts in (normal, anomalous))
        return float(high @ np.cumsum(low) / (low.sum() * high.sum()))


def survey(*parts: Scores) -> Survey:
    """Return the survey of one piece of the data; NaN must not occur.

    >>> survey(np.array([1.0, 2.0]), np.zeros(0)).sizes
    (2, 0)
    """
    counts = np.zeros((len(parts), 1 << BITS), dtype=np.int64)
    return Survey(counts, tuple(map(kernels().count_leading, parts, counts)))


def within(scores: NDArray[Any], bounds: Bounds) -> NDArray[np.bool_]:
    """Return which scores lie between the scores of some pair.

    >>> within(np.array([1.0, 2.0, 3.0]), ((0.0, 1.0), (2.5, 3.0))).tolist()
    [True, False, True]
    """
    found = np.zeros(scores.shape, dtype=bool)
    for low, high in bounds:
        found |= (scores >= low) & (scores <= high)
    return found


class Rank(NamedTuple):
    """A wanted rank: the k-th smallest, counting from 1, of class 0 (normal) or 1 (anomalous), or of both.

    Where classes are divided, the label is the number of a part, or those of several parts.
    """

    label: int | tuple[int, ...]
    k: int

    @property
    def labels(self) -> tuple[int, ...]:
        """The numbers of the parts that count."""
        return self.label if isinstance(self.label, tuple) else (self.label,)

    def of(self, parts: Any) -> Any:
        """Return what counts for this rank, of a number or an array for each part."""
        return parts[self.label] if isinstance(self.label, int) else sum(parts[one] for one in self.label)


class ScoreAtRank(NamedTuple):
    """The score at a rank, and for each part how many scores lie below it and how many equal it."""

    score: float
    below: tuple[int, ...]
    equal: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """What a search counts, or gathers at the end, in one piece of the data; counts add up."""

    counts: NDArray[np.int64]
    keys: tuple[Bits, ...]

    def __add__(self, other: "KeyCounts") -> "KeyCounts":
        # one array each, so that a sum is no larger for having come from many pieces
        keys = tuple(np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True))
        return KeyCounts(self.counts + other.counts, keys)


class _Range(NamedTuple):
    """Keys that share their leading bits, with how many of each part lie below and inside."""

    top: int
    below: tuple[int, ...]
    inside: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankSearch:
    """The search for the scores at some ranks of some parts; see the module for how it is driven.

    Each range holds the keys that agree in all but their last `width` bits.

    >>> normal, anomalous = np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0])
    >>> search = RankSearch.begin(survey(normal, anomalous), [Rank(0, 3), Rank(1, 1)])
    >>> search = search.advance(search(normal, anomalous))
    >>> search.done, search.found[Rank(1, 1)]
    (True, ScoreAtRank(score=2.0, below=(1, 0), equal=(1, 1)))
    """

    width: int
    ranges: tuple[_Range, ...]
    wanted: tuple[tuple[Rank, int], ...]
    found: dict[Rank, ScoreAtRank] = field(default_factory=dict)

    @classmethod
    def begin(cls, survey: Survey, ranks: Iterable[Rank]) -> "RankSearch":
        """Return the search after the first pass, which was the survey."""
        for rank in (ranks := sorted(set(ranks), key=lambda rank: (rank.labels, rank.k))):
            if not 1 <= rank.k <= rank.of(survey.sizes):
                raise InputError(f"rank must be 1 to {rank.of(survey.sizes):,}, got {rank.k:,}")
        everything = _Range(0, (0,) * len(survey.sizes), survey.sizes)
        whole = cls(64, (everything,), tuple((rank, 0) for rank in ranks))
        return whole._narrow(survey.ordered[:, np.newaxis, :], BITS)

    @property
    def done(self) -> bool:
        """Whether every rank is found."""
        return not self.wanted

    @property
    def gathers(self) -> bool:
        """Whether the next pass gathers the keys themselves, since they are few, and is the last."""
        return sum(sum(one.inside) for one in self.ranges) <= _FEW

    @property
    def bits(self) -> int:
        """How many more bits the next pass tells apart: 16, or fewer where many ranges share the counters."""
        return min(BITS, self.width, max(1, (_COUNTERS // len(self.ranges)).bit_length() - 1))

    @property
    def bounds(self) -> Bounds:
        """Pairs of scores between which all lie that the next pass looks at; it needs no others."""
        found: list[tuple[float, float]] = []
        # the ranks of one part lie close together, those of another somewhere else
        for label in dict.fromkeys(rank.label for rank, _ in self.wanted):
            places = [place for rank, place in self.wanted if rank.label == label]
            low = self.ranges[min(places)].top << self.width
            high = (self.ranges[max(places)].top + 1 << self.width) - 1
            # beyond the infinities lie the keys of NaN; one below, since some order -0.0 before 0.0
            least, greatest = from_order_key(max(low, _LEAST)), from_order_key(min(high, _GREATEST))
            found.append((just_below(least), greatest))
        return tuple(found)

    def __call__(self, *parts: Scores) -> KeyCounts:
        """Return what the next pass wants to know of one piece of the data; NaN must not occur."""
        shape = (len(parts), len(self.ranges), 1 if self.gathers else 1 << self.bits)
        counts = np.zeros(shape, dtype=np.int64)
        none = np.zeros(0, dtype=np.uint64)
        gathered = [[none] for _ in parts]
        tops = np.array([one.top for one in self.ranges], dtype=np.uint64)
        bounds = self.bounds
        for label, scores in enumerate(parts):
            for start in range(0, scores.size, _CHUNK):
                chunk = scores[start : start + _CHUNK]
                # most scores lie beyond all ranges, and comparisons are cheaper than keys
                near = chunk[within(chunk, bounds)]
                keys, places = self._inside(order_keys(near), tops)
                if self.gathers:
                    gathered[label].append(keys)
                else:
                    places <<= self.bits
                    rest = keys >> np.uint64(self.width - self.bits)
                    rest &= np.uint64((1 << self.bits) - 1)
                    places += rest.view(np.int64)
                counts[label] += np.bincount(places, minlength=shape[1] * shape[2]).reshape(shape[1:])
        return KeyCounts(counts, tuple(map(np.concatenate, gathered)))

    def advance(self, counts: KeyCounts) -> "RankSearch":
        """Return the search after a pass, given the sum of what all pieces returned."""
        inside = [one.inside for one in self.ranges]
        if counts.counts.sum(axis=2).T.tolist() != [list(pair) for pair in inside]:
            raise InputError(CHANGED)
        return self._sorted(counts) if self.gathers else self._narrow(counts.counts, self.bits)

    def _inside(self, keys: Bits, tops: Bits) -> tuple[Bits, NDArray[np.int64]]:
        """Return the keys that lie in a range, and in which."""
        shifted = keys >> np.uint64(self.width)
        # one beyond the last range is none of them either
        places = np.minimum(np.searchsorted(tops, shifted), tops.size - 1)
        hit = tops[places] == shifted
        return keys[hit], places[hit].astype(np.int64, copy=False)

    def _narrow(self, counts: NDArray[np.int64], bits: int) -> "RankSearch":
        """Return the search with each range replaced by the narrower ones in it that hold a wanted rank."""
        up_to = counts.cumsum(axis=2)
        narrower: dict[int, _Range] = {}
        tops = []
        for rank, place in self.wanted:
            old = self.ranges[place]
            number = int(np.searchsorted(rank.of(up_to[:, place]), rank.k - rank.of(old.below)))
            inside = counts[:, place, number]
            below = (old.below + up_to[:, place, number] - inside).tolist()
            top = old.top << bits | number
            tops.append(top)
            narrower[top] = _Range(top, tuple(below), tuple(inside.tolist()))
        if self.width == bits:
            # no bit is left: all keys of a range are equal
            pairs = zip(self.wanted, tops, strict=True)
            found = {rank: ScoreAtRank(from_order_key(top), *narrower[top][1:]) for (rank, _), top in pairs}
            return RankSearch(0, (), (), found)
        ranges = tuple(narrower[top] for top in sorted(narrower))
        place_of = {one.top: place for place, one in enumerate(ranges)}
        wanted = tuple((rank, place_of[top]) for (rank, _), top in zip(self.wanted, tops, strict=True))
        return RankSearch(self.width - bits, ranges, wanted)

    def _sorted(self, counts: KeyCounts) -> "RankSearch":
        """Return the search with its ranks found among the gathered keys."""
        keys = [np.sort(gathered) for gathered in counts.keys]
        found = {}
        for rank, place in self.wanted:
            one = self.ranges[place]
            first = [int(np.searchsorted(ordered, np.uint64(one.top << self.width))) for ordered in keys]
            found[rank] = score_among(keys, rank, first, one.below)
        return RankSearch(0, (), (), found)


def score_among(keys: list[Bits], rank: Rank, first: Sequence[int], below: Sequence[int]) -> ScoreAtRank:
    """Return what is at a rank, given the sorted keys of each part, from which on they count.

    `first` says for each part which key that is, and `below` how many scores lie below it.
    """
    mine = (
        keys[rank.label] if isinstance(rank.label, int) else np.concatenate([keys[one] for one in rank.label])
    )
    place = rank.of(first) + rank.k - 1 - rank.of(below)
    key = mine[place] if isinstance(rank.label, int) else np.partition(mine, place)[place]
    left, right = ([int(np.searchsorted(one, key, side)) for one in keys] for side in ("left", "right"))
    under = tuple(low + count - start for low, count, start in zip(below, left, first, strict=True))
    equal = tuple(last - count for last, count in zip(right, left, strict=True))
    return ScoreAtRank(from_order_key(int(key)), under, equal)
