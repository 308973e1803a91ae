"""The folders in which data files are looked for."""

import os
import sys
from pathlib import Path
from typing import Final

from pac_wrap.errors import DataError

VARIABLE: Final = "PAC_WRAP_DATA"
_NAME: Final = "pac-wrap"


def data_folder() -> Path | None:
    """Return the folder that PAC_WRAP_DATA names, or None if the variable is not set."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"{VARIABLE} must name a folder, got {named!r}, which is none;"
            " create the folder, correct the variable or unset it"
        )
    return folder


def cache_folder() -> Path:
    """Return the folder that downloads go to; it need not exist yet.

    It is pooch.os_cache("pac-wrap"), found without pooch: files that are there can be read without it.
    """
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(local, _NAME, _NAME, "Cache")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / _NAME
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or Path.home() / ".cache", _NAME)
