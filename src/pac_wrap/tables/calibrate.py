"""Labelled scores of files as a source: small tables in memory, larger ones in batches, in several passes."""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial, reduce
from itertools import groupby
from math import inf
from operator import add, itemgetter
from os import PathLike, fspath
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import OnMissing, Scores, label_of, label_text
from pac_wrap.base.floats import Floats, ScoreType, is_narrower, rounded, rounding_edge
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request, certify
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.curves.curve import Curve, CurveRequest
from pac_wrap.method.groups.calibrate import Block, Part, certify_any, request_of_columns, whole_groups
from pac_wrap.method.groups.values import MOST_GROUPS, Group, as_groups, texts_of, too_many
from pac_wrap.method.kinds import populations_of
from pac_wrap.method.promise import Guarantee, Population
from pac_wrap.method.robust.weights import Draws
from pac_wrap.method.source import CLASSES, Ask, Auc, ChunkSource, PassSource, Populations, T, parts_of
from pac_wrap.method.traffic import calibrate as traffic
from pac_wrap.ranks.kernels import kernels
from pac_wrap.ranks.memory import RankedInMemory, rough_auc
from pac_wrap.ranks.passes import PassTask, RankSearch, survey
from pac_wrap.tables import columns as checks
from pac_wrap.tables.files.connection import TRIPLE, gathered
from pac_wrap.tables.sql import between, label_sql, one_of, quote_name, quote_text, state_sql, text_sql
from pac_wrap.tables.table import WHOLE, Table, open_table

BATCH: Final = 1 << 20
# the most rows whose scores stay in memory: 9 MB, enough for reviewed alarms; and the most rows of files that
# would have to be copied: 72 MB
HELD: Final = 1_000_000
HELD_COPY: Final = 1 << 23
# the columns that join a row with the number of its group; no table has columns with these names
OWN: Final = '"pac-wrap group"'
PLACE: Final = '"pac-wrap place"'
# stands for the number of the population in a row with an invalid label
_WRONG: Final = 255


class TableSource(PassSource):
    """The labelled scores of a table by class, or by kind if a column names the kinds.

    Up to `HELD` rows are read once into memory. Beyond that, every pass reads Parquet files again; others are
    read once, and their scores go into a file for each class, or with kinds into a table of DuckDB. With a
    column of weights, tasks see only the points that survive the draw, and the table must be in order.
    """

    score_type: ScoreType = "float64"

    def __init__(
        self,
        table: Table,
        score: str,
        label: str,
        anomaly_label: str | None = None,
        *,
        score_type: ScoreType | None = None,
        kind: str | None = None,
        weight: str | None = None,
        draws: Draws | None = None,
        on_missing: OnMissing = "stop",
        value: str = "NULL",
    ) -> None:
        table.require_numbers(score)
        self.table, self.score, self._label, self._anomaly_label = table, score, label, anomaly_label
        # points without a score in the last pass, where they are allowed; tasks see them as NaN
        self._on_missing, self.missing, self.draws = on_missing, 0, draws
        # the condition of rows that count, and the number of the others
        self._counts, self.unscored = "true", 0
        self.score_type = score_type or table.score_type(score)
        self.rounds = is_narrower(self.score_type, table.score_type(score))
        # the least and the greatest score so far
        self._ends = [inf, -inf]
        self._arrays: list[Floats] | None = None
        # files with the scores of each class, after the first pass
        self._files: list[Path] = []
        self._kind, self._weight = kind, weight if draws is not None else None
        if kind is not None:
            checks.refuse_as_third(kind, (score, label), "kind")
            checks.require_columns([kind], table.columns)
            value = f"nullif(CAST({quote_name(kind)} AS VARCHAR), '')"
        if self._weight is not None:
            checks.refuse_as_third(self._weight, (score, label), "weight")
            table.require_numbers(self._weight)
            value = table.score_sql(self._weight)
        # the expressions for score, mark and one more value of a row, and their relation
        self.number, self.mark, self.value = table.score_sql(score), self._mark_sql(), value
        self.relation = "source"
        self._copied = table.reader == "read_parquet"
        super().__init__(self, self._kinds() if kind is not None else None)

    def copied(self) -> None:
        """Copy files that are not Parquet into a table of DuckDB, so that they are read only once."""
        if self._copied:
            return
        columns = f"{self.number} AS score, {self.mark} AS mark, {self.value} AS value"
        rows = self.table.rows(f"CREATE OR REPLACE TABLE labelled AS SELECT {columns} FROM source")
        self.table.expect(rows[0][0])
        self.number, self.mark, self.value, self.relation = "score", "mark", "value", "labelled"
        self._copied = True

    def _kinds(self) -> dict[Population, int | None]:
        """Return the number of rows of each kind of each class; a class may have no kinds."""
        self.copied()
        counts = f"SELECT {self.mark}, {self.value}, count(*) FROM {self.relation} GROUP BY ALL ORDER BY ALL"
        rows = self.table.rows(counts)
        if any(mark > 1 for mark, _, _ in rows):
            self.table.anomalous_sql(self._label, self._anomaly_label)
        if not any(mark == 1 for mark, _, _ in rows):
            self.check_named()
        return populations_of(str(self._kind), rows)

    @property
    def _code(self) -> str:
        """The expression for the number of a row's population."""
        if self._kind is None:
            return self.mark
        codes, first = [], 0
        for label, group in groupby(self._populations, key=lambda one: one.label):
            kinds = [one.kind for one in group]
            code = str(first)
            if kinds[0] is not None:
                listed = ", ".join(quote_text(str(kind)) for kind in kinds)
                code = f"coalesce({first} + enum_code(TRY_CAST({self.value} AS ENUM({listed}))), {_WRONG})"
            codes.append(f"WHEN {int(label == 'anomalous')} THEN {code}")
            first += len(kinds)
        return f"CAST(CASE {self.mark} {' '.join(codes)} ELSE {_WRONG} END AS UTINYINT)"

    def answer(self, of: Sequence[Populations], ask: Ask[T]) -> T:
        rows = self.table.counted
        most = HELD if self._copied else HELD_COPY
        if self._arrays is None and self._known is None and rows is not None and rows <= most:
            self._arrays = self._read()
        if self._arrays is None:
            if not self._copied and self._weight is None and not self._files:
                folder = Path(mkdtemp(dir=self.table.scratch))
                self._files = [folder / one.label for one in CLASSES]
            answer = super().answer(of, ask)
            sizes = self._known.sizes if self._known is not None else ()
        else:
            taken = map(self._taken, parts_of(self._populations, of))
            ranked = [RankedInMemory(scores, self.score, 1) for scores in taken]
            answer, sizes = ask(ranked, score_type=self.score_type), tuple(one.size for one in self._arrays)
        if not sizes[-1]:
            self.check_named()
        return answer

    def _taken(self, parts: Sequence[int]) -> Floats:
        assert self._arrays is not None
        chosen = [self._arrays[one] for one in parts]
        return chosen[0] if len(chosen) == 1 else np.concatenate(chosen)

    def auc(self, normal: Population, anomalous: Population) -> Auc | None:
        if self._arrays is None:
            return super().auc(normal, anomalous)
        low, high = map(self._taken, parts_of(self._populations, (normal, anomalous)))
        return Auc(rough_auc(low, high), low.size, high.size) if low.size and high.size else None

    def held(self) -> tuple[Floats, Floats] | None:
        few = self._arrays is not None and sum(one.size for one in self._arrays) <= HELD
        return self.classes() if few and self._kind is None else None

    def classes(self) -> tuple[Any, Any]:
        """Return all normal and all anomalous scores, or those of their kinds, in no certain order."""
        found: tuple[dict[str | None, Floats], dict[str | None, Floats]] = ({}, {})
        for one, scores in zip(self._populations, self._arrays or self._read(), strict=True):
            found[one.label == "anomalous"][one.kind] = scores.astype(self.score_type, copy=False)
        if self._kind is not None:
            return found
        normal, anomalous = (side[None] for side in found)
        if not anomalous.size:
            self.check_named()
        return normal, anomalous

    def _read(self) -> list[Floats]:
        batches = self(lambda *parts: [parts])
        return [np.concatenate(scores) for scores in zip(*batches, strict=True)]

    def __call__(self, task: PassTask) -> Any:
        if self._files and self._known is not None:
            return reduce(add, (task(*parts) for parts in self._stored()))
        total, sound, self.missing = None, True, 0
        count = len(self._populations)
        with closing(self._batches(task)) as batches:
            for scores, codes in batches:
                missing = int(np.count_nonzero(np.isnan(scores)))
                self.missing += missing
                sound = not ((missing and self._on_missing == "stop") or (codes >= count).any())
                if not sound:
                    break
                if self.rounds:  # here, since a cast in SQL refuses what overflows
                    scores = rounded(scores, self.score_type)
                if scores.size and not isinstance(task, RankSearch):  # which sees some of them
                    self.see(scores)
                if count == 2:
                    parts: Sequence[Floats] = kernels().divide(scores, codes.view(bool))
                else:
                    parts = [scores[codes == code] for code in range(count)]
                for file, part in zip(self._files, parts, strict=False):
                    with file.open("ab") as opened:
                        opened.write(part.data)
                found = task(*parts)
                total = found if total is None else total + found
        if not sound:
            self.refuse()
        if self.missing:  # or are they texts that are no numbers?
            self.table.check_scores(self.score, "abstain")
        if total is None and not isinstance(task, RankSearch):
            raise checks.no_rows(self.table.names)
        return task(*[np.empty(0)] * count) if total is None else total

    def _stored(self) -> Iterator[list[Floats]]:
        """Yield the stored scores in batches, one class after the other."""
        for place, file in enumerate(self._files):
            for start in range(0, file.stat().st_size or 1, 8 * BATCH):
                parts: list[Floats] = [np.empty(0), np.empty(0)]
                parts[place] = np.fromfile(file, np.float64, BATCH, offset=start)
                yield parts

    def _batches(self, task: PassTask) -> Generator[tuple[NDArray[Any], ...]]:
        """Yield the scores that a task needs, and the numbers of their populations, in batches."""
        if self._weight is not None:
            yield from self._survivors()
            return
        wanted = self._counts
        if isinstance(task, RankSearch):
            bounds, edge = task.bounds, partial(rounding_edge, kind=self.score_type)
            if self.rounds:  # scores are compared before rounding, which moves the bounds, alike around zero
                bounds = tuple((edge(low), -edge(-high)) for low, high in bounds)
            wanted = between(self.number, bounds)
        # NaN marks a missing score, and a large number a wrong label, so that there are no NULLs to look for
        query = f"SELECT {or_nan(self.number)}, {self._code} FROM {self.relation} WHERE {wanted}"
        read = 0
        with closing(self.table.batches(query)) as batches:
            for scores, codes in gathered(batches, BATCH):
                read += scores.size
                yield scores, codes
        if not isinstance(task, RankSearch):
            self.table.expect(read + self.unscored)

    def _survivors(self) -> Iterator[tuple[NDArray[Any], ...]]:
        """Yield the scores and marks of all points that survive the draw, and of points with errors."""
        assert self.draws is not None
        self.draws.restart()
        # the draw numbers all rows, so no row may be left out before it
        query = f"SELECT {or_nan(self.number)}, {self.mark}, {or_nan(self.value)} FROM {self.relation}"
        read, wrong = 0, np.empty(0, dtype=np.int64)
        with closing(self.table.batches(query, TRIPLE)) as batches:
            for scores, marks, weights in gathered(batches, BATCH):
                wrong = np.flatnonzero(~((weights >= 0.0) & (weights <= self.draws.bound)))
                if wrong.size:
                    break
                read += scores.size
                seen = rounded(scores, self.score_type) if self.rounds else scores
                for side, points in enumerate(kernels().divide(seen, (marks == 1))):
                    self.draws.see(side, points)
                kept = self.draws.kept(marks == 1, weights) | np.isnan(scores) | (marks > 1)
                yield scores[kept], marks[kept]
        if not wrong.size:
            self.table.expect(read)
            return
        weight, row, bound = str(self._weight), read + int(wrong[0]), self.draws.bound
        text = text_sql(weight, self.table.types[weight])
        written_in = f"SELECT {self.value}, CAST({text} AS VARCHAR) FROM source LIMIT 1 OFFSET {row}"
        ((value, written),) = self.table.rows(written_in) or [(None, None)]
        remedy = "fix that row"
        if value is not None and value > bound:
            remedy = "clip it at the bound, and tolerate the rest with --shift tv:SHARE"
        raise InputError(
            f"column {quoted(weight)} must hold a weight from 0 to {bound:g} in every row,"
            f" got {quoted(written) if written else 'none'} in row {row + 1:,}; {remedy}"
        )

    def see(self, scores: Scores) -> None:
        """Note the least and the greatest of some scores."""
        self._ends[:] = min(float(scores.min()), self._ends[0]), max(float(scores.max()), self._ends[1])

    def origin(self) -> dict[str, Any]:
        low, high = self._ends if self._ends[0] <= self._ends[1] else (None, None)
        names = tuple(self.table.names)
        return {"score": self.score, "tables": names, "engine": "duckdb", "lowest": low, "highest": high}

    def check_named(self) -> None:
        """Refuse a label of anomalies that does not occur."""
        if self._anomaly_label is not None:
            self.table.anomalous_sql(self._label, self._anomaly_label)

    def refuse(self) -> None:
        """Raise the error for a wrong score or label that a pass has met."""
        self.table.check_scores(self.score, self._on_missing)
        self.table.anomalous_sql(self._label, self._anomaly_label)
        raise checks.changed(self.table.names)

    def _mark_sql(self) -> str:
        """Return the expression that is 1 for anomalies, 0 for normal points, and larger for other labels."""
        checks.require_two(self.score, self._label)
        checks.require_columns([self._label], self.table.columns)
        if self._anomaly_label is None and re.fullmatch(WHOLE, self.table.types[self._label]):
            # the same as below, but numbers stay numbers
            found = f"CASE {quote_name(self._label)} WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE {_WRONG} END"
            return f"CAST({found} AS UTINYINT)"
        text = label_sql(self._label)
        marks, others = checks.TRUE, checks.FALSE
        if self._anomaly_label is not None:
            marks = checks.spellings(self._anomaly_label)
            # the first other label counts as normal
            first = self.table.rows(f"SELECT {text} FROM source WHERE NOT {one_of(text, marks)} LIMIT 1")
            others = tuple(str(value) for (value,) in first) or marks
        # the usual spelling first: most labels have it, and need no more comparisons
        rest = f"WHEN {one_of(text, marks)} THEN 1 WHEN {one_of(text, others)} THEN 0 ELSE {_WRONG}"
        return (
            f"CAST(CASE {quote_name(self._label)}::VARCHAR WHEN {quote_text(marks[0])} THEN 1"
            f" WHEN {quote_text(others[0])} THEN 0 ELSE CASE {rest} END END AS UTINYINT)"
        )


class TrafficTable(TableSource):
    """The scores of traffic by the state of each point; the first pass counts the points without a score."""

    def __init__(
        self, table: Table, columns: checks.TrafficColumns, kind: ScoreType | None = None, value: str = "NULL"
    ) -> None:
        columns.check(table.columns)
        self.columns = columns
        super().__init__(table, columns.score, "", score_type=kind, value=value)
        self.copied()
        gone = f"{self.number} IS NULL OR isnan({self.number})"
        counts = f"SELECT {self.mark}, count(*), count(*) FILTER ({gone}) FROM {self.relation} GROUP BY 1"
        found = table.rows(counts)
        if any(state == _WRONG for state, *_ in found):
            self.refuse()
        self.sizes, self.unscored = columns.counted(found)
        self._populations = dict(zip(traffic.STATES, self.sizes, strict=True))
        if self.unscored:  # or are they texts that are no numbers?
            table.check_scores(columns.score, "abstain")
            self._counts = f"NOT ({gone})"

    def for_groups(self) -> "TrafficTable":
        """Return the rows as groups count them: 1 for a point found anomalous, -inf without a score."""
        points, waiting = sum(self.sizes) + self.unscored, self.sizes[2] + self.unscored
        traffic.warn_if_all_reviewed(points, points - waiting)
        self.number = f"coalesce(nullif({self.number}, CAST('NaN' AS DOUBLE)), CAST('-inf' AS DOUBLE))"
        self.mark = f"CAST({self.mark} = 1 AS UTINYINT)"
        return self

    def arrays(self) -> tuple[Floats, NDArray[np.float64], NDArray[np.bool_] | None]:
        """Return all scores, NaN if there is none, their reviews (1, 0 or NaN), and which were audited."""
        query = f"SELECT {or_nan(self.number)}, {self.mark} FROM {self.relation}"
        found = [(scores.copy(), marks.copy()) for scores, marks in self.table.batches(query)]
        scores, marks = (np.concatenate(column) for column in zip(*found, strict=True))
        audits = None if self.columns.audit is None else marks > 2
        return scores.astype(self.score_type), np.array([0.0, 1.0, np.nan])[marks % 3], audits

    def _mark_sql(self) -> str:
        review, audit = (None if name is None else quote_name(name) for name in self.columns[1:])
        return f"CAST(coalesce({state_sql(review, audit)}, {_WRONG}) AS UTINYINT)"

    def refuse(self) -> None:
        texts = ", ".join(f"CAST({quote_name(name)} AS VARCHAR)" for name in self.columns.marks)
        states = f"SELECT DISTINCT {texts} FROM source ORDER BY ALL LIMIT {checks.MOST_STATES}"
        for found in self.table.rows(states):
            for column, text in zip(self.columns.marks, found, strict=True):
                self.columns.part_of(column, text)
        raise checks.changed(self.table.names)


def or_nan(number: str) -> str:
    """Return the expression of a number with NaN for NULL."""
    return f"coalesce({number}, CAST('NaN' AS DOUBLE))"


class TableGroups:
    """The labelled scores of a table by group, in one sorted pass; the largest group bounds the memory."""

    def __init__(
        self,
        table: Table,
        columns: tuple[str, str, str],
        anomaly_label: str | None,
        score_type: ScoreType | None = None,
        traffic: checks.TrafficColumns | None = None,
    ) -> None:
        score, label, _ = columns
        value = group_sql(table, columns)
        if traffic is not None:
            rows: TableSource = TrafficTable(table, traffic, score_type, value).for_groups()
        else:
            rows = TableSource(table, score, label, anomaly_label, score_type=score_type, value=value)
            rows.copied()
        self._table, self.rows, self.score_type, self.origin = table, rows, rows.score_type, rows.origin
        wrong = f"count(*) FILTER ({rows.number} IS NULL OR isnan({rows.number}) OR {rows.mark} > 1)"
        counts = f"{wrong} AS wrong, count(*) AS rows, count(*) FILTER ({rows.mark} = 1) AS anomalous"
        numbered = Numbered(table, rows.value, rows.relation, f", {counts}")
        self.groups = numbered.groups
        bad, every, anomalous = np.array([row[2:] for row in numbered.rows], dtype=np.int64).T
        if bad.any():
            rows.refuse()
        if not anomalous.any():
            rows.check_named()
        self.n = np.stack([every - anomalous, anomalous])

    def blocks(self) -> Iterator[tuple[NDArray[Any], Block]]:
        return whole_groups(self._points(f"ORDER BY {PLACE}"))

    def _points(self, chosen: str) -> Iterator[tuple[NDArray[Any], Scores, NDArray[np.bool_]]]:
        """Yield the number of the group, the score and the mark of some rows, in batches."""
        rows = self.rows
        query = (
            f"SELECT CAST({rows.number} AS DOUBLE), {rows.mark}, CAST({PLACE} AS DOUBLE) FROM {rows.relation}"
            f" JOIN numbered ON {rows.value} IS NOT DISTINCT FROM {OWN} {chosen}"
        )
        with closing(self._table.batches(query, TRIPLE)) as batches:
            for scores, marks, places in gathered(batches, BATCH):
                values = rounded(scores, self.score_type) if rows.rounds else scores.copy()
                rows.see(values)
                yield places.astype(np.int64), values, marks.view(bool).copy()

    def calibrated(self, request: Request) -> Part:
        return Part.joined([Part.of(request, *one, self.score_type) for one in self.blocks()])

    def pooled(self, places: NDArray[np.int64]) -> ChunkSource:
        self._table.register("few", {"few": places})
        points = self._points(f"WHERE {PLACE} IN (SELECT few FROM few)")
        _, scores, marks = map(np.concatenate, zip(*points, strict=True))
        return ChunkSource(lambda: [(scores.astype(self.score_type), marks.astype(np.int8))], 1)

    def classes(self, groups: Sequence[Group]) -> dict[Group, tuple[Scores, Scores]]:
        """Return the normal and the anomalous scores of some groups, in memory."""
        wanted = {group: self.groups.index(group) for group in groups}
        points = self._points(f"WHERE {PLACE} IN ({', '.join(map(str, wanted.values()))})")
        places, scores, marks = map(np.concatenate, zip(*points, strict=True))
        rows = {group: places == place for group, place in wanted.items()}
        return {group: (scores[own & ~marks], scores[own & marks]) for group, own in rows.items()}


class Numbered:
    """The groups of a column of a table, numbered in a table called `numbered` in the database."""

    def __init__(self, table: Table, value: str, source: str, counts: str = "") -> None:
        counted = f"SELECT {value} AS {OWN}{counts} FROM {source} GROUP BY 1"
        table.rows(
            "CREATE TABLE numbered AS"
            f" SELECT {OWN}, row_number() OVER (ORDER BY {OWN} NULLS FIRST) - 1 AS {PLACE},"
            f" * EXCLUDE ({OWN}) FROM ({counted} LIMIT {MOST_GROUPS + 1})"
        )
        self.rows = table.rows(f"SELECT * FROM numbered ORDER BY {PLACE}")
        if not self.rows:
            raise checks.no_rows(table.names)
        if len(self.rows) > MOST_GROUPS:
            raise too_many(MOST_GROUPS)
        self.groups: tuple[Group, ...] = tuple(as_groups(list(map(itemgetter(0), self.rows))))
        if len(set(texts_of(self.groups))) < len(self.groups):
            raise InputError("two groups of the column have the same text; convert the column to one type")


def group_sql(table: Table, columns: tuple[str, ...], types: dict[str, str] | None = None) -> str:
    """Return the expression for the group of a row, NULL if it is missing; the last column holds groups."""
    group = columns[-1]
    checks.require_columns([group], table.columns)
    checks.refuse_as_third(group, columns[:-1])
    name, kind = quote_name(group), (types or table.types)[group]
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END"
    if kind == "INTERVAL":
        raise InputError(
            f"column {quoted(group)} must hold groups as texts, whole numbers or dates, got durations;"
            " convert them"
        )
    zoned, fine = kind.endswith("WITH TIME ZONE") or "TZ" in kind, kind.endswith("_NS")
    if not kind.startswith("TIMESTAMP") or not (zoned or fine):
        return name
    # the text that `as_group` gives a time, from its count of parts of a second since 1970
    unit, second, micro = ("ns", 10**9, 10**3) if fine else ("us", 10**6, 1)
    count = f"epoch_{unit}({name})"
    part = f"((({count} % {second}) + {second}) % {second})"
    whole = f"strftime(make_timestamp(({count} - {part}) // {micro}), '%Y-%m-%d %H:%M:%S')"
    return (
        f"({whole} || CASE WHEN {part} = 0 THEN '' WHEN {part} % {micro} = 0"
        f" THEN '.' || lpad(CAST({part} // {micro} AS VARCHAR), 6, '0')"
        f" ELSE '.' || lpad(CAST({part} AS VARCHAR), {9 if fine else 6}, '0') END || '{'+00:00' * zoned}')"
    )


Files = str | PathLike[str] | Sequence[str | PathLike[str]]


def calibrate(
    files: Files,
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    by: str | None = None,
    together: bool = False,
    pool: bool = False,
    kinds: str | None = None,
    review: str | None = None,
    audit: str | None = None,
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    overlap: str | Overlap | None = None,
) -> Any:
    """Return the certificate of labelled scores in files or patterns, in bounded memory.

    `score`, `label`, `by` (groups) and `kinds` name columns. Labels are compared as text: 0/1 or true/false,
    or `anomaly_label` and one other value. By default the header of a CSV shows its delimiter. The other
    parameters are those of `calibrate_labelled`. Promises about traffic need no labels; `review` and `audit`
    name the columns of what reviews found and of the points drawn for audit, see `calibrate_traffic`.
    """
    if traffic.is_traffic(guarantee, review, audit, pool=pool, kinds=kinds, overlap=overlap):
        columns, grouped = checks.TrafficColumns(score, review, audit), [] if by is None else [by]
        with _opened(files, [score, *columns.marks, *grouped], None, delimiter) as table:
            if by is not None:
                promised = traffic.check_asked(guarantee, False, audit is not None)
                asked = traffic.by_group(promised, together, audit is None)
                return certify_any(TableGroups(table, (score, "", by), None, traffic=columns), asked)
            rows = TrafficTable(table, columns)
            return traffic.certify_traffic(rows, rows.unscored, guarantee, audit is not None)
    given, of = label_of(anomaly_label), (by, kinds)
    request, mark = request_of_columns(guarantee, overlap, given, by, together, pool, kinds)
    wanted, marked = [score, *(one for one in of if one is not None)], label_text(mark)
    with _opened(files, wanted, label, delimiter) as table:
        if by is not None:
            return certify_any(TableGroups(table, (score, label, by), marked), request)
        return certify_any(TableSource(table, score, label, marked, kind=kinds), request)


def certify_curve(
    files: Files,
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
    request = CurveRequest(delta_fpr, delta_fnr, 1, top_fpr, top_fnr)
    with _opened(files, [score], label, delimiter) as table:
        return certify(TableSource(table, score, label, anomaly_label), request)


def _opened(
    files: Files, columns: list[str], label: str | None, delimiter: str | None
) -> AbstractContextManager[Table]:
    listed = [files] if isinstance(files, (str, PathLike)) else files
    if not listed:
        raise InputError("files must name at least one file or pattern, got none")
    return open_table([fspath(file) for file in listed], columns, label, passes=True, delimiter=delimiter)


def are_calibration(source: TableSource, certificate: Certificate, measured: tuple[int, int]) -> bool:
    """Return whether scores are the calibration scores of a certificate."""
    known, drawn_by = (certificate.fpr, certificate.fnr), certificate.weighting
    sizes, digests = tuple(one.n for one in known), tuple(one.digest for one in known)
    if drawn_by is not None:
        offered = drawn_by.normal, drawn_by.anomalous
        sizes = tuple(n if all_of is None else all_of for n, all_of in zip(sizes, offered, strict=True))
        digests = drawn_by.digests or digests
    return measured == sizes and bool(source(survey).digests == digests)
