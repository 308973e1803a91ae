"""Files that appear whole or not at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from pac_wrap.errors import OutputError


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write text to path through a temporary file beside it; on any failure the old file stays as it was."""
    target = Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(prefix=".pac-wrap.", dir=target.parent)
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, _mode(target))
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise OutputError(
            f"cannot write {os.fspath(path)}: {error.strerror or error}; nothing was written"
        ) from error


def _mode(target: Path) -> int:
    """Return the permissions of the file to be replaced, or those a new file would get."""
    with suppress(FileNotFoundError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
