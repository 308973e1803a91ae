"""Certificates of a table that stays in its database: statements go there, and a few numbers come back.

Whoever runs the statements, a connection or a person with a shell, only has to hand on their answers. The
same answers always lead to the same next statement, so a file of them is all there is to remember.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, cast

from pac_wrap.base.floats import ScoreType, rounded, unsigned_zero
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method import source as sources
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.certify import certify
from pac_wrap.method.promise import Guarantee, Population
from pac_wrap.method.request import Request
from pac_wrap.method.source import CLASSES, Auc, T
from pac_wrap.ranks.kernels import as_digest
from pac_wrap.ranks.memory import Rank
from pac_wrap.ranks.passes import Known, ScoreAtRank
from pac_wrap.tables.columns import (
    anomaly_marks,
    missing_scores,
    no_rows,
    number,
    require_two,
    score_cell,
    whole_cell,
    without_case,
)
from pac_wrap.tables.sql.expressions import Dialect
from pac_wrap.tables.sql.statements import TAG, Source, Statement

Row = dict[str, str]
Ask = Callable[[Statement], list[Row]]

CHANGED: Final = "the table has changed between two statements; start again, with a table that nobody changes"
_SUM: Final = 0.1 + 0.2
# what databases call float32
_NARROW: Final = ("real", "FLOAT", "float")
_NO_SCORES: Final = as_digest(0)
_SPACED: Final = 16  # so many normal scores, evenly spaced, tell scores that are upside down


class UnansweredError(Exception):
    """A statement that has no answer yet; nothing is wrong, and who asks for a certificate is given it."""

    def __init__(self, statement: Statement, number: int) -> None:
        super().__init__(f"statement {number} ({statement.purpose}) has no answer yet; run it")
        self.statement, self.number = statement, number


def calibrate(
    execute: Callable[[str], Iterable[Sequence[object]]],
    table: str,
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: str | None = None,
    overlap: str | Overlap | None = None,
    dialect: Dialect = "postgres",
) -> Certificate:
    """Return the certificate that `calibrate_labelled` gives for two columns of a table in a database.

    A few statements count there; no scores are fetched but those at a few ranks.

    Parameters
    ----------
    execute : callable
        What runs a statement, and returns its rows.
    table, score, label : str
        The name of the table, and of its columns of scores and labels.
    guarantee, overlap : Guarantee and str or Strategy, optional
        What to promise, and what is done where the classes overlap; see `calibrate`.
    anomaly_label : str, optional
        The label, as text, that marks an anomaly; else 1 beside 0, or true beside false.
    dialect : {"postgres", "duckdb", "spark", "ansi"}
        Whose SQL it is; "ansi" is standard SQL, which leaves out the digests.

    Examples
    --------
    >>> import duckdb
    >>> database = duckdb.connect()
    >>> rows = "SELECT i AS score, i > 900 AS label FROM range(1000) r (i)"
    >>> made = database.execute(f"CREATE TABLE t AS {rows}")
    >>> found = calibrate(lambda text: database.execute(text).fetchall(), "t", dialect="duckdb")
    >>> found.fpr.n, found.fnr.n, found.regime.value
    (901, 99, 'separated')
    """

    def ask(statement: Statement) -> list[Row]:
        rows = [tuple(map(str, row)) for row in execute(str(statement))]
        return checked(statement, [statement.names, *rows] if rows else [], "the answer of the database")

    request = Request.of(guarantee, overlap, 1 if anomaly_label is None else anomaly_label)
    return certify(Remote(ask, Source(table, score, label, dialect), request.label_text), request)


def from_answers(text: str, request: Request, source: Source) -> Certificate:
    """Return the certificate that all answers lead to; `UnansweredError` brings the next statement.

    The text is CSV: for each statement in turn a header and the rows of its answer.
    """
    answers = _divided(text)
    number = 0

    def ask(statement: Statement) -> list[Row]:
        nonlocal number
        number += 1
        answer = next(answers, None)
        if answer is None:
            raise UnansweredError(statement, number)
        return checked(statement, answer, f"answer {number}")

    certificate = certify(Remote(ask, source, request.label_text), request)
    if next(answers, None) is not None:
        raise InputError(f"there are more answers than the {number} that were asked for; start again")
    return certificate


class Remote(Known):
    """Both classes of a table in a database, known through what its statements return; a source."""

    draws: None = None

    def __init__(self, ask: Ask, source: Source, anomaly_label: str | None) -> None:
        require_two(source.score, source.label)
        self._ask, self._source = ask, source
        if not (rows := ask(source.labels())):
            raise no_rows([source.table])
        counted: Counter[str | None] = Counter()
        for row in rows:
            name = None if whole_cell(row["unlabelled"]) else without_case(row["label"])
            counted[name] += whole_cell(row["points"])
        total = counted.total()
        marks = anomaly_marks(sorted(counted.items(), key=str), source.label, anomaly_label)
        # as the table writes them, so that databases need not change the case of anything
        self._marks = [row["label"] for row in rows if without_case(row["label"]) in marks] or list(marks)
        if missing := sum(whole_cell(row[name]) for row in rows for name in ("missing", "nan")):
            raise missing_scores(source.score, missing, total)
        self.ends = (
            min(score_cell(row["lowest"]) for row in rows),
            max(score_cell(row["highest"]) for row in rows),
        )
        anomalous = sum(counted[mark] for mark in marks)
        self.score_type: ScoreType = "float32" if rows[0]["score_type"] in _NARROW else "float64"
        super().__init__((total - anomalous, anomalous), (0, 0))

    def populations(self) -> dict[Population, int | None]:
        """Return both classes."""
        return dict(zip(CLASSES, self.sizes, strict=True))

    def answer(self, of: Sequence[Population], ask: sources.Ask[T]) -> T:
        """Return what is asked for; what is found is proved in one look at the end."""
        made = ask(self.classes, score_type=self.score_type)
        return cast(T, self.prove(made)) if isinstance(made, Certificate) else made

    def held(self) -> None:
        """Return nothing: the scores stay where they are."""

    def origin(self) -> dict[str, Any]:
        """Return where the scores came from, as a provenance has it."""
        origin = {"score": self._source.score, "tables": (self._source.table,), "engine": "sql"}
        return origin | {"lowest": self.ends[0], "highest": self.ends[1]}

    def find(self, ranks: Iterable[Rank]) -> None:
        """Find the scores at some ranks; with the first, some that tell scores that are upside down."""
        wanted = list(ranks)
        if not self._found and all(self.sizes):
            spaced = {max(1, self.sizes[0] * step // _SPACED) for step in range(1, _SPACED + 1)}
            wanted += [Rank(0, k) for k in sorted(spaced)]
        super().find(wanted)

    def search(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return what one statement finds at some ranks; it looks no further than it has to."""
        if not ranks:
            return {}
        known = self._found.values()
        low = max((at for at in known if all(one.of(_ends(at)) < one.k for one in ranks)), default=None)
        high = min((at for at in known if all(one.k <= one.of(at.below) for one in ranks)), default=None)
        before = (0, 0) if low is None else _ends(low)
        wanted = {rank: Rank(rank.label, rank.k - rank.of(before)) for rank in ranks}
        ends = [None if at is None else at.score for at in (low, high)]
        rows = self._ask(self._source.ranks(self._marks, set(wanted.values()), *ends))
        found = [self._at_rank(row, before) for row in rows]
        self._check_order(found, low)
        by_rank = {rank: _holder(rank, found) for rank in ranks}
        if len(set(by_rank.values())) < len(found):
            raise InputError(CHANGED)
        return by_rank

    def count(self, threshold: float) -> tuple[int, ...]:
        """Return how many scores of each class are less than the threshold."""
        return self._counted_at(self._look([threshold], hashed=False), 0)[0]

    def prove(self, certificate: Certificate) -> Certificate:
        """Return the certificate with its digests, if all it rests on is there in one look at the table.

        A score with less than k scores below it and k up to it is the k-th smallest, however it was found.
        """
        deciding = {*certificate.deciding, float(rounded(certificate.rule.anomaly_from, self.score_type))}
        found = sorted({at for at in self._found.values() if at.score in deciding})
        row = self._look([at.score for at in found], hashed=True)
        for place, at in enumerate(found):
            if self._counted_at(row, place) != (at.below, _ends(at)):
                raise InputError(CHANGED)
        clauses = (
            replace(one, digest=self._digest(row, one.of.label) if one.n else _NO_SCORES)
            for one in certificate.clauses
        )
        return replace(certificate, clauses=tuple(clauses))

    def _digest(self, row: Row, name: str) -> str | None:
        if not self._source.hashes:
            return None
        return as_digest((whole_cell(row[f"{name}_hash_high"]) << 32) + whole_cell(row[f"{name}_hash_low"]))

    def auc(self, normal: Population, anomalous: Population) -> Auc | None:
        """Return the largest AUC that goes with what was found: see `Survey.largest_auc`."""
        normals, anomalies = self.sizes
        if not normals or not anomalies:
            return None
        total, before, above = 0, 0, anomalies
        for at in sorted(set(self._found.values())):
            # those between two scores may outscore all of this class but those above the upper one
            total += (at.below[0] - before) * above + at.equal[0] * (anomalies - at.below[1])
            before, above = at.below[0] + at.equal[0], anomalies - at.below[1] - at.equal[1]
        return Auc((total + (normals - before) * above) / (normals * anomalies), normals, anomalies)

    def _look(self, scores: list[float], *, hashed: bool) -> Row:
        """Return the counts at some scores, if both classes are as large as ever."""
        for row in self._ask(self._source.counts(self._marks, scores, hashed=hashed))[:1]:
            if (whole_cell(row["normal"]), whole_cell(row["anomalous"])) == self.sizes:
                return row
        raise InputError(CHANGED)

    def _counted_at(self, row: Row, place: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the counts below a score and up to it."""
        below, up_to = (
            (whole_cell(row[f"normal_{which}_{place}"]), whole_cell(row[f"anomalous_{which}_{place}"]))
            for which in ("below", "up_to")
        )
        return below, up_to

    def _at_rank(self, row: Row, before: tuple[int, ...]) -> ScoreAtRank:
        if number(row["digits"]) != _SUM:
            raise InputError(
                f"the database writes 0.1 + 0.2 as {quoted(row['digits'])}, so scores lose digits on the way;"
                " make it write all 17 (in PostgreSQL: SET extra_float_digits = 1)"
            )
        equal = whole_cell(row["normal"]), whole_cell(row["anomalous"])
        below = before[0] + whole_cell(row["normal_below"]), before[1] + whole_cell(row["anomalous_below"])
        return ScoreAtRank(unsigned_zero(score_cell(row["score"])), below, equal)

    def _check_order(self, found: list[ScoreAtRank], low: ScoreAtRank | None) -> None:
        """Refuse rows that no table gives: scores and counts rise, and no class is larger than it is."""
        rows = [*([] if low is None else [low]), *found]
        for one, other in pairwise(rows):
            rises = all(end <= below for end, below in zip(_ends(one), other.below, strict=True))
            if not (one.score < other.score and rises):
                raise InputError(CHANGED)
        if any(end > size for at in found for end, size in zip(_ends(at), self.sizes, strict=True)):
            raise InputError(CHANGED)


def _ends(at: ScoreAtRank) -> tuple[int, int]:
    """Return how many scores of each class are not greater."""
    return at.below[0] + at.equal[0], at.below[1] + at.equal[1]


def _holder(rank: Rank, found: list[ScoreAtRank]) -> ScoreAtRank:
    """Return what is found at a rank."""
    for at in found:
        if rank.of(at.below) < rank.k <= rank.of(_ends(at)):
            return at
    raise InputError(CHANGED)


def _divided(text: str) -> Iterator[list[tuple[str, ...]]]:
    """Yield the answers in a text, each with its header, which is told by its last name."""
    answer: list[tuple[str, ...]] = []
    try:
        for row in csv.reader(text.splitlines(keepends=True), strict=True):
            if row and row[-1] == TAG and answer:
                yield answer
                answer = []
            if row:
                answer.append(tuple(row))
    except csv.Error as error:
        raise InputError(f"the answers are not CSV ({error}); use psql --csv or the like") from error
    if answer:
        yield answer


def checked(statement: Statement, answer: Sequence[Sequence[str]], name: str) -> list[Row]:
    """Return the rows of an answer, if it is the whole answer to this very statement."""
    again = "remove the file of answers and start again"
    if answer and tuple(answer[0]) != statement.names:
        raise InputError(
            f"{name} has the columns {quoted(','.join(answer[0]))}, not {','.join(statement.names)}; give CSV"
            f" with a header for each statement in turn, or {again}"
        )
    for row in answer[1:]:
        if len(row) != len(statement.names):
            raise InputError(f"{name} is cut short: {quoted(','.join(row))}; {again}")
        if row[-1] != statement.tag:
            raise InputError(
                f"{name} belongs to another statement; give the same options every time, or {again}"
            )
    return [dict(zip(statement.names, row, strict=True)) for row in answer[1:]]
