"""Data files: in the user's folder, in the cache, or downloaded into it; none is used unchecked."""

from pathlib import Path

from pac_wrap.datasets.cache import cache_folder, data_folder
from pac_wrap.datasets.checksum import mismatch, rejected_name, sha256_of
from pac_wrap.datasets.download import PATIENCE, download
from pac_wrap.datasets.remote import RemoteFile
from pac_wrap.errors import DataError


def locate(file: RemoteFile) -> Path | None:
    """Return where the file lies, unchecked: in PAC_WRAP_DATA, else in the cache, else None."""
    for place in (data_folder, cache_folder):
        folder = place()  # one after the other: who has no home may still have PAC_WRAP_DATA
        if folder is None:
            continue
        path = folder / file.name
        if path.is_file():
            return path
        if path.is_symlink() or path.exists():
            raise DataError(f"{path} must be a file, but it is not one, or leads nowhere; take it away")
    return None


def fetch(
    file: RemoteFile, progress: bool = True, *, timeout: float = 30.0, patience: float = PATIENCE
) -> Path:
    """Return the path of the file, downloaded if it is not here yet, after its hash was checked.

    `timeout` is how many seconds to wait for the server's next word, `patience` how many for the whole file,
    besides a second for every 50 kB; a bar shows only on a terminal.
    """
    path = locate(file)
    if path is None and file.original:
        raise DataError(file.absence)
    if path is None:
        return download(file, cache_folder(), progress, timeout, patience)
    found = sha256_of(path)
    if found == file.sha256:
        return path
    if path.parent == data_folder():
        outcome = f"it was left where it is; put {file.url} in its place, or take it away"
    else:
        outcome = _set_aside(path)
    raise mismatch(file, str(path), found, outcome)


def _set_aside(path: Path) -> str:
    try:
        path.replace(rejected_name(path))
    except OSError as error:
        return f"it could not be moved aside ({error.strerror}); take it away"
    return f"it was moved to {rejected_name(path)}; try again to download it anew"
