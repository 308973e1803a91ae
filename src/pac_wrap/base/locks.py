"""A file that one process at a time may change, though it is replaced again and again.

The file itself cannot carry the lock, since a new one takes its place with every change. So the lock stands
beside it, hidden, as long as it is held. One that a killed process left behind is held by nobody, and the
next process takes it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pac_wrap.errors import OutputError

if sys.platform != "win32":
    import fcntl


@contextmanager
def held(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a file, or refuse if another process does; where the system has no locks, nothing is held."""
    target = Path(os.path.realpath(path))
    beside = target.parent / f".{target.name}.lock"
    lock = None if sys.platform == "win32" else _locked(beside, os.fspath(path))
    try:
        yield
    finally:
        if lock is not None:
            with suppress(OSError):  # first, while nobody else can have it
                beside.unlink()
            os.close(lock)


def _locked(beside: Path, name: str) -> int:
    """Return the open lock that stands beside a file."""
    while True:
        try:
            lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise OutputError(
                f"cannot lock {name}: {error.strerror or error}; nothing was written"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), os.stat(beside)):
                return lock
        except BlockingIOError:
            os.close(lock)
            raise OutputError(
                f"{name} is in use by another process; wait until it has ended, or name another file"
            ) from None
        except FileNotFoundError:  # whoever had it has just removed it
            pass
        except OSError:  # a file system without locks
            return lock
        os.close(lock)
