"""The rule of a certificate as SQL: a CASE expression with exact floats; NaN and NULL are abstained."""

from collections.abc import Iterable
from math import inf
from typing import Final, Literal

from pac_wrap.errors import InputError
from pac_wrap.inputs import check_choice
from pac_wrap.thresholds import Thresholds

Dialect = Literal["duckdb", "postgres", "spark"]
DIALECTS: Final = ("duckdb", "postgres", "spark")


def quote_name(name: str, dialect: Dialect = "duckdb") -> str:
    """Return a column name quoted for a dialect.

    >>> print(quote_name('a"b'), quote_name("a`b", "spark"))
    "a""b" `a``b`
    """
    mark = "`" if dialect == "spark" else '"'
    _require_unicode(name)
    return mark + name.replace(mark, 2 * mark) + mark


def quote_text(text: str) -> str:
    """Return a text as an SQL literal.

    >>> print(quote_text("it's"))
    'it''s'
    """
    _require_unicode(text)
    return "'" + text.replace("'", "''") + "'"


def _require_unicode(text: str) -> None:
    """Refuse half a character, which is what bytes that are not UTF-8 become in an argument."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!a} is not UTF-8, as SQL and its files are; use another name") from None


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


def verdict_sql(rule: Thresholds, column: str, dialect: Dialect = "duckdb") -> str:
    """Return the expression that gives 1 (anomaly), 0 (normal) or -1 (abstain).

    >>> print(verdict_sql(Thresholds(alarm_from=0.7, clear_below=0.3), "s"))
    CASE
      WHEN "s" IS NULL OR CAST(CAST("s" AS DOUBLE) AS VARCHAR) IN ('nan', '-nan') THEN -1
      WHEN CAST("s" AS DOUBLE) < CAST('0.3' AS DOUBLE) THEN 0
      WHEN CAST("s" AS DOUBLE) >= CAST('0.7' AS DOUBLE) THEN 1
      ELSE -1
    END
    """
    if rule.single:
        tau = rule.clear_below if rule.alarm_from is None else rule.alarm_from
        assert tau is not None
        cases = [] if tau == inf else [(">=", tau, "1")]
        return _case(column, dialect, "-1", cases, "0")
    low, high = rule.ambiguity_region or (-inf, inf)
    cases = [("<", low, "0")] + ([] if rule.alarm_from == inf else [(">=", high, "1")])
    return _case(column, dialect, "-1", cases, "-1")


def prediction_set_sql(rule: Thresholds, column: str, dialect: Dialect = "duckdb") -> str:
    """Return the expression that gives the labels still possible, as a text: {0}, {1}, {0,1} or {}.

    >>> print(prediction_set_sql(Thresholds(alarm_from=0.7, clear_below=0.3), "s"))
    CASE
      WHEN "s" IS NULL OR CAST(CAST("s" AS DOUBLE) AS VARCHAR) IN ('nan', '-nan') THEN '{0,1}'
      WHEN CAST("s" AS DOUBLE) < CAST('0.3' AS DOUBLE) THEN '{0}'
      WHEN CAST("s" AS DOUBLE) >= CAST('0.7' AS DOUBLE) THEN '{1}'
      ELSE '{0,1}'
    END
    """
    unknown = "'{0,1}'"
    if rule.clear_below is None:
        cases = [] if rule.alarm_from in (None, inf) else [(">=", rule.alarm_from, "'{1}'")]
        return _case(column, dialect, unknown, cases, unknown)
    if rule.alarm_from is None:
        return _case(column, dialect, unknown, [("<", rule.clear_below, "'{0}'")], unknown)
    low, high = sorted((rule.alarm_from, rule.clear_below))
    cases = [("<", low, "'{0}'")] + ([] if rule.alarm_from == inf else [(">=", high, "'{1}'")])
    between = "'{}'" if rule.clear_below > rule.alarm_from else unknown
    return _case(column, dialect, unknown, cases, between)


def _case(
    column: str, dialect: Dialect, missing: str, cases: list[tuple[str, float, str]], otherwise: str
) -> str:
    check_choice("dialect", dialect, DIALECTS)
    name = quote_name(column, dialect)
    double = "DOUBLE PRECISION" if dialect == "postgres" else "DOUBLE"
    score = f"CAST({name} AS {double})"
    nan = {
        # DuckDB's isnan trusts a Parquet file's statistics, which leave NaN out; text does not lie
        "duckdb": f"CAST({score} AS VARCHAR) IN ('nan', '-nan')",
        "postgres": f"{score} = CAST('NaN' AS {double})",
        "spark": f"isnan({score})",
    }[dialect]
    lines = [f"WHEN {name} IS NULL OR {nan} THEN {missing}"]
    lines += [f"WHEN {score} {sign} {quote_number(value, double)} THEN {then}" for sign, value, then in cases]
    return "\n".join(["CASE", *(f"  {line}" for line in lines), f"  ELSE {otherwise}", "END"])
