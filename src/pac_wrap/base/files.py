"""Files that appear whole or not at all; pipes and devices are written into, never replaced."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pac_wrap.base.scratch import scratch_folder
from pac_wrap.errors import OutputError

_BLOCK: Final = 1 << 20
_OUTPUTS: Final = {"/dev/stdout": 1, "/dev/stderr": 2}


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write text to path as UTF-8; on any failure the old file stays as it was."""
    with whole_file(path) as temporary:
        write_text(temporary, text)


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8 with plain newlines; half a character, from a foreign file name say, is escaped."""
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty file to be written that takes the place of path at the end, and vanishes on any failure.

    A pipe or a character device gets its content at the end. The new file has the permissions of the one that
    it replaces, from its first byte, and its owner where that is allowed.
    """
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
                _sync_folder(target.parent)
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot write {os.fspath(path)}: {reason}; {result}") from error


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that no file can be written into; it is made if it is missing."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(prefix=".pac-wrap.", dir=folder):
            pass
    except OSError as error:
        reason = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror or error
        raise OutputError(f"cannot write into {os.fspath(folder)}: {reason}; name another folder") from error


@contextmanager
def scratch_file() -> Iterator[Path]:
    """Yield the path of a file that may be made, and vanishes at the end."""
    with scratch_folder() as folder:
        yield folder / "scratch"


def _written_into(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a pipe, a character device or an open file; refuse what is no file either."""
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
    """Return the number of the open file that a path such as /dev/stdout or /dev/fd/3 stands for, if any."""
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
    """Write what a file holds into a pipe, a device or an open file."""
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
    """Create an empty file with the permissions and, where allowed, the owner of the one it is to replace."""
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


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
