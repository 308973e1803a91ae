"""Labelled scores with their groups in, a certificate for each group out: all are calibrated together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from math import inf, log
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from pac_wrap.base.arguments import Scores, as_labelled, check_choice, type_of, warn
from pac_wrap.base.floats import Bits, ScoreType, from_order_keys, order_keys
from pac_wrap.errors import InputError, UpsideDownWarning, VacuousWarning
from pac_wrap.method.calibrate import CHANGES, Request, answered, certify
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.columns import KINDS, Columns, Counts, Numbers, points_counted, shares_of
from pac_wrap.method.groups.values import Coded, Group, GroupColumn, groups_beside, in_order, shown
from pac_wrap.method.kinds import KindRequest, asked_of_kinds, certify_kinds
from pac_wrap.method.promise import OF_POOL, Error, assumed, assumed_of, with_deltas
from pac_wrap.method.source import CLASSES, Source
from pac_wrap.method.strategies import interface
from pac_wrap.method.strategies.interface import Abstain, Asked, OneGroup, Ranks, asked_of, ends_of
from pac_wrap.ranks.kernels import hashes
from pac_wrap.ranks.memory import RankedInMemory

_RADIX = 1 << 16
# from this many rows per group on, each group is sorted separately
_APART = 32


@dataclass(frozen=True, slots=True)
class Segments:
    """Keys of scores, sorted within each of several consecutive segments."""

    keys: Bits
    starts: Counts
    sizes: Counts

    def at(self, ranks: Counts) -> Bits:
        """Return the key at a rank of each segment, counted from 0; the first key for an empty segment."""
        if not self.keys.size:
            return np.full(ranks.size, interface.MINUS, dtype=np.uint64)
        places = np.minimum(self.starts + np.clip(ranks, 0, None), self.keys.size - 1)
        return np.asarray(self.keys[places])

    def below(self, keys: Bits) -> Counts:
        """Return how many keys of each segment are less than the given key of that segment."""
        low, high = self.starts.copy(), self.starts + self.sizes
        if not self.keys.size:
            return low
        for _ in range(int(self.sizes.max()).bit_length()):
            middle = (low + high) >> 1
            less = (low < high) & (self.keys[np.minimum(middle, self.keys.size - 1)] < keys)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        return low - self.starts


class Block(Ranks):
    """The labelled scores of whole groups, as order keys and marks, sorted by group and then by score."""

    def __init__(self, keys: Bits, marks: NDArray[np.bool_], starts: Counts) -> None:
        self.keys, self.marks, self.starts = keys, marks, starts
        before = np.concatenate([[0], np.cumsum(marks)])
        anomalous = np.diff(before[starts])
        sizes = np.diff(starts)
        self.n = np.stack([sizes - anomalous, anomalous])
        ends = np.cumsum(self.n, axis=1)
        divided = keys[np.flatnonzero(~marks)], keys[np.flatnonzero(marks)]
        self.classes = [Segments(own, end - n, n) for own, end, n in zip(divided, ends, self.n, strict=True)]
        self.together = Segments(keys, starts[:-1], sizes)

    @classmethod
    def of(cls, scores: Scores, marks: NDArray[np.bool_], codes: Counts, groups: int) -> "Block":
        """Return the block of scores in any order, each with the number of its group."""
        keys = order_keys(scores)
        starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=groups))])
        if keys.size < _APART * groups:
            order = _by_group(codes, groups, np.argsort(keys))
            return cls(keys[order], marks[order], starts)
        # group by group, so that the data stay in the processor's cache
        order = _by_group(codes, groups)
        keys, marks = keys[order], marks[order]
        for start, end in pairwise(starts.tolist()):
            own = np.argsort(keys[start:end])
            keys[start:end], marks[start:end] = keys[start:end][own], marks[start:end][own]
        return cls(keys, marks, starts)

    def at(self, p: int, k: Counts) -> Bits:
        return self.classes[p].at(k - 1)

    def below(self, p: int, key: Bits) -> Counts:
        return self.classes[p].below(key)

    def between(self, p: int, q: int, low: Bits, high: Bits, share: float) -> Bits:
        below, beyond = self.together.below(low), self.together.below(high + np.uint64(1))
        rank = np.maximum(1, np.ceil(share * (beyond - below)).astype(np.int64))
        return self.together.at(below + rank - 1)

    def group(self, place: int) -> OneGroup:
        ranked = []
        for one, name in zip(self.classes, ("normal", "anomalous"), strict=True):
            start = int(one.starts[place])
            keys = one.keys[start : start + int(one.sizes[place])]
            ranked.append(RankedInMemory(from_order_keys(keys), name, 1))
        return OneGroup(ranked)

    @property
    def scores(self) -> Scores:
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
        """Return the errors of the rules: normal points declared anomalies, and anomalies declared normal."""
        low, high = order_keys(rule[0]), order_keys(rule[1])
        alarms = self.n[0] - self.classes[0].below(high)
        # inf means never, also for a score of inf
        alarms = np.where(rule[1] == inf, 0, alarms)
        return np.stack([alarms, np.where(rule[0] == inf, self.n[1], self.classes[1].below(low))])

    def areas(self) -> Numbers:
        """Return the AUC of each group; NaN if a class is missing."""
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


class _OfTraffic:
    """The ranks of traffic in each group: all points count, and those found anomalous have the score -inf.

    Alarms count whatever review found: eq. (141); false alarms, without points found anomalous: eq. (138).
    """

    def __init__(self, block: Block, asked: Asked) -> None:
        self._block, self._every = block, asked.of.error is Error.ALARM
        self.n = points_counted(block.n, traffic=True)

    def at(self, p: int, k: Counts) -> Bits:
        if self._every:
            return self._block.together.at(k - 1)
        inner = k - self._block.n[1]
        return np.where(inner > 0, self._block.at(p, inner), np.uint64(interface.MINUS))


def _by_group(codes: Counts, groups: int, order: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
    """Return the order of rows by group, and within a group the given order, or the order of the rows."""
    # 16 bits at a time, NumPy sorts in linear time
    for shift in range(0, max(1, (groups - 1).bit_length()), 16):
        own = codes if order is None else codes[order]
        step = np.argsort(((own >> shift) & (_RADIX - 1)).astype(np.uint16), kind="stable")
        order = step if order is None else order[step]
    assert order is not None
    return order


def calibrated(request: Request, block: Block, score_type: ScoreType) -> Columns:
    """Return the certificate that `calibrate` gives for each group of a block, as columns."""
    asked, beyond = asked_of(request.guarantee), np.full(block.n.shape, interface.NO_COUNT)
    ranks: Any = _OfTraffic(block, asked[0]) if request.guarantee.of_traffic else block
    made = request.overlap.decide_all(asked, ranks)
    if made.alarm is not None and made.clear is not None:
        without = np.isnan(sum(own.rate for own in made.found if own is not None))
        beyond = np.where(without, interface.NO_COUNT, np.stack(made.beyond(asked, block)))
    rule = np.stack(ends_of(made.low, made.high, score_type))
    counted = {"n": block.n, "digest": block.digests, "beyond": beyond, "errors": block.errors(rule)}
    return Columns.of(made, rule=rule, **counted)


# the least number of rows that are calibrated together
BLOCK: Final = 1 << 21
# the numbers of the groups, the scores, and which of them are anomalous
Rows = tuple[NDArray[Any], Scores, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Part:
    """The results of some groups: their numbers, their columns, and the AUC of each."""

    places: Counts
    columns: Columns
    areas: Numbers

    # how many rows `flat` has: of the numbers, the areas, and two for each column but `separable`
    ROWS: ClassVar = 2 * len(fields(Columns)) + 1

    @classmethod
    def of(cls, request: Request, places: NDArray[Any], block: Block, score_type: ScoreType) -> "Part":
        return cls(places.astype(np.int64), calibrated(request, block, score_type), block.areas())

    @classmethod
    def joined(cls, parts: Sequence["Part"]) -> "Part":
        """Return several parts as one, with the groups in the order of their numbers."""
        order = np.argsort(np.concatenate([part.places for part in parts]))

        def together(arrays: Iterable[NDArray[Any]]) -> Any:
            return np.concatenate([*arrays], axis=-1)[..., order]

        names = [one.name for one in fields(Columns)]
        columns = Columns(*(together(getattr(part.columns, name) for part in parts) for name in names))
        return cls(together(part.places for part in parts), columns, together(part.areas for part in parts))

    def flat(self) -> NDArray[np.int64]:
        """Return all numbers as 64-bit integers, bit by bit: rows with an entry for each group."""
        columns = (np.atleast_2d(getattr(self.columns, one.name)) for one in fields(Columns))
        return np.vstack([one.view(np.int64) for one in (self.places, self.areas, *columns)])

    @classmethod
    def from_flat(cls, flat: NDArray[np.int64]) -> "Part":
        """Return the part that `flat` wrote, or the sum of several parts in the order of their groups."""
        kinds = enumerate(fields(Columns), 1)
        made: Any = {one.name: flat[2 * at : 2 * at + 2].view(KINDS[one.type]) for at, one in kinds}
        made["separable"] = made["separable"][0]
        return cls.joined([cls(flat[0], Columns(**made), flat[1].view(np.float64))])


def whole_groups(batches: Iterable[Rows]) -> Iterator[tuple[NDArray[Any], Block]]:
    """Yield the numbers of some groups and their scores, from rows in the order of the groups."""
    held: list[Rows] = []
    for batch in filter(lambda rows: rows[0].size, batches):
        held.append(batch)
        if sum(rows[0].size for rows in held) >= BLOCK and held[0][0][0] != batch[0][-1]:
            places, scores, marks = (np.concatenate(column) for column in zip(*held, strict=True))
            end = int(np.searchsorted(places, places[-1]))
            yield _block([(places[:end], scores[:end], marks[:end])])
            held = [(places[end:].copy(), scores[end:].copy(), marks[end:].copy())]
    if held:
        yield _block(held)


def _block(held: list[Rows]) -> tuple[NDArray[Any], Block]:
    places, scores, marks = (np.concatenate(column) for column in zip(*held, strict=True))
    first = np.concatenate([[True], places[1:] != places[:-1]])
    found = places[first]
    return found, Block.of(scores, marks, np.cumsum(first) - 1, found.size)


# up to these values the binomial bound holds for points of several groups: eq. (56)
_MOST_DELTA: Final = 0.25
_MOST_CEILING: Final = 0.5
# how often groups that are not upside down may be reported so, and the most points of an AUC
_LEVEL: Final = 0.01
_POINTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A request for a calibration of groups, checked before any score is read."""

    request: Request
    together: bool = False
    pool: bool = False

    def __post_init__(self) -> None:
        check_choice("together", self.together, (True, False))
        check_choice("pool", self.pool, (True, False))
        asked, first = self.request.guarantee, self.request.guarantee.promises[0]
        counted = first.of.side == "normal" and first.of.label != "alarms" and not first.by_coins
        if asked.of_traffic and (self.pool or len(asked.promises) > 1 or not counted):
            raise InputError(
                "traffic by group takes one promise (max_alarms, max_false_alarms or max_fpr), no pool and no"
                " rate of reviews below 1; calibrate by each promise, or each group by itself"
            )
        if not self.pool:
            return
        if not isinstance(self.request.overlap, Abstain):
            raise InputError(
                f'pool needs overlap="abstain", got "{self.request.overlap.word}"; for points of several'
                " groups there is no proof for other strategies"
            )
        for promise in self.request.guarantee.promises:
            if promise.ceiling > _MOST_CEILING or promise.delta > _MOST_DELTA:
                raise InputError(
                    f"pool needs ceilings up to {_MOST_CEILING} and deltas up to {_MOST_DELTA}, got {promise}"
                )

    def each(self, n: Counts) -> Request:
        """Return the request of each group, with its share of delta; `n` are the points of each class."""
        # one pair of deltas for all groups, whatever their counts
        asked, overlap = self.request.guarantee.fixed, self.request.overlap
        if self.together:
            asked = with_deltas(asked, *shares_of(asked, overlap, n, self.pool))
        return Request(asked, overlap)

    def certificate(
        self, each: Request, part: Part, groups: tuple[Group, ...], kind: ScoreType, pool: Certificate | None
    ) -> GroupCertificate:
        """Return the certificate of groups from their results, with warnings about their data."""
        _warn_if_upside_down(part.areas, part.columns.n, groups)
        tolerated = self.request.guarantee.tolerates
        if pool is not None:
            pool = replace(pool, assumptions=assumed(OF_POOL, **tolerated))
        deltas = each.guarantee.delta_fpr, each.guarantee.delta_fnr
        made = GroupCertificate(
            asked=self.request.guarantee.fixed,
            overlap=self.request.overlap,
            together=self.together,
            score_type=kind,
            pool=pool,
            shares=deltas if self.together else None,
            groups=groups,
            columns=part.columns,
            assumptions=assumed_of(self.request.guarantee),
        )
        if texts := made.diagnosis:
            warn("; ".join(texts), VacuousWarning)
        return made


def certify_labelled_groups(
    request: GroupRequest, scores: ArrayLike, labels: ArrayLike, groups: GroupColumn
) -> GroupCertificate:
    """Return the certificate of groups for columns in memory."""
    given, values, mask = as_labelled(scores, labels, request.request.anomaly_label)
    return certified(request, values, mask, groups_beside(scores, values.size, groups), type_of(given))


def certified(
    request: GroupRequest, values: Scores, mask: NDArray[np.bool_], found: Coded, kind: ScoreType
) -> GroupCertificate:
    """Return the certificate of groups for checked scores and marks of anomalies, or of those found so."""
    block = Block.of(values, mask, found.codes, len(found.values))
    each, pool = request.each(block.n), None
    part = Part.of(each, np.arange(len(found.values)), block, kind)
    if request.pool and (few := part.columns.vacuous).any():
        own = few[found.codes]
        low, high = values[own & ~mask], values[own & mask]
        classes = RankedInMemory(low, "normal", 1), RankedInMemory(high, "anomalous", 1)
        pool = each.certify(*classes, score_type=kind)
    return request.certificate(each, part, found.values, kind, pool)


class GroupSource(Protocol):
    """Labelled scores by group, wherever they are stored."""

    groups: tuple[Group, ...]
    # how many normal and anomalous points each group has
    n: Counts
    score_type: ScoreType

    def calibrated(self, request: Request) -> Part:
        """Return the results of all groups, in their order, each calibrated where its rows are stored."""

    def pooled(self, places: Counts) -> Source:
        """Return the points of some groups as one source."""

    def origin(self) -> dict[str, Any]:
        """Return the facts for a provenance of the scores; nothing if they have no name."""
        return {}


def certify_groups(source: GroupSource, request: GroupRequest) -> GroupCertificate:
    """Return the certificate of groups, wherever they are stored, in the order used for data in memory."""
    each = request.each(source.n)
    part = source.calibrated(each)
    if not np.array_equal(part.columns.n, source.n):
        raise InputError(CHANGES)
    order = np.array(sorted(part.places, key=lambda place: in_order(source.groups[place])), dtype=np.intp)
    ordered, pool = Part(order, part.columns.permuted(order), part.areas[order]), None
    if request.pool and (few := part.columns.vacuous).any():
        pool = source.pooled(part.places[few]).answer(CLASSES, partial(answered, each))
    groups = tuple(source.groups[place] for place in order)
    made = request.certificate(each, ordered, groups, source.score_type, pool)
    return made.with_provenance(**source.origin())


def request_of_columns(
    guarantee: Any, overlap: Any, anomaly_label: object, by: object, together: bool, pool: bool, kinds: object
) -> tuple[Any, object]:
    """Return the request about columns of a table, of groups or kinds if there are any, and the label."""
    if by is None and (together or pool):
        raise InputError("together and pool need groups; add by, or remove them")
    if by is not None and kinds is not None:
        raise InputError("by and kinds do not work together; remove one of them")
    if kinds is not None:
        mark = guarantee.anomaly_label if isinstance(guarantee, Request) else anomaly_label
        return partial(KindRequest.of, *asked_of_kinds(guarantee, overlap)), mark
    request = Request.of(guarantee, overlap, anomaly_label)
    return request if by is None else GroupRequest(request, together, pool), request.anomaly_label


def certify_any(source: Any, request: Any) -> Any:
    """Return the certificate or the curve that answers a request, whatever it is about."""
    if isinstance(request, GroupRequest):
        return certify_groups(source, request)
    return certify_kinds(source, request) if isinstance(request, partial) else certify(source, request)


def _warn_if_upside_down(areas: Numbers, n: Counts, groups: tuple[Group, ...]) -> None:
    """Warn if anomalies score significantly lower than normal points in a group, at 1 % for all: eq. (25)."""
    area = np.where(np.isnan(areas), 0.5, areas)
    divergence = log(2.0) + xlogy(area, area) + xlogy(1.0 - area, 1.0 - area)
    strength = np.where(area < 0.5, np.minimum(n.min(axis=0), _POINTS) * divergence, 0.0)
    found = int(np.count_nonzero(strength >= log(len(groups) / _LEVEL)))
    if found:
        worst = int(np.argmax(strength))
        warn(
            f"anomalies score lower than normal points in {found:,} of {len(groups):,} groups, most clearly"
            f" in {shown(groups[worst])} (AUC {area[worst]:.3f}); if the scores are upside down, negate them",
            UpsideDownWarning,
        )
