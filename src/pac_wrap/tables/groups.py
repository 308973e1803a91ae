"""Certificates of groups from a table whose column names the group of each row, and what they do there.

One sorted pass: DuckDB orders the rows by group and score, on disk if it must, and whole groups are
calibrated as they come by. Memory is bounded by the largest group.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.floats import ScoreType, is_narrower, order_keys, rounded
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.precision import Counted
from pac_wrap.method.certificates.provenance import Engine
from pac_wrap.method.groups.block import Block
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.method.groups.certificate import GroupCertificate, decided
from pac_wrap.method.groups.columns import permuted
from pac_wrap.method.groups.measure import GroupMeasured, measured, tallied
from pac_wrap.method.groups.part import BLOCK
from pac_wrap.method.groups.values import MOST_GROUPS, NEVER, Group, as_groups, in_order, texts_of, too_many
from pac_wrap.method.rule import Verdict
from pac_wrap.tables.calibrate import LabelledScores
from pac_wrap.tables.columns import no_rows, refuse_added, refuse_as_third, require_column
from pac_wrap.tables.decide import ADDED, copy_with
from pac_wrap.tables.files.arrow_stream import gathered
from pac_wrap.tables.sql.expressions import Compared, Dialect, quote_name, quote_number, score_sql
from pac_wrap.tables.table import Table

_BATCH: Final = 1 << 20
# the columns that a rule is joined to a row by, and its ends; no table has columns of these names
_OWN: Final = '"pac-wrap group"'
_PLACE: Final = '"pac-wrap place"'
ENDS: Final = ("pac-wrap low", "pac-wrap high", "pac-wrap alarm", "pac-wrap clear")
_ENGINE: Final[Engine] = "duckdb"


class GroupedScores:
    """The labelled scores of a table by group: how many rows each group has, and its scores in order."""

    def __init__(
        self,
        table: Table,
        columns: tuple[str, str, str],
        anomaly_label: str | None,
        score_type: ScoreType | None = None,
    ) -> None:
        score, label, _ = columns
        self._table, self._score, self._anomaly_label = table, score, anomaly_label
        self._rows = LabelledScores(
            table, score, label, anomaly_label, score_type, value=group_sql(table, columns)
        )
        self.score_type: ScoreType = self._rows.score_type
        self._rounds = is_narrower(self.score_type, table.score_type(score))
        self._number, self._mark, self._value, self._source = self._rows.columns
        number, mark = self._number, self._mark
        wrong = f"count(*) FILTER ({number} IS NULL OR isnan({number}) OR {mark} > 1)"
        counts = f"{wrong} AS wrong, count(*) AS rows, count(*) FILTER ({mark} = 1) AS anomalous"
        self.found = Numbered(table, self._value, self._source, f", {counts}")
        if sum(row[2] for row in self.found.rows):
            self._rows.refuse()
        counted = np.array([row[3:] for row in self.found.rows], dtype=np.int64)
        self.sizes = counted[:, 0]
        self.n = np.stack([counted[:, 0] - counted[:, 1], counted[:, 1]])

    def blocks(self) -> Iterator[Block]:
        """Yield the scores of whole groups, in the order of the table `numbered`."""
        query = (
            f"SELECT CAST({self._number} AS DOUBLE), {self._mark} FROM {self._source}"
            f" JOIN numbered ON {self._value} IS NOT DISTINCT FROM {_OWN} ORDER BY {_PLACE}, {self._number}"
        )
        ends = np.cumsum(self.sizes)
        scores: list[Scores] = []
        marks: list[NDArray[np.uint8]] = []
        start, done, held = 0, 0, 0
        with closing(self._table.batches(query)) as batches:
            for part, marked in gathered(batches, _BATCH):
                scores.append(part.copy())
                marks.append(marked.copy())
                held += part.size
                last = int(np.searchsorted(ends, done + held, side="right"))
                if last > start and held >= BLOCK:
                    yield from self._block(scores, marks, ends, (start, last), done)
                    taken = int(ends[last - 1]) - done
                    rest = np.concatenate(scores)[taken:].copy(), np.concatenate(marks)[taken:].copy()
                    scores, marks, start, done = [rest[0]], [rest[1]], last, int(ends[last - 1])
                    held = rest[0].size
        if start < ends.size:
            yield from self._block(scores, marks, ends, (start, ends.size), done)

    def _block(
        self,
        scores: list[Scores],
        marks: list[NDArray[np.uint8]],
        ends: NDArray[np.int64],
        span: tuple[int, int],
        done: int,
    ) -> Iterator[Block]:
        starts = np.concatenate([[done], ends[span[0] : span[1]]]) - done
        values, marked = np.concatenate(scores)[: starts[-1]], np.concatenate(marks)[: starts[-1]]
        if values.size != starts[-1]:
            self._rows.refuse()
        if self._rounds:  # which keeps their order
            values = rounded(values, self.score_type)
        if values.size:
            self._rows.see(values)
        yield Block(order_keys(values), marked.view(bool), starts)

    def classes(self, groups: Sequence[Group]) -> dict[Group, tuple[Scores, Scores]]:
        """Return the normal and the anomalous scores of some groups, in memory."""
        places = {group: place for place, group in enumerate(self.found.groups)}
        wanted = {places[group]: group for group in groups}
        found = self._table.arrays(
            f"SELECT CAST({self._number} AS DOUBLE) AS score, {self._mark} AS mark, {_PLACE} AS place"
            f" FROM {self._source} JOIN numbered ON {self._value} IS NOT DISTINCT FROM {_OWN}"
            f" WHERE {_PLACE} IN ({', '.join(map(str, wanted))})"
        )
        scores = np.asarray(found["score"], dtype=np.float64)
        if self._rounds:
            scores = rounded(scores, self.score_type)
        marks, own = np.asarray(found["mark"]) == 1, np.asarray(found["place"])
        return {
            group: (scores[(own == place) & ~marks], scores[(own == place) & marks])
            for place, group in wanted.items()
        }

    def certify(self, request: GroupRequest) -> GroupCertificate:
        """Return the certificate of all groups; the order of groups is that in memory."""
        groups = self.found.groups
        made = request.certify(self.blocks(), self.n, groups, self.score_type)
        if self._anomaly_label is not None and not made.columns.n[1].any():
            self._rows.check_labels()
        order = np.array(sorted(range(len(groups)), key=lambda place: in_order(groups[place])), dtype=np.intp)
        ordered = replace(
            made, groups=tuple(groups[place] for place in order), columns=permuted(made.columns, order)
        )
        return ordered.with_provenance(**self._rows.origin)


class Numbered:
    """The groups of a column of a table, numbered in a table called `numbered` in the database."""

    def __init__(self, table: Table, value: str, source: str, counts: str = "") -> None:
        counted = f"SELECT {value} AS {_OWN}{counts} FROM {source} GROUP BY 1"
        table.rows(
            "CREATE TABLE numbered AS"
            f" SELECT {_OWN}, row_number() OVER (ORDER BY {_OWN} NULLS FIRST) - 1 AS {_PLACE},"
            f" * EXCLUDE ({_OWN})"
            f" FROM ({counted} LIMIT {MOST_GROUPS + 1})"
        )
        self.rows = table.rows(f"SELECT * FROM numbered ORDER BY {_PLACE}")
        if not self.rows:
            raise no_rows(table.names)
        if len(self.rows) > MOST_GROUPS:
            raise too_many(MOST_GROUPS)
        self.groups: tuple[Group, ...] = tuple(as_groups([row[0] for row in self.rows]))
        if len(set(texts_of(self.groups))) < len(self.groups):
            raise InputError("two groups of the column are written alike; give it one type")

    @staticmethod
    def ordered(query: str, batch: bool = False) -> str:
        """Return a query for the score, the mark and the number of the group of each row, in their order.

        `query` gives the columns score, mark and own, which is the group; and a batch, which is kept.
        """
        rows = f"SELECT *, row_number() OVER () AS place FROM ({query})"
        joined = f"({rows}) AS given JOIN numbered ON given.own IS NOT DISTINCT FROM numbered.{_OWN}"
        kept = "score, mark, batch" if batch else "score, mark"
        return f"SELECT {kept}, CAST(numbered.{_PLACE} AS DOUBLE) FROM {joined} ORDER BY given.place"


def group_sql(table: Table, columns: tuple[str, ...], types: dict[str, str] | None = None) -> str:
    """Return the expression for the group of a row, NULL where it is missing; the last column holds it."""
    group = columns[-1]
    require_column(group, table.columns)
    refuse_as_third(group, columns[:-1])
    name, kind = quote_name(group), (types or table.types)[group]
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END"
    if kind == "INTERVAL":
        raise InputError(
            f"column {quoted(group)} holds durations, and groups must be texts, whole numbers or dates;"
            " convert them"
        )
    zoned, fine = kind.endswith("WITH TIME ZONE") or "TZ" in kind, kind.endswith("_NS")
    if not kind.startswith("TIMESTAMP") or not (zoned or fine):
        return name
    return _moment(f"epoch_{'ns' if fine else 'us'}({name})", 10**9 if fine else 10**6, "+00:00" * zoned)


def _moment(count: str, second: int, zone: str) -> str:
    """Return the text that `as_group` gives a time, from its count of parts of a second since 1970.

    Python's own times, as which DuckDB would hand it over, know no nanoseconds, and those of DuckDB no zone.
    """
    part = f"((({count} % {second}) + {second}) % {second})"
    whole = f"strftime(make_timestamp(({count} - {part}) // {second // 10**6}), '%Y-%m-%d %H:%M:%S')"
    micro, digits = f"{part} // {second // 10**6}", len(str(second)) - 1
    return (
        f"({whole} || CASE WHEN {part} = 0 THEN '' WHEN {part} % {second // 10**6} = 0"
        f" THEN '.' || lpad(CAST({micro} AS VARCHAR), 6, '0')"
        f" ELSE '.' || lpad(CAST({part} AS VARCHAR), {digits}, '0') END || '{zone}')"
    )


def calibrate_groups_table(
    table: Table,
    request: GroupRequest,
    columns: tuple[str, str, str],
    anomaly_label: str | None = None,
    score_type: ScoreType | None = None,
) -> GroupCertificate:
    """Return the certificate of an open table, from its columns of scores, labels and groups.

    It is that of `calibrate_groups` for the same columns, byte for byte.
    """
    return GroupedScores(table, columns, anomaly_label, score_type).certify(request)


def evaluate_groups_table(
    table: Table, certificate: GroupCertificate, columns: tuple[str, str, str], anomaly_label: str | None
) -> GroupMeasured:
    """Return how a certificate does on each group of an open table."""
    refuse_narrower(table.score_type(columns[0]), certificate, columns[0])
    scores = GroupedScores(table, columns, anomaly_label)
    places = places_in(certificate, scores.found.groups)
    counts = np.zeros((len(certificate.groups) + 1, 2, 3), dtype=np.int64)
    start = 0
    for block in scores.blocks():
        size = block.starts.size - 1
        own = np.repeat(places[start : start + size], np.diff(block.starts))
        verdicts = decided(certificate.rules, block.scores, own)
        counts += tallied(verdicts, block.marks, own, len(certificate.groups))
        start += size
    return measured(
        certificate.columns, certificate.groups, certificate.pooled, counts, certificate.asked.label_noise
    )


def decide_groups_table(
    table: Table,
    certificate: GroupCertificate,
    columns: tuple[str, str],
    target: Path,
    options: str,
    on_missing: OnMissing = "abstain",
) -> Counted:
    """Write all columns of a table, and the verdict and prediction set of every row, to a file.

    `options` are those of COPY. An OSError says why the file cannot be written.
    """
    score = columns[0]
    refuse_added(table.columns, ADDED)
    refuse_narrower(table.score_type(score), certificate, score)
    rows, missing = table.check_scores(score, on_missing)
    if table.reader == "read_csv":
        table.look_at_all_cells()
    types = table.all_types()
    value = group_sql(table, columns, types)
    found = Numbered(table, value, table.everything, ", count(*) AS rows")
    places = places_in(certificate, found.groups)
    ends = dict(zip(ENDS, (*certificate.rules, *certificate.exclusions), strict=True))
    table.register(
        "rules",
        {_PLACE.strip('"'): np.arange(places.size)} | {name: end[places] for name, end in ends.items()},
    )
    table.rows(f"CREATE TABLE ruled AS SELECT {_OWN}, rules.* FROM numbered JOIN rules USING ({_PLACE})")
    joined = f"LEFT JOIN ruled ON {value} IS NOT DISTINCT FROM ruled.{_OWN}"
    copy_with(table, score, _answers, target, options, rows, joined)
    compared = Compared.number(score_sql(score, types[score]))
    answered = f"SELECT {_answers(compared)} FROM {table.everything} {joined}"
    tests = ", ".join(f"count(*) FILTER (verdict = {one})" for one in (Verdict.ANOMALY, Verdict.NORMAL))
    ((alarms, clears),) = table.rows(f"SELECT {tests} FROM ({answered})")
    counts = np.array([row[2] for row in found.rows])
    return Counted(alarms, clears, rows, missing, int(counts[places == NEVER].sum()))


def _answers(compared: Compared) -> str:
    return "{} AS verdict, {} AS prediction_set".format(*answers_sql(compared))


def answers_sql(compared: Compared, dialect: Dialect = "duckdb") -> tuple[str, str]:
    """Return the verdict and the prediction set of a row that has the `ENDS` of its group, or NULLs."""
    low, high, alarm, clear = (quote_name(end, dialect) for end in ENDS)
    missing, score, never = compared.missing, compared.score, quote_number(inf)
    normal = f"({missing} OR {alarm} IS NULL OR isnan({alarm}) OR {alarm} = {never} OR {score} < {alarm})"
    anomalous = f"({missing} OR {clear} IS NULL OR isnan({clear}) OR {score} >= {clear})"
    return (
        f"CASE WHEN {missing} THEN -1 WHEN {low} = {never} OR {score} < {low} THEN 0"
        f" WHEN {high} < {never} AND {score} >= {high} THEN 1 ELSE -1 END",
        f"CASE WHEN {normal} AND {anomalous} THEN '{{0,1}}' WHEN {normal} THEN '{{0}}'"
        f" WHEN {anomalous} THEN '{{1}}' ELSE '{{}}' END",
    )


def places_in(certificate: GroupCertificate, groups: tuple[Group, ...]) -> NDArray[np.int64]:
    """Return the place of each group in a certificate, -1 for one that was never seen."""
    places = (certificate.lookup.place(group) for group in groups)
    return np.array([NEVER if place is None else place for place in places], dtype=np.int64)


def refuse_narrower(kind: ScoreType, certificate: GroupCertificate, score: str) -> None:
    """Refuse scores that have fewer digits than those that calibrated: a threshold may lie among the lost."""
    if is_narrower(kind, certificate.score_type):
        raise InputError(
            f"column {quoted(score)} holds {kind} scores, and the certificate is of {certificate.score_type}"
            f" ones; give it such scores, or calibrate on {kind} ones"
        )
