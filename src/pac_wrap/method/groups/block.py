"""Whole groups of sorted scores, calibrated together: one sort, and then a few steps for all of them."""

from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import Bits, ScoreType, from_order_keys, order_key, order_keys
from pac_wrap.method.groups.certificate import rounding_edges
from pac_wrap.method.groups.columns import NO_COUNT, Columns, Counts, Numbers, budgets_of, columns_of
from pac_wrap.method.request import Request
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.thresholds import LARGEST
from pac_wrap.ranks.kernels import hashes
from pac_wrap.ranks.memory import RankedInMemory

_MINUS, _PLUS = (np.uint64(order_key(value)) for value in (-inf, inf))
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
            return np.full(ranks.size, _MINUS)
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


def calibrated(request: Request, block: Block, score_type: ScoreType) -> Columns:
    """Return what `calibrate` gives for each group of a block, as columns."""
    if isinstance(request.overlap, Abstain):
        return _abstaining(request, request.overlap, block, score_type)
    return _one_by_one(request, block, score_type)


def _one_by_one(request: Request, block: Block, score_type: ScoreType) -> Columns:
    """Return the same by calibrating one group after the other: any strategy."""
    found = []
    for place in range(block.starts.size - 1):
        classes = []
        for label, segments in enumerate(block.classes):
            start, size = int(segments.starts[place]), int(segments.sizes[place])
            scores = from_order_keys(segments.keys[start : start + size])
            classes.append(RankedInMemory(scores, ("normal", "anomalous")[label], 1))
        found.append(request.certify(classes[0], classes[1], score_type))
    rules = np.array([(one.rule.normal_below, one.rule.anomaly_from) for one in found]).T
    errors = block.errors(rules).T.tolist()
    return columns_of((one, (row[0], row[1])) for one, row in zip(found, errors, strict=True))


def _abstaining(request: Request, overlap: Abstain, block: Block, score_type: ScoreType) -> Columns:
    asked, groups = request.guarantee, block.starts.size - 1
    budgets = [budgets_of(promise, block.n[label]) for label, promise in enumerate((asked.fpr, asked.fnr))]
    normal, anomalous = block.classes
    alarm = np.nextafter(_numbers(normal.at(block.n[0] - budgets[0] - 1)), inf)
    alarm[budgets[0] < 0] = inf
    clear = _numbers(anomalous.at(budgets[1]))
    clear[budgets[1] < 0] = -inf
    thresholds = np.stack([alarm, clear])
    if asked.fpr is None or asked.fnr is None:
        only = np.minimum(clear, LARGEST) if asked.fpr is None else alarm
        thresholds[0 if asked.fpr is None else 1] = np.nan
        crossing = np.full((2, groups), NO_COUNT)
        rule = np.stack([only, only])
    else:
        high = block.n[0] - normal.below(order_keys(clear))
        low = np.where(alarm == inf, block.n[1], anomalous.below(order_keys(alarm)))
        crossing = np.stack([high, low])
        rule = _rules(overlap, block, thresholds)
    rule = _before_rounding(rule, score_type)
    ceilings = [np.nan if one is None else one for one in (asked.max_fpr, asked.max_fnr)]
    deltas = (asked.delta_fpr, asked.delta_fnr)
    promised = [
        np.nan if ceiling is None else delta
        for ceiling, delta in zip((asked.max_fpr, asked.max_fnr), deltas, strict=True)
    ]

    def same(pair: list[float] | tuple[float, ...]) -> Numbers:
        return np.repeat(np.array(pair, dtype=np.float64)[:, None], groups, axis=1)

    return Columns(
        n=block.n,
        digest=block.digests,
        crossing=crossing,
        errors=block.errors(rule),
        rate=same([np.nan if one is None else one.at_calibration for one in (asked.fpr, asked.fnr)]),
        delta=same(promised),
        budget=np.stack(budgets),
        thresholds=thresholds,
        rule=rule,
        ceilings=same(ceilings),
        deltas=same(deltas),
        separable=np.full(groups, NO_COUNT),
    )


def _rules(overlap: Abstain, block: Block, thresholds: Numbers) -> Numbers:
    """Return the rules of two thresholds, or of one between them: eqs. (11) and (13)."""
    alarm, clear = thresholds
    keys = order_keys(alarm), order_keys(clear)
    separated = (keys[0] < _PLUS) & (keys[1] >= keys[0])
    clear = np.minimum(clear, LARGEST)
    if overlap.always:
        return np.where(separated, np.stack([alarm, clear]), np.stack([clear, alarm]))
    # the ceil(position m)-th, or the first, of the m scores from alarm_from to clear_below
    below = block.together.below(keys[0])
    beyond = block.together.below(keys[1] + np.uint64(1))
    rank = np.maximum(1, np.ceil(overlap.position * (beyond - below)).astype(np.int64))
    tau = np.minimum(_numbers(block.together.at(below + rank - 1)), LARGEST)
    return np.where(separated, tau, np.stack([clear, alarm]))


def _numbers(keys: Bits) -> Numbers:
    return from_order_keys(keys).copy()


def _before_rounding(rule: Numbers, kind: ScoreType) -> Numbers:
    """Return the rules for scores that have not been rounded yet, as `Rule.before_rounding` does."""
    if kind == "float64":
        return rule
    single = order_keys(rule[0]) == order_keys(rule[1])
    high = rounding_edges(rule[1], kind)
    high[rule[1] == inf] = inf
    return np.stack([np.where(single, high, rounding_edges(rule[0], kind)), high])
