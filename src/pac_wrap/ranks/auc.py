"""Two looks at the scores of both classes: are they upside down, and was a class chosen by its scores?"""

import warnings
from math import ceil, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, frames_inside
from pac_wrap.base.floats import Floats
from pac_wrap.errors import LabelWarning, UpsideDownWarning
from pac_wrap.ranks.memory import RankedInMemory, scattered_positions

Pair = tuple[Scores, Scores]
# the most points of a class that an AUC is taken on, and a rough one
_POINTS: Final = 10_000
_FEW: Final = 1000
# of a thousand points each: more than six standard deviations above one half
_CLEARLY: Final = 0.6
# how often scores that are not upside down may be taken for it
_LEVEL: Final = 0.01
# a class that breaks off has so many points next to its end, and at least that share of all
_EDGE: Final = 20
_EDGE_SHARE: Final = 0.05
# so many of the other class lie beyond these, at most that share of it beyond the end, and few in between
_OTHERS: Final = 20
_OTHERS_SHARE: Final = 0.25
_FALL: Final = 1.5
_BETWEEN: Final = 5
# points of a class that are looked at
_MOST: Final = 100_000


def rough_auc(normal: Floats, anomalous: Floats) -> float:
    """Return the AUC of up to a thousand points of each class, or of more of them if those leave it open."""
    found = auc(_scattered(normal), _scattered(anomalous))
    return found if found > _CLEARLY else auc(normal, anomalous)


def auc(normal: Floats, anomalous: Floats) -> float:
    """Return the chance that an anomaly outscores a normal point, ties counting one half."""
    # both sorted: the search then walks through memory in order, four times as fast
    low, high = np.sort(_spaced(normal)), np.sort(_spaced(anomalous))
    below = np.searchsorted(low, high, side="left").sum(dtype=np.float64)
    not_above = np.searchsorted(low, high, side="right").sum(dtype=np.float64)
    return float((below + not_above) / (2.0 * low.size * high.size))


def spaced_positions(size: int, most: int = _POINTS) -> NDArray[np.intp]:
    """Return the positions, in rising order, of the scores among `size` that are looked at, evenly spaced."""
    if size <= most:
        return np.arange(size, dtype=np.intp)
    return np.linspace(0, size - 1, most).astype(np.intp)


def is_upside_down(a: float, *sizes: int) -> bool:
    """Return whether an AUC of classes of these sizes is significantly below one half, at 1 %: eq. (25).

    m (ln 2 + a ln a + (1 - a) ln(1 - a)) >= ln 100, m being the smaller size. Holds whatever the two
    distributions, with ties; fewer than seven points of a class are never enough.
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


def breaks_off(scores: Floats, others: Floats, *, ordered: bool = False) -> tuple[int, float] | None:
    """Return how many others lie above the lowest score of a class, and that score, if it breaks off there.

    It does if its J lowest scores lie close together: at most half as many others again lie above the first
    of them as above the last. One that thins out does so with a chance of at most eq. (135). The upper end of
    a class is the lower end of its negated scores. Scores that are in order take less time.
    """
    many = max(_EDGE, ceil(_EDGE_SHARE * scores.size))
    if scores.size < many or others.size < _OTHERS:
        return None
    low = scores[:many] if ordered else np.sort(np.partition(scores, many - 1)[:many])
    if ordered:
        above, beyond = (others.size - others.searchsorted(low[[0, -1]])).tolist()
    else:
        above, beyond = (int(np.count_nonzero(others >= end)) for end in (low[0], low[-1]))
    suspicious = (
        beyond >= _OTHERS
        and above <= _OTHERS_SHARE * others.size
        and beyond + _BETWEEN <= above <= _FALL * beyond
        # a few values that many points share end somewhere
        and 2 * np.unique(low).size >= many
    )
    return (above, float(low[0])) if suspicious else None


def warn_of_labels(normal: RankedInMemory, anomalous: RankedInMemory, *, draws: bool) -> None:
    """Warn the user, who is outside this package, of scores upside down, or a class chosen by its scores."""
    low, high = normal.ordered, anomalous.ordered
    if low is None or high is None:
        warn_if_upside_down(rough_auc(normal.scores, anomalous.scores), normal.size, anomalous.size)
        if draws:
            warn_if_selected(normal.scores, anomalous.scores)
        return
    # anomalies that win half of all pairs leave nothing to doubt
    if low.searchsorted(high).sum() < 0.5 * low.size * high.size:
        warn_if_upside_down(auc(low, high), low.size, high.size)
    if draws:
        warn_if_selected(low, high, ordered=True)


def warn_if_selected(normal: Floats, anomalous: Floats, *, ordered: bool = False) -> None:
    """Warn the user, who is outside this package, if a class looks as if its points were chosen by score."""
    normal, anomalous = (
        scores if scores.size <= _MOST else scores[spaced_positions(scores.size, _MOST)]
        for scores in (normal, anomalous)
    )
    if (found := breaks_off(anomalous, normal, ordered=ordered)) is not None:
        _warn_of_end("anomaly scores below", found, f"{normal.size:,} normal points score higher", "FNR")
    # the other way round, so that what is in order stays so
    if (found := breaks_off(-normal[::-1], -anomalous[::-1], ordered=ordered)) is not None:
        found = found[0], -found[1]
        _warn_of_end("normal point scores above", found, f"{anomalous.size:,} anomalies score lower", "FPR")


def _warn_of_end(name: str, found: tuple[int, float], others: str, rate: str) -> None:
    warnings.warn(
        f"no {name} {found[1]:.6g}, where the class breaks off, though {found[0]:,} of {others}; if points"
        f" were labelled because of their scores, such as reviewed alarms, the promise of the {rate} is void:"
        " label points at random",
        LabelWarning,
        stacklevel=frames_inside() + 1,
    )


def _spaced(scores: Floats) -> Scores:
    taken = scores if scores.size <= _POINTS else scores[spaced_positions(scores.size)]
    return taken.astype(np.float64, copy=False)


def _scattered(scores: Floats) -> Floats:
    return scores if scores.size <= _FEW else scores[scattered_positions(scores.size, _FEW)]
