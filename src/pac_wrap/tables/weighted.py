"""Labelled scores of files that are drawn by a column of weights, in the order of their rows."""

from collections.abc import Generator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import ScoreType
from pac_wrap.base.foreign import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.room.weights import Draws
from pac_wrap.method.weighted import WeightedRequest
from pac_wrap.ranks.kernels import kernels
from pac_wrap.ranks.passes import PassTask
from pac_wrap.ranks.precision import rounded
from pac_wrap.tables.calibrate import BATCH, LabelledScores, or_nan
from pac_wrap.tables.files.arrow_stream import TRIPLE, gathered
from pac_wrap.tables.sql.expressions import text_sql
from pac_wrap.tables.table import Table


def labelled_of(
    table: Table,
    request: Request | WeightedRequest,
    columns: tuple[str, str],
    weight: str | None,
    score_type: ScoreType | None = None,
) -> LabelledScores:
    """Return the labelled scores of two columns, drawn by a column of weights if the request asks for it."""
    if weight is None or isinstance(request, Request):
        return LabelledScores(table, *columns, request.label_text, score_type)
    return WeightedScores(table, (*columns, weight), request.label_text, request.draws, score_type)


class WeightedScores(LabelledScores):
    """The labelled scores of a table that survive the draw by their weights; the table must be in order."""

    def __init__(
        self,
        table: Table,
        columns: tuple[str, str, str],
        anomaly_label: str | None,
        draws: Draws,
        score_type: ScoreType | None = None,
    ) -> None:
        score, label, self._weight = columns
        if self._weight in (score, label):
            raise InputError(
                f"column {quoted(self._weight)} cannot be the weight as well; name another column"
            )
        table.require_numbers(self._weight)
        super().__init__(table, score, label, anomaly_label, score_type, value=table.score_sql(self._weight))
        self._draws = draws

    def _batches(self, task: PassTask) -> Generator[tuple[NDArray[Any], ...]]:
        """Yield the scores and marks of all points that survive, and of those that are refused."""
        self._draws.restart()
        # every row has its number, so none may be left out before it is drawn
        query = f"SELECT {or_nan(self._number)}, {self._mark}, {or_nan(self._kind)} FROM {self._relation}"
        read, wrong = 0, np.empty(0, dtype=np.int64)
        with closing(self._table.batches(query, TRIPLE)) as batches:
            for scores, marks, weights in gathered(batches, BATCH):
                wrong = np.flatnonzero(~((weights >= 0.0) & (weights <= self._draws.bound)))
                if wrong.size:
                    break
                read += scores.size
                seen = rounded(scores, self.score_type) if self._rounds else scores
                for side, points in enumerate(kernels().divide(seen, (marks == 1))):
                    self._draws.see(side, points)
                kept = self._draws.kept(marks == 1, weights) | np.isnan(scores) | (marks > 1)
                yield scores[kept], marks[kept]
        if wrong.size:
            raise self._refusal(read + int(wrong[0]))
        self._table.expect(read)

    def _refusal(self, row: int) -> InputError:
        """Return the refusal of a weight that is none, or beyond the bound, in a row counted from 0."""
        number, text = (
            self._table.score_sql(self._weight),
            text_sql(self._weight, self._table.types[self._weight]),
        )
        found = self._table.rows(f"SELECT {number}, CAST({text} AS VARCHAR) FROM source LIMIT 1 OFFSET {row}")
        weight, written = found[0] if found else (None, None)
        remedy = "fix that row"
        if weight is not None and weight > self._draws.bound:
            remedy = "clip it there, and give room for the rest with --shift tv:SHARE"
        return InputError(
            f"column {quoted(self._weight)} must hold a weight from 0 to {self._draws.bound:g} in every row,"
            f" got {quoted(written) if written else 'none'} in row {row + 1:,}; {remedy}"
        )
