"""Files that appear whole or not at all, and the scratch folders in which they are made.

Pipes and devices are written into, never replaced. A scratch folder is locked while in use; the next run
removes the folders that a killed run left behind. Patterns of users do not match it: its name starts with a
dot, and files in it need no ending.
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

from pac_wrap.errors import OutputError

if sys.platform != "win32":
    import fcntl

_BLOCK: Final = 1 << 20
_OUTPUTS: Final = {"/dev/stdout": 1, "/dev/stderr": 2}
_START: Final = ".pac-wrap-"
_END: Final = ".tmp"
_LOCK: Final = ".lock"
_UNLOCKED: Final = -1


def write_whole(path: str | os.PathLike[str], text: str | bytes) -> None:
    """Write bytes, or text as UTF-8, to path; on any failure the old file stays as it was."""
    with whole_file(path) as temporary:
        write_text(temporary, text)


def write_text(path: Path, text: str | bytes) -> None:
    """Write bytes, or text as UTF-8 with plain newlines; half a character, of a file name say, is escaped."""
    path.write_bytes(text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty file to write; at the end it replaces path, on any failure it vanishes."""
    result = "nothing was written"
    try:
        if _written_into(path):
            with scratch_file() as temporary:
                temporary.touch()
                yield temporary
                result = "the output is incomplete"
                _pour(temporary, path)
            return
        target = Path(os.path.realpath(path))
        with scratch_folder(target.parent) as folder:
            temporary = folder / "output"
            _create_like(temporary, target)
            yield temporary
            with open(temporary, "rb") as finished:
                os.fsync(finished.fileno())
            os.replace(temporary, target)
            with suppress(OSError):  # some file systems keep no order of folders, and the file is there
                handle = os.open(target.parent, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot write {os.fspath(path)}: {reason}; {result}") from error


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that cannot be written into; a missing folder is created."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(prefix=".pac-wrap.", dir=folder):
            pass
    except OSError as error:
        reason = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror or error
        raise OutputError(f"cannot write into {os.fspath(folder)}: {reason}; name another folder") from error


@contextmanager
def scratch_file() -> Iterator[Path]:
    """Yield a path for a temporary file, which is removed at the end."""
    with scratch_folder() as folder:
        yield folder / "scratch"


@contextmanager
def scratch_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Yield a new folder for this user alone; it is removed at the end, and left-over ones at the start."""
    place = Path(tempfile.gettempdir() if parent is None else parent)
    sweep(place)
    while True:
        # named before it is made, so that an interrupt at any moment finds it
        folder = place / f"{_START}{secrets.token_hex(8)}{_END}"
        lock: int | None = None
        try:
            folder.mkdir(mode=0o700)
            with suppress(BlockingIOError, FileNotFoundError):  # a sweep came first
                lock = _UNLOCKED if sys.platform == "win32" else _lock(folder / _LOCK)
            if lock is not None:
                yield folder
                return
        finally:
            _remove(folder)
            if lock is not None and lock != _UNLOCKED:
                os.close(lock)


def sweep(place: Path) -> None:
    """Remove the user's own scratch folders in a folder that no running process holds."""
    if sys.platform == "win32":  # without locks nobody can tell
        return
    with suppress(OSError):  # it may be missing, or not to be listed
        for name in os.listdir(place):
            if name.startswith(_START) and name.endswith(_END):
                with suppress(OSError):  # it is in use, or another run removes it
                    _remove_stale(place / name)


def _written_into(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a pipe, a character device or an open file; refuse folders and the like."""
    try:
        kind = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISREG(kind):
        return _descriptor(path) is not None
    if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):
        return True
    what = "Is a directory" if stat.S_ISDIR(kind) else "it is neither a file, a pipe nor a character device"
    raise OutputError(f"cannot write {os.fspath(path)}: {what}; nothing was written")


def _descriptor(path: str | os.PathLike[str]) -> int | None:
    """Return the number of the open file behind a path such as /dev/stdout or /dev/fd/3, else None."""
    place = os.path.abspath(os.fspath(path))
    for _ in range(40):  # as many links as the system itself would follow
        folder, name = os.path.split(place)
        if place in _OUTPUTS:
            return _OUTPUTS[place]
        if name.isdecimal() and os.path.realpath(folder) in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
            return int(name)
        if not os.path.islink(place):
            break
        place = os.path.abspath(os.path.join(folder, os.readlink(place)))
    return None


def _pour(source: Path, path: str | os.PathLike[str]) -> None:
    """Copy a file into a pipe, a device or an open file."""
    number = _descriptor(path)
    if number is None:
        handle = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    else:  # opened anew, a file would start at its beginning again
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        handle = os.dup(number)
    with open(handle, "wb", buffering=0) as target, source.open("rb") as opened:
        while block := opened.read(_BLOCK):
            rest = memoryview(block)
            while rest:
                rest = rest[target.write(rest) :]


def _create_like(path: Path, target: Path) -> None:
    """Create an empty file with the permissions and, if allowed, the owner of the file that it replaces."""
    try:
        old = target.stat()
    except FileNotFoundError:
        # the system takes away what the umask says; asking for the umask would change it for all threads
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        mode = stat.S_IMODE(old.st_mode) & 0o777
        if sys.platform != "win32":
            with suppress(OSError):
                os.fchown(handle, -1, old.st_gid)
            with suppress(OSError):
                os.fchown(handle, old.st_uid, -1)
            if os.fstat(handle).st_gid != old.st_gid:  # another group may do what everybody may
                mode = mode & 0o707 | (mode & 0o007) << 3
            os.fchmod(handle, mode)
    finally:
        os.close(handle)


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
    """Remove a folder as far as possible, its lock last; any rest is locked, stale or empty."""
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


def _lock(path: Path) -> int | None:
    """Return the open and locked file at a path, or None if it was removed meanwhile."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(path)):
            return lock
    except FileNotFoundError:
        pass
    except BaseException as error:
        if isinstance(error, OSError) and not isinstance(error, BlockingIOError):
            return lock  # a file system without locks, on which nobody else can take one either
        os.close(lock)
        raise
    os.close(lock)
    return None


@contextmanager
def held(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a file, or refuse if another process has locked it; systems without locks lock nothing."""
    target = Path(os.path.realpath(path))
    beside = target.parent / f".{target.name}.lock"
    lock = None
    try:
        while sys.platform != "win32" and lock is None:  # again if its holder has just removed it
            lock = _lock(beside)
    except BlockingIOError:
        raise OutputError(
            f"{os.fspath(path)} is in use by another process; wait until it has ended, or name another file"
        ) from None
    except OSError as error:
        raise OutputError(
            f"cannot lock {os.fspath(path)}: {error.strerror or error}; nothing was written"
        ) from error
    try:
        yield
    finally:
        if lock is not None:
            with suppress(OSError):  # first, while nobody else can have it
                beside.unlink()
            os.close(lock)
