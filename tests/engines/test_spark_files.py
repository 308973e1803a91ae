"""Files calibrated by Spark give the certificate that the command line gives in memory."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pytest

from pac_wrap.base.arguments import label_text
from pac_wrap.engines.files import EngineFiles
from pac_wrap.engines.spark import spark_session
from pac_wrap.errors import InputError, MissingExtraError
from pac_wrap.method.calibrate import Request, calibrate_labelled
from support import sparksession
from support.patience import LIMIT
from support.strategies import refusal

pytestmark = [sparksession.quiet, pytest.mark.slow]
Reader = Literal["read_csv", "read_parquet", "read_json"]
RNG = np.random.default_rng(5)
LABELS = (RNG.random(400) < 0.4).astype(np.int64)
SCORES = RNG.normal(size=400) + 3 * LABELS
SCORES[:4] = [-inf, -0.0, 5e-324, inf]
WHOLE = calibrate_labelled(SCORES, LABELS).to_json()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sparksession.session("local[2, 4]", tmp_path_factory.mktemp("spark")) as started:
        started.conf.set("spark.sql.shuffle.partitions", "4")
        yield started


def write(file: Path, lines: list[str]) -> Path:
    file.parent.mkdir(exist_ok=True)
    text = "\n".join(lines) + "\n"
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


def csv(file: Path, rows: slice = slice(None), names: Any = "01", sep: str = ",") -> Path:
    pairs = zip(SCORES[rows].tolist(), LABELS[rows].tolist(), strict=True)
    cells = [f'{s!r}{sep}{names[int(y)]}{sep}"a {sep} ""b"""' for s, y in pairs]
    return write(file, [f"score{sep}the label{sep}text", *cells])


def certificate(files: list[Path], reader: Reader = "read_csv", anomaly_label: Any = 1) -> str:
    request = Request(anomaly_label=anomaly_label)
    columns = "score", "the label"
    found = EngineFiles("spark", files, reader).certify(request, columns, label_text(request.anomaly_label))
    return str(found.bare.to_json())


def test_csv_files_of_any_name_and_dialect(session: Any, tmp_path: Path) -> None:
    # Spark would take the second for a pattern, and the folder of the third for a column
    files = [
        csv(tmp_path / "%20.csv", slice(0, 100)),
        csv(tmp_path / "a[1]*{b}?,\\'.csv", slice(100, 200), ["0.0", "1.0"], ";"),
        csv(tmp_path / "the label=7" / "c d.csv.gz", slice(200, 300), ["FALSE", "True"]),
    ]
    # its columns stand in another order
    rows = zip(LABELS[300:].tolist(), SCORES[300:].tolist(), strict=True)
    files.append(write(tmp_path / "e.tsv", ["the label\tscore", *(f"{y}\t{s!r}" for y, s in rows)]))
    assert certificate(files) == WHOLE
    for name in ("_hidden.csv", ".hidden.csv", "12:30.csv"):
        hidden = [csv(tmp_path / name)]
        said = refusal(certificate, [*files, *hidden])
        rule = "Spark reads no file whose name starts with _ or a dot or has a colon"
        assert said == f"{rule}, such as {hidden[0]}; rename it"


def test_a_label_may_have_any_characters(session: Any, tmp_path: Path) -> None:
    files = [csv(tmp_path / "s.csv", names=["o\\k", "it's\\n"])]
    assert certificate(files, anomaly_label="It's\\n") == WHOLE


def test_a_label_may_be_named(session: Any, tmp_path: Path) -> None:
    files = [csv(tmp_path / "s.csv", names=["ok", "Fault"])]
    assert certificate(files, anomaly_label="FAULT") == WHOLE
    assert "must be 0/1 or true/false, got 'fault'" in refusal(lambda: certificate(files))


def test_parquet_files_whose_types_differ(session: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    for number, (scores, labels) in enumerate(
        [
            (pa.array(SCORES[:200]), pa.array(LABELS[:200])),
            (pa.array(SCORES[200:300].tolist()), pa.array(LABELS[200:300] == 1)),
            (pa.array(map(repr, SCORES[300:].tolist())), pa.array(LABELS[300:].astype(float))),
        ]
    ):
        parquet.write_table(pa.table({"the label": labels, "score": scores}), tmp_path / f"{number}.parquet")
    assert certificate([*tmp_path.iterdir()], "read_parquet") == WHOLE
    empty = pa.table({"the label": pa.array([], pa.int64()), "score": pa.array([], pa.float64())})
    parquet.write_table(empty, tmp_path / "empty.parquet")
    assert certificate(sorted(tmp_path.iterdir()), "read_parquet") == WHOLE
    nothing = refusal(lambda: certificate([tmp_path / "empty.parquet"], "read_parquet"))
    assert nothing.endswith("empty.parquet has no rows; pass one with scores")


@pytest.mark.parametrize("second", ["float32", "float64", "int64"])
def test_parquet_files_are_float32_if_all_are(session: Any, second: str, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    first, rest = SCORES[4:200].astype(np.float32), np.rint(SCORES[200:] * 2**25).astype(second)
    for name, scores, labels in (("a", first, LABELS[4:200]), ("b", rest, LABELS[200:])):
        parquet.write_table(pa.table({"the label": labels, "score": scores}), tmp_path / f"{name}.parquet")
    whole = np.concatenate([first, rest] if second == "float32" else [first.astype(float), rest])
    files = sorted(tmp_path.iterdir())
    assert certificate(files, "read_parquet") == calibrate_labelled(whole, LABELS[4:]).to_json()


def test_infinities_in_json_are_texts(session: Any, tmp_path: Path) -> None:
    texts = ["-Infinity", 0.5, "Infinity", "Infinity", 0.25, -0.5]
    lines = [json.dumps({"score": text, "the label": int(place > 1)}) for place, text in enumerate(texts)]
    scores = [-inf, 0.5, inf, inf, 0.25, -0.5]
    found = certificate([write(tmp_path / "a.jsonl", lines)], "read_json")
    assert found == calibrate_labelled(scores, [0, 0, 1, 1, 1, 1]).to_json()


def test_json_lines_and_arrays(session: Any, tmp_path: Path) -> None:
    def rows(part: slice, kind: Any) -> list[str]:
        pairs = zip(SCORES[4:][part].tolist(), LABELS[4:][part].tolist(), strict=True)
        return [json.dumps({"id": 1, "score": s, "the label": kind(y)}) for s, y in pairs]

    files = [
        write(tmp_path / "a.jsonl", rows(slice(0, 100), int)),
        write(tmp_path / "b.json.gz", ["[" + ",\n".join(rows(slice(100, 200), bool)) + "]"]),
        write(tmp_path / "c.json", ["[" + ",\n".join(rows(slice(200, None), float)) + "]"]),
    ]
    assert certificate(files, "read_json") == calibrate_labelled(SCORES[4:], LABELS[4:]).to_json()


def test_what_is_wrong_is_one_sentence(session: Any, tmp_path: Path) -> None:
    def said(*lines: str, suffix: str = ".csv", reader: Reader = "read_csv") -> str:
        file = write(tmp_path / f"wrong{suffix}", [*lines])
        message = refusal(
            lambda: EngineFiles("spark", [file], reader).certify(Request(), ("score", "label"), None)
        )
        assert "\n" not in message
        return message.replace(str(tmp_path) + "/", "")

    good = ["score,label", *["0.5,0"] * 20, *["1.5,1"] * 20]
    for cell in ("abc", "1.0d", "0x1p3", "1_000", "true", "12 3"):
        for written in (cell, f'"{cell}"'):
            found = said(*good, f"{written},1")
            assert found == f"column 'score' must hold numbers, got {cell!r} in row 41; fix that row"
    missing = "column 'score' must not be empty or NaN, got 3 of 43, the first in row 41; drop those rows"
    assert said(*good, ",1", " NaN,0", "+nan,1").startswith(missing)
    assert said(*good, "0.5,") == "column 'label' has 1 row without a label; label or drop them"
    tabbed = [line.replace(",", "\t") for line in good]
    found = said(*tabbed, "\t")  # which Spark takes for no row at all
    assert found.startswith("column 'score' must not be empty or NaN, got 1 of 41, the first in row 41;")
    assert said("score,label") == "the table wrong.csv has no rows; pass one with scores"
    assert "must be 0/1 or true/false, got 'x'" in said(*good, "0.5,x")
    # so late that nobody who looks at the first rows can see it
    for row in ("0.5", "0.5,1,7"):
        found = said(*good, *["0.5,0"] * 30_000, row)
        cells = f"{row.count(',') + 1} cell" + "s" * (row.count(",") > 0)
        assert found == f"wrong.csv: row 30,041 has {cells}, but the header has 2; fix that row"
    # as many delimiters as there should be, so that only Spark finds out, but not which row it is
    found = said(*good, "0.5", "0.5,1,7", *good[1:])
    assert found == "wrong.csv: row 41 has 1 cell, but the header has 2; fix that row"
    assert "has cells with line breaks, which only DuckDB reads" in said("score,label", '0.5,"a', 'b"')
    rows = ['{"score": 0.5, "label": 0}'] * 3
    found = said(*rows, '{"score": 0.5, "la', suffix=".jsonl", reader="read_json")
    assert found.endswith("wrong.jsonl: row 4 is not a JSON object on one line; fix that row")
    found = said(*rows, '{"score": "abc", "label": 0}', suffix=".jsonl", reader="read_json")
    assert found.startswith("column 'score' must hold numbers, got 'abc'")
    found = said('{"scor": 0.5, "label": 0}', suffix=".jsonl", reader="read_json")
    assert found == "there is no column 'score'; did you mean 'scor'? the columns are scor, label"
    rows = ['{"score": true, "label": 1}', *rows]
    found = said(*rows, suffix=".jsonl", reader="read_json")
    assert found == "column 'score' must hold numbers, got 'true'; fix those rows"
    found = said("x", suffix=".parquet", reader="read_parquet")
    assert found.startswith("cannot read wrong.parquet: Parquet file size is 2 bytes, smaller than")


SCRIPT = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("error")
from pac_wrap.engines.files import EngineFiles
from pac_wrap.method.calibrate import Request
files = EngineFiles("spark", [Path(sys.argv[1])], "read_csv", master="local[2]")
found = files.certify(Request(), ("score", "the label"), None)
print(found.bare.to_json(), end="")
from pyspark.sql import SparkSession
assert SparkSession.getActiveSession() is None
"""


def test_a_session_of_its_own_is_quiet_and_leaves_nothing_behind(tmp_path: Path) -> None:
    sparksession.require()
    file = csv(tmp_path / "scores.csv")
    for folder in ("here", "temporary"):
        (tmp_path / folder).mkdir()
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path / "temporary"),
        "PYSPARK_PYTHON": "/there/is/no/python",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, file],
        cwd=tmp_path / "here",
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == WHOLE
    assert [*(tmp_path / "here").iterdir(), *(tmp_path / "temporary").iterdir()] == []


class Builder:
    """Stands in for Spark's own, which takes seconds; the test above starts that one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.stopped = error, False
        self.settings: dict[str, str] = {}

    def config(self, name: str, value: str) -> Self:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Self:  # noqa: N802  (Spark's name)
        os.system("echo loud; echo louder >&2")
        if self.error is not None:
            raise self.error
        return self

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    sparksession.require()
    from pyspark.sql import SparkSession

    made = Builder()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", made)
    return made


def test_a_session_is_started_quietly_and_stopped(
    builder: Builder, capfd: pytest.CaptureFixture[str]
) -> None:
    with spark_session() as session:
        assert session is builder
        assert builder.settings["spark.master"] == "local[*, 4]"
        scratch = Path(builder.settings["spark.local.dir"])
        assert scratch.is_dir()
        assert builder.settings["spark.driver.bindAddress"] == "127.0.0.1"
        os.system("echo heard")
    assert builder.stopped
    assert not scratch.exists()
    assert capfd.readouterr() == ("heard\n", "")


def test_the_session_that_runs_is_taken_and_left_running(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import SparkSession

    running: Any = Builder()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: running)
    with spark_session() as session:
        assert session is running
    assert not running.stopped


def test_without_java_one_sentence_says_what_to_install(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pyspark.errors import PySparkRuntimeError

    builder.error = PySparkRuntimeError("[JAVA_GATEWAY_EXITED]")
    with pytest.raises(MissingExtraError, match="did not start: it needs Java 17 or later; install one"):
        spark_session().__enter__()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingExtraError, match="needs Java 17 or later, which is not installed; install"):
        spark_session().__enter__()


def test_a_cluster_reaches_the_driver_by_its_own_name(builder: Builder) -> None:
    from pyspark.errors import PySparkException

    with spark_session("spark://host:7077"):
        assert builder.settings["spark.master"] == "spark://host:7077"
        assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.local.dir"} & set(
            builder.settings
        )
    builder.error = PySparkException("[SOMETHING] All masters are unresponsive")
    with pytest.raises(InputError, match=r"did not start with the master nonsense: .*All masters are unresp"):
        spark_session("nonsense").__enter__()
