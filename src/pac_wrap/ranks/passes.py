"""Two classes whose scores are only seen in passes: what is not known yet costs one more."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, ScoreType
from pac_wrap.base.floats import order_key
from pac_wrap.errors import InputError
from pac_wrap.ranks.memory import Ranked, count_below
from pac_wrap.ranks.search import Rank, RankSearch, ScoreAtRank, Survey, survey

# called with the normal and the anomalous scores of one piece of the data; what it returns can be added up
PassTask = Callable[[Scores, Scores], Any]


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


class Passes:
    """Both classes of some data, known through passes over it; the first is made at once."""

    def __init__(self, run: RunPass) -> None:
        self._run = run
        self.survey: Survey = run(survey)
        self._found: dict[Rank, ScoreAtRank] = {}
        self._counted: dict[int, tuple[int, int]] = {}

    @property
    def classes(self) -> tuple[Ranked, Ranked]:
        """The normal and the anomalous scores; what is asked of them and not known yet costs a pass."""
        return _RankedInPasses(self, 0), _RankedInPasses(self, 1)

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores."""
        return self._run.score_type

    def score(self, rank: Rank) -> float:
        """Return the score at a rank."""
        if rank not in self._found:
            self.find([rank])
        return self._found[rank].score

    def count_below(self, label: int, threshold: float) -> int:
        """Return how many scores of a class are less than the threshold."""
        wanted = order_key(threshold)
        for found in self._found.values():
            if wanted == order_key(found.score):
                return found.below[label]
            if wanted == order_key(nextafter(found.score, inf)):
                return found.below[label] + found.equal[label]
        if wanted not in self._counted:
            below, sizes = self._run(CountBelow(threshold)).tolist()
            if tuple(sizes) != self.survey.sizes:
                raise InputError("the scores changed between two passes; give the same ones every time")
            self._counted[wanted] = (below[0], below[1])
        return self._counted[wanted][label]

    def find(self, ranks: Iterable[Rank]) -> None:
        """Find the scores at some ranks, together in as few passes as one would take."""
        search = RankSearch.begin(self.survey, ranks)
        while not search.done:
            search = search.advance(self._run(search))
        self._found |= search.found


class _RankedInPasses(Ranked):
    """The scores of one class of the data."""

    def __init__(self, passes: Passes, label: int) -> None:
        self.size, self.digest = passes.survey.sizes[label], passes.survey.digests[label]
        self._passes, self._label = passes, label

    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, counting from 1."""
        return self._passes.score(Rank(self._label, k))

    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""
        return self._passes.count_below(self._label, threshold)
