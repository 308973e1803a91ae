"""What is a number is the same for Python and for DuckDB, to the last bit."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.tables.columns import (
    anomaly_marks,
    number,
    refuse_scores_of,
    require_columns,
    spellings,
    without_case,
)
from pac_wrap.tables.files.text_format import Token, check_delimiter, is_json, known_as
from pac_wrap.tables.sql import number_sql
from support.strategies import refusal

NUMBERS = [
    *("0", "-0.0", "1", "+5", ".5", "5.", "-.5e-3", "1E5", "00012", " 7 ", "\t8\n", "4.9e-324", "1e-400"),
    *(
        "inf",
        "-INF",
        "+Infinity",
        "nan",
        "-NaN",
        "+nan",
        "1e400",
        "-1e400",
        "9" * 400,
        "1.7976931348623159e308",
    ),
    "0.1000000000000000055511151231257827021181583404541015625",
]
NONE = [
    *(
        "x",
        " ",
        "1_000",
        "true",
        "0x10",
        "0b1",
        "1.0d",
        "1.5f",
        "1,5",
        "1 000",
        "nan(7)",
        "nan()",
        "infin",
        "+-5",
    ),
    *("--5", "1e", "e5", ".", "-", "1__0", "_1", "1_", "\u0661", "\xa01", "1'000", "NULL", "NA", "1\x001"),
]


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def by_duckdb(connection: duckdb.DuckDBPyConnection, text: str) -> float | None:
    found = connection.execute(f"SELECT {number_sql('t')} FROM (SELECT ?::VARCHAR AS t)", [text]).fetchone()
    assert found is not None
    value: float | None = found[0]
    return value


@pytest.mark.parametrize(
    ("wanted", "columns", "near"),
    [
        ("score", ["id", "raw_score", "anomaly_score"], "anomaly_score"),
        ("score", ["outlier_score", "raw_score"], "outlier_score"),
        ("score", ["raw_score", "id"], "raw_score"),
        ("score", ["anomaly_score", "scores"], "scores"),
        ("score", ["anomaly_score", "SCORE"], "SCORE"),
        ("forst", ["lof", "forest"], "forest"),
        ("lof", ["id", "score_lof"], "score_lof"),
        ("ab", ["table"], None),
    ],
)
def test_the_column_that_is_likely_meant_is_suggested(
    wanted: str, columns: list[str], near: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        require_columns([wanted], columns)
    hint = "" if near is None else f"did you mean {near!r}? "
    assert str(caught.value) == f"there is no column {wanted!r}; {hint}the columns are {', '.join(columns)}"


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers(text: str, connection: duckdb.DuckDBPyConnection) -> None:
    assert repr(number(text)) == repr(float(text)) == repr(by_duckdb(connection, text))


@pytest.mark.parametrize("text", NONE)
def test_everything_else_is_none(text: str, connection: duckdb.DuckDBPyConnection) -> None:
    assert number(text) is None
    assert by_duckdb(connection, text) is None


@given(st.text("0123456789.+-eE_ infINFatyx(", min_size=1, max_size=8))
def test_duckdb_agrees_on_texts_that_look_like_numbers(text: str) -> None:
    assert repr(number(text)) == repr(by_duckdb(duckdb.default_connection(), text))


def test_labels_are_compared_as_texts_that_every_engine_writes_alike() -> None:
    assert anomaly_marks([("0", 990), ("1", 10)], "label", None) == ("1", "1.0", "true")
    assert anomaly_marks([("fault", 10), ("ok", 990)], "state", "Fault") == ("fault",)
    assert spellings("1") == ("1", "1.0")
    assert spellings("Böse") == ("Böse", "böse", "BÖSE")
    dotted = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}"
    assert (without_case("Fault"), without_case(dotted)) == ("fault", dotted)


def test_what_a_table_of_text_is_told_by() -> None:
    assert (is_json(b'{"score": 1}'), is_json(b"[id],score")) == (True, False)
    assert check_delimiter("tab") == "\t"
    values = "7.0", Token("7.0"), Token("1e2"), True, Token("NaN")
    assert [known_as(one) for one in values] == ["7.0", "7", "100", "true", None]


def test_a_whole_number_beyond_all_doubles_is_infinite_as_its_text_is() -> None:
    assert (number(10**400), number(-(10**400))) == (float("1" + "0" * 400), float("-1" + "0" * 400))
    assert number([1]) is None


def test_of_two_tables_the_one_with_the_wrong_score_is_named() -> None:
    wrong = {"a": [["1"]], "b": [["2", "x"]]}
    assert refusal(lambda: refuse_scores_of(wrong, "s", "abstain")).startswith("b: ")
    assert not refusal(lambda: refuse_scores_of({"b": wrong["b"]}, "s", "abstain")).startswith("b: ")
