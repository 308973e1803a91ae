"""Outputs that are no ordinary files are written into or refused; what replaces a file is never more open."""

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path

import pytest

from pac_wrap.base.files import whole_file, write_whole
from pac_wrap.errors import OutputError
from support.patience import LIMIT
from support.shell import CERTIFICATE, GOLDEN, command, refused, succeeded

NEW = [GOLDEN / "new.csv", "--score", "score", "--quiet"]
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make devices and give files away")


@contextmanager
def reader_of(pipe: Path) -> Iterator[list[bytes]]:
    """Read a named pipe to its end in the background; the list holds what came once the block is over."""
    came: list[bytes] = []
    thread = threading.Thread(target=lambda: came.append(pipe.read_bytes()), daemon=True)
    thread.start()
    yield came
    thread.join(30)
    assert not thread.is_alive(), "the pipe was never written"


def null_device(folder: Path, name: str) -> Path:
    path = folder / name
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    return path


@pytest.mark.slow
@root
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.jsonl"])
def test_a_device_stays_a_device(name: str, tmp_path: Path) -> None:
    device = null_device(tmp_path, name)
    before = device.lstat()
    succeeded("decide", CERTIFICATE, *NEW, "-o", device)
    after = device.lstat()
    assert stat.S_ISCHR(after.st_mode)
    assert (after.st_ino, after.st_rdev) == (before.st_ino, before.st_rdev)
    assert os.listdir(tmp_path) == [name]


@root
def test_a_certificate_and_a_report_into_devices(tmp_path: Path) -> None:
    scores = [GOLDEN / "scores.csv", "--score", "score", "--label", "label"]
    devices = [null_device(tmp_path, name) for name in ("out.json", "out.md")]
    link = tmp_path / "link.json"
    link.symlink_to(devices[0])
    done = command("calibrate", *scores, "-o", link, "--report", devices[1])
    assert done.code == 0
    assert done.err == f"pac-wrap: 120 rows: 60 normal, 60 anomalous -> {link}, {devices[1]}\n"
    assert all(stat.S_ISCHR(path.lstat().st_mode) for path in devices)
    assert link.is_symlink()


@pytest.mark.parametrize("way", ["link", pytest.param("itself", marks=pytest.mark.slow)])
def test_a_pipe_gets_the_whole_and_stays_a_pipe(way: str, tmp_path: Path) -> None:
    pipe = tmp_path / "out.csv"
    os.mkfifo(pipe)
    target = pipe
    if way == "link":
        target = tmp_path / "link.csv"
        target.symlink_to(pipe)
    with reader_of(pipe) as came:
        done = command("decide", CERTIFICATE, *NEW, "-o", target)
    assert (done.code, done.err) == (0, "")
    assert came[0] == (GOLDEN / "verdicts.csv").read_bytes()
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_pipe_gets_more_than_it_holds_at_once(tmp_path: Path) -> None:
    pipe, text = tmp_path / "pipe", "0123456789" * 300_000
    os.mkfifo(pipe)
    with reader_of(pipe) as came:
        write_whole(pipe, text)
    assert came[0] == text.encode()


def test_a_failure_before_the_end_writes_nothing_into_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ZeroDivisionError), whole_file(pipe) as temporary:
        temporary.write_text("x" * (1 // 0))
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(handle, 10) == b""
    os.close(handle)


@root
def test_a_device_that_is_full_is_one_sentence(tmp_path: Path) -> None:
    # one of our own: code that replaces devices must not get at the machine's
    device = tmp_path / "full"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    sentence = f"cannot write {device}: No space left on device; the output is incomplete"
    with pytest.raises(OutputError, match=f"^{sentence}$"):
        write_whole(device, "text")
    assert stat.S_ISCHR(device.lstat().st_mode)


@root
def test_a_block_device_is_refused(tmp_path: Path) -> None:
    device = tmp_path / "out.csv"
    os.mknod(device, 0o600 | stat.S_IFBLK, os.makedev(240, 77))
    sentence = refused(tmp_path, "decide", CERTIFICATE, *NEW, "-o", device)
    assert sentence == (
        f"cannot write {device}: it is neither a file, a pipe nor a character device; nothing was written"
    )


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("out.csv")
        assert "neither a file" in refused(tmp_path, "decide", CERTIFICATE, *NEW, "-o", "out.csv")
        assert stat.S_ISSOCK(os.lstat("out.csv").st_mode)


WRITES = (
    "import sys; from pac_wrap.base.files import write_whole; print('one');"
    " write_whole(sys.argv[1], 'two\\n')"
)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="open files with names")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
@pytest.mark.parametrize("way", ["file", "pipe"])
def test_an_open_file_is_written_on_and_never_replaced(name: str, way: str, tmp_path: Path) -> None:
    if name == "link":
        (tmp_path / "link").symlink_to("/dev/stdout")
    log = tmp_path / "log"
    log.write_text("zero\n")
    before = log.stat().st_ino
    to = ">> log" if way == "file" else "| cat >> log"
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" "$2" {to}', sys.executable, WRITES, name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    assert done.stderr == ""
    assert log.read_text() == "zero\none\ntwo\n"
    assert log.stat().st_ino == before


def modes_while_written(target: Path) -> tuple[int, int]:
    """Return the permissions of the temporary file at its first byte, and of its folder."""
    with whole_file(target) as temporary:
        modes = temporary.stat().st_mode, temporary.parent.stat().st_mode
        temporary.write_text("new")
    return stat.S_IMODE(modes[0]), stat.S_IMODE(modes[1])


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o666, 0o400])
def test_what_replaces_a_file_has_its_permissions_from_the_first_byte(kept: int, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(kept)
    assert modes_while_written(target) == (kept, 0o700)
    assert stat.S_IMODE(target.stat().st_mode) == kept


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".jsonl"])
def test_verdicts_keep_the_permissions_of_the_file_they_replace(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"out{suffix}"
    target.write_text("old")
    target.chmod(0o604)
    succeeded("decide", CERTIFICATE, *NEW, "-o", target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
    assert os.listdir(tmp_path) == [target.name]


def test_nobody_asks_for_the_umask_which_would_change_it_for_all_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: int) -> int:
        raise AssertionError("os.umask is for the whole process")

    monkeypatch.setattr(os, "umask", ask)
    write_whole(tmp_path / "file", "text")
    write_whole(tmp_path / "file", "text")


@root
def test_the_owner_stays_the_owner(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    os.chown(target, 54321, 54322)
    write_whole(target, "new")
    facts = target.stat()
    assert (target.read_text(), facts.st_uid, facts.st_gid) == ("new", 54321, 54322)


@pytest.mark.parametrize(("kept", "given"), [(0o640, 0o600), (0o664, 0o644), (0o660, 0o600), (0o777, 0o777)])
def test_where_the_group_cannot_stay_it_may_do_what_everybody_may(
    kept: int, given: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(kept)
    usual = Path.stat

    class Foreign:
        st_mode, st_uid, st_gid = kept | stat.S_IFREG, os.geteuid(), 54322

    def denied(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", denied)
    monkeypatch.setattr(Path, "stat", lambda self, **how: Foreign if self == target else usual(self, **how))
    write_whole(target, "new")
    monkeypatch.undo()
    assert stat.S_IMODE(target.stat().st_mode) == given


def test_the_file_and_then_its_folder_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    usual = os.fsync, os.replace

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        usual[0](handle)

    def replaced(one: Path, other: Path) -> None:
        done.append("replace")
        usual[1](one, other)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_whole(tmp_path / "file", "text")
    assert done == ["file", "replace", "folder"]


def test_a_half_written_file_matches_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "verdicts.csv"
    with whole_file(target) as temporary:
        temporary.write_text("score,label\n1,0\n")
        for pattern in ("out/*.csv", "**/*.csv", "out/*", "**/*"):
            assert files_matching(pattern, tmp_path) == []
        columns = ["--score", "score", "--label", "label"]
        sentence = refused(tmp_path / "out", "evaluate", CERTIFICATE, tmp_path / "out/*", *columns)
        assert sentence == f"no file matches {tmp_path}/out/*"


def files_matching(pattern: str, folder: Path) -> list[str]:
    """Return the files that Python's and the shell's patterns match."""
    found = [name for name in glob(pattern, root_dir=folder, recursive=True) if (folder / name).is_file()]
    shell = subprocess.run(
        [
            "bash",
            "-O",
            "globstar",
            "-O",
            "nullglob",
            "-c",
            f"for f in {pattern}; do [ -f $f ] && echo $f; done",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return found + shell.stdout.split()
