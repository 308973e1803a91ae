"""Rows for a monitor, in order and in batches: from a pipe as they arrive, or from an open table."""

import select
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BufferedReader
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.tables import columns as checks
from pac_wrap.tables.calibrate import OWN, PLACE, Numbered, group_sql, or_nan
from pac_wrap.tables.files.connection import DOUBLE, PAIR, gathered
from pac_wrap.tables.files.text_format import ByteReader, CsvRows, JsonRows, is_json_line
from pac_wrap.tables.sql import label_sql, one_of, quote_text
from pac_wrap.tables.table import Table

_BATCH: Final = 1 << 18
# the texts of a missing label; "none" and similar words may be labels
_MISSING: Final = ("", "nan")
_MISSING_CODE: Final = 2
_NO_BATCH: Final = "must name the batch of every row, got a row without a name; fill it in"


class Rows(NamedTuple):
    """A few rows: scores, labels (NaN if missing), groups and names of batches."""

    scores: Scores
    labels: NDArray[np.float64] | None
    groups: list[Any] | None = None
    batches: list[str] | None = None


class Columns(NamedTuple):
    """The names of the columns to read, and the label of anomalies; `by` says what its groups are."""

    score: str
    label: str | None = None
    group: str | None = None
    anomaly_label: str | None = None
    batch: str | None = None
    by: str = "group"

    @property
    def wanted(self) -> list[str]:
        """The columns that must be there."""
        if self.label is not None:
            checks.require_two(self.score, self.label)
        found = [name for name in (self.score, self.label) if name is not None]
        for name, role in ((self.group, self.by), (self.batch, "batch")):
            if name is not None:
                checks.refuse_as_third(name, found, role)
                found.append(name)
        return found


class _Codes(dict[str, float]):
    """The code of each text of a label: 1, 0, or NaN if it is missing; other texts are refused."""

    def __init__(self, label: str, anomaly_label: str | None) -> None:
        self._label, self._anomaly_label = label, anomaly_label
        self.marks = checks.TRUE if anomaly_label is None else checks.spellings(anomaly_label)
        self._others: tuple[str, ...] = checks.FALSE if anomaly_label is None else ()

    def __missing__(self, text: str) -> float:
        plain = checks.without_case(text)
        if plain in self.marks:
            code = 1.0
        elif plain in _MISSING:
            code = float("nan")
        elif plain in self._others or (not self._others and self._anomaly_label is not None):
            # the first other label counts as normal
            self._others, code = self._others or (plain,), 0.0
        elif self._anomaly_label is None:
            raise InputError(
                f"column {quoted(self._label)} must be 0/1 or true/false, or empty if missing, got"
                f" {quoted(text)}; name the label of anomalies with --anomaly-label"
            )
        else:
            raise InputError(
                f"column {quoted(self._label)} must hold {quoted(self._anomaly_label)} and one other value,"
                f" got {', '.join(map(quoted, (*self._others, text)))}"
            )
        self[text] = code
        return code


class WhileQuiet:
    """The bytes of a stream; if none come for some seconds, a function is called."""

    def __init__(self, reader: BufferedReader, seconds: float, otherwise: Callable[[], None]) -> None:
        self._reader, self._seconds, self._otherwise = reader, seconds, otherwise

    def read1(self, size: int, /) -> bytes:
        """Return the available bytes, as the stream does."""
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
    """Yield the rows of CSV or JSON lines as they arrive, then raise the error for the first bad row."""
    score, label, group, anomaly_label, batch, _ = columns
    wanted = columns.wanted
    codes = None if label is None else _Codes(label, anomaly_label)
    before, of_json = 0, is_json_line(start)
    for cells in _cells(reader, start, wanted, delimiter):
        values = dict(zip(wanted, cells, strict=True))
        scores, error = checks.read_scores(score, values[score], before, "", "abstain")
        labels = groups = batches = None
        if codes is not None and label is not None:
            labels, wrong = _labels(codes, values[label][: scores.size], before)
            scores, error = scores[: labels.size], wrong or error
        if batch is not None:
            batches = ["" if value is None else str(value) for value in values[batch][: scores.size]]
            if "" in batches:
                batches = batches[: batches.index("")]
                error = InputError(f"row {before + len(batches) + 1:,}: column {quoted(batch)} {_NO_BATCH}")
                scores, labels = scores[: len(batches)], None if labels is None else labels[: len(batches)]
        before += scores.size
        if group is not None:  # an empty cell is none, as in a table; JSON tells the empty text from none
            own = values[group][: scores.size]
            groups = own if of_json else [one if one != "" else None for one in own]
        if scores.size:
            yield Rows(scores, labels, groups, batches)
        if error is not None:
            raise error


def rows_of_table(table: Table, columns: Columns) -> Iterator[Rows]:
    """Yield the rows of an open table in order, after checking all scores and labels."""
    wanted = columns.wanted
    rows, *_ = table.check_scores(columns.score, "abstain")
    mark = f"CAST({_MISSING_CODE} AS UTINYINT)"
    if columns.label is not None:
        checks.require_columns([columns.label], table.columns)
        mark = _mark_sql(table, columns.label, columns.anomaly_label)
    selected, formats = f"{or_nan(table.score_sql(columns.score))} AS score, {mark} AS mark", PAIR
    values: tuple[Any, ...] = ()
    names: list[str] = []
    if columns.batch is not None:
        names, place = _batch_sql(table, columns)
        selected, formats = f"{selected}, {place} AS batch", formats + DOUBLE
    query = f"SELECT {selected} FROM source"
    if columns.group is not None:
        value = group_sql(table, tuple(name for name in wanted if name != columns.batch))
        values, formats = Numbered(table, value, "source").groups, formats + DOUBLE
        rows_of = f"SELECT {selected}, {value} AS own, row_number() OVER () AS place FROM source"
        joined = f"({rows_of}) AS given JOIN numbered ON own IS NOT DISTINCT FROM {OWN}"
        columns_of = "given.* EXCLUDE (own, place)"
        query = f"SELECT {columns_of}, CAST({PLACE} AS DOUBLE) FROM {joined} ORDER BY place"
    read = 0
    with closing(table.batches(query, formats)) as batches:
        for scores, marks, *places in gathered(batches, _BATCH):
            read += scores.size
            labels = None if columns.label is None else np.where(marks == _MISSING_CODE, np.nan, marks)
            own = [names[int(place)] for place in places.pop(0).tolist()] if names else None
            groups = [values[int(place)] for place in places[0].tolist()] if places else None
            yield Rows(scores, labels, groups, own)
    table.expect(read)
    if read != rows:
        raise InputError(f"{', '.join(table.names)} changed while it was read; do not change it meanwhile")


def whole_batches(parts: Iterator[Rows]) -> Iterator[tuple[str, Rows]]:
    """Yield every batch with its name, as soon as its last row has come; rows without a name are one."""
    name, held = "", list[Rows]()
    for rows in parts:
        names = np.array(rows.batches or [""] * rows.scores.size, dtype=object)
        cuts = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist(), names.size]
        for start, end in pairwise(cuts):
            if held and names[start] != name:
                yield name, _joined(held)
                held = []
            name = str(names[start])
            # in memory of their own
            labels = None if rows.labels is None else rows.labels[start:end].copy()
            groups = None if rows.groups is None else rows.groups[start:end]
            held.append(Rows(rows.scores[start:end].copy(), labels, groups))
    if held:
        yield name, _joined(held)


def _joined(parts: list[Rows]) -> Rows:
    labels = [one.labels for one in parts if one.labels is not None]
    groups = [one.groups for one in parts if one.groups is not None]
    joined = np.concatenate(labels) if labels else None, [*chain.from_iterable(groups)] if groups else None
    return Rows(np.concatenate([one.scores for one in parts]), *joined)


def _batch_sql(table: Table, columns: Columns) -> tuple[list[str], str]:
    """Return the names of all batches, and the expression for the number of a row's batch, without a join."""
    assert columns.batch is not None
    text = f"CAST({group_sql(table, (columns.score, columns.batch))} AS VARCHAR)"
    if table.rows(f"SELECT 1 FROM source WHERE {text} IS NULL OR {text} = '' LIMIT 1"):
        raise InputError(f"column {quoted(columns.batch)} {_NO_BATCH}")
    table.rows(f"CREATE TYPE batch_names AS ENUM (SELECT DISTINCT {text} FROM source ORDER BY 1)")
    names = table.rows("SELECT unnest(enum_range(CAST(NULL AS batch_names)))")
    return [name for (name,) in names], f"CAST(enum_code(CAST({text} AS batch_names)) AS DOUBLE)"


def _mark_sql(table: Table, label: str, anomaly_label: str | None) -> str:
    """Return the expression that is 1 for anomalies, 0 for normal points and 2 for missing labels."""
    text, codes = label_sql(label), _Codes(label, anomaly_label)
    known = dict.fromkeys(_MISSING, _MISSING_CODE) | dict.fromkeys(codes.marks, 1)
    neither = f"{text} IS NOT NULL AND NOT {one_of(text, [*known])}"
    for (value,) in table.rows(f"SELECT DISTINCT {text} FROM source WHERE {neither} ORDER BY 1 LIMIT 9"):
        codes[value]  # which refuses a wrong one
    # one by one: a long list would become a join, which loses the order of rows
    cases = " ".join(f"WHEN {text} = {quote_text(value)} THEN {code}" for value, code in known.items())
    return f"CAST(CASE WHEN {text} IS NULL THEN {_MISSING_CODE} {cases} ELSE 0 END AS UTINYINT)"


def _labels(codes: _Codes, values: list[Any], before: int) -> tuple[NDArray[np.float64], InputError | None]:
    found, refusal = list[float](), None
    try:
        for value in values:
            found.append(codes["" if value is None else str(value)])
    except InputError as error:
        refusal = InputError(f"row {before + len(found) + 1:,}: {error}")
        refusal.__cause__ = error
    return np.array(found), refusal


def _cells(
    reader: ByteReader, start: bytes, wanted: list[str], delimiter: str | None
) -> Iterator[list[list[Any]]]:
    """Yield the wanted columns, CSV as texts and JSON as values; the first row must name all of them."""
    if not is_json_line(start):
        table = CsvRows(reader, start, wanted, delimiter)
        names = table.header.names
        checks.require_columns(wanted, names)
        places = [names.index(name) for name in wanted]
        for part in table:
            yield [[row[place] for row in part.rows] for place in places]
        return
    checks.only_in_csv(delimiter)
    score, *others = wanted
    rows = JsonRows(reader, start)
    for batch in rows:
        if rows.read == len(batch.rows):
            try:
                checks.require_columns(wanted, batch.rows[0])
            except InputError as error:
                raise InputError(
                    f"{error}; the first row must name every column, with null for a missing value"
                ) from error
        yield [[row.get(score) for row in batch.rows], *(rows.column(name, batch) for name in others)]
