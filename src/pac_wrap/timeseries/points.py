"""Windows as points to calibrate with: scores, labels and places in time, of one series or of several."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.assumptions import OF_SERIES
from pac_wrap.binomial import min_samples
from pac_wrap.calibration import StrategyOptions, calibrate
from pac_wrap.certificate import Certificate
from pac_wrap.errors import DependenceWarning, InputError
from pac_wrap.guarantee import Guarantee
from pac_wrap.inputs import Scores, check_aligned
from pac_wrap.relaxation import Strategy, StrategyName
from pac_wrap.sampling import Reduce, Sampling
from pac_wrap.thresholds import Thresholds
from pac_wrap.timeseries.checks import Steps
from pac_wrap.timeseries.dependence import Dependence, dependence, exceedances
from pac_wrap.timeseries.splits import Parts
from pac_wrap.timeseries.windows import windows
from pac_wrap.timeseries.worth import Worth, worth


@dataclass(frozen=True, eq=False)
class Points:
    """One point per window: its score, its label (1 if any of its steps is anomalous), and where it begins.

    `longest` is the number of windows that the longest series has room for.

    >>> points = window_points(np.arange(12.0), [0] * 10 + [1, 0], length=2, every=5)
    >>> points.scores, points.labels, points.positions
    (array([ 1.,  6., 11.]), array([0, 0, 1], dtype=int8), array([ 0,  5, 10]))
    """

    scores: Scores
    labels: NDArray[np.int8]
    positions: Steps
    length: int
    every: int
    reduce: Reduce
    longest: int

    def of_class(self, anomalous: bool, part: Steps | None = None) -> Steps:
        """Return the indices of the points of one class, of all points or of a part of them."""
        among = np.arange(self.scores.size) if part is None else part
        return np.asarray(among[self.labels[among] == anomalous])

    def dependence(
        self, thresholds: Thresholds, anomalous: bool, part: Steps | None = None
    ) -> Dependence | None:
        """Return how far the errors of one class depend on each other; None without errors to judge by.

        What the points are worth, also where errors are few: `worth`.
        """
        index = self.of_class(anomalous, part)
        threshold = thresholds.clear_below if anomalous else thresholds.alarm_from
        if index.size == 0 or threshold is None:
            return None
        errors = exceedances(self.scores[index], thresholds, anomalous)
        if errors.all() or not errors.any():
            return None
        return dependence(errors, self.positions[index] // self.every, max_lag=self.longest)

    def worth(self, thresholds: Thresholds, anomalous: bool, part: Steps | None = None) -> Worth:
        """Return as how many independent points those of one class count."""
        index = self.of_class(anomalous, part)
        scores = self.scores[index]
        threshold = thresholds.clear_below if anomalous else thresholds.alarm_from
        errors = 0 if threshold is None else int(exceedances(scores, thresholds, anomalous).sum())
        events = np.unique(self._events()[index]).size if anomalous else None
        return worth(scores, anomalous=anomalous, errors=errors, events=events)

    def _events(self) -> Steps:
        """Return a number for each point that neighbours share if both are anomalous: that of their event."""
        together = (np.diff(self.positions) == self.every) & (self.labels[1:] == 1) & (self.labels[:-1] == 1)
        return np.concatenate([[0], np.cumsum(~together)])


def window_points(
    scores: ArrayLike, labels: ArrayLike, *, length: int = 1, every: int = 1, reduce: Reduce = "max"
) -> Points:
    """Return the windows of one series as points; windows that touch a detector's warm-up are left out.

    `scores` and `labels` have one entry per step; leading NaN scores are the warm-up.
    """
    check_aligned("scores", scores, "labels", labels)
    found = windows(scores, length, every)
    longest = found.dropped + len(found)
    return Points(
        found.scores(scores, reduce), found.labels(labels), found.starts, length, every, reduce, longest
    )


def joined(series: Sequence[Points]) -> Points:
    """Return the points of several series as one, so far apart in time that none seems to follow another.

    >>> one = window_points([0.1, 0.2, 0.3], [0, 0, 1], length=1, every=1)
    >>> joined([one, one]).scores
    array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    """
    if not series:
        raise InputError("series is empty; pass the points of at least one series")
    first, starts, begin = series[0], [], 0
    apart = 1 + max(points.longest for points in series)  # further than any autocorrelation is looked at
    for points in series:
        if (points.length, points.every, points.reduce) != (first.length, first.every, first.reduce):
            raise InputError(
                "all series must have the same windows; make them with the same length and every"
            )
        starts.append(points.positions + begin)
        begin = (int(starts[-1][-1]) // first.every + apart) * first.every
    scores, labels = ([getattr(points, name) for points in series] for name in ("scores", "labels"))
    return replace(
        first,
        scores=np.concatenate(scores),
        labels=np.concatenate(labels),
        positions=np.concatenate(starts),
        longest=max(points.longest for points in series),
    )


def calibrate_points(
    points: Points,
    guarantee: Guarantee | None = None,
    *,
    parts: Parts | None = None,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate of the calibration part of some windows (of all, without parts).

    It carries the windows, the split and what the points are worth, and it assumes mixing instead of
    independence. A `DependenceWarning` says where n is misleading, and what would help: if points of a class
    count as less than half of their number, if nothing can be said of them, or if all anomalies are of one or
    two events.

    >>> random = np.random.default_rng(0)
    >>> labels = np.tile(np.repeat([0, 1], [60, 30]), 100)
    >>> points = window_points(random.normal(5 * labels), labels, length=5, every=20)
    >>> certificate = calibrate_points(points, Guarantee(0.1, 0.1, 0.1, 0.1))
    >>> certificate.regime.value, str(certificate.sampling)
    ('separated', 'windows of 5 in every 20 steps (max), all of them calibrate')
    """
    if not isinstance(points, Points) or not isinstance(parts, Parts | None):
        raise InputError(
            f"points must come from window_points and parts from a split, got {type(points).__name__} and"
            f" {type(parts).__name__}"
        )
    part = None if parts is None else parts.calibration
    if part is not None and part.size and part[-1] >= points.scores.size:
        raise InputError(
            f"parts must divide these {points.scores.size:,} points, but name point {part[-1]:,}; split these"
        )
    certificate = calibrate(
        points.scores[points.of_class(False, part)],
        points.scores[points.of_class(True, part)],
        guarantee,
        abstain=abstain,
        strategy=strategy,
        **options,
    )
    found = [points.worth(certificate.thresholds, anomalous, part) for anomalous in (False, True)]
    for one, name, evidence in zip(
        found, ("normal", "anomalous"), (certificate.normal, certificate.anomalous), strict=True
    ):
        budget = evidence.budget
        if budget is None or budget.errors is None or certificate.certified is None:
            continue  # nothing is promised that could be wrong
        text = one.warning(name, points.every, min_samples(budget.rate, budget.delta))
        if text is not None:
            warnings.warn(text, DependenceWarning, stacklevel=2)
    sampling = Sampling(
        points.length,
        points.every,
        points.reduce,
        "none" if parts is None else parts.kind,
        0 if parts is None else parts.gap,
        None if parts is None else parts.block,
        *(one.effective for one in found),
    )
    return replace(certificate, sampling=sampling, assumptions=OF_SERIES)
