"""Which columns of a series a network has to tell; the others only inform it."""

from collections.abc import Sequence

from pac_wrap.errors import InputError
from pac_wrap.inputs import as_array

Target = int | Sequence[int] | None


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
