"""Tables of scores in files, read by DuckDB; several files are one table."""

import re
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.floats import ScoreType
from pac_wrap.base.text import quoted, visible
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.tables.columns import (
    FALSE,
    LOOKED_AT,
    TRUE,
    anomaly_marks,
    miscounted,
    missing_scores,
    no_rows,
    not_a_number,
    require_column,
    require_two,
    spellings,
)
from pac_wrap.tables.files.connection import PAIR, MisfitError, Progress, batches, connected, refusal, watched
from pac_wrap.tables.files.csv_files import refuse_rows, refuse_scores
from pac_wrap.tables.files.duckdb_view import DuckDBView, make_view, types_of
from pac_wrap.tables.files.find import FoundFiles, found_files
from pac_wrap.tables.sql.expressions import label_sql, one_of, quote_name, score_sql, text_sql

T = TypeVar("T")

# DuckDB's types of whole numbers, and all that may hold scores
WHOLE: Final = r"U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER"
_NUMBERS: Final = rf"{WHOLE}|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN|VARCHAR|JSON"


class Table:
    """Several files as one table; `open_table` makes it."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        found: FoundFiles,
        view: DuckDBView,
        progress: Progress,
        delimiter: str | None,
        again: Callable[[], AbstractContextManager["Table"]] | None,
    ) -> None:
        self._connection, self._view, self._progress, self._again = connection, view, progress, again
        self.names, self.files, self.reader = found.names, found.files, found.reader
        self.columns, self.types, self.everything = view.columns, view.types, view.everything
        self.delimiter = delimiter
        self._shared = view.shared
        # passes over all rows so far
        self._passes = 0
        # which rows are no part of the table, and how many
        self._gone: tuple[str, int] | None = None

    @contextmanager
    def in_order(self) -> Iterator["Table"]:
        """Yield the same table with its rows in order."""
        if self._again is None:
            yield self
            return
        with self._again() as table:
            if self._gone is not None:
                table._without(*self._gone)
            yield table

    def leave_out(self, label: str, texts: Sequence[str]) -> None:
        """Make rows with one of these labels no part of the table, and warn how many; "" is no label."""
        require_column(label, self.columns)
        for one in texts:
            if not {*spellings(one)}.isdisjoint(TRUE + FALSE):
                raise InputError(f"--leave-out {one} names a class, and not a third label; name another one")
        ways = [way for one in texts for way in spellings(one)]
        gone = f"coalesce({one_of(label_sql(label), ways)}, {'true' if '' in texts else 'false'})"
        ((count,),) = self.rows(f"SELECT count(*) FROM source WHERE {gone}")
        self._without(gone, count)
        rows = f"{count:,} row{'s' * (count != 1)}"
        warnings.warn(
            f"{rows} with the label {' or '.join(map(quoted, texts))} left out", PACWrapWarning, stacklevel=5
        )

    def _without(self, gone: str, count: int) -> None:
        """Leave out rows that meet a condition, of which there are so many."""
        self.rows("ALTER VIEW source RENAME TO every_row")
        self.rows(f"CREATE VIEW source AS SELECT * FROM every_row WHERE NOT ({gone})")
        self._gone = gone, count
        if self._view.rows is not None:
            self._view = replace(self._view, rows=self._view.rows - count)

    def first_scores(self, score: str, rows: int = 1000) -> Scores:
        """Return the scores of some rows as they are, NaN where there is none."""
        self.require_numbers(score)
        found = self.arrays(f"SELECT {self.score_sql(score)} AS score FROM source LIMIT {rows}")["score"]
        return np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan)

    def labelled(self, score: str, label: str, anomaly_label: str | None) -> tuple[Scores, NDArray[np.bool_]]:
        """Return the scores, and where the label marks an anomaly."""
        require_two(score, label)
        self.require_numbers(score)
        anomalous = self.anomalous_sql(label, anomaly_label)
        with self.in_order() as table:
            columns = f"{table.score_sql(score)} AS score, {anomalous} AS anomalous"
            arrays = table.arrays(f"SELECT {columns} FROM source")
            return table._whole(arrays["score"], score), np.asarray(arrays["anomalous"], dtype=bool)

    def check_scores(
        self, score: str, on_missing: OnMissing = "stop", counted: Sequence[str] = ()
    ) -> tuple[int, ...]:
        """Return how many rows there are, how many scores are missing, and how many rows meet each condition.

        A text that is no number is refused with its row, and so is a missing score unless it is abstained on;
        nothing is kept in memory.
        """
        self.require_numbers(score)
        number, kind = self.score_sql(score), self.types[score]
        missing, text = f"{number} IS NULL OR isnan({number})", text_sql(score, kind)
        # an empty text is a missing score
        wrong = f"{number} IS NULL AND {text} <> ''" if kind in ("VARCHAR", "JSON") else "false"
        tests = ", ".join(f"count(*) FILTER ({one})" for one in (wrong, missing, *counted))
        with self.in_order() as table:
            ((rows, bad, count, *others),) = table.rows(f"SELECT count(*), {tests} FROM source")
            self.expect(rows)
            if not rows:
                raise no_rows(self.names)
            if bad or (count and on_missing == "stop"):
                refuse_scores(table._view.csv_files, score)
                numbered = (
                    f"SELECT row_number() OVER () AS row, {text} AS text, {wrong} AS bad, {missing} AS gone"
                )
                first = f"SELECT row, text FROM ({numbered} FROM source) WHERE {{}} ORDER BY row LIMIT 1"
                for row, value in table.rows(first.format("bad")):
                    raise not_a_number(score, value, row)
                raise missing_scores(score, count, rows, table.rows(first.format("gone"))[0][0])
        return rows, count, *others

    def expect(self, rows: int) -> None:
        """Refuse to go on if the engine has read another number of rows than the files hold."""
        if self._view.rows is not None and self._view.rows != rows:
            raise miscounted(self.names, self._view.rows, rows)

    def score_type(self, score: str) -> ScoreType:
        """Return the type that scores have in these files; texts are read as doubles."""
        usual: ScoreType = "float32" if self.types[score] == "FLOAT" else "float64"
        return self._view.score_types.get(score, usual)

    def refuse_scores(self, score: str, on_missing: OnMissing) -> None:
        """Refuse the scores of CSV files that are no numbers or, unless they are abstained on, missing."""
        refuse_scores(self._view.csv_files, score, on_missing)

    def look_at_all_cells(self) -> None:
        """Read CSV files in the way that never fails: by types that fit every cell, quotes by one thread."""
        if self._view.thorough is not None:
            self.everything, self._shared = self._view.thorough(), False

    @property
    def counted(self) -> int | None:
        """The number of rows in the files, if it is known."""
        return self._view.rows

    def all_types(self) -> dict[str, str]:
        """Return the types of all columns, also of those that were not asked for."""
        return types_of(self._connection, self.everything)

    def score_sql(self, score: str) -> str:
        """Return the score as an SQL expression, NULL where it is no number."""
        return score_sql(score, self.types[score])

    def require_numbers(self, score: str) -> None:
        """Refuse a score column that does not exist or whose type is not one of numbers or texts."""
        require_column(score, self.columns)
        kind = self.types[score]
        if not re.fullmatch(_NUMBERS, kind):
            raise InputError(
                f"column {score!r} must hold numbers, but its type is {kind}; pick the score column"
            )

    def _whole(self, values: Any, score: str) -> Scores:
        missing = np.isnan(np.ma.filled(values.astype(np.float64), np.nan))
        if missing.any() or not missing.size:
            self.check_scores(score)
        self.expect(missing.size)
        return np.asarray(values, dtype=np.float64)

    def anomalous_sql(self, label: str, anomaly_label: str | None) -> str:
        """Return the expression that is true for anomalies, after looking at all labels."""
        require_column(label, self.columns)
        text = label_sql(label)
        counted = self.rows(f"SELECT {text}, count(*) FROM source GROUP BY 1 ORDER BY 1 LIMIT {LOOKED_AT}")
        marks = anomaly_marks([(value, count) for value, count in counted], label, anomaly_label)
        return one_of(text, marks)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        return self._fetch(query, duckdb.DuckDBPyConnection.fetchall)

    def register(self, name: str, columns: dict[str, NDArray[Any]]) -> None:
        """Make columns a table of the database, under this name."""
        self._connection.register(name, columns)

    def batches(self, query: str, formats: bytes = PAIR) -> Generator[tuple[NDArray[Any], ...]]:
        """Yield what a query for columns of these formats gives, as `files.connection` does."""
        with self._watched():
            yield from batches(self._connection.sql(query), formats)

    def arrays(self, query: str) -> dict[str, Any]:
        """Return the columns that a query gives, as arrays."""
        return self._fetch(query, duckdb.DuckDBPyConnection.fetchnumpy)

    def _fetch(self, query: str, fetch: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        with self._watched(" LIMIT " not in query):
            return fetch(self._connection.execute(query))

    @contextmanager
    def _watched(self, whole: bool = True) -> Iterator[None]:
        """Report how far a query is, and what is wrong with the files; is it a pass over the whole table?"""
        self._passes += whole
        with (
            self._refusing(),
            watched(self._connection, self._progress, max(1, self._passes), self._view.rows),
        ):
            yield

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Say in one sentence what is wrong with the files."""
        try:
            yield
        except (duckdb.Error, RuntimeError) as error:
            instead = refusal(error, self.names)
            if isinstance(instead, InputError):
                if self._shared and not isinstance(error, duckdb.IOException):
                    raise MisfitError from error
                refuse_rows(self._view.csv_files)
            raise instead from error


@contextmanager
def open_found(
    found: FoundFiles,
    scores: Sequence[str],
    label: str | None = None,
    *,
    whole: bool = False,
    output: Path | None = None,
    source: str | None = None,
    passes: bool = False,
    delimiter: str | None = None,
    leave_out: Sequence[str] = (),
    progress: Progress = lambda done: None,
) -> Iterator[Table]:
    """Open files as one table, of which only the scores and the label are read.

    `whole` is for when every column is to be written, to `output`, with the file of each row in the column
    `source` if it is named; `passes` for when the order of rows does not matter. Rows whose label is one of
    `leave_out` are no part of the table, and a warning says how many they are; "" stands for no label.
    """
    wanted = list(dict.fromkeys([*scores, *([] if label is None else [label])]))
    again = (
        partial(open_found, found, scores, label, delimiter=delimiter, progress=progress) if passes else None
    )
    with connected(found.files, found.scratch, output, passes=passes) as connection:
        try:
            number = wanted[0] if scores and wanted[0] != label else None
            view = make_view(
                connection, found, wanted, whole=whole, delimiter=delimiter, source=source, number=number
            )
        except (duckdb.Error, RuntimeError) as error:
            instead = refusal(error, found.names)
            if isinstance(instead, InputError):
                instead = InputError(f"{instead}; check that it is whole and what its name says")
            raise instead from error
        table = Table(connection, found, view, progress, delimiter, again)
        if leave_out and label is not None:
            table.leave_out(label, leave_out)
        yield table


@contextmanager
def open_table(
    paths: Sequence[str],
    scores: Sequence[str],
    label: str | None = None,
    *,
    whole: bool = False,
    passes: bool = False,
    delimiter: str | None = None,
    leave_out: Sequence[str] = (),
    progress: Progress = lambda done: None,
) -> Iterator[Table]:
    """Open files, patterns or "-" (standard input) as one table, as `open_found` does."""
    with (
        found_files(paths) as found,
        open_found(
            found,
            scores,
            label,
            whole=whole,
            passes=passes,
            delimiter=delimiter,
            leave_out=leave_out,
            progress=progress,
        ) as table,
    ):
        yield table


Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one table holds: the row of each key, some columns of scores, and perhaps the labels."""

    name: str
    rows: dict[str, int]
    scores: dict[str, Scores]
    anomalous: Marks | None


def joined(
    paths: Sequence[str],
    scores: Sequence[str],
    label: str,
    key: str,
    *,
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    progress: Progress = lambda share: None,
) -> dict[str, tuple[Scores, Marks]]:
    """Return each column of scores, and where labels mark an anomaly, in the order of the first table.

    Each path is a table, and a pattern the table of its files. A column of scores stands in one of them, the
    key in all, and the label in one at least. Keys are compared as texts.
    """
    for one in (*scores, label):
        if one == key:
            raise InputError(f"column {quoted(key)} cannot be the key and something else; name two columns")
    for one in scores:
        require_two(one, label)
    parts, columns = [], []
    for path in paths:
        with found_files([path]) as found:
            with open_found(found, [key], delimiter=delimiter) as table:
                known = list(table.columns)
            require_column(key, known)
            columns += known
            parts.append(_part(found, known, scores, (label, key), anomaly_label, delimiter, progress))
    for one in (*scores, label):
        require_column(one, list(dict.fromkeys(columns)))
    for one in scores:
        holders = [part.name for part in parts if one in part.scores]
        if len(holders) > 1:
            raise InputError(f"column {quoted(one)} is in {' and in '.join(holders)}; rename one of them")
    first = parts[0]
    orders = [_order(first, part, key) for part in parts]
    anomalous = _agreed(parts, orders, label)
    values = {
        one: part.scores[one][order] for part, order in zip(parts, orders, strict=True) for one in part.scores
    }
    return {one: (values[one], anomalous) for one in scores}


def _part(
    found: FoundFiles,
    known: list[str],
    scores: Sequence[str],
    others: tuple[str, str],
    anomaly_label: str | None,
    delimiter: str | None,
    progress: Progress,
) -> _Part:
    """Return what a table holds of the columns that are asked for."""
    label, key = others
    mine = [one for one in dict.fromkeys(scores) if one in known]
    marked = label if label in known else None
    # the first of them may be read as scores are, and the key never
    wanted = [*(mine or ([] if marked is None else [marked])), key]
    with open_found(found, wanted, marked, delimiter=delimiter, progress=progress) as table:
        for one in mine:
            table.check_scores(one)
        read = [f"CAST({quote_name(key)} AS VARCHAR) AS k"]
        read += [f"{table.score_sql(one)} AS s{place}" for place, one in enumerate(mine)]
        if marked is not None:
            read.append(f"{table.anomalous_sql(marked, anomaly_label)} AS anomalous")
        arrays = table.arrays(f"SELECT {', '.join(read)} FROM source")
    name, keys = (
        visible(found.names[0]),
        np.ma.asarray(arrays["k"]).tolist(),
    )
    if missing := sum(one is None or one == "" for one in keys):
        raise InputError(f"{name} has {missing:,} rows without a key in column {quoted(key)}; fill them in")
    rows = {one: place for place, one in enumerate(keys)}
    if len(rows) < len(keys):
        twice = next(one for place, one in enumerate(keys) if rows[one] != place)
        raise InputError(
            f"{name} has {len(keys) - len(rows):,} rows whose key another row has, such as {quoted(twice)};"
            f" column {quoted(key)} must tell rows apart"
        )
    values = {one: np.asarray(arrays[f"s{place}"], dtype=np.float64) for place, one in enumerate(mine)}
    marks = None if marked is None else np.asarray(arrays["anomalous"], dtype=bool)
    return _Part(name, rows, values, marks)


def _order(first: _Part, other: _Part, key: str) -> NDArray[np.intp]:
    """Return the rows of a table in the order of the first one's keys; both must have the same keys."""
    lacking = [one for one in first.rows if one not in other.rows]
    more = [one for one in other.rows if one not in first.rows]
    if lacking or more:
        which, one, two = quoted((lacking or more)[0]), first.name, other.name
        raise InputError(
            f"{len(lacking):,} keys of {one} are not in {two}, and {len(more):,} of {two} are not in {one},"
            f" such as {which} in column {quoted(key)}; keep the rows that both have"
        )
    return np.fromiter((other.rows[one] for one in first.rows), np.intp, len(first.rows))


def _agreed(parts: list[_Part], orders: list[NDArray[np.intp]], label: str) -> Marks:
    """Return the labels in the order of the first table; tables that have them must agree."""
    labelled = [
        (part.name, part.anomalous[order])
        for part, order in zip(parts, orders, strict=True)
        if part.anomalous is not None
    ]
    name, agreed = labelled[0]
    for other, marks in labelled[1:]:
        if differ := int(np.count_nonzero(marks != agreed)):
            raise InputError(
                f"{name} and {other} label {differ:,} of {agreed.size:,} rows otherwise in column"
                f" {quoted(label)}; drop that column from one of them, or fix it"
            )
    return agreed
