"""What may be wrong with the columns and scores of a table, in the same words wherever it comes from."""

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from pac_wrap.errors import InputError
from pac_wrap.foreign import listed, quoted, visible

_LONGEST_CELL: Final = 60


def require_column(column: str, columns: list[str]) -> None:
    """Refuse a table without this column; the nearest name is suggested."""
    if column not in columns:
        lowered = {name.lower(): name for name in columns}
        near = get_close_matches(column.lower(), lowered, 1)
        hint = f"did you mean {quoted(lowered[near[0]])}? " if near else ""
        raise InputError(f"there is no column {quoted(column)}; {hint}the columns are {listed(columns)}")


def require_two(score: object, label: object) -> None:
    """Refuse one column as both the score and the label."""
    if score == label:
        raise InputError(f"column {quoted(score)} cannot be both the score and the label; name two columns")


def refuse_twins(names: list[str], table: object) -> None:
    """Refuse a table that names a column twice, in any case."""
    counts = Counter(name.lower() for name in names)
    for name in names:
        if counts[name.lower()] > 1:
            raise InputError(f"{visible(table)} has two columns named {quoted(name)}; rename one of them")


def refuse_added(names: Iterable[object], added: Iterable[str]) -> None:
    """Refuse a table that already has a column, in any case, that is to be added."""
    wanted = {name.lower() for name in added}
    for name in names:
        if str(name).lower() in wanted:
            raise InputError(f"there is a column {quoted(name)} already; rename it or drop it first")


def not_a_number(score: str, value: object, row: int) -> InputError:
    """Return the refusal of a score that is no number."""
    shown = quoted(value, _LONGEST_CELL)
    return InputError(f"column {quoted(score)} must hold numbers, got {shown} in row {row:,}; fix that row")


def missing_scores(score: str, count: int, rows: int, first: int) -> InputError:
    """Return the refusal of scores that are empty or NaN, when all rows have been seen."""
    return InputError(
        f"{_missing(score)}, got {count:,} of {rows:,}, the first in row {first:,};"
        " drop those rows or make the detector score them"
    )


def missing_score(score: str, row: int) -> InputError:
    """Return the refusal of the first score that is empty or NaN, when later rows are still to come."""
    return InputError(
        f"{_missing(score)}, the first is in row {row:,}; drop such rows or make the detector score them"
    )


def no_rows(names: list[str]) -> InputError:
    """Return the refusal of a table that has a header only."""
    return InputError(f"the table {listed(names)} has no rows; pass one with scores")


def miscounted(names: list[str], rows: int, found: int) -> InputError:
    """Return the refusal to go on when another number of rows came out than there are."""
    return InputError(
        f"{listed(names)} has {rows:,} rows, but {found:,} were read; leave it alone while it is read"
    )


def _missing(score: str) -> str:
    return f"column {quoted(score)} must not be empty or NaN"
