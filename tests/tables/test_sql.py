from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import InputError, Rule, Verdict
from pac_wrap.base.floats import ScoreType, rounding_edge
from pac_wrap.method.rule import Thresholds
from pac_wrap.tables.sql import Dialect, prediction_set_sql, quote_name, quote_text, verdict_sql
from support.tables import empty_database

TINY, HUGE = 5e-324, 1.7976931348623157e308
RULES = {
    "overlapping": Thresholds(0.7, 0.30000000000000004),
    "separated": Thresholds(0.1, 1 / 3),
    "single": Thresholds(0.1 + 0.2, 0.1 + 0.2),
    "FPR only": Thresholds(0.7, None),
    "FNR only": Thresholds(None, 0.3),
    "FPR only, vacuous": Thresholds(inf, None),
    "FNR only, vacuous": Thresholds(None, -inf),
    "vacuous": Thresholds(inf, -inf),
    "never an alarm": Thresholds(inf, 0.3),
    "never cleared": Thresholds(0.7, -inf),
    "ends": Thresholds(-HUGE, inf),
    "tiny": Thresholds(TINY, -TINY),
}
SETS = {(True, False): "{0}", (False, True): "{1}", (True, True): "{0,1}", (False, False): "{}"}
HOSTILE = "a\"b`c'd; DROP TABLE t; --"


def probes(rule: Thresholds) -> list[float]:
    ends = [end for end in (rule.alarm_from, rule.clear_below) if end is not None]
    near = [beside for end in ends for beside in (nextafter(end, -inf), end, nextafter(end, inf))]
    return [*near, -inf, -1.0, -0.0, 0.0, 0.5, 2.0, HUGE, inf]


def expected(rule: Thresholds) -> list[tuple[int, str]]:
    scores = probes(rule)
    sets = [SETS[bool(zero), bool(one)] for zero, one in rule.prediction_sets(scores)]
    return [*zip(rule.rule.verdicts(scores).tolist(), sets, strict=True), (-1, "{0,1}"), (-1, "{0,1}")]


def before_rounding(thresholds: Thresholds, kind: ScoreType) -> Thresholds:
    """Return the thresholds that say of a score what these say of it rounded to a type: eq. (26)."""
    edges = (
        # inf stays: it means never, also for what rounds to inf
        edge if edge is None or edge == inf else rounding_edge(edge, kind)
        for edge in (thresholds.alarm_from, thresholds.clear_below)
    )
    return Thresholds(*edges)


def select(rule: Thresholds, column: str, dialect: Dialect, kind: ScoreType = "float64") -> str:
    verdict = verdict_sql(rule.rule.before_rounding(kind), column, dialect)
    return f"SELECT {verdict}, {prediction_set_sql(before_rounding(rule, kind), column, dialect)} FROM t"


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_duckdb_agrees_with_the_rule_to_the_last_bit(rule: Thresholds) -> None:
    with empty_database() as connection:
        connection.execute(f"CREATE TABLE t (id INTEGER, {quote_name(HOSTILE)} DOUBLE)")
        rows = list(enumerate([*probes(rule), nan, None]))
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        found = connection.execute(select(rule, HOSTILE, "duckdb") + " ORDER BY id").fetchall()
    assert found == expected(rule)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_postgres_agrees_with_the_rule_to_the_last_bit(rule: Thresholds, postgresql: Any) -> None:
    with postgresql.transaction(force_rollback=True), postgresql.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t (id INTEGER, {quote_name(HOSTILE, 'postgres')} DOUBLE PRECISION)")
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate([*probes(rule), nan, None])))
        cursor.execute(select(rule, HOSTILE, "postgres") + " ORDER BY id")
        assert cursor.fetchall() == expected(rule)


NARROW = {
    "ties at 0.3": Thresholds(nextafter(float(np.float32(0.3)), inf), float(np.float32(0.3))),
    "single": Thresholds(0.5, 0.5),
    "the largest": Thresholds(nextafter(float(np.finfo(np.float32).max), inf), inf),
    "the least": Thresholds(-HUGE, -float(np.finfo(np.float32).max)),
    "zero": Thresholds(TINY, 0.0),
    "never": Thresholds(inf, -inf),
}


def narrow_probes(rule: Thresholds) -> list[float]:
    """Return doubles beside the edges, and doubles that overflow."""
    return [*probes(before_rounding(rule, "float32")), 0.3, 0.30000001192092896, 1e39, -1e39, 1e-50, -1e-50]


@pytest.mark.parametrize("rule", NARROW.values(), ids=list(NARROW))
@pytest.mark.parametrize("kind", ["REAL", "DOUBLE PRECISION"])
def test_postgres_decides_rounded_and_unrounded_scores_alike(
    kind: str, rule: Thresholds, postgresql: Any
) -> None:
    wide = narrow_probes(rule)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.array(wide).astype(np.float32)
    verdicts = rule.rule.verdicts(narrow).tolist()
    given_scores = narrow.astype(float).tolist() if kind == "REAL" else wide
    with postgresql.transaction(force_rollback=True), postgresql.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t (id INTEGER, s {kind})")
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate(given_scores)))
        cursor.execute(select(rule, "s", "postgres", "float32") + " ORDER BY id")
        assert [row[0] for row in cursor.fetchall()] == verdicts


@pytest.mark.parametrize("rule", NARROW.values(), ids=list(NARROW))
@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_duckdb_decides_rounded_and_unrounded_scores_alike(kind: str, rule: Thresholds) -> None:
    wide = narrow_probes(rule)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.array(wide).astype(np.float32)
    columns = {"id": np.arange(len(wide)), "s": narrow if kind == "FLOAT" else np.array(wide)}
    with empty_database() as connection:
        connection.register("t", columns)
        found = connection.execute(select(rule, "s", "duckdb", "float32") + " ORDER BY id")
        assert [row[0] for row in found.fetchall()] == rule.rule.verdicts(narrow).tolist()


def test_narrow_columns_are_widened_before_they_are_compared() -> None:
    rule = Rule(0.1, 0.1)
    narrow = np.array([0.1], dtype=np.float32)
    with empty_database() as connection:
        connection.execute("CREATE TABLE t AS SELECT CAST(0.1 AS FLOAT) AS s")
        found = connection.execute(f"SELECT {verdict_sql(rule, 's')} FROM t").fetchone()
    assert found == (rule.verdicts(narrow)[0],)


def test_spark_has_its_own_quotes() -> None:
    text = verdict_sql(Rule(0.3, 0.7), "a`b", "spark")
    assert "isnan(CAST(`a``b` AS DOUBLE))" in text
    assert '"' not in text


@given(st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_any_name_and_text_survive_quoting(text: str) -> None:
    with empty_database() as connection:
        found = connection.execute(f"SELECT {quote_text(text)} AS {quote_name(text)}")
        assert found.fetchall() == [(text,)]
        assert found.description is not None


def test_unknown_dialects_are_refused() -> None:
    with pytest.raises(InputError, match="dialect must be one of 'duckdb', 'postgres', 'spark'"):
        verdict_sql(Rule(0.3, 0.7), "s", "oracle")  # type: ignore[arg-type]  # what a typo would do


def test_abstention_is_the_code_of_the_verdict() -> None:
    assert f"ELSE {int(Verdict.ABSTAIN)}" in verdict_sql(Rule(0.3, 0.7), "s")


def test_quotes_of_each_dialect() -> None:
    assert (quote_name('a"b'), quote_name("a`b", "spark")) == ('"a""b"', "`a``b`")
    assert quote_text("it's") == "'it''s'"
    assert quote_text("a\\b", "postgres") == "E'a\\\\b'"
    assert quote_text("a\\b", "ansi") == "U&'a\\\\b'"
