"""Millions of rows: quick, in order, with a bar where somebody watches, and interruptible at any moment."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest

from pac_wrap import Certificate
from pac_wrap.tables import found_files, open_found
from shell import CERTIFICATE, SCRIPT, listing, one_sentence, parquet, succeeded

ROWS = 1_000_000
MANY = 6_000_000
posix = pytest.mark.skipif(os.name != "posix", reason="signals and terminals of POSIX")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("large")


@pytest.fixture(scope="module")
def table(folder: Path) -> Path:
    """Return a CSV file of a million rows; every tenth is an anomaly, and anomalies score higher."""
    path = folder / "scores.csv"
    query = "SELECT i AS id, (i * 7919 % 1000) / 250.0 + 3 * (i % 10 = 0)::INTEGER AS score,"
    query += f" (i % 10 = 0)::INTEGER AS label, 'row ' || i AS name FROM range({ROWS}) t(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT csv, HEADER)")
    return path


@pytest.fixture(scope="module")
def many(folder: Path) -> Path:
    """Return a Parquet file that takes some seconds to decide."""
    columns = "i AS id, i % 977 / 100.0 AS score, i % 2 AS label, 'row ' || i AS name"
    return parquet(folder / "many.parquet", f"SELECT {columns} FROM range({MANY}) t(i)")


def test_a_million_rows_are_calibrated_in_seconds(table: Path) -> None:
    start = time.perf_counter()
    out = succeeded("calibrate", table, "--score", "score", "--label", "label", "--max-fpr", "0.2")
    assert time.perf_counter() - start < 15
    assert f"{ROWS - ROWS // 10:,} scores" in out
    assert f"{ROWS // 10:,} scores" in out


def test_a_million_rows_are_decided_in_seconds_and_in_order(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "verdicts.parquet"
    start = time.perf_counter()
    succeeded("decide", CERTIFICATE, table, "--score", "score", "-o", output)
    assert time.perf_counter() - start < 15
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT id, score, verdict FROM '{output}'").fetchnumpy()
    assert np.array_equal(found["id"], np.arange(ROWS))
    assert np.array_equal(found["verdict"], Certificate.load(CERTIFICATE).verdicts(found["score"]))


def test_progress_rises_while_a_query_runs(many: Path, tmp_path: Path) -> None:
    shares: list[float] = []
    output = tmp_path / "out.csv"
    with (
        found_files([str(many)]) as found,
        open_found(found, ["score"], whole=True, output=output, progress=shares.append) as opened,
    ):
        opened.copy({"one": "1"}, str(output), "FORMAT csv", MANY)
    assert all(0 <= share <= 100 for share in shares)
    assert max(shares) > 20


def running(*arguments: object, scratch: Path) -> subprocess.Popen[bytes]:
    words = [str(SCRIPT), *map(str, arguments)]
    environment = os.environ | {"TMPDIR": str(scratch)}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def interrupt(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> tuple[int, bytes, str]:
    """Press Ctrl-C as soon as the command is ready for it, and return how it ended."""
    deadline = time.monotonic() + 60
    while not ready() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be interrupted"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err.decode()


@posix
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_ctrl_c_while_writing_leaves_the_old_file_and_nothing_else(
    suffix: str, many: Path, tmp_path: Path
) -> None:
    place, scratch = tmp_path / "place", tmp_path / "scratch"
    place.mkdir()
    scratch.mkdir()
    output = place / f"out{suffix}"
    output.write_text("old")
    before = listing(place)
    process = running("decide", CERTIFICATE, many, "--score", "score", "-o", output, scratch=scratch)
    code, out, err = interrupt(process, lambda: sum(size for size, *_ in listing(place).values()) > 100_000)
    assert listing(place) == before
    assert list(scratch.iterdir()) == []
    assert (code, out) == (2, b"")
    assert one_sentence(err) == "interrupted; no file is left half written"


@posix
@pytest.mark.parametrize("name", ["decide", "calibrate"])
def test_ctrl_c_while_reading_is_one_sentence(name: str, table: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tables = [table] * (3 if name == "decide" else 8)  # decide reads a file more than once
    arguments: list[object] = ["--score", "score"]
    arguments += ["--label", "label"] if name == "calibrate" else []
    certificate = [CERTIFICATE] if name == "decide" else []
    start: list[float] = []

    def reading() -> bool:
        # the folder for spilled rows is made before the tables are opened
        if not start and any(scratch.iterdir()):
            start.append(time.monotonic())
        return bool(start) and time.monotonic() - start[0] > 0.4

    process = running(name, *certificate, *tables, *arguments, scratch=scratch)
    code, out, err = interrupt(process, reading)
    assert (code, out) == (2, b"")
    assert one_sentence(err) == "interrupted; no file is left half written"
    assert list(scratch.iterdir()) == []


@posix
def test_ctrl_c_while_standard_input_waits_is_one_sentence(tmp_path: Path) -> None:
    words = [str(SCRIPT), "decide", str(CERTIFICATE), "-", "--score", "score"]
    words += ["-o", str(tmp_path / "out.csv")]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    code, out, err = interrupt(process, lambda: any(tmp_path.rglob("standard-input*")))
    assert (code, out) == (2, b"")
    assert one_sentence(err) == "interrupted; no file is left half written"
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_bar_is_shown_on_a_terminal_after_a_second_and_taken_away_again(many: Path, tmp_path: Path) -> None:
    import pty

    master, slave = pty.openpty()
    words: list[str | Path] = [SCRIPT, "decide", CERTIFICATE, many, "--score", "score"]
    words += ["-o", tmp_path / "out.csv"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                chunk = os.read(master, 4096)
            except OSError:  # what Linux says when the other end is closed
                break
            if not chunk:
                break
            shown += chunk
    os.close(master)
    assert process.returncode == 0
    assert b"deciding" in shown
    assert shown.rstrip(b"\r\n").endswith((b"\x1b[2K", b"\x1b[?25h")), shown[-40:]


EMBEDDED = """
import resource, sys
from pac_wrap.cli import app
app(sys.argv[1:], standalone_mode=False)
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


@posix
def test_many_rows_take_little_memory_and_show_nothing_where_nobody_watches(
    many: Path, tmp_path: Path
) -> None:
    # without a main script, DuckDB takes the process for a notebook and would draw a bar of its own
    words: list[str | Path] = [
        sys.executable,
        "-c",
        EMBEDDED,
        "decide",
        CERTIFICATE,
        many,
        "--score",
        "score",
    ]
    words += ["-o", tmp_path / "out.csv"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == ""
    assert int(done.stderr) < 2_000_000  # kilobytes; as Python objects the rows would take more
