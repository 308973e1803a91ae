"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pac_wrap.errors import OutputError


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write text to path; on any failure the old file stays as it was."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file beside path that takes its place at the end, and vanishes on any failure."""
    target = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(prefix=".pac-wrap.", suffix=target.suffix[:9], dir=target.parent)
        os.close(handle)
        try:
            yield Path(name)
            with open(name, "rb") as finished:
                os.fsync(finished.fileno())
            os.chmod(name, _mode(target))
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OutputError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"cannot write {os.fspath(path)}: {reason}; nothing was written") from error


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
    """Yield a temporary file that vanishes at the end."""
    with tempfile.TemporaryDirectory(prefix="pac-wrap-") as folder:
        yield Path(folder) / "scratch"


def _mode(target: Path) -> int:
    """Return the permissions of the file to be replaced, or those a new file would get."""
    with suppress(FileNotFoundError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
