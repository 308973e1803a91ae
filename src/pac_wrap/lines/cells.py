"""The scores among the cells of a few rows, and how a number is written in JSON."""

import re
from collections.abc import Callable, Sequence
from math import isfinite, isnan, nan
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from pac_wrap.columns import missing_score, not_a_number
from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores

ADDED: Final = ("verdict", "prediction_set")
# many numbers as JSON writes them, each with a comma behind it; possessive, so that it never goes back
_JSON_NUMBERS: Final = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+,)*+")
T = TypeVar("T")
Answers = list[tuple[str, str]]


class Batch(NamedTuple):
    """A few rows with their scores: each row as cells, or its own text where that can stand as it is."""

    scores: Scores
    rows: list[list[str]]
    texts: list[str]


def read_scores(score: str, values: Sequence[Any], before: int) -> tuple[Scores, InputError | None]:
    """Return the scores up to the first value that is none, and its refusal; `before` rows came earlier."""
    kinds = set(map(type, values))
    try:
        if kinds <= {float, int, bool} or (kinds == {str} and _ordinary("".join(values))):
            scores = np.fromiter(map(float, values), np.float64, len(values))
            if not np.isnan(scores).any():
                return scores, None
    except (ValueError, OverflowError):
        pass
    found: list[float] = []
    for value in values:
        number = _number(value)
        if number is None or isnan(number):
            row = before + len(found) + 1
            error = not_a_number(score, value, row) if number is None else missing_score(score, row)
            return np.array(found), error
        found.append(number)
    return np.array(found), None


def up_to_first(
    rows: list[T], problem: Callable[[T], str | None], error: InputError | None, before: int
) -> tuple[list[T], InputError | None]:
    """Return the rows before the first one with a problem, and its refusal; or all of them, and `error`."""
    for position, row in enumerate(rows):
        if (what := problem(row)) is not None:
            return rows[:position], InputError(f"row {before + position + 1:,} {what}")
    return rows, error


def json_numbers(cells: Sequence[str]) -> Sequence[str]:
    """Return cells that hold numbers as JSON: their own text if JSON allows it, infinities as texts."""
    return cells if _JSON_NUMBERS.fullmatch(",".join(cells) + ",") else [_json_number(cell) for cell in cells]


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def not_utf8(row: list[str], same: str) -> str | None:
    """Return what is wrong with a row that is not UTF-8 and is to change its format; `same` would keep it."""
    return None if is_unicode("".join(row)) else f"is not UTF-8; --format {same} keeps it as it is"


def _json_number(cell: str) -> str:
    if _JSON_NUMBERS.fullmatch(f"{cell},"):
        return cell
    number = float(cell)
    return repr(number) if isfinite(number) else '"Infinity"' if number > 0.0 else '"-Infinity"'


def _number(value: Any) -> float | None:
    """Return a value as a number, NaN if it is missing, None if it is something else."""
    if value is None or value == "":
        return nan
    if not isinstance(value, (str, float, int)) or (isinstance(value, str) and not _ordinary(value)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _ordinary(text: str) -> bool:
    # float() also takes 1_000 and the digits of every script
    return text.isascii() and "_" not in text
