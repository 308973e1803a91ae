"""Labelled scores of files in chunks, as often as wanted: Parquet as it lies, other files staged once."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from pac_wrap.chunks import Task
from pac_wrap.columns import no_rows, require_column, require_two
from pac_wrap.cores import usable_cores
from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores
from pac_wrap.kernels import kernels
from pac_wrap.labels import FALSE, TRUE, spellings
from pac_wrap.order import RankSearch
from pac_wrap.sources import literal_path
from pac_wrap.sql import between, quote_name, quote_text
from pac_wrap.tables import WHOLE, Table, label_text, one_of
from pac_wrap.views import NO_FOLDERS

_CHUNK: Final = 1 << 20
_ROW: Final = "file_row_number"


class _Piece(NamedTuple):
    """Rows that can be read from anywhere: what they are selected from, by which number, how many."""

    relation: str
    row: str
    size: int


class Staged:
    """The labelled scores of a table; a `Run` of `calibrate_passes`.

    A Parquet file can be entered anywhere, so it is read anew on each pass. Other files are read once, into a
    table of DuckDB's own, which spills to disk.
    """

    def __init__(self, table: Table, score: str, label: str, anomaly_label: str | None) -> None:
        require_two(score, label)
        table.require_numbers(score)
        require_column(label, table.columns)
        self._table, self._score, self._label, self._anomaly_label = table, score, label, anomaly_label
        self._number, self._kind = table.score_sql(score), self._kind_sql()
        table.rows(f"SET memory_limit = '{_memory(len(table.columns))}'")
        table.rows(f"SET threads = {_threads()}")
        if table.reader == "read_parquet" and _ROW not in {name.lower() for name in table.columns}:
            self._pieces = [self._parquet(str(file.absolute())) for file in table.files]
        else:
            columns = f"{self._number} AS score, {self._kind} AS anomalous"
            with self._any_order():
                size = table.rows(f"CREATE TABLE staged AS SELECT {columns} FROM source")[0][0]
            self._pieces = [_Piece("staged", "rowid", size)]
            self._number, self._kind = "score", "anomalous"
        if not any(piece.size for piece in self._pieces):
            raise no_rows(table.names)

    def __call__(self, task: Task) -> Any:
        """Return the sum of what the task returns for all chunks."""
        if isinstance(task, RankSearch):
            # few scores lie between, unless many are equal, so the chunks may be larger
            step, wanted = 4 * _CHUNK, between(self._number, task.bounds)
        else:
            step, wanted = _CHUNK, "true"
        total = None
        with self._any_order():
            for classes in self._classes(step, wanted):
                part = task(*classes)
                total = part if total is None else total + part
        return total

    def check_labels(self) -> None:
        """Refuse labels that a pass over the data has shown to be wrong."""
        self._table.anomalous_sql(self._label, self._anomaly_label)

    def _classes(self, step: int, wanted: str) -> Iterator[tuple[Scores, Scores]]:
        for relation, row, size in self._pieces:
            for start in range(0, size, step):
                found = self._table.arrays(
                    f"SELECT {self._number} AS score, {self._kind} AS anomalous FROM {relation}"
                    f" WHERE {row} >= {start} AND {row} < {start + step} AND {wanted}"
                )
                scores, anomalous = found["score"], found["anomalous"]
                if np.ma.is_masked(scores) or np.ma.is_masked(anomalous) or np.isnan(scores).any():
                    self._refuse()
                scores, anomalous = np.asarray(scores), np.asarray(anomalous, dtype=bool)
                yield kernels().divide(scores, anomalous)

    def _refuse(self) -> None:
        """Say what is wrong with a score or a label that a pass has met."""
        self._keep_order(True)  # the first row that is wrong will be named
        self._table.check_scores(self._score)
        self.check_labels()
        raise InputError(
            f"{', '.join(self._table.names)} changed while it was read; leave it alone meanwhile"
        )

    @contextmanager
    def _any_order(self) -> Iterator[None]:
        """Read in any order, which is faster, and on which no certificate depends."""
        self._keep_order(False)
        try:
            yield
        finally:
            self._keep_order(True)

    def _keep_order(self, keep: bool) -> None:
        self._table.rows(f"SET preserve_insertion_order = {str(keep).lower()}")

    def _kind_sql(self) -> str:
        """Return the expression that is true for anomalies, false for normal points, else NULL."""
        if self._anomaly_label is None and re.fullmatch(WHOLE, self._table.types[self._label]):
            # the same as below, without turning numbers into texts
            return f"CASE {quote_name(self._label)} WHEN 1 THEN true WHEN 0 THEN false END"
        text = label_text(self._label)
        marks, others = TRUE, FALSE
        if self._anomaly_label is not None:
            marks = spellings(self._anomaly_label)
            # what normal points are called is learnt from the first of them
            found = self._table.rows(f"SELECT {text} FROM source WHERE NOT {one_of(text, marks)} LIMIT 1")
            others = tuple(str(value) for (value,) in found) or marks
        # the plain spelling first: most labels are that, and need no more comparisons
        plain = f"CASE {quote_name(self._label)}::VARCHAR WHEN {quote_text(marks[0])} THEN true"
        return (
            f"{plain} WHEN {quote_text(others[0])} THEN false ELSE"
            f" CASE WHEN {one_of(text, marks)} THEN true WHEN {one_of(text, others)} THEN false END END"
        )

    def _parquet(self, file: str) -> _Piece:
        path = quote_text(literal_path(file))
        ((size,),) = self._table.rows(f"SELECT num_rows FROM parquet_file_metadata({path})")
        return _Piece(f"read_parquet({path}, {NO_FOLDERS}, {_ROW} = true)", _ROW, size)


def _memory(columns: int) -> str:
    """Return what the engine may hold in memory: 500 MB for two cores; it spills the rest to disk."""
    # each thread that reads a CSV needs buffers of its own, and a vector for each of many columns
    return f"{300 + _threads() * (100 + columns // 10)}MB"


def _threads() -> int:
    # more read no faster from most disks, and would take the memory beyond a gigabyte
    return min(usable_cores(), 4)
