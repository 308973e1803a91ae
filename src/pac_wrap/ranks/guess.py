"""What the first pass may find already: one part of the data says near which scores to look.

A wrong guess costs nothing but its own effort: ranks that it misses are searched for as without it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, inf, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import Bits, order_key, order_keys
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import as_digest
from pac_wrap.ranks.memory import Ranked, count_below, kth_smallest
from pac_wrap.ranks.passes import Known, Passes, RunPass
from pac_wrap.ranks.search import Bounds, Rank, ScoreAtRank, Survey, score_among, survey, within

# standard deviations of a part's rank on both sides; a miss, once in 400 times, only costs more passes
_MARGIN: Final = 3.0
# more ranks than these are not guessed: what lies near them would be too much to send
_RANKS: Final = 16
# up to this many keys are sent: 2 MB
_FEW: Final = 1 << 18
_CHUNK: Final = 1 << 17


class FirstFound(NamedTuple):
    """What the first pass found: the survey, the counts below each pair of bounds, and the keys inside.

    The keys are None where they are too many to be sent.
    """

    survey: Survey
    bounds: Bounds
    below: NDArray[np.int64]
    keys: tuple[Bits, Bits] | None

    def __add__(self, other: Any) -> "FirstFound":
        keys = None
        if self.keys is not None and other.keys is not None:
            keys = _few([np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True)])
        return FirstFound(self.survey + other.survey, self.bounds, self.below + other.below, keys)

    def at(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return what is found at those of some ranks that lie inside.

        >>> first = FirstPass(((2.0, 3.0),))(np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0]))
        >>> first.at([Rank(0, 1), Rank(0, 2)])
        {Rank(label=0, k=2): ScoreAtRank(score=2.0, below=(1, 0), equal=(1, 1))}
        """
        if self.keys is None:
            return {}
        keys = [np.sort(one) for one in self.keys]
        every = [*keys, np.sort(np.concatenate(keys))]
        found = {}
        for (low, high), below in zip(self.bounds, self.below.tolist(), strict=True):
            first = [int(np.searchsorted(one, np.uint64(order_key(low)))) for one in keys]
            last = [int(np.searchsorted(one, np.uint64(order_key(high)), "right")) for one in keys]
            for rank in ranks:
                if 0 < rank.k - rank.of(below) <= rank.of(last) - rank.of(first):
                    found[rank] = score_among(every, rank, first, below)
        return found


@dataclass(frozen=True, slots=True)
class FirstPass:
    """The task of the first pass: the survey, and what lies within bounds, which are disjoint and rise."""

    guessed: Bounds

    def __call__(self, normal: Scores, anomalous: Scores) -> FirstFound:
        """Return what one piece gives; NaN must not occur."""
        classes = normal, anomalous
        below = [[count_below(scores, low) for scores in classes] for low, _ in self.guessed]
        counts = np.array(below, dtype=np.int64).reshape(len(self.guessed), 2)
        keys = _few([self._near(scores) for scores in classes])
        return FirstFound(survey(normal, anomalous), self.guessed, counts, keys)

    def _near(self, scores: Scores) -> Bits:
        """Return the keys of the scores within the bounds."""
        chunks = (scores[start : start + _CHUNK] for start in range(0, scores.size, _CHUNK))
        near = [chunk[within(chunk, self.guessed)] for chunk in chunks]
        return order_keys(np.concatenate(near)) if near else np.zeros(0, dtype=np.uint64)


def _few(keys: list[Bits]) -> tuple[Bits, Bits] | None:
    return (keys[0], keys[1]) if keys[0].size + keys[1].size <= _FEW else None


class GuessedPasses(Passes):
    """Both classes of some data, known through passes, the first of which gathers what was guessed."""

    def __init__(self, run: RunPass, guessed: Bounds) -> None:
        self._first: FirstFound = run(FirstPass(guessed))
        super().__init__(run, self._first.survey)

    def search(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return what is found at some ranks; for those that were guessed right, no pass is made."""
        found = self._first.at(ranks)
        missed = [rank for rank in ranks if rank not in found]
        return found | super().search(missed) if missed else found


@dataclass(frozen=True, slots=True)
class Guess:
    """The task for one of some parts of much the same size: between which scores ranks of the whole will lie.

    `certify` decides on two classes, and only the ranks that it asks for matter.
    """

    certify: Callable[[Ranked, Ranked], object]
    parts: int

    def __call__(self, normal: Scores, anomalous: Scores) -> tuple[Bounds, ...]:
        """Return the bounds, in a tuple of their own, so that they add up."""
        part = _Part((normal, anomalous), self.parts)
        try:
            self.certify(*part.classes)
        except InputError:  # too many ranks, or no scores
            return ((),)
        return (part.bounds,)


class _Part(Known):
    """A part of the data that answers as the whole might: each of its scores stands for as many as parts."""

    def __init__(self, classes: tuple[Scores, Scores], parts: int) -> None:
        self._classes, self._parts = classes, parts
        super().__init__((classes[0].size * parts, classes[1].size * parts), (as_digest(0), as_digest(0)))

    def search(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return what may be found at some ranks, unless they are too many."""
        if len(self._found) + len(ranks) > _RANKS:
            raise InputError(f"more than {_RANKS} ranks are not guessed; search for them")
        return {rank: self._at(kth_smallest(self._of(rank), ceil(rank.k / self._parts))) for rank in ranks}

    def count(self, threshold: float) -> tuple[int, int]:
        """Return how many scores of each class may be less than the threshold."""
        normal, anomalous = (count_below(scores, threshold) * self._parts for scores in self._classes)
        return normal, anomalous

    @property
    def bounds(self) -> Bounds:
        """Pairs of scores that the ranks asked for will likely lie between, if not too many others do."""
        merged: list[tuple[float, float]] = []
        for low, high in sorted(self._around(rank) for rank in self._found):
            if merged and low <= merged[-1][1]:
                low, high = merged[-1][0], max(high, merged.pop()[1])
            merged.append((low, high))
        inside = sum(int(np.count_nonzero(within(scores, tuple(merged)))) for scores in self._classes)
        return tuple(merged) if inside * self._parts <= _FEW else ()

    def _at(self, score: float) -> ScoreAtRank:
        return ScoreAtRank(score, self.count(score), (self._parts, self._parts))

    def _of(self, rank: Rank) -> Scores:
        """Return the scores that a rank counts."""
        return np.concatenate(self._classes) if rank.label > 1 else self._classes[rank.label]

    def _around(self, rank: Rank) -> tuple[float, float]:
        """Return two scores on both sides of a rank."""
        scores, k = self._of(rank), rank.k / self._parts
        margin = _MARGIN * (sqrt(k * max(0.0, 1.0 - k / scores.size)) + 1.0)
        low, high = floor(k - margin), ceil(k + margin)
        return (
            kth_smallest(scores, low) if low >= 1 else -inf,
            kth_smallest(scores, high) if high <= scores.size else inf,
        )
