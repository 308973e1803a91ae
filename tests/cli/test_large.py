"""Millions of rows: quick, in order, and with a bar where somebody watches."""

import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest

from pac_wrap import Certificate
from pac_wrap.tables.decide import copy_with
from pac_wrap.tables.table import found_files, open_found
from support.patience import LIMIT
from support.shell import CERTIFICATE, SCRIPT, parquet, succeeded

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
    start = time.process_time()
    out = succeeded("calibrate", table, "--score", "score", "--label", "label", "--max-fpr", "0.2")
    assert time.process_time() - start < 15
    assert f"{ROWS - ROWS // 10:,} labels" in out
    assert f"{ROWS // 10:,} labels" in out


def test_a_million_rows_are_decided_in_seconds_and_in_order(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "verdicts.parquet"
    start = time.process_time()
    succeeded("decide", CERTIFICATE, table, "--score", "score", "-o", output)
    assert time.process_time() - start < 15
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT id, score, verdict FROM '{output}'").fetchnumpy()
    assert np.array_equal(found["id"], np.arange(ROWS))
    assert np.array_equal(found["verdict"], Certificate.load(CERTIFICATE).verdicts(found["score"]))


@pytest.mark.slow
def test_progress_rises_while_a_query_runs(many: Path, tmp_path: Path) -> None:
    shares: list[float] = []
    output = tmp_path / "out.csv"
    with (
        found_files([str(many)]) as found,
        open_found(
            found, ["score"], whole=True, output=output, progress=lambda done: shares.append(done.share)
        ) as opened,
    ):
        copy_with(opened, "score", lambda _: ("1", "2"), output, "FORMAT csv", MANY)
    assert all(0 <= share <= 100 for share in shares)
    assert max(shares) > 20


@pytest.mark.slow
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
    # and what was done
    bar, _, done = shown.rpartition(b"pac-wrap: 6,000,000 rows: ")
    assert bar.rstrip(b"\r\n").endswith((b"\x1b[2K", b"\x1b[?25h")), bar[-40:]
    assert done.endswith(b"out.csv\r\n")


# its own peak: what getrusage tells begins with that of the process that started it
EMBEDDED = """
import sys
from pathlib import Path
from pac_wrap.cli.commands import app
app(sys.argv[1:], standalone_mode=False)
sys.stderr.write(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="the peak of a process is read as Linux reports it"
)


@pytest.mark.slow
@linux
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
    words += ["-o", tmp_path / "out.csv", "-q"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout == ""
    assert int(done.stderr) < 2_000_000  # kilobytes; as Python objects the rows would take more
