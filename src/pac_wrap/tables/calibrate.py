"""Labelled scores of files in batches, as often as wanted: Parquet as it lies, other files copied once."""

import re
from collections.abc import Generator, Sequence
from contextlib import closing
from copy import copy
from math import inf
from os import PathLike, fspath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.floats import ScoreType, is_narrower, rounded, rounding_edge
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.chunked import Asked, T, calibrate_passes
from pac_wrap.method.curves.certify import CurveRequest
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.request import Request
from pac_wrap.method.robust.weights import Draws
from pac_wrap.method.weighted import WeightedRequest
from pac_wrap.ranks.auc import warn_if_selected
from pac_wrap.ranks.kernels import kernels
from pac_wrap.ranks.passes import Bounds, PassTask, RankSearch, Survey, survey
from pac_wrap.tables.columns import FALSE, TRUE, changed, no_rows, require_column, require_two, spellings
from pac_wrap.tables.files.arrow_stream import TRIPLE, gathered
from pac_wrap.tables.files.text_format import check_delimiter
from pac_wrap.tables.sql.expressions import between, label_sql, one_of, quote_name, quote_text, text_sql
from pac_wrap.tables.table import WHOLE, Table, open_table

BATCH: Final = 1 << 20
# rows of a table that are looked through for points chosen by score: whoever reviews alarms has fewer
_LOOKED_THROUGH: Final = 1_000_000


class LabelledScores:
    """The labelled scores of a table; a `RunPass` of `calibrate_passes`.

    Parquet files are read anew on each pass. Other files are read once, into a table of DuckDB's own, which
    spills to disk. Scores of a wider type than `score_type` are rounded to it. Where missing scores are
    abstained on, tasks see them as NaN, and `missing` counts those of the last pass.
    """

    def __init__(
        self,
        table: Table,
        score: str,
        label: str,
        anomaly_label: str | None,
        score_type: ScoreType | None = None,
        kind: str | None = None,
        on_missing: OnMissing = "stop",
        value: str | None = None,
    ) -> None:
        require_two(score, label)
        table.require_numbers(score)
        require_column(label, table.columns)
        self._table, self._score, self._label, self._anomaly_label = table, score, label, anomaly_label
        self._on_missing, self.missing = on_missing, 0
        self.score_type: ScoreType = score_type or table.score_type(score)
        self._rounds = is_narrower(self.score_type, table.score_type(score))
        self._number, self._mark, self._relation = table.score_sql(score), self._mark_sql(), "source"
        self._kind, self._rows = "NULL", "true"
        if kind is not None:
            require_column(kind, table.columns)
            self._kind = f"nullif(CAST({quote_name(kind)} AS VARCHAR), '')"
        if value is not None:  # any expression that is to be kept with each row
            self._kind = value
        if table.reader != "read_parquet":
            columns = f"{self._number} AS score, {self._mark} AS mark, {self._kind} AS kind"
            rows = table.rows(f"CREATE OR REPLACE TABLE labelled AS SELECT {columns} FROM source")
            table.expect(rows[0][0])
            self._number, self._mark, self._kind, self._relation = "score", "mark", "kind", "labelled"
        # the least and the greatest score so far, of all kinds
        self._ends = [inf, -inf]

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """The expressions for score, mark and kind of a row, and what they are taken from."""
        return self._number, self._mark, self._kind, self._relation

    def __call__(self, task: PassTask) -> Any:
        """Return the sum of what the task returns for all batches."""
        total, sound, self.missing = None, True, 0
        with closing(self._batches(task)) as batches:
            for scores, marks in batches:
                missing = int(np.count_nonzero(np.isnan(scores)))
                self.missing += missing
                sound = not ((missing and self._on_missing == "stop") or (marks > 1).any())
                if not sound:
                    break
                if self._rounds:  # here, since a cast in SQL refuses what overflows
                    scores = rounded(scores, self.score_type)
                if scores.size and not isinstance(task, RankSearch):  # which sees some of them
                    self.see(scores)
                part = task(*kernels().divide(scores, marks.view(bool)))
                total = part if total is None else total + part
        if not sound:
            self.refuse()
        if self.missing:  # or are they texts that are no numbers?
            self._table.check_scores(self._score, "abstain")
        if total is None and not isinstance(task, RankSearch):
            raise no_rows(self._table.names)
        return task(np.empty(0), np.empty(0)) if total is None else total

    def _batches(self, task: PassTask) -> Generator[tuple[NDArray[Any], ...]]:
        """Yield the scores and marks that a task needs, in batches."""
        wanted = between(self._number, self._bounds(task)) if isinstance(task, RankSearch) else "true"
        # NaN marks a missing score, and 2 a wrong label, so that there are no NULLs to look for
        columns = f"{or_nan(self._number)}, {self._mark}"
        query = f"SELECT {columns} FROM {self._relation} WHERE ({wanted}) AND ({self._rows})"
        with closing(self._table.batches(query)) as batches:
            yield from gathered(batches, BATCH)

    def see(self, scores: Scores) -> None:
        """Note the least and the greatest of some scores."""
        self._ends[:] = min(float(scores.min()), self._ends[0]), max(float(scores.max()), self._ends[1])

    @property
    def origin(self) -> dict[str, Any]:
        """Where the scores came from, as a provenance has it."""
        low, high = self._ends if self._ends[0] <= self._ends[1] else (None, None)
        names = tuple(self._table.names)
        return {"score": self._score, "tables": names, "engine": "duckdb", "lowest": low, "highest": high}

    def signed(self, certificate: T) -> T:
        """Return a certificate of these scores with where they came from."""
        return certificate.with_provenance(**self.origin)

    def kinds(self) -> list[tuple[int, str | None, int]]:
        """Return the mark of a class, a kind and its number of rows, for every kind; NULL is no kind."""
        counted = (
            f"SELECT {self._mark}, {self._kind}, count(*) FROM {self._relation} GROUP BY 1, 2 ORDER BY 1, 2"
        )
        return [(int(mark), kind, int(count)) for mark, kind, count in self._table.rows(counted)]

    def of_kinds(self, normal: str | None, anomalous: str | None) -> "LabelledScores":
        """Return the points of a kind of each class; None is the whole class."""
        chosen = [
            f"{self._mark} = {mark} AND {'true' if kind is None else f'{self._kind} = {quote_text(kind)}'}"
            for mark, kind in ((0, normal), (1, anomalous))
        ]
        one = copy(self)
        one._rows = f"({chosen[0]}) OR ({chosen[1]}) OR {self._mark} > 1"
        return one

    def by_class(self) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """Return all normal and all anomalous scores, of their own type and in no certain order."""
        batches = self(lambda normal, anomalous: [(normal, anomalous)])
        normal, anomalous = (np.concatenate(scores) for scores in zip(*batches, strict=True))
        if self._anomaly_label is not None and not anomalous.size:
            self.check_labels()
        return normal.astype(self.score_type, copy=False), anomalous.astype(self.score_type, copy=False)

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

    def refuse(self) -> None:
        """Say what is wrong with a score or a label that a pass has met."""
        self._table.check_scores(self._score, self._on_missing)
        self.check_labels()
        raise changed(self._table.names)

    def _mark_sql(self) -> str:
        """Return the expression that is 1 for anomalies, 0 for normal points, else 2."""
        if self._anomaly_label is None and re.fullmatch(WHOLE, self._table.types[self._label]):
            # the same as below, but numbers stay numbers
            found = f"CASE {quote_name(self._label)} WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE 2 END"
            return f"CAST({found} AS UTINYINT)"
        text = label_sql(self._label)
        marks, others = TRUE, FALSE
        if self._anomaly_label is not None:
            marks = spellings(self._anomaly_label)
            # the first other label is taken for that of normal points
            first = self._table.rows(f"SELECT {text} FROM source WHERE NOT {one_of(text, marks)} LIMIT 1")
            others = tuple(str(value) for (value,) in first) or marks
        # the usual spelling first: most labels have it, and need no more comparisons
        return (
            f"CAST(CASE {quote_name(self._label)}::VARCHAR WHEN {quote_text(marks[0])} THEN 1"
            f" WHEN {quote_text(others[0])} THEN 0 ELSE"
            f" CASE WHEN {one_of(text, marks)} THEN 1 WHEN {one_of(text, others)} THEN 0 ELSE 2 END END"
            " AS UTINYINT)"
        )


def or_nan(number: str) -> str:
    """Return the expression of a number that is NaN where it is NULL."""
    return f"coalesce({number}, CAST('NaN' AS DOUBLE))"


def calibrate(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    overlap: str | Overlap | None = None,
) -> Certificate:
    """Return the certificate of labelled scores in files or patterns, in bounded memory.

    Labels are compared as text: 0/1 or true/false, or `anomaly_label` and one other value. The delimiter of a
    CSV is found from its header, unless it is given.
    """
    request = Request.of(guarantee, overlap, 1 if anomaly_label is None else anomaly_label)
    return _of_files(files, request, score, label, delimiter)


def certify_curve(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return the curve of labelled scores in files or patterns, in bounded memory; see `calibrate`."""
    mark = 1 if anomaly_label is None else anomaly_label
    request = CurveRequest(delta_fpr, delta_fnr, mark, top_fpr, top_fnr)
    return _of_files(files, request, score, label, delimiter)


def _of_files(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    request: Asked[T],
    score: str,
    label: str,
    delimiter: str | None,
) -> T:
    listed = [files] if isinstance(files, (str, PathLike)) else files
    if not listed:
        raise InputError("files are empty; name at least one file or pattern")
    with open_table(
        [fspath(file) for file in listed], [score], label, passes=True, delimiter=check_delimiter(delimiter)
    ) as table:
        return calibrate_table(table, request, score=score, label=label)


def are_calibration(
    table: Table,
    certificate: Certificate,
    measured: tuple[int, int],
    *,
    score: str,
    label: str,
    anomaly_label: str | None,
) -> bool:
    """Return whether two columns of a table are the very scores that a certificate was made from.

    `measured` is how many points of each class they hold; other numbers need no look at the scores.
    """
    known, drawn_by = (certificate.normal, certificate.anomalous), certificate.weighting
    sizes, digests = tuple(one.n for one in known), tuple(one.digest for one in known)
    if drawn_by is not None:
        offered = drawn_by.normal, drawn_by.anomalous
        sizes = tuple(n if all_of is None else all_of for n, all_of in zip(sizes, offered, strict=True))
        digests = drawn_by.digests or digests
    if measured != sizes:
        return False
    found: Survey = LabelledScores(table, score, label, anomaly_label, certificate.score_type)(survey)
    return found.digests == digests


def calibrate_table(
    table: Table,
    request: Asked[T],
    *,
    score: str,
    label: str,
    score_type: ScoreType | None = None,
) -> T:
    """Return what a request gets from two columns of a table; wider scores are rounded to `score_type`."""
    return calibrate_scores(LabelledScores(table, score, label, request.label_text, score_type), request)


def calibrate_scores(labelled: LabelledScores, request: Asked[T]) -> T:
    """Return what a request gets from the labelled scores of a table."""
    certificate = calibrate_passes(labelled, request)
    if request.label_text is not None and not certificate.anomalous.n:
        labelled.check_labels()
    if 0 < certificate.normal.n + certificate.anomalous.n <= _LOOKED_THROUGH:
        warn_if_selected(*labelled.by_class())
    return labelled.signed(certificate)


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
