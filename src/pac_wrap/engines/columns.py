"""Columns of a frame that an engine holds."""

from collections.abc import Sequence
from typing import Any

from pac_wrap.columns import require_column
from pac_wrap.errors import InputError


def require_columns(wanted: Sequence[Any], columns: Sequence[Any]) -> None:
    """Refuse a frame that lacks one of the columns or has it twice.

    >>> require_columns(["scor"], ["id", "score"])
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: there is no column 'scor'; did you mean 'score'? the columns are id, score
    """
    for name in wanted:
        if name not in columns:
            require_column(str(name), [str(column) for column in columns])
        if list(columns).count(name) > 1:
            raise InputError(f"there are two columns named {name!r}; rename one of them")
