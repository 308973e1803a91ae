"""Signals and kill -9 at any moment: one code each, old files whole, and nothing left for long."""

import os
import signal
import subprocess
import sys
import time
from glob import glob
from pathlib import Path

import duckdb
import pytest

from support.killed import moments, scratch_in, signalled
from support.patience import LIMIT, until
from support.shell import CERTIFICATE, SCRIPT, command, one_sentence, parquet, write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

ROWS = 3_000_000
SIGNALS = {
    signal.SIGINT: (130, "interrupted; no file is left half written"),
    signal.SIGTERM: (143, "stopped by SIGTERM; no file is left half written"),
    signal.SIGHUP: (129, "stopped by SIGHUP; no file is left half written"),
}
every = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table of some seconds as CSV."""
    folder = tmp_path_factory.mktemp("large")
    columns = "i AS id, i % 977 / 100.0 AS score, i % 2 AS label, 'row ' || i AS name"
    duckdb.execute(f"COPY (SELECT {columns} FROM range({ROWS}) t(i)) TO '{folder}/many.csv' (HEADER)")
    return folder


def decided(source: Path, output: Path) -> list[object]:
    return ["decide", CERTIFICATE, source / "many.csv", "--score", "score", "-o", output]


def bytes_in_scratch(folder: Path) -> int:
    total = 0
    for scratch in scratch_in(folder):
        for path in scratch.rglob("*"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:  # DuckDB has taken it away
                continue
    return total


@pytest.mark.parametrize(
    ("number", "suffix"),
    [
        (signal.SIGINT, ".csv"),
        pytest.param(signal.SIGTERM, ".parquet", marks=pytest.mark.slow),
    ],
)
def test_while_writing_it_leaves_the_old_file_and_nothing_else(
    number: signal.Signals, suffix: str, source: Path, tmp_path: Path
) -> None:
    output = write(tmp_path / f"out{suffix}", "old")
    ended = signalled(decided(source, output), number, lambda: bytes_in_scratch(tmp_path) > 100_000, tmp_path)
    assert ended.in_time
    assert (ended.code, ended.out, ended.changed) == (SIGNALS[number][0], b"", frozenset())
    assert one_sentence(ended.err) == SIGNALS[number][1]


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGINT, "decide"), (signal.SIGTERM, "calibrate")],
)
def test_while_reading_it_is_one_sentence(
    number: signal.Signals, name: str, source: Path, tmp_path: Path
) -> None:
    label = ["--label", "label"] if name == "calibrate" else []
    certificate = [CERTIFICATE] if name == "decide" else []
    arguments = [name, *certificate, source / "many.csv", "--score", "score", *label]
    began: list[float] = []

    def reading() -> bool:
        if not began and scratch_in(tmp_path):
            began.append(time.monotonic())
        return bool(began) and time.monotonic() - began[0] > 0.3

    ended = signalled(arguments, number, reading, tmp_path)
    assert ended.in_time
    assert (ended.code, ended.changed) == (SIGNALS[number][0], frozenset())
    # on a fast machine verdicts may be on their way already
    assert ended.out == b"" or (name == "decide" and ended.out.startswith(b"id,score,label,name,verdict"))
    assert one_sentence(ended.err) == SIGNALS[number][1]


def test_while_standard_input_waits_it_is_one_sentence(tmp_path: Path) -> None:
    number = signal.SIGHUP
    arguments = ["decide", CERTIFICATE, "-", "--score", "score", "-o", tmp_path / "out.csv"]
    read, written = os.pipe()
    try:
        ended = signalled(
            arguments, number, lambda: any(tmp_path.rglob("standard-input*")), tmp_path, stdin=read
        )
    finally:
        os.close(read)
        os.close(written)
    assert (ended.code, ended.out, ended.changed) == (SIGNALS[number][0], b"", frozenset())
    assert one_sentence(ended.err) == SIGNALS[number][1]


@pytest.mark.slow
def test_while_nobody_reads_the_output_it_ends_at_once(source: Path, tmp_path: Path) -> None:
    number = signal.SIGTERM
    many = parquet(source / "many.parquet", f"SELECT * FROM '{source}/many.csv'")
    arguments = ["decide", CERTIFICATE, many, "--score", "score"]
    ended = signalled(arguments, number, None, tmp_path)
    assert (ended.in_time, ended.code, ended.changed) == (True, SIGNALS[number][0], frozenset())
    assert one_sentence(ended.err) == SIGNALS[number][1]


def test_twice_is_no_more_than_once(source: Path, tmp_path: Path) -> None:
    number = signal.SIGINT
    output = tmp_path / "out.csv"
    ended = signalled(
        decided(source, output), number, lambda: bytes_in_scratch(tmp_path) > 0, tmp_path, times=4
    )
    assert (ended.code, ended.out, ended.changed) == (SIGNALS[number][0], b"", frozenset())
    assert one_sentence(ended.err) == SIGNALS[number][1]


IMPORTING = """
import os, signal, sys, threading
sys.argv = ["pac-wrap", "decide", *sys.argv[1:]]
from pac_wrap.cli import main
class Finder:
    def find_spec(self, name, path, target=None):
        if name == os.environ["NAME"]:
            os.kill(os.getpid(), int(os.environ["NUMBER"]))
sys.meta_path.insert(0, Finder())
main()
"""


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("typer", signal.SIGINT),
        ("pac_wrap.cli.check", signal.SIGTERM),
        ("numpy.linalg", signal.SIGINT),
        ("scipy.special", signal.SIGHUP),
        pytest.param("duckdb", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_while_a_module_is_imported_it_is_one_sentence(name: str, number: signal.Signals) -> None:
    words = [sys.executable, "-c", IMPORTING, str(CERTIFICATE), "nothing.csv", "--score", "score"]
    environment = os.environ | {"NAME": name, "NUMBER": str(int(number))}
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, env=environment, check=False)
    assert (done.returncode, done.stdout) == (SIGNALS[number][0], "")
    assert one_sentence(done.stderr) == SIGNALS[number][1]


LISTENING = """
import os, signal, sys
from pac_wrap.cli import main
usual, number = signal.signal, int(sys.argv.pop())
def heard(sign, *arguments):
    usual(sign, *arguments)
    if sign == number:
        signal.signal = usual
        os.kill(os.getpid(), number)
signal.signal = heard
main()
"""


@every
def test_as_soon_as_it_is_listened_to_it_is_one_sentence(number: signal.Signals) -> None:
    words = [sys.executable, "-c", LISTENING, "--version", str(int(number))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (done.returncode, done.stdout) == (SIGNALS[number][0], "")
    assert one_sentence(done.stderr) == SIGNALS[number][1]


def test_signals_that_were_to_be_ignored_are_ignored() -> None:
    numbers = [signal.SIGINT, signal.SIGHUP]
    ignored = "".join(f"signal.signal({int(number)}, signal.SIG_IGN); " for number in numbers)
    ignored = f"import os, signal, sys; {ignored}os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", ignored, str(SCRIPT), "decide", str(CERTIFICATE), "-", "--score", "score"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"score\n5\n")
        process.stdin.flush()
        process.stdout.readline()
        for number in numbers:
            process.send_signal(number)
        time.sleep(0.2)
        out, _ = process.communicate(b"5\n", timeout=LIMIT)
    assert (process.returncode, out.count(b"\n")) == (0, 1)


@pytest.mark.slow
def test_at_random_moments_the_code_and_the_folder_agree(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    numbers = list(SIGNALS)
    stopped = 0
    for place, moment in enumerate(moments(seed=12, longest=1.5, count=12)):
        write(output, "old")
        number = numbers[place % 3]
        ended = signalled(decided(source, output), number, moment, tmp_path)
        assert scratch_in(tmp_path) == []
        if output.read_text() == "old":
            stopped += 1
            assert (ended.code, ended.changed) == (SIGNALS[number][0], frozenset())
            assert one_sentence(ended.err) == SIGNALS[number][1]
        else:
            assert ended.code in (0, SIGNALS[number][0])
            with output.open("rb") as whole:
                assert sum(1 for _ in whole) == ROWS + 1
    assert stopped >= 3


@pytest.mark.slow
def test_killed_it_leaves_nothing_visible_and_the_next_run_removes_the_rest(
    source: Path, tmp_path: Path
) -> None:
    output = write(tmp_path / "out.csv", "old")
    left = 0
    for moment in (0.0, *moments(seed=9, longest=0.6, count=4)):
        began: list[float] = []

        def come(moment: float = moment, began: list[float] = began) -> bool:
            if not began and bytes_in_scratch(tmp_path) > 10_000:
                began.append(time.monotonic())
            return bool(began) and time.monotonic() - began[0] > moment

        ended = signalled(decided(source, output), signal.SIGKILL, come, tmp_path)
        if not ended.in_time:
            continue
        assert ended.code == -signal.SIGKILL
        if output.read_text() != "old":  # it was killed after its work was done
            assert ended.visible == frozenset({output.name})
            with output.open() as whole:
                assert sum(1 for _ in whole) == ROWS + 1
            write(output, "old")
            continue
        assert ended.visible == frozenset()
        for pattern in ("*", "*.csv", "**/*.csv", "**/*"):
            assert glob(str(tmp_path / pattern), recursive=True) in (
                [str(output)],
                [f"{tmp_path}/", str(output)],
            )
        left += len(scratch_in(tmp_path)) > 0
        new = write(tmp_path / ".." / f"{tmp_path.name}.csv", "score\n5\n")
        done = subprocess.run(
            [SCRIPT, "decide", CERTIFICATE, new, "--score", "score", "-o", tmp_path / "other.csv"],
            env=os.environ | {"TMPDIR": str(tmp_path)},
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0
        assert scratch_in(tmp_path) == []
        (tmp_path / "other.csv").unlink()
    assert left >= 2


@pytest.mark.slow
def test_a_run_beside_a_living_one_leaves_its_scratch_alone(source: Path, tmp_path: Path) -> None:
    output, small = tmp_path / "out.csv", write(tmp_path / "small.csv", "score\n5\n")
    words = [str(SCRIPT), *map(str, decided(source, output))]
    with subprocess.Popen(words, env=os.environ | {"TMPDIR": str(tmp_path)}) as living:
        until(lambda: bytes_in_scratch(tmp_path) > 0, "the first one writes", step=0.01)
        assert living.poll() is None
        assert command("decide", CERTIFICATE, small, "--score", "score", "-o", tmp_path / "b.csv").code == 0
        assert living.wait(LIMIT) == 0
    with output.open("rb") as whole:
        assert sum(1 for _ in whole) == ROWS + 1
    assert scratch_in(tmp_path) == []
