"""The folders in which data files are looked for."""

import os
import sys
from contextlib import suppress
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
    with suppress(RuntimeError):  # ~ of a user whom nobody knows
        folder = Path(named).expanduser()
        if folder.is_dir():
            return folder
    raise DataError(
        f"{VARIABLE} must name a folder, got {named!r}, which is none;"
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


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise DataError(
            "this user has no home folder, so there is no place for downloads; set HOME or XDG_CACHE_HOME"
        ) from None
