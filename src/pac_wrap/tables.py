"""Tables of scores in files, read by DuckDB; several files are one table."""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.batches import batches
from pac_wrap.columns import (
    miscounted,
    missing_scores,
    no_rows,
    not_a_number,
    refuse_added,
    require_column,
    require_two,
)
from pac_wrap.csvfiles import refuse_rows, refuse_scores
from pac_wrap.database import Progress, connected, watched
from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores
from pac_wrap.labels import LOOKED_AT, anomaly_marks, without_case_sql
from pac_wrap.numerals import number_sql
from pac_wrap.outputs import written_columns
from pac_wrap.precision import ScoreType
from pac_wrap.refusals import first_line, refusal
from pac_wrap.scratch import scratch_folder
from pac_wrap.sources import find_all, reader_of
from pac_wrap.sql import quote_name, quote_text
from pac_wrap.views import View, make_view, types_of

T = TypeVar("T")

# DuckDB's types of whole numbers, and all that may hold scores
WHOLE: Final = r"U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER"
_NUMBERS: Final = rf"{WHOLE}|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN|VARCHAR|JSON"


class Found(NamedTuple):
    """Files, as they were named and as they are, what reads them, and a folder for temporary files."""

    names: list[str]
    files: list[Path]
    reader: str
    scratch: Path


class Table:
    """Several files as one table; `open_table` makes it."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        found: Found,
        view: View,
        progress: Progress,
        delimiter: str | None,
        again: Callable[[], AbstractContextManager["Table"]] | None,
    ) -> None:
        self._connection, self._view, self._progress, self._again = connection, view, progress, again
        self.names, self.files, self.reader = found.names, found.files, found.reader
        self.columns, self.types, self.delimiter = view.columns, view.types, delimiter

    @contextmanager
    def in_order(self) -> Iterator["Table"]:
        """Yield the same table with its rows in order."""
        if self._again is None:
            yield self
            return
        with self._again() as table:
            yield table

    def scores(self, score: str) -> Scores:
        """Return one column as float64; text, NULL and NaN are refused with the row they stand in."""
        self.require_numbers(score)
        with self.in_order() as table:
            query = f"SELECT {table.score_sql(score)} AS score FROM source"
            return table._whole(table.arrays(query)["score"], score)

    def labelled(self, score: str, label: str, anomaly_label: str | None) -> tuple[Scores, NDArray[np.bool_]]:
        """Return the scores, and where the label marks an anomaly."""
        require_two(score, label)
        self.require_numbers(score)
        anomalous = self.anomalous_sql(label, anomaly_label)
        with self.in_order() as table:
            columns = f"{table.score_sql(score)} AS score, {anomalous} AS anomalous"
            arrays = table.arrays(f"SELECT {columns} FROM source")
            return table._whole(arrays["score"], score), np.asarray(arrays["anomalous"], dtype=bool)

    def check_scores(self, score: str) -> int:
        """Return the number of rows; text, NULL and NaN are refused, and nothing is held in memory."""
        self.require_numbers(score)
        number = self.score_sql(score)
        missing = f"{number} IS NULL OR isnan({number})"
        with self.in_order() as table:
            count, rows = table.rows(f"SELECT count(*) FILTER ({missing}), count(*) FROM source")[0]
            self.expect(rows)
            if not rows:
                raise no_rows(self.names)
            if count:
                refuse_scores(table._view.csv_files, score)
                text = f"CAST({_text(score, table.types[score])} AS VARCHAR)"
                numbered = (
                    f"SELECT row_number() OVER () AS row, {text} AS text, {number} AS number FROM source"
                )
                first = f"SELECT row, text FROM ({numbered}) WHERE {{}} ORDER BY row LIMIT 1"
                for row, value in table.rows(first.format("text IS NOT NULL AND number IS NULL")):
                    raise not_a_number(score, value, row)
                row = table.rows(first.format("number IS NULL OR isnan(number)"))[0][0]
                raise missing_scores(score, count, rows, row)
        return int(rows)

    def expect(self, rows: int) -> None:
        """Refuse to go on if the engine has read another number of rows than the files hold."""
        if self._view.rows is not None and self._view.rows != rows:
            raise miscounted(self.names, self._view.rows, rows)

    def score_type(self, score: str) -> ScoreType:
        """Return the type that scores have in these files; texts are read as doubles."""
        usual: ScoreType = "float32" if self.types[score] == "FLOAT" else "float64"
        return self._view.score_types.get(score, usual)

    def copy(self, score: str, added: dict[str, str], target: str, options: str, rows: int) -> None:
        """Write all columns and the added expressions to a file; an OSError says why it cannot be written.

        Anything else than so many rows is an error.
        """
        refuse_added(self.columns, added)
        extra = ", ".join(f"{expression} AS {quote_name(name)}" for name, expression in added.items())
        types = self.types if self._alike(options) else types_of(self._connection, self._view.everything)
        columns = written_columns(types, score, _number(score, types[score]), options)
        query = f"SELECT {columns}, {extra} FROM {self._view.everything}"
        try:
            # into the file itself, which has the right permissions, and not into a visible one beside it
            copied = f"COPY ({query}) TO {quote_text(target)} ({options}, USE_TMP_FILE false)"
            written = self.rows(copied)[0][0]
        except InputError as error:
            if isinstance(error.__cause__, duckdb.IOException) and "write" in str(error.__cause__).lower():
                raise OSError(first_line(error.__cause__)) from error
            raise
        if written != rows:
            raise miscounted(self.names, rows, written)

    def _alike(self, options: str) -> bool:
        """Return whether the types of the wanted columns say how all are written; finding all takes long."""
        return self.reader == "read_parquet" and not options.startswith("FORMAT json")

    def score_sql(self, score: str) -> str:
        """Return the score as an SQL expression, NULL where it is no number."""
        return _number(score, self.types[score])

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
        text = label_text(label)
        counted = self.rows(f"SELECT {text}, count(*) FROM source GROUP BY 1 ORDER BY 1 LIMIT {LOOKED_AT}")
        marks = anomaly_marks([(value, count) for value, count in counted], label, anomaly_label)
        return one_of(text, marks)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        return self._fetch(query, duckdb.DuckDBPyConnection.fetchall)

    def batches(self, query: str) -> Generator[tuple[Scores, NDArray[np.uint8]]]:
        """Yield what a query for two columns gives, as `pac_wrap.batches` does."""
        with self._refusing(), watched(self._connection, self._progress):
            yield from batches(self._connection.sql(query))

    def arrays(self, query: str) -> dict[str, Any]:
        """Return the columns that a query gives, as arrays."""
        return self._fetch(query, duckdb.DuckDBPyConnection.fetchnumpy)

    def _fetch(self, query: str, fetch: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        with self._refusing(), watched(self._connection, self._progress):
            return fetch(self._connection.execute(query))

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Say in one sentence what is wrong with the files."""
        try:
            yield
        except (duckdb.Error, RuntimeError) as error:
            instead = refusal(error, self.names)
            if isinstance(instead, InputError):
                refuse_rows(self._view.csv_files)
            raise instead from error


@contextmanager
def found_files(paths: Sequence[str], start: bytes = b"") -> Iterator[Found]:
    """Find files, patterns or "-" (standard input, of which `start` was read already)."""
    with scratch_folder() as scratch:
        files = find_all(paths, scratch, start)
        yield Found(list(paths), files, reader_of(files), scratch)


@contextmanager
def open_found(
    found: Found,
    scores: Sequence[str],
    label: str | None = None,
    *,
    whole: bool = False,
    output: Path | None = None,
    passes: bool = False,
    delimiter: str | None = None,
    progress: Progress = lambda share: None,
) -> Iterator[Table]:
    """Open files as one table, of which only the scores and the label are read.

    `whole` is for when every column is to be written, to `output`; `passes` for when the order of rows does
    not matter.
    """
    wanted = list(
        dict.fromkeys(
            [*([scores] if isinstance(scores, str) else scores), *([] if label is None else [label])]
        )
    )
    again = (
        partial(open_found, found, scores, label, delimiter=delimiter, progress=progress) if passes else None
    )
    with connected(found.files, found.scratch, output, passes=passes) as connection:
        try:
            view = make_view(
                connection,
                found.reader,
                found.files,
                wanted,
                scratch=found.scratch,
                whole=whole,
                delimiter=delimiter,
            )
        except (duckdb.Error, RuntimeError) as error:
            raise refusal(error, found.names) from error
        yield Table(connection, found, view, progress, delimiter, again)


@contextmanager
def open_table(
    paths: Sequence[str],
    scores: Sequence[str],
    label: str | None = None,
    *,
    whole: bool = False,
    passes: bool = False,
    delimiter: str | None = None,
    progress: Progress = lambda share: None,
) -> Iterator[Table]:
    """Open files, patterns or "-" (standard input) as one table, as `open_found` does."""
    with (
        found_files(paths) as found,
        open_found(
            found, scores, label, whole=whole, passes=passes, delimiter=delimiter, progress=progress
        ) as table,
    ):
        yield table


def _number(column: str, kind: str) -> str:
    if kind in ("VARCHAR", "JSON"):
        return number_sql(_text(column, kind))
    if kind.endswith("HUGEINT"):  # which DuckDB rounds wrongly, but not its text
        return f"CAST(CAST({quote_name(column)} AS VARCHAR) AS DOUBLE)"
    return f"CAST({quote_name(column)} AS DOUBLE)"


def _text(column: str, kind: str) -> str:
    return quote_name(column) if kind != "JSON" else f"({quote_name(column)} ->> '$')"


def label_text(label: str) -> str:
    """Return the label, as the text it is compared as, as an SQL expression."""
    return without_case_sql(f"CAST({quote_name(label)} AS VARCHAR)")


def one_of(text: str, values: Sequence[str]) -> str:
    """Return the SQL expression that is true where a text is one of some values."""
    return f"{text} IN ({', '.join(map(quote_text, values))})"
