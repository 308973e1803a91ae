"""The rules of groups as SQL: one CASE with a branch for each rule, or a table of rules and its join."""

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import groupby
from math import inf
from typing import Final

import numpy as np

from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.values import Group, text_of, texts_of
from pac_wrap.method.rule import SETS, Rule
from pac_wrap.tables.sql.expressions import (
    DOUBLE,
    Compared,
    Dialect,
    nan_sql,
    quote_name,
    quote_number,
    quote_text,
    verdict_sql,
)

# beyond so many groups an expression is longer than databases like
MOST_BRANCHES: Final = 1_000
# a time with a fraction of a second, as Python writes it
_FRACTION: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")
# rows of one INSERT
_TOGETHER: Final = 500
_TEXT: Final[dict[Dialect, str]] = {
    "duckdb": "VARCHAR",
    "postgres": "TEXT",
    "spark": "STRING",
    "ansi": "VARCHAR(1000)",
}


def group_verdict_sql(
    certificate: GroupCertificate, score: str, group: str, dialect: Dialect = "duckdb"
) -> str:
    """Return the expression that gives 1 (anomaly), 0 (normal) or -1 (abstain), by the rule of a row's group.

    Groups with the same rule share a branch. A group is compared as a text, a number also as the text that
    the database has for a double, since a column of whole numbers with missing ones often becomes doubles,
    and for a float32. What a database writes otherwise is left undecided: times with a zone, and in some a
    float32 from 2^24 on.
    """
    branches: dict[Rule, list[str | None]] = {}
    for texts, rule in _rules(certificate, dialect):
        if (rule.normal_below, rule.anomaly_from) != (-inf, inf):
            branches.setdefault(rule, []).extend(texts)
    if len(branches) > MOST_BRANCHES:
        raise InputError(
            f"{len(branches):,} rules are too many for one expression; make them a table with --join-table"
        )
    lines = ["CASE"]
    for rule, texts in branches.items():
        lines.append(f"  WHEN {_one_of(group, texts, dialect)} THEN")
        lines.append(f"    {verdict_sql(rule, score, dialect, ' ' * 4)}")
    # neither a group that was never seen nor one without a promise is decided
    return "\n".join([*lines, "  ELSE -1", "END"] if branches else ["-1"])


def join_sql(
    certificate: GroupCertificate, score: str, group: str, table: str, dialect: Dialect = "duckdb"
) -> Iterator[str]:
    """Yield the statements that make a table of rules, and the query that joins it, as texts.

    The query is for a table called `scores`; a group that is not among the rules is left undecided. Groups
    are joined by a key, their text after a letter, so that a missing one is equal to itself.
    """
    name, text, double = quote_name(table, dialect), _TEXT[dialect], DOUBLE[dialect]
    yield (
        f"CREATE TABLE {name} (group_key {text}, normal_below {double}, anomaly_from {double},"
        " all_normal BOOLEAN, never BOOLEAN);"
    )
    rows = [_row(text, rule, dialect) for texts, rule in _rules(certificate, dialect) for text in texts]
    for start in range(0, len(rows), _TOGETHER):
        yield f"INSERT INTO {name} VALUES\n  " + ",\n  ".join(rows[start : start + _TOGETHER]) + ";"
    column, number = (
        f"scores.{quote_name(group, dialect)}",
        f"CAST(scores.{quote_name(score, dialect)} AS {double})",
    )
    key = f"CASE WHEN {column} IS NULL THEN 'n' ELSE 'v' || CAST({column} AS {text}) END"
    missing = _missing(f"scores.{quote_name(score, dialect)}", number, dialect)
    verdict = _verdict(
        f"rules.never IS NULL OR {missing}",
        number,
        ("rules.all_normal", "rules.normal_below"),
        ("NOT rules.never", "rules.anomaly_from"),
        "\n    ",
    )
    yield (
        f"SELECT scores.*,\n  {verdict} AS verdict\n"
        f"FROM scores LEFT JOIN {name} AS rules\n  ON rules.group_key = {key};"
    )


# the ends of a group's rule and of its prediction sets, as columns of a row; no table has such
ENDS: Final = ("pac-wrap low", "pac-wrap high", "pac-wrap alarm", "pac-wrap clear")


def answers_sql(compared: Compared, dialect: Dialect = "duckdb") -> tuple[str, str]:
    """Return the verdict and the prediction set of a row that has the `ENDS` of its group, or NULLs."""
    low, high, alarm, clear = (quote_name(end, dialect) for end in ENDS)
    missing, score, never = compared.missing, compared.score, quote_number(inf)
    normal = f"({missing} OR {alarm} IS NULL OR isnan({alarm}) OR {alarm} = {never} OR {score} < {alarm})"
    anomalous = f"({missing} OR {clear} IS NULL OR isnan({clear}) OR {score} >= {clear})"
    return (
        _verdict(missing, score, (f"{low} = {never}", low), (f"{high} < {never}", high)),
        f"CASE WHEN {normal} AND {anomalous} THEN '{SETS[3]}' WHEN {normal} THEN '{SETS[1]}'"
        f" WHEN {anomalous} THEN '{SETS[2]}' ELSE '{SETS[0]}' END",
    )


def _verdict(
    missing: str, score: str, normal: tuple[str, str], anomaly: tuple[str, str], margin: str = " "
) -> str:
    """Return the verdict by ends that are expressions, each after whether it is always, or ever, reached."""
    lines = (
        f"WHEN {missing} THEN -1",
        f"WHEN {normal[0]} OR {score} < {normal[1]} THEN 0",
        f"WHEN {anomaly[0]} AND {score} >= {anomaly[1]} THEN 1",
        "ELSE -1",
    )
    return f"CASE{margin}{margin.join(lines)}{margin[:-2] or ' '}END"


def _rules(certificate: GroupCertificate, dialect: Dialect) -> Iterator[tuple[list[str | None], Rule]]:
    """Yield the texts of each group with its rule; a second text only if no other group has it."""
    own = set(texts_of(certificate.groups))
    # what a group never seen follows comes last
    for value, low, high in zip(certificate.groups, *certificate.rules[:, :-1].tolist(), strict=True):
        first, *others = spellings(value, dialect)
        yield [first, *(text for text in others if text not in own)], Rule(low, high)


def spellings(group: Group, dialect: Dialect) -> tuple[str | None, ...]:
    """Return the texts by which a database may know a group: a number has others in columns of floats.

    A database leaves out the last zeros of a fraction of a second.

    >>> spellings(7, "duckdb"), spellings(10**7, "spark"), spellings("7", "duckdb")
    (('7', '7.0'), ('10000000', '1.0E7'), ('7',))
    >>> spellings(0.10000000149011612, "duckdb"), spellings("2026-01-31 10:00:00.500000", "duckdb")[1]
    (('0.10000000149011612', '0.1'), '2026-01-31 10:00:00.5')
    """
    text = text_of(group)
    if isinstance(group, str) and _FRACTION.fullmatch(group):
        return tuple(dict.fromkeys([text, group.rstrip("0")]))
    if isinstance(group, bool) or not isinstance(group, int | float) or float(group) != group:
        return (text,)
    found = [text, _written(repr(float(group)), dialect)]
    if float(single := np.float32(group)) == group:
        found.append(_written(str(single), dialect, single=True))
    return tuple(dict.fromkeys(found))


def _written(number: str, dialect: Dialect, *, single: bool = False) -> str:
    """Return the text that a database has for a float: all have the fewest digits, and other exponents."""
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


def _row(text: str | None, rule: Rule, dialect: Dialect) -> str:
    double = DOUBLE[dialect]
    name = "'n'" if text is None else _literal(f"v{text}", dialect)
    ends = ", ".join(quote_number(end, double) for end in (rule.normal_below, rule.anomaly_from))
    everything, never = (str(end == inf).upper() for end in (rule.normal_below, rule.anomaly_from))
    return f"({name}, {ends}, {everything}, {never})"


def _one_of(group: str, texts: list[str | None], dialect: Dialect) -> str:
    column = _as_text(group, dialect)
    known = [_literal(text, dialect) for text in texts if text is not None]
    tests = [f"{column} IN ({', '.join(known)})"] if known else []
    return " OR ".join([*tests, *[f"{column} IS NULL"] * (None in texts)])


def _as_text(group: str, dialect: Dialect) -> str:
    return f"CAST({quote_name(group, dialect)} AS {_TEXT[dialect]})"


def _literal(text: str, dialect: Dialect) -> str:
    """Return a text as a literal in which nothing is invisible: a terminal or a pager may change that."""
    if "\x00" in text:
        raise InputError(f"the group {quoted(text)} holds a zero byte, which SQL has no text for; rename it")
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


def _missing(column: str, number: str, dialect: Dialect) -> str:
    return f"{column} IS NULL OR {nan_sql(number, dialect)}"
