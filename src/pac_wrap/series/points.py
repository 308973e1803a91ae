"""Windows as calibration points: scores, labels and places in time, of one series or of several."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments
from pac_wrap.base.text import amount, quoted
from pac_wrap.errors import DependenceWarning, InputError
from pac_wrap.method.calibrate import Request, certify_classes, warned
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.groups.units import as_units, certify_units, counted_as
from pac_wrap.method.groups.values import GroupColumn, shown
from pac_wrap.method.metrics import ViolationRate
from pac_wrap.method.promise import OF_SERIES, Guarantee, as_guarantee, assumed
from pac_wrap.method.provenance import Day, Event, Reduce, Sampling
from pac_wrap.method.rule import Thresholds, Verdict, find_thresholds
from pac_wrap.series.dependence import Dependence, EffectiveSize, Indices, dependence, effective_size
from pac_wrap.tails.bounds import min_samples

_DRAWS: Final = 100
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SeriesSplit:
    """The division of points into a calibration part and a test part; made by `Points.divided`.

    Attributes
    ----------
    calibration, test : ndarray of int
        The indices of the points of each part, in ascending order; some points may be in neither.
    kind : {"random", "blocks", "series"}
        The kind of division.
    gap : int
        The minimum number of steps between points of different parts.
    block : int or None
        The number of steps of a block; None for a division without blocks.
    """

    calibration: Indices
    test: Indices
    kind: Literal["random", "blocks", "series"]
    gap: int = 0
    block: int | None = None


@dataclass(frozen=True, eq=False)
class Points:
    """One point per window of a series, or of several; made by `window_points` or `several_series`.

    Attributes
    ----------
    scores, labels, positions : ndarray
        The score of each window, its label (1 if any of its steps is anomalous), and where it begins.
    length, every, reduce : int, int and str
        The steps of a window, the distance between two starts, and how a window's scores are reduced to one.
    longest : int
        The number of windows that fit into the longest series.
    series, names : ndarray of int and tuple of str
        The number of each point's series, and the names of the series by number.
    warm_up : int
        How many steps at the start of a series had no score and were left out.
    """

    scores: arguments.Scores
    labels: NDArray[np.int8]
    positions: Indices
    length: int
    every: int
    reduce: Reduce
    longest: int
    series: Indices
    names: tuple[str, ...]
    warm_up: int

    def divided(
        self,
        random: np.random.Generator,
        *,
        calibration: float = 0.2,
        block: int | None = None,
        gap: int = 0,
        by_series: bool = False,
    ) -> SeriesSplit:
        """Return a division at random, in blocks of time with a gap between the two parts, or by series.

        By default the share `calibration` of each class calibrates, drawn at random, so neighbours may be in
        different parts. With `block`, the number of steps of a block, a point belongs to the block in which
        it begins. The share is drawn from the blocks with an anomalous point and from the blocks without,
        with at least one of either kind in each part. Points of the other blocks test, except those less than
        `gap` steps away from a calibration point. A draw whose test part lacks a class is repeated. With
        `by_series`, for promises about new series, whole series are drawn in the same way.

        Examples
        --------
        >>> labels = np.zeros(100, dtype=int)
        >>> labels[[15, 35, 85]] = 1
        >>> points = window_points(np.zeros(100), labels)
        >>> split = points.divided(np.random.default_rng(1), block=10, gap=3)
        >>> np.unique(split.calibration // 10), split.test.size
        (array([1, 9]), 74)
        """
        return _division(self, random, calibration, block, gap, by_series)(random)

    def units(self, units: str | int | GroupColumn) -> NDArray[Any]:
        """Return the unit and the event of each point, as a certificate's `verify` and `evaluate` take them.

        An event is a run of neighbouring points of one class in one unit; it has a number.

        Parameters
        ----------
        units : "series", int, or array-like
            What is a unit: a series, a block of so many steps (in which a point begins), or, as an array, the
            unit of each point.

        Examples
        --------
        >>> points = window_points([0.1, 0.7, 0.9, 0.2, 0.3, 0.8], [0, 1, 1, 0, 0, 1])
        >>> points.units(3).T.tolist()
        [[0, 0, 0, 1, 1, 1], [0, 1, 1, 2, 2, 3]]
        """
        names: Sequence[Any] = range(self.scores.size)
        if isinstance(units, str):
            if units != "series" or len(self.names) < 2:
                raise InputError(
                    'units must be "series" for points of several series, the steps of a block, or an array'
                    f" with the unit of each point; got {quoted(units)} for {len(self.names):,} series"
                )
            codes = self.series
            names = self.names if len(set(self.names)) == len(self.names) else names
        elif isinstance(units, int | np.integer) or not np.ndim(units):
            block = arguments.check_positive("units", units)  # type: ignore[arg-type]  # it is what is checked
            if block < self.length:
                raise InputError(
                    f"units must be blocks of at least a window, {self.length:,} steps, got {block:,};"
                    " choose larger blocks"
                )
            changes = np.diff(self.positions // block, prepend=0) | np.diff(self.series, prepend=0)
            codes = np.cumsum(changes > 0)
        else:
            codes, names = as_units(units, self.scores, self.scores.size, "points")
        apart = (np.diff(self.positions) != self.every) | (np.diff(self.labels) != 0) | (np.diff(codes) != 0)
        return np.column_stack([np.array(names, dtype=object)[codes], np.cumsum(np.r_[False, apart])])

    def violation(
        self,
        guarantee: Guarantee,
        random: np.random.Generator,
        *,
        trials: int,
        calibration: float = 0.2,
        block: int | None = None,
        gap: int = 0,
        confidence: float = 0.95,
    ) -> ViolationRate:
        """Return how often calibrations break a ceiling on the test part, over `trials` draws of `divided`.

        The intervals have this confidence, for divisions of this one series. The rate of a test part varies
        around the true rate, so it may exceed its ceiling more often than delta even for independent points.
        Random divisions cannot show dependence: without ties, the number of test points beyond a threshold
        depends only on the numbers of points, since ranks are random in any series.

        Examples
        --------
        >>> random = np.random.default_rng(0)
        >>> labels = np.repeat(np.arange(100) % 4 == 3, 20)
        >>> points = window_points(random.normal(3.0 * labels), labels)
        >>> found = points.violation(Guarantee(0.1, 0.1, 0.1, 0.1), random, trials=50, block=20, gap=5)
        >>> found.fpr.n, found.mean_fpr < 0.1
        (50, True)
        """
        guarantee, trials = as_guarantee(guarantee), arguments.check_positive("trials", trials)
        arguments.check_rate("confidence", confidence)
        draw = _division(self, random, calibration, block, gap)
        sides = (False, guarantee.fpr), (True, guarantee.fnr)
        # numbers of points recur, so their budgets are cached
        budgets = [None if promise is None else cache(promise.budget) for _, promise in sides]
        rates, ambiguity, separated = np.full((2, trials), np.nan), 0.0, np.zeros(trials, dtype=bool)
        for trial in range(trials):
            split = draw(random)
            normal, anomalous = (self.scores[self.of_class(side, split.calibration)] for side, _ in sides)
            found = [one and one(n) for one, n in zip(budgets, (normal.size, anomalous.size), strict=True)]
            thresholds = find_thresholds(normal, anomalous, *found)
            for side, promise in sides:
                if promise is not None:
                    tested = self.of_class(side, split.test)
                    rates[int(side), trial] = self._errors(tested, thresholds, side).mean()
            ambiguity += thresholds.rule.ambiguity(self.scores[split.test]) / trials
            separated[trial] = thresholds.separated
        return ViolationRate.counted(guarantee, rates, ambiguity, separated, confidence)

    def of_class(self, anomalous: bool, among: Indices | None = None) -> Indices:
        """Return the indices of the points of one class in ascending order, among some or all points."""
        index = np.arange(self.scores.size) if among is None else among
        return np.asarray(index[self.labels[index] == anomalous])

    def dependence(
        self, thresholds: Thresholds, anomalous: bool, among: Indices | None = None
    ) -> Dependence | None:
        """Return the dependence of the errors of one class; None if no point or every point is an error."""
        index = self.of_class(anomalous, among)
        errors = self._errors(index, thresholds, anomalous)
        if errors.all() or not errors.any():
            return None
        return dependence(errors, self.positions[index] // self.every, max_lag=self.longest)

    def effective_size(
        self, thresholds: Thresholds, anomalous: bool, among: Indices | None = None
    ) -> EffectiveSize:
        """Return the effective sample size of the points of one class, estimated from all of their scores."""
        index = self.of_class(anomalous, among)
        errors = int(self._errors(index, thresholds, anomalous).sum())
        # neighbours that are both anomalous belong to one event
        together = (np.diff(self.positions) == self.every) & (self.labels[1:] == 1) & (self.labels[:-1] == 1)
        event = np.concatenate([[0], np.cumsum(~together)])
        events = np.unique(event[index]).size if anomalous else None
        return effective_size(self.scores[index], anomalous=anomalous, errors=errors, events=events)

    def within(
        self, thresholds: Thresholds, anomalous: bool, among: Indices | None = None
    ) -> Iterator[tuple[str, EffectiveSize]]:
        """Yield each series with the effective sample size of its points of one class, if that is known."""
        index = self.of_class(anomalous, among)
        for rows in np.split(index, np.flatnonzero(np.diff(self.series[index])) + 1):
            found = self.effective_size(thresholds, anomalous, rows)
            if found.dependence is not None:
                yield self.names[self.series[rows[0]]], found

    def _errors(self, index: Indices, thresholds: Thresholds, anomalous: bool) -> Mask:
        if (thresholds.clear_below if anomalous else thresholds.alarm_from) is None:
            return np.zeros(index.size, dtype=bool)
        scores = self.scores[index]
        return np.asarray(thresholds.y_fn(scores) == 0 if anomalous else thresholds.y_fp(scores) == 1)


def _division(
    points: Points, random: object, calibration: float, block: int | None, gap: int, by_series: bool = False
) -> Callable[[np.random.Generator], SeriesSplit]:
    """Return a function that draws divisions of points: by series, in blocks of time, or point by point."""
    if not isinstance(random, np.random.Generator):
        raise InputError(f"random must be a NumPy generator, got {random!r}; pass np.random.default_rng(0)")
    share, gap = arguments.check_rate("calibration", calibration), arguments.check_count("gap", gap)
    block = None if block is None else arguments.check_positive("block", block)
    steps, anomalous = points.positions, points.labels == 1
    if block is None and gap:
        raise InputError(f"a gap needs blocks, got gap = {gap:,} and no block; pass block too")
    if by_series:
        if block is not None:
            raise InputError("points are divided by series or in blocks; leave out by_series or block")
        unit_of, kinds = points.series, _with_anomalies(points.series, anomalous)
        if kinds[0].size < 2:
            raise InputError(
                "a division by whole series needs at least 2 series with an anomaly, one for each part, got"
                f" {kinds[0].size} of {len(points.names):,}; divide in blocks of time instead"
            )
    elif block is None:
        unit_of, kinds = np.arange(steps.size), (np.flatnonzero(~anomalous), np.flatnonzero(anomalous))
        for name, kind in zip(("normal", "anomalous"), kinds, strict=True):
            if kind.size < 2:
                raise InputError(
                    f"labels must mark at least 2 {name} points, one for each part, got {kind.size};"
                    " pass a longer series"
                )
    else:
        if not anomalous.any():
            raise InputError("labels mark no anomaly, so none can calibrate; pass a longer series")
        unit_of = np.cumsum(np.diff(steps // block, prepend=steps[0] // block) > 0, dtype=np.intp)
        kinds = _with_anomalies(unit_of, anomalous)
        if min(kinds[0].size, kinds[1].size) < 2:
            raise InputError(
                f"a split needs at least 2 blocks with an anomaly and 2 without, got {kinds[0].size:,} and"
                f" {kinds[1].size:,} blocks of {block:,} steps; choose a smaller block"
            )
    # even without a gap the two parts share no step; the reach never exceeds the series
    reach = min(max(gap, 1) + points.length - 1, int(steps[-1] - steps[0]) + 1)

    def draw(random: np.random.Generator) -> SeriesSplit:
        for _ in range(_DRAWS):
            calibrating = _drawn(kinds, share, random)[unit_of]
            if block is None:
                test = np.flatnonzero(~calibrating)
                return SeriesSplit(np.flatnonzero(calibrating), test, "series" if by_series else "random")
            # points that begin at least `reach` steps before or after every calibration point
            before = np.maximum.accumulate(np.where(calibrating, steps, steps[0] - reach))
            after = np.minimum.accumulate(np.where(calibrating, steps, steps[-1] + reach)[::-1])[::-1]
            testing = (steps - before >= reach) & (after - steps >= reach)
            if anomalous[testing].any() and not anomalous[testing].all():
                return SeriesSplit(np.flatnonzero(calibrating), np.flatnonzero(testing), "blocks", gap, block)
        raise InputError(
            f"a gap of {gap:,} steps leaves the test part without points of one class, in {_DRAWS} draws of"
            f" blocks of {block:,} steps; choose a smaller gap, or larger blocks"
        )

    return draw


def _with_anomalies(unit_of: Indices, anomalous: Mask) -> tuple[Indices, Indices]:
    """Return the units, such as blocks, with an anomalous point, and the units without."""
    struck = np.bincount(unit_of, weights=anomalous) > 0
    return np.flatnonzero(struck), np.flatnonzero(~struck)


def _drawn(kinds: Sequence[Indices], share: float, random: np.random.Generator) -> Mask:
    """Return a mask of drawn items: the rounded share of each kind, but at least one, and not all."""
    chosen = np.zeros(sum(items.size for items in kinds), dtype=bool)
    for items in kinds:
        size = min(max(round(share * items.size), 1), items.size - 1)
        chosen[random.permutation(items)[:size]] = True
    return chosen


def window_points(
    scores: ArrayLike, labels: ArrayLike, *, length: int = 1, every: int = 1, reduce: Reduce = "max"
) -> Points:
    """Return the windows of one series as points, without windows in the detector's warm-up.

    Parameters
    ----------
    scores, labels : array-like
        One score and one label, 0 or 1, per step; leading NaN scores are the warm-up.
    length, every : int
        The number of steps of a window, and the distance between two starts.
    reduce : {"max", "mean", "last"}
        How the scores of a window are reduced to one.

    Examples
    --------
    >>> window_points([0.1, 0.7, 0.2, 0.3], [0, 1, 0, 0], length=2, every=2).scores
    array([0.7, 0.3])
    """
    arguments.check_aligned("scores", scores, "labels", labels)
    length, every = arguments.check_positive("length", length), arguments.check_positive("every", every)
    arguments.check_choice("reduce", reduce, ("max", "mean", "last"))
    if length > every:
        raise InputError(
            f"length must not exceed every, or windows would overlap, got length = {length:,} and"
            f" every = {every:,}; raise every"
        )
    values, warm_up = _after_warm_up(arguments.as_array(scores, "series"))
    steps = warm_up + values.size
    if steps < length:
        raise InputError(
            f"series must be at least one window long, got {steps:,} steps and windows of {length:,};"
            " pass a longer series or a smaller length"
        )
    marks = arguments.as_anomaly_mask(labels, name="step_labels")
    arguments.check_same_length("step_labels", marks.size, "the series", steps)
    grid = np.arange(0, steps - length + 1, every, dtype=np.intp)
    starts = grid[np.searchsorted(grid, warm_up) :]
    if starts.size == 0:
        raise InputError(
            f"series has no whole window after its warm-up: its first {warm_up:,} of {steps:,} steps are NaN,"
            f" and the last window begins at step {grid[-1]:,}; pass a longer series"
        )

    def cut(series: NDArray[Any]) -> NDArray[Any]:
        """Return the windows as rows of a view, so that nothing is copied."""
        return sliding_window_view(series, length)[starts[0] - warm_up :: every][: starts.size]

    rows = cut(values)
    if reduce == "mean":
        reduced = _means(rows, starts)
    else:
        reduced = np.asarray(rows.max(axis=1)) if reduce == "max" else rows[:, -1].copy()
    anomalous = np.asarray(cut(marks[warm_up:]).any(axis=1)).view(np.int8)
    series = np.zeros(starts.size, dtype=np.intp)
    return Points(reduced, anomalous, starts, length, every, reduce, grid.size, series, ("",), warm_up)


def _leading_nan(values: NDArray[Any]) -> int:
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.size, dtype=bool)
    return values.size if missing.all() else int(np.argmin(missing))


def _after_warm_up(series: NDArray[Any]) -> tuple[arguments.Scores, int]:
    """Return the scores after the leading NaN, and the number of these; any other NaN is a gap."""
    if series.ndim != 1:
        return arguments.as_scores(series, "series"), 0
    warm_up = _leading_nan(series)
    values = arguments.as_scores(series[warm_up:], "series", missing=True)
    gaps = np.isnan(values)
    if gaps.any():
        raise InputError(
            f"series must not contain NaN after the warm-up, got {int(gaps.sum()):,} of {series.size:,}, the"
            f" first at position {warm_up + int(gaps.argmax())}; cut the series at the gap or fill it"
        )
    return values, warm_up


def _means(cut: NDArray[np.float64], starts: Indices) -> arguments.Scores:
    low, high = cut.min(axis=1), cut.max(axis=1)
    undefined = (low == -np.inf) & (high == np.inf)
    if undefined.any():
        raise InputError(
            f"step_scores hold inf and -inf in {int(undefined.sum()):,} windows, the first at step"
            f' {starts[undefined.argmax()]:,}, whose mean does not exist; use reduce="max" or "last"'
        )
    # dividing first keeps sums of the largest doubles finite, except for rounding, which clipping corrects
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.clip((cut / cut.shape[1]).sum(axis=1), low, high))


def joined(series: Sequence[Points]) -> Points:
    """Return the points of several series as one, placed too far apart in time to seem neighbours.

    Parameters
    ----------
    series : sequence of Points
        The points of each series, made with the same windows.

    Examples
    --------
    >>> one = window_points([0.1, 0.2, 0.3], [0, 0, 1], length=1, every=1)
    >>> joined([one, one]).scores
    array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    """
    if not series:
        raise InputError("series is empty; pass the points of at least one series")
    first, starts, numbers, begin, before = series[0], [], [], 0, 0
    longest = max(points.longest for points in series)
    for points in series:
        if (points.length, points.every, points.reduce) != (first.length, first.every, first.reduce):
            raise InputError(
                "all series must have the same windows; make them with the same length and every"
            )
        starts.append(points.positions + begin)
        # further apart than the largest lag of an autocorrelation
        begin = (int(starts[-1][-1]) // first.every + 1 + longest) * first.every
        numbers.append(points.series + before)
        before += len(points.names)
    return replace(
        first,
        scores=np.concatenate([points.scores for points in series]),
        labels=np.concatenate([points.labels for points in series]),
        positions=np.concatenate(starts),
        longest=longest,
        series=np.concatenate(numbers),
        names=tuple(name for points in series for name in points.names),
        warm_up=sum(points.warm_up for points in series),
    )


def calibrate_points(
    points: Points,
    guarantee: Guarantee | Request | None = None,
    *,
    split: SeriesSplit | None = None,
    overlap: str | Overlap | None = None,
    units: str | int | GroupColumn | None = None,
    per: Event | Day | Iterable[Event | Day] | None = None,
) -> Certificate:
    """Return the certificate of the calibration part of windows, or of all windows without a split.

    It assumes mixing instead of independence, and its `sampling` describes the windows. A `DependenceWarning`
    tells if n overstates the evidence, and what would help: if the effective sample size of a class is less
    than half its number of points, or unknown, or if all anomalies belong to one or two events. With `units`
    it assumes independent units instead, and warns of no dependence: eq. (151).

    Parameters
    ----------
    points : Points
        The result of `window_points`, `several_series` or `joined`.
    guarantee, overlap : optional
        The promises to certify, and the strategy for overlapping classes; see `calibrate`.
    split : SeriesSplit, optional
        The division whose calibration part is used; by default all points calibrate.
    units : "series", int, or array-like, optional
        What is independent: whole series, blocks of so many steps, or the unit of each point; see
        `Points.units`. A split must leave each unit on one side.
    per : Event, Day, or both, optional
        With `units`: what counts instead of windows. With `Event`, each run of neighbouring anomalous windows
        in one unit is noticed or missed; with `Day`, units with more false alarms than allowed count.

    Raises
    ------
    InputError
        If the split was made from other points, or divides a unit.

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
            "points must come from window_points and split from Points.divided, got"
            f" {type(points).__name__} and {type(split).__name__}"
        )
    calibrating = None if split is None else split.calibration
    if calibrating is not None and calibrating.size and calibrating[-1] >= points.scores.size:
        raise InputError(
            f"split must divide these {points.scores.size:,} points, but names point {calibrating[-1]:,};"
            " make it from these points"
        )
    divided = ("none", 0, None) if split is None else (split.kind, split.gap, split.block)
    if units is not None:
        column = points.units(units)
        steps = 0 if isinstance(units, str) else int(units) if isinstance(units, int | np.integer) else None
        if split is not None and (cut := {*column[split.calibration, 0]} & {*column[split.test, 0]}):
            whole = {None: "a split of them", 0: "by_series=True"}.get(steps, f"block={steps}")
            raise InputError(
                f"{amount(len(cut), 'unit')} on both sides of the split, such as {shown(min(cut, key=str))};"
                f" divide whole units, with {whole}"
            )
        among = slice(None) if calibrating is None else calibrating
        request = replace(Request.of(guarantee, overlap), anomaly_label=1)
        own = points.scores[among], points.labels[among], column[among]
        made = warned(certify_units(request, *own, counted_as(per)))
        missing = [None, None, None, None, steps]
        taken = Sampling(points.length, points.every, points.reduce, *divided, *missing)
        return replace(made, sampling=taken)
    if per is not None:
        raise InputError("per is for units; give units too, or remove it")
    classes = [points.scores[points.of_class(anomalous, calibrating)] for anomalous in (False, True)]
    certificate = warned(certify_classes(Request.of(guarantee, overlap).fixed, *classes, draws=False))
    effective: list[float | None] = []
    for name, clause in (("normal", certificate.fpr), ("anomalous", certificate.fnr)):
        one = points.effective_size(certificate.thresholds, name == "anomalous", calibrating)
        effective.append(one.effective)
        budget = clause.budget
        if budget is None or budget.errors is None or certificate.uncertified:
            continue  # without a promise, none can be wrong
        unit = "step" if points.length == 1 else "window"
        text = one.warning(name, points.every, min_samples(budget.rate, budget.delta), unit)
        if text is not None:
            warnings.warn(text, DependenceWarning, stacklevel=2)
    misjudged = (
        int(np.count_nonzero(certificate.rule.verdicts(scores) == wrong))
        for scores, wrong in zip(classes, (Verdict.ANOMALY, Verdict.NORMAL), strict=True)
    )
    sampling = Sampling(points.length, points.every, points.reduce, *divided, *effective, *misjudged)
    assumptions = assumed(OF_SERIES, **certificate.guarantee.tolerates)
    return replace(certificate, sampling=sampling, assumptions=assumptions)


def several_series(
    names: Sequence[str], sizes: Sequence[int], scores: ArrayLike, labels: ArrayLike, *, every: int = 1
) -> Points:
    """Return the steps of several series as points, or every n-th step of them.

    Parameters
    ----------
    names : sequence of str
        The names of the series, in order.
    sizes : sequence of int
        The number of steps of each series.
    scores, labels : array-like
        One score and one label, 0 or 1, per step, series by series in the order of time. NaN scores at the
        start of a series are its warm-up, and are left out.
    every : int
        The steps between two points of a series.

    Raises
    ------
    InputError
        If a score is missing after the warm-up, or none of the taken steps has a score.

    Examples
    --------
    >>> several_series(["a"], [6], range(6), [0] * 6, every=2).scores
    array([0, 2, 4])
    """
    every = arguments.check_positive("every", every)
    values, mask = arguments.as_array(scores, "scores"), arguments.as_anomaly_mask(labels)
    arguments.check_same_length("scores", values.size, "labels", mask.size)
    arguments.check_same_length("names", len(names), "sizes", len(sizes))
    arguments.check_same_length("scores", values.size, "all series together", sum(sizes))
    ends = np.cumsum([0, *sizes])
    found: list[Points] = []
    warm_up = 0
    for name, start, end in zip(names, ends[:-1], ends[1:], strict=True):
        steps, marks = values[start:end], mask[start:end].view(np.int8)
        without = _leading_nan(steps)
        warm_up += without
        if (steps.size - 1) // every * every < without:
            continue  # none of the taken steps has a score
        try:
            taken = window_points(steps, marks, every=every)
        except InputError as error:
            raise InputError(f"series {quoted(name)}: {error}") from error
        # indexed directly, scores keep their type
        found.append(replace(taken, scores=steps[taken.positions], names=(name,)))
    if not found:
        raise InputError(
            f"none of the taken steps, one in every {every:,} of {values.size:,}, has a score; pass longer"
            " series, or take more steps"
        )
    return replace(joined(found), warm_up=warm_up)
