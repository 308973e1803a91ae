"""Files of any size give the certificate that their scores give in memory."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.errors import InputError, UpsideDownWarning
from pac_wrap.method.calibrate import Request, calibrate_labelled, certify
from pac_wrap.method.calibrate import calibrate as calibrate_arrays
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.provenance import Provenance
from pac_wrap.tables import calibrate as module
from pac_wrap.tables.calibrate import TableSource, calibrate, certify_curve
from pac_wrap.tables.table import Table, open_table
from support.patience import LIMIT
from support.shell import invoke, one_sentence, parquet, write
from support.strategies import RULES, every_rule, refusal, scores_of_any_type
from support.tables import empty_database, scores_of

FORMATS = ["csv", "parquet", "jsonl", "npz"]


def written(folder: Path, name: str, scores: Any, labels: Any) -> Path:
    """Write two columns to a file of the format that its name tells."""
    path = folder / name
    columns = {"s": np.asarray(scores), "y": np.asarray(labels)}
    if path.suffix == ".npz":
        np.savez(path, s=columns["s"], y=columns["y"])
        return path
    form = {".csv": "FORMAT csv, HEADER", ".parquet": "FORMAT parquet, ROW_GROUP_SIZE 2048"}
    with empty_database() as connection:
        connection.register("columns", columns)
        options = form.get(path.suffix, "FORMAT json")
        connection.execute(f"COPY (SELECT s, y FROM columns) TO '{path}' ({options})")
    return path


def certificate(files: list[Path], **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        names = [str(file) for file in files]
        made: Certificate = calibrate(names, score="s", label="y", **options)
        return made.bare.to_json()


def whole(scores: Any, labels: Any, **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        made: Certificate = calibrate_labelled(np.asarray(scores), np.asarray(labels), **options)
        return made.to_json()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 700)
    monkeypatch.setattr(module, "HELD", 0)
    monkeypatch.setattr(module, "HELD_COPY", 0)


def in_parts(folder: Path, form: str, rows: int) -> tuple[list[Path], Any, Any]:
    """Return three files of a format, and the scores and labels in them."""
    rng = np.random.default_rng(3)
    labels = (rng.random(rows) < 0.3).astype(int)
    scores = rng.normal(size=rows) + 2.0 * labels
    scores[::7] = np.round(scores[::7])
    files = [
        written(folder, f"{place}.{form}", scores[start:end], labels[start:end])
        for place, (start, end) in enumerate([(0, 1), (1, rows // 3), (rows // 3, rows)])
    ]
    return files, scores, labels


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("options", [RULES["two thresholds if needed"], RULES["raise"]], ids=["two", "raise"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_certificate_of_the_scores_in_memory(
    form: str, options: dict[str, Any], tmp_path: Path
) -> None:
    files, scores, labels = in_parts(tmp_path, form, 30_000)
    assert certificate(files, **options) == whole(scores, labels, **options)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Any, Any]:
    return in_parts(tmp_path_factory.mktemp("parts"), "parquet", 6_000)


@pytest.mark.usefixtures("small_chunks")
@every_rule
def test_every_rule_gives_the_certificate_of_the_scores_in_memory(
    options: dict[str, Any], parts: tuple[list[Path], Any, Any]
) -> None:
    files, scores, labels = parts
    assert certificate(files, **options) == whole(scores, labels, **options)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@given(values=scores_of_any_type(2, 30), data=st.data())
def test_ties_and_infinities_are_kept(
    form: str, values: Any, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    size = values.size
    labels = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    stored = values if form == "parquet" and values.dtype == np.float32 else values.astype(np.float64)
    file = written(tmp_path_factory.mktemp("ties"), f"t.{form}", stored, labels)
    assert certificate([file]) == whole(stored, labels)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("labels", "mark"),
    [
        (["0", "1"], None),
        (["false", "True"], None),
        (["ok", "Fault"], "fault"),
        ([2, 5], "5"),
        ([0, 1], None),
    ],
)
def test_labels_are_texts_or_numbers(form: str, labels: list[Any], mark: str | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    marks = rng.random(500) < 0.5
    scores = rng.normal(size=500) + 3.0 * marks
    file = written(tmp_path, f"l.{form}", scores, np.array(labels)[marks.astype(int)])
    assert certificate([file], anomaly_label=mark) == whole(scores, marks)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_is_wrong_is_said_with_its_row(form: str, tmp_path: Path) -> None:
    scores, labels = np.arange(40_000.0), np.arange(40_000) % 2
    bad = scores.copy()
    bad[[30_005, 39_000]] = np.nan
    file = written(tmp_path, f"nan.{form}", bad, labels)
    message = refusal(lambda: certificate([file]))
    assert message == (
        "column 's' must not be empty or NaN, got 2 of 40,000, the first in row 30,006;"
        " drop those rows or make the detector score them"
    )
    strange = labels.copy()
    strange[39_999] = 7
    file = written(tmp_path, f"seven.{form}", scores, strange)
    assert refusal(lambda: certificate([file])).startswith("column 'y' must be 0/1 or true/false, got '7';")
    names = np.array(["ok", "bad"])[labels].astype(object)
    names[39_998] = "third"
    file = written(tmp_path, f"third.{form}", scores, names.astype(str))
    assert "got bad, ok, third" in refusal(lambda: certificate([file], anomaly_label="bad"))
    file = written(tmp_path, f"one.{form}", scores, np.full(40_000, "ok"))
    assert "must hold 'bad' and one other value, got ok" in refusal(
        lambda: certificate([file], anomaly_label="bad")
    )


def test_rows_without_a_label_are_refused(tmp_path: Path) -> None:
    for name, query in (
        ("a.parquet", "SELECT 1.0 AS s, 1 AS y UNION ALL SELECT 2.0, NULL"),
        ("b.parquet", "SELECT 1.0 AS s, 'no' AS y UNION ALL SELECT 2.0, NULL"),
    ):
        parquet(tmp_path / name, query)
    assert "has 1 row without a label; label" in refusal(lambda: certificate([tmp_path / "a.parquet"]))
    message = refusal(lambda: certificate([tmp_path / "b.parquet"], anomaly_label="yes"))
    assert "has 1 row without a label; label" in message


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_a_file_without_a_column_that_others_have_is_named(form: str, tmp_path: Path) -> None:
    good = written(tmp_path, f"good.{form}", [0.1, 0.9], [0, 1])
    with empty_database() as connection:
        options = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet"}.get(form, "FORMAT json")
        connection.execute(f"COPY (SELECT 0.5 AS s, 7 AS z) TO '{tmp_path / 'odd'}.{form}' ({options})")
    odd = tmp_path / f"odd.{form}"
    message = refusal(lambda: certificate([good, odd]))
    assert message == (
        f"{odd} has no column 'y', which other files have; its columns are s, z;"
        " add the column, or remove that file"
    )


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_the_name_of_a_folder_is_no_column(engine: str, tmp_path: Path) -> None:
    if engine == "dask":
        pytest.importorskip("dask", reason="dask is not installed")
    scores, labels = np.arange(2_000.0), np.repeat([0, 1], 1_000)
    for folder in ("y=1", "s=7", "plain"):
        (tmp_path / folder).mkdir()
        file = written(tmp_path / folder, "t.parquet", scores, labels)
        saved = tmp_path / f"{folder}.json"
        done = invoke(
            "calibrate", "-q", file, "--score", "s", "--label", "y", "-o", saved, "--engine", engine
        )
        assert (done.code, done.err) == (0, "")
        assert Certificate.load(saved).bare.to_json() == whole(scores, labels)
    parquet(tmp_path / "y=1" / "without.parquet", "SELECT 1.0 AS s")
    message = refusal(
        lambda: certificate([tmp_path / "plain" / "t.parquet", tmp_path / "y=1" / "without.parquet"])
    )
    assert "without.parquet has no column 'y'" in message


def test_whole_numbers_beside_float32_are_decided_as_they_are(tmp_path: Path) -> None:
    saved = tmp_path / "c.json"
    scores = np.r_[np.arange(16_777_118.0, 16_777_218.0), np.full(100, 3e7)]
    made = calibrate_labelled(scores, np.repeat([0, 1], 100))
    made.save(saved)
    parquet(tmp_path / "a.parquet", "SELECT CAST(1.5 AS FLOAT) AS s, 'x' AS other")
    parquet(tmp_path / "b.parquet", "SELECT CAST(i AS INTEGER) AS s FROM range(16777210, 16777220) t(i)")
    done = invoke(
        "decide", saved, tmp_path / "a.parquet", tmp_path / "b.parquet", "--score", "s", "--format", "csv"
    )
    rows = [line.split(",") for line in done.out.splitlines()[1:]]
    expected = np.r_[1.5, np.arange(16_777_210.0, 16_777_220.0)]
    assert [float(row[0]) for row in rows] == expected.tolist()
    assert [int(row[2]) for row in rows] == made.verdicts(expected).tolist()


def test_a_column_with_the_name_that_duckdb_gives_row_numbers(tmp_path: Path) -> None:
    parquet(tmp_path / "t.parquet", "SELECT i AS s, i % 2 AS y, 7 AS file_row_number FROM range(500) t(i)")
    assert certificate([tmp_path / "t.parquet"]) == whole(np.arange(500.0), np.arange(500) % 2)


def test_whole_numbers_beyond_64_bits_are_rounded_to_the_nearest_double(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", '{"s":-144115188075203960,"y":0}\n{"s":9223372036854775808,"y":1}\n')
    assert certificate([file]) == whole([-144115188075203960.0, 9223372036854775808.0], [0, 1])


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "npz"])
def test_where_the_scores_came_from_is_noted(tmp_path: Path, ending: str) -> None:
    scores = np.r_[np.random.default_rng(3).normal(0, 1, 5_000), -7.5, 9.25]
    file = written(tmp_path, f"t.{ending}", scores, np.arange(scores.size) % 2)
    found = calibrate(file, score="s", label="y")
    noted = Provenance(score="s", tables=(str(file),), engine="duckdb", lowest=-7.5, highest=9.25)
    assert found.provenance == noted
    assert certify_curve(file, score="s", label="y").provenance == noted


def test_files_are_named_in_several_ways(tmp_path: Path) -> None:
    file = written(tmp_path, "t.parquet", [0.1, 0.9], [0, 1])
    expected = certificate([file])
    for files in (file, str(file), (file,), [str(tmp_path / "*.parquet")]):
        assert calibrate(files, score="s", label="y").bare.to_json() == expected
    assert refusal(lambda: calibrate([])) == "files must name at least one file or pattern, got none"


def test_many_columns_fit(tmp_path: Path) -> None:
    columns = ",".join(f"c{i}" for i in range(6_000))
    rows = "".join(f"{i}.5,{i % 2}{',7' * 6_000}\n" for i in range(20))
    file = write(tmp_path / "wide.csv", f"s,y,{columns}\n{rows}")
    assert certificate([file]) == whole(np.arange(20) + 0.5, np.arange(20) % 2)


def test_types_may_differ_between_files_as_long_as_they_are_numbers(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", "SELECT CAST(i AS FLOAT) / 3 AS s, i % 2 AS y FROM range(500) t(i)")
    parquet(tmp_path / "b.parquet", "SELECT i AS s, i % 2 = 1 AS y FROM range(500) t(i)")
    first = np.arange(500, dtype=np.float32) / np.float32(3)
    scores = np.concatenate([first.astype(np.float64), np.arange(500.0)])
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert certificate(files) == whole(scores, np.tile([0, 1], 500))
    parquet(tmp_path / "c.parquet", "SELECT 'high' AS s, 1 AS y")
    message = refusal(lambda: certificate([*files, tmp_path / "c.parquet"]))
    assert "column 's' must hold numbers, got 'high' in row 1,001" in message


def test_a_file_that_changes_between_passes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HELD", 0)
    monkeypatch.setattr(module, "HELD_COPY", 0)
    file = written(tmp_path, "t.parquet", np.arange(2_000.0), np.arange(2_000) % 2)
    call = TableSource.__call__

    def meddle(self: TableSource, task: Any) -> Any:
        result = call(self, task)
        written(tmp_path, "t.parquet", np.arange(2_000.0) + 1e9, np.arange(2_000) % 2)
        return result

    monkeypatch.setattr(TableSource, "__call__", meddle)
    assert "changed between two passes" in refusal(lambda: certificate([file]))


def test_the_command_gives_the_same_as_ever(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    labels = (rng.random(3_000) < 0.4).astype(int)
    scores = rng.normal(size=3_000) + 4.0 * labels
    file = written(tmp_path, "t.csv", scores, labels)
    saved = tmp_path / "c.json"
    columns = ["--score", "s", "--label", "y"]
    assert invoke("calibrate", "-q", file, *columns, "-o", saved, "--engine", "duckdb").code == 0
    assert Certificate.load(saved).bare.to_json() == whole(scores, labels)
    piped = tmp_path / "piped.json"
    assert invoke("calibrate", "-q", "-", *columns, "-o", piped, stdin=file.read_bytes()).code == 0
    assert Certificate.load(piped) == Certificate.load(saved)
    assert invoke("verify", saved, file, *columns).code == 0
    done = invoke("calibrate", "-q", file, *columns, "--engine", "flink")
    assert done.code == 2


@pytest.mark.parametrize("engine", ["spark", "dask"])
def test_numpy_files_are_duckdbs(engine: str, tmp_path: Path) -> None:
    file = written(tmp_path, "t.npz", [0.1, 0.9], [0, 1])
    done = invoke("calibrate", "-q", file, "--score", "s", "--label", "y", "--engine", engine)
    assert done.code == 2
    assert one_sentence(done.err) == f"--engine {engine} does not read NumPy files; remove it"


@pytest.mark.slow
def test_an_engine_that_is_not_installed_is_one_sentence(tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv", "s,y\n0.1,0\n0.9,1\n")
    code = (
        "import sys; sys.modules['{0}'] = None; from pac_wrap.cli import main;"
        " sys.argv = ['pac-wrap', 'calibrate', sys.argv[1], '--score', 's', '--label', 'y',"
        " '--engine', '{1}', '-o', sys.argv[2]]; main()"
    )
    for package, engine in (("pyspark", "spark"), ("dask", "dask")):
        words = [sys.executable, "-c", code.format(package, engine), str(file), str(tmp_path / "c.json")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.returncode == 2
        sentence = f'{package} is not installed; run pip install "pac-wrap-ad[{engine}]"'
        assert one_sentence(done.stderr) == sentence
        assert not (tmp_path / "c.json").exists()


@pytest.mark.slow
def test_more_than_memory_holds_goes_into_a_file_for_each_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, memory = 18_000_000, 140e6  # room for the four buffers of 32 MiB that DuckDB may fill at once
    path = tmp_path / "t.csv"
    with duckdb.connect() as connection:
        query = f"SELECT hash(i) % 1000000 AS s, i % 2 AS y FROM range({rows}) t(i)"
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT csv, HEADER)")
        scores = connection.execute(f"SELECT s::DOUBLE AS s FROM ({query})").fetchnumpy()["s"]
    stored = 0
    call = TableSource.__call__

    def look(self: TableSource, task: Any) -> Any:
        nonlocal stored
        answer = call(self, task)
        stored = sum(file.stat().st_size for file in self._files)
        return answer

    monkeypatch.setattr(TableSource, "__call__", look)
    monkeypatch.setattr(
        "pac_wrap.tables.files.connection._fast",
        lambda: ("preserve_insertion_order = false", f"memory_limit = '{memory:.0f}B'"),
    )
    assert certificate([path]) == whole(scores, np.arange(rows) % 2)
    assert stored == 8 * rows


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read as Linux reports it")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_rows(form: str, tmp_path: Path) -> None:
    sizes = []
    for rows in (200_000, 6_000_000):
        path = tmp_path / f"{rows}.{form}"
        query = f"SELECT random() + i % 2 AS s, i % 2 AS y FROM range({rows}) t(i)"
        with duckdb.connect() as connection:
            options = "FORMAT csv, HEADER" if form == "csv" else "FORMAT parquet"
            connection.execute(f"COPY ({query}) TO '{path}' ({options})")
        code = (
            "import re, sys; from pac_wrap.tables.calibrate import calibrate;"
            " calibrate([sys.argv[1]], score='s', label='y');"
            # the peak of this program alone: that of getrusage begins with the size of who started it
            " print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1])"
        )
        words = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=True)
        sizes.append(int(done.stdout) * 1024)
    # six million rows of two columns are 54 MB in memory, and the table of a CSV is allowed 500 MB
    assert sizes[1] - sizes[0] < (500e6 if form == "csv" else 60e6), sizes
    assert max(sizes) < 1e9


def test_a_table_keeps_its_order_after_its_passes(tmp_path: Path) -> None:
    scores, labels = np.arange(1000.0), np.arange(1000) % 2
    for form in FORMATS:
        path = written(tmp_path, f"scores.{form}", scores, labels)
        with open_table([str(path)], ["s"], "y") as table:
            certify(TableSource(table, "s", "y"), Request())
            assert table.rows("SELECT current_setting('preserve_insertion_order')") == [(True,)]
            assert scores_of(table, "s").tolist() == scores.tolist()


def test_of_several_tables_the_one_with_text_is_named(tmp_path: Path) -> None:
    for number in range(3):
        lines = [f"{row / 2 + number},{row % 2}" for row in range(30_000)]
        lines[25_000] = "text,0" if number == 1 else lines[25_000]
        (tmp_path / f"x{number}.csv").write_text("s,y\n" + "\n".join(lines) + "\n")
    for files in ([str(tmp_path / f"x{number}.csv") for number in range(3)], [str(tmp_path / "x*.csv")]):
        message = refusal(calibrate, files, score="s", label="y")
        assert (
            message
            == f"{tmp_path / 'x1.csv'}: column 's' must hold numbers, got 'text' in row 25,001; fix that row"
        )


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_scores_by_class_are_read_once_and_give_the_same_certificate(
    form: str, kind: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(9)
    labels = random.integers(0, 2, 3000)
    scores = (random.normal(0, 1, 3000) + 2 * labels).astype(kind)
    path = written(tmp_path, f"a.{form}", scores, labels)
    queries = []
    batches = Table.batches

    def count(self: Table, query: str) -> Any:
        queries.append(query)
        return batches(self, query)

    monkeypatch.setattr(Table, "batches", count)
    with open_table([str(path)], ["s"], "y", passes=True) as table:
        normal, anomalous = TableSource(table, "s", "y", None).classes()
    assert len(queries) == 1
    assert np.array_equal(np.sort(anomalous.astype(kind)), np.sort(scores[labels == 1]))
    assert calibrate_arrays(normal, anomalous).to_json() == certificate([path])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_groups_and_kinds_are_columns(form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    labels = np.tile([0, 1], 2000)
    scores, names = rng.normal(4.0 * labels, 1.0), rng.choice(["a", "b", "c"], labels.size)
    path = tmp_path / f"table.{form}"
    with empty_database() as connection:
        connection.register("columns", {"s": scores, "y": labels, "g": names.astype(object)})
        header = ", HEADER" if form == "csv" else ""
        connection.execute(f"COPY (SELECT s, y, g FROM columns) TO '{path}' (FORMAT {form}{header})")
    ways: list[tuple[str, dict[str, Any]]] = [
        ("by", {"together": True}),
        ("by", {"pool": True}),
        ("kinds", {}),
    ]
    for column, options in ways:
        expected = calibrate_labelled(scores, labels, **options | {column: names})
        found = calibrate(path, score="s", label="y", **options | {column: "g"})
        assert found.bare.to_json() == expected.to_json()
    with pytest.raises(InputError, match="together and pool need groups"):
        calibrate(path, score="s", label="y", together=True)
    with pytest.raises(InputError, match="by and kinds do not work together"):
        calibrate(path, score="s", label="y", by="g", kinds="g")


def test_the_anomaly_label_of_a_request_marks_kinds_too(tmp_path: Path) -> None:
    rows = "".join(f"{s},{'ok' if s < 200 else 'fault'},{'ab'[s % 2]}\n" for s in range(400))
    file = write(tmp_path / "t.csv", f"s,y,g\n{rows}")
    found = calibrate(file, Request.of(anomaly_label="fault"), score="s", label="y", kinds="g")
    assert found == calibrate(file, score="s", label="y", kinds="g", anomaly_label="fault")


def test_braces_in_a_name_do_not_hide_the_score_that_is_no_number(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", '{"s{x}": 1, "y": 0}\n{"s{x}": "abc", "y": 1}\n')
    with pytest.raises(InputError, match=r"column 's\{x\}' must hold numbers, got 'abc' in row 2"):
        calibrate(file, score="s{x}", label="y")
