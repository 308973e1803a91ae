"""Labelled scores of files in batches, as often as wanted: Parquet as it lies, other files staged once."""

import re
from contextlib import closing
from typing import Any, Final

import numpy as np

from pac_wrap.batches import gathered
from pac_wrap.chunks import Task
from pac_wrap.columns import no_rows, require_column, require_two
from pac_wrap.errors import InputError
from pac_wrap.kernels import kernels
from pac_wrap.labels import FALSE, TRUE, spellings
from pac_wrap.order import Bounds, RankSearch
from pac_wrap.precision import ScoreType, is_narrower, rounded, rounding_edge
from pac_wrap.sql import between, quote_name, quote_text
from pac_wrap.tables import WHOLE, Table, label_text, one_of

_BATCH: Final = 1 << 20


class Staged:
    """The labelled scores of a table; a `Run` of `calibrate_passes`.

    Parquet files are read anew on each pass. Other files are read once, into a table of DuckDB's own, which
    spills to disk. Scores of a wider type than `score_type` are rounded to it.
    """

    def __init__(
        self,
        table: Table,
        score: str,
        label: str,
        anomaly_label: str | None,
        score_type: ScoreType | None = None,
    ) -> None:
        require_two(score, label)
        table.require_numbers(score)
        require_column(label, table.columns)
        self._table, self._score, self._label, self._anomaly_label = table, score, label, anomaly_label
        self.score_type: ScoreType = score_type or table.score_type(score)
        self._rounds = is_narrower(self.score_type, table.score_type(score))
        self._number, self._mark, self._relation = table.score_sql(score), self._mark_sql(), "source"
        if table.reader != "read_parquet":
            columns = f"{self._number} AS score, {self._mark} AS mark"
            rows = table.rows(f"CREATE TABLE staged AS SELECT {columns} FROM source")
            table.expect(rows[0][0])
            self._number, self._mark, self._relation = "score", "mark", "staged"

    def __call__(self, task: Task) -> Any:
        """Return the sum of what the task returns for all batches."""
        wanted = between(self._number, self._bounds(task)) if isinstance(task, RankSearch) else "true"
        # NaN for a missing score, as 2 for a label that is neither: a NULL would need a second look
        columns = f"coalesce({self._number}, CAST('NaN' AS DOUBLE)), {self._mark}"
        query = f"SELECT {columns} FROM {self._relation} WHERE {wanted}"
        total, sound = None, True
        with closing(self._table.batches(query)) as batches:
            for scores, marks in gathered(batches, _BATCH):
                sound = not (np.isnan(scores).any() or (marks > 1).any())
                if not sound:
                    break
                if self._rounds:  # here, since a cast in SQL refuses what overflows
                    scores = rounded(scores, self.score_type)
                part = task(*kernels().divide(scores, marks.view(bool)))
                total = part if total is None else total + part
        if not sound:
            self._refuse()
        if total is None and not isinstance(task, RankSearch):
            raise no_rows(self._table.names)
        return task(np.empty(0), np.empty(0)) if total is None else total

    def _bounds(self, search: RankSearch) -> Bounds:
        """Return the bounds of what a search looks at, before scores are rounded."""
        if not self._rounds:
            return search.bounds
        kind = self.score_type
        # rounding is the same on both sides of zero
        return tuple((rounding_edge(low, kind), -rounding_edge(-high, kind)) for low, high in search.bounds)

    def check_labels(self) -> None:
        """Refuse labels that a pass over the data has shown to be wrong."""
        self._table.anomalous_sql(self._label, self._anomaly_label)

    def _refuse(self) -> None:
        """Say what is wrong with a score or a label that a pass has met."""
        self._table.check_scores(self._score)
        self.check_labels()
        raise InputError(
            f"{', '.join(self._table.names)} changed while it was read; leave it alone meanwhile"
        )

    def _mark_sql(self) -> str:
        """Return the expression that is 1 for anomalies, 0 for normal points, else 2."""
        if self._anomaly_label is None and re.fullmatch(WHOLE, self._table.types[self._label]):
            # the same as below, without turning numbers into texts
            found = f"CASE {quote_name(self._label)} WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE 2 END"
            return f"CAST({found} AS UTINYINT)"
        text = label_text(self._label)
        marks, others = TRUE, FALSE
        if self._anomaly_label is not None:
            marks = spellings(self._anomaly_label)
            # what normal points are called is learnt from the first of them
            first = self._table.rows(f"SELECT {text} FROM source WHERE NOT {one_of(text, marks)} LIMIT 1")
            others = tuple(str(value) for (value,) in first) or marks
        # the plain spelling first: most labels are that, and need no more comparisons
        return (
            f"CAST(CASE {quote_name(self._label)}::VARCHAR WHEN {quote_text(marks[0])} THEN 1"
            f" WHEN {quote_text(others[0])} THEN 0 ELSE"
            f" CASE WHEN {one_of(text, marks)} THEN 1 WHEN {one_of(text, others)} THEN 0 ELSE 2 END END"
            " AS UTINYINT)"
        )
