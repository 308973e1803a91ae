"""`decide` on standard input, through real pipes: at once, in flat memory, no faster than it is read."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.patience import LIMIT, until
from support.shell import CERTIFICATE, SCRIPT, invoke, one_sentence

WORDS = [str(SCRIPT), "decide", str(CERTIFICATE), "-", "--score", "score", "--format", "jsonl"]
posix = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")


@contextmanager
def running(*options: str, scratch: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Start a decision that waits for its input, and end it if the test has not."""
    environment = os.environ | ({} if scratch is None else {"TMPDIR": str(scratch)})
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*WORDS, *options], env=environment, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def send(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.flush()


def next_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        return process.stdout.readline().decode()
    finally:
        timer.cancel()


@posix
def test_verdicts_come_out_before_the_input_ends_and_no_file_is_made(tmp_path: Path) -> None:
    with running(scratch=tmp_path) as process:
        send(process, "id,score\n1,0.1\n2,5")
        assert json.loads(next_line(process)) == {
            "id": "1",
            "score": 0.1,
            "verdict": 0,
            "prediction_set": "{0}",
        }
        send(process, "\n")
        assert json.loads(next_line(process))["verdict"] == 1
        send(process, "3,1\n")
        assert json.loads(next_line(process))["verdict"] == -1
        assert list(tmp_path.iterdir()) == []
        send(process, "4,5\n5,")
        assert json.loads(next_line(process))["id"] == "4"
        send(process, "0.1")
        out, err = process.communicate(timeout=LIMIT)
    assert (json.loads(out)["id"], process.returncode) == ("5", 0)
    assert err == b"pac-wrap: 5 rows: 2 normal, 2 alarms, 1 undecided\n"


@posix
def test_a_row_is_decided_when_its_last_line_has_come() -> None:
    with running("--format", "csv") as process:
        send(process, 'id,score\n1,0.1\n"2\n')
        assert next_line(process) == "id,score,verdict,prediction_set\n"
        assert next_line(process) == "1,0.1,0,{0}\n"
        send(process, '2",5\n')
        assert [next_line(process), next_line(process)] == ['"2\n', '2",5,1,{1}\n']


@posix
def test_a_slow_writer_whose_pipe_does_not_wait_is_waited_for() -> None:
    read, written = os.pipe()
    os.set_blocking(read, False)
    with subprocess.Popen(WORDS, stdin=read, stdout=subprocess.PIPE) as process:
        os.close(read)
        for text in (b"score\n", b"0.1\n", b"5\n"):
            time.sleep(0.7)
            os.write(written, text)
        os.close(written)
        assert process.stdout is not None
        assert process.stdout.read().count(b"\n") == 2
    assert process.returncode == 0


def memory(process: subprocess.Popen[bytes], name: str = "VmRSS") -> int:
    """Return the memory of a process in kilobytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:"))


def feed(process: subprocess.Popen[bytes], batch: bytes, sent: list[int], batches: int) -> None:
    """Write batches until the pipe breaks; `sent` counts the bytes that were taken."""
    assert process.stdin is not None
    handle = process.stdin.fileno()
    try:
        for _ in range(batches):
            rest = batch
            while rest:
                taken = os.write(handle, rest[:4096])
                rest, sent[0] = rest[taken:], sent[0] + taken
        process.stdin.close()
    except OSError:
        pass


def batch_of(rows: int) -> bytes:
    scores = np.random.default_rng(0).normal(1, 2, rows)
    return "".join(f"{i},{score!r},row {i}\n" for i, score in enumerate(scores.tolist())).encode()


@pytest.mark.slow
@linux
def test_nobody_reads_so_nothing_more_is_read_either() -> None:
    batch, sent = batch_of(5_000), [0]
    with running("--format", "csv") as process:
        send(process, "id,score,name\n0,1,x\n")
        next_line(process)
        writer = threading.Thread(target=feed, args=(process, batch, sent, 10_000), daemon=True)
        writer.start()
        until(lambda: sent[0] > 0, "the first batch is read")
        taken, quiet = -1, 0
        while quiet < 5:  # for a second
            time.sleep(0.2)
            quiet = quiet + 1 if sent[0] == taken else 0
            taken = sent[0]
        # two pipes and what is being decided, of the 1.4 GB that are offered
        assert 0 < taken < 4_000_000
        assert memory(process) < 200_000
        assert process.stdout is not None
        for _ in range(50_000):  # it goes on when it is read again
            next_line(process)
        assert sent[0] > taken
        process.kill()
        writer.join(LIMIT)


@pytest.mark.slow
@linux
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_memory_stays_flat_over_millions_of_rows(form: str) -> None:
    batch, sent = batch_of(20_000), [0]
    with running("--format", form) as process:
        send(process, "id,score,name\n")
        writer = threading.Thread(target=feed, args=(process, batch, sent, 75), daemon=True)
        writer.start()
        assert process.stdout is not None
        lines = 0
        peaks: list[int] = []
        while chunk := process.stdout.read1(1 << 20):  # type: ignore[attr-defined]  # a buffered reader
            lines += chunk.count(b"\n")
            if lines > 100_000 * (1 + len(peaks)) and process.poll() is None:
                peaks.append(memory(process, "VmHWM"))
        writer.join(LIMIT)
        assert process.wait(LIMIT) == 0
    assert lines == 1_500_000 + (form == "csv")
    assert len(peaks) > 10
    # 50 MB of text; a copy of it, or of its rows, would show
    assert peaks[-1] - peaks[0] < 8_000


@posix
def test_a_reader_that_has_seen_enough_ends_it_quietly() -> None:
    sent = [0]
    with running() as process:
        send(process, "id,score,name\n")
        writer = threading.Thread(target=feed, args=(process, batch_of(5_000), sent, 10_000), daemon=True)
        writer.start()
        assert json.loads(next_line(process))["id"] == "0"
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(LIMIT) == 0
        assert process.stderr.read() == b""
        writer.join(LIMIT)


@posix
def test_ctrl_c_is_one_sentence_and_what_was_decided_stays() -> None:
    with running() as process:
        send(process, "score\n5\n")
        assert json.loads(next_line(process))["verdict"] == 1
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (130, b"")
    assert err.decode() == (
        "pac-wrap: 1 row: 0 normal, 1 alarm, 0 undecided\n"
        "pac-wrap: interrupted; no file is left half written\n"
    )


def test_a_bad_row_in_the_middle_ends_it_after_all_rows_before() -> None:
    rows = "".join(f"{i},1\n" for i in range(30_000))
    done = invoke(
        "decide",
        CERTIFICATE,
        "-",
        "--score",
        "score",
        "--format",
        "jsonl",
        stdin=f"id,score\n{rows}x,y\n{rows}".encode(),
    )
    assert done.code == 2
    assert one_sentence(done.err) == (
        "column 'score' must hold numbers, got 'y' in row 30,001; fix that row;"
        " rows decided before it: 30,000"
    )
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == [str(i) for i in range(30_000)]


def test_no_input_is_one_sentence() -> None:
    done = invoke("decide", CERTIFICATE, "-", "--score", "score", stdin=b"")
    assert (done.code, done.out) == (2, "")
    assert one_sentence(done.err) == "standard input is empty; it needs a header and rows"


@posix
def test_a_closed_standard_input_is_one_sentence() -> None:
    for words in (WORDS, [*WORDS[:-2], "-o", "out.csv"]):
        done = subprocess.run(
            ["sh", "-c", '"$@" <&-', "sh", *words],
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 2
        sentence = "standard input is closed; pipe a table into it, or name a file"
        assert one_sentence(done.stderr.decode()) == sentence


@posix
def test_a_closed_standard_output_is_one_sentence(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("score\n5\n")
    for source in ("-", str(table)):
        words = [word if word != "-" else source for word in WORDS]
        shell = ["sh", "-c", '"$@" >&- <"$0"', str(table), *words]
        done = subprocess.run(shell, stderr=subprocess.PIPE, timeout=LIMIT, check=False)
        assert done.returncode == 2
        assert one_sentence(done.stderr.decode()) == "standard output is closed; name a file with -o"


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_is_one_sentence() -> None:
    with open("/dev/full", "wb") as full:
        words: dict[str, Any] = {"stdout": full, "stderr": subprocess.PIPE, "timeout": LIMIT, "check": False}
        done = subprocess.run(WORDS, input=b"score\n5\n", **words)
    assert done.returncode == 2
    assert one_sentence(done.stderr.decode()) == "cannot write standard output: No space left on device"
