"""A table on standard input is decided as the same table in a file is, streamed or not."""

import csv
import io
import json
from math import inf, nextafter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pac_wrap import Certificate
from support.pieces import answers
from support.shell import CERTIFICATE, invoke, listing, nothing_left, one_sentence, succeeded, write


@pytest.fixture
def shared_databases() -> None:
    """Here every database is closed off, as in real commands: what is written must be allowed."""


RULE = Certificate.load(CERTIFICATE)
ENDS = RULE.rule.normal_below, RULE.rule.anomaly_from
EDGES = [edge for end in ENDS for edge in (nextafter(end, -inf), end, nextafter(end, inf))]
CELLS = [
    "plain",
    "comma, inside",
    'a "quote"',
    "two\nlines",
    "",
    " spaces ",
    "01234",
    "ünï 異 🎲",
    "a\tb;c|d",
]
SCORES = [*EDGES, *np.random.default_rng(3).normal(1, 2, 2_000).tolist(), -0.0, 1e300, -1e300]


@pytest.mark.parametrize("source", ["csv", "jsonl"])
def test_a_stream_and_a_file_are_decided_alike(source: str, tmp_path: Path) -> None:
    rows = [[str(i), repr(score), CELLS[i % len(CELLS)]] for i, score in enumerate(SCORES)]
    if source == "csv":
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerows([["id", "score", "cell"], *rows])
        content = out.getvalue().encode()
    else:
        content = "".join(
            json.dumps({"id": int(i), "score": float(score), "cell": cell}) + "\n" for i, score, cell in rows
        ).encode()
    path = write(tmp_path / f"a.{source}", content)
    options = ["--score", "score", "--format", "csv"]
    streamed = succeeded("decide", CERTIFICATE, "-", *options, stdin=content)
    from_file = succeeded("decide", CERTIFICATE, path, *options)
    found, wanted = (list(csv.reader(io.StringIO(text, newline=""))) for text in (streamed, from_file))
    assert found[0] == wanted[0] == ["id", "score", "cell", "verdict", "prediction_set"]
    for column in (0, 2, 3, 4):
        assert [row[column] for row in found] == [row[column] for row in wanted]
    assert [float(row[1]) for row in found[1:]] == [float(row[1]) for row in wanted[1:]] == SCORES
    assert [(int(row[3]), row[4]) for row in found[1:]] == answers(RULE, SCORES)
    assert [row[2] for row in found[1:]] == [row[2] for row in rows]


@pytest.mark.parametrize("name", ["a.json", "lines.json", "a.parquet"])
def test_what_cannot_be_streamed_is_still_read_whole(name: str, tmp_path: Path) -> None:
    rows = [{"id": i, "score": score} for i, score in enumerate(SCORES)]
    if name == "a.parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    elif name == "a.json":
        write(tmp_path / name, json.dumps(rows))
    else:
        write(tmp_path / name, "\n".join(json.dumps(row, indent=1) for row in rows))
    content = (tmp_path / name).read_bytes()
    with nothing_left(tmp_path):
        out = succeeded("decide", CERTIFICATE, "-", "--score", "score", "--format", "jsonl", stdin=content)
    found = [json.loads(line) for line in out.splitlines()]
    assert [(row["verdict"], row["prediction_set"]) for row in found] == answers(RULE, SCORES)


def test_with_an_output_a_bad_row_means_that_nothing_is_written(tmp_path: Path) -> None:
    before = listing(tmp_path)
    for tables in (["-"], ["-", write(tmp_path.parent / "more.csv", "score\n1\n")]):
        arguments = ["decide", CERTIFICATE, *tables, "--score", "score", "-o", tmp_path / "out.csv"]
        done = invoke(*arguments, stdin=b"score\n1\nx\n")
        assert (done.code, done.out) == (2, "")
        assert "got 'x' in row 2" in one_sentence(done.err)
        assert listing(tmp_path) == before
