"""Columns of scores and labels: what they may hold, and the errors of all readers for anything else."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.floats import ScoreType, is_narrower
from pac_wrap.base.text import amount, listed, quoted, visible
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.groups.certificate import GroupCertificate

_LONGEST_CELL: Final = 60
# how alike a word and the same word without one letter are, see `difflib`
_SLIP: Final = 0.85
# a number in lower case without blanks around it, for engines that accept more texts as numbers
NUMBER: Final = "[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)"
# the columns that verdicts fill
ADDED: Final = ("verdict", "prediction_set")
# what other software writes for a missing number
_MISSING: Final = ("na", "n/a", "#n/a", "<na>", "none", "null", "missing", "-", "?")
BLANKS: Final = " \t\n\v\f\r"


def refuse_narrower(kind: ScoreType, certificate: "GroupCertificate", score: str) -> None:
    """Refuse scores with fewer digits than the calibration scores: a threshold may need the lost digits."""
    if is_narrower(kind, certificate.score_type):
        raise InputError(
            f"column {quoted(score)} holds {kind} scores, but the certificate needs {certificate.score_type}"
            f" scores; use {certificate.score_type} scores, or calibrate on {kind} scores"
        )


def require_columns(columns: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a table without one of these columns; suggest a misspelling, a longer name or a similar one."""
    names = list(known)
    column = next((one for one in columns if one not in names), None)
    if column is None:
        return
    wanted, lowered = column.lower(), {name.lower(): name for name in names}
    within = [name for name in lowered if len(wanted) > 2 and wanted in name]
    # rather a column of a detector than one of its inputs
    within.sort(key=lambda name: not re.search("anomal|outlier", name))
    near = get_close_matches(wanted, lowered, 1, _SLIP) or within or get_close_matches(wanted, lowered, 1)
    hint = f"did you mean {quoted(lowered[near[0]])}? " if near else ""
    raise InputError(f"there is no column {quoted(column)}; {hint}the columns are {listed(names)}")


def require_two(score: object, label: object, what: str = "label") -> None:
    """Refuse the same column for the score and the label or review."""
    if score == label:
        raise InputError(f"column {quoted(score)} cannot be both the score and the {what}; name two columns")


def refuse_as_third(column: str, others: Iterable[str], what: str = "group") -> None:
    """Refuse the column of scores or labels as the column of groups, kinds or weights."""
    if column in others:
        raise InputError(f"column {quoted(column)} cannot be the {what} as well; name another column")


def refuse_twins(names: list[str], table: object) -> None:
    """Refuse a table with two columns of one name, compared without case."""
    counts = Counter(name.lower() for name in names)
    for name in names:
        if counts[name.lower()] > 1:
            raise InputError(f"{visible(table)} has two columns named {quoted(name)}; rename one of them")


def require_in_all(files: Sequence[object], names: Sequence[Sequence[str]], wanted: Sequence[str]) -> None:
    """Refuse a file without a wanted column that other files have; engines would fill it with NULL."""
    for column in wanted:
        lacking = [place for place, known in enumerate(names) if column not in known]
        if lacking and len(lacking) < len(files):
            raise InputError(
                f"{files[lacking[0]]} has no column {column!r}, which other files have; its columns are"
                f" {', '.join(names[lacking[0]])}; add the column, or remove that file"
            )


def all_columns(files: Sequence[object], names: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns of all files, each once; names that differ only in case are refused."""
    columns = list(dict.fromkeys(name for known in names for name in known))
    refuse_twins(columns, f"the table of {', '.join(map(str, files))}")
    return columns


def refuse_added(names: Iterable[object], added: Iterable[str]) -> None:
    """Refuse a table that already has a column which will be added, compared without case."""
    wanted = {name.lower() for name in added}
    for name in names:
        if str(name).lower() in wanted:
            raise InputError(f"there is a column {quoted(name)} already; rename it or drop it first")


def only_in_csv(delimiter: str | None) -> None:
    """Refuse a delimiter for files that are not CSV."""
    if delimiter is not None:
        raise InputError("a delimiter works only with CSV, and these files are not CSV; remove it")


def number(value: Any) -> float | None:
    """Return a value as a number, NaN if it is missing, None if it is not a number."""
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
    """Return the scores before the first bad value, and its error; `before` rows came earlier."""
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


def refuse_scores_of(files: Mapping[Any, Iterable[Sequence[Any]]], score: str, on_missing: OnMissing) -> None:
    """Refuse the first score in the batches of files that is not a number, or all missing scores."""
    rows, missing = 0, list[int]()
    for name, batches in files.items():
        before = rows
        for values in batches:
            where = f"{name}: " if len(files) > 1 else ""
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
    """Return the error for a score that is not a number."""
    shown, text = quoted(value, _LONGEST_CELL), str(value).strip().lower()
    remedy = "leave the cell empty if the score is missing" if text in _MISSING else "fix that row"
    if re.fullmatch(r"[+-]?\d*,\d+(e[+-]?\d+)?", text):
        remedy = "write decimals with a point, not with a comma"
    return InputError(f"column {quoted(score)} must hold numbers, got {shown} in row {row:,}; {remedy}")


def missing_scores(score: str, count: int, rows: int, first: int | None = None) -> InputError:
    """Return the error for scores that are empty or NaN, after all rows were read."""
    where = "" if first is None else f", the first in row {first:,}"
    return InputError(
        f"{_missing(score)}, got {count:,} of {rows:,}{where};"
        " drop those rows or make the detector score them"
    )


def no_rows(names: list[str]) -> InputError:
    """Return the error for a table with a header only."""
    return InputError(f"the table {listed(names)} has no rows; pass one with scores")


def expect_rows(names: list[str], rows: int | None, found: int) -> None:
    """Refuse a table whose number of rows, if it is known, is not the number that was read."""
    if rows not in (None, found):
        raise InputError(
            f"{listed(names)} has {rows:,} rows, but {found:,} were read; do not change it while it is read"
        )


def changed(names: list[str]) -> InputError:
    """Return the error for a table with a bad row that a second reading did not find."""
    return InputError(f"{listed(names)} changed while pac-wrap was reading it; run the command again")


def _missing(score: str) -> str:
    return f"column {quoted(score)} must not be empty or NaN"


# the most different labels that are examined; two are right
LOOKED_AT: Final = 9
TRUE: Final[tuple[str, ...]] = ("1", "1.0", "true")
FALSE: Final[tuple[str, ...]] = ("0", "0.0", "false")


# the first labels in the order of their texts, None for no label, and how often each occurs
LabelCounts = Sequence[tuple[str | None, int]]


def anomaly_marks(counted: LabelCounts, column: str, anomaly_label: str | None) -> tuple[str, ...]:
    """Return the lower-case texts that mark an anomaly, from each label of a column and its count."""
    values = [value for value, _ in counted if value is not None]
    for value, count in counted:
        if value is None:
            rows = amount(count, "row")
            raise InputError(f"column {quoted(column)} has {rows} without a label; label or drop them")
    if anomaly_label is None:
        strange = [value for value in values if value not in TRUE + FALSE]
        if strange:
            remedy = "name the label of anomalies with --anomaly-label"
            if not {*values}.isdisjoint(TRUE) and not {*values}.isdisjoint(FALSE):
                remedy = "skip its rows with --leave-out"
            raise InputError(
                f"column {quoted(column)} must be 0/1 or true/false, got {quoted(strange[0])}; {remedy}"
            )
        return TRUE
    marks = spellings(anomaly_label)
    others = [value for value in values if value not in marks]
    if len(others) > 1 or len(others) == len(values):
        remedy = "; skip the rows of a third one with --leave-out" if 1 < len(others) < len(values) else ""
        raise InputError(
            f"column {quoted(column)} must hold {quoted(anomaly_label)} and one other value,"
            f" got {listed(values)}{remedy}"
        )
    return marks


# how a review and a draw for audit are spelled, and their parts of the number of a point's state
_NONE: Final = ("", "nan")
REVIEWS: Final = dict.fromkeys(FALSE, 0) | dict.fromkeys(TRUE, 1) | dict.fromkeys(_NONE, 2)
AUDITS: Final = dict.fromkeys((*_NONE, *FALSE), 0) | dict.fromkeys(TRUE, 3)
# the most different pairs of these that are examined; the known ones have fewer spellings
MOST_STATES: Final = 400


class TrafficColumns(NamedTuple):
    """The columns of traffic: scores, and perhaps what reviews found, and the points drawn for audit."""

    score: str
    review: str | None = None
    audit: str | None = None

    @property
    def marks(self) -> list[str]:
        """The columns of reviews and audits, as far as there are any."""
        return [name for name in self[1:] if name is not None]

    def check(self, columns: list[str]) -> None:
        """Refuse a table without these columns, and one column for two of them."""
        for name, what in ((self.review, "review"), (self.audit, "audit")):
            if name is not None:
                require_columns([name], columns)
                require_two(self.score, name, what)
        if self.audit is not None and self.audit == self.review:
            raise InputError(f"column {quoted(self.audit)} cannot be both the review and the audit; name two")

    @property
    def start(self) -> int:
        """The state of a point without any marks."""
        return REVIEWS[""] if self.review is None else 0

    def part_of(self, column: str, text: str | None) -> int:
        """Return the part of the number of a point's state that a text in a column of marks gives."""
        known, rule = REVIEWS, "1 (right), 0 (wrong) or empty (not reviewed)"
        if column == self.audit:
            known, rule = AUDITS, "1 (drawn for audit), or 0 or empty (not drawn)"
        if (code := known.get(without_case(text or ""))) is None:
            raise InputError(f"column {quoted(column)} must be {rule}, got {quoted(text)}; fix those rows")
        return code

    def counted(self, states: Iterable[tuple[int, int, int]]) -> tuple[list[int], int]:
        """Return how many points with a score each state has, and all without, from both numbers by state."""
        sizes, points, unscored = [0] * 6, 0, 0
        what, remedy = ("row", "") if self.audit is not None else ("reviewed row", ", or drop the review")
        for state, rows, missing in states:
            if missing and (self.audit is not None or state != REVIEWS[""]):
                gaps = f"column {quoted(self.score)} is empty or NaN in {amount(missing, what)}"
                raise InputError(f"{gaps}; give each a score{remedy}")
            if rows:
                sizes[state] += rows - missing
            points, unscored = points + rows, unscored + missing
        if not points:
            raise InputError("the table has no rows; pass all points that came")
        return sizes, unscored


def without_case(text: str) -> str:
    """Return a text in lower case if it is ASCII, else unchanged; engines disagree on other letters."""
    return text.lower() if text.isascii() else text


def spellings(label: str) -> tuple[str, ...]:
    """Return the spellings of a label in a file, in the form that `without_case` returns."""
    text = without_case(label)
    if re.fullmatch(r"[+-]?\d+(\.0)?", text):
        whole = text.removesuffix(".0")
        return text, f"{whole}.0" if whole == text else whole
    if text.isascii():
        return (text,)
    # only usual spellings: engines disagree on whether others are the same
    ways = dict.fromkeys((text, text.lower(), text.upper(), text.capitalize()))
    return tuple(way for way in ways if not way.isascii())


def score_cell(text: str) -> float:
    """Return the score in a cell of a database's answer."""
    score = number(text)
    if score is not None and score == score:
        return score
    raise InputError(f"a score in an answer must be a number, got {quoted(text)}; start again")


def whole_cell(text: str) -> int:
    """Return the whole number in a cell of a database's answer."""
    if not re.fullmatch("[0-9]{1,30}", text):
        raise InputError(f"a count in an answer must be a whole number, got {quoted(text)}; start again")
    return int(text)
