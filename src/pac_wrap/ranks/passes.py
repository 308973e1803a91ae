"""Two classes whose scores are only seen in passes: what is not known yet costs one more.

`Passes` asks, a `RunPass` answers: here `ChunkReader`, which reads chunks from a Python iteration.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import (
    Scores,
    ScoreType,
    as_anomaly_mask,
    as_array,
    as_scores,
    check_aligned,
    common_type,
    type_of,
)
from pac_wrap.base.floats import order_key
from pac_wrap.errors import InputError
from pac_wrap.ranks.auc import Pair, Spaced
from pac_wrap.ranks.kernels import kernels
from pac_wrap.ranks.memory import Ranked, count_below
from pac_wrap.ranks.search import CHANGED, Rank, RankSearch, ScoreAtRank, Survey, survey

# called with the normal and the anomalous scores of one piece of the data; what it returns can be added up
PassTask = Callable[[Scores, Scores], Any]

# chunks are put together up to this many scores, so that many small ones cost no more than a few large ones
_BATCH: Final = 1 << 17


class RunPass(Protocol):
    """Some data: a call is one pass over it."""

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores, known after the first pass."""

    def __call__(self, task: PassTask) -> Any:
        """Return the sum of what the task returns for all pieces."""


@dataclass(frozen=True, slots=True)
class CountBelow:
    """The task that counts, in both classes, the scores below a threshold and all scores."""

    threshold: float

    def __call__(self, normal: Scores, anomalous: Scores) -> NDArray[np.int64]:
        """Return the counts of one piece."""
        below = [count_below(scores, self.threshold) for scores in (normal, anomalous)]
        return np.array([below, [normal.size, anomalous.size]], dtype=np.int64)


class Known(ABC):
    """Both classes of some data, of which ranks and counts are found out as they are asked for, and kept."""

    def __init__(self, sizes: tuple[int, int], digests: tuple[str, str]) -> None:
        self.sizes, self.digests = sizes, digests
        self._found: dict[Rank, ScoreAtRank] = {}
        self._counted: dict[int, tuple[int, int]] = {}

    @property
    def classes(self) -> tuple[Ranked, Ranked]:
        """The normal and the anomalous scores; what is asked of them and not known yet is found out."""
        return _RankedClass(self, 0), _RankedClass(self, 1)

    def score(self, rank: Rank) -> float:
        """Return the score at a rank."""
        if rank not in self._found:
            self.find([rank])
        return self._found[rank].score

    def count_below(self, label: int, threshold: float) -> int:
        """Return how many scores of a class are less than the threshold."""
        wanted = order_key(threshold)
        if threshold == -inf:
            return 0
        for found in self._found.values():
            if wanted == order_key(found.score):
                return found.below[label]
            if wanted == order_key(nextafter(found.score, inf)):
                return found.below[label] + found.equal[label]
        if wanted not in self._counted:
            self._counted[wanted] = self.count(threshold)
        return self._counted[wanted][label]

    def find(self, ranks: Iterable[Rank]) -> None:
        """Find the scores at some ranks, together if that is cheaper than one by one."""
        self._found |= self.search([rank for rank in ranks if rank not in self._found])

    @abstractmethod
    def search(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return what is found at ranks that are not known yet."""

    @abstractmethod
    def count(self, threshold: float) -> tuple[int, int]:
        """Return how many scores of each class are less than the threshold."""


class Passes(Known):
    """Both classes of some data, known through passes over it; the first is made at once."""

    def __init__(self, run: RunPass, first: Survey | None = None) -> None:
        self._run = run
        self.survey: Survey = run(survey) if first is None else first
        super().__init__(self.survey.sizes, self.survey.digests)

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores."""
        return self._run.score_type

    def search(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return what is found at some ranks, together in as few passes as one would take."""
        search = RankSearch.begin(self.survey, ranks)
        while not search.done:
            search = search.advance(self._run(search))
        return search.found

    def count(self, threshold: float) -> tuple[int, int]:
        """Return how many scores of each class are less than the threshold, in one pass."""
        below, sizes = self._run(CountBelow(threshold)).tolist()
        if tuple(sizes) != self.sizes:
            raise InputError(CHANGED)
        return below[0], below[1]


class _RankedClass(Ranked):
    """The scores of one class of the data."""

    def __init__(self, known: Known, label: int) -> None:
        self.size, self.digest = known.sizes[label], known.digests[label]
        self._known, self._label = known, label

    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, counting from 1."""
        return self._known.score(Rank(self._label, k))

    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""
        return self._known.count_below(self._label, threshold)

    def prefetch(self, ranks: Iterable[Rank]) -> None:
        """Find the scores at some ranks of both classes, together in as few passes as one would take."""
        self._known.find(ranks)

    def kth_between(self, other: Ranked, low: float, high: float, share: float) -> float:
        """Return the ceil(share m)-th smallest, or the first, of the m scores of both in [low, high]."""
        return self._known.score(self.rank_between(other, low, high, share))


class Classes(NamedTuple):
    """The scores of both classes, what normal points are called here, and the type that the scores came in.

    The last two are None where there are no normal points, or no points at all.
    """

    normal: Scores
    anomalous: Scores
    normal_label: Any
    score_type: ScoreType | None


def split_classes(where: str, scores: ArrayLike, labels: ArrayLike, anomaly_label: object) -> Classes:
    """Return both classes of one piece; what is wrong is refused with the name of the piece.

    >>> split_classes("chunk 0", [0.1, 0.9], ["ok", "fault"], "fault").normal.tolist()
    [0.1]
    """
    name, score_name = f"labels of {where}", f"scores of {where}"
    check_aligned(score_name, scores, name, labels)
    given = as_array(scores, score_name)
    values = as_scores(given, score_name)
    mask = as_anomaly_mask(labels, anomaly_label, name)
    if values.size != mask.size:
        raise InputError(
            f"scores and labels of {where} must have the same length, got {values.size:,} and {mask.size:,}"
        )
    normal_label = None if mask.all() else as_array(labels, name)[int(mask.argmin())]
    kind = type_of(given) if given.size else None
    return Classes(*kernels().divide(values, mask), normal_label, kind)


def check_normal_labels(where: str, first: Any, other: Any, anomaly_label: object) -> None:
    """Refuse two pieces that call their normal points differently; one piece alone cannot tell."""
    as_anomaly_mask(np.array([first, other], dtype=object), anomaly_label, f"labels of {where}")


class ChunkReader:
    """Runs passes over chunks: each reads them all, refuses what is wrong and names the chunk, from 0."""

    # what a chunk is, and of how many arrays
    chunk: ClassVar[tuple[int, str, str]] = (2, "pair", "of scores and labels")

    def __init__(
        self, chunks: Callable[[], Iterable[tuple[ArrayLike, ...]]], anomaly_label: object = 1
    ) -> None:
        if not callable(chunks):
            raise InputError(
                "chunks must be a function that starts a fresh iteration, since several passes are made,"
                f" got {type(chunks).__name__}; pass lambda: ... that opens the data again"
            )
        self._chunks, self._anomaly_label = chunks, anomaly_label
        self._normal_label: Any = None
        self._last: Iterator[Any] | None = None
        self._spaced: Spaced | None = None
        self._score_type: ScoreType | None = None
        self.passes = 0

    @property
    def score_type(self) -> ScoreType:
        """The type that the scores of all chunks have, known after the first pass."""
        return self._score_type or "float64"

    def __call__(self, task: PassTask) -> Any:
        """Return the sum of what the task returns for all chunks."""
        total = None
        for pair in self._batches():
            found = task(*pair)
            total = found if total is None else total + found
            if self._spaced is not None:
                self._spaced.pick(pair)
        if isinstance(total, Survey):
            self._spaced = Spaced(total.sizes)
        return total

    def sample(self) -> Pair:
        """Return the scores of both classes that the AUC is taken on: evenly spaced in the order given."""
        assert self._spaced is not None
        if not self._spaced.whole:
            for pair in self._batches():
                self._spaced.pick(pair)
        return self._spaced.pair

    def _batches(self) -> Iterator[Pair]:
        """Yield both classes of a few chunks at a time; one pair at least."""
        self.passes += 1
        waiting, size = [(np.empty(0), np.empty(0))], 0
        for pair in self._pairs():
            waiting.append(pair)
            size += pair[0].size + pair[1].size
            if size >= _BATCH:
                yield _concatenated(waiting)
                waiting, size = [(np.empty(0), np.empty(0))], 0
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
        normal, anomalous, normal_label, kind = split_classes(where, scores, labels, self._anomaly_label)
        self._score_type = common_type([self._score_type, kind])
        if normal_label is not None:
            if self._normal_label is None:
                self._normal_label = normal_label
            check_normal_labels(where, self._normal_label, normal_label, self._anomaly_label)
        return normal, anomalous


def _concatenated(pairs: list[Pair]) -> Pair:
    if len(pairs) == 2:
        return pairs[1]
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])
