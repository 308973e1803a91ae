"""Exact ranks of data that does not fit: ranges of keys are counted and refined until each rank is alone.

    search = RankSearch.begin(total(survey(*part) for part in parts), wanted)
    while not search.done:
        search = search.advance(total(search(*part) for part in parts))

A search is small, can be pickled, and is called with each part wherever the part lives; what it returns adds
up in any order. Four passes suffice for 16 ranks, whatever the scores; two or three are usual.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, nextafter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores
from pac_wrap.kernels import BITS
from pac_wrap.order.keys import Keys, from_key, to_keys
from pac_wrap.order.survey import Survey

_COUNTERS: Final = 1 << 20
# so many keys are gathered and sorted rather than counted once more
_FEW: Final = 1 << 18
_CHUNK: Final = 1 << 17
_LEAST, _GREATEST = to_keys(np.array([-np.inf, np.inf])).tolist()


Bounds = tuple[tuple[float, float], ...]


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
    """A wanted rank: of which class (0 normal, 1 anomalous), and the k-th smallest of it, counting from 1."""

    label: int
    k: int


class Found(NamedTuple):
    """The score at a rank, and for each class how many scores lie below it and how many equal it."""

    score: float
    below: tuple[int, int]
    equal: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a search counts, or gathers at the end, in one part of the data; counts add up."""

    counts: NDArray[np.int64]
    keys: tuple[Keys, Keys]

    def __add__(self, other: "Counts") -> "Counts":
        # one array each, so that a sum is no larger for having come from many parts
        normal, anomalous = (np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True))
        return Counts(self.counts + other.counts, (normal, anomalous))


class _Range(NamedTuple):
    """Keys that share their leading bits, with how many of each class lie below and inside."""

    top: int
    below: tuple[int, int]
    inside: tuple[int, int]


@dataclass(frozen=True, slots=True)
class RankSearch:
    """The search for the scores at some ranks of both classes; see the module for how it is driven.

    Each range holds the keys that agree in all but their last `width` bits.

    >>> from pac_wrap.order.survey import survey
    >>> normal, anomalous = np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0])
    >>> search = RankSearch.begin(survey(normal, anomalous), [Rank(0, 3), Rank(1, 1)])
    >>> search = search.advance(search(normal, anomalous))
    >>> search.done, search.found[Rank(1, 1)]
    (True, Found(score=2.0, below=(1, 0), equal=(1, 1)))
    """

    width: int
    ranges: tuple[_Range, ...]
    wanted: tuple[tuple[Rank, int], ...]
    found: dict[Rank, Found] = field(default_factory=dict)

    @classmethod
    def begin(cls, survey: Survey, ranks: Iterable[Rank]) -> "RankSearch":
        """Return the search after the first pass, which was the survey."""
        for rank in (ranks := sorted(set(ranks))):
            if not 1 <= rank.k <= survey.sizes[rank.label]:
                raise InputError(f"rank must be 1 to {survey.sizes[rank.label]:,}, got {rank.k:,}")
        everything = _Range(0, (0, 0), survey.sizes)
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
        # the ranks of one class lie close together, those of the other somewhere else
        for label in (0, 1):
            places = [place for rank, place in self.wanted if rank.label == label]
            if places:
                low = self.ranges[min(places)].top << self.width
                high = (self.ranges[max(places)].top + 1 << self.width) - 1
                # beyond the infinities lie the keys of NaN; one below, since some order -0.0 before 0.0
                ends = nextafter(from_key(max(low, _LEAST)), -inf), from_key(min(high, _GREATEST))
                found.append(ends)
        return tuple(found)

    def __call__(self, normal: Scores, anomalous: Scores) -> Counts:
        """Return what the next pass wants to know of one part of the data; NaN must not occur."""
        shape = (2, len(self.ranges), 1 if self.gathers else 1 << self.bits)
        counts = np.zeros(shape, dtype=np.int64)
        none = np.zeros(0, dtype=np.uint64)
        gathered = ([none], [none])
        tops = np.array([one.top for one in self.ranges], dtype=np.uint64)
        bounds = self.bounds
        for label, scores in enumerate((normal, anomalous)):
            for start in range(0, scores.size, _CHUNK):
                chunk = scores[start : start + _CHUNK]
                # most scores lie beyond all ranges, and comparisons are cheaper than keys
                near = chunk[within(chunk, bounds)]
                keys, places = self._inside(to_keys(near), tops)
                if self.gathers:
                    gathered[label].append(keys)
                else:
                    places <<= self.bits
                    rest = keys >> np.uint64(self.width - self.bits)
                    rest &= np.uint64((1 << self.bits) - 1)
                    places += rest.view(np.int64)
                counts[label] += np.bincount(places, minlength=shape[1] * shape[2]).reshape(shape[1:])
        return Counts(counts, (np.concatenate(gathered[0]), np.concatenate(gathered[1])))

    def advance(self, counts: Counts) -> "RankSearch":
        """Return the search after a pass, given the sum of what all parts returned."""
        inside = [one.inside for one in self.ranges]
        if counts.counts.sum(axis=2).T.tolist() != [list(pair) for pair in inside]:
            raise InputError("the scores changed between two passes; give the same ones every time")
        return self._sorted(counts) if self.gathers else self._narrow(counts.counts, self.bits)

    def _inside(self, keys: Keys, tops: Keys) -> tuple[Keys, NDArray[np.int64]]:
        """Return the keys that lie in a range, and in which."""
        shifted = keys >> np.uint64(self.width)
        # one beyond the last range is none of them either
        places = np.minimum(np.searchsorted(tops, shifted), tops.size - 1)
        hit = tops[places] == shifted
        return keys[hit], places[hit].astype(np.int64, copy=False)

    def _narrow(self, counts: NDArray[np.int64], bits: int) -> "RankSearch":
        """Return the search with each range replaced by the parts of it that hold a wanted rank."""
        up_to = counts.cumsum(axis=2)
        parts: dict[int, _Range] = {}
        tops = []
        for rank, place in self.wanted:
            old = self.ranges[place]
            part = int(np.searchsorted(up_to[rank.label, place], rank.k - old.below[rank.label]))
            inside = counts[:, place, part]
            below = (old.below + up_to[:, place, part] - inside).tolist()
            top = old.top << bits | part
            tops.append(top)
            parts[top] = _Range(top, (below[0], below[1]), (int(inside[0]), int(inside[1])))
        if self.width == bits:
            # no bit is left: all keys of a range are equal
            pairs = zip(self.wanted, tops, strict=True)
            found = {rank: Found(from_key(top), *parts[top][1:]) for (rank, _), top in pairs}
            return RankSearch(0, (), (), found)
        ranges = tuple(parts[top] for top in sorted(parts))
        place_of = {one.top: place for place, one in enumerate(ranges)}
        wanted = tuple((rank, place_of[top]) for (rank, _), top in zip(self.wanted, tops, strict=True))
        return RankSearch(self.width - bits, ranges, wanted)

    def _sorted(self, counts: Counts) -> "RankSearch":
        """Return the search with its ranks found among the gathered keys."""
        keys = [np.sort(side) for side in counts.keys]
        found = {}
        for rank, place in self.wanted:
            one = self.ranges[place]
            first = [int(np.searchsorted(side, np.uint64(one.top << self.width))) for side in keys]
            key = keys[rank.label][first[rank.label] + rank.k - 1 - one.below[rank.label]]
            left, right = (
                [int(np.searchsorted(side, key, end)) for side in keys] for end in ("left", "right")
            )
            below = tuple(one.below[label] + left[label] - first[label] for label in (0, 1))
            equal = tuple(right[label] - left[label] for label in (0, 1))
            found[rank] = Found(from_key(int(key)), (below[0], below[1]), (equal[0], equal[1]))
        return RankSearch(0, (), (), found)
