"""Data files as tests see them: the real ones if they are on this machine, else a reason to skip."""

import hashlib
from pathlib import Path

import pytest

from pac_wrap_paper.data.registry import ENTRIES, RemoteFile
from pac_wrap_paper.data.store import VARIABLE, cache_folder, locate

URL = "http://127.0.0.1:9/small.csv"
CONTENT = b"a,class\n1,0\n2,1\n"


def needs(*names: str) -> None:
    """Skip the test unless all files of these data sets are here; nothing is ever downloaded."""
    missing = [file.name for name in names for file in ENTRIES[name].files if locate(file) is None]
    if missing:
        pytest.skip(f"neither PAC_WRAP_DATA nor the cache holds {', '.join(missing)}")


def empty_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache of a user who has no data yet and has not set PAC_WRAP_DATA."""
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.delenv(VARIABLE, raising=False)
    # a proxy would answer for the servers that tests start
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    cache = cache_folder()
    assert cache.is_relative_to(folder)
    return cache


def small_file(url: str = URL, content: bytes = CONTENT, published: str | None = None) -> RemoteFile:
    """Return the description of a file with this content, named as in its address."""
    name = url.rpartition("/")[2]
    return RemoteFile(name, url, hashlib.sha256(content).hexdigest(), len(content), published)
