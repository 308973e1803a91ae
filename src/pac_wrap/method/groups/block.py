"""Whole groups of sorted scores, calibrated together: one sort, and then a few steps for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import Bits, ScoreType, from_order_keys, order_keys
from pac_wrap.method.groups.columns import Columns, Counts, Numbers
from pac_wrap.method.strategies.interface import (
    MINUS,
    NO_COUNT,
    OneGroup,
    asked_of,
    ends_of,
    stacked,
)
from pac_wrap.ranks.kernels import hashes
from pac_wrap.ranks.memory import Rank, RankedInMemory

if TYPE_CHECKING:
    from pac_wrap.method.request import Request

_RADIX = 1 << 16
# from so many rows per group on, each group is sorted by itself
_APART = 32


@dataclass(frozen=True, slots=True)
class Segments:
    """Keys of scores, in order within each of several segments that follow each other."""

    keys: Bits
    starts: Counts
    sizes: Counts

    def at(self, ranks: Counts) -> Bits:
        """Return the key at a rank of each segment, from 0; the first one where a segment is empty."""
        if not self.keys.size:
            return np.full(ranks.size, MINUS, dtype=np.uint64)
        places = np.minimum(self.starts + np.clip(ranks, 0, None), self.keys.size - 1)
        found: Bits = self.keys[places]
        return found

    def below(self, keys: Bits) -> Counts:
        """Return how many keys of each segment are less than one that it is given."""
        low, high = self.starts.copy(), self.starts + self.sizes
        if not self.keys.size:
            return low
        for _ in range(int(self.sizes.max()).bit_length()):
            middle = (low + high) >> 1
            less = (low < high) & (self.keys[np.minimum(middle, self.keys.size - 1)] < keys)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        return low - self.starts


class Block:
    """The labelled scores of whole groups, sorted by group and then by score.

    `keys` are their order keys, `marks` true for anomalies, `starts` where each group begins, and the end.

    >>> block = Block.of(np.array([0.2, 0.1, 0.9]), np.array([False, False, True]), np.array([1, 0, 1]), 2)
    >>> block.starts.tolist(), from_order_keys(block.keys).tolist()
    ([0, 1, 3], [0.1, 0.2, 0.9])
    """

    def __init__(self, keys: Bits, marks: NDArray[np.bool_], starts: Counts) -> None:
        self.keys, self.marks, self.starts = keys, marks, starts
        before = np.concatenate([[0], np.cumsum(marks)])
        anomalous = np.diff(before[starts])
        sizes = np.diff(starts)
        self.n = np.stack([sizes - anomalous, anomalous])
        ends = np.cumsum(self.n, axis=1)
        divided = keys[np.flatnonzero(~marks)], keys[np.flatnonzero(marks)]
        self.classes = [
            Segments(divided[label], ends[label] - self.n[label], self.n[label]) for label in (0, 1)
        ]
        self.together = Segments(keys, starts[:-1], sizes)

    @classmethod
    def of(cls, scores: Scores, marks: NDArray[np.bool_], codes: Counts, groups: int) -> "Block":
        """Return the block of scores in any order, each with the number of its group."""
        keys = order_keys(scores)
        starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=groups))])
        if keys.size < _APART * groups:
            order = _by_group(codes, groups, np.argsort(keys))
            return cls(keys[order], marks[order], starts)
        # group by group, which stays in the processor's cache
        order = _by_group(codes, groups)
        keys, marks = keys[order], marks[order]
        for start, end in pairwise(starts.tolist()):
            own = np.argsort(keys[start:end])
            keys[start:end], marks[start:end] = keys[start:end][own], marks[start:end][own]
        return cls(keys, marks, starts)

    def at(self, p: int, k: Counts) -> Bits:
        """Return the key of the k-th smallest score of a class, for each group."""
        return self.classes[p].at(k - 1)

    def below(self, p: int, key: Bits) -> Counts:
        """Return how many scores of a class have a lesser key, for each group."""
        return self.classes[p].below(key)

    def between(self, p: int, q: int, low: Bits, high: Bits, share: float) -> Bits:
        """Return the ceil(share m)-th smallest, or the first, of the m keys of both from low to high."""
        below, beyond = self.together.below(low), self.together.below(high + np.uint64(1))
        rank = np.maximum(1, np.ceil(share * (beyond - below)).astype(np.int64))
        return self.together.at(below + rank - 1)

    def prefetch(self, ranks: Iterable[Rank]) -> None:
        """Do nothing: all scores are in order."""

    def group(self, place: int) -> OneGroup:
        """Return the ranks of one group."""
        return OneGroup(
            [
                RankedInMemory(from_order_keys(keys[start : start + size]), name, 1)
                for keys, start, size, name in (
                    (one.keys, int(one.starts[place]), int(one.sizes[place]), name)
                    for one, name in zip(self.classes, ("normal", "anomalous"), strict=True)
                )
            ]
        )

    @property
    def scores(self) -> Scores:
        """The scores themselves."""
        return from_order_keys(self.keys)

    @property
    def digests(self) -> Bits:
        """The sum of the hashes of each class, for each group."""
        sums = np.zeros((2, self.starts.size - 1), dtype=np.uint64)
        for label, segments in enumerate(self.classes):
            there = np.flatnonzero(segments.sizes)
            if there.size:
                mixed = hashes(from_order_keys(segments.keys))
                sums[label, there] = np.add.reduceat(mixed, segments.starts[there])
        return sums

    def errors(self, rule: Numbers) -> Counts:
        """Return how many normal points the rules declare anomalies, and how many anomalous ones normal."""
        low, high = order_keys(rule[0]), order_keys(rule[1])
        alarms = self.n[0] - self.classes[0].below(high)
        # never is never, also for a score of inf
        alarms = np.where(rule[1] == inf, 0, alarms)
        return np.stack([alarms, np.where(rule[0] == inf, self.n[1], self.classes[1].below(low))])

    def areas(self) -> Numbers:
        """Return how likely an anomaly outscores a normal point of its group; NaN if a class is missing."""
        normal = np.concatenate([[0], np.cumsum(~self.marks)])
        first = np.empty(self.keys.size, dtype=bool)
        first[:1] = True
        np.not_equal(self.keys[1:], self.keys[:-1], out=first[1:])
        first[self.starts[:-1][self.starts[:-1] < self.keys.size]] = True
        runs = np.flatnonzero(first)
        lengths = np.diff(np.append(runs, self.keys.size))
        middle = np.repeat(normal[runs] + normal[runs + lengths], lengths) * 0.5
        won = np.concatenate([[0.0], np.cumsum(np.where(self.marks, middle, 0.0))])
        total = won[self.starts[1:]] - won[self.starts[:-1]] - normal[self.starts[:-1]] * self.n[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(total / (self.n[0] * self.n[1]))


def _by_group(codes: Counts, groups: int, order: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
    """Return the order of rows by group, and within it the order given, else that of the rows."""
    # 16 bits at a time, NumPy sorts in linear time
    for shift in range(0, max(1, (groups - 1).bit_length()), 16):
        own = codes if order is None else codes[order]
        step = np.argsort(((own >> shift) & (_RADIX - 1)).astype(np.uint16), kind="stable")
        order = step if order is None else order[step]
    assert order is not None
    return order


def calibrated(request: "Request", block: Block, score_type: ScoreType) -> Columns:
    """Return what `calibrate` gives for each group of a block, as columns."""
    asked, overlap = asked_of(request.guarantee), request.overlap
    if overlap.on_arrays:
        made = overlap.decide(asked, block)
    else:
        made = stacked([overlap.decide(asked, block.group(place)) for place in range(block.n.shape[1])])
    groups = block.n.shape[1]

    def column(numbers: Iterable[Any], kind: Any = np.float64) -> Any:
        return np.stack([np.broadcast_to(np.asarray(one, dtype=kind), groups) for one in numbers])

    rate = column(np.nan if one is None else one.rate for one in made.found)
    without, certified = np.isnan(rate), np.broadcast_to(made.certified, groups)
    keys = column((MINUS if one is None else one.key for one in made.found), np.uint64)
    crossing = np.full((2, groups), NO_COUNT)
    if made.alarm is not None and made.clear is not None:
        counts = made.beyond(asked, block)
        crossing = np.where(without.any(axis=0), NO_COUNT, np.stack([counts[0], counts[1]]))
    rule = np.stack(ends_of(made.low, made.high, score_type))
    ceilings = column(np.nan if one is None else one.ceiling for one in made.found)
    deltas = column(
        own.delta if one is None else one.level for one, own in zip(made.found, asked, strict=True)
    )
    return Columns(
        n=block.n,
        digest=block.digests,
        crossing=crossing,
        errors=block.errors(rule),
        rate=rate,
        delta=column(np.nan if one is None else one.delta for one in made.found),
        budget=column((NO_COUNT if one is None else one.errors for one in made.found), np.int64),
        thresholds=np.where(without, np.nan, from_order_keys(keys)),
        rule=rule,
        ceilings=np.where(certified, ceilings, np.nan),
        deltas=np.where(certified, deltas, np.nan),
        separable=column([NO_COUNT if made.separable is None else made.separable], np.int64)[0],
    )
