"""Scores without labels against the two bands of a curve: too many of them where neither class has many."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import inf, nextafter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, ScoreType
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.watch.bets import Bets
from pac_wrap.ranks.precision import rounded

Doubles = NDArray[np.float64]
Counts = NDArray[np.int64]
# the bounds whose thresholds are paired, and the shares of the largest bet that are mixed: eq. (91)
LEVELS: Final = (0.01, 0.03, 0.08, 0.2, 0.4)
SHARES: Final = (0.5, 0.2, 0.08, 0.03)


@dataclass(frozen=True)
class Hull:
    """Bets that too many scores lie between two thresholds, for every pair of them.

    A pair (t, t') with t < t' has the bounds FPR(t) <= 1 - a and FNR(t') <= 1 - b. For any prevalence
    P(s < t) / a + P(s >= t') / b >= 1: eq. (89). `edges` are all thresholds, rising; `pairs` has for each bet
    the places of its two and its a and b.
    """

    edges: Doubles
    pairs: tuple[tuple[int, int, float, float], ...]
    bets: Bets
    score_type: ScoreType

    def cells(self, scores: Scores) -> Counts:
        """Return the cell of each score: how many thresholds it reaches."""
        values = scores if self.score_type == "float64" else rounded(scores, self.score_type)
        return np.searchsorted(self.edges, values, side="right").astype(np.int64)

    def allowed(self, bet: int, fates: Counts) -> float:
        """Return what share may lie between the thresholds of a bet, beside those that lie above."""
        _, _, a, b = self.pairs[bet]
        above = float(fates[2] / max(1, fates.sum()))
        return min(1.0, max(0.0, 1.0 - a - above * (1.0 - a / b)))

    def ends(self, bet: int) -> tuple[float, float]:
        """Return the thresholds of a bet."""
        low, high, _, _ = self.pairs[bet]
        return float(self.edges[low]), float(self.edges[high])


@lru_cache(maxsize=8)
def hull_of(curve: Curve) -> Hull | None:
    """Return the bets on a curve, None if no pair of thresholds has anything between.

    >>> from pac_wrap import certify_curve
    >>> hull = hull_of(certify_curve(range(1000), range(2000, 3000)))
    >>> hull.edges.size, len(hull.pairs)
    (10, 100)
    """
    pairs = list(_pairs(curve))
    if not pairs:
        return None
    edges = np.array(sorted({edge for low, high, _, _ in pairs for edge in (low, high)}))
    cells = np.arange(edges.size + 1)
    found, logs, fates = [], [], []
    for t, above, a, b in pairs:
        low, high = int(np.searchsorted(edges, t)), int(np.searchsorted(edges, above))
        fate = np.where(cells <= low, 0, np.where(cells <= high, 1, 2))
        for share in SHARES:
            bet = share * min(a / (1.0 - a), b / (1.0 - b))
            logs.append(np.log1p([-bet * (1.0 - a) / a, bet, -bet * (1.0 - b) / b])[fate])
            fates.append(fate)
            found.append((low, high, a, b))
    return Hull(edges, tuple(found), Bets(np.array(logs), np.array(fates)), curve.score_type)


def _pairs(curve: Curve) -> Iterator[tuple[float, float, float, float]]:
    """Yield pairs of thresholds with something between, and what each side keeps at least."""
    lows = [curve.normal.score_within(level) for level in LEVELS]
    highs = [curve.anomalous.score_within(level) for level in LEVELS]
    for t in dict.fromkeys(nextafter(score, inf) for score in lows if score is not None and score < inf):
        for above in dict.fromkeys(score for score in highs if score is not None and score > -inf):
            a, b = 1.0 - curve.fpr(t), 1.0 - curve.fnr(above)
            if t < above and 0.0 < a < 1.0 and 0.0 < b < 1.0:
                yield t, above, a, b
