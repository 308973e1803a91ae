"""SQL expressions: names, texts and exact numbers, scores and labels of any type, and the rule as a CASE."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, Literal, NamedTuple

from pac_wrap.base.arguments import check_choice
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.method.rule import SETS, Rule
from pac_wrap.method.thresholds import Thresholds

Dialect = Literal["duckdb", "postgres", "spark", "ansi"]
DIALECTS: Final = ("duckdb", "postgres", "spark", "ansi")
DOUBLE: Final[dict[Dialect, str]] = {
    "duckdb": "DOUBLE",
    "postgres": "DOUBLE PRECISION",
    "spark": "DOUBLE",
    "ansi": "DOUBLE PRECISION",
}
# DuckDB also takes 1_000, +-5 and nan(7) for numbers
_STRANGE: Final = ("_", "+-", "(")


def quote_name(name: str, dialect: Dialect = "duckdb") -> str:
    """Return a column name quoted for a dialect.

    >>> print(quote_name('a"b'), quote_name("a`b", "spark"))
    "a""b" `a``b`
    """
    mark = "`" if dialect == "spark" else '"'
    _require_unicode(name)
    return mark + name.replace(mark, 2 * mark) + mark


def quote_text(text: str, dialect: Dialect = "duckdb") -> str:
    """Return a text as an SQL literal for a dialect.

    PostgreSQL may be set to take a backslash for an escape, and other databases do; a text with one is
    written so that it is the same text either way, or none at all.

    >>> print(quote_text("it's"), quote_text("a\\\\b", "postgres"), quote_text("a\\\\b", "ansi"))
    'it''s' E'a\\\\b' U&'a\\\\b'
    """
    _require_unicode(text)
    if dialect == "spark":  # where two quotes in a row end one text and begin another
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    mark = {"postgres": "E", "ansi": "U&"}.get(dialect, "") if "\\" in text else ""
    plain = text.replace("\\", "\\\\") if mark else text
    return f"{mark}'" + plain.replace("'", "''") + "'"


def _require_unicode(text: str) -> None:
    """Refuse half a character, which is what bytes that are not UTF-8 become in an argument."""
    if not is_unicode(text):
        raise InputError(f"{text!a} is not UTF-8, as SQL and its files are; use another name")


def quote_number(value: float, double: str = "DOUBLE") -> str:
    """Return a number as an exact SQL expression: it travels as text, since engines round bare literals.

    >>> print(quote_number(0.1), quote_number(-inf))
    CAST('0.1' AS DOUBLE) CAST('-Infinity' AS DOUBLE)
    """
    text = repr(value) if abs(value) < inf else "Infinity" if value > 0 else "-Infinity"
    return f"CAST('{text}' AS {double})"


def between(expression: str, bounds: Iterable[tuple[float, float]]) -> str:
    """Return the condition that an expression lies between the numbers of some pair.

    >>> print(between("s", [(0.5, 1.0)]))
    (s BETWEEN CAST('0.5' AS DOUBLE) AND CAST('1.0' AS DOUBLE))
    """
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


def one_of(text: str, values: Sequence[str], dialect: Dialect = "duckdb") -> str:
    """Return the condition that a text is one of some values."""
    return f"{text} IN ({', '.join(quote_text(value, dialect) for value in values)})"


def nan_sql(score: str, dialect: Dialect) -> str:
    """Return the condition that a double is NaN."""
    return {
        # DuckDB's isnan trusts the statistics of a Parquet file, which leave NaN out; texts tell
        "duckdb": f"CAST({score} AS VARCHAR) IN ('nan', '-nan')",
        "postgres": f"{score} = CAST('NaN' AS {DOUBLE[dialect]})",
        "spark": f"isnan({score})",
        # some hold it equal to itself and greater than all numbers
        "ansi": f"({score} <> {score} OR ({score} > 0 AND -{score} > 0))",
    }[dialect]


class Compared(NamedTuple):
    """What is compared with thresholds: the condition that it is missing, the double itself, and its type."""

    missing: str
    score: str
    double: str = "DOUBLE"

    @classmethod
    def column(cls, name: str, dialect: Dialect) -> "Compared":
        """Return a column of numbers in any database of a dialect."""
        check_choice("dialect", dialect, DIALECTS)
        quoted, double = quote_name(name, dialect), DOUBLE[dialect]
        score = f"CAST({quoted} AS {double})"
        return cls(f"{quoted} IS NULL OR {nan_sql(score, dialect)}", score, double)

    @classmethod
    def number(cls, score: str) -> "Compared":
        """Return a double in a connection of ours: it trusts no statistics, so `isnan` is right, and fast."""
        return cls(f"{score} IS NULL OR isnan({score})", score)


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
    alarm = [] if rule.anomaly_from == inf else [(">=", rule.anomaly_from, "1")]
    if rule.single:
        return _case(column, dialect, "-1", alarm, "0", margin)
    return _case(column, dialect, "-1", [("<", rule.normal_below, "0"), *alarm], "-1", margin)


def prediction_set_sql(exclusions: Thresholds, column: str | Compared, dialect: Dialect = "duckdb") -> str:
    """Return the expression that gives the labels still possible, as a text: {0}, {1}, {0,1} or {}.

    >>> print(prediction_set_sql(Thresholds(alarm_from=0.7, clear_below=0.3), "s"))
    CASE
      WHEN "s" IS NULL OR CAST(CAST("s" AS DOUBLE) AS VARCHAR) IN ('nan', '-nan') THEN '{0,1}'
      WHEN CAST("s" AS DOUBLE) < CAST('0.3' AS DOUBLE) THEN '{0}'
      WHEN CAST("s" AS DOUBLE) >= CAST('0.7' AS DOUBLE) THEN '{1}'
      ELSE '{0,1}'
    END
    """
    none, normal, anomalous, unknown = (f"'{text}'" for text in SETS)
    alarm, clear = exclusions.alarm_from, exclusions.clear_below
    if clear is None:
        cases = [] if alarm in (None, inf) else [(">=", alarm, anomalous)]
        return _case(column, dialect, unknown, cases, unknown)
    if alarm is None:
        return _case(column, dialect, unknown, [("<", clear, normal)], unknown)
    low, high = sorted((alarm, clear))
    cases = [("<", low, normal)] + ([] if alarm == inf else [(">=", high, anomalous)])
    between = none if clear > alarm else unknown
    return _case(column, dialect, unknown, cases, between)


def _case(
    column: str | Compared,
    dialect: Dialect,
    missing: str,
    cases: list[tuple[str, float, str]],
    otherwise: str,
    margin: str = "",
) -> str:
    absent, score, double = Compared.column(column, dialect) if isinstance(column, str) else column
    lines = [f"WHEN {absent} THEN {missing}"]
    lines += [f"WHEN {score} {sign} {quote_number(value, double)} THEN {then}" for sign, value, then in cases]
    # the name of a column may hold line ends of its own
    return f"\n{margin}".join(["CASE", *(f"  {line}" for line in lines), f"  ELSE {otherwise}", "END"])
