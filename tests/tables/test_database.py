"""A table that stays in its database gets the certificate that its scores would get in memory."""

import csv
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import Guarantee, InputError, UpsideDownWarning, calibrate_labelled
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificate import Certificate
from pac_wrap.report.account import account_of
from pac_wrap.report.render import as_json
from pac_wrap.tables.database import Source, UnansweredError, calibrate, from_answers
from pac_wrap.tables.sql import Dialect, quote_name
from support import sparksession
from support.examples import examples
from support.slow import slow_but
from support.strategies import RULES, refusal
from support.tables import empty_database

HOSTILE = "a\"b`c'd; DROP TABLE t; --"
WIDE = {"duckdb": "DOUBLE", "postgres": "DOUBLE PRECISION"}
NARROW = {"duckdb": "FLOAT", "postgres": "REAL"}
LOOSE = Guarantee(0.2, 0.2, 0.1, 0.1)


class Database:
    """A table in a database, and what runs statements there."""

    def __init__(self, name: Dialect, connection: Any) -> None:
        self.name, self.connection, self.statements = name, connection, 0

    def __call__(self, statement: str) -> list[Any]:
        self.statements += 1
        return list(self.connection.execute(statement).fetchall())

    def fill(self, scores: Any, labels: Any, label_type: str = "INTEGER", **names: str) -> None:
        names = {"table": "t", "score": "s", "label": "y"} | names
        table, score, label = (quote_name(name, self.name) for name in names.values())
        kind = (NARROW if np.asarray(scores).dtype == np.float32 else WIDE)[self.name]
        self.connection.execute(f"DROP TABLE IF EXISTS {table}")
        self.connection.execute(f"CREATE TABLE {table} ({score} {kind}, {label} {label_type})")
        rows = list(zip(np.asarray(scores).tolist(), np.asarray(labels).tolist(), strict=True))
        if self.name == "duckdb" and np.asarray(scores).dtype.kind == "f":  # many at once
            self.connection.register("given", {"s": np.asarray(scores), "y": np.asarray(labels)})
            self.connection.execute(f"INSERT INTO {table} SELECT s, y FROM given")
            return
        if self.name == "postgres":
            with self.connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copied:
                for row in rows:
                    copied.write_row(row)
        elif rows:
            self.connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)


@pytest.fixture(params=["duckdb", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "duckdb":
        with empty_database() as opened:
            yield Database("duckdb", opened)
    else:
        server = request.getfixturevalue("postgresql")
        with server.transaction(force_rollback=True):
            yield Database("postgres", server)


def drawn(n: int, shift: float, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.3).astype(int)
    return rng.normal(size=n) + shift * labels, labels


def tied(n: int) -> tuple[Any, Any]:
    scores, labels = drawn(n, 1.5)
    scores = np.round(scores, 1)
    scores[:8] = [inf, inf, -inf, -0.0, 0.0, 5e-324, -5e-324, 1.7976931348623157e308]
    return scores, labels


TABLES = {
    "apart": drawn(2000, 6.0),
    "overlapping": drawn(2000, 1.0),
    "ties and infinities": tied(1000),
    "all at infinity": (np.full(400, inf), np.arange(400) % 2),
    "half at minus infinity": (np.repeat([-inf, -inf, -inf, 1.0, 2.0, inf], 100), np.repeat([0, 1], 300)),
    "float32": (drawn(800, 2.0)[0].astype(np.float32), drawn(800, 2.0)[1]),
    "tiny": ([0.5, 0.25, 1.0], [0, 0, 1]),
    "no anomalies": (np.linspace(0, 1, 200), np.zeros(200, dtype=int)),
    "no normal points": (np.linspace(0, 1, 200), np.ones(200, dtype=int)),
}


def in_memory(scores: Any, labels: Any, **options: Any) -> Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        made: Certificate = calibrate_labelled(scores, labels, **options)
        return made


@pytest.mark.parametrize("options", slow_but(3, RULES.values()), ids=[*RULES])
@pytest.mark.parametrize("table", TABLES.values(), ids=[*TABLES])
def test_the_certificate_is_that_of_memory_byte_for_byte(
    table: tuple[Any, Any], options: dict[str, Any], database: Database
) -> None:
    database.fill(*table)
    found = calibrate(database, "t", score="s", label="y", dialect=database.name, **options)
    assert found.bare.to_json() == in_memory(*table, **options).to_json()
    assert database.statements <= 6


@pytest.mark.parametrize("options", slow_but(2, RULES.values()), ids=[*RULES])
def test_standard_sql_gives_everything_but_the_digests(options: dict[str, Any], database: Database) -> None:
    for scores, labels in (tied(1000), drawn(2000, 6.0)):
        database.fill(scores, labels)
        found = calibrate(database, "t", score="s", label="y", dialect="ansi", **options)
        whole = in_memory(scores, labels, **options)
        assert found.fpr.digest is found.fnr.digest is None
        pairs = zip(found.clauses, whole.clauses, strict=True)
        clauses = tuple(replace(one, digest=other.digest) for one, other in pairs)
        assert replace(found, clauses=clauses) == whole
        assert Certificate.from_json(found.to_json()) == found


values = st.sampled_from([-inf, -1.5, -0.0, 0.0, 5e-324, 0.1, 0.2, 0.3, 0.1 + 0.2, 1e300, inf]) | st.floats(
    allow_nan=False, width=64
)


@pytest.fixture(scope="module")
def in_duckdb() -> Iterator[Database]:
    with empty_database() as opened:
        yield Database("duckdb", opened)


@settings(max_examples=examples(400))
@given(
    rows=st.lists(st.tuples(values, st.integers(0, 1)), min_size=1, max_size=40),
    options=st.sampled_from([*RULES.values()]),
)
def test_any_scores_give_the_certificate_of_memory(
    rows: list[Any], options: dict[str, Any], in_duckdb: Database
) -> None:
    scores, labels = map(np.array, zip(*rows, strict=True))
    in_duckdb.fill(scores, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        found = calibrate(in_duckdb, "t", score="s", label="y", dialect="duckdb", **options)
    assert found.bare.to_json() == in_memory(scores, labels, **options).to_json()


@pytest.mark.parametrize(
    ("names", "kind", "anomaly_label"),
    [
        ((False, True), "BOOLEAN", None),
        (("0", "1.0"), "VARCHAR(10)", None),
        (("ok", "Fault"), "VARCHAR(10)", "fault"),
        (("it's", 'a "b", c\nd'), "VARCHAR(30)", 'a "B", c\nd'),
        (("gut", "BÖSE"), "VARCHAR(10)", "böse"),
        ((1, -1), "SMALLINT", "-1"),
    ],
)
def test_labels_of_any_type(names: Any, kind: str, anomaly_label: str | None, database: Database) -> None:
    scores, labels = drawn(500, 4.0)
    database.fill(scores, [names[label] for label in labels], kind)
    found = calibrate(database, "t", score="s", label="y", anomaly_label=anomaly_label, dialect=database.name)
    assert found.bare.to_json() == in_memory(scores, labels).to_json()


def test_a_label_may_be_written_in_several_ways(database: Database) -> None:
    scores, labels = drawn(500, 4.0)
    ways = (("ok", "OK", "Ok"), ("fault", "Fault", "FAULT"))
    database.fill(scores, [ways[label][place % 3] for place, label in enumerate(labels)], "VARCHAR(10)")
    for dialect in (database.name, "ansi"):
        found = calibrate(database, "t", score="s", label="y", anomaly_label="fault", dialect=dialect)
        assert found.rule == in_memory(scores, labels).rule
        assert (found.fpr.n, found.fnr.n) == (np.sum(labels == 0), np.sum(labels == 1))


def test_hostile_names_are_only_names(database: Database) -> None:
    scores, labels = drawn(500, 4.0)
    database.fill(scores, labels, table=HOSTILE, score=HOSTILE, label=f"{HOSTILE}.")
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    found = calibrate(database, quoted, score=HOSTILE, label=f"{HOSTILE}.", dialect=database.name)
    assert found.bare.to_json() == in_memory(scores, labels).to_json()


def test_a_table_may_stand_in_a_schema(database: Database) -> None:
    scores, labels = drawn(500, 4.0)
    database.connection.execute("CREATE SCHEMA apart")
    database.fill(scores, labels)
    database.connection.execute("CREATE VIEW apart.points AS SELECT * FROM t")
    found = calibrate(database, "apart.points", score="s", label="y", dialect=database.name)
    assert found.bare.to_json() == in_memory(scores, labels).to_json()
    for name in ("", ".t", "t.", 'a"b', '"a"b', "a..b"):
        assert "the table must be a name such as" in refusal(Source, name, "s", "y")


def test_scores_may_be_whole_numbers_and_decimals(database: Database) -> None:
    scores, labels = drawn(900, 3.0)
    for kind, digits in (("INTEGER", 0), ("DECIMAL(10, 2)", 2)):
        expected = np.round(10 * scores, digits)
        database.fill(expected, labels)
        database.connection.execute(f"CREATE VIEW v{digits} AS SELECT CAST(s AS {kind}) AS s, y FROM t")
        found = calibrate(database, f"v{digits}", score="s", label="y", dialect=database.name)
        assert found.bare.to_json() == in_memory(expected, labels).to_json()
        database.connection.execute(f"DROP VIEW v{digits}")


@pytest.mark.parametrize("dialect", [None, "ansi"])
def test_what_is_wrong_with_a_table_is_one_sentence(database: Database, dialect: Dialect | None) -> None:
    def refused(scores: Any, labels: Any, kind: str = "VARCHAR(10)", label: str | None = None) -> str:
        database.fill(np.array(scores, dtype=object), np.array(labels, dtype=object), kind)
        return refusal(
            lambda: calibrate(
                database, "t", score="s", label="y", anomaly_label=label, dialect=dialect or database.name
            )
        )

    assert refused([], []) == "the table t has no rows; pass one with scores"
    assert refused([0.1, None, nan], ["0", "1", "1"]) == (
        "column 's' must not be empty or NaN, got 2 of 3; drop those rows or make the detector score them"
    )
    assert refused([0.1, 0.2], ["0", None]) == "column 'y' has 1 row without a label; label or drop them"
    assert refused([0.1, 0.2], ["0", "2"]) == (
        "column 'y' must be 0/1 or true/false, got '2'; name the label of anomalies with --anomaly-label"
    )
    assert refused([0.1] * 3, ["ok", "fine", "bad"], label="bad") == (
        "column 'y' must hold 'bad' and one other value, got bad, fine, ok; skip the rows of a third one"
        " with --leave-out"
    )
    assert refused([0.1], ["ok"], label="bad").startswith("column 'y' must hold 'bad' and one other value")


def test_a_table_that_changes_between_two_statements_is_refused(database: Database) -> None:
    for change in ("INSERT INTO t VALUES (99, 0)", "UPDATE t SET s = s + 0.01", "DELETE FROM t WHERE s < 0"):
        for moment in (1, 2, 3):
            database.fill(*drawn(2000, 6.0))
            seen = 0

            def changing(statement: str, moment: int = moment, change: str = change) -> list[Any]:
                nonlocal seen
                seen += 1
                if seen == moment + 1:
                    database.connection.execute(change)
                return database(statement)

            run = partial(calibrate, changing, "t", score="s", label="y", dialect=database.name)
            if moment == 1 and change.startswith("UPDATE"):
                # all scores changed before any of them was looked at
                scores, labels = drawn(2000, 6.0)
                assert run() == in_memory(scores + 0.01, labels)
            else:
                assert refusal(run).startswith("the table has changed between two statements")


def test_scores_that_are_upside_down_are_warned_about(database: Database) -> None:
    scores, labels = drawn(2000, -2.0)
    database.fill(scores, labels)
    with pytest.warns(UpsideDownWarning, match="anomalies score lower than normal points"):
        calibrate(database, "t", score="s", label="y", dialect=database.name)
    database.fill(*drawn(2000, 0.3))
    calibrate(database, "t", score="s", label="y", dialect=database.name)


def test_too_few_digits_are_refused(postgresql: Any) -> None:
    with postgresql.transaction(force_rollback=True):
        database = Database("postgres", postgresql)
        database.fill(*drawn(2000, 6.0))
        postgresql.execute("SET LOCAL extra_float_digits = 0")

        def as_text(statement: str) -> list[Any]:
            # as psql prints it; psycopg asks for all digits by itself
            inner = statement.rstrip(";")
            columns = f"SELECT * FROM ({inner}) AS found"
            with (
                postgresql.cursor() as cursor,
                cursor.copy(f"COPY ({columns}) TO STDOUT (FORMAT csv)") as out,
            ):
                return list(csv.reader(io.StringIO(b"".join(bytes(part) for part in out).decode())))

        message = refusal(lambda: calibrate(as_text, "t", score="s", label="y"))
        assert message.startswith("the database must write all 17 digits of scores, got 0.1 + 0.2 as '0.3'")
        postgresql.execute("SET LOCAL extra_float_digits = 1")
        found = calibrate(as_text, "t", score="s", label="y")
        assert found == in_memory(*drawn(2000, 6.0))


def replayed(database: Database, source: Source, request: Request) -> tuple[str, Certificate]:
    """Return the text of all answers, each asked for by those before, and the certificate."""
    text = ""
    while True:
        try:
            return text, from_answers(text, request, source)
        except UnansweredError as error:
            out = io.StringIO()
            writer = csv.writer(out)
            writer.writerow(error.statement.names)
            writer.writerows(database(error.statement.text))
            text += out.getvalue()


@pytest.fixture
def answered() -> Iterator[tuple[str, Source, Certificate]]:
    with empty_database() as opened:
        database = Database("duckdb", opened)
        database.fill(*drawn(2000, 6.0))
        source = Source("t", "s", "y")
        text, found = replayed(database, source, Request())
        assert found == in_memory(*drawn(2000, 6.0))
        yield text, source, found


def test_the_same_answers_lead_to_the_same_end(answered: tuple[str, Source, Certificate]) -> None:
    text, source, found = answered
    assert from_answers(text, Request(), source) == found
    assert from_answers(text.replace("\r\n", "\n\n"), Request(), source) == found


def test_answers_to_other_questions_are_told_apart(answered: tuple[str, Source, Certificate]) -> None:
    text, source, _ = answered
    strict = Request(Guarantee(max_fpr=0.01))
    assert "answer 2 belongs to another statement" in refusal(lambda: from_answers(text, strict, source))
    for other in (Source("u", "s", "y"), Source("t", "r", "y"), Source("t", "s", "z")):
        message = refusal(from_answers, text, Request(), other)
        assert message == (
            "answer 1 belongs to another statement; use the same options every time, or remove the file of"
            " answers and start again"
        )
    headers = [place for place in range(len(text)) if text[place:].startswith(("score,", "normal,"))]
    moved = text[headers[0] :] + text[: headers[0]]
    assert "answer 1 must have the columns" in refusal(lambda: from_answers(moved, Request(), source))
    more = text + text[headers[-1] :]
    assert "answers, got more; start again" in refusal(lambda: from_answers(more, Request(), source))


def test_every_end_that_is_cut_off_is_noticed(answered: tuple[str, Source, Certificate]) -> None:
    """No part of the answers gives a certificate: it is the next statement, or a sentence."""
    text, source, _ = answered
    lines = [place for place, sign in enumerate(text) if sign == "\n"]
    ends = {*range(0, len(text) - 2, 7), *(place + step for place in lines for step in (-2, -1, 0, 1))}
    asked = set()
    for end in sorted(ends - {len(text), len(text) - 1, len(text) - 2}):
        try:
            from_answers(text[:end], Request(), source)
        except UnansweredError as error:
            asked.add(error.number)
        except InputError:
            continue
        else:
            raise AssertionError(text[:end])
    assert asked == {1, 2, 3, 4}


@cache
def some_answers() -> tuple[str, Source, Certificate]:
    with empty_database() as opened:
        database = Database("duckdb", opened)
        database.fill(*drawn(300, 2.0))
        source = Source("t", "s", "y")
        text, found = replayed(database, source, Request())
    return text, source, found


@given(data=st.data())
def test_answers_that_were_changed_never_give_another_certificate_unnoticed(data: st.DataObject) -> None:
    text, source, found = some_answers()
    rows = list(csv.reader(io.StringIO(text)))
    row = data.draw(st.integers(0, len(rows) - 1))
    cell = data.draw(st.integers(0, len(rows[row]) - 1))
    before = rows[row][cell]
    rows[row][cell] = data.draw(st.sampled_from(["", "x", "-1", "0", "7", "nan", "1e999", "NULL", "None"]))
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    try:
        other = from_answers(out.getvalue(), Request(), source)
    except (InputError, UnansweredError):
        return
    column = rows[max(i for i in range(row + 1) if rows[i][-1] == "statement")][cell]
    # the type of the column and the hashes are what only the database knows
    assert before == rows[row][cell] or other == found or "hash" in column or column == "score_type"


def ends(row: list[str]) -> list[str]:
    """Return how many scores of each class lie up to that of a row."""
    return [str(int(row[1]) + int(row[3])), str(int(row[2]) + int(row[4]))]


@pytest.mark.parametrize(
    "edit",
    {
        "a row less": lambda rows: rows[:3] + rows[4:],
        "a row twice": lambda rows: [*rows[:3], rows[2], *rows[3:]],
        "two rows the other way round": lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]],
        "no rows": lambda rows: rows[:1],
        "a class too large": lambda rows: [*rows[:-1], [rows[-1][0], "99999", *rows[-1][2:]]],
        "more below than before": lambda rows: [*rows[:2], [*rows[2][:3], "999", *rows[2][4:]], *rows[3:]],
        "a row for nothing": lambda rows: [*rows, ["1e9", "0", "0", *ends(rows[-1]), *rows[-1][5:]]],
        "a score that is none": lambda rows: [rows[0], ["NaN", *rows[1][1:]], *rows[2:]],
        "no whole number": lambda rows: [rows[0], [rows[1][0], "-1", *rows[1][2:]], *rows[2:]],
    }.values(),
)
def test_rows_that_no_table_gives_are_refused(edit: Callable[[Any], Any]) -> None:
    text, source, _ = some_answers()
    rows = list(csv.reader(io.StringIO(text)))
    headers = [place for place, row in enumerate(rows) if row[-1] == "statement"]
    out = io.StringIO()
    csv.writer(out).writerows(rows[: headers[1]] + edit(rows[headers[1] : headers[2]]))
    assert "start again" in refusal(lambda: from_answers(out.getvalue(), Request(), source))


def test_a_count_that_no_rank_tells_is_asked_for(database: Database) -> None:
    scores = np.repeat([0.0, 1.0, inf], 100)
    labels = np.repeat([0, 0, 1], 100)
    database.fill(scores, labels)
    found = calibrate(database, "t", score="s", label="y", overlap="hold_fnr", dialect=database.name)
    assert found.bare.to_json() == in_memory(scores, labels, overlap="hold_fnr").to_json()


def test_what_is_no_csv_is_said() -> None:
    source = Source("t", "s", "y")
    aligned = " label | points \n-------+--------\n 0 | 12\n"
    assert "answer 1 must have the columns" in refusal(lambda: from_answers(aligned, Request(), source))
    assert "are not CSV" in refusal(lambda: from_answers('label,"points\n', Request(), source))
    with pytest.raises(UnansweredError, match=r"statement 1 .* has no answer yet"):
        from_answers("\n\n", Request(), source)


def test_a_certificate_without_digests_says_what_it_cannot_show() -> None:
    scores, labels = drawn(1000, 5.0)
    with empty_database() as opened:
        database = Database("duckdb", opened)
        database.fill(scores, labels)
        found = calibrate(database, "t", score="s", label="y", dialect="ansi")
    verified = found.verify(scores[labels == 0], scores[labels == 1])
    assert verified
    assert not verified.digested
    assert str(verified).endswith("the certificate has no digest of them")
    assert not found.verify(scores[labels == 0] + 1.0, scores[labels == 1])
    account = account_of(found, scores[labels == 0], scores[labels == 1])
    assert "none: the database could not compute it" in as_json(account)


def test_one_column_cannot_be_both() -> None:
    message = refusal(lambda: calibrate(lambda _: [], "t", score="s", label="s"))
    assert message.startswith("column 's' cannot be both the score and the label")


def test_an_unknown_dialect_is_refused() -> None:
    message = refusal(lambda: calibrate(lambda _: [], "t", dialect="oracle"))  # type: ignore[arg-type]
    assert message.startswith("dialect must be one of 'duckdb', 'postgres', 'spark', 'ansi'")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark", "ansi"])
def test_each_dialect_limits_the_labels_in_its_own_words(dialect: Dialect) -> None:
    asked: list[str] = []

    def run(query: str) -> Any:
        asked.append(query)
        raise KeyError("no database")

    with pytest.raises(KeyError):
        calibrate(run, "t", score="s", label="y", dialect=dialect)
    assert ("FETCH FIRST " in asked[0], "LIMIT " in asked[0]) == (dialect == "ansi", dialect != "ansi")


@pytest.mark.slow
@sparksession.quiet
def test_spark_computes_the_same_in_its_own_sql(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    with sparksession.session("local[2]", tmp_path) as spark:
        for scores, (good, bad), word in (
            (tied(1000)[0], ("it's", "a\\b'c"), "A\\b'c"),
            (drawn(1000, 6.0)[0].astype(np.float32), ("0", "1"), None),
        ):
            labels = np.arange(scores.size) % 3 == 0
            frame = pd.DataFrame({"s`x": scores, "y": np.where(labels, bad, good)})
            spark.createDataFrame(frame).createOrReplaceTempView("t")

            def execute(statement: str) -> list[Any]:
                return [tuple(row) for row in spark.sql(statement).collect()]

            found = calibrate(execute, "t", score="s`x", label="y", anomaly_label=word, dialect="spark")
            assert found.bare.to_json() == in_memory(scores, labels.astype(int)).to_json()


def test_the_range_of_the_scores_is_noted() -> None:
    with empty_database() as database:
        rows = "SELECT (i - 300) / 4 AS score, i > 900 AS label FROM range(1000) AS r (i)"
        database.execute(f"CREATE TABLE t AS {rows}")
        found = calibrate(lambda text: database.execute(text).fetchall(), "t", dialect="duckdb")
    assert found.provenance is not None
    assert (found.provenance.lowest, found.provenance.highest) == (-75.0, 174.75)
