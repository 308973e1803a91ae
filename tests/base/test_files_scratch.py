"""Scratch folders vanish with their run, or with the next one; those of the living stay."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from pac_wrap.base.files import scratch_folder, sweep
from support.patience import LIMIT

HOLDS = """
import os, sys
from pac_wrap.base.files import scratch_folder
with scratch_folder(sys.argv[1]) as folder:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "file").write_text("text")
    (folder / "output").write_text("text")
    (folder / "link").symlink_to(sys.argv[2])
    (folder / "deep" / "link").symlink_to(sys.argv[2])
    print(folder, flush=True)
    sys.stdin.read()
"""
RACES = """
import sys
import time
from pac_wrap.base.files import scratch_folder
for number in range(int(sys.argv[2])):
    with scratch_folder(sys.argv[1]) as folder:
        (folder / "output").write_text(str(number))
        assert (folder / "output").read_text() == str(number)
    assert not folder.exists()
"""


@contextmanager
def holder(place: Path, precious: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that holds a scratch folder until its standard input ends."""
    words = [sys.executable, "-c", HOLDS, str(place), str(precious)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_scratch_folder_is_for_this_user_alone_and_vanishes(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        assert folder.parent == tmp_path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "a").mkdir()
        (folder / "a" / "b").write_text("text")
    assert os.listdir(tmp_path) == []


def test_no_pattern_of_a_user_matches_what_is_in_it(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        (folder / "output").write_text("text")
        for pattern in ("*", "**/*", "*.*", "**/*.csv", "**/output", "*/*"):
            assert glob(str(tmp_path / pattern), recursive=True) in ([], [f"{tmp_path}/"])
        shell = subprocess.run(
            ["sh", "-c", "echo *"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert shell.stdout == "*\n"


def test_an_error_takes_it_away_too(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_missing_place_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), scratch_folder(tmp_path / "missing"):
        raise AssertionError("there is no such folder")


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_behind_links(tmp_path: Path) -> None:
    place, precious = tmp_path / "place", tmp_path / "precious"
    place.mkdir()
    precious.mkdir()
    (precious / "file").write_text("text")
    with holder(place, precious) as (process, folder):
        process.kill()
        process.wait()
        assert folder.is_dir()
        with scratch_folder(place) as mine:
            assert os.listdir(place) == [mine.name]
    assert os.listdir(place) == []
    assert (precious / "file").read_text() == "text"


def test_what_a_living_process_holds_stays(tmp_path: Path) -> None:
    place, precious = tmp_path / "place", tmp_path / "precious"
    place.mkdir()
    precious.mkdir()
    with holder(place, precious) as (process, folder):
        for _ in range(3):
            with scratch_folder(place) as mine:
                assert {path.name for path in place.iterdir()} == {folder.name, mine.name}
        assert (folder / "deep" / "er" / "file").read_text() == "text"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(LIMIT) == 0
    assert os.listdir(place) == []


def test_what_this_process_holds_stays_too(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as one, scratch_folder(tmp_path) as two:
        sweep(tmp_path)
        assert {one.name, two.name} == set(os.listdir(tmp_path))


def test_many_at_once_neither_harm_each_other_nor_leave_anything(tmp_path: Path) -> None:
    words = [sys.executable, "-c", RACES, str(tmp_path), "150"]
    running = [subprocess.Popen(words, stderr=subprocess.PIPE) for _ in range(4)]
    for process in running:
        _, err = process.communicate(timeout=LIMIT)
        assert (process.returncode, err) == (0, b"")
    assert os.listdir(tmp_path) == []


def test_killed_at_any_moment_it_is_swept(tmp_path: Path) -> None:
    for _ in range(5):
        words = [sys.executable, "-c", RACES, str(tmp_path), "100000"]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
            while not os.listdir(tmp_path):
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
    sweep(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_sweep_between_making_and_locking_makes_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    usual = Path.mkdir

    def swept(self: Path, *arguments: Any, **options: Any) -> None:
        usual(self, *arguments, **options)
        made.append(self)
        if len(made) < 3:
            sweep(tmp_path)

    monkeypatch.setattr(Path, "mkdir", swept)
    with scratch_folder(tmp_path) as folder:
        assert folder == made[2]
        assert os.listdir(tmp_path) == [folder.name]
    assert not any(path.exists() for path in made)


def test_a_lock_that_was_taken_away_makes_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    usual = fcntl.flock

    def slow(handle: int, how: int) -> None:
        # the sweep runs between opening and locking
        seen.append(handle)
        if len(seen) == 1:
            sweep(tmp_path)
        usual(handle, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    with scratch_folder(tmp_path) as folder:
        assert os.listdir(tmp_path) == [folder.name]
        assert len(seen) == 3
    assert os.listdir(tmp_path) == []


def test_without_locks_nothing_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unable)
    with scratch_folder(tmp_path) as one, scratch_folder(tmp_path) as two:
        assert {one.name, two.name} == set(os.listdir(tmp_path))
    assert os.listdir(tmp_path) == []


def test_what_only_looks_like_scratch_stays(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("text")
    (tmp_path / ".pac-wrap-link.tmp").symlink_to(tmp_path / "precious")
    (tmp_path / ".pac-wrap-file.tmp").write_text("text")
    (tmp_path / ".pac-wrap-other").mkdir()
    (tmp_path / "pac-wrap-visible.tmp").mkdir()
    before = sorted(os.listdir(tmp_path))
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "precious" / "file").read_text() == "text"


def test_what_another_user_left_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    (tmp_path / ".pac-wrap-0.tmp").mkdir()
    os.chown(tmp_path / ".pac-wrap-0.tmp", 54321, -1)
    sweep(tmp_path)
    assert os.listdir(tmp_path) == [".pac-wrap-0.tmp"]
