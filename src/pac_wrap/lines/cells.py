"""The scores among the cells of a few rows, and how a number is written in JSON."""

import re
from collections.abc import Sequence
from math import inf, isfinite, isnan, nan
from typing import Any, Final, NamedTuple

import numpy as np

from pac_wrap.columns import missing_score, not_a_number
from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores
from pac_wrap.numerals import number
from pac_wrap.textlines import is_unicode

ADDED: Final = ("verdict", "prediction_set")
# many numbers as JSON writes them, each with a comma behind it; possessive, so that it never goes back
_JSON_NUMBERS: Final = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+,)*+")
Answers = list[tuple[str, str]]


class Batch(NamedTuple):
    """A few rows with their scores: each row as cells, or its own text where that can stand as it is."""

    scores: Scores
    rows: list[list[str]]
    texts: list[str]


def read_scores(
    score: str, values: Sequence[Any], before: int, where: str = ""
) -> tuple[Scores, InputError | None]:
    """Return the scores up to the first value that is none, and its refusal; `before` rows came earlier."""
    kinds = set(map(type, values))
    try:
        if kinds <= {float, int} or (kinds == {str} and _ordinary("".join(values))):
            scores = np.fromiter(map(float, values), np.float64, len(values))
            if not np.isnan(scores).any():
                return scores, None
    except (ValueError, OverflowError):
        pass
    found: list[float] = []
    for value in values:
        read = _number(value)
        if read is None or isnan(read):
            row = before + len(found) + 1
            error = not_a_number(score, _shown(value), row) if read is None else missing_score(score, row)
            return np.array(found), InputError(f"{where}{error}")
        found.append(read)
    return np.array(found), None


def json_numbers(cells: Sequence[str]) -> Sequence[str]:
    """Return cells that hold numbers as JSON: their own text if JSON allows it, infinities as texts."""
    return cells if _JSON_NUMBERS.fullmatch(",".join(cells) + ",") else [_json_number(cell) for cell in cells]


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
    if value is None:
        return nan
    if isinstance(value, str):
        return number(value)
    try:
        return float(value) if type(value) in (float, int) else None
    except OverflowError:  # which the same digits as a text do not raise
        return inf if value > 0 else -inf


def _shown(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _ordinary(text: str) -> bool:
    return text.isascii() and "_" not in text
