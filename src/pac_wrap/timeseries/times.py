"""Time stamps that make a series: sorted, without repeats, at equal steps."""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.errors import InputError
from pac_wrap.inputs import as_array

_ROUNDING: Final = 1e-6


def check_times(timestamps: ArrayLike) -> None:
    """Refuse time stamps, numbers or datetime64, unless each follows the one before at the same step.

    Steps count as equal if they differ from the usual one, their median, by a millionth of it at most; the
    rounding of floating-point stamps is forgiven too.

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
