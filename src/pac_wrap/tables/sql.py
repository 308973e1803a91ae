"""Scores, labels and rules as SQL: exact numbers, quoted names, and the verdict of a row or of its group."""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from pac_wrap.base.arguments import check_choice
from pac_wrap.base.text import is_unicode, quoted
from pac_wrap.errors import InputError
from pac_wrap.method.groups.values import Group, text_of, texts_of
from pac_wrap.method.rule import SETS, Rule, Thresholds
from pac_wrap.tables.columns import AUDITS, REVIEWS

if TYPE_CHECKING:
    from pac_wrap.method.groups.certificate import GroupCertificate

Dialect = Literal["duckdb", "postgres", "spark", "ansi"]
DOUBLE: Final[dict[Dialect, str]] = {
    "duckdb": "DOUBLE",
    "postgres": "DOUBLE PRECISION",
    "spark": "DOUBLE",
    "ansi": "DOUBLE PRECISION",
}
TEXT: Final[dict[Dialect, str]] = {
    "duckdb": "VARCHAR",
    "postgres": "TEXT",
    "spark": "STRING",
    "ansi": "VARCHAR(1000)",
}
# DuckDB also takes 1_000, +-5 and nan(7) for numbers
_STRANGE: Final = ("_", "+-", "(")
# with more groups an expression is too long for some databases
MOST_BRANCHES: Final = 1_000
# a time with a fraction of a second, as Python writes it
_FRACTION: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")
# rows of one INSERT
_TOGETHER: Final = 500
# the ends of a group's rule and of its prediction sets, as columns of a row; no table has such
ENDS: Final = ("pac-wrap low", "pac-wrap high", "pac-wrap alarm", "pac-wrap clear")


def quote_name(name: str, dialect: Dialect = "duckdb") -> str:
    """Return a column name quoted for a dialect."""
    mark = "`" if dialect == "spark" else '"'
    _require_unicode(name)
    return mark + name.replace(mark, 2 * mark) + mark


def quote_text(text: str, dialect: Dialect = "duckdb") -> str:
    """Return a text as an SQL literal for a dialect."""
    _require_unicode(text)
    if dialect == "spark":  # where two quotes in a row end one text and begin another
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    # some databases, and PostgreSQL by a setting, take a backslash for an escape: this text is the same
    # either way, or an error
    mark = {"postgres": "E", "ansi": "U&"}.get(dialect, "") if "\\" in text else ""
    plain = text.replace("\\", "\\\\") if mark else text
    return f"{mark}'" + plain.replace("'", "''") + "'"


def _require_unicode(text: str) -> None:
    """Refuse half a character; an argument whose bytes are not UTF-8 holds such halves."""
    if not is_unicode(text):
        raise InputError(f"names and texts in SQL must be UTF-8, got {text!a}; use another name")


def quote_number(value: float, double: str = "DOUBLE") -> str:
    """Return a number as an exact SQL expression: it travels as text, since engines round bare literals."""
    text = repr(value) if abs(value) < inf else "Infinity" if value > 0 else "-Infinity"
    return f"CAST('{text}' AS {double})"


def between(expression: str, bounds: Iterable[tuple[float, float]]) -> str:
    """Return the condition that an expression lies between the numbers of some pair."""
    pairs = (f"{expression} BETWEEN {quote_number(low)} AND {quote_number(high)}" for low, high in bounds)
    return f"({' OR '.join(pairs)})"


def number_sql(text: str) -> str:
    """Return DuckDB's expression for `columns.number`: NULL where a text is NULL or no number."""
    strange = " OR ".join(f"contains({text}, '{part}')" for part in _STRANGE)
    return f"CASE WHEN NOT ({strange}) THEN TRY_CAST({text} AS DOUBLE) END"


def score_sql(column: str, kind: str) -> str:
    """Return a column of a DuckDB type as doubles, NULL where it is no number."""
    if kind in ("VARCHAR", "JSON"):
        return number_sql(text_sql(column, kind))
    if kind.endswith("HUGEINT"):  # DuckDB rounds it wrongly, but not its text
        return f"CAST(CAST({quote_name(column)} AS VARCHAR) AS DOUBLE)"
    return f"CAST({quote_name(column)} AS DOUBLE)"


def text_sql(column: str, kind: str) -> str:
    """Return a column of a DuckDB type, JSON as the text that it stands for."""
    return quote_name(column) if kind != "JSON" else f"({quote_name(column)} ->> '$')"


def label_sql(label: str) -> str:
    """Return a column of labels as the texts they are compared as."""
    return without_case_sql(f"CAST({quote_name(label)} AS VARCHAR)")


def without_case_sql(text: str, dialect: Dialect = "duckdb") -> str:
    """Return the expression for `columns.without_case`: of ASCII alone, each character is one byte."""
    size = "octet_length" if dialect == "spark" else "strlen"
    return f"CASE WHEN {size}({text}) = length({text}) THEN lower({text}) ELSE {text} END"


def state_sql(review: str | None, audit: str | None = None, dialect: Dialect = "duckdb") -> str:
    """Return the number of a point's state from its columns of review and audit; NULL if one is wrong."""
    codes = []
    for column, known in ((review, REVIEWS), (audit, AUDITS)):
        none, text = known[""], without_case_sql(f"CAST({column} AS {TEXT[dialect]})", dialect)
        cases = (f"WHEN {one_of(text, [way], dialect)} THEN {code}" for way, code in known.items())
        codes += [f"CASE WHEN {column} IS NULL THEN {none} {' '.join(cases)} END"] if column else [str(none)]
    return " + ".join(codes)


def one_of(text: str, values: Sequence[str], dialect: Dialect = "duckdb") -> str:
    """Return the condition that a text is one of some values."""
    return f"{text} IN ({', '.join(quote_text(value, dialect) for value in values)})"


def nan_sql(score: str, dialect: Dialect) -> str:
    """Return the SQL condition that a double is NaN."""
    return {
        # DuckDB's isnan trusts the statistics of a Parquet file, which ignore NaN; texts show it
        "duckdb": f"CAST({score} AS VARCHAR) IN ('nan', '-nan')",
        "postgres": f"{score} = CAST('NaN' AS {DOUBLE[dialect]})",
        "spark": f"isnan({score})",
        # some hold it equal to itself and greater than all numbers
        "ansi": f"({score} <> {score} OR ({score} > 0 AND -{score} > 0))",
    }[dialect]


# what is compared with thresholds: the condition that it is missing, and the double itself
Compared = tuple[str, str]


def compared_column(name: str, dialect: Dialect, table: str = "") -> Compared:
    """Return a column of numbers in any database of a dialect."""
    check_choice("dialect", dialect, tuple(DOUBLE))
    column = table + quote_name(name, dialect)
    score = f"CAST({column} AS {DOUBLE[dialect]})"
    return f"{column} IS NULL OR {nan_sql(score, dialect)}", score


def compared_number(score: str) -> Compared:
    """Return a double in a connection of ours: it trusts no statistics, so `isnan` is right, and fast."""
    return f"{score} IS NULL OR isnan({score})", score


def _verdict(missing: str, cases: Iterable[tuple[str, int]], otherwise: int = -1, margin: str = "") -> str:
    """Return the expression for the verdict of the first condition that holds; -1 for a missing score."""
    lines = [f"  WHEN {condition} THEN {verdict}" for condition, verdict in ((missing, -1), *cases)]
    # not split into lines: the name of a column may hold line ends of its own
    return f"\n{margin}".join(["CASE", *lines, f"  ELSE {otherwise}", "END"])


def _prediction_set(missing: str, normal: str, anomalous: str) -> str:
    """Return the expression for the possible labels as a text, from the conditions for each label."""
    return (
        f"CASE WHEN {missing} OR ({normal} AND {anomalous}) THEN '{SETS[3]}' WHEN {normal} THEN '{SETS[1]}'"
        f" WHEN {anomalous} THEN '{SETS[2]}' ELSE '{SETS[0]}' END"
    )


def verdict_sql(rule: Rule, column: str | Compared, dialect: Dialect = "duckdb", margin: str = "") -> str:
    """Return the expression that gives 1 (anomaly), 0 (normal) or -1 (abstain).

    A margin stands before all its lines but the first.

    >>> print(verdict_sql(Rule(normal_below=0.3, anomaly_from=0.7), "s"))
    CASE
      WHEN "s" IS NULL OR CAST(CAST("s" AS DOUBLE) AS VARCHAR) IN ('nan', '-nan') THEN -1
      WHEN CAST("s" AS DOUBLE) < CAST('0.3' AS DOUBLE) THEN 0
      WHEN CAST("s" AS DOUBLE) >= CAST('0.7' AS DOUBLE) THEN 1
      ELSE -1
    END
    """
    missing, score = compared_column(column, dialect) if isinstance(column, str) else column
    low, high = (quote_number(end, DOUBLE[dialect]) for end in (rule.normal_below, rule.anomaly_from))
    normal = [] if rule.single else [(f"{score} < {low}", 0)]
    alarm = [] if rule.anomaly_from == inf else [(f"{score} >= {high}", 1)]
    return _verdict(missing, [*normal, *alarm], 0 if rule.single else -1, margin)


def prediction_set_sql(exclusions: Thresholds, column: str | Compared, dialect: Dialect = "duckdb") -> str:
    """Return the expression that gives the labels still possible, as a text: {0}, {1}, {0,1} or {}."""
    missing, score = compared_column(column, dialect) if isinstance(column, str) else column
    alarm, clear = exclusions.alarm_from, exclusions.clear_below
    normal = anomalous = "1 = 1"
    if alarm is not None and alarm < inf:
        normal = f"{score} < {quote_number(alarm, DOUBLE[dialect])}"
    if clear is not None:
        anomalous = f"{score} >= {quote_number(clear, DOUBLE[dialect])}"
    return _prediction_set(missing, normal, anomalous)


def answers_sql(compared: Compared, dialect: Dialect = "duckdb") -> tuple[str, str]:
    """Return the verdict and the prediction set of a row that has the `ENDS` of its group, or NULLs."""
    low, high, alarm, clear = (quote_name(end, dialect) for end in ENDS)
    (missing, score), never = compared, quote_number(inf)
    cases = (f"{low} = {never} OR {score} < {low}", 0), (f"{high} < {never} AND {score} >= {high}", 1)
    normal = f"({alarm} IS NULL OR isnan({alarm}) OR {alarm} = {never} OR {score} < {alarm})"
    anomalous = f"({clear} IS NULL OR isnan({clear}) OR {score} >= {clear})"
    return _verdict(missing, cases), _prediction_set(missing, normal, anomalous)


def group_verdict_sql(
    certificate: "GroupCertificate", score: str, group: str, dialect: Dialect = "duckdb"
) -> str:
    """Return the expression for the verdict of a row by the rule of its group; equal rules share a branch."""
    branches: dict[Rule, list[str | None]] = {}
    for texts, rule in _rules(certificate, dialect):
        if (rule.normal_below, rule.anomaly_from) != (-inf, inf):
            branches.setdefault(rule, []).extend(texts)
    if len(branches) > MOST_BRANCHES:
        raise InputError(
            f"one expression holds at most {MOST_BRANCHES:,} rules, got {len(branches):,}; use --join-table"
        )
    column, lines = f"CAST({quote_name(group, dialect)} AS {TEXT[dialect]})", ["CASE"]
    for rule, texts in branches.items():
        known = [_literal(text, dialect) for text in texts if text is not None]
        tests = [f"{column} IN ({', '.join(known)})"] if known else []
        lines.append(f"  WHEN {' OR '.join([*tests, *[f'{column} IS NULL'] * (None in texts)])} THEN")
        lines.append(f"    {verdict_sql(rule, score, dialect, ' ' * 4)}")
    # groups that were never seen, and groups without a promise, are undecided
    return "\n".join([*lines, "  ELSE -1", "END"] if branches else ["-1"])


def join_sql(
    certificate: "GroupCertificate", score: str, group: str, table: str, dialect: Dialect = "duckdb"
) -> Iterator[str]:
    """Yield statements that create a table of rules by the text of a group, and join it with the scores."""
    name, text, double = quote_name(table, dialect), TEXT[dialect], DOUBLE[dialect]
    yield (
        f"CREATE TABLE {name} (group_key {text}, normal_below {double}, anomaly_from {double},"
        " all_normal BOOLEAN, never BOOLEAN);"
    )
    rows = []
    for texts, rule in _rules(certificate, dialect):
        both = rule.normal_below, rule.anomaly_from
        ends = [*(quote_number(end, double) for end in both), *(str(end == inf).upper() for end in both)]
        names = ("'n'" if one is None else _literal(f"v{one}", dialect) for one in texts)
        rows += [f"({key}, {', '.join(ends)})" for key in names]
    for start in range(0, len(rows), _TOGETHER):
        yield f"INSERT INTO {name} VALUES\n  " + ",\n  ".join(rows[start : start + _TOGETHER]) + ";"
    column = f"scores.{quote_name(group, dialect)}"
    missing, number = compared_column(score, dialect, "scores.")
    key = f"CASE WHEN {column} IS NULL THEN 'n' ELSE 'v' || CAST({column} AS {text}) END"
    normal = f"rules.all_normal OR {number} < rules.normal_below", 0
    alarm = f"NOT rules.never AND {number} >= rules.anomaly_from", 1
    verdict = _verdict(f"rules.never IS NULL OR {missing}", (normal, alarm), margin="  ")
    yield (
        f"SELECT scores.*,\n  {verdict} AS verdict\n"
        f"FROM scores LEFT JOIN {name} AS rules\n  ON rules.group_key = {key};"
    )


def _rules(certificate: "GroupCertificate", dialect: Dialect) -> Iterator[tuple[list[str | None], Rule]]:
    """Yield the texts of each group with its rule; other spellings only if no other group has them."""
    own = set(texts_of(certificate.groups))
    # what a group never seen follows comes last
    for value, low, high in zip(certificate.groups, *certificate.rules[:, :-1].tolist(), strict=True):
        first, *others = spellings(value, dialect)
        yield [first, *(text for text in others if text not in own)], Rule(low, high)


def spellings(group: Group, dialect: Dialect) -> tuple[str | None, ...]:
    """Return the texts by which a database may know a group, which it compares as a text."""
    text = text_of(group)
    if isinstance(group, str) and _FRACTION.fullmatch(group):  # whose last zeros a database leaves out
        return tuple(dict.fromkeys([text, group.rstrip("0")]))
    if isinstance(group, bool) or not isinstance(group, int | float) or float(group) != group:
        return (text,)
    found = [text, _written(repr(float(group)), dialect)]
    if float(single := np.float32(group)) == group:
        found.append(_written(str(single), dialect, single=True))
    return tuple(dict.fromkeys(found))


def _written(number: str, dialect: Dialect, *, single: bool = False) -> str:
    """Return a float as a database writes it: with the fewest digits, and its own form of exponents."""
    if dialect not in ("postgres", "spark"):
        return repr(float(number))
    least, most, after = (-4, 6 if single else 15, "") if dialect == "postgres" else (-3, 7, ".0")
    sign, digits, _ = Decimal(number).normalize().as_tuple()
    power = Decimal(number).adjusted()
    minus = "-" if sign else ""
    if least <= power < most:
        plain = f"{abs(Decimal(number)).normalize():f}"
        return minus + (plain if "." in plain else plain + after)
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    mantissa = f"{minus}{first}.{rest}" if rest else f"{minus}{first}{after}"
    return f"{mantissa}e{power:+03d}" if dialect == "postgres" else f"{mantissa}E{power}"


def _literal(text: str, dialect: Dialect) -> str:
    """Return a text as a literal without invisible characters, which a terminal or a pager may change."""
    if "\x00" in text:
        raise InputError(f"a group in SQL must not contain a zero byte, got {quoted(text)}; rename it")
    plain = quote_text(text, dialect)
    if text.isprintable():
        return plain
    if dialect == "spark":
        return "".join(one if one.isprintable() else _code(one, "\\u{:04x}", "\\U{:08x}") for one in plain)
    if dialect == "ansi":
        signs = plain.removeprefix("U&")  # in which backslashes are doubled already
        codes = (sign if sign.isprintable() else _code(sign, "\\{:04x}", "\\+{:06x}") for sign in signs)
        return f"U&{''.join(codes)}"
    pieces: list[str] = []
    for seen, part in groupby(text, str.isprintable):
        signs = "".join(part)
        pieces += [quote_text(signs, dialect)] if seen else [f"chr({ord(sign)})" for sign in signs]
    return f"({' || '.join(pieces)})"


def _code(sign: str, short: str, long: str) -> str:
    return (short if ord(sign) < 1 << 16 else long).format(ord(sign))
