"""What an LSTM detector makes of a series: targets, scales, windows, smoothed errors; valid parameters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores, as_array, check_choice, check_count, is_number
from pac_wrap.errors import InputError

Series = NDArray[np.float64]
Starts = NDArray[np.int64]
_FARTHEST: Final = 1e15  # squares of more would leave single precision, in which the networks compute
Target = int | Sequence[int] | None
_COUNTS: Final = (
    *("length", "hidden", "layers", "epochs", "patience", "batch_size"),
    *("windows_per_epoch", "stride", "threads"),
)


def as_series(X: Any) -> Series:
    """Return X as a float64 array of shape (steps, columns); a one-dimensional series is one column.

    >>> as_series([1, 2, 3]).shape
    (3, 1)
    """
    array = as_array(X, "X")
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"X must be one series of shape (steps, columns), got shape {array.shape};"
            " fit and score one series at a time"
        )
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"X must hold real numbers, got dtype {array.dtype}; convert them first, for example with"
            " .astype(float)"
        )
    series = np.ascontiguousarray(array, dtype=np.float64)
    bad = ~np.isfinite(series)
    if bad.any():
        step, column = (int(place) for place in np.argwhere(bad)[0])
        kind = "NaN" if np.isnan(series[step, column]) else "infinity"
        raise InputError(
            f"X must hold finite numbers only, got {int(bad.sum()):,} NaN or infinite of {series.size:,},"
            f" the first ({kind}) at step {step}, column {column}; fill the gaps, or cut the series there"
        )
    return series


@dataclass(frozen=True)
class Scaling:
    """The centre and the spread of each column of a training series."""

    centre: Series
    spread: Series

    @classmethod
    def of(cls, series: Series, *, standardise: bool) -> Self:
        """Return the mean and standard deviation of each column; constant columns get a spread of 1.

        >>> Scaling.of(np.array([[0.0, 5.0], [4.0, 5.0]]), standardise=True)
        Scaling(centre=array([2., 5.]), spread=array([2., 1.]))
        """
        columns = series.shape[1]
        if not standardise:
            return cls(np.zeros(columns), np.ones(columns))
        with np.errstate(over="ignore", invalid="ignore"):
            centre, spread = series.mean(axis=0), series.std(axis=0)
        # rounding gives some constant columns a tiny standard deviation
        spread[(series == series[0]).all(axis=0) | (spread == 0.0)] = 1.0
        if not np.isfinite(spread).all():
            column = int(np.argmin(np.isfinite(spread)))
            raise InputError(
                "the columns of X must have a finite standard deviation, got"
                f" {spread[column]} in column {column}; divide that column by a large number"
            )
        return cls(centre, spread)

    def apply(self, series: Series) -> NDArray[np.float32]:
        """Return (series - centre) / spread in single precision.

        >>> Scaling(np.array([2.0]), np.array([4.0])).apply(np.array([[10.0], [-2.0]]))
        array([[ 2.],
               [-1.]], dtype=float32)
        """
        with np.errstate(over="ignore"):
            scaled = (series - self.centre) / self.spread
        return np.clip(scaled, -_FARTHEST, _FARTHEST).astype(np.float32)


def split_starts(steps: int, window: int, stride: int, validation: float) -> tuple[Starts, Starts]:
    """Return where the windows of the first part start, and those of the last part, kept for validation.

    No window crosses from one part into the other.

    >>> split_starts(10, window=3, stride=2, validation=0.4)
    (array([0, 2]), array([6, 7]))
    """
    kept = round(steps * validation)
    if min(steps - kept, kept if validation else steps) < window:
        needed = _fewest_steps(window, validation)
        remedy = "; give more steps, or shorten length"
        share = f" and validation = {validation:g}" if validation else ""
        raise InputError(
            f"fit needs at least {needed:,} steps for windows of {window:,}{share}, got {steps:,}{remedy}"
        )
    training = np.arange(0, steps - kept - window + 1, stride, dtype=np.int64)
    held_out = np.arange(steps - kept, steps - window + 1, dtype=np.int64) if kept else training[:0]
    return training, held_out


def evenly(starts: Starts, most: int) -> Starts:
    """Return at most `most` of the starts, evenly spaced.

    >>> evenly(np.arange(10), 4)
    array([0, 3, 6, 9])
    """
    if starts.size <= most:
        return starts
    return starts[np.linspace(0, starts.size - 1, most).round().astype(np.int64)]


def smoothed(errors: Scores, span: float) -> Scores:
    """Return the exponentially weighted mean of each error and all before it; a span of 1 changes nothing.

    The error of k steps ago weighs (1 - 2 / (span + 1))^k, and the weights of each mean sum to one, as in
    pandas' `ewm(span=span).mean()`.

    >>> smoothed(np.array([0.0, 0.0, 3.0, 0.0]), span=3).round(3)
    array([0.   , 0.   , 1.714, 0.8  ])
    """
    from scipy.signal import lfilter

    keep = 1.0 - 2.0 / (span + 1.0)
    sums = lfilter([1.0], [1.0, -keep], errors)
    weights = lfilter([1.0], [1.0, -keep], np.ones_like(errors))
    means: Scores = np.asarray(sums / weights, dtype=np.float64)
    return means


def _fewest_steps(window: int, validation: float) -> int:
    shares = [1.0 - validation, validation] if validation else [1.0]
    steps = int((window - 1) / min(shares))
    while min(steps - round(steps * validation), round(steps * validation) if validation else steps) < window:
        steps += 1
    return steps


def check_target(target: Target) -> None:
    """Refuse what is neither None nor a column number nor a list of them."""
    if target is None:
        return
    array = as_array(target, "target")
    if array.dtype.kind not in "iu" or array.ndim > 1 or array.size == 0 or array.min() < 0:
        raise InputError(
            f"target must be a column number or a list of them, counted from 0, got {target!r};"
            " None stands for all columns"
        )


def target_columns(target: Target, columns: int) -> list[int]:
    """Return the target columns of a series of so many columns; None stands for all of them.

    >>> target_columns(None, 3), target_columns(2, 3), target_columns((0, 2), 3)
    ([0, 1, 2], [2], [0, 2])
    """
    if target is None:
        return list(range(columns))
    chosen = [int(column) for column in as_array(target, "target").reshape(-1)]
    if max(chosen) >= columns:
        raise InputError(
            f"target must name columns of X, 0 to {columns - 1}, got {max(chosen)}; count them from 0"
        )
    return chosen


def check_parameters(detector: Any, counts: Iterable[str]) -> None:
    """Refuse a detector whose parameters break a rule; `counts` names its own whole numbers."""
    for name in (*_COUNTS, *counts):
        if check_count(name, getattr(detector, name)) < 1:
            raise InputError(f"{name} must be at least 1, got {getattr(detector, name)}")
    check_target(detector.target)
    check_choice("scale", detector.scale, (True, False))
    if not isinstance(detector.device, str):
        raise InputError(f'device must be a name such as "auto", "cpu" or "cuda:0", got {detector.device!r}')
    if not is_number(detector.validation) or not 0.0 <= detector.validation < 1.0:
        raise InputError(
            f"validation must be a share from 0 to less than 1, got {detector.validation!r};"
            " write a fifth as 0.2, or 0 to train on the whole series"
        )
    rate = detector.learning_rate
    if not is_number(rate) or not isfinite(rate) or rate <= 0:
        raise InputError(f"learning_rate must be a finite number, more than 0, got {rate!r}")
