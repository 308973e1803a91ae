"""Scratch folders, locked while in use: what a killed run left behind, the next one removes.

No pattern of a user's matches them: their name starts with a dot, and files in them need no ending.
"""

import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

_START: Final = ".pac-wrap-"
_END: Final = ".tmp"
_LOCK: Final = ".lock"
_UNLOCKED: Final = -1


@contextmanager
def scratch_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Yield a new folder in a parent folder, or where the system keeps temporary files; gone at the end.

    Only this user can look into it. Folders of the same kind that no living process holds are removed first.
    """
    place = Path(tempfile.gettempdir() if parent is None else parent)
    sweep(place)
    while True:
        # named before it is made, so that an interrupt at any moment finds it
        folder = place / f"{_START}{secrets.token_hex(8)}{_END}"
        lock: int | None = None
        try:
            folder.mkdir(mode=0o700)
            lock = _locked(folder)
            if lock is not None:
                yield folder
                return
        finally:
            _remove(folder)
            if lock is not None and lock != _UNLOCKED:
                os.close(lock)


def sweep(place: Path) -> None:
    """Remove the scratch folders of a user's own that lie in a folder and that no living process holds."""
    if sys.platform == "win32":  # without locks nobody can tell
        return
    with suppress(OSError):  # it may be missing, or not to be listed
        for name in os.listdir(place):
            if name.startswith(_START) and name.endswith(_END):
                with suppress(OSError):  # it is in use, or another run removes it
                    _remove_stale(place / name)


def _remove_stale(folder: Path) -> None:
    found = folder.lstat()
    # in a folder that many share, others may lay out what looks like ours
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        # just made, and its maker will notice; or nearly gone
        folder.rmdir()
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder as far as possible, its lock last: what is left is always locked, stale or empty."""
    with suppress(OSError):
        for name in os.listdir(folder):
            path = folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif name != _LOCK:
                path.unlink()
        os.unlink(folder / _LOCK)
    with suppress(OSError):
        folder.rmdir()


def _locked(folder: Path) -> int | None:
    """Return an open file that locks a new folder, or None if a sweep came first."""
    if sys.platform == "win32":
        return _UNLOCKED
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(folder / _LOCK)):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:  # a file system without locks, on which no sweep can take one either
        return lock
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None
