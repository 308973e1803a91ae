"""Detectors ranked by what can be certified with them, beside their AUC."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from pac_wrap.tails.binomial import error_budget
from pac_wrap_paper.adbench.chance import LEVEL
from pac_wrap_paper.adbench.measure import Outcomes
from pac_wrap_paper.adbench.summary import mean

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Standing:
    """What one detector reaches on one table: its AUC, and on average over divisions what is certified.

    `ceiling` is the larger of the two that `raise` certifies, 1 where it certifies none, and `decided` the
    share of points that `abstain` decides at .05 and .05. Of the held-out rows, `crossing` is the least rate
    that both errors can have at once; `cleared` are those below the score at which the budget of the
    anomalies puts a threshold on average, and `alarmed` those above that of the normals.
    """

    table: str
    detector: str
    auc: float
    ceiling: float
    decided: float
    crossing: float
    cleared: float
    alarmed: float

    @property
    def ends(self) -> float:
        """The share of held-out rows beyond either of the two scores."""
        return min(1.0, self.cleared + self.alarmed)

    @classmethod
    def of(cls, one: Outcomes) -> "Standing":
        """Return the standing that outcomes amount to."""
        ceilings = np.maximum(one.of("raise", "max FPR"), one.of("raise", "max FNR"))
        normal, anomalous = one.scored.normal, one.scored.anomalous
        return cls(
            one.scored.table,
            one.scored.detector,
            one.scored.auc,
            mean(np.where(np.isnan(ceilings), 1.0, ceilings)),
            mean(one.of("abstain", "decided")),
            equal_error(normal, anomalous),
            float(np.mean(np.append(normal, anomalous) < _usual(anomalous, one.sizes[1]))),
            float(np.mean(np.append(normal, anomalous) > -_usual(-normal[::-1], one.sizes[0]))),
        )


def _usual(scores: Floats, n: int) -> float:
    """Return about where the (k + 1)-th smallest of n points drawn from these lies, k their error budget.

    On average it has the share (k + 1) / (n + 1) of the scores up to it; -inf if n is too small.
    """
    budget = error_budget(n, LEVEL, LEVEL)
    if budget is None:
        return -inf
    return float(scores[max(0, int((budget + 1) / (n + 1) * scores.size) - 1)])


def equal_error(normal: Floats, anomalous: Floats) -> float:
    """Return the least rate that neither error exceeds at some threshold; both arrays are sorted.

    >>> equal_error(np.array([0.0, 1.0, 2.0, 3.0]), np.array([2.5, 4.0]))
    0.25
    """
    thresholds = np.append(anomalous, np.inf)
    flagged = 1.0 - np.searchsorted(normal, thresholds) / normal.size
    missed = np.searchsorted(anomalous, thresholds) / anomalous.size
    return float(np.maximum(flagged, missed).min())


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's correlation of two orders, ties sharing their ranks; NaN if one of them is flat.

    >>> rank_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), rank_correlation([1.0, 2.0], [1.0, 1.0])
    (1.0, nan)
    """
    ranks = rankdata(first), rankdata(second)
    if min(np.ptp(ranks[0]), np.ptp(ranks[1])) == 0.0:
        return float("nan")
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)


@dataclass(frozen=True, slots=True)
class Board:
    """One table's detectors in three orders: by AUC, by the certified ceiling, by the decided share."""

    standings: tuple[Standing, ...]

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.standings[0].table

    @property
    def by_auc(self) -> Standing:
        """The detector with the greatest AUC."""
        return max(self.standings, key=lambda one: one.auc)

    @property
    def by_ceiling(self) -> Standing:
        """The detector with the least certified ceiling; of equals, the one with the greater AUC."""
        return min(self.standings, key=lambda one: (one.ceiling, -one.auc))

    @property
    def by_decided(self) -> Standing:
        """The detector that decides most."""
        return max(self.standings, key=lambda one: (one.decided, one.auc))

    def agreement(self, field: str, other: str = "auc") -> float:
        """Return the rank correlation of two orders, good first in both."""
        sign = {"ceiling": -1.0, "crossing": -1.0}
        values = [
            [sign.get(name, 1.0) * getattr(one, name) for one in self.standings] for name in (field, other)
        ]
        return rank_correlation(*values)

    @property
    def inversion(self) -> tuple[Standing, Standing]:
        """The two detectors of which the one with the greater AUC decides less by most; it comes first."""
        pairs = [(a, b) for a in self.standings for b in self.standings if a.auc >= b.auc]
        return max(pairs, key=lambda pair: pair[1].decided - pair[0].decided)

    def rank(self, one: Standing, field: str) -> int:
        """Return the place of a detector by a field, from 1."""
        sign = -1.0 if field == "ceiling" else 1.0
        own = sign * getattr(one, field)
        return 1 + sum(bool(sign * getattr(other, field) > own) for other in self.standings)


def boards(outcomes: Sequence[Outcomes]) -> tuple[Board, ...]:
    """Return the board of every table."""
    standings = [Standing.of(one) for one in outcomes]
    tables = dict.fromkeys(one.table for one in standings)
    return tuple(Board(tuple(one for one in standings if one.table == table)) for table in tables)
