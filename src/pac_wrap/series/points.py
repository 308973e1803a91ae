"""Windows as points to calibrate with: scores, labels and places in time, of one series or of several."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import (
    Scores,
    as_anomaly_mask,
    as_array,
    check_aligned,
    check_positive,
    check_rate,
    check_same_length,
)
from pac_wrap.base.text import quoted
from pac_wrap.errors import DependenceWarning, InputError
from pac_wrap.method.calibrate import Request, certify_classes, warned
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.promise import OF_SERIES, Guarantee, assumed
from pac_wrap.method.provenance import Reduce, Sampling
from pac_wrap.method.rule import Verdict
from pac_wrap.method.thresholds import Thresholds
from pac_wrap.series.dependence import Dependence, EffectiveSize, dependence, effective_size, exceedances
from pac_wrap.series.splits import SeriesSplit, check_random, drawn
from pac_wrap.series.windows import Indices, leading_nan, windows
from pac_wrap.tails.bounds import min_samples


@dataclass(frozen=True, eq=False)
class Points:
    """One point per window of a series, or of several; made by `window_points`.

    Attributes
    ----------
    scores, labels, positions : ndarray
        The score of each window, its label (1 if any of its steps is anomalous), and where it begins.
    length, every, reduce : int, int and str
        The steps of a window, the distance between two starts, and what is taken of a window's scores.
    longest : int
        How many windows the longest series has room for.
    """

    scores: Scores
    labels: NDArray[np.int8]
    positions: Indices
    length: int
    every: int
    reduce: Reduce
    longest: int

    def of_class(self, anomalous: bool, among: Indices | None = None) -> Indices:
        """Return the ascending indices of the points of one class, among some or all of them."""
        index = np.arange(self.scores.size) if among is None else among
        return np.asarray(index[self.labels[index] == anomalous])

    def dependence(
        self, thresholds: Thresholds, anomalous: bool, among: Indices | None = None
    ) -> Dependence | None:
        """Return how far the errors of one class depend on each other; None without errors to judge by."""
        index = self.of_class(anomalous, among)
        errors = self._errors(index, thresholds, anomalous)
        if errors.all() or not errors.any():
            return None
        return dependence(errors, self.positions[index] // self.every, max_lag=self.longest)

    def effective_size(
        self, thresholds: Thresholds, anomalous: bool, among: Indices | None = None
    ) -> EffectiveSize:
        """Return how many independent points those of one class are worth, judged by all of their scores."""
        index = self.of_class(anomalous, among)
        errors = int(self._errors(index, thresholds, anomalous).sum())
        events = np.unique(self._events()[index]).size if anomalous else None
        return effective_size(self.scores[index], anomalous=anomalous, errors=errors, events=events)

    def _errors(self, index: Indices, thresholds: Thresholds, anomalous: bool) -> NDArray[np.bool_]:
        if (thresholds.clear_below if anomalous else thresholds.alarm_from) is None:
            return np.zeros(index.size, dtype=bool)
        return exceedances(self.scores[index], thresholds, anomalous)

    def _events(self) -> Indices:
        """Return a number for each point that neighbours share if both are anomalous: that of their event."""
        together = (np.diff(self.positions) == self.every) & (self.labels[1:] == 1) & (self.labels[:-1] == 1)
        return np.concatenate([[0], np.cumsum(~together)])


def window_points(
    scores: ArrayLike, labels: ArrayLike, *, length: int = 1, every: int = 1, reduce: Reduce = "max"
) -> Points:
    """Return the windows of one series as points; windows that touch a detector's warm-up are left out.

    Parameters
    ----------
    scores, labels : array-like
        One score and one label, 0 or 1, per step; leading NaN scores are the warm-up.
    length, every : int
        The steps of a window, and the distance between two starts.
    reduce : {"max", "mean", "last"}
        What is taken of a window's scores.

    Returns
    -------
    Points

    Examples
    --------
    >>> window_points([0.1, 0.7, 0.2, 0.3], [0, 1, 0, 0], length=2, every=2).scores
    array([0.7, 0.3])
    """
    check_aligned("scores", scores, "labels", labels)
    found = windows(scores, length, every)
    values = found.reduced(reduce)
    return Points(values, found.labels(labels), found.starts, length, every, reduce, found.longest)


def joined(series: Sequence[Points]) -> Points:
    """Return the points of several series as one, so far apart in time that none seems to follow another.

    Parameters
    ----------
    series : sequence of Points
        The points of each series, made with the same windows.

    Returns
    -------
    Points

    Examples
    --------
    >>> one = window_points([0.1, 0.2, 0.3], [0, 0, 1], length=1, every=1)
    >>> joined([one, one]).scores
    array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    """
    if not series:
        raise InputError("series is empty; pass the points of at least one series")
    first, starts, begin = series[0], [], 0
    longest = max(points.longest for points in series)
    for points in series:
        if (points.length, points.every, points.reduce) != (first.length, first.every, first.reduce):
            raise InputError(
                "all series must have the same windows; make them with the same length and every"
            )
        starts.append(points.positions + begin)
        # further apart than any autocorrelation is looked at
        begin = (int(starts[-1][-1]) // first.every + 1 + longest) * first.every
    return replace(
        first,
        scores=np.concatenate([points.scores for points in series]),
        labels=np.concatenate([points.labels for points in series]),
        positions=np.concatenate(starts),
        longest=longest,
    )


def calibrate_points(
    points: Points,
    guarantee: Guarantee | Request | None = None,
    *,
    split: SeriesSplit | None = None,
    overlap: str | Overlap | None = None,
) -> Certificate:
    """Return the certificate of the calibration part of some windows (of all, without a split).

    It assumes mixing instead of independence. A `DependenceWarning` says where n overstates the evidence, and
    what would help: if points of a class are worth less than half of their number, if nothing can be said of
    them, or if all anomalies belong to one or two events.

    Parameters
    ----------
    points : Points
        What `window_points` returned, or `joined`.
    guarantee, overlap : optional
        What to promise, and what is done where the classes overlap; see `calibrate`.
    split : SeriesSplit, optional
        Which points calibrate; all of them if None.

    Returns
    -------
    Certificate
        With `sampling`, which says how the points were taken.

    Raises
    ------
    InputError
        If the split was made from other points.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.tile(np.repeat([0, 1], [60, 30]), 100)
    >>> points = window_points(random.normal(5 * labels), labels, length=5, every=20)
    >>> certificate = calibrate_points(points, Guarantee(0.1, 0.1, 0.1, 0.1))
    >>> certificate.regime.value, str(certificate.sampling)
    ('separated', 'windows of 5 in every 20 steps (max), all of them calibrate')
    """
    if not isinstance(points, Points) or not isinstance(split, SeriesSplit | None):
        raise InputError(
            "points must come from window_points and split from block_split or random_split, got"
            f" {type(points).__name__} and {type(split).__name__}"
        )
    calibrating = None if split is None else split.calibration
    if calibrating is not None and calibrating.size and calibrating[-1] >= points.scores.size:
        raise InputError(
            f"split must divide these {points.scores.size:,} points, but names point {calibrating[-1]:,};"
            " make it from these points"
        )
    classes = [points.scores[points.of_class(anomalous, calibrating)] for anomalous in (False, True)]
    certificate = warned(certify_classes(Request.of(guarantee, overlap).fixed, *classes, draws=False))
    found = [
        points.effective_size(certificate.thresholds, anomalous, calibrating) for anomalous in (False, True)
    ]
    for one, name, clause in zip(
        found, ("normal", "anomalous"), (certificate.fpr, certificate.fnr), strict=True
    ):
        budget = clause.budget
        if budget is None or budget.errors is None or certificate.uncertified:
            continue  # nothing is promised that could be wrong
        unit = "step" if points.length == 1 else "window"
        text = one.warning(name, points.every, min_samples(budget.rate, budget.delta), unit)
        if text is not None:
            warnings.warn(text, DependenceWarning, stacklevel=2)
    divided = ("none", 0, None) if split is None else (split.kind, split.gap, split.block)
    effective = (one.effective for one in found)
    misjudged = (
        int(np.count_nonzero(certificate.rule.verdicts(scores) == wrong))
        for scores, wrong in zip(classes, (Verdict.ANOMALY, Verdict.NORMAL), strict=True)
    )
    sampling = Sampling(points.length, points.every, points.reduce, *divided, *effective, *misjudged)
    return replace(
        certificate, sampling=sampling, assumptions=assumed(OF_SERIES, **certificate.guarantee.rooms)
    )


@dataclass(frozen=True, eq=False)
class Several:
    """The steps of several series as points to calibrate with; made by `several_series`.

    Attributes
    ----------
    names : tuple of str
        The series that have points.
    points : Points
        All points, series by series, in the order of time.
    series : ndarray of int
        The number of the series that each point is of.
    warm_up : int
        How many steps at the start of a series had no score and are left out.
    """

    names: tuple[str, ...]
    points: Points
    series: Indices
    warm_up: int

    def within(
        self, thresholds: Thresholds, anomalous: bool, among: Indices | None = None
    ) -> Iterator[tuple[str, EffectiveSize]]:
        """Yield each series and what its points of one class are worth by themselves, where that is known."""
        index = self.points.of_class(anomalous, among)
        for rows in np.split(index, np.flatnonzero(np.diff(self.series[index])) + 1):
            found = self.points.effective_size(thresholds, anomalous, rows)
            if found.dependence is not None:
                yield self.names[self.series[rows[0]]], found

    def divided(self, random: np.random.Generator, *, calibration: float = 0.5) -> SeriesSplit:
        """Return a division by whole series, as new series are what a promise should hold for.

        Of the series with an anomaly, and of those without, the share `calibration` is drawn to calibrate.
        """
        check_random(random)
        share = check_rate("calibration", calibration)
        anomalous = np.bincount(self.series, weights=self.points.labels, minlength=len(self.names)) > 0
        if np.count_nonzero(anomalous) < 2:
            raise InputError(
                "a division by whole series needs at least 2 series with an anomaly, one for each part, got"
                f" {np.count_nonzero(anomalous)} of {len(self.names):,}; divide in blocks of time instead"
            )
        kinds = np.flatnonzero(anomalous), np.flatnonzero(~anomalous)
        calibrating = drawn(kinds, share, random)[self.series]
        return SeriesSplit(np.flatnonzero(calibrating), np.flatnonzero(~calibrating), "series")


def several_series(
    names: Sequence[str], sizes: Sequence[int], scores: ArrayLike, labels: ArrayLike, *, every: int = 1
) -> Several:
    """Return the steps of several series, or every so manieth of them, as points.

    Parameters
    ----------
    names : sequence of str
        The series, in order.
    sizes : sequence of int
        How many steps each has.
    scores, labels : array-like
        One score and one label, 0 or 1, per step, series by series in the order of time. NaN scores at the
        start of a series are its warm-up, and are left out.
    every : int
        The steps between two points of a series.

    Returns
    -------
    Several
        The points, for `calibrate_points`, and which series they are of.

    Raises
    ------
    InputError
        If a score is missing after the warm-up, or no step to be taken has one.

    Examples
    --------
    >>> several_series(["a"], [6], range(6), [0] * 6, every=2).points.scores
    array([0, 2, 4])
    """
    every = check_positive("every", every)
    values, mask = as_array(scores, "scores"), as_anomaly_mask(labels)
    check_same_length("scores", values.size, "labels", mask.size)
    check_same_length("names", len(names), "sizes", len(sizes))
    check_same_length("scores", values.size, "all series together", sum(sizes))
    ends = np.cumsum([0, *sizes])
    found: list[tuple[str, Points]] = []
    warm_up = 0
    for name, start, end in zip(names, ends[:-1], ends[1:], strict=True):
        steps, marks = values[start:end], mask[start:end].view(np.int8)
        without = leading_nan(steps)
        warm_up += without
        if (steps.size - 1) // every * every < without:
            continue  # no step that is to be taken has a score
        try:
            taken = windows(steps, 1, every)
        except InputError as error:
            raise InputError(f"series {quoted(name)}: {error}") from error
        # taken by themselves, scores keep their type
        at = taken.starts
        found.append((name, Points(steps[at], marks[at], at, 1, every, "max", taken.longest)))
    if not found:
        raise InputError(
            f"none of the steps to be taken, one in every {every:,} of {values.size:,}, has a score; pass"
            " longer series, or take more steps"
        )
    kept, points = zip(*found, strict=True)
    series = np.repeat(np.arange(len(kept)), [one.scores.size for one in points])
    return Several(kept, joined(points), series, warm_up)
