"""Windows of a series: where they start, which are anomalous, and one score for each."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import (
    Scores,
    as_anomaly_mask,
    as_array,
    as_scores,
    check_choice,
    check_positive,
    check_same_length,
)
from pac_wrap.errors import InputError
from pac_wrap.method.provenance import Reduce

Indices = NDArray[np.intp]

_ROUNDING: Final = 1e-6
_TOO_FAR: Final = 1 << 62


def check_times(timestamps: ArrayLike) -> None:
    """Refuse time stamps unless each follows the one before at the same step.

    Parameters
    ----------
    timestamps : array-like of numbers or datetime64
        The time of each step. Steps count as equal if they differ from the usual one, their median, by a
        millionth of it at most; the rounding of floating-point stamps is forgiven too.

    Raises
    ------
    InputError
        If a time is missing, or they are unsorted, repeated or irregular.

    Examples
    --------
    >>> check_times([0.0, 0.1, 0.2])
    >>> check_times([0, 1, 2, 4])
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: timestamps must be regular, but position 3 is 4 after 2, and the usual step \
is 1; cut the series at the gap or fill it
    """
    times = as_array(timestamps, "timestamps")
    if times.ndim != 1:
        raise InputError(f"timestamps must be one-dimensional, one per step, got shape {times.shape}")
    if times.size == 0:
        return
    if times.dtype.kind not in "iufM":
        raise InputError(
            f"timestamps must be numbers or datetime64, got dtype {times.dtype};"
            ' convert them, for example with np.asarray(timestamps, dtype="datetime64[ns]")'
        )
    missing = ~np.isfinite(times)
    if missing.any():
        first = int(missing.argmax())
        raise InputError(
            f"timestamps must be finite, got {times[first]} at position {first}; drop or fix that step"
        )
    if times.size < 2:
        return
    for name, rule, wrong in (
        ("sorted", "sort the series by time", times[1:] < times[:-1]),
        ("distinct", "keep one step for each time", times[1:] == times[:-1]),
    ):
        if wrong.any():
            raise InputError(f"timestamps must be {name}, but {_at(times, int(wrong.argmax()) + 1)}; {rule}")
    steps = np.diff(times)
    # the lower median is one of the steps, also where half of them are wrong
    usual = np.partition(steps, (steps.size - 1) // 2)[(steps.size - 1) // 2]
    slack = _ROUNDING * float(usual.astype(np.float64))
    if times.dtype.kind == "f":
        slack += 2.0 * float(np.spacing(np.abs(times).max()))
    irregular = np.abs(steps.astype(np.float64) - usual.astype(np.float64)) > slack
    if irregular.any():
        where = _at(times, int(irregular.argmax()) + 1)
        raise InputError(
            f"timestamps must be regular, but {where}, and the usual step is {usual};"
            " cut the series at the gap or fill it"
        )


def _at(times: NDArray[Any], position: int) -> str:
    return f"position {position} is {times[position]} after {times[position - 1]}"


@dataclass(frozen=True, eq=False)
class Windows:
    """The first `length` of every `every` steps of a series; `starts` are the steps at which they begin.

    Windows that touch the leading NaN, a detector's warm-up, are left out; `longest` counts them too.
    """

    scores: Scores
    warm_up: int
    length: int
    every: int
    starts: Indices
    longest: int

    def labels(self, step_labels: ArrayLike) -> NDArray[np.int8]:
        """Return the label of each window: 1 if it holds an anomalous step, else 0."""
        mask = as_anomaly_mask(step_labels, name="step_labels")
        check_same_length("step_labels", mask.size, "the series", self.warm_up + self.scores.size)
        return np.asarray(self._cut(mask[self.warm_up :]).any(axis=1)).view(np.int8)

    def reduced(self, reduce: Reduce) -> Scores:
        """Return one score per window: the largest, their mean, or that of the last step."""
        check_choice("reduce", reduce, ("max", "mean", "last"))
        cut = self._cut(self.scores)
        if reduce == "last":
            return cut[:, -1].copy()
        return np.asarray(cut.max(axis=1)) if reduce == "max" else _means(cut, self.starts)

    def _cut(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the windows as rows of a view, so that nothing is copied."""
        rows = sliding_window_view(values, self.length)[self.starts[0] - self.warm_up :: self.every]
        return rows[: self.starts.size]


def windows(series: ArrayLike, length: int, every: int) -> Windows:
    """Return the whole windows of a series of scores, on the grid 0, every, 2 every, ..."""
    length, every = check_positive("length", length), check_positive("every", every)
    if length > every:
        raise InputError(
            f"length must not exceed every, or windows would overlap, got length = {length:,} and"
            f" every = {every:,}; raise every"
        )
    values, warm_up = _after_warm_up(as_array(series, "series"))
    steps = warm_up + values.size
    if steps < length:
        raise InputError(
            f"series must be at least one window long, got {steps:,} steps and windows of {length:,};"
            " pass a longer series or a smaller length"
        )
    starts = np.arange(0, steps - length + 1, every, dtype=np.intp)
    dropped = int(np.searchsorted(starts, warm_up))
    if dropped == starts.size:
        raise InputError(
            f"series has no whole window after its warm-up: its first {warm_up:,} of {steps:,} steps are NaN,"
            f" and the last window begins at step {starts[-1]:,}; pass a longer series"
        )
    return Windows(values, warm_up, length, every, starts[dropped:], starts.size)


def leading_nan(values: NDArray[Any]) -> int:
    """Return how many scores are missing before the first one."""
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.size, dtype=bool)
    return values.size if missing.all() else int(np.argmin(missing))


def _after_warm_up(series: NDArray[Any]) -> tuple[Scores, int]:
    """Return the scores after the leading NaN, and the number of these; any other NaN is a gap."""
    if series.ndim != 1:
        return as_scores(series, "series"), 0
    warm_up = leading_nan(series)
    values = as_scores(series[warm_up:], "series", missing=True)
    gaps = np.isnan(values)
    if gaps.any():
        raise InputError(
            f"series must not contain NaN after the warm-up, got {int(gaps.sum()):,} of {series.size:,}, the"
            f" first at position {warm_up + int(gaps.argmax())}; cut the series at the gap or fill it"
        )
    return values, warm_up


def _means(cut: NDArray[np.float64], starts: Indices) -> Scores:
    low, high = cut.min(axis=1), cut.max(axis=1)
    undefined = (low == -np.inf) & (high == np.inf)
    if undefined.any():
        raise InputError(
            f"step_scores hold inf and -inf in {int(undefined.sum()):,} windows, the first at step"
            f' {starts[undefined.argmax()]:,}, whose mean does not exist; use reduce="max" or "last"'
        )
    # divided first, sums of the largest doubles stay finite but for rounding, which clipping takes back
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.clip((cut / cut.shape[1]).sum(axis=1), low, high))


def as_positions(positions: ArrayLike) -> Indices:
    """Return positions as an array of whole numbers if each is greater than the one before."""
    array = as_array(positions, "positions")
    if array.ndim != 1:
        raise InputError(
            f"positions must be one-dimensional, one step number per point, got shape {array.shape}"
        )
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    if array.dtype.kind not in "iu":
        raise InputError(
            f"positions must be whole step numbers, got dtype {array.dtype};"
            " count steps from 0, for example with windows(...).starts"
        )
    late = array[1:] <= array[:-1]
    if late.any():
        first = int(late.argmax()) + 1
        raise InputError(
            f"positions must increase, but number {first} is {array[first]} after {array[first - 1]};"
            " sort the points by time and drop repeated ones"
        )
    if array[0] < 0 or array[-1] >= _TOO_FAR:
        raise InputError(
            f"positions must lie between 0 and 2^62, got {array[0]} to {array[-1]}; count steps from 0"
        )
    return array.astype(np.intp)
