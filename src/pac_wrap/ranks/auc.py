"""The chance that an anomaly outscores a normal point, and whether it shows scores that are upside down."""

import warnings
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import Floats
from pac_wrap.base.missing import frames_inside
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.ranks.memory import scattered_positions

Pair = tuple[Scores, Scores]
# the most points of a class that an AUC is taken on, and a rough one
_POINTS: Final = 10_000
_FEW: Final = 1000
# of a thousand points each: more than six standard deviations above one half
_CLEARLY: Final = 0.6
# how often scores that are not upside down may be taken for it
_LEVEL: Final = 0.01


def rough_auc(normal: Floats, anomalous: Floats) -> float:
    """Return the AUC of up to a thousand points of each class, or of more of them if those leave it open.

    Whether it is upside down is as in `auc`, unless chance plays a trick of more than six standard
    deviations.
    """
    found = auc(_scattered(normal), _scattered(anomalous))
    return found if found > _CLEARLY else auc(normal, anomalous)


def auc(normal: Floats, anomalous: Floats) -> float:
    """Return the chance that an anomaly outscores a normal point, ties counting one half.

    Beyond 10,000 points per class it is taken on that many, evenly spaced in the order given.

    >>> auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    # both sorted: the search then walks through memory in order, four times as fast
    low, high = np.sort(_spaced(normal)), np.sort(_spaced(anomalous))
    below = np.searchsorted(low, high, side="left").sum(dtype=np.float64)
    not_above = np.searchsorted(low, high, side="right").sum(dtype=np.float64)
    return float((below + not_above) / (2.0 * low.size * high.size))


def spaced_positions(size: int) -> NDArray[np.intp]:
    """Return the positions, in rising order, of the scores among `size` that an AUC is taken on.

    >>> spaced_positions(3).tolist()
    [0, 1, 2]
    """
    if size <= _POINTS:
        return np.arange(size, dtype=np.intp)
    return np.linspace(0, size - 1, _POINTS).astype(np.intp)


class Spaced:
    """Picks evenly spaced scores of both classes while they go by in order."""

    def __init__(self, sizes: tuple[int, int]) -> None:
        self._positions = [spaced_positions(size) for size in sizes]
        self._seen = [0, 0]
        self._picked: tuple[list[Scores], list[Scores]] = ([np.empty(0)], [np.empty(0)])

    @property
    def whole(self) -> bool:
        """Whether all scores have gone by."""
        return all(
            not positions.size or seen > positions[-1]
            for seen, positions in zip(self._seen, self._positions, strict=True)
        )

    @property
    def pair(self) -> Pair:
        """The picked scores of both classes."""
        return np.concatenate(self._picked[0]), np.concatenate(self._picked[1])

    def pick(self, pair: Pair) -> None:
        """Pick from the next scores of both classes, unless everything has gone by before."""
        for label, scores in enumerate(pair):
            positions, seen = self._positions[label], self._seen[label]
            first, last = np.searchsorted(positions, [seen, seen + scores.size])
            self._picked[label].append(scores[positions[first:last] - seen])
            self._seen[label] = seen + scores.size


def is_upside_down(a: float, *sizes: int) -> bool:
    """Return whether an AUC of classes of these sizes is significantly below one half, at 1 %: eq. (25).

    m (ln 2 + a ln a + (1 - a) ln(1 - a)) >= ln 100, m being the smaller size. Holds whatever the two
    distributions, with ties; fewer than seven points of a class are never enough.

    >>> is_upside_down(0.1, 60, 20), is_upside_down(0.45, 60, 20), is_upside_down(0.0, 1000, 6)
    (True, False, False)
    """
    if a >= 0.5:
        return False
    divergence = log(2.0) + sum(share * log(share) for share in (a, 1.0 - a) if share > 0.0)
    # an AUC is taken on no more points than that
    return min(*sizes, _POINTS) * divergence >= -log(_LEVEL)


def warn_if_upside_down(area: float, *sizes: int) -> None:
    """Warn the user, who is outside this package, if the AUC is significantly below one half."""
    if is_upside_down(area, *sizes):
        warnings.warn(
            f"anomalies score lower than normal points (AUC {area:.3f}); if the scores are upside down,"
            ' negate them or pass polarity="lower"',
            UpsideDownWarning,
            stacklevel=frames_inside() + 1,
        )


def _spaced(scores: Floats) -> Scores:
    taken = scores if scores.size <= _POINTS else scores[spaced_positions(scores.size)]
    return taken.astype(np.float64, copy=False)


def _scattered(scores: Floats) -> Floats:
    return scores if scores.size <= _FEW else scores[scattered_positions(scores.size, _FEW)]
