"""Columns of a frame that an engine holds: those that must be there, and those that must not."""

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


def refuse_columns(added: Sequence[str], columns: Sequence[Any]) -> None:
    """Refuse a frame that already has a column to be added, in any case.

    >>> refuse_columns(["verdict"], ["id", "Verdict"])
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: there is a column 'Verdict' already; rename it or drop it first
    """
    for name in columns:
        if str(name).lower() in {column.lower() for column in added}:
            raise InputError(f"there is a column {name!r} already; rename it or drop it first")
