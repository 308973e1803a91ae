"""Exact ranks of two classes that do not fit into memory, found in passes over the data.

Ranges of keys are counted and refined until each rank is alone. A `RankSearch` can be pickled, and is called
with each piece of the data wherever that is stored; its results add up in any order. Four passes are enough
for 16 ranks, whatever the scores; two or three are usual. `Passes` asks and a `RunPass` answers:
`ChunkReader` reads chunks from a Python iteration, `Partitions` the partitions of an engine.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil, floor, inf, nextafter, sqrt
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments
from pac_wrap.base.floats import Bits, ScoreType, from_order_key, just_below, order_key, order_keys
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import BITS, as_digest, kernels
from pac_wrap.ranks.memory import Pair, Rank, Ranked, count_below, kth_smallest, spaced_positions

Bounds = tuple[tuple[float, float], ...]
# the parts of each of several unions
Unions = Sequence[tuple[int, ...]]
# starts a fresh iteration over arrays that belong together, such as scores and labels
Chunks = Callable[[], Iterable[tuple[ArrayLike, ...]]]
CHANGED: Final = "the scores changed between two passes; give the same scores every time"

# leading bits from here on belong to negative numbers
_MINUS: Final = 1 << BITS - 1
_COUNTERS: Final = 1 << 20
# up to this many keys are gathered and sorted rather than counted again, or sent: 2 MB
_FEW: Final = 1 << 18
_CHUNK: Final = 1 << 17
_LEAST, _GREATEST = order_key(-inf), order_key(inf)


@dataclass(frozen=True, slots=True)
class Survey:
    """How many scores of each part begin with each of 2^16 bit patterns, and their sums of hashes."""

    counts: NDArray[np.int64]
    hash_sums: tuple[int, ...]

    def __add__(self, other: "Survey") -> "Survey":
        sums = tuple(a + b for a, b in zip(self.hash_sums, other.hash_sums, strict=True))
        return Survey(self.counts + other.counts, sums)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.counts.sum(axis=1).tolist())

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(map(as_digest, self.hash_sums))

    @property
    def ordered(self) -> NDArray[np.int64]:
        """The counts in the order of the scores; those of negative numbers are reversed."""
        return np.concatenate([self.counts[:, : _MINUS - 1 : -1], self.counts[:, :_MINUS]], axis=1)

    def largest_auc(self, normal: Sequence[int] = (0,), anomalous: Sequence[int] = (1,)) -> float:
        """Return an upper bound of the AUC of some parts: ties within a range count for the anomaly."""
        ordered = self.ordered.astype(np.float64)
        low, high = (ordered[list(parts)].sum(axis=0) for parts in (normal, anomalous))
        return float(high @ np.cumsum(low) / (low.sum() * high.sum()))


def survey(*parts: arguments.Scores) -> Survey:
    """Return the survey of one piece of the data; NaN must not occur."""
    counts = np.zeros((len(parts), 1 << BITS), dtype=np.int64)
    return Survey(counts, tuple(map(kernels().count_leading, parts, counts)))


def within(scores: NDArray[Any], bounds: Bounds) -> NDArray[np.bool_]:
    """Return a mask of the scores that lie between the scores of any pair."""
    found = np.zeros(scores.shape, dtype=bool)
    for low, high in bounds:
        found |= (scores >= low) & (scores <= high)
    return found


class ScoreAtRank(NamedTuple):
    """The score at a rank, and for each part how many scores lie below it and how many equal it."""

    score: float
    below: tuple[int, ...]
    equal: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """The counts of a search in one piece of the data, or the keys gathered at the end; they add up."""

    counts: NDArray[np.int64]
    keys: tuple[Bits, ...]

    def __add__(self, other: "KeyCounts") -> "KeyCounts":
        # one array each, so that a sum of many pieces is not larger
        keys = tuple(np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True))
        return KeyCounts(self.counts + other.counts, keys)


class _Range(NamedTuple):
    """Keys that share their leading bits, with how many of each part lie below and inside."""

    top: int
    below: tuple[int, ...]
    inside: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankSearch:
    """The search for some ranks; the keys of each range agree in all but their last `width` bits."""

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
    def gathers(self) -> bool:
        """Whether the next pass is the last and gathers the keys themselves, since they are few."""
        return sum(sum(one.inside) for one in self.ranges) <= _FEW

    @property
    def bits(self) -> int:
        """How many more bits the next pass distinguishes: 16, or fewer if many ranges share the counters."""
        return min(BITS, self.width, max(1, (_COUNTERS // len(self.ranges)).bit_length() - 1))

    @property
    def bounds(self) -> Bounds:
        """Pairs of scores that enclose all scores that the next pass needs."""
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

    def __call__(self, *parts: arguments.Scores) -> KeyCounts:
        """Return the counts of the next pass for one piece of the data; NaN must not occur."""
        shape = (len(parts), len(self.ranges), 1 if self.gathers else 1 << self.bits)
        counts = np.zeros(shape, dtype=np.int64)
        gathered = [[np.zeros(0, dtype=np.uint64)] for _ in parts]
        tops = np.array([one.top for one in self.ranges], dtype=np.uint64)
        bounds = self.bounds
        for label, scores in enumerate(parts):
            for start in range(0, scores.size, _CHUNK):
                chunk = scores[start : start + _CHUNK]
                # most scores lie beyond all ranges, and comparisons are cheaper than keys
                keys = order_keys(chunk[within(chunk, bounds)])
                shifted = keys >> np.uint64(self.width)
                # one beyond the last range is none of them either
                found = np.minimum(np.searchsorted(tops, shifted), tops.size - 1)
                hit = tops[found] == shifted
                keys, places = keys[hit], found[hit].astype(np.int64, copy=False)
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
        if not self.gathers:
            return self._narrow(counts.counts, self.bits)
        keys = [np.sort(gathered) for gathered in counts.keys]
        found = {}
        for rank, place in self.wanted:
            one = self.ranges[place]
            first = [int(np.searchsorted(ordered, np.uint64(one.top << self.width))) for ordered in keys]
            found[rank] = score_among(keys, rank, first, one.below)
        return RankSearch(0, (), (), found)

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


def score_among(keys: list[Bits], rank: Rank, first: Sequence[int], below: Sequence[int]) -> ScoreAtRank:
    """Return the score at a rank, given sorted keys of parts, where they begin, and how many lie below."""
    mine = (
        keys[rank.label] if isinstance(rank.label, int) else np.concatenate([keys[one] for one in rank.label])
    )
    place = rank.of(first) + rank.k - 1 - rank.of(below)
    key = mine[place] if isinstance(rank.label, int) else np.partition(mine, place)[place]
    left, right = ([int(np.searchsorted(one, key, side)) for one in keys] for side in ("left", "right"))
    under = tuple(low + count - start for low, count, start in zip(below, left, first, strict=True))
    equal = tuple(last - count for last, count in zip(right, left, strict=True))
    return ScoreAtRank(from_order_key(int(key)), under, equal)


# called with the scores of each part of one piece, mostly the normal and the anomalous; its results add up
PassTask = Callable[..., Any]

# chunks are combined up to this many scores, so that many small ones cost no more than a few large ones
_BATCH: Final = 1 << 17


class RunPass(Protocol):
    """Data that can be read in passes: a call is one pass over it."""

    @property
    def score_type(self) -> ScoreType | None:
        """The type of the scores, known after the first pass if there are any."""

    def __call__(self, task: PassTask) -> Any:
        """Return the sum of the task's results for all pieces."""


def _below(threshold: float, *parts: arguments.Scores) -> NDArray[np.int64]:
    """Return how many scores of each part of one piece are less than a threshold, and how many there are."""
    below = [count_below(scores, threshold) for scores in parts]
    return np.array([below, [scores.size for scores in parts]], dtype=np.int64)


class Parts:
    """The parts of some data, classes or kinds, with their ranks and counts; results are stored."""

    # functions that find unknown ranks, and count the scores of each part below a threshold
    search: Callable[[list[Rank]], dict[Rank, ScoreAtRank]]
    count: Callable[[float], tuple[int, ...]]

    def __init__(self, sizes: Sequence[int], hash_sums: Sequence[int]) -> None:
        self.sizes, self.hash_sums = tuple(sizes), hash_sums
        self._found: dict[Rank, ScoreAtRank] = {}
        self._counted: dict[int, tuple[int, ...]] = {}

    def ranked(self, of: Unions) -> list[Ranked]:
        """Return the scores of some parts, or of several parts taken as one."""
        return [_RankedParts(self, of, parts) for parts in of]

    def score(self, rank: Rank) -> float:
        if rank not in self._found:
            self.find([rank])
        return self._found[rank].score

    def count_below(self, parts: tuple[int, ...], threshold: float) -> int:
        wanted = order_key(threshold)
        if threshold == -inf:
            return 0
        for found in self._found.values():
            if wanted == order_key(found.score):
                return sum(found.below[part] for part in parts)
            if wanted == order_key(nextafter(found.score, inf)):
                return sum(found.below[part] + found.equal[part] for part in parts)
        if wanted not in self._counted:
            self._counted[wanted] = self.count(threshold)
        return sum(self._counted[wanted][part] for part in parts)

    def find(self, ranks: Iterable[Rank]) -> None:
        """Find the scores at some ranks, together if that is cheaper than one by one."""
        self._found |= self.search([rank for rank in ranks if rank not in self._found])


class Passes(Parts):
    """The parts of some data, known through passes; the first is made at once and gathers guessed ranges."""

    def __init__(self, run: RunPass, guessed: Bounds = ()) -> None:
        self._run = run
        self._first: FirstFound | None = run(partial(first_pass, guessed)) if guessed else None
        self.survey: Survey = run(survey) if self._first is None else self._first.survey
        super().__init__(self.survey.sizes, self.survey.hash_sums)

    def search(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return the scores at some ranks, found together; correctly guessed ranks need no pass."""
        found = {} if self._first is None else self._first.at(ranks)
        search = RankSearch.begin(self.survey, [rank for rank in ranks if rank not in found])
        while search.wanted:
            search = search.advance(self._run(search))
        return found | search.found

    def count(self, threshold: float) -> tuple[int, ...]:
        below, sizes = self._run(partial(_below, threshold)).tolist()
        if tuple(sizes) != self.sizes:
            raise InputError(CHANGED)
        return tuple(below)


class _RankedParts(Ranked):
    """The scores of one part of the data, or of several; a rank's label is a place in `of`."""

    def __init__(self, known: Parts, of: Unions, parts: tuple[int, ...]) -> None:
        self.size = sum(known.sizes[part] for part in parts)
        self.digest = as_digest(sum(known.hash_sums[part] for part in parts))
        self._known, self._of, self._parts = known, of, parts

    def kth_smallest(self, k: int) -> float:
        return self._known.score(_rank(self._parts, k))

    def count_below(self, threshold: float) -> int:
        return self._known.count_below(self._parts, threshold)

    def prefetch(self, ranks: Iterable[Rank]) -> None:
        self._known.find(
            _rank(tuple(part for label in rank.labels for part in self._of[label]), rank.k) for rank in ranks
        )

    def kth_between(self, other: Ranked, low: float, high: float, share: float) -> float:
        assert isinstance(other, _RankedParts)
        below = self.count_below(low) + other.count_below(low)
        beyond = self.size + other.size
        if high < inf:
            beyond = sum(one.count_below(nextafter(high, inf)) for one in (self, other))
        k = below + max(1, ceil(share * (beyond - below)))
        return self._known.score(_rank((*self._parts, *other._parts), k))


def _rank(parts: tuple[int, ...], k: int) -> Rank:
    """Return a rank among some parts, always in the same form."""
    return Rank(parts[0] if len(parts) == 1 else tuple(sorted(parts)), k)


def split_classes(
    where: str, scores: ArrayLike, labels: ArrayLike, anomaly_label: object
) -> tuple[Pair, Any, ScoreType | None]:
    """Return both classes of one piece, its label of normal points, or None, and the type of its scores."""
    given, values, mask = arguments.as_labelled(scores, labels, anomaly_label, f" of {where}")
    normal_label = None if mask.all() else arguments.as_array(labels, "labels")[int(mask.argmin())]
    kind = arguments.type_of(given) if given.size else None
    return kernels().divide(values, mask), normal_label, kind


def check_normal_labels(where: str, first: Any, other: Any, anomaly_label: object) -> None:
    """Refuse two pieces with different labels of normal points, which one piece alone cannot show."""
    arguments.as_anomaly_mask(np.array([first, other], dtype=object), anomaly_label, f"labels of {where}")


class _Spaced:
    """Collects evenly spaced scores of both classes while they are read in order."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._positions = [spaced_positions(size) for size in sizes]
        self._seen = [0, 0]
        self.picked = [[np.empty(0)], [np.empty(0)]]

    @property
    def whole(self) -> bool:
        pairs = zip(self._seen, self._positions, strict=True)
        return all(not positions.size or seen > positions[-1] for seen, positions in pairs)

    def pick(self, pair: Pair) -> None:
        for label, scores in enumerate(pair):
            positions, seen = self._positions[label], self._seen[label]
            first, last = np.searchsorted(positions, [seen, seen + scores.size])
            self.picked[label].append(scores[positions[first:last] - seen])
            self._seen[label] = seen + scores.size


class ChunkReader:
    """Runs passes over chunks: each pass reads all chunks; an error names the chunk, counted from 0."""

    # the number of arrays in a chunk, and its description
    chunk: ClassVar[tuple[int, str, str]] = (2, "pair", "of scores and labels")

    def __init__(self, chunks: Chunks, anomaly_label: object = 1) -> None:
        if not callable(chunks):
            raise InputError(
                "chunks must be a function that starts a fresh iteration, since several passes are made,"
                f" got {type(chunks).__name__}; pass lambda: ... that opens the data again"
            )
        self._chunks, self._anomaly_label = chunks, anomaly_label
        self._normal_label: Any = None
        self._last: Iterator[Any] | None = None
        self._spaced: _Spaced | None = None
        self.score_type: ScoreType | None = None

    def __call__(self, task: PassTask) -> Any:
        total = None
        for pair in self._batches():
            found = task(*pair)
            total = found if total is None else total + found
            if self._spaced is not None:
                self._spaced.pick(pair)
        if isinstance(total, Survey):
            self._spaced = _Spaced(total.sizes)
        return total

    def sample(self) -> Pair:
        """Return the scores of both classes for the AUC, evenly spaced in the given order."""
        assert self._spaced is not None
        if not self._spaced.whole:
            for pair in self._batches():
                self._spaced.pick(pair)
        normal, anomalous = map(np.concatenate, self._spaced.picked)
        return normal, anomalous

    def _batches(self) -> Iterator[Pair]:
        """Yield both classes of a few chunks at a time, at least one pair."""
        waiting, size = [(np.empty(0), np.empty(0))], 0
        for pair in self._pairs():
            waiting.append(pair)
            size += pair[0].size + pair[1].size
            if size >= _BATCH:
                yield _concatenated(waiting)
                waiting, size = waiting[:1], 0
        yield _concatenated(waiting)

    def _pairs(self) -> Iterator[Pair]:
        width, what, of = self.chunk
        try:
            iterator = iter(self._chunks())
        except TypeError as error:
            raise InputError(f"chunks() must return an iterable of {what}s {of}: {error}") from error
        if iterator is self._last:
            raise InputError(
                "chunks() must start a fresh iteration on every call, got the same iterator again;"
                " open the data inside the function"
            )
        self._last = iterator
        for number, chunk in enumerate(iterator):
            if not isinstance(chunk, (tuple, list)) or len(chunk) != width:
                raise InputError(f"chunk {number} must be a {what} {of}, got {chunk!r:.60}")
            yield self._split(number, *chunk)

    def _split(self, number: int, scores: ArrayLike, labels: ArrayLike, *rest: ArrayLike) -> Pair:
        where = f"chunk {number}"
        pair, normal_label, kind = split_classes(where, scores, labels, self._anomaly_label)
        self.score_type = arguments.common_type([self.score_type, kind])
        if normal_label is not None:
            if self._normal_label is None:
                self._normal_label = normal_label
            check_normal_labels(where, self._normal_label, normal_label, self._anomaly_label)
        return pair


def _concatenated(pairs: list[Pair]) -> Pair:
    if len(pairs) == 2:
        return pairs[1]
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


# standard deviations of a part's rank on both sides; a miss, once in 400 times, only costs more passes
_MARGIN: Final = 3.0
# more ranks than these are not guessed: the scores near them would be too many to send
_RANKS: Final = 16


class FirstFound(NamedTuple):
    """The result of the first pass: survey, counts below bounds, and the keys inside unless too many."""

    survey: Survey
    bounds: Bounds
    below: NDArray[np.int64]
    keys: tuple[Bits, ...] | None

    def __add__(self, other: Any) -> "FirstFound":
        keys = None
        if self.keys is not None and other.keys is not None:
            keys = _few([np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True)])
        return FirstFound(self.survey + other.survey, self.bounds, self.below + other.below, keys)

    def at(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return the scores at those ranks that lie inside the bounds."""
        if self.keys is None:
            return {}
        keys = [np.sort(one) for one in self.keys]
        found = {}
        for (low, high), below in zip(self.bounds, self.below.tolist(), strict=True):
            first = [int(np.searchsorted(one, np.uint64(order_key(low)))) for one in keys]
            last = [int(np.searchsorted(one, np.uint64(order_key(high)), "right")) for one in keys]
            for rank in ranks:
                if 0 < rank.k - rank.of(below) <= rank.of(last) - rank.of(first):
                    found[rank] = score_among(keys, rank, first, below)
        return found


def first_pass(guessed: Bounds, *parts: arguments.Scores) -> FirstFound:
    """Return the survey of one piece, and its keys within bounds, which are disjoint and in order."""
    below = [[count_below(scores, low) for scores in parts] for low, _ in guessed]
    counts = np.array(below, dtype=np.int64).reshape(len(guessed), len(parts))
    near = []
    for scores in parts:
        chunks = (scores[start : start + _CHUNK] for start in range(0, scores.size, _CHUNK))
        near.append(order_keys(np.concatenate([np.empty(0), *(one[within(one, guessed)] for one in chunks)])))
    return FirstFound(survey(*parts), guessed, counts, _few(near))


def _few(keys: list[Bits]) -> tuple[Bits, ...] | None:
    return tuple(keys) if sum(one.size for one in keys) <= _FEW else None


def guess(
    ask: Callable[[Sequence[Ranked]], object], of: Unions, shares: int, *parts: arguments.Scores
) -> tuple[Bounds, ...]:
    """Return between which scores the ranks of the whole lie, given one of its shares, so that it adds up."""
    part = _Share(parts, shares)
    try:
        ask(part.ranked(of))
    except InputError:  # too many ranks, or no scores
        return ((),)
    return (part.bounds,)


class _Share(Parts):
    """A share of the data that answers as the whole might: each score stands for several."""

    def __init__(self, parts: Sequence[arguments.Scores], shares: int) -> None:
        self._parts, self._shares = parts, shares
        super().__init__([scores.size * shares for scores in parts], (0,) * len(parts))

    def search(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        if len(self._found) + len(ranks) > _RANKS:
            raise InputError(f"more than {_RANKS} ranks are not guessed; search for them")
        equal = (self._shares,) * len(self._parts)
        scores = {rank: kth_smallest(self._of(rank), ceil(rank.k / self._shares)) for rank in ranks}
        return {rank: ScoreAtRank(score, self.count(score), equal) for rank, score in scores.items()}

    def count(self, threshold: float) -> tuple[int, ...]:
        return tuple(count_below(scores, threshold) * self._shares for scores in self._parts)

    @property
    def bounds(self) -> Bounds:
        """Pairs of scores that likely enclose the requested ranks, unless too many scores are inside."""
        merged: list[tuple[float, float]] = []
        for low, high in sorted(self._around(rank) for rank in self._found):
            if merged and low <= merged[-1][1]:
                low, high = merged[-1][0], max(high, merged.pop()[1])
            merged.append((low, high))
        inside = sum(int(np.count_nonzero(within(scores, tuple(merged)))) for scores in self._parts)
        return tuple(merged) if inside * self._shares <= _FEW else ()

    def _of(self, rank: Rank) -> arguments.Scores:
        return np.concatenate([self._parts[one] for one in rank.labels])

    def _around(self, rank: Rank) -> tuple[float, float]:
        scores, k = self._of(rank), rank.k / self._shares
        margin = _MARGIN * (sqrt(k * max(0.0, 1.0 - k / scores.size)) + 1.0)
        low, high = floor(k - margin), ceil(k + margin)
        least = kth_smallest(scores, low) if low >= 1 else -inf
        return least, kth_smallest(scores, high) if high <= scores.size else inf


# the number of a partition, how many of its scores are missing, and its rows
Missing = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """The result of some partitions: the sum of the task's answers, and problems of the data, if any."""

    value: Any
    # the first partition with each label of normal points; two such labels are refused
    normal_labels: tuple[tuple[int, Any], ...] = ()
    missing: tuple[Missing, ...] = ()
    problem: tuple[int, str] | None = None
    score_type: ScoreType | None = None

    def __add__(self, other: "PartitionAnswer") -> "PartitionAnswer":
        problems = [one.problem for one in (self, other) if one.problem is not None]
        sound = self.value is not None and other.value is not None
        labels = sorted(self.normal_labels + other.normal_labels, key=lambda pair: pair[0])
        others = [pair for pair in labels if pair[1] != labels[0][1]]
        return PartitionAnswer(
            self.value + other.value if sound else None,
            (*labels[:1], *others[:1]),
            self.missing + other.missing,
            min(problems, default=None),
            arguments.common_type([self.score_type, other.score_type]),
        )

    def settled(self, anomaly_label: object) -> Any:
        """Return the sum of the answers, or raise an error about wrong data."""
        if self.problem is not None:
            raise InputError(self.problem[1])
        if self.missing:
            first, gaps, rows = min(self.missing)
            others = f", {sum(one[1] for one in self.missing):,} in {len(self.missing):,} partitions"
            raise InputError(
                f"scores must not be empty or NaN, got {gaps:,} of {rows:,} in partition"
                f" {first}{others if len(self.missing) > 1 else ''}; drop those rows or make the detector"
                " score them"
            )
        if len(self.normal_labels) == 2:
            (_, first), (number, other) = self.normal_labels
            check_normal_labels(f"partition {number}", first, other, anomaly_label)
        return self.value


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """A task for one partition, which it checks; with `parts`, labels number checked populations."""

    task: PassTask
    anomaly_label: object
    parts: int | None = None

    @property
    def bounds(self) -> Bounds | None:
        """Pairs of scores that enclose all scores that this pass needs, or None if it needs all."""
        return self.task.bounds if isinstance(self.task, RankSearch) else None

    def __call__(self, number: int, scores: ArrayLike, labels: ArrayLike) -> PartitionAnswer:
        if self.parts is not None:
            values, numbers = np.asarray(scores), np.asarray(labels)
            kind, values = arguments.type_of(values) if values.size else None, arguments.as_scores(values)
            found = self.task(*(values[numbers == part] for part in range(self.parts)))
            return PartitionAnswer(found, score_type=kind)
        try:
            arguments.check_aligned("scores", scores, "labels", labels)
            values, marks = arguments.as_array(scores, "scores"), arguments.as_array(labels, "labels")
            rows = values.size
            sound = values.ndim == 1 and values.shape == marks.shape and values.dtype.kind == "f"
            if sound and (nan := np.isnan(values)).any():
                values, marks = values[~nan], marks[~nan]
            pair, normal_label, kind = split_classes(f"partition {number}", values, marks, self.anomaly_label)
            found = self.task(*pair)
        except InputError as error:
            return PartitionAnswer(None, problem=(number, str(error)))
        gaps = rows - values.size
        labels_seen = () if normal_label is None else ((number, normal_label),)
        return PartitionAnswer(found, labels_seen, ((number, gaps, rows),) if gaps else (), score_type=kind)


RunPartitions = Callable[[PartitionTask], PartitionAnswer]


class Partitions:
    """Runs passes over partitions, which are visited by `run`."""

    def __init__(self, run: RunPartitions, anomaly_label: object) -> None:
        self._run, self._anomaly_label = run, anomaly_label
        self.score_type: ScoreType | None = None

    def __call__(self, task: PassTask) -> Any:
        answer = self._run(PartitionTask(task, self._anomaly_label))
        # later passes need not see all partitions
        self.score_type = self.score_type or answer.score_type
        return answer.settled(self._anomaly_label)
