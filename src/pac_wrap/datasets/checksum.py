"""Whether a data file is the one it should be."""

import hashlib
from pathlib import Path
from typing import Final

from pac_wrap.datasets.remote import RemoteFile
from pac_wrap.errors import DataError

_SHOWN: Final = 12


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal digits."""
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}; make it readable, or take it away"
        ) from error


def rejected_name(path: Path) -> Path:
    """Return the name under which a file with the wrong hash is kept; an older one is replaced."""
    return path.with_name(f"{path.name}.rejected")


def mismatch(file: RemoteFile, what: str, found: str, outcome: str) -> DataError:
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
