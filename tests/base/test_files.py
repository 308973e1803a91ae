"""A file is there whole or as it was before, whatever stops the writing."""

import errno
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import Certificate, calibrate
from pac_wrap.base.files import check_folder, write_whole
from pac_wrap.errors import OutputError
from support.patience import LIMIT


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)


def test_writes_the_text_as_utf8_with_plain_newlines(tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    write_whole(path, "größer\n≤ 0.05\n")
    assert path.read_bytes() == "größer\n≤ 0.05\n".encode()
    assert os.listdir(tmp_path) == ["new.txt"]


def test_takes_a_path_as_text_and_an_empty_text(tmp_path: Path) -> None:
    write_whole(str(tmp_path / "empty"), "")
    assert (tmp_path / "empty").read_bytes() == b""


def test_a_relative_path_is_taken_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_whole("here.txt", "text")
    assert (tmp_path / "here.txt").read_text() == "text"


def test_replaces_an_older_and_longer_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old " * 100)
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_new_file_gets_the_permissions_the_umask_leaves(tmp_path: Path, mask: int, expected: int) -> None:
    with umask(mask):
        write_whole(tmp_path / "file", "text")
        assert os.umask(mask) == mask
    assert mode(tmp_path / "file") == expected


@pytest.mark.parametrize("kept", [0o600, 0o664, 0o444, 0o755])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(kept)
    with umask(0o022):
        write_whole(path, "new")
    assert (path.read_text(), mode(path)) == ("new", kept)


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert (target.read_text(), mode(target)) == ("new", 0o640)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "link"]
    assert os.listdir(tmp_path / "elsewhere") == ["target"]


def test_a_link_to_nothing_creates_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    write_whole(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_missing_folder_is_reported_and_not_created(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "file"
    expected = f"cannot write {path}: No such file or directory; nothing was written"
    with pytest.raises(OutputError, match=f"^{re.escape(expected)}$"):
        write_whole(path, "text")
    assert os.listdir(tmp_path) == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="folder: Is a directory; nothing was written"):
        write_whole(tmp_path / "folder", "text")
    assert os.listdir(tmp_path) == ["folder"]
    assert (tmp_path / "folder").is_dir()


# 255 bytes is the longest name a file may have; in UTF-8 that can be as few as 63 characters
@pytest.mark.parametrize(
    "name", ["a" * 255, "ü" * 127, "異" * 85, "🎲" * 63], ids=["1 byte", "2 bytes", "3 bytes", "4 bytes"]
)
def test_the_longest_possible_name_can_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("old")
    write_whole(tmp_path / name, "new")
    assert (tmp_path / name).read_text() == "new"
    assert os.listdir(tmp_path) == [name]


def test_half_a_character_is_escaped(tmp_path: Path) -> None:
    # as in the name of a file that is not UTF-8; in JSON the escape means the same
    write_whole(tmp_path / "file", 'a "\udcff\ud800" ü')
    assert (tmp_path / "file").read_bytes() == b'a "\\udcff\\ud800" ' + "ü".encode()


FULL_DISK = """
import resource, sys
from pac_wrap.base.files import check_folder, write_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
write_whole(sys.argv[1], "x" * int(sys.argv[2]))
"""


@pytest.mark.parametrize("size", [1001, 100_000])
def test_a_write_the_system_cuts_short_leaves_the_old_file(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    done = run(FULL_DISK, path, size)
    assert done.returncode == 1
    assert f"OutputError: cannot write {path}: File too large; nothing was written" in done.stderr
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "fchmod", "replace"])
@pytest.mark.parametrize(
    "failure", [OSError(errno.EIO, "a failing disk"), KeyboardInterrupt()], ids=lambda f: type(f).__name__
)
def test_a_failing_step_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise failure

    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(failure)) as caught:
        write_whole(path, "new")
    if isinstance(failure, OSError):
        assert str(caught.value) == f"cannot write {path}: a failing disk; nothing was written"
        assert caught.value.__cause__ is failure
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_first_failure_is_reported_even_if_cleaning_up_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "the first")

    def fail_again(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "the second")

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr(os, "unlink", fail_again)
    with pytest.raises(OutputError, match="the first"):
        write_whole(tmp_path / "file", "new")


def test_a_failure_without_a_number_still_says_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the tape tore")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match="the tape tore"):
        write_whole(tmp_path / "file", "new")


DIES_AT = """
import os, signal, sys
from pac_wrap.base.files import check_folder, write_whole
setattr(os, sys.argv[2], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
write_whole(sys.argv[1], "new")
"""


@pytest.mark.parametrize("step", ["fsync", "fchmod", "replace"])
def test_a_process_killed_at_a_step_leaves_the_old_file(tmp_path: Path, step: str) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    assert run(DIES_AT, path, step).returncode == -signal.SIGKILL
    assert path.read_text() == "old"


SAVES_FOREVER = """
import sys
from pathlib import Path
from pac_wrap.base.files import check_folder, write_whole
texts = [Path(name).read_text() for name in sys.argv[2:]]
print("ready", flush=True)
while True:
    for text in texts:
        write_whole(sys.argv[1], text)
"""


def test_a_certificate_loads_after_its_writer_was_killed_at_any_moment(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    written = []
    for name, n in (("short", 100), ("long", 2000)):
        certificate = calibrate(rng.normal(0, 1, n), rng.normal(4, 1, n))
        certificate.save(tmp_path / name)
        written.append(certificate)
    path = tmp_path / "file"
    written[0].save(path)
    moments = random.Random(0)
    for _ in range(15):
        files = [str(tmp_path / name) for name in ("file", "short", "long")]
        command = [sys.executable, "-c", SAVES_FOREVER, *files]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            time.sleep(moments.uniform(0.0, 0.03))
            writer.kill()
        assert writer.returncode == -signal.SIGKILL
        assert Certificate.load(path) in written


def test_a_folder_that_can_be_written_into_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    check_folder(tmp_path)
    check_folder(str(tmp_path))
    assert os.listdir(tmp_path) == ["file"]


def test_a_missing_folder_to_write_into_is_made_with_those_above_it(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert os.listdir(tmp_path / "a" / "b") == []


@pytest.mark.parametrize(("below", "reason"), [("", "it is not a folder"), ("b", "Not a directory")])
def test_a_file_cannot_be_written_into(tmp_path: Path, below: str, reason: str) -> None:
    (tmp_path / "file").write_text("text")
    path = tmp_path / "file" / below
    expected = f"cannot write into {path}: {reason}; name another folder"
    with pytest.raises(OutputError, match=f"^{re.escape(expected)}$") as caught:
        check_folder(path)
    assert isinstance(caught.value.__cause__, OSError)
    assert (tmp_path / "file").read_text() == "text"


def test_a_folder_where_no_file_can_be_made_is_refused() -> None:
    if not os.path.isdir("/proc/self"):
        pytest.skip("no /proc, the folder that takes no file from anybody")
    with pytest.raises(OutputError, match=r"^cannot write into /proc/self: .+; name another folder$"):
        check_folder("/proc/self")


def test_a_folder_without_permission_to_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("this user, root say, may write everywhere")
    expected = f"cannot write into {tmp_path}: Permission denied; name another folder"
    with pytest.raises(OutputError, match=f"^{re.escape(expected)}$"):
        check_folder(tmp_path)
