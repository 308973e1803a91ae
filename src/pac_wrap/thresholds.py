"""Two thresholds by rank, and what they say about a score. Ties and infinities live here and nowhere else."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from math import inf, nextafter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.errors import InputError
from pac_wrap.guarantee import Budget
from pac_wrap.inputs import Scores, as_scores
from pac_wrap.kernels import flushes
from pac_wrap.order import Ranked, count_below, kth_largest, kth_smallest, to_keys
from pac_wrap.precision import ScoreType, rounding_edge
from pac_wrap.steps import Steps


class Verdict(IntEnum):
    """What is declared about a point."""

    NORMAL = 0
    ANOMALY = 1
    ABSTAIN = -1


class Regime(StrEnum):
    """How the two thresholds lie; `explanation` is the sentence a user reads."""

    SEPARATED = "separated"
    OVERLAPPING = "overlapping"
    VACUOUS = "vacuous"

    @property
    def explanation(self) -> str:
        """The regime in one sentence."""
        return {
            Regime.SEPARATED: "one threshold can keep what is promised",
            Regime.OVERLAPPING: "the classes overlap too much for one threshold to keep the promise",
            Regime.VACUOUS: "there are too few labels on a promised side; the promise is true but empty",
        }[self]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """An anomaly may be declared from `alarm_from` on, normality below `clear_below`: eqs. (7) to (11).

    `alarm_from = inf` never alarms, not even at a score of inf; `clear_below = -inf` never clears. None on
    one side means that nothing is promised there, and the other threshold decides alone. Two equal ones are
    a single threshold: nothing is abstained.

    >>> Thresholds(alarm_from=0.7, clear_below=0.3).verdicts([0.1, 0.5, 0.9])
    array([ 0, -1,  1], dtype=int8)
    """

    alarm_from: float | None
    clear_below: float | None

    @property
    def single(self) -> bool:
        """Whether this is one threshold, so that nothing is ever abstained."""
        if self.alarm_from is None or self.clear_below is None:
            return True
        return self.alarm_from == self.clear_below < inf

    @property
    def separated(self) -> bool:
        """Whether one threshold can stand for both: clear_below >= alarm_from, eq. (13)."""
        if self.alarm_from is None or self.clear_below is None:
            return True
        return self.alarm_from < inf and self.clear_below >= self.alarm_from

    @property
    def ambiguity_region(self) -> tuple[float, float] | None:
        """The half-open range [from, to) of scores that are abstained, or None."""
        if self.alarm_from is None or self.clear_below is None or self.single:
            return None
        return min(self.alarm_from, self.clear_below), max(self.alarm_from, self.clear_below)

    def before_rounding(self, kind: ScoreType) -> "Thresholds":
        """Return the thresholds that say of a score what these say of it rounded to a type: eq. (26).

        >>> Thresholds(alarm_from=0.7, clear_below=0.3).before_rounding("float16")
        Thresholds(alarm_from=0.699951171875, clear_below=0.29992675781250006)
        """
        if kind == "float64":
            return self
        alarm, clear = self.alarm_from, self.clear_below
        return Thresholds(
            # inf stays: it means never, also for what rounds to inf
            alarm_from=alarm if alarm is None or alarm == inf else rounding_edge(alarm, kind),
            clear_below=None if clear is None else rounding_edge(clear, kind),
        )

    def y_fp(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return 1 where label 0 is ruled out, else 0: the predictor that keeps the FPR, eq. (8)."""
        if self.alarm_from is None:
            raise InputError("nothing is promised on the FPR, so y_fp has no threshold; set max_fpr")
        return _alarms(as_scores(scores), self.alarm_from).view(np.int8)

    def y_fn(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return 0 where label 1 is ruled out, else 1: the predictor that keeps the FNR, eq. (10)."""
        if self.clear_below is None:
            raise InputError("nothing is promised on the FNR, so y_fn has no threshold; set max_fnr")
        return (as_scores(scores) >= self.clear_below).view(np.int8)

    def prediction_sets(self, scores: ArrayLike) -> NDArray[np.bool_]:
        """Return an (n, 2) array: is label 0, is label 1 still possible? Eq. (11).

        >>> Thresholds(alarm_from=0.7, clear_below=0.3).prediction_sets([0.1, 0.5, 0.9]).tolist()
        [[True, False], [True, True], [False, True]]
        """
        scores = as_scores(scores)
        sets = np.ones((scores.size, 2), dtype=bool)
        if self.alarm_from is not None:
            np.logical_not(_alarms(scores, self.alarm_from), out=sets[:, 0])
        if self.clear_below is not None:
            np.greater_equal(scores, self.clear_below, out=sets[:, 1])
        return sets

    def verdicts(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return 1 (anomaly), 0 (normal) or -1 (abstain) for each score."""
        # where subnormal numbers are zeros, the cache would take one threshold for another
        make = steps_of.__wrapped__ if flushes() else steps_of
        return make(self.alarm_from, self.clear_below).codes_of(scores)

    def ambiguity(self, scores: ArrayLike) -> float:
        """Return the share of scores that are abstained: eq. (14)."""
        verdicts = self.verdicts(scores)
        if verdicts.size == 0:
            raise InputError("scores are empty, so they have no ambiguity; pass at least one score")
        return float(np.count_nonzero(verdicts == Verdict.ABSTAIN) / verdicts.size)


@lru_cache(maxsize=64)
def steps_of(alarm_from: float | None, clear_below: float | None) -> Steps:
    """Return the verdicts as a step function: they change only where a threshold is reached."""
    # by their keys: a processor that flushes subnormal numbers takes them for zeros in any comparison
    alarm, clear = (None if edge is None else _key(edge) for edge in (alarm_from, clear_below))
    edges = {
        key: edge
        for key, edge in ((alarm, alarm_from), (clear, clear_below))
        if key is not None and edge is not None and edge > -inf
    }
    codes = []
    for place in (_key(-inf), *sorted(edges)):
        alarms = None if alarm is None else alarm <= place and alarm_from != inf
        kept = None if clear is None else clear <= place
        sides = {side for side in (alarms, kept) if side is not None}
        # both or the only one: 1, neither: 0, just one of two: -1
        codes.append(int(sides.pop()) if len(sides) == 1 else int(Verdict.ABSTAIN))
    return Steps([edges[key] for key in sorted(edges)], codes)


def _key(edge: float) -> int:
    return int(to_keys(np.array([edge]))[0])


def alarm_from(normal: Scores | Ranked, budget: int | None) -> float:
    """Return the smallest threshold that at most `budget` normal scores reach: eq. (7)."""
    return inf if budget is None else nextafter(kth_largest(normal, budget + 1), inf)


def clear_below(anomalous: Scores | Ranked, budget: int | None) -> float:
    """Return the largest threshold that at most `budget` anomalous scores lie below: eq. (9)."""
    return -inf if budget is None else kth_smallest(anomalous, budget + 1)


def find_thresholds(
    normal: Scores | Ranked, anomalous: Scores | Ranked, fpr: Budget | None, fnr: Budget | None
) -> Thresholds:
    """Return both thresholds; a side without a budget promises nothing."""
    return Thresholds(
        alarm_from=None if fpr is None else alarm_from(normal, fpr.errors),
        clear_below=None if fnr is None else clear_below(anomalous, fnr.errors),
    )


def find_regime(thresholds: Thresholds, fpr: Budget | None, fnr: Budget | None) -> Regime:
    """Return how the thresholds lie, given the budgets they were found with."""
    if any(budget is not None and budget.errors is None for budget in (fpr, fnr)):
        return Regime.VACUOUS
    return Regime.SEPARATED if thresholds.separated else Regime.OVERLAPPING


def crossings(
    normal: Scores | Ranked, anomalous: Scores | Ranked, thresholds: Thresholds
) -> tuple[int, int] | tuple[None, None]:
    """Return how many points lie beyond the *other* class's threshold: the two counts of eq. (13).

    Normal scores at or above `clear_below`, and anomalous scores below `alarm_from`.
    """
    if thresholds.alarm_from is None or thresholds.clear_below is None:
        return None, None
    high = normal.size - count_below(normal, thresholds.clear_below)
    if thresholds.alarm_from == inf:
        return high, anomalous.size
    return high, count_below(anomalous, thresholds.alarm_from)


def _alarms(scores: Scores, threshold: float) -> NDArray[np.bool_]:
    if threshold == inf:
        return np.zeros(scores.size, dtype=bool)
    if threshold == -inf:
        return np.ones(scores.size, dtype=bool)
    # the same as scores >= threshold, but right also where the processor flushes subnormal numbers to zero
    return scores > nextafter(threshold, -inf)
