"""Groups in tables: the certificate of memory byte for byte, verdicts in order, and rules as SQL."""

from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from pac_wrap import GroupCertificate, Guarantee, InputError, UpsideDownWarning, calibrate_labelled
from pac_wrap.method.calibrate import Request
from pac_wrap.method.groups.calibrate import GroupRequest
from pac_wrap.method.groups.values import as_group
from pac_wrap.tables import calibrate as module
from pac_wrap.tables.calibrate import TableGroups
from pac_wrap.tables.decide import decide_groups_table, evaluate_groups_table, output_options
from pac_wrap.tables.sql import group_verdict_sql, join_sql, spellings
from pac_wrap.tables.table import found_files, open_found, open_table
from support.postgres import server
from support.tables import calibrate_groups_table, empty_database

# groups with too few labels are what many of these are about
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")


HOSTILE = [
    "plain",
    "it's",
    'say "no"',
    "'; DROP TABLE scores; --",
    "\\",
    "%s",
    "ü\u202e",
    "<script>",
    " ",
    "NULL",
]
ASKED = Guarantee(0.1, 0.1)


def drawn(rows: int = 4000, kind: Any = np.float64) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    label = (rng.random(rows) < 0.4).astype(int)
    score = np.round(rng.normal(3 * label, 1), 1)
    score[:3] = [np.inf, -np.inf, -0.0]
    name = rng.choice(np.array([*HOSTILE, None], dtype=object), rows, p=[0.5, *[0.049] * 9, 0.059])
    number = rng.integers(-2, 5, rows)
    return pd.DataFrame(
        {"score": score.astype(kind), "label": label, "name": name, "number": number, "low": "x", "value": 1}
    )


def written(frame: pd.DataFrame, folder: Path, ending: str) -> str:
    path = folder / f"scores.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "csv":
        frame.to_csv(path, index=False)
    else:
        texts = frame.assign(score=frame["score"].map(lambda one: one if np.isfinite(one) else str(one)))
        texts.to_json(path, orient="records", lines=True)
    return str(path)


def from_table(path: str, column: str, **options: Any) -> GroupCertificate:
    request = GroupRequest(Request(ASKED, options.pop("overlap", Request().overlap)), **options)
    with open_table([path], ["score", column], "label", passes=True) as table:
        return calibrate_groups_table(table, request, ("score", "label", column))


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("column", ["name", "number"])
def test_a_table_gives_the_certificate_of_memory(ending: str, column: str, tmp_path: Path) -> None:
    frame = drawn()
    found = from_table(written(frame, tmp_path, ending), column, together=True, pool=True)
    groups = frame[column] if ending == "parquet" or column == "name" else frame[column].astype(str)
    scores = frame["score"]
    again = calibrate_labelled(scores, frame["label"], ASKED, together=True, pool=True, by=groups)
    assert found.bare.to_json() == again.to_json()
    assert found.provenance is not None
    assert found.provenance.engine == "duckdb"


def test_every_strategy_and_type_of_score(tmp_path: Path) -> None:
    from pac_wrap.method.calibrate import as_strategy

    frame = drawn(1500, np.float32)
    path = written(frame, tmp_path, "parquet")
    for word in ("raise", "hold_fnr", "algorithm1", "abstain_always"):
        found = from_table(path, "number", overlap=as_strategy(word))
        again = calibrate_labelled(
            frame["score"].to_numpy(), frame["label"], ASKED, overlap=word, by=frame["number"]
        )
        assert found.score_type == "float32"
        assert found.bare.to_json() == again.to_json()


def test_groups_come_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = drawn(9000)
    path = written(frame, tmp_path, "parquet")
    whole = from_table(path, "number", pool=True)
    monkeypatch.setattr("pac_wrap.method.groups.calibrate.BLOCK", 100)

    def small(batches: Any, rows: int) -> Any:
        for columns in batches:
            for start in range(0, columns[0].size, 700):
                yield tuple(column[start : start + 700] for column in columns)

    monkeypatch.setattr(module, "gathered", small)
    assert from_table(path, "number", pool=True) == whole
    assert from_table(path, "name") == calibrate_labelled(
        frame["score"], frame["label"], ASKED, by=frame["name"]
    )


@pytest.mark.parametrize(
    ("ending", "target", "column"),
    [
        ("parquet", ".parquet", "number"),
        ("parquet", ".csv", "name"),
        ("parquet", ".jsonl", "number"),
        ("csv", ".parquet", "name"),
        ("csv", ".csv", "number"),
        ("csv", ".jsonl", "name"),
    ],
)
def test_rows_are_decided_in_order_by_their_own_rule(
    ending: str, target: str, column: str, tmp_path: Path
) -> None:
    frame = drawn(3000)
    known = frame[(frame["name"] != "\\") & (frame["number"] != 4)]
    certificate = calibrate_labelled(known["score"], known["label"], ASKED, pool=True, by=known[column])
    path, out = written(frame, tmp_path, ending), tmp_path / f"out{target}"
    with (
        found_files([path]) as found,
        open_found(found, ["score"], column, whole=True, output=out) as table,
    ):
        counted = decide_groups_table(table, certificate, ("score", column), out, output_options(out.name))
    read = f"SELECT * FROM '{out}'" if target != ".csv" else f"FROM read_csv('{out}', all_varchar = true)"
    with empty_database() as connection:
        result = connection.execute(read).df()
    expected = certificate.verdicts(frame["score"], frame[column])
    assert result["verdict"].astype(int).tolist() == expected.tolist()
    assert result["value"].astype(int).tolist() == frame["value"].tolist()
    assert list(result.columns) == [*frame.columns, "verdict", "prediction_set"]
    sets: dict[int, set[str]] = {row.verdict: set() for row in result.itertuples()}
    for row in result.itertuples():
        sets[row.verdict].add(row.prediction_set)
    assert {int(verdict): one for verdict, one in sets.items()}[1] == {"{1}"}
    unseen = frame[column] == ("\\" if column == "name" else 4)
    assert counted.unseen == unseen.sum() > 0
    assert (counted.alarms, counted.clears) == ((expected == 1).sum(), (expected == 0).sum())


def test_evaluation_by_group_is_that_of_memory(tmp_path: Path) -> None:
    frame = drawn()
    certificate = calibrate_labelled(frame["score"], frame["label"], ASKED, by=frame["number"])
    worse = frame.assign(label=np.where(frame["number"] == 2, 1 - frame["label"], frame["label"]))
    worse.loc[worse["number"] == 1, "number"] = 99
    path = written(worse, tmp_path, "parquet")
    with open_table([path], ["score", "number"], "label", passes=True) as table:
        found = evaluate_groups_table(TableGroups(table, ("score", "label", "number"), None), certificate)
    again = certificate.evaluate(worse["score"], worse["label"], worse["number"])
    assert (found.counts == again.counts).all()
    assert found.exceeded == again.exceeded
    assert {group for group, _ in found.exceeded} == {2}
    assert next(iter(found.worst_first()))[0] == 2
    assert found.unseen == (worse["number"] == 99).sum()
    assert found.together.err.n == len(worse)
    assert found.of(2).fpr.value > 0.5


@pytest.mark.parametrize(
    ("frame", "column", "words"),
    [
        (pd.DataFrame({"score": [1.0], "label": [0]}), "name", "there is no column 'name'"),
        (pd.DataFrame({"score": [1.0], "label": [0]}), "label", "cannot be the group as well"),
        (pd.DataFrame({"score": [None, 1.0], "label": [0, 1], "g": [1, 2]}), "g", "must not be empty or NaN"),
        (pd.DataFrame({"score": [1.0], "label": [7], "g": [1]}), "g", "must be 0/1"),
        (pd.DataFrame({"score": [1.0], "label": [0], "g": [[1]]}), "g", "must be texts"),
        (
            pd.DataFrame({"score": np.zeros(0), "label": np.zeros(0, int), "g": np.zeros(0, int)}),
            "g",
            "no rows",
        ),
    ],
)
def test_what_is_wrong_with_a_table_is_said(
    frame: pd.DataFrame, column: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        from_table(written(frame, tmp_path, "parquet"), column)


def test_too_many_groups_and_no_anomalies_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(drawn(300), tmp_path, "parquet")
    request = GroupRequest(Request(ASKED, anomaly_label="fault"))
    with (
        open_table([path], ["score", "number"], "label", passes=True) as table,
        pytest.raises(InputError, match="must hold 'fault'"),
    ):
        calibrate_groups_table(table, request, ("score", "label", "number"), "fault")
    monkeypatch.setattr(module, "MOST_GROUPS", 3)
    with pytest.raises(InputError, match="more than 3 groups"):
        from_table(path, "number")


def test_wider_scores_are_rounded_as_calibration_saw_them(tmp_path: Path) -> None:
    frame = drawn(2000, np.float32)
    certificate = calibrate_labelled(frame["score"], frame["label"], ASKED, by=frame["number"])
    path = written(frame.astype({"score": np.float64}), tmp_path, "parquet")
    request = GroupRequest(Request(ASKED))
    with open_table([path], ["score", "number"], "label", passes=True) as table:
        again = calibrate_groups_table(table, request, ("score", "label", "number"), score_type="float32")
    assert again == certificate


def test_columns_of_other_types_are_groups_too(tmp_path: Path) -> None:
    frame = drawn(300)
    frame["day"] = [date(2026, 1, 1 + place % 3) for place in range(300)]
    frame["share"] = np.where(frame["number"] == 1, np.nan, frame["number"])
    frame["flag"] = frame["number"] > 1
    path = written(frame, tmp_path, "parquet")
    for column in ("day", "share", "flag"):
        found = from_table(path, column).bare
        assert found == calibrate_labelled(frame["score"], frame["label"], ASKED, by=frame[column])
    narrow = written(frame.astype({"score": np.float32}), tmp_path, "parquet")
    certificate = calibrate_labelled(frame["score"], frame["label"], ASKED, by=frame["number"])
    with (
        open_table([narrow], ["score", "number"], "label", passes=True) as table,
        pytest.raises(InputError, match="holds float32 scores"),
    ):
        evaluate_groups_table(TableGroups(table, ("score", "label", "number"), None), certificate)


def ruled(frame: pd.DataFrame) -> GroupCertificate:
    known = frame[frame["name"] != "%s"]
    found = calibrate_labelled(known["score"], known["label"], ASKED, pool=True, by=known["name"])
    assert None in found.groups
    return found


def assert_decided(
    connection: Any, certificate: GroupCertificate, group: str, rules: str, expected: list[int]
) -> None:
    """Decide the table `scores` by one expression, and by a table of rules that is joined."""
    verdict = group_verdict_sql(certificate, "score", group)
    found = connection.execute(f"SELECT {verdict} FROM scores ORDER BY row").fetchall()
    assert [row[0] for row in found] == expected
    *statements, query = join_sql(certificate, "score", group, rules)
    for statement in statements:
        connection.execute(statement)
    joined = connection.execute(f"SELECT verdict FROM ({query.rstrip(';')}) ORDER BY row").fetchall()
    assert [row[0] for row in joined] == expected


def test_the_rules_decide_in_duckdb_as_in_memory() -> None:
    frame = drawn()
    certificate = ruled(frame)
    expected = certificate.verdicts(frame["score"], frame["name"]).tolist()
    with empty_database() as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE scores AS SELECT row_number() OVER () AS row, * FROM frame")
        assert_decided(connection, certificate, "name", 'ru"les', expected)
        assert connection.execute("SELECT count(*) FROM scores").fetchall() == [(len(frame),)]


NUMBERS = [1.0, 2.0, -3.0, 0.5, 1e-7, 12345678.0, 1e15, 1e17, 1e22, np.nan]


def numbered() -> tuple[GroupCertificate, list[float], list[float]]:
    """Return a certificate of groups that are numbers in a column of doubles, and scores of each."""
    labels = np.tile(np.repeat([0, 1], 50), len(NUMBERS))
    scores = np.arange(labels.size) + 1000.0 * labels
    groups = np.repeat(NUMBERS, 100)
    return calibrate_labelled(scores, labels, ASKED, by=groups), scores.tolist(), groups.tolist()


def test_numbers_in_a_column_of_doubles_are_the_groups_that_they_are_in_memory() -> None:
    certificate, scores, groups = numbered()
    expected = certificate.verdicts(scores, groups).tolist()
    assert set(expected) == {0, 1}
    with empty_database() as connection:
        connection.execute("CREATE TABLE scores (row INT, score DOUBLE, g DOUBLE)")
        given = {"row": np.arange(len(scores)), "score": np.array(scores), "g": np.array(groups)}
        connection.register("given", given)
        connection.execute("INSERT INTO scores SELECT row, score, nullif(g, 'nan'::DOUBLE) FROM given")
        assert_decided(connection, certificate, "g", "rules", expected)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("FLOAT", [0.1, 1 / 3, 1e-7, 0.001, 123456.7, 1234567.5, 1e15, 1e17, -0.3, 7.0, np.nan]),
        (
            "TIMESTAMP",
            [
                "2026-01-31 10:00:00.5",
                "2026-01-31 10:00:00.123456",
                "2026-01-31 10:00:01",
                "2026-01-31 10:00",
            ],
        ),
    ],
)
def test_floats_and_times_with_fractions_are_the_groups_that_they_are_in_memory(
    kind: str, values: list[Any]
) -> None:
    labels = np.tile(np.repeat([0, 1], 50), len(values))
    scores = np.arange(labels.size) + 1000.0 * labels
    with empty_database() as connection:
        connection.execute(f"CREATE TABLE scores (row INT, score DOUBLE, g {kind})")
        texts = list(map(str, values))  # NaN in an array would be NULL
        given = {"row": np.arange(labels.size), "score": scores, "g": np.repeat(texts, 100).astype(object)}
        connection.register("given", given)
        connection.execute("INSERT INTO scores FROM given")
        groups = connection.execute("SELECT g FROM scores ORDER BY row").fetchnumpy()["g"]
        certificate = calibrate_labelled(scores, labels, ASKED, by=groups)
        expected = certificate.verdicts(scores, groups).tolist()
        assert set(expected) == {0, 1}
        # NaN is no NULL, and has a text of its own
        plain = (
            "CREATE OR REPLACE TABLE scores AS SELECT row, score, CASE WHEN g::VARCHAR <> 'nan' THEN g END"
        )
        connection.execute(f"{plain} AS g FROM scores")
        verdict = group_verdict_sql(certificate, "score", "g")
        found = connection.execute(f"SELECT {verdict} FROM scores ORDER BY row").fetchall()
        assert [row[0] for row in found] == expected


def test_a_second_text_of_a_number_is_no_other_group() -> None:
    labels = np.tile(np.repeat([0, 1], 50), 2)
    groups = np.array([7] * 100 + ["7.0"] * 100, dtype=object)
    certificate = calibrate_labelled(np.arange(200) + 1000.0 * labels, labels, ASKED, by=groups)
    *_, insert, _ = join_sql(certificate, "score", "g", "rules")
    assert insert.count("'v7.0'") == insert.count("'v7'") == 1
    assert spellings("7.0", "duckdb") == ("7.0",)
    assert spellings(True, "duckdb") == ("true",)
    assert spellings("at 2026-01-31 10:00:00.500000", "duckdb") == ("at 2026-01-31 10:00:00.500000",)
    assert spellings(10**17 + 1, "duckdb") == (f"{10**17 + 1}",), "no double"


@pytest.mark.slow
def test_the_rules_decide_in_postgresql_as_in_memory() -> None:
    frame = drawn(2000)
    certificate = ruled(frame)
    expected = certificate.verdicts(frame["score"], frame["name"]).tolist()
    with server() as connection, connection.cursor() as cursor:
        cursor.execute('CREATE TABLE scores (row int, score double precision, "name" text)')
        names = [None if pd.isna(name) else name for name in frame["name"]]
        rows = list(zip(range(len(frame)), frame["score"].tolist(), names, strict=True))
        cursor.executemany("INSERT INTO scores VALUES (%s, %s, %s)", rows)
        verdict = group_verdict_sql(certificate, "score", "name", "postgres")
        cursor.execute(f"SELECT {verdict} FROM scores ORDER BY row".encode())
        assert [row[0] for row in cursor.fetchall()] == expected
        *statements, query = join_sql(certificate, "score", "name", "rules", "postgres")
        for statement in statements:
            cursor.execute(statement.encode())
        cursor.execute(f"SELECT verdict FROM ({query.rstrip(';')}) AS joined ORDER BY row".encode())
        assert [row[0] for row in cursor.fetchall()] == expected
        numbers, values, doubles = numbered()
        cursor.execute("CREATE TABLE numbers (row int, score double precision, g double precision)")
        given = [None if np.isnan(group) else group for group in doubles]
        cursor.executemany(
            "INSERT INTO numbers VALUES (%s, %s, %s)",
            list(zip(range(len(values)), values, given, strict=True)),
        )
        verdict = group_verdict_sql(numbers, "score", "g", "postgres")
        cursor.execute(f"SELECT {verdict} FROM numbers ORDER BY row".encode())
        assert [row[0] for row in cursor.fetchall()] == numbers.verdicts(values, doubles).tolist()
        for number in (0.1, 1 / 3, 1e-7, 0.001, 123456.7, 1234567.5, -0.3, 7.0):
            cursor.execute("SELECT CAST(%s::real AS text)", [number])
            assert cursor.fetchone()[0] in spellings(as_group(np.float32(number)), "postgres")


def test_nothing_in_a_literal_is_invisible() -> None:
    labels = np.repeat([0, 1], 100)
    certificate = calibrate_labelled(np.arange(200.0), labels, by=["a\x1b'\\b\U000e0067"] * 200)
    pieces = r"('a' || chr(27) || '''\b' || chr(917607))"
    for dialect, literal in (
        ("duckdb", pieces),
        ("postgres", pieces.replace(r"'''\b", r"E'''\\b")),
        ("spark", r"'a\u001b\'\\b\U000e0067'"),
        ("ansi", r"U&'a\001b''\\b\+0e0067'"),
    ):
        said = group_verdict_sql(certificate, "score", "name", dialect)  # type: ignore[arg-type]  # all dialects
        assert literal in said
        assert said.replace("\n", "").isprintable()


def test_rules_that_sql_cannot_say_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    zero = calibrate_labelled(np.arange(200.0), np.repeat([0, 1], 100), by=["a\x00b"] * 200)
    with pytest.raises(InputError, match="zero byte"):
        group_verdict_sql(zero, "score", "name")
    nothing = calibrate_labelled([1.0], [0], by=["a"])
    assert group_verdict_sql(nothing, "score", "name") == "-1"
    monkeypatch.setattr("pac_wrap.tables.sql.MOST_BRANCHES", 1)
    frame = drawn()
    with pytest.raises(InputError, match="--join-table"):
        group_verdict_sql(ruled(frame), "score", "name")


def test_one_threshold_at_infinity_declares_everything_normal() -> None:
    labels = np.repeat([0, 1], 100)
    scores = np.where(labels == 0, np.inf, 1.0)
    with pytest.warns(UpsideDownWarning):
        certificate = calibrate_labelled(scores, labels, Guarantee(0.1, None), by=["a"] * 200)
    assert certificate.rules[:, 0].tolist() == [np.inf, np.inf]
    values = [1.0, np.inf]
    assert certificate.verdicts(values, ["a", "a"]).tolist() == [0, 0]
    with empty_database() as connection:
        connection.register("scores", {"score": np.array(values), "name": np.array(["a", "a"], dtype=object)})
        verdict = group_verdict_sql(certificate, "score", "name")
        assert connection.execute(f"SELECT {verdict} FROM scores").fetchall() == [(0,), (0,)]
        *statements, query = join_sql(certificate, "score", "name", "rules")
        for statement in statements:
            connection.execute(statement)
        assert [row[-1] for row in connection.execute(query).fetchall()] == [0, 0]


MOMENTS = [
    *("2026-01-31T00:00:00.000000001", "2026-01-31T00:00:00.000000002", "2026-01-31T00:00:00.5"),
    *("1969-12-31T23:59:59.999999999", "1969-12-31T23:59:59.9999", "2026-01-31T00:00:00"),
]


@pytest.mark.parametrize("unit", ["ns", "us"])
@pytest.mark.parametrize("zone", [None, "Asia/Kolkata"])
def test_times_name_the_same_groups_in_memory_and_in_parquet(
    unit: str, zone: str | None, tmp_path: Path
) -> None:
    if zone is not None and unit == "ns" and duckdb.__version__ < "1.4":
        pytest.skip(f"DuckDB {duckdb.__version__} reads zoned times of a Parquet file to the microsecond")
    times = pd.Series(pd.to_datetime([*MOMENTS, None] * 40, format="ISO8601")).astype(f"datetime64[{unit}]")
    moments = times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)
    frame = pd.DataFrame({"score": np.arange(280.0), "label": np.arange(280) // 7 % 2, "when": moments})
    frame.to_parquet(tmp_path / "t.parquet")
    expected = calibrate_labelled(frame["score"], frame["label"], ASKED, by=frame["when"])
    assert len(expected.groups) == 7 - 2 * (unit == "us")
    assert from_table(str(tmp_path / "t.parquet"), "when") == expected
    listed = calibrate_labelled(frame["score"], frame["label"], ASKED, by=list(frame["when"]))
    polars = calibrate_labelled(frame["score"], frame["label"], ASKED, by=pl.from_pandas(frame)["when"])
    assert listed.groups == polars.groups == expected.groups
    if zone is None:
        assert calibrate_labelled(frame["score"], frame["label"], ASKED, by=times.to_numpy()) == expected


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_durations_name_no_groups_in_memory_and_in_parquet(unit: str, tmp_path: Path) -> None:
    taken = pd.Series(pd.to_timedelta([1, 2], unit="s")).astype(f"timedelta64[{unit}]")
    frame = pd.DataFrame({"score": [0.0, 1.0], "label": [0, 1], "took": taken})
    frame.to_parquet(tmp_path / "t.parquet")
    for column in (taken, list(taken), taken.to_numpy(), pl.Series(taken), list(taken.to_numpy())):
        with pytest.raises(InputError, match="groups must be texts, whole numbers or dates"):
            calibrate_labelled([0.0, 1.0], [0, 1], ASKED, by=column)
    with pytest.raises(
        InputError, match="'took' must hold groups as texts, whole numbers or dates, got durations"
    ):
        from_table(str(tmp_path / "t.parquet"), "took")


@pytest.mark.slow
def test_a_backslash_ends_no_text_however_postgresql_is_set() -> None:
    hostile = ["\\'; DROP TABLE victim; --", "a\\", "\\\\'", "\\x41\t'", "plain"]
    names, scores, labels = np.repeat(hostile, 200), np.tile(np.arange(200.0), 5), np.tile([0, 1], 500)
    scores = scores + 1000 * (labels == 1)
    certificate = calibrate_labelled(scores, labels, by=names)
    expected = certificate.verdicts(scores, names).tolist()
    assert set(expected) == {0, 1}
    with server() as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("CREATE TABLE victim (a int)")
        cursor.execute("CREATE TABLE scores (row int, score double precision, name text)")
        rows = list(zip(range(1000), scores.tolist(), names.tolist(), strict=True))
        cursor.executemany("INSERT INTO scores VALUES (%s, %s, %s)", rows)
        for setting in ("on", "off"):
            cursor.execute(f"SET standard_conforming_strings = {setting}")
            verdict = group_verdict_sql(certificate, "score", "name", "postgres")
            cursor.execute(f"SELECT {verdict} FROM scores ORDER BY row".encode())
            assert [row[0] for row in cursor.fetchall()] == expected
            *statements, query = join_sql(certificate, "score", "name", f"rules_{setting}", "postgres")
            for statement in statements:
                cursor.execute(statement.encode())
            cursor.execute(f"SELECT verdict FROM ({query.rstrip(';')}) AS joined ORDER BY row".encode())
            assert [row[0] for row in cursor.fetchall()] == expected
        # standard SQL has one spelling that is safe there: it is refused
        with pytest.raises(type(connection).NotSupportedError):
            cursor.execute(
                f"SELECT {group_verdict_sql(certificate, 'score', 'name', 'ansi')} FROM scores".encode()
            )
        cursor.execute("SELECT count(*) FROM victim")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize("name", ["a\nb", "a\r\n  b", "a\u2028b"])
def test_a_column_whose_name_has_lines_keeps_it_in_sql(name: str) -> None:
    certificate = calibrate_labelled(np.arange(400.0), np.arange(400) >= 200, by=["g"] * 400)
    quoted = name.replace('"', '""')
    with empty_database() as connection:
        connection.execute(f'CREATE TABLE scores AS SELECT 300.0 AS "{quoted}", \'g\' AS "{quoted}g"')
        verdict = group_verdict_sql(certificate, name, f"{name}g")
        assert connection.execute(f"SELECT {verdict} FROM scores").fetchall() == [(1,)]


def test_many_rows_that_threads_share_stay_in_order(tmp_path: Path) -> None:
    certificate = calibrate_labelled(np.arange(400.0), np.arange(400) >= 200, by=[0, 1] * 200)
    source, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    with empty_database() as connection:
        rows = "SELECT i AS id, i % 400 AS score, i % 2 AS number FROM range(300000) r (i)"
        connection.execute(f"COPY ({rows}) TO '{source}' (FORMAT parquet)")
        with (
            found_files([str(source)]) as found,
            open_found(found, ["score"], "number", whole=True, output=out) as table,
        ):
            decide_groups_table(table, certificate, ("score", "number"), out, output_options(out.name))
        written = connection.execute(f"SELECT id FROM '{out}'").fetchnumpy()["id"]
    assert np.array_equal(written, np.arange(300000))
