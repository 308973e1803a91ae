"""Rows for a monitor, batch by batch in their order: from a pipe as they arrive, or from an open table."""

import json
import select
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BufferedReader
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.foreign import quoted
from pac_wrap.errors import InputError
from pac_wrap.streams.decide import is_json_line
from pac_wrap.tables.columns import (
    FALSE,
    TRUE,
    read_scores,
    require_column,
    require_two,
    spellings,
    without_case,
)
from pac_wrap.tables.files.arrow_stream import PAIR, TRIPLE, gathered
from pac_wrap.tables.files.text_format import ByteReader, CsvRows, only_in_csv, whole_lines
from pac_wrap.tables.groups import Numbered, group_sql
from pac_wrap.tables.sql.expressions import label_sql, one_of, quote_text
from pac_wrap.tables.table import Table

_BATCH: Final = 1 << 18
# how a file writes that there is no label
_MISSING: Final = ("", "nan", "null", "none", "na", "<na>")
_MISSING_CODE: Final = 2


class Rows(NamedTuple):
    """A few rows: their scores, NaN where there is none, and their labels likewise; None without a column.

    `groups` are those of the rows; None without a column.
    """

    scores: Scores
    labels: NDArray[np.float64] | None
    groups: list[Any] | None = None


class Columns(NamedTuple):
    """The names of the columns that are read, and the label of anomalies."""

    score: str
    label: str | None = None
    group: str | None = None
    anomaly_label: str | None = None

    @property
    def wanted(self) -> list[str]:
        """Return the columns that must be there: those that were named."""
        found = [name for name in (self.score, self.label, self.group) if name is not None]
        if self.label is not None:
            require_two(self.score, self.label)
        if self.group in found[:-1]:
            raise InputError(f"column {quoted(self.group)} cannot be the group as well; name another column")
        return found


class _Codes(dict[str, float]):
    """What each text of a label says: 1, 0, or NaN for a missing one; what says none of these is refused."""

    def __init__(self, label: str, anomaly_label: str | None) -> None:
        self._label, self._anomaly_label = label, anomaly_label
        self._marks = TRUE if anomaly_label is None else spellings(anomaly_label)
        self._others: tuple[str, ...] = FALSE if anomaly_label is None else ()

    def __missing__(self, text: str) -> float:
        plain = without_case(text)
        if plain in self._marks:
            code = 1.0
        elif plain in _MISSING:
            code = float("nan")
        elif plain in self._others or (not self._others and self._anomaly_label is not None):
            # the first other label is taken for that of normal points
            self._others, code = self._others or (plain,), 0.0
        else:
            raise strange_label(self._label, text, self._anomaly_label, self._others)
        self[text] = code
        return code


def strange_label(label: str, text: str, anomaly_label: str | None, others: tuple[str, ...]) -> InputError:
    """Return the refusal of a label that is neither that of anomalies nor that of normal points."""
    if anomaly_label is None:
        remedy = "must be 0/1 or true/false, or empty where there is none"
        return InputError(
            f"column {quoted(label)} {remedy}, got {quoted(text)}; name the label of anomalies with"
            " --anomaly-label"
        )
    return InputError(
        f"column {quoted(label)} must hold {quoted(anomaly_label)} and one other value, got"
        f" {', '.join(map(quoted, (*others, text)))}"
    )


class WhileQuiet:
    """The bytes of a stream; whenever none come for some seconds, something else is done meanwhile."""

    def __init__(self, reader: BufferedReader, seconds: float, otherwise: Callable[[], None]) -> None:
        self._reader, self._seconds, self._otherwise = reader, seconds, otherwise

    def read1(self, size: int, /) -> bytes:
        """Return what there is, as the stream does."""
        try:
            quiet = not select.select([self._reader], [], [], self._seconds)[0]
        except (OSError, ValueError):  # no file, or a system that waits for sockets only
            quiet = False
        if quiet:
            self._otherwise()
        return self._reader.read1(size)


def rows_of_lines(
    reader: ByteReader, start: bytes, columns: Columns, delimiter: str | None = None
) -> Iterator[Rows]:
    """Yield the rows of CSV or JSON lines as they arrive, up to the first that is none, and refuse that."""
    score, label, group, anomaly_label = columns
    wanted = columns.wanted
    codes = None if label is None else _Codes(label, anomaly_label)
    before = 0
    lines = None
    if is_json_line(start):
        only_in_csv(delimiter)
        lines = _json_cells(reader, start, wanted)
    for values in lines or _csv_cells(reader, start, wanted, delimiter):
        scores, error = read_scores(score, values[0], before, "", "abstain")
        labels = None
        if codes is not None:
            labels, wrong = _labels(codes, values[1][: scores.size], before)
            scores, error = scores[: labels.size], wrong or error
        before += scores.size
        groups = None if group is None else [one if one != "" else None for one in values[-1][: scores.size]]
        if scores.size:
            yield Rows(scores, labels, groups)
        if error is not None:
            raise error


def rows_of_table(table: Table, columns: Columns) -> Iterator[Rows]:
    """Yield the rows of an open table in their order; what is no score or no label is refused beforehand."""
    wanted = columns.wanted
    rows, *_ = table.check_scores(columns.score, "abstain")
    mark = f"CAST({_MISSING_CODE} AS UTINYINT)"
    if columns.label is not None:
        require_column(columns.label, table.columns)
        mark = _mark_sql(table, columns.label, columns.anomaly_label)
    number = f"coalesce({table.score_sql(columns.score)}, CAST('NaN' AS DOUBLE))"
    query, formats = f"SELECT {number} AS score, {mark} AS mark FROM source", PAIR
    values: tuple[Any, ...] = ()
    if columns.group is not None:
        value = group_sql(table, tuple(wanted))
        found = Numbered(table, value, "source")
        values, formats = found.groups, TRIPLE
        query = found.ordered(f"SELECT {number} AS score, {mark} AS mark, {value} AS own FROM source")
    read = 0
    with closing(table.batches(query, formats)) as batches:
        for scores, marks, *places in gathered(batches, _BATCH):
            read += scores.size
            labels = None if columns.label is None else np.where(marks == _MISSING_CODE, np.nan, marks)
            groups = [values[int(place)] for place in places[0].tolist()] if places else None
            yield Rows(scores, labels, groups)
    table.expect(read)
    if read != rows:
        raise InputError(f"{', '.join(table.names)} changed while it was read; do not change it meanwhile")


def _mark_sql(table: Table, label: str, anomaly_label: str | None) -> str:
    """Return the expression that is 1 for anomalies, 0 for normal points and 2 for a missing label."""
    text = label_sql(label)
    missing = f"({text} IS NULL OR {one_of(text, _MISSING)})"
    marks = TRUE if anomaly_label is None else spellings(anomaly_label)
    neither = f"NOT {missing} AND NOT {one_of(text, marks)}"
    found = table.rows(f"SELECT DISTINCT {text} FROM source WHERE {neither} ORDER BY 1 LIMIT 9")
    others = [str(value) for (value,) in found]
    strange = [value for value in others if value not in FALSE] if anomaly_label is None else others[1:]
    if strange:
        raise strange_label(label, strange[0], anomaly_label, tuple(others[:1]))
    # one by one: a long list would become a join, after which rows come in any order
    codes = dict.fromkeys(_MISSING, _MISSING_CODE) | dict.fromkeys(marks, 1)
    cases = " ".join(f"WHEN {text} = {quote_text(value)} THEN {code}" for value, code in codes.items())
    return f"CAST(CASE WHEN {text} IS NULL THEN {_MISSING_CODE} {cases} ELSE 0 END AS UTINYINT)"


def _labels(codes: _Codes, values: list[Any], before: int) -> tuple[NDArray[np.float64], InputError | None]:
    """Return labels up to the first that is none, and its refusal."""
    found: list[float] = []
    try:
        for value in values:
            found.append(codes[value if isinstance(value, str) else _text(value)])
    except InputError as error:
        refusal = InputError(f"row {before + len(found) + 1:,}: {error}")
        refusal.__cause__ = error
        return np.array(found), refusal
    return np.array(found), None


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _csv_cells(
    reader: ByteReader, start: bytes, wanted: list[str], delimiter: str | None
) -> Iterator[list[list[Any]]]:
    """Yield the cells of the columns that are wanted, as texts."""
    rows = CsvRows(reader, start, wanted, delimiter)
    for name in wanted:
        require_column(name, list(rows.header.names))
    places = [rows.header.names.index(name) for name in wanted]
    for batch in rows:
        yield [[row[place] for row in batch.cells] for place in places]


def _json_cells(reader: ByteReader, start: bytes, wanted: list[str]) -> Iterator[list[list[Any]]]:
    """Yield the values of the columns that are wanted; a row may lack a label, but no row all of them."""
    read = 0
    for piece in whole_lines(reader, start):
        found: list[dict[str, Any]] = []
        problem = None
        for line in piece.split("\n"):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                problem = f"row {read + len(found) + 1:,} is not a JSON object on one line; fix that row"
                break
            found.append(row)
        if found and not read:
            require_column(wanted[0], list(found[0]))
        read += len(found)
        yield [[row.get(name) for row in found] for name in wanted]
        if problem is not None:
            raise InputError(problem)
