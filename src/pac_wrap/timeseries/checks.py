"""What counts as a number of steps, as step numbers or as a generator; everything else is refused."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.errors import InputError
from pac_wrap.inputs import as_array, check_count

Steps = NDArray[np.intp]
_TOO_FAR: Final = 1 << 62


def check_steps(name: str, value: int) -> int:
    """Return value as an int if it is a whole number, 1 or more."""
    if check_count(name, value) == 0:
        raise InputError(f"{name} must be a whole number, 1 or more, got 0")
    return int(value)


def check_random(random: np.random.Generator) -> None:
    """Refuse anything but a NumPy generator."""
    if not isinstance(random, np.random.Generator):
        raise InputError(f"random must be a NumPy generator, got {random!r}; pass np.random.default_rng(0)")


def check_same_length(name: str, size: int, other: str, other_size: int) -> None:
    """Refuse two arrays of different lengths."""
    if size != other_size:
        raise InputError(f"{name} and {other} must have the same length, got {size:,} and {other_size:,}")


def as_positions(positions: ArrayLike) -> Steps:
    """Return positions as an array of whole numbers if each is greater than the one before.

    >>> as_positions([0, 60, 120])
    array([  0,  60, 120])
    """
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
