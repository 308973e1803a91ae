"""Columns of scores and labels: what they may hold, and what may be wrong with them.

Every reader of a table, whatever its format, refuses it in these words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.floats import ScoreType, is_narrower
from pac_wrap.base.text import listed, quoted, visible
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.groups.certificate import GroupCertificate

_LONGEST_CELL: Final = 60
# so alike are a word and the same with a letter missing, see `difflib`
_SLIP: Final = 0.85
# a number in lower case and without the blanks around it, for engines that take more texts for numbers
NUMBER: Final = "[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)"
# how others write that there is no number
_MISSING: Final = ("na", "n/a", "#n/a", "<na>", "none", "null", "missing", "-", "?")
BLANKS: Final = " \t\n\v\f\r"


def refuse_narrower(kind: ScoreType, certificate: "GroupCertificate", score: str) -> None:
    """Refuse scores that have fewer digits than those that calibrated: a threshold may lie among the lost."""
    if is_narrower(kind, certificate.score_type):
        raise InputError(
            f"column {quoted(score)} holds {kind} scores, and the certificate is of {certificate.score_type}"
            f" ones; give it such scores, or calibrate on {kind} ones"
        )


def require_column(column: str, columns: list[str]) -> None:
    """Refuse a table without this column; the nearest name is suggested.

    That is a slip of the keys, one that has the word in it, or one alike.
    """
    if column in columns:
        return
    wanted, lowered = column.lower(), {name.lower(): name for name in columns}
    within = [name for name in lowered if len(wanted) > 2 and wanted in name]
    # that of a detector rather than what went into it
    within.sort(key=lambda name: not re.search("anomal|outlier", name))
    near = get_close_matches(wanted, lowered, 1, _SLIP) or within or get_close_matches(wanted, lowered, 1)
    hint = f"did you mean {quoted(lowered[near[0]])}? " if near else ""
    raise InputError(f"there is no column {quoted(column)}; {hint}the columns are {listed(columns)}")


def require_two(score: object, label: object) -> None:
    """Refuse one column as both the score and the label."""
    if score == label:
        raise InputError(f"column {quoted(score)} cannot be both the score and the label; name two columns")


def refuse_as_third(column: str, others: Iterable[str], what: str = "group") -> None:
    """Refuse the column of the score or the label as that of groups or kinds."""
    if column in others:
        raise InputError(f"column {quoted(column)} cannot be the {what} as well; name another column")


def refuse_twins(names: list[str], table: object) -> None:
    """Refuse a table that names a column twice, in any case."""
    counts = Counter(name.lower() for name in names)
    for name in names:
        if counts[name.lower()] > 1:
            raise InputError(f"{visible(table)} has two columns named {quoted(name)}; rename one of them")


def require_in_all(files: Sequence[object], names: Sequence[Sequence[str]], wanted: Sequence[str]) -> None:
    """Refuse a file without a wanted column that others have; engines would fill it with nothing."""
    for column in wanted:
        lacking = [place for place, known in enumerate(names) if column not in known]
        if lacking and len(lacking) < len(files):
            raise InputError(
                f"{files[lacking[0]]} has no column {column!r}, which other files have; its columns are"
                f" {', '.join(names[lacking[0]])}; leave that file out or fix it"
            )


def all_columns(files: Sequence[object], names: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns of all files, each once; two that differ only in case are refused."""
    columns = list(dict.fromkeys(name for known in names for name in known))
    refuse_twins(columns, f"the table of {', '.join(map(str, files))}")
    return columns


def refuse_added(names: Iterable[object], added: Iterable[str]) -> None:
    """Refuse a table that already has a column, in any case, that is to be added."""
    wanted = {name.lower() for name in added}
    for name in names:
        if str(name).lower() in wanted:
            raise InputError(f"there is a column {quoted(name)} already; rename it or drop it first")


def only_in_csv(delimiter: str | None) -> None:
    """Refuse a delimiter of what is no CSV."""
    if delimiter is not None:
        raise InputError("the delimiter is for CSV, and what is read is none; leave it out")


def number(value: Any) -> float | None:
    """Return a value as a number by the rules of the house, NaN if it is missing, None if it is no number."""
    if value is None or value == "":
        return nan
    if isinstance(value, str):
        if not _are_plain(value):
            return None
    elif type(value) not in (float, int):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:  # the same digits as a text are an infinity
        return inf if value > 0 else -inf


def read_scores(
    score: str, values: Sequence[Any], before: int, where: str, on_missing: OnMissing
) -> tuple[Scores, InputError | None]:
    """Return the scores up to the first value that is none, and its refusal; `before` rows came earlier."""
    abstain = on_missing == "abstain"
    kinds = set(map(type, values))
    texts = all(issubclass(kind, str) for kind in kinds)
    try:
        # many at once; where one might be refused, all are read one by one
        if kinds <= {float, int} or (texts and _are_plain("".join(values))):
            scores = np.fromiter(map(float, values), np.float64, len(values))
            if abstain or not np.isnan(scores).any():
                return scores, None
    except (ValueError, OverflowError):
        pass
    found: list[float] = []
    for value in values:
        read = number(value)
        if read is None or (isnan(read) and not abstain):
            row = before + len(found) + 1
            remedy = "drop such rows or make the detector score them"
            error: object = f"{_missing(score)}, the first is in row {row:,}; {remedy}"
            if read is None:
                error = not_a_number(score, str(value).lower() if isinstance(value, bool) else value, row)
            return np.array(found), InputError(f"{where}{error}")
        found.append(read)
    return np.array(found), None


def refuse_scores_of(
    tables: Mapping[Any, Iterable[Sequence[Any]]], score: str, on_missing: OnMissing
) -> None:
    """Refuse the first of the scores in batches of some tables that is no number, or all that are missing."""
    rows, missing = 0, list[int]()
    for name, batches in tables.items():
        before = rows
        for values in batches:
            where = f"{name}: " if len(tables) > 1 else ""
            scores, error = read_scores(score, values, rows - before, where, "abstain")
            if error is not None:
                raise error
            missing += (rows + 1 + np.flatnonzero(np.isnan(scores))).tolist()
            rows += scores.size
    if missing and on_missing == "stop":
        raise missing_scores(score, len(missing), rows, missing[0])


def _are_plain(text: str) -> bool:
    # float() also takes 1_000 and the digits of every script
    return text.isascii() and "_" not in text


def not_a_number(score: str, value: object, row: int) -> InputError:
    """Return the refusal of a score that is no number."""
    shown, text = quoted(value, _LONGEST_CELL), str(value).strip().lower()
    remedy = "leave the cell empty if the score is missing" if text in _MISSING else "fix that row"
    if re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", text):
        remedy = "write decimals with a point, not with a comma"
    return InputError(f"column {quoted(score)} must hold numbers, got {shown} in row {row:,}; {remedy}")


def missing_scores(score: str, count: int, rows: int, first: int | None = None) -> InputError:
    """Return the refusal of scores that are empty or NaN, when all rows have been seen."""
    where = "" if first is None else f", the first in row {first:,}"
    return InputError(
        f"{_missing(score)}, got {count:,} of {rows:,}{where};"
        " drop those rows or make the detector score them"
    )


def no_rows(names: list[str]) -> InputError:
    """Return the refusal of a table that has a header only."""
    return InputError(f"the table {listed(names)} has no rows; pass one with scores")


def miscounted(names: list[str], rows: int, found: int) -> InputError:
    """Return the refusal of a table that has another number of rows than were read."""
    return InputError(
        f"{listed(names)} has {rows:,} rows, but {found:,} were read; do not change it while it is read"
    )


def changed(names: list[str]) -> InputError:
    """Return the refusal of a table in which something wrong was found, and then was not there any more."""
    return InputError(f"{listed(names)} changed while it was read; do not change it while it is read")


def _missing(score: str) -> str:
    return f"column {quoted(score)} must not be empty or NaN"


# most different labels that are looked at; two are right
LOOKED_AT: Final = 9
TRUE: Final[tuple[str, ...]] = ("1", "1.0", "true")
FALSE: Final[tuple[str, ...]] = ("0", "0.0", "false")


def anomaly_marks(
    counted: Sequence[tuple[str | None, int]], column: str, anomaly_label: str | None
) -> tuple[str, ...]:
    """Return the lower-case texts that mark an anomaly, given each label of a column and its count."""
    values = [value for value, _ in counted if value is not None]
    for value, count in counted:
        if value is None:
            rows = f"{count:,} row{'s' * (count != 1)}"
            raise InputError(f"column {quoted(column)} has {rows} without a label; label or drop them")
    if anomaly_label is None:
        strange = [value for value in values if value not in TRUE + FALSE]
        if strange:
            third = any(one in TRUE for one in values) and any(one in FALSE for one in values)
            remedy = (
                "leave it out with --leave-out"
                if third
                else "name the label of anomalies with --anomaly-label"
            )
            raise InputError(
                f"column {quoted(column)} must be 0/1 or true/false, got {quoted(strange[0])}; {remedy}"
            )
        return TRUE
    marks = spellings(anomaly_label)
    others = [value for value in values if value not in marks]
    if len(others) > 1 or len(others) == len(values):
        remedy = "; leave the third out with --leave-out" if 1 < len(others) < len(values) else ""
        raise InputError(
            f"column {quoted(column)} must hold {quoted(anomaly_label)} and one other value,"
            f" got {listed(values)}{remedy}"
        )
    return marks


def without_case(text: str) -> str:
    """Return a text in lower case if it is ASCII; engines disagree about other letters."""
    return text.lower() if text.isascii() else text


def spellings(label: str) -> tuple[str, ...]:
    """Return the ways in which a label may be written in a file, as `without_case` leaves them."""
    text = without_case(label)
    if re.fullmatch(r"[+-]?\d+(\.0)?", text):
        whole = text.removesuffix(".0")
        return text, f"{whole}.0" if whole == text else whole
    if text.isascii():
        return (text,)
    # the usual ways to write it; any other is refused, since not every engine would take it for the same
    ways = dict.fromkeys((text, text.lower(), text.upper(), text.capitalize()))
    return tuple(way for way in ways if not way.isascii())


def score_cell(text: str) -> float:
    """Return the score in a cell of a database's answer."""
    score = number(text)
    if score is not None and score == score:
        return score
    raise InputError(f"a score must be a number, got {quoted(text)}; start again")


def whole_cell(text: str) -> int:
    """Return the whole number in a cell of a database's answer."""
    if not re.fullmatch("[0-9]{1,30}", text):
        raise InputError(f"an answer must have a whole number here, got {quoted(text)}; start again")
    return int(text)
