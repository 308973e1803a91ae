"""`decide` keeps every row, column and value, and adds what the certificate says."""

import csv
import gzip
import io
import json
import os
import subprocess
from math import inf, nextafter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, calibrate
from support.patience import LIMIT
from support.shell import CERTIFICATE, GOLDEN, SCRIPT, command, parquet, succeeded, write

RULE = Certificate.load(CERTIFICATE)
LOW, HIGH = RULE.thresholds.clear_below, RULE.thresholds.alarm_from
assert LOW is not None
assert HIGH is not None
EDGES = [edge for end in (LOW, HIGH) for edge in (nextafter(end, -inf), end, nextafter(end, inf))]
SCORES = [*EDGES, *np.random.default_rng(0).normal(1, 2, 500).tolist(), -0.0, 1e300, -1e300]
SETS = {(True, False): "{0}", (False, True): "{1}", (True, True): "{0,1}", (False, False): "{}"}


def expected(certificate: Certificate, scores: Any) -> list[tuple[int, str]]:
    sets = [SETS[bool(zero), bool(one)] for zero, one in certificate.prediction_sets(scores)]
    return list(zip(certificate.verdicts(scores).tolist(), sets, strict=True))


def table(folder: Path, suffix: str, scores: list[float] = SCORES) -> Path:
    path = folder / f"new{suffix}"
    if suffix == ".csv":
        rows = [f"r{i},{score!r},{i % 7}\n" for i, score in enumerate(scores)]
        return write(path, "".join(["name,score,other\n", *rows]))
    if suffix == ".jsonl":
        rows = [
            json.dumps({"name": f"r{i}", "score": s, "other": i % 7}) + "\n" for i, s in enumerate(scores)
        ]
        return write(path, "".join(rows))
    values = ", ".join(f"({i}, '{score!r}'::DOUBLE)" for i, score in enumerate(scores))
    query = f"SELECT 'r' || i AS name, score, i % 7 AS other FROM (VALUES {values}) t(i, score) ORDER BY i"
    return parquet(path, query)


def read(path: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT * FROM '{path}'")
        return [column[0] for column in found.description or ()], found.fetchall()


@pytest.mark.parametrize("source", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("target", [".csv", ".csv.gz", ".jsonl", ".ndjson.gz", ".parquet"])
def test_every_output_holds_every_row_in_order_with_the_verdicts_of_the_certificate(
    source: str, target: str, tmp_path: Path
) -> None:
    output = tmp_path / f"out{target}"
    assert succeeded("decide", CERTIFICATE, table(tmp_path, source), "--score", "score", "-o", output) == ""
    columns, rows = read(output)
    assert columns == ["name", "score", "other", "verdict", "prediction_set"]
    # of a CSV, which has no types, every cell but the score is a text in JSON
    kind = str if (source, target[:2]) in ((".csv", ".j"), (".csv", ".n")) else int
    assert [row[:3] for row in rows] == [(f"r{i}", score, kind(i % 7)) for i, score in enumerate(SCORES)]
    assert [row[3:] for row in rows] == expected(RULE, SCORES)
    assert {row[3] for row in rows} == {0, 1, -1}


def rules() -> dict[str, Certificate]:
    rng = np.random.default_rng(1)
    normal, anomalous = rng.normal(0, 1, 300), rng.normal(2, 1, 300)
    return {
        "overlapping": calibrate(normal, anomalous),
        "separated": calibrate(normal, anomalous + 9),
        "one threshold": calibrate(normal, anomalous, overlap="algorithm1"),
        "hold_fnr": calibrate(normal, anomalous, overlap="hold_fnr"),
        "FPR only": calibrate(normal, anomalous, Guarantee(0.05, None)),
        "FNR only": calibrate(normal, anomalous, Guarantee(None, 0.05)),
        "vacuous": calibrate(normal[:9], anomalous[:9]),
        "vacuous FPR": calibrate(normal[:9], anomalous),
        "none": calibrate(normal[:1], anomalous[:1], overlap="algorithm1"),
    }


@pytest.mark.parametrize("name", rules())
def test_every_rule_gives_its_verdicts(name: str, tmp_path: Path) -> None:
    certificate = rules()[name]
    certificate.save(tmp_path / "certificate.json")
    ends = certificate.rule.normal_below, certificate.rule.anomaly_from
    scores = [
        *SCORES,
        *(beside for end in ends for beside in (nextafter(end, -inf), end, nextafter(end, inf))),
    ]
    output = tmp_path / "out.parquet"
    succeeded(
        "decide",
        tmp_path / "certificate.json",
        table(tmp_path, ".parquet", scores),
        "--score",
        "score",
        "-o",
        output,
    )
    assert [row[3:] for row in read(output)[1]] == expected(certificate, scores)


@pytest.mark.parametrize(
    ("kind", "values"),
    # 0.46 and 1.935 are thresholds
    [("FLOAT", [0.45, 1.94]), ("INTEGER", [0, 2]), ("DECIMAL(9, 4)", [0.46, 1.935]), ("BOOLEAN", [0, 1])],
)
def test_narrow_scores_are_compared_as_doubles_and_keep_their_type(
    kind: str, values: list[float], tmp_path: Path
) -> None:
    query = f"SELECT x::{kind} AS score FROM (VALUES ({values[0]}), ({values[1]})) t(x)"
    output = tmp_path / "out.parquet"
    succeeded("decide", CERTIFICATE, parquet(tmp_path / "a.parquet", query), "--score", "score", "-o", output)
    as_stored = np.array(values, dtype=np.float32) if kind == "FLOAT" else np.array(values, dtype=float)
    assert [row[1:] for row in read(output)[1]] == expected(RULE, as_stored)
    with duckdb.connect() as connection:
        described = connection.execute(f"DESCRIBE SELECT * FROM '{output}'").fetchall()
    assert described[0][1].replace(" ", "") == kind.replace(" ", "")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("source", [".csv", ".jsonl", ".parquet"])
def test_standard_input_to_standard_output(source: str, form: str, tmp_path: Path) -> None:
    content = table(tmp_path, source).read_bytes()
    out = succeeded("decide", CERTIFICATE, "-", "--score", "score", "--format", form, stdin=content)
    if form == "jsonl":
        rows = [json.loads(line) for line in out.splitlines()]
    else:
        rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["name", "score", "other", "verdict", "prediction_set"]
    assert [float(row["score"]) for row in rows] == SCORES
    assert [(int(row["verdict"]), row["prediction_set"]) for row in rows] == expected(RULE, SCORES)


def test_a_real_pipe_works(tmp_path: Path) -> None:
    done = command(
        "decide", CERTIFICATE, "-", "--score", "score", "--format", "jsonl", stdin=b"score\n0.1\n1\n5\n"
    )
    assert (done.code, done.err) == (0, "pac-wrap: 3 rows: 1 normal, 1 alarm, 1 undecided\n")
    assert [json.loads(line)["verdict"] for line in done.out.splitlines()] == [0, -1, 1]


def test_several_files_and_patterns_are_decided_in_the_order_given(tmp_path: Path) -> None:
    write(tmp_path / "b.csv", "score\n1\n2\n")
    write(tmp_path / "a.csv.gz", gzip.compress(b"score\n3.5\n"))
    out = succeeded(
        "decide", CERTIFICATE, tmp_path / "b.csv", tmp_path / "a*", "--score", "score", "--format", "jsonl"
    )
    assert [json.loads(line)["score"] for line in out.splitlines()] == [1.0, 2.0, 3.5]


def test_infinite_scores_are_decided(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", "SELECT unnest(['inf', '-inf', '1.0']::DOUBLE[]) AS score")
    output = tmp_path / "out.parquet"
    succeeded("decide", CERTIFICATE, path, "--score", "score", "-o", output)
    assert read(output)[1] == [(inf, 1, "{1}"), (-inf, 0, "{0}"), (1.0, -1, "{0,1}")]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_nested_columns_are_kept(suffix: str, tmp_path: Path) -> None:
    columns = "[1, 2] AS a, [3] AS b, {'x': 1} AS c, {'x': 2} AS d, {'x': {'x': 3}} AS x, 1.5 AS score"
    source, output = parquet(tmp_path / "a.parquet", f"SELECT {columns}"), tmp_path / f"out{suffix}"
    succeeded("decide", CERTIFICATE, source, "--score", "score", "-o", output)
    (row,) = read(output)[1]
    assert row[:5] == ([1, 2], [3], {"x": 1}, {"x": 2}, {"x": {"x": 3}})


def test_numbers_that_are_text_in_some_rows_of_json_lines_are_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"score": 5}\n{"score": "0.25"}\n{"score": "inf"}\n')
    out = succeeded("decide", CERTIFICATE, path, "--score", "score", "--format", "csv")
    assert [line.split(",")[1] for line in out.splitlines()[1:]] == ["1", "0", "1"]


def test_only_the_last_ending_says_how_columns_are_typed(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "id,score\n7,1.5\n")
    for name in ("plain.parquet", "verdicts.csv.parquet"):
        succeeded("decide", CERTIFICATE, source, "--score", "score", "-o", tmp_path / name)
        assert read(tmp_path / name)[1] == [(7, 1.5, -1, "{0,1}")]


def test_an_older_output_is_replaced(tmp_path: Path) -> None:
    output = write(tmp_path / "out.csv", "something older and longer\n" * 100)
    succeeded(
        "decide", CERTIFICATE, write(tmp_path / "a.csv", "score\n1.5\n"), "--score", "score", "-o", output
    )
    assert output.read_text() == 'score,verdict,prediction_set\n1.5,-1,"{0,1}"\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "out.csv"]


CELLS = {
    "leading zeros": ["01234", "00001"],
    "hashes that look like floats": ["12e3", "45e6"],
    "long numbers": ["1234567890123456789012345678901234567890", "7"],
    "many digits": ["0.12345678901234567890123", "0.5"],
    "trailing zeros": ["1.10", "2.00"],
    "times": ["2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"],
    "dates": ["01/02/2024", "03/04/2024"],
    "truths": ["True", "FALSE"],
    "words": ["NULL", "nan"],
    "spaces": [" x", "y "],
}


@pytest.mark.parametrize("cells", CELLS.values(), ids=list(CELLS))
def test_cells_of_a_csv_file_reach_a_csv_file_unchanged(cells: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "cell,score\n" + "".join(f"{cell},1.5\n" for cell in cells))
    out = succeeded("decide", CERTIFICATE, path, "--score", "score", "--format", "csv")
    assert [row["cell"] for row in csv.DictReader(io.StringIO(out))] == cells


def test_a_column_that_turns_from_numbers_to_text_late_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,score\n" + "".join(f"{i},1\n" for i in range(30_000)) + "x7,1.5\n")
    output = tmp_path / "out.csv"
    succeeded("decide", CERTIFICATE, path, "--score", "score", "-o", output)
    lines = output.read_text().splitlines()
    assert len(lines) == 30_002
    assert lines[1].startswith("0,1")
    assert lines[-1] == 'x7,1.5,-1,"{0,1}"'


def test_a_pipe_without_an_ending_gets_the_format_that_is_asked_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = ["decide", CERTIFICATE, GOLDEN / "new.csv", "--score", "score", "--format", "csv", "-o", pipe]
    process = subprocess.Popen([SCRIPT, *map(str, words)])
    with pipe.open(encoding="utf-8") as opened:
        assert opened.read() == (GOLDEN / "verdicts.csv").read_text(encoding="utf-8")
    assert process.wait(LIMIT) == 0
    assert pipe.is_fifo()
