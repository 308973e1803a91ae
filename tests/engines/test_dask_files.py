"""Files that Dask reads give the certificates that DuckDB gives, and no file is read otherwise."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Certificate
from pac_wrap.base.arguments import label_text
from pac_wrap.engines import dask as engine
from pac_wrap.engines.dask import _count_labels, _first_labels, exact_numbers, label_texts
from pac_wrap.engines.files import EngineFiles
from pac_wrap.method.calibrate import Request, calibrate_labelled
from pac_wrap.tables.table import open_table
from support.daskcluster import needs_dask
from support.strategies import RULES, refusal

needs_dask()
dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
READERS: dict[str, Any] = {"csv": "read_csv", "parquet": "read_parquet", "jsonl": "read_json"}
TEXT = "s,y\n0.1,0\n0.30000000000000004,1\n1e400,1\n-inf,0\n7.038531e-26,0\n9007199254740993,1\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def table() -> Any:
    rng = np.random.default_rng(5)
    y = (rng.random(3000) < 0.2).astype(np.int64)
    frame = pd.DataFrame({"id": np.arange(3000), "s": rng.normal(size=3000) + 2.5 * y, "y": y})
    return frame.assign(
        state=np.array(["ok", "Fault"], dtype=object)[y], flag=y == 1, real=y.astype(float), note="a"
    )


def write(frame: Any, name: str, **options: Any) -> str:
    if name.endswith(".parquet"):
        frame.to_parquet(name, **options)
    elif name.endswith(".jsonl"):
        frame.to_json(name, orient="records", lines=True, double_precision=15)
    else:
        frame.to_csv(name, index=False, **options)
    return name


def by_duckdb(files: list[str], label: str = "y", anomaly_label: str | None = None, **options: Any) -> str:
    with open_table(files, ["s"], label) as opened:
        scores, anomalous = opened.labelled("s", label, anomaly_label)
    made: Certificate = calibrate_labelled(scores, anomalous, **options)
    return made.to_json()


def by_dask(files: list[str], label: str = "y", anomaly_label: str | None = None, **options: Any) -> str:
    reader = READERS[Path(files[0].removesuffix(".gz")).suffix[1:]]
    mark = 1 if anomaly_label is None else anomaly_label
    request = Request.of(options.get("guarantee"), options.get("overlap"), mark)
    found = [*map(Path, files)]
    opened = EngineFiles("dask", found, reader, master=options.get("master"))
    made: str = opened.certify(request, ("s", label), label_text(request.anomaly_label)).bare.to_json()
    return made


@pytest.mark.parametrize("suffix", READERS)
def test_labels_of_every_type_are_read_as_duckdb_reads_them(table: Any, suffix: str) -> None:
    files = [write(table[:1000], f"a.{suffix}"), write(table[1000:], f"b[1] *.{suffix}")]
    for label, anomaly in (
        ("y", None),
        ("flag", None),
        ("real", None),
        ("real", "1.0"),
        ("y", "1"),
        ("state", "fault"),
    ):
        assert by_dask(files, label, anomaly) == by_duckdb(files, label, anomaly)
    for label, anomaly in (("state", None), ("id", None), ("state", "broken")):
        sentence = refusal(by_duckdb, files, label, anomaly)
        assert refusal(by_dask, files, label, anomaly) == sentence


@pytest.mark.parametrize("name", ["two thresholds if needed", "raise", "hold the FNR"])
def test_rules_from_several_blocks(table: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_BLOCK", 1 << 14)
    files, options = [write(table, "a.csv")], RULES[name]
    assert by_dask(files, **options) == by_duckdb(files, **options)


def test_every_way_to_write_a_csv(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_BLOCK", 1 << 14)
    files = [
        write(table, "tab.tsv.csv", sep="\t"),
        write(table, "packed.csv.gz"),
        write(table, "quoted.csv", quoting=1),
        write(table, "semicolon.csv", sep=";"),
    ]
    for file in files:
        assert by_dask([file]) == by_duckdb([file])
    lines = write(table.assign(note="0.5,1\n0.6,0\n"), "lines.csv")
    assert "has cells with line breaks, which only DuckDB reads" in refusal(lambda: by_dask([lines]))
    assert by_dask(files) == by_duckdb([write(pd.concat([table] * 4), "all.csv")])


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "\ufeff" + TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT + " 0.25 ,1\n+5,1\n",
    ],
    ids=["plain", "mark", "returns", "spaces"],
)
def test_numbers_are_rounded_correctly_however_they_are_written(text: str) -> None:
    Path("a.csv").write_text(text, encoding="utf-8", newline="")
    assert by_dask(["a.csv"]) == by_duckdb(["a.csv"])


@pytest.mark.parametrize(
    "text",
    [
        '[{"s": 0.1, "y": 0}, {"y": 1, "s": 2}]',
        '\n {"s": 0.1, "y": 0}\n{"s": 2, "y": 1}',
        '{"s": 0.1, "y": 0}\n{"s": "-Infinity", "y": false}\n{"s": "Infinity", "y": 1.0}\n{"s": 2, "y": 1}',
        '[{"s": "Infinity", "y": 1}, {"y": 0, "s": 2}, {"y": 0, "s": 0.30000000000000004}]',
    ],
)
def test_json_may_be_a_list_or_lines(text: str) -> None:
    Path("a.jsonl").write_text(text)
    assert by_dask(["a.jsonl"]) == by_duckdb(["a.jsonl"])


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.csv", "s,y\n0.5,1\nabc,0\n", "column 's' must hold numbers, got 'abc' in row 2; fix"),
        (
            "a.csv",
            "s,y\nNA,1\n0.3,0\n",
            "column 's' must hold numbers, got 'NA' in row 1; leave",
        ),
        (
            "a.csv",
            "s,y\n,1\n0.3,0\n",
            "column 's' must not be empty or NaN, got 1 of 2, the first in row 1; drop",
        ),
        (
            "a.csv",
            "s,y\nnan,1\n0.3,0\n",
            "column 's' must not be empty or NaN, got 1 of 2, the first in row 1; drop",
        ),
        ("a.csv", "s,y\n0.5,1\n0.3,\n", "column 'y' has 1 row without a label"),
        ("a.csv", "s,y\n", "the table a.csv has no rows; pass one with scores"),
        (
            "a.csv",
            "s,y\n" + "0.5,1\n" * 90_000 + "0.5\n",
            "a.csv: row 90,001 has 1 cell, but the header has 2; fix",
        ),
        ("a.csv", "s,y\n1_000,1\n", "column 's' must hold numbers, got '1_000' in row 1; fix"),
        ("a.csv", "# a remark\ns,y\n1,1\n", "there is no column 's'; the columns are # a remark"),
        ("a.jsonl", '{"s": true, "y": 1}\n', "column 's' must hold numbers, got 'true'; fix"),
        ("a.jsonl", '{"s": 0.5, "y": 1}\n{"s": "x", "y": 0}\n', "column 's' must hold numbers, got 'x'; fix"),
        ("a.jsonl", '{"s": 0.5, "y": 1}\n{"s":', "a.jsonl: row 2 is not a JSON object on one line; fix"),
        ("a.jsonl", '{"s": 0.5, "y": 1}\n{"y": 0}\n', "scores must not be empty or NaN, got 1 of 2"),
        ("a.jsonl", '{"s": [0.5], "y": 1}\n', "a.jsonl: row 1 has a list or an object in column 's'; name"),
        (
            "a.jsonl",
            '{"s": 0.5, "y": 1}\n{"s": 1, "y": 0, "s": 2}\n',
            "a.jsonl: row 2 has two columns named 's';",
        ),
        ("a.jsonl", '{"s": 0.5, "x": 1}\n', "there is no column 'y'; the columns are s, x"),
        ("a.parquet", "PAR1 but no more", "cannot read a.parquet: "),
    ],
)
def test_bad_files_are_refused_in_one_sentence(name: str, text: str, sentence: str) -> None:
    Path(name).write_text(text)
    reader = READERS[name.split(".")[1]]
    opened = EngineFiles("dask", [Path(name)], reader)
    message = refusal(lambda: opened.certify(Request(), ("s", "y"), None))
    assert message.startswith(sentence)
    assert "\n" not in message
    assert [file.name for file in Path.cwd().iterdir()] == [name]


def test_one_column_cannot_be_both() -> None:
    opened = EngineFiles("dask", [Path("a.csv")], "read_csv")
    assert "cannot be both" in refusal(lambda: opened.certify(Request(), ("s", "s"), None))


def test_types_that_differ_between_files_are_compared_as_texts(table: Any) -> None:
    files = [write(table[:1500], "a.parquet")]
    files += [write(table[1500:].assign(y=table.flag, s=table.s.astype("float32").astype(str)), "b.parquet")]
    frame = pd.concat([table[:1500].s, table[1500:].s.astype("float32").astype(str).astype(float)])
    assert by_dask(files) == calibrate_labelled(frame.to_numpy(), table.y).to_json()


def test_columns_of_every_type() -> None:
    cells: Any
    texts: list[Any]
    for cells, kind, numbers in (
        (["0.1", None, " 10 "], pa.string(), [0.1, np.nan, 10.0]),
        ([Decimal("0.10"), Decimal("123456789012345.67")], pa.decimal128(20, 2), [0.1, 123456789012345.67]),
        ([2**53 + 1, None], pa.int64(), [2.0**53, np.nan]),
        ([True, False], pa.bool_(), [1.0, 0.0]),
        ([0.1], pa.float32(), [float(np.float32(0.1))]),
        ([None], pa.null(), [np.nan]),
    ):
        column = pa.chunked_array([pa.array(cells, kind)])
        np.testing.assert_array_equal(exact_numbers(column, "s"), numbers)
    for cells, kind, texts in (
        ([1, None], pa.int8(), ["1", None]),
        ([1.0, None, np.nan, 0.1, 1e20], pa.float32(), ["1.0", None, "nan", "0.1", "1e+20"]),
        ([True], pa.bool_(), ["true"]),
        (["Ärger", None], pa.string(), ["Ärger", None]),
        (["A", "b", "A"], pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"]),
    ):
        labels = label_texts(pa.chunked_array([pa.array(cells[:1], kind), pa.array(cells[1:], kind)]))
        assert [text if isinstance(text, str) else None for text in labels] == texts
        counted = _count_labels(0, pd.DataFrame({"label": labels}))
        assert dict(counted) == {text: texts.count(text) for text in texts}
    assert _first_labels({None: 1, "ok": 5, "bad": 1}) == [("bad", 1), ("ok", 5), (None, 1)]
    many = _count_labels(0, pd.DataFrame({"label": pd.Categorical([None, *"zyxwvutsrq"])}))
    assert set(many) == {*"qrstuvwxy"}  # nine are enough
    with pytest.raises(ValueError, match="must hold numbers, but its type is timestamp"):
        exact_numbers(pa.chunked_array([pa.array([0], pa.timestamp("s"))]), "s")


def test_the_workers_of_a_scheduler_read_the_files(table: Any, workers: Any) -> None:
    files = [write(table[:1000], "a.csv"), write(table[1000:], "b.csv", quoting=1)]
    assert by_dask(files, master=workers.scheduler.address) == by_duckdb(files)
    for address in ("tcp://127.0.0.1:1", "nonsense://"):
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            said = refusal(by_dask, files, master=address)
        assert said.startswith(f"there is no Dask scheduler at {address}: ")
