"""The SQL that finds a certificate where the scores live: labels, scores at ranks, counts and hashes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from pac_wrap.base.arguments import check_choice
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import FIRST, FOURTH, SECOND, START, THIRD
from pac_wrap.ranks.memory import BOTH, Rank
from pac_wrap.tables.sql.expressions import (
    DIALECTS,
    DOUBLE,
    Dialect,
    nan_sql,
    one_of,
    quote_name,
    quote_number,
)

# a name of a table is one to three parts; a part with a dot or a quote stands in quotes, as in SQL
_PART: Final = r'"(?:[^"]|"")+"|[^."]+'
_LOW: Final = (1 << 32) - 1
# most different labels that come back; two are right, and each may be written in some ways
_LABELS: Final = 32
# the column that tells which statement an answer belongs to
TAG: Final = "statement"
# what tells a column of float32; standard SQL has nothing that does
_TYPE: Final[dict[Dialect, str]] = {
    "duckdb": "typeof({})",
    "postgres": "CAST(pg_typeof({}) AS VARCHAR)",
    "spark": "typeof({})",
    "ansi": "''",
}
_TEXT: Final[dict[Dialect, str]] = {
    "duckdb": "VARCHAR",
    "postgres": "VARCHAR",
    "spark": "STRING",
    "ansi": "VARCHAR(255)",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement to be run where the table is, and the columns of its answer, the last of which names it."""

    purpose: str
    steps: str
    columns: tuple[tuple[str, str], ...]
    rest: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return (*(name for name, _ in self.columns), TAG)

    @property
    def tag(self) -> str:
        """What the last column says in every row: an answer to anything else is told apart by it."""
        return sha256(self._text("").encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return self._text(self.tag)

    def _text(self, tag: str) -> str:
        columns = (*self.columns, (TAG, f"'{tag}'"))
        listed = ",\n".join(f"  {expression} AS {name}" for name, expression in columns)
        return f"{self.steps}\nSELECT\n{listed}\n{self.rest};"


@dataclass(frozen=True, slots=True)
class Source:
    """Two columns of a table in a database: what is to be asked of them, in the database's dialect.

    >>> Source("public.scores", "s", "y", "postgres").relation
    '"public"."scores"'
    """

    table: str
    score: str
    label: str
    dialect: Dialect = "duckdb"

    def __post_init__(self) -> None:
        check_choice("dialect", self.dialect, DIALECTS)
        if not re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART}))*", self.table):
            raise InputError(
                f"{quoted(self.table)} is not the name of a table; write schema.table, and a part with a dot"
                ' or quotes in it as SQL does: "my.table"'
            )

    @property
    def relation(self) -> str:
        """The table, quoted."""
        parts = [match[0] for match in re.finditer(_PART, self.table)]
        plain = [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in parts]
        return ".".join(quote_name(part, self.dialect) for part in plain)

    def labels(self) -> Statement:
        """Return the statement that counts the points of each label, with their range and what is missing."""
        kind = _TYPE[self.dialect].format(quote_name(self.score, self.dialect))
        columns = (
            ("label", "COALESCE(name, '')"),
            ("points", "COUNT(*)"),
            ("unlabelled", "COUNT(*) - COUNT(name)"),
            ("missing", "COUNT(*) - COUNT(score)"),
            ("nan", f"COUNT(CASE WHEN {nan_sql('score', self.dialect)} THEN 1 END)"),
            ("score_type", "MIN(kind)"),
            ("lowest", "MIN(score)"),
            ("highest", "MAX(score)"),
        )
        steps = (
            f"WITH points AS (\n  SELECT {self._score} AS score, {self._label} AS name, {kind} AS kind\n"
            f"  FROM {self.relation}\n)"
        )
        most = f"FETCH FIRST {_LABELS} ROWS ONLY" if self.dialect == "ansi" else f"LIMIT {_LABELS}"
        rest = f"FROM points\nGROUP BY name\nORDER BY name\n{most}"
        return Statement("labels, and what is missing", steps, columns, rest)

    def ranks(
        self, marks: Sequence[str], wanted: Iterable[Rank], low: float | None, high: float | None
    ) -> Statement:
        """Return the statement that finds the scores at some ranks among those between two, both exclusive.

        Its rows rise with the score; a database sorts those scores once for it.
        """
        bounds = [("score > ", low), ("score < ", high)]
        inside = [text + self._number(bound) for text, bound in bounds if bound is not None]
        near = f"\n  WHERE {' AND '.join(inside)}" if inside else ""
        # such whole numbers are compared faster than those that some databases add them up to
        below = "CAST(SUM({0}) OVER (ORDER BY score ROWS UNBOUNDED PRECEDING) AS BIGINT) - {0} AS {0}_below"
        steps = (
            f"WITH points AS (\n{self._points(marks)}\n), counted AS (\n"
            f"  SELECT score, {_count('mark = 0')} AS normal, {_count('mark = 1')} AS anomalous\n"
            f"  FROM points{near}\n  GROUP BY score\n), summed AS (\n"
            f"  SELECT score, normal, anomalous,\n    {below.format('normal')},\n"
            f"    {below.format('anomalous')}\n  FROM counted\n)"
        )
        columns = ("score", "normal", "anomalous", "normal_below", "anomalous_below")
        # what is printed with too few digits is told by this sum: 0.30000000000000004
        digits = f"{self._number(0.1)} + {self._number(0.2)}"
        rest = f"FROM summed\nWHERE {_holding(list(wanted))}\nORDER BY score"
        return Statement(
            "scores at ranks", steps, (*((name, name) for name in columns), ("digits", digits)), rest
        )

    @property
    def hashes(self) -> bool:
        """Whether hashes can be computed: standard SQL does not reach the bits of a double."""
        return self.dialect != "ansi"

    def counts(self, marks: Sequence[str], scores: Sequence[float], *, hashed: bool) -> Statement:
        """Return the statement that counts both classes, in all, below some scores and up to them.

        With their hashes, it is one look at all that a certificate rests on.
        """
        columns = [(name, _count(f"mark = {label}")) for label, name in enumerate(("normal", "anomalous"))]
        for number, score in enumerate(map(self._number, scores)):
            for label, name in enumerate(("normal", "anomalous")):
                columns.append((f"{name}_below_{number}", _count(f"mark = {label} AND score < {score}")))
                columns.append((f"{name}_up_to_{number}", _count(f"mark = {label} AND score <= {score}")))
        steps = f"WITH points AS (\n{self._points(marks)}\n)"
        hashed &= self.hashes
        if hashed:
            steps = f"{steps}{''.join(self._hashing())}"
            for label, name in enumerate(("normal", "anomalous")):
                for half in ("high", "low"):
                    total = f"COALESCE(SUM(CASE WHEN mark = {label} THEN {half} END), 0)"
                    columns.append((f"{name}_hash_{half}", total))
        return Statement("counts", steps, tuple(columns), f"FROM {'hashed' if hashed else 'points'}")

    @property
    def _score(self) -> str:
        return f"CAST({quote_name(self.score, self.dialect)} AS {DOUBLE[self.dialect]})"

    @property
    def _label(self) -> str:
        return f"CAST({quote_name(self.label, self.dialect)} AS {_TEXT[self.dialect]})"

    def _number(self, value: float) -> str:
        return quote_number(value, DOUBLE[self.dialect])

    def _points(self, marks: Sequence[str]) -> str:
        """Return the query for every point: its score, 0 for -0, and 1 if it is an anomaly, else 0."""
        anomalous = one_of(self._label, marks, self.dialect)
        return (
            f"  SELECT CASE WHEN {self._score} = 0 THEN 0 ELSE {self._score} END AS score,\n"
            f"    CASE WHEN {anomalous} THEN 1 ELSE 0 END AS mark\n  FROM {self.relation}"
        )

    def _hashing(self) -> Iterator[str]:
        """Yield the steps that hash each score with xxhash64, in two halves of 32 bits: decision 17.

        No product exceeds 49 bits, since databases refuse what overflows 63.
        """
        if self.dialect == "spark":
            yield _step(
                "bits", f"xxhash64(score) & {_LOW}", "shiftrightunsigned(xxhash64(score), 32)", "points"
            )
            yield _step("hashed", "low", "high", "bits")
            return
        # without it PostgreSQL writes each step into the next, many times over
        fence = " OFFSET 0" if self.dialect == "postgres" else ""
        first = "CAST(CAST(score AS BIT) AS UBIGINT)"
        if self.dialect == "postgres":
            first = "CAST(CAST('x' || encode(float8send(score), 'hex') AS BIT(64)) AS BIGINT)"
        yield f", bits AS (\n  SELECT mark, score, {first} AS bits FROM points{fence}\n)"
        halves = f"CAST(bits & {_LOW} AS BIGINT)", f"CAST((bits >> 32) & {_LOW} AS BIGINT)"
        steps = [halves, *_times(SECOND), _turned(31), *_times(FIRST)]
        steps += [(self._xor("low", START & _LOW), self._xor("high", START >> 32)), _turned(27)]
        steps += [*_times(FIRST, FOURTH), (self._xor("low", "high >> 1"), "high"), *_times(SECOND)]
        lower = f"((high << 3) + (low >> 29)) & {_LOW}"
        steps += [(self._xor("low", lower), self._xor("high", "high >> 29")), *_times(THIRD)]
        steps += [(self._xor("low", "high"), "high")]
        before = "bits"
        for number, (low, high) in enumerate(steps, 1):
            name = "hashed" if number == len(steps) else f"step_{number}"
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
        """Return half * (upper 2^16 + lower), of which 32 bits are right."""
        return f"{half} * {lower} + (({half} * {upper} & 65535) << 16)"

    high = f"{times('high', b, a)} + {times('low', d, c)} + (low * {b} >> 16) + {more >> 32}"
    yield f"{times('low', b, a)} + {more & _LOW}", high
    yield f"low & {_LOW}", f"(high + (low >> 32)) & {_LOW}"


def _turned(by: int) -> tuple[str, str]:
    """Return the step that moves bits up, those that fall off coming in below."""
    return (
        f"((low << {by}) + (high >> {32 - by})) & {_LOW}",
        f"((high << {by}) + (low >> {32 - by})) & {_LOW}",
    )


def _count(condition: str) -> str:
    return f"COUNT(CASE WHEN {condition} THEN 1 END)"


def _holding(wanted: list[Rank]) -> str:
    """Return the condition that a score is at some wanted rank.

    >>> print(_holding([Rank(0, 3)]))
    (normal_below < 3 AND 3 <= normal_below + normal)
    """
    sides = {0: ("normal",), 1: ("anomalous",), BOTH: ("normal", "anomalous")}
    conditions = []
    for label, names in sides.items():
        ranks = sorted(rank.k for rank in wanted if rank.label == label)
        if ranks:
            below = " + ".join(f"{name}_below" for name in names)
            found = f"{_next(ranks, below)} <= {below} + {' + '.join(names)}"
            conditions.append(f"({below} < {ranks[-1]} AND {found})")
    return "\n  OR ".join(conditions)


def _next(ranks: list[int], below: str) -> str:
    """Return the least of some ranks that lies above a count, if one does; halved, since they may be many."""
    if len(ranks) == 1:
        return str(ranks[0])
    middle = len(ranks) // 2
    lower, upper = _next(ranks[:middle], below), _next(ranks[middle:], below)
    return f"CASE WHEN {below} < {ranks[middle - 1]} THEN {lower} ELSE {upper} END"
