"""Two classes whose scores are only seen in passes: what is not known yet costs one more."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf, nextafter
from struct import pack
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pac_wrap.calibration import Request, certify
from pac_wrap.certificate import Certificate
from pac_wrap.errors import InputError
from pac_wrap.guarantee import Budget
from pac_wrap.inputs import Scores
from pac_wrap.order import Found, Rank, Ranked, RankSearch, Survey, count_below, survey
from pac_wrap.precision import ScoreType
from pac_wrap.relaxation import feasible_levels, level_budgets

# a task is called with the normal and the anomalous scores of one part; what it returns can be added up
Task = Callable[[Scores, Scores], Any]


class Run(Protocol):
    """Some data: a call is one pass over it."""

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores, known after the first pass."""

    def __call__(self, task: Task) -> Any:
        """Return the sum of what the task returns for all parts."""


@dataclass(frozen=True, slots=True)
class CountBelow:
    """The task that counts, in both classes, the scores below a threshold and all scores."""

    threshold: float

    def __call__(self, normal: Scores, anomalous: Scores) -> NDArray[np.int64]:
        """Return the counts of one part."""
        below = [count_below(scores, self.threshold) for scores in (normal, anomalous)]
        return np.array([below, [normal.size, anomalous.size]], dtype=np.int64)


class Passes:
    """Both classes of some data, known through passes over it; the first is made at once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.survey: Survey = run(survey)
        self._found: dict[Rank, Found] = {}
        self._counted: dict[bytes, tuple[int, int]] = {}

    def certify(self, request: Request) -> Certificate:
        """Return the certificate that a request gets from this data."""
        budgets = request.budgets(*self.survey.sizes)
        self._find(_ranks(request, budgets, *self.survey.sizes))
        return certify(request, budgets, _Side(self, 0), _Side(self, 1), self._run.score_type)

    def score(self, rank: Rank) -> float:
        """Return the score at a rank."""
        if rank not in self._found:
            self._find([rank])
        return self._found[rank].score

    def count_below(self, label: int, threshold: float) -> int:
        """Return how many scores of a class are less than the threshold."""
        # by their bits: a processor that flushes subnormal numbers takes them for zeros in any comparison
        wanted = pack("<d", threshold)
        for found in self._found.values():
            if wanted == pack("<d", found.score):
                return found.below[label]
            if wanted == pack("<d", nextafter(found.score, inf)):
                return found.below[label] + found.equal[label]
        if wanted not in self._counted:
            below, sizes = self._run(CountBelow(threshold)).tolist()
            if tuple(sizes) != self.survey.sizes:
                raise InputError("the scores changed between two passes; give the same ones every time")
            self._counted[wanted] = (below[0], below[1])
        return self._counted[wanted][label]

    def _find(self, ranks: Iterable[Rank]) -> None:
        search = RankSearch.begin(self.survey, ranks)
        while not search.done:
            search = search.advance(self._run(search))
        self._found |= search.found


class _Side(Ranked):
    """One class of the data."""

    def __init__(self, passes: Passes, label: int) -> None:
        self.size, self.digest = passes.survey.sizes[label], passes.survey.digests[label]
        self._passes, self._label = passes, label

    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, counted from 1."""
        return self._passes.score(Rank(self._label, k))

    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""
        return self._passes.count_below(self._label, threshold)


def _ranks(
    request: Request, budgets: tuple[Budget | None, Budget | None], n_normal: int, n_anomalous: int
) -> Iterator[Rank]:
    """Yield every rank that may be asked for, as far as the numbers of labels tell."""
    strategy = request.strategy
    pairs = [budgets]
    if strategy is not None and strategy.name == "relax":
        levels = feasible_levels(strategy, request.guarantee, n_normal, n_anomalous)
        pairs = [level_budgets(strategy, level, len(levels), n_normal, n_anomalous) for level in levels]
    held = None if strategy is None else strategy.name
    for fpr, fnr in pairs:
        if fpr is not None and fpr.errors is not None and held != "hold_fnr":
            yield Rank(0, n_normal - fpr.errors)
        if fnr is not None and fnr.errors is not None and held != "hold_fpr":
            yield Rank(1, fnr.errors + 1)
