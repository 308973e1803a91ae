"""Which grids are counted: around ranks that a sample suggests, and within cells that must be looked into."""

from collections.abc import Iterable
from itertools import pairwise
from math import ceil, expm1, inf, log, log1p, sqrt
from typing import Final

import numpy as np

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import from_order_key, just_below, order_key
from pac_wrap.ranks.search import BOTH, Bounds, Rank
from pac_wrap.ranks.spread import GREATEST, LEAST, Grid, Pair, Range, Sample, bounds

# standard deviations of a sample's rank on both sides; a miss, once in 400 times, only costs another round
_MARGIN: Final = 3.0
# edges of cells that are placed one by one; an engine compares each score with six of them, by halving
_KNOTS: Final = 48
_GIVEN: Final = 4
# so few edges suffice by themselves: an engine adds up what lies between them, without looking for cells
_EDGES: Final = 12
# a score that occurs more often than this among the first is shared by many
_OFTEN: Final = 7
# cells between the edges, in all
_CELLS: Final = 1 << 12
_MOST_CELLS: Final = 1 << 17
# around a rank that part of a cell's scores, and so many standard deviations, are listed on either side;
# only for a few ranks, and no more scores than these: 4 MB
_NEARER: Final = 128
_SPREAD: Final = 3.0
_NEAR_RANKS: Final = 4
_NEAR: Final = 1 << 17
# ranges that an engine compares scores with before it looks for their cells
_RANGES: Final = 8


def grid_around(pair: Pair, sample: Sample, ranks: Iterable[Rank], below: Iterable[int]) -> Grid:
    """Return a grid that is fine where, as a sample suggests, the scores at some ranks lie.

    Scores are also counted below some keys.
    """
    ranks = [*ranks]
    brackets = _united(_bracket(pair, rank, sample) for rank in ranks)
    ends = [end for low, high in brackets for end in (low, high + 1)]
    # a threshold that was given is asked for as it is
    given = [key for key in below if not any(low <= key <= high + 1 for low, high in brackets)]
    if len(ends) + len(given) <= _EDGES and (sample.part == 1.0 or not _shared(pair, brackets)):
        return Grid.of([*ends, *given], lambda low, high: False, 1)
    if len(ends) > _KNOTS:
        ends = [ends[place] for place in np.linspace(0, len(ends) - 1, _KNOTS).astype(int)]
    cells = min(max(_CELLS, 64 * len(ranks)), _MOST_CELLS)

    def fine(low: int, high: int) -> bool:
        return any(low <= last and first < high for first, last in brackets)

    return Grid.of([*ends, *given[:_GIVEN]], fine, cells)


def near(pair: Pair, sample: Sample, ranks: Iterable[Rank]) -> list[tuple[int, int]]:
    """Return ranges of keys where the scores at a few ranks very likely lie, small parts of their cells."""
    cells = []
    for label, k in (rank for rank in ranks if rank.label != BOTH):
        cell = pair[label].at(k)
        if 0.0 < from_order_key(cell.high) - from_order_key(cell.low) < inf:
            cells.append((cell, pair[label].number(k), sample.classes[label]))
    if len(cells) > _NEAR_RANKS:
        return []
    found = _united(_around(*cell) for cell in cells)
    scores = sum(one.count_below(high + 1) - one.count_below(low) for low, high in found for one in pair)
    return found if scores <= _NEAR else []


def _around(cell: Range, number: int, scores: Scores) -> tuple[int, int]:
    """Return two keys around the score of some number in a cell, given a sample of its class.

    The density there is taken for exp(slope t), t from 0 to 1, as far as the scores on both sides tell it.
    """
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


def _united(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same keys as ranges that do not meet, in order."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def merged(ranges: Iterable[tuple[int, int]]) -> Bounds:
    """Return a few pairs of scores that all ranges lie between; the widest gaps are left out."""
    united = _united(ranges)
    gaps = sorted(range(1, len(united)), key=lambda place: united[place - 1][1] - united[place][0])
    starts = [0, *sorted(gaps[: _RANGES - 1]), len(united)]
    # one below, since some order -0.0 before 0.0
    return tuple(
        (just_below(from_order_key(united[first][0])), from_order_key(united[last - 1][1]))
        for first, last in pairwise(starts)
    )
