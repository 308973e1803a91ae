"""Tables of scores in files, read by DuckDB; several files are one table."""

import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.batches import batches
from pac_wrap.columns import missing_scores, no_rows, not_a_number, refuse_added, require_column, require_two
from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores
from pac_wrap.labels import LOOKED_AT, anomaly_marks
from pac_wrap.precision import ScoreType, score_type
from pac_wrap.refusals import first_line, refusal
from pac_wrap.scratch import scratch_folder
from pac_wrap.sources import find_all, numpy_columns, reader_of
from pac_wrap.sql import quote_name, quote_text
from pac_wrap.views import (
    NO_FOLDERS,
    common_types,
    csv_types,
    make_view,
    refuse_twin_columns,
    rows_of,
    types_of,
    types_option,
    widen_view,
    written_columns,
)

Progress = Callable[[float], None]
T = TypeVar("T")

_WRITERS: Final = {
    ".parquet": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}
# writers leave NaN out of a Parquet file's statistics, so they prove nothing about NaN
NO_STATISTICS: Final = "disabled_optimizers = 'statistics_propagation'"
# DuckDB's types of whole numbers, and all that may hold scores
WHOLE: Final = r"U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER"
_NUMBERS: Final = rf"{WHOLE}|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN"


class Table:
    """Several files as one table; `open_table` makes it."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        names: list[str],
        files: list[Path],
        reader: str,
        types: dict[str, str],
        score_types: dict[str, ScoreType],
        progress: Progress,
    ) -> None:
        self._connection = connection
        self._progress = progress
        self.names, self.files, self.reader, self.types = names, files, reader, types
        self._score_types = score_types

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)

    def scores(self, score: str) -> Scores:
        """Return one column as float64; text, NULL and NaN are refused with the row they stand in."""
        self.require_numbers(score)
        return self._whole(
            self.arrays(f"SELECT {self.score_sql(score)} AS score FROM source")["score"], score
        )

    def labelled(self, score: str, label: str, anomaly_label: str | None) -> tuple[Scores, NDArray[np.bool_]]:
        """Return the scores, and where the label marks an anomaly."""
        require_two(score, label)
        self.require_numbers(score)
        anomalous = self.anomalous_sql(label, anomaly_label)
        arrays = self.arrays(f"SELECT {self.score_sql(score)} AS score, {anomalous} AS anomalous FROM source")
        return self._whole(arrays["score"], score), np.asarray(arrays["anomalous"], dtype=bool)

    def check_scores(self, score: str) -> None:
        """Refuse a score column with text, NULL or NaN, without reading it into memory."""
        self.require_numbers(score)
        missing = f"{self.score_sql(score)} IS NULL OR isnan({self.score_sql(score)})"
        count, rows = self.rows(f"SELECT count(*) FILTER ({missing}), count(*) FROM source")[0]
        if not rows:
            raise no_rows(self.names)
        if count:
            numbered = f"SELECT row_number() OVER () AS row, {missing} AS missing FROM source"
            raise missing_scores(
                score, count, rows, self.rows(f"SELECT min(row) FROM ({numbered}) WHERE missing")[0][0]
            )

    def score_type(self, score: str) -> ScoreType:
        """Return the type that scores have in these files; texts are read as doubles."""
        return self._score_types.get(score, "float32" if self.types[score] == "FLOAT" else "float64")

    def copy(self, score: str, added: dict[str, str], target: str, options: str) -> None:
        """Write all columns and the added expressions to a file; an OSError says why it cannot be written."""
        refuse_added(self.types, added)
        columns = written_columns(self.types, score, self.score_sql(score), options)
        extra = ", ".join(f"{expression} AS {quote_name(name)}" for name, expression in added.items())
        # DuckDB 2.0 may wait for ever for its own threads if one of them cannot write; older ones have none
        with suppress(duckdb.CatalogException):
            self.set("async_threads = 0")
        try:
            # into the file itself, which has the right permissions, and not into a visible one beside it
            options += ", USE_TMP_FILE false"
            self.rows(f"COPY (SELECT {columns}, {extra} FROM source) TO {quote_text(target)} ({options})")
        except InputError as error:
            if isinstance(error.__cause__, duckdb.IOException) and "write" in str(error.__cause__).lower():
                raise OSError(first_line(error.__cause__)) from error
            raise

    def score_sql(self, score: str) -> str:
        """Return the score as an SQL expression."""
        if self.types[score].endswith("HUGEINT"):  # which DuckDB rounds wrongly, but not its text
            return f"CAST(CAST({quote_name(score)} AS VARCHAR) AS DOUBLE)"
        return f"CAST({self._text(score)} AS DOUBLE)"

    def _text(self, column: str) -> str:
        return quote_name(column) + (" ->> '$'" if self.types[column] == "JSON" else "")

    def require_numbers(self, score: str) -> None:
        """Refuse a score column that does not exist or holds anything but numbers."""
        require_column(score, self.columns)
        kind = self.types[score]
        if kind in ("VARCHAR", "JSON"):
            self._refuse_text(score)
        elif not re.fullmatch(_NUMBERS, kind):
            raise InputError(
                f"column {score!r} must hold numbers, but its type is {kind}; pick the score column"
            )

    def _refuse_text(self, score: str) -> None:
        numbered = f"SELECT row_number() OVER () AS row, {self._text(score)} AS text FROM source"
        bad = self.rows(
            f"SELECT row, text FROM ({numbered}) WHERE text IS NOT NULL AND TRY_CAST(text AS DOUBLE) IS NULL"
            " ORDER BY row LIMIT 1"
        )
        for row, text in bad:
            raise not_a_number(score, text, row)
        if not self.rows("SELECT 1 FROM source LIMIT 1"):
            raise no_rows(self.names)

    def _whole(self, values: Any, score: str) -> Scores:
        missing = np.isnan(np.ma.filled(values.astype(np.float64), np.nan))
        if missing.any():
            raise missing_scores(score, int(missing.sum()), missing.size, int(missing.argmax()) + 1)
        if missing.size == 0:
            raise no_rows(self.names)
        return np.asarray(values, dtype=np.float64)

    def anomalous_sql(self, label: str, anomaly_label: str | None) -> str:
        """Return the expression that is true for anomalies, after looking at all labels."""
        require_column(label, self.columns)
        text = label_text(label)
        counted = self.rows(f"SELECT {text}, count(*) FROM source GROUP BY 1 ORDER BY 1 LIMIT {LOOKED_AT}")
        marks = anomaly_marks([(value, count) for value, count in counted], label, anomaly_label)
        return one_of(text, marks)

    def set(self, *options: str) -> None:
        """Set options of the engine, such as `threads = 4`."""
        for option in options:
            self._connection.execute(f"SET {option}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        return self._fetch(query, duckdb.DuckDBPyConnection.fetchall)

    def batches(self, query: str) -> Generator[tuple[Scores, NDArray[np.uint8]]]:
        """Yield what a query for two columns gives, as `pac_wrap.batches` does."""
        try:
            with _watched(self._connection, self._progress):
                yield from batches(self._connection.sql(query))
        except (duckdb.Error, RuntimeError) as error:
            raise refusal(error, self.names) from error

    def arrays(self, query: str) -> dict[str, Any]:
        """Return the columns that a query gives, as arrays."""
        return self._fetch(query, duckdb.DuckDBPyConnection.fetchnumpy)

    def _fetch(self, query: str, fetch: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        try:
            with _watched(self._connection, self._progress):
                return fetch(self._connection.execute(query))
        except (duckdb.Error, RuntimeError) as error:
            raise refusal(error, self.names) from error


@contextmanager
def open_table(
    paths: Sequence[str],
    scores: Sequence[str],
    label: str | None = None,
    *,
    whole: bool = False,
    verbatim: bool = False,
    progress: Progress = lambda share: None,
    start: bytes = b"",
) -> Iterator[Table]:
    """Open files, patterns or "-" (standard input, of which `start` was read already) as one table.

    The types of a CSV's columns are guessed from its first rows, except that of the score and the label;
    `whole` looks at all rows, for when every column is to be kept; `verbatim` keeps a CSV's cells as text.
    """
    scores = [scores] if isinstance(scores, str) else scores
    with scratch_folder() as scratch, duckdb.connect() as connection:
        connection.execute(f"SET temp_directory = {quote_text(str(scratch))}")
        # progress is asked for, never printed by the engine itself
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")
        connection.execute(f"SET {NO_STATISTICS}")
        files = find_all(paths, scratch, start)
        reader = reader_of(files)
        types: dict[str, str] = {}
        score_types: dict[str, ScoreType] = {}
        try:
            if reader == "numpy":
                columns = numpy_columns(files)
                score_types = {name: score_type(column.dtype) for name, column in columns.items()}
                connection.register("source", columns)
                types = types_of(connection, "source")
            else:
                options = [NO_FOLDERS]
                options += ["union_by_name = true"] if len(files) > 1 else []
                if reader == "read_json":
                    options += ["sample_size = -1"]
                refuse_twin_columns(connection, reader, files)
                if reader == "read_csv" and verbatim:
                    options += ["all_varchar = true"]
                elif reader == "read_csv":
                    options += ["sample_size = -1"] if whole else []
                    # each query that names a CSV guesses its format anew, so there are few of them
                    guessed = types_of(connection, rows_of(reader, files, options))
                    fixed = csv_types(guessed, scores, label)
                    options += types_option(fixed)
                    types = guessed | fixed
                make_view(connection, rows_of(reader, files, options))
                types = types or types_of(connection, "source")
                if len(files) > 1:
                    wanted = [*scores, *([] if label is None else [label])]
                    present = [name for name in wanted if name in types]
                    kinds = common_types(connection, reader, files, present)
                    mixed = [name for name in scores if types.get(name) == "FLOAT" and len(kinds[name]) > 1]
                    if mixed:
                        widen_view(connection, files, mixed)
                        types |= dict.fromkeys(mixed, "DOUBLE")
            table = Table(connection, list(paths), files, reader, types, score_types, progress)
        except (duckdb.Error, RuntimeError) as error:
            raise refusal(error, list(paths)) from error
        yield table


def label_text(label: str) -> str:
    """Return the label, as the text it is compared as, as an SQL expression."""
    return f"lower(CAST({quote_name(label)} AS VARCHAR))"


def one_of(text: str, values: Sequence[str]) -> str:
    """Return the SQL expression that is true where a text is one of some values."""
    return f"{text} IN ({', '.join(map(quote_text, values))})"


def output_options(name: str) -> str:
    """Return what DuckDB's COPY needs for a file name: Parquet, CSV or JSON lines, perhaps packed."""
    packed = name.lower().endswith(".gz")
    suffix = Path(name.lower().removesuffix(".gz")).suffix or name.lower()
    if suffix not in _WRITERS or (packed and suffix == ".parquet"):
        raise InputError(f"the output {name} has no known format; the endings are {', '.join(_WRITERS)}")
    return _WRITERS[suffix] + (", COMPRESSION gzip" if packed else "")


@contextmanager
def _watched(connection: duckdb.DuckDBPyConnection, progress: Progress) -> Iterator[None]:
    """Report the share done, a few times a second, while a query runs."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            progress(max(0.0, connection.query_progress()))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
