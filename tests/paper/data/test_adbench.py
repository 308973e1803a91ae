"""The tables of ADBench: hashes, a folder of their own, and what is loaded from them."""

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from pac_wrap.errors import DataError, InputError
from pac_wrap_paper import data as datasets
from pac_wrap_paper.data import tabular
from pac_wrap_paper.data.registry import ENTRIES, TABLES, Entry, RemoteFile, Table
from pac_wrap_paper.data.store import VARIABLE, fetch, locate
from support.datafolder import empty_cache, needs

FILE = "5_tiny.npz"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return a table in a file as ADBench has it."""
    path = tmp_path / "public" / FILE
    path.parent.mkdir()
    np.savez_compressed(path, X=np.array([[1, 2], [3, 4], [5, 6]], np.int16), y=np.array([0, 1, 0]))
    return path


@pytest.fixture
def address(tiny: Path) -> Iterator[str]:
    serve = partial(Quiet, directory=str(tiny.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/{FILE}"
        running.shutdown()
        thread.join()


def register(monkeypatch: pytest.MonkeyPatch, content: bytes, url: str) -> RemoteFile:
    """Put the tiny table into the registry, in place of all others."""
    sha256 = hashlib.sha256(content).hexdigest()
    file = RemoteFile(f"adbench/{FILE}", url, sha256, len(content))
    tables = {"tiny": Table(FILE, 3, 2, 1, len(content), sha256)}
    monkeypatch.setattr(tabular, "TABLES", tables)
    monkeypatch.setattr(tabular, "ENTRIES", {"adbench": Entry((file,), 3, 2, 1, "source", "terms", "cite")})
    return file


def test_a_table_is_read_from_its_folder_in_the_users_folder(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_cache(tmp_path / "home", monkeypatch)
    register(monkeypatch, tiny.read_bytes(), "https://unused")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "adbench").mkdir()
    (tmp_path / "adbench" / FILE).write_bytes(tiny.read_bytes())
    loaded = tabular.load_adbench("tiny")
    assert (loaded.X.tolist(), loaded.y.tolist()) == ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 1, 0])
    assert (str(loaded.X.dtype), str(loaded.y.dtype), loaded.name) == ("float32", "int8", "tiny")
    (tmp_path / "adbench" / FILE).write_bytes(b"another")
    with pytest.raises(DataError, match=r"5_tiny\.npz differs .* it was left where it is"):
        tabular.load_adbench("tiny")


def test_a_table_is_downloaded_into_its_folder_of_the_cache(
    tiny: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pooch")
    cache = empty_cache(tmp_path / "home", monkeypatch)
    register(monkeypatch, tiny.read_bytes(), address)
    assert tabular.load_adbench("tiny").n_anomalies == 1
    assert [str(path.relative_to(cache)) for path in cache.rglob("*.npz")] == [f"adbench/{FILE}"]


def test_a_download_with_another_hash_is_set_aside(
    tiny: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pooch")
    cache = empty_cache(tmp_path / "home", monkeypatch)
    file = register(monkeypatch, tiny.read_bytes() + b"more", address)
    with pytest.raises(DataError, match="so it is not used; it is kept as"):
        fetch(file)
    assert [path.name for path in (cache / "adbench").iterdir()] == [f"{FILE}.rejected"]


def test_an_archive_without_labels_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_cache(tmp_path / "home", monkeypatch)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "adbench").mkdir()
    np.savez(tmp_path / "adbench" / FILE, X=np.zeros((2, 1)))
    register(monkeypatch, (tmp_path / "adbench" / FILE).read_bytes(), "https://unused")
    with pytest.raises(DataError, match=r"must be a NumPy archive with X and y, but .*; remove it"):
        tabular.load_adbench("tiny")


def test_an_unknown_table_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no table 'cardo' of adbench; did you mean 'cardio'\? the tables"):
        datasets.load("adbench", "cardo")
    with pytest.raises(InputError, match="part must name one of the 43 tables of adbench, such as 'ALOI'"):
        datasets.load("adbench")


def test_the_registry_has_every_table_once() -> None:
    entry = ENTRIES["adbench"]
    assert datasets.series_names("adbench") == tuple(TABLES)
    assert [file.name for file in entry.files] == [f"adbench/{table.file}" for table in TABLES.values()]
    assert all(file.url.endswith(f"/adbench/datasets/Classical/{file.name[8:]}") for file in entry.files)


@pytest.mark.parametrize("name", TABLES)
def test_the_facts_are_those_of_the_table(name: str) -> None:
    needs("adbench")
    table, loaded = TABLES[name], datasets.load("adbench", name)
    assert loaded.X.shape == (table.rows, table.columns)
    assert loaded.n_anomalies == table.anomalies
    assert np.unique(loaded.y).tolist() == [0, 1]
    assert np.isfinite(loaded.X).all()
    path = locate(next(file for file in ENTRIES["adbench"].files if file.sha256 == table.sha256))
    assert path is not None
    assert path.stat().st_size == table.size
