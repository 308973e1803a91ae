"""Several series at once: their steps as points, what these are worth, and divisions by whole series."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_anomaly_mask, as_array, check_positive, check_rate, check_same_length
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.thresholds import Thresholds
from pac_wrap.series.points import Points, joined
from pac_wrap.series.splits import SeriesSplit, check_random, draw_share
from pac_wrap.series.windows import Indices, windows
from pac_wrap.series.worth import Worth


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

    Examples
    --------
    >>> found = several_series(["a", "b"], [2, 3], [0.1, 0.9, np.nan, 0.2, 0.3], [0, 1, 0, 0, 0])
    >>> found.points.scores, found.series, found.warm_up
    (array([0.1, 0.9, 0.2, 0.3]), array([0, 0, 1, 1]), 1)
    """

    names: tuple[str, ...]
    points: Points
    series: Indices
    warm_up: int

    def within(
        self, thresholds: Thresholds, anomalous: bool, among: Indices | None = None
    ) -> Iterator[tuple[str, Worth]]:
        """Yield what the points of one class are worth in each series by itself, where that can be said.

        Parameters
        ----------
        thresholds, anomalous, among
            As for `Points.worth`.

        Yields
        ------
        pair of str and Worth
            The series, and what its points are worth.
        """
        index = self.points.of_class(anomalous, among)
        for rows in np.split(index, np.flatnonzero(np.diff(self.series[index])) + 1):
            found = self.points.worth(thresholds, anomalous, rows)
            if found.dependence is not None:
                yield self.names[self.series[rows[0]]], found

    def divided(self, random: np.random.Generator, *, calibration: float = 0.5) -> SeriesSplit:
        """Return a division of the points by whole series, as new series are what a promise should hold for.

        Parameters
        ----------
        random : numpy.random.Generator
            What draws.
        calibration : float
            The share of the series that calibrates: of those with an anomaly, and of those without.

        Returns
        -------
        SeriesSplit
            Every point, in one of the two parts.

        Raises
        ------
        InputError
            If fewer than two series have an anomaly.
        """
        check_random(random)
        share = check_rate("calibration", calibration)
        anomalous = np.bincount(self.series, weights=self.points.labels, minlength=len(self.names)) > 0
        if np.count_nonzero(anomalous) < 2:
            raise InputError(
                "a division by whole series needs at least 2 series with an anomaly, one for each part, got"
                f" {np.count_nonzero(anomalous)} of {len(self.names):,}; divide in blocks of time instead"
            )
        chosen = np.zeros(len(self.names), dtype=bool)
        for kind in (anomalous, ~anomalous):
            chosen[draw_share(np.flatnonzero(kind), share, random)] = True
        calibrating = chosen[self.series]
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
        steps = values[start:end]
        missing = np.isnan(steps) if steps.dtype.kind == "f" else np.zeros(steps.size, dtype=bool)
        without = steps.size if missing.all() else int(np.argmin(missing))
        warm_up += without
        if (steps.size - 1) // every * every < without:
            continue  # no step that is to be taken has a score
        try:
            found.append((name, _points(steps, mask[start:end], every)))
        except InputError as error:
            raise InputError(f"series {quoted(name)}: {error}") from error
    if not found:
        raise InputError(
            f"none of the steps to be taken, one in every {every:,} of {values.size:,}, has a score; pass"
            " longer series, or take more steps"
        )
    kept, points = zip(*found, strict=True)
    series = np.repeat(np.arange(len(kept)), [one.scores.size for one in points])
    return Several(kept, joined(points), series, warm_up)


def _points(scores: NDArray[Any], mask: NDArray[np.bool_], every: int) -> Points:
    """Return single steps as points, whose scores keep their type."""
    starts = windows(scores, 1, every)
    longest = starts.dropped + len(starts)
    at = starts.starts
    return Points(scores[at], mask[at].view(np.int8), at, 1, every, "max", longest)
