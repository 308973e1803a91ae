"""Two thresholds by rank, one from each class. Ties and infinities live here and nowhere else."""

from dataclasses import dataclass
from enum import StrEnum
from math import inf, nextafter
from sys import float_info
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import (
    ON_MISSING,
    OnMissing,
    Places,
    Scores,
    abstained_or_stopped,
    as_scores,
    check_choice,
    missing_places,
)
from pac_wrap.base.floats import ScoreType, order_key, reaches, rounding_edge
from pac_wrap.errors import InputError
from pac_wrap.method.rule import Rule
from pac_wrap.ranks.memory import Ranked, kth_largest, kth_smallest
from pac_wrap.tails.bounds import Budget

LARGEST: Final = float_info.max


class Regime(StrEnum):
    """How the two thresholds lie; `explanation` is the sentence a user reads.

    Examples
    --------
    >>> from pac_wrap import Regime, calibrate
    >>> calibrate(range(100), range(100, 200)).regime is Regime.SEPARATED
    True
    >>> Regime.SEPARATED.explanation
    'one threshold can keep what is promised'
    """

    SEPARATED = "separated"
    OVERLAPPING = "overlapping"
    VACUOUS = "vacuous"

    @property
    def explanation(self) -> str:
        """The regime in one sentence."""
        return {
            Regime.SEPARATED: "one threshold can keep what is promised",
            Regime.OVERLAPPING: "the classes overlap too much for one threshold to keep the promise with"
            " these labels",
            Regime.VACUOUS: "there are too few labels for what was asked, and nothing is promised there",
        }[self]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What each class's calibration points say about the scores: evidence, eqs. (7) to (11)."""

    alarm_from: float | None
    clear_below: float | None

    @property
    def separated(self) -> bool:
        """Whether one threshold can stand for both: clear_below >= alarm_from, eq. (13)."""
        if self.alarm_from is None or self.clear_below is None:
            return True
        alarm, clear = self.alarm_from, self.clear_below
        if alarm == clear == 0.0:  # two numbers may both be taken for zero
            return order_key(clear) >= order_key(alarm)
        return alarm < inf and clear >= alarm

    @property
    def rule(self) -> Rule:
        """The rule that decides where both classes agree, and abstains between the two thresholds: eq. (11).

        A threshold at inf that is to be reached by a score of inf is put on the largest double, since
        `anomaly_from = inf` is never reached.
        """
        alarm, clear = self.alarm_from, self.clear_below
        if alarm is None or clear is None:
            only = alarm if alarm is not None else min(clear, LARGEST) if clear is not None else inf
            return Rule(only, only)
        if self.separated:
            return Rule(alarm, min(clear, LARGEST))
        return Rule(min(clear, LARGEST), alarm)

    def before_rounding(self, kind: ScoreType) -> "Thresholds":
        """Return the thresholds that say of a score what these say of it rounded to a type: eq. (26)."""
        if kind == "float64":
            return self
        alarm, clear = self.alarm_from, self.clear_below
        return Thresholds(
            # inf stays: it means never, also for what rounds to inf
            alarm_from=alarm if alarm is None or alarm == inf else rounding_edge(alarm, kind),
            clear_below=None if clear is None else rounding_edge(clear, kind),
        )

    def _alarms(self, scores: Scores) -> NDArray[np.bool_]:
        if self.alarm_from is None or self.alarm_from == inf:
            return np.zeros(scores.size, dtype=bool)
        return reaches(scores, self.alarm_from)

    def y_fp(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return 1 where label 0 is ruled out, else 0: the predictor that keeps the FPR, eq. (8)."""
        if self.alarm_from is None:
            raise InputError("nothing is promised on the FPR, so y_fp has no threshold; set max_fpr")
        return self._alarms(as_scores(scores)).view(np.int8)

    def y_fn(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return 0 where label 1 is ruled out, else 1: the predictor that keeps the FNR, eq. (10)."""
        if self.clear_below is None:
            raise InputError("nothing is promised on the FNR, so y_fn has no threshold; set max_fnr")
        return reaches(as_scores(scores), self.clear_below).view(np.int8)

    def prediction_sets(self, scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.bool_]:
        """Return which labels each score leaves possible: eq. (11)."""
        check_choice("on_missing", on_missing, ON_MISSING)
        values = as_scores(scores, missing=True)
        missing = missing_places(values)
        abstained_or_stopped(missing, values.size, on_missing)
        return self.possible(values, missing)

    def possible(self, scores: Scores, missing: Places) -> NDArray[np.bool_]:
        """Return the prediction sets of scores of which some are known to be missing."""
        sets = np.ones((scores.size, 2), dtype=bool)
        if self.alarm_from is not None:
            np.logical_not(self._alarms(scores), out=sets[:, 0])
        if self.clear_below is not None:
            sets[:, 1] = reaches(scores, self.clear_below)
        sets[missing] = True
        return sets


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
