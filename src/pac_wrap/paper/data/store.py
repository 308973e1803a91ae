"""Data files: in the user's folder, in the cache, or downloaded into it; none is used unchecked."""

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from pac_wrap.base.files import scratch_folder
from pac_wrap.errors import DataError
from pac_wrap.paper.data.download import BY_HAND, PATIENCE, download, import_pooch
from pac_wrap.paper.data.registry import RemoteFile

VARIABLE: Final = "PAC_WRAP_DATA"
_NAME: Final = "pac-wrap"
_SHOWN: Final = 12  # digits of a hash


def data_folder() -> Path | None:
    """Return the folder that PAC_WRAP_DATA names, or None if the variable is not set."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    with suppress(RuntimeError):  # ~ of an unknown user
        folder = Path(named).expanduser()
        if folder.is_dir():
            return folder
    raise DataError(
        f"{VARIABLE} must name a folder, got {named!r}, which is not one;"
        " create the folder, correct the variable or unset it"
    )


def cache_folder() -> Path:
    """Return the folder that downloads go to; it need not exist yet.

    It is pooch.os_cache("pac-wrap"), found without pooch: files that are there can be read without it.
    """
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local"
        return Path(local, _NAME, _NAME, "Cache")
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / _NAME
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or _home() / ".cache", _NAME)


def locate(file: RemoteFile) -> Path | None:
    """Return where the file lies, unchecked: in PAC_WRAP_DATA, else in the cache, else None."""
    for place in (data_folder, cache_folder):
        folder = place()  # one after the other: a user without a home may still have PAC_WRAP_DATA
        if folder is None:
            continue
        path = folder / file.name
        if path.is_file():
            return path
        if path.is_symlink() or path.exists():
            raise DataError(f"{path} must be a file, but it is something else or a broken link; remove it")
    return None


def fetch(
    file: RemoteFile, progress: bool = True, *, timeout: float = 30.0, patience: float = PATIENCE
) -> Path:
    """Return the path of the file, downloaded if it is not here yet, after its hash was checked.

    `timeout` is how many seconds to wait for the server's next bytes, `patience` how many for the whole file,
    plus one for every 50 kB; a bar shows only on a terminal.
    """
    path = locate(file)
    if path is None and file.original:
        raise DataError(file.absence)
    if path is None:
        return _downloaded(file, cache_folder(), progress, timeout, patience)
    found = sha256_of(path)
    if found == file.sha256:
        return path
    if path.parent == data_folder():
        outcome = f"it was left where it is; put {file.url} in its place, or remove it"
    else:
        outcome = _set_aside(path)
    raise _mismatch(file, str(path), found, outcome)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal digits."""
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}; make it readable, or remove it"
        ) from error


def _downloaded(file: RemoteFile, folder: Path, progress: bool, timeout: float, patience: float) -> Path:
    """Return the path of a file downloaded into the folder; with a wrong hash it is set aside and refused."""
    import_pooch(file)  # without it the folder is not touched
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder(folder) as scratch:
            arrived = download(file, scratch, progress, timeout, patience)
            found = sha256_of(arrived)
            kept = folder / file.name if found == file.sha256 else _rejected_name(folder / file.name)
            arrived.replace(kept)
    except DataError:
        raise
    except OSError as error:
        raise DataError(
            f"cannot write {file.name} into the cache folder {folder}: {error.strerror or error};"
            f" {BY_HAND.format(file.url)}"
        ) from error
    if found != file.sha256:
        outcome = f"it is kept as {kept}; try again later, or {BY_HAND.format('it')}"
        raise _mismatch(file, f"the file from {file.url}", found, outcome)
    return kept


def _mismatch(file: RemoteFile, what: str, found: str, outcome: str) -> DataError:
    """Return the refusal of a file whose hash is `found`; `outcome` says what became of it and what to do."""
    original = (
        "the public original"
        if file.published
        else "the copy that the published results were made with; no public hash is known"
    )
    return DataError(
        f"{what} differs from {original} (sha256 {found[:_SHOWN]}, expected {file.sha256[:_SHOWN]}),"
        f" so it is not used; {outcome}"
    )


def _set_aside(path: Path) -> str:
    try:
        path.replace(_rejected_name(path))
    except OSError as error:
        return f"it could not be moved aside ({error.strerror}); remove it"
    return f"it was moved to {_rejected_name(path)}; try again to download it anew"


def _rejected_name(path: Path) -> Path:
    """Return the name under which a file with the wrong hash is kept; an older one is replaced."""
    return path.with_name(f"{path.name}.rejected")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise DataError(
            "this user has no home folder, so there is no place for downloads; set HOME or XDG_CACHE_HOME"
        ) from None
