"""Certificates of a table that stays in its database: statements go there, and a few numbers come back.

A connection, or a person with a shell, runs the statements and passes on their answers. The same answers
always lead to the same next statement, so a file of the answers is the whole state.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count, pairwise
from operator import le
from typing import Any, Final, cast

from pac_wrap.base.arguments import check_choice, label_of, label_text
from pac_wrap.base.floats import ScoreType, rounded, unsigned_zero
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method import source as sources
from pac_wrap.method.calibrate import Request, certify
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.promise import Guarantee, Population
from pac_wrap.method.robust.weights import Draws
from pac_wrap.method.source import CLASSES, Auc, T, parts_of
from pac_wrap.method.traffic.calibrate import STATES, certify_traffic, is_traffic
from pac_wrap.ranks.compiled import HASH_NUMBERS
from pac_wrap.ranks.memory import Rank
from pac_wrap.ranks.passes import Parts, ScoreAtRank
from pac_wrap.tables import columns as checks
from pac_wrap.tables import sql

# a name of a table is one to three parts; a part with a dot or a quote stands in quotes, as in SQL
_PART: Final = r'"(?:[^"]|"")+"|[^."]+'
_LOW: Final = (1 << 32) - 1
# the most different labels that come back; two are right, and each may have several spellings
_MOST_LABELS: Final = 32
# the parts of traffic; those of labelled points are normal and anomalous
TRAFFIC: Final = ("unreviewed", "wrong_ones", "right_ones")
# the column that names the statement of an answer
TAG: Final = "statement"
# the expression that shows a column of float32; standard SQL has none
_TYPE: Final[dict[str, str]] = {
    **dict.fromkeys(("duckdb", "spark"), "typeof({})"),
    "postgres": "CAST(pg_typeof({}) AS VARCHAR)",
    "ansi": "''",
}
_LABEL: Final[dict[sql.Dialect, str]] = {**sql.TEXT, "postgres": "VARCHAR", "ansi": "VARCHAR(255)"}


# the texts that mark the points of each part but the first
Marks = Sequence[Sequence[str]]


class Statement:
    """A statement to run in the database; the last column of its answer holds its tag in every row."""

    def __init__(self, purpose: str, steps: str, columns: Sequence[tuple[str, str]], rest: str) -> None:
        self.purpose, self.names = purpose, (*(name for name, _ in columns), TAG)
        shown = "".join(f"  {expression} AS {name},\n" for name, expression in columns)
        start, end = f"{steps}\nSELECT\n{shown}  '", f"' AS {TAG}\n{rest};"
        self.tag = sha256(f"{start}{end}".encode()).hexdigest()[:16]
        self.text = f"{start}{self.tag}{end}"


class Source:
    """Two columns of a table in a database, and the statements about the parts that its points are in."""

    def __init__(
        self,
        table: str,
        score: str,
        label: str | None,
        dialect: sql.Dialect = "duckdb",
        parts: tuple[str, ...] = ("normal", "anomalous"),
    ) -> None:
        check_choice("dialect", dialect, tuple(sql.DOUBLE))
        if not re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART}))*", table):
            raise InputError(
                f"the table must be a name such as schema.table, got {quoted(table)}; quote a part with a dot"
                ' or a quote in it as in SQL: "my.table"'
            )
        plain = [one[1:-1].replace('""', '"') if one[0] == '"' else one for one in re.findall(_PART, table)]
        self.table, self.score, self.label, self.dialect, self.parts = table, score, label, dialect, parts
        self._relation = ".".join(sql.quote_name(part, dialect) for part in plain)
        self._score = f"CAST({sql.quote_name(score, dialect)} AS {sql.DOUBLE[dialect]})"
        column = "NULL" if label is None else sql.quote_name(label, dialect)
        self._label = f"CAST({column} AS {_LABEL[dialect]})"

    def labels(self) -> Statement:
        """Return the statement that counts the points and missing scores of each label, with their range."""
        kind = _TYPE[self.dialect].format(sql.quote_name(self.score, self.dialect))
        nan = sql.nan_sql("score", self.dialect)
        number = "score" if len(self.parts) == 2 else f"CASE WHEN NOT ({nan}) THEN score END"
        columns = (
            ("label", "COALESCE(name, '')"),
            ("points", "COUNT(*)"),
            ("unlabelled", "COUNT(*) - COUNT(name)"),
            ("missing", "COUNT(*) - COUNT(score)"),
            ("nan", f"COUNT(CASE WHEN {nan} THEN 1 END)"),
            ("score_type", "MIN(kind)"),
            ("lowest", f"MIN({number})"),
            ("highest", f"MAX({number})"),
        )
        steps = (
            f"WITH points AS (\n  SELECT {self._score} AS score, {self._label} AS name, {kind} AS kind\n"
            f"  FROM {self._relation}\n)"
        )
        most = f"FETCH FIRST {_MOST_LABELS} ROWS ONLY" if self.dialect == "ansi" else f"LIMIT {_MOST_LABELS}"
        rest = f"FROM points\nGROUP BY name\nORDER BY name\n{most}"
        return Statement("labels, and what is missing", steps, columns, rest)

    def ranks(self, marks: Marks, wanted: Iterable[Rank], low: float | None, high: float | None) -> Statement:
        """Return the statement that finds the scores at some ranks among those strictly between two."""
        bounds = [("score > ", low), ("score < ", high)]
        inside = [text + self._number(bound) for text, bound in bounds if bound is not None]
        near = f"\n  WHERE {' AND '.join(inside)}" if inside else ""
        # BIGINT compares faster than the types in which some databases return sums
        below = "CAST(SUM({0}) OVER (ORDER BY score ROWS UNBOUNDED PRECEDING) AS BIGINT) - {0} AS {0}_below"
        counted = ", ".join(f"{_count(f'mark = {part}')} AS {name}" for part, name in enumerate(self.parts))
        summed = ",\n".join(f"    {below.format(name)}" for name in self.parts)
        steps = (
            f"WITH points AS (\n{self._points(marks)}\n), counted AS (\n"
            f"  SELECT score, {counted}\n"
            f"  FROM points{near}\n  GROUP BY score\n), summed AS (\n"
            f"  SELECT score, {', '.join(self.parts)},\n{summed}\n  FROM counted\n)"
        )
        names = ("score", *self.parts, *(f"{name}_below" for name in self.parts))
        # this sum shows whether all digits are printed: 0.30000000000000004
        columns = [*((one, one) for one in names), ("digits", f"{self._number(0.1)} + {self._number(0.2)}")]
        by_labels: dict[tuple[int, ...], list[int]] = {}
        for rank in sorted(wanted, key=lambda rank: (len(rank.labels), rank.labels, rank.k)):
            by_labels.setdefault(rank.labels, []).append(rank.k)
        conditions = []
        for labels, k in by_labels.items():
            sides = [self.parts[label] for label in labels]
            least = " + ".join(f"{name}_below" for name in sides)
            found = f"{_next(k, least)} <= {least} + {' + '.join(sides)}"
            conditions.append(f"({least} < {k[-1]} AND {found})")
        condition = "\n  OR ".join(conditions)
        return Statement("scores at ranks", steps, columns, f"FROM summed\nWHERE {condition}\nORDER BY score")

    def counts(self, marks: Marks, scores: Sequence[float], *, hashed: bool) -> Statement:
        """Return the statement that counts all parts, in all, below some scores and up to them."""
        columns = [(name, _count(f"mark = {label}")) for label, name in enumerate(self.parts)]
        for place, score in enumerate(map(self._number, scores)):
            for label, name in enumerate(self.parts):
                columns.append((f"{name}_below_{place}", _count(f"mark = {label} AND score < {score}")))
                columns.append((f"{name}_up_to_{place}", _count(f"mark = {label} AND score <= {score}")))
        steps = f"WITH points AS (\n{self._points(marks)}\n)"
        hashed &= self.dialect != "ansi"  # standard SQL does not reach the bits of a double
        if hashed:
            steps = f"{steps}{''.join(self._hashing())}"
            for label, name in enumerate(self.parts):
                for half in ("high", "low"):
                    total = f"COALESCE(SUM(CASE WHEN mark = {label} THEN {half} END), 0)"
                    columns.append((f"{name}_hash_{half}", total))
        return Statement("counts", steps, columns, f"FROM {'hashed' if hashed else 'points'}")

    def _number(self, value: float) -> str:
        return sql.quote_number(value, sql.DOUBLE[self.dialect])

    def _points(self, marks: Marks) -> str:
        """Return the query for every point with a score: this, 0 for -0, and the number of its part."""
        known = [(part, texts) for part, texts in enumerate(marks, 1) if texts]
        cases = [f"WHEN {sql.one_of(self._label, texts, self.dialect)} THEN {part}" for part, texts in known]
        mark = f"CASE {' '.join(cases)} ELSE 0 END" if cases else "0"
        scored = ""
        if len(self.parts) > 2:
            scored = f"\n  WHERE {self._score} IS NOT NULL AND NOT ({sql.nan_sql(self._score, self.dialect)})"
        return (
            f"  SELECT CASE WHEN {self._score} = 0 THEN 0 ELSE {self._score} END AS score,\n"
            f"    {mark} AS mark\n  FROM {self._relation}{scored}"
        )

    def _hashing(self) -> Iterator[str]:
        """Yield the steps that hash each score with xxhash64, in two halves of 32 bits: decision 17."""
        # no product exceeds 49 bits, since databases refuse an overflow of 63
        if self.dialect == "spark":
            low, high = f"xxhash64(score) & {_LOW}", "shiftrightunsigned(xxhash64(score), 32)"
            yield _step("hashed", low, high, "points")
            return
        # without it PostgreSQL copies each step into the next, many times
        fence = " OFFSET 0" if self.dialect == "postgres" else ""
        first = "CAST(CAST(score AS BIT) AS UBIGINT)"
        if self.dialect == "postgres":
            first = "CAST(CAST('x' || encode(float8send(score), 'hex') AS BIT(64)) AS BIGINT)"
        yield f", bits AS (\n  SELECT mark, score, {first} AS bits FROM points{fence}\n)"
        halves = f"CAST(bits & {_LOW} AS BIGINT)", f"CAST((bits >> 32) & {_LOW} AS BIGINT)"
        one, two, three, four, start = HASH_NUMBERS
        steps = [halves, *_times(two), _turned(31), *_times(one)]
        steps += [(self._xor("low", start & _LOW), self._xor("high", start >> 32)), _turned(27)]
        steps += [*_times(one, four), (self._xor("low", "high >> 1"), "high"), *_times(two)]
        lower = f"((high << 3) + (low >> 29)) & {_LOW}"
        steps += [(self._xor("low", lower), self._xor("high", "high >> 29")), *_times(three)]
        steps += [(self._xor("low", "high"), "high")]
        before = "bits"
        for place, (low, high) in enumerate(steps, 1):
            name = "hashed" if place == len(steps) else f"step_{place}"
            yield _step(name, low, high, before, fence)
            before = name

    def _xor(self, left: str, right: str | int) -> str:
        return f"{left} # ({right})" if self.dialect == "postgres" else f"xor({left}, {right})"


def _step(name: str, low: str, high: str, before: str, fence: str = "") -> str:
    return f", {name} AS (\n  SELECT mark, score, {low} AS low, {high} AS high FROM {before}{fence}\n)"


def _times(factor: int, more: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the two steps, as low and high half, that multiply by a factor and add some more, modulo 2^64."""
    d, c, b, a = (factor >> shift & 0xFFFF for shift in (48, 32, 16, 0))

    def times(half: str, upper: int, lower: int) -> str:
        """Return half * (upper 2^16 + lower), with the lowest 32 bits right."""
        return f"{half} * {lower} + (({half} * {upper} & 65535) << 16)"

    high = f"{times('high', b, a)} + {times('low', d, c)} + (low * {b} >> 16) + {more >> 32}"
    yield f"{times('low', b, a)} + {more & _LOW}", high
    yield f"low & {_LOW}", f"(high + (low >> 32)) & {_LOW}"


def _turned(by: int) -> tuple[str, str]:
    """Return the step that rotates the bits upwards."""
    low = f"((low << {by}) + (high >> {32 - by})) & {_LOW}"
    return low, f"((high << {by}) + (low >> {32 - by})) & {_LOW}"


def _count(condition: str) -> str:
    return f"COUNT(CASE WHEN {condition} THEN 1 END)"


def _next(ranks: list[int], below: str) -> str:
    """Return the expression for the least rank above a count, by halving, as there may be many ranks."""
    if len(ranks) == 1:
        return str(ranks[0])
    middle = len(ranks) // 2
    lower, upper = _next(ranks[:middle], below), _next(ranks[middle:], below)
    return f"CASE WHEN {below} < {ranks[middle - 1]} THEN {lower} ELSE {upper} END"


Row = dict[str, str]
Ask = Callable[[Statement], list[Row]]

CHANGED: Final = "the table has changed between two statements; start again, and do not change it meanwhile"
_SUM: Final = 0.1 + 0.2
# what databases call float32
_NARROW: Final = ("real", "FLOAT", "float")
_SPACED: Final = 16  # evenly spaced normal scores that show whether the scores are upside down


class UnansweredError(Exception):
    """The next statement, which has no answer yet; nothing is wrong."""

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
    review: str | None = None,
    anomaly_label: str | None = None,
    overlap: str | Overlap | None = None,
    dialect: sql.Dialect = "postgres",
) -> Certificate:
    """Return the certificate of two columns of a table in a database, the same as `calibrate_labelled` gives.

    A few statements count in the database and return only the scores at a few ranks. The other parameters
    are those of `calibrate_labelled`.

    Parameters
    ----------
    execute : callable
        The function that runs a statement and returns its rows.
    table, score, label : str
        The name of the table, and of its columns of scores and labels.
    review : str, optional
        For promises about traffic, which needs no labels: the column of what reviews found.
    anomaly_label : str, optional
        The label, as text, that marks an anomaly; by default 1 or true.
    dialect : {"postgres", "duckdb", "spark", "ansi"}
        The SQL dialect; "ansi" is standard SQL, which leaves out the digests.

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
        rows = [tuple(map(str, row)) for row in execute(statement.text)]
        return checked(statement, [statement.names, *rows] if rows else [], "the answer of the database")

    if is_traffic(guarantee, review):
        return _certified(ask, Source(table, score, review, dialect, TRAFFIC), guarantee)
    request = Request.of(guarantee, overlap, label_of(anomaly_label))
    return _certified(ask, Source(table, score, label, dialect), request)


def from_answers(text: str, request: Request | Guarantee, source: Source) -> Certificate:
    """Return the certificate that follows from the answers; `UnansweredError` holds the next statement."""
    answers, numbers = _divided(text), count(1)

    def ask(statement: Statement) -> list[Row]:
        number, answer = next(numbers), next(answers, None)
        if answer is None:
            raise UnansweredError(statement, number)
        return checked(statement, answer, f"answer {number}")

    certificate = _certified(ask, source, request)
    if next(answers, None) is not None:
        raise InputError(f"there must be {next(numbers) - 1} answers, got more; start again")
    return certificate


def _certified(ask: Ask, source: Source, request: object) -> Certificate:
    """Return the certificate of labelled points, or of traffic if the source has its parts."""
    if isinstance(request, Request):
        return certify(Remote(ask, source, label_text(request.anomaly_label)), request)
    found = RemoteTraffic(ask, source, None)
    return certify_traffic(found, found.unscored, request)


class Remote(Parts):
    """Both classes of a table in a database, as a source that knows only the answers to statements."""

    draws: Draws | None = None

    def __init__(self, ask: Ask, source: Source, anomaly_label: str | None) -> None:
        checks.require_two(source.score, source.label)
        self._ask, self._source = ask, source
        if not (rows := ask(source.labels())):
            raise checks.no_rows([source.table])
        self._marks, sizes = self._divided(rows, anomaly_label)
        scored = [row for row in rows if _missing_in(row) < checks.whole_cell(row["points"])]
        self._lowest = min((checks.score_cell(row["lowest"]) for row in scored), default=None)
        self._highest = max((checks.score_cell(row["highest"]) for row in scored), default=None)
        self.score_type: ScoreType = "float32" if rows[0]["score_type"] in _NARROW else "float64"
        super().__init__(sizes, (0,) * len(sizes))

    def _divided(self, rows: list[Row], anomaly_label: str | None) -> tuple[Marks, Sequence[int]]:
        """Return the texts that mark the points of each part but the first, and the sizes of the parts."""
        counted: Counter[str | None] = Counter()
        for row in rows:
            counted[_label_in(row)] += checks.whole_cell(row["points"])
        total, label = counted.total(), str(self._source.label)
        marks = checks.anomaly_marks(sorted(counted.items(), key=str), label, anomaly_label)
        if missing := sum(map(_missing_in, rows)):
            raise checks.missing_scores(self._source.score, missing, total)
        anomalous = sum(counted[mark] for mark in marks)
        # spelled as in the table, so that databases need not change the case
        found = [row["label"] for row in rows if checks.without_case(row["label"]) in marks] or list(marks)
        return [found], (total - anomalous, anomalous)

    def populations(self) -> dict[Population, int | None]:
        return dict(zip(CLASSES, self.sizes, strict=True))

    def answer(self, of: Sequence[sources.Populations], ask: sources.Ask[T]) -> T:
        """Return the answers to a request, after checking all of them in one last look."""
        parts = parts_of(self.populations(), of)
        made = ask(self.ranked(parts), score_type=self.score_type)
        if not isinstance(made, Certificate):
            return made
        hashed = self._prove(made)
        # the same ranks and counts again, now with digests
        found = cast(Certificate, ask(self.ranked(parts), score_type=self.score_type))
        if not hashed:
            clauses = (replace(one, digest=None if one.n else one.digest) for one in found.clauses)
            found = replace(found, clauses=tuple(clauses))
        return cast(T, found)

    def held(self) -> None:
        """Return None: the scores stay in the database."""

    def origin(self) -> dict[str, Any]:
        origin = {"score": self._source.score, "tables": (self._source.table,), "engine": "sql"}
        return origin | {"lowest": self._lowest, "highest": self._highest}

    def find(self, ranks: Iterable[Rank]) -> None:
        """Find the scores at some ranks; the first time, also those that show scores upside down."""
        wanted = list(ranks)
        if not self._found and len(self.sizes) == 2 and all(self.sizes):
            spaced = {max(1, self.sizes[0] * step // _SPACED) for step in range(1, _SPACED + 1)}
            wanted += [Rank(0, k) for k in sorted(spaced)]
        super().find(wanted)

    def search(self, ranks: list[Rank]) -> dict[Rank, ScoreAtRank]:
        """Return the scores at some ranks from one statement, which reads as few rows as possible."""
        if not ranks:
            return {}
        known = self._found.values()
        low = max((at for at in known if all(one.of(_ends(at)) < one.k for one in ranks)), default=None)
        high = min((at for at in known if all(one.k <= one.of(at.below) for one in ranks)), default=None)
        before = (0,) * len(self.sizes) if low is None else _ends(low)
        wanted = {rank: Rank(rank.label, rank.k - rank.of(before)) for rank in ranks}
        ends = [None if at is None else at.score for at in (low, high)]
        rows = self._ask(self._source.ranks(self._marks, set(wanted.values()), *ends))
        found, parts = [], self._source.parts
        for row in rows:
            if checks.number(row["digits"]) != _SUM:
                raise InputError(
                    f"the database must write all 17 digits of scores, got 0.1 + 0.2 as"
                    f" {quoted(row['digits'])}; in PostgreSQL: SET extra_float_digits = 1"
                )
            equal = tuple(checks.whole_cell(row[name]) for name in parts)
            starts = zip(before, parts, strict=True)
            below = tuple(start + checks.whole_cell(row[f"{name}_below"]) for start, name in starts)
            found.append(ScoreAtRank(unsigned_zero(checks.score_cell(row["score"])), below, equal))
        # scores and counts rise, no count exceeds the size of its class, and every row holds a rank
        pairs = pairwise([*([] if low is None else [low]), *found])
        rising = all(one.score < two.score and all(map(le, _ends(one), two.below)) for one, two in pairs)
        inside = all(all(map(le, _ends(at), self.sizes)) for at in found)
        by_rank = {one: at for one in ranks for at in found if one.of(at.below) < one.k <= one.of(_ends(at))}
        every = by_rank.keys() >= set(ranks) and len(set(by_rank.values())) == len(found)
        if not rising or not inside or not every:
            raise InputError(CHANGED)
        return by_rank

    def count(self, threshold: float) -> tuple[int, ...]:
        return self._counted_at(self._look([threshold], hashed=False), 0)[0]

    def _prove(self, certificate: Certificate) -> bool:
        """Check all scores of a certificate in one look at the table, and note the digests if it has any."""
        deciding = {*certificate.deciding, float(rounded(certificate.rule.anomaly_from, self.score_type))}
        found = sorted({at for at in self._found.values() if at.score in deciding})
        row = self._look([at.score for at in found], hashed=True)
        for place, at in enumerate(found):
            if self._counted_at(row, place) != (at.below, _ends(at)):
                raise InputError(CHANGED)
        parts = self._source.parts
        if hashed := f"{parts[0]}_hash_high" in row:
            halves = ([row[f"{name}_hash_{half}"] for half in ("high", "low")] for name in parts)
            whole = (map(checks.whole_cell, pair) for pair in halves)
            self.hash_sums = tuple((high << 32) + low for high, low in whole)
        return hashed

    def auc(self, normal: Population, anomalous: Population) -> Auc | None:
        """Return the largest AUC that agrees with the answers; see `Survey.largest_auc`."""
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
        """Return the counts at some scores, after checking that no part has changed its size."""
        for row in self._ask(self._source.counts(self._marks, scores, hashed=hashed))[:1]:
            if tuple(checks.whole_cell(row[name]) for name in self._source.parts) == self.sizes:
                return row
        raise InputError(CHANGED)

    def _counted_at(self, row: Row, place: int) -> tuple[tuple[int, ...], ...]:
        ends, parts = ("below", "up_to"), self._source.parts
        return tuple(tuple(checks.whole_cell(row[f"{name}_{end}_{place}"]) for name in parts) for end in ends)


class RemoteTraffic(Remote):
    """Traffic in a database by the state of each point."""

    def _divided(self, rows: list[Row], anomaly_label: str | None) -> tuple[Marks, Sequence[int]]:
        columns = checks.TrafficColumns(self._source.score, self._source.label)
        review = columns.review
        texts = [] if review is None else [_label_in(row) for row in rows]
        states = [columns.part_of(str(review), one) for one in texts] or [columns.start] * len(rows)
        counts = (checks.whole_cell(row["points"]) for row in rows), map(_missing_in, rows)
        sizes, self.unscored = columns.counted(zip(states, *counts, strict=True))
        found = [(one, row["label"]) for one, row in zip(states, rows, strict=True)]
        return [[text for one, text in found if one == part] for part in (0, 1)], (sizes[2], *sizes[:2])

    def populations(self) -> dict[Population, int | None]:
        return dict(zip((STATES[2], *STATES[:2]), self.sizes, strict=True))


def _label_in(row: Row) -> str | None:
    return None if checks.whole_cell(row["unlabelled"]) else checks.without_case(row["label"])


def _missing_in(row: Row) -> int:
    return checks.whole_cell(row["missing"]) + checks.whole_cell(row["nan"])


def _ends(at: ScoreAtRank) -> tuple[int, ...]:
    """Return how many scores of each part are not greater than this one."""
    return tuple(below + equal for below, equal in zip(at.below, at.equal, strict=True))


def _divided(text: str) -> Iterator[list[tuple[str, ...]]]:
    """Yield the answers in a text, each with its header, which ends in the name of the tag."""
    answer: list[tuple[str, ...]] = []
    try:
        for row in csv.reader(text.splitlines(keepends=True), strict=True):
            if row and row[-1] == TAG and answer:
                yield answer
                answer = []
            if row:
                answer.append(tuple(row))
    except csv.Error as error:
        raise InputError(f"the answers are not CSV ({error}); use psql --csv or similar") from error
    if answer:
        yield answer


def checked(statement: Statement, answer: Sequence[Sequence[str]], name: str) -> list[Row]:
    """Return the rows of an answer, after checking that it is the whole answer to this statement."""
    again = "remove the file of answers and start again"
    if answer and tuple(answer[0]) != statement.names:
        raise InputError(
            f"{name} must have the columns {','.join(statement.names)}, got {quoted(','.join(answer[0]))};"
            f" give CSV with a header for each statement in turn, or {again}"
        )
    for row in answer[1:]:
        if len(row) != len(statement.names):
            raise InputError(f"{name} is cut off at {quoted(','.join(row))}; {again}")
        if row[-1] != statement.tag:
            raise InputError(
                f"{name} belongs to another statement; use the same options every time, or {again}"
            )
    return [dict(zip(statement.names, row, strict=True)) for row in answer[1:]]
