"""Files that are here: where they are looked for, and that a wrong one is never used."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pac_wrap.errors import DataError, MissingExtraError, PACWrapError
from pac_wrap_paper.data.store import VARIABLE, cache_folder, data_folder, fetch, locate, sha256_of
from pac_wrap_paper.data.tabular import load_table
from support.datafolder import CONTENT, URL, empty_cache, small_file
from support.patience import LIMIT
from support.shell import one_sentence

WRONG = b"a,class\n1,1\n2,1\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = empty_cache(tmp_path, monkeypatch)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def folder(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv(VARIABLE, str(own))
    return own


def refusal(**options: Any) -> str:
    with pytest.raises(DataError) as caught:
        fetch(small_file(**options))
    assert isinstance(caught.value, (PACWrapError, OSError))
    # the command line shows strerror where there is one, and must show the whole sentence
    assert caught.value.strerror is None
    return str(caught.value)


def test_the_cache_is_that_of_pooch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pooch = pytest.importorskip("pooch")
    assert cache_folder() == pooch.os_cache("pac-wrap")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == pooch.os_cache("pac-wrap")
    monkeypatch.setenv("XDG_CACHE_HOME", " ")
    assert cache_folder() == pooch.os_cache("pac-wrap")


@pytest.mark.parametrize(
    ("platform", "local", "parts"),
    [
        ("win32", "local", ("local", "pac-wrap", "pac-wrap", "Cache")),
        ("win32", "", ("home", "AppData", "Local", "pac-wrap", "pac-wrap", "Cache")),
        ("darwin", "", ("home", "Library", "Caches", "pac-wrap")),
        ("linux", "", ("home", ".cache", "pac-wrap")),
    ],
)
def test_the_cache_of_each_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, local: str, parts: tuple[str, ...]
) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("LOCALAPPDATA", local)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path(*parts)


def test_the_users_folder_comes_before_the_cache(cache: Path, folder: Path) -> None:
    file = small_file()
    assert locate(file) is None
    (cache / file.name).write_bytes(CONTENT)
    assert locate(file) == fetch(file) == cache / file.name
    (folder / file.name).write_bytes(CONTENT)
    assert locate(file) == fetch(file) == folder / file.name


@pytest.mark.usefixtures("cache")
def test_an_unset_or_empty_variable_means_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_folder() is None
    monkeypatch.setenv(VARIABLE, "")
    assert data_folder() is None


@pytest.mark.usefixtures("cache")
def test_a_home_in_the_variable_is_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "~/data")
    assert data_folder() == tmp_path / "data"


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_folder_that_is_none_is_refused(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")
    named = str(tmp_path / name)
    monkeypatch.setenv(VARIABLE, named)
    (cache / small_file().name).write_bytes(CONTENT)
    assert refusal() == (
        f"PAC_WRAP_DATA must name a folder, got {named!r}, which is not one;"
        " create the folder, correct the variable or unset it"
    )


@pytest.mark.usefixtures("cache")
def test_the_home_of_nobody_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "~nobody-of-this-name/data")
    assert refusal().startswith(
        "PAC_WRAP_DATA must name a folder, got '~nobody-of-this-name/data', which is not"
    )


NAMELESS = """
import os, sys
from pac_wrap.cli import main
os.setresuid(54321, 0, 0)  # may read what root may
sys.argv[0] = "pac-wrap"
main()
"""
NO_HOME = "this user has no home folder, so there is no place for downloads; set HOME or XDG_CACHE_HOME"


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_without_a_home_only_the_users_folder_is_left(
    platform: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(sys, "platform", platform)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    assert refusal() == NO_HOME
    (folder / "small.csv").write_bytes(CONTENT)
    assert locate(small_file()) == folder / "small.csv"


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="only root may become a user without a name"
)
@pytest.mark.parametrize("words", [["data", "where"], ["data", "list"], ["reproduce", "q2"]])
def test_a_user_without_a_name_or_home_gets_one_sentence(words: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "HOME")}
    done = subprocess.run(
        [sys.executable, "-c", NAMELESS, *words],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert one_sentence(done.stderr) == NO_HOME


def test_a_wrong_file_in_the_cache_is_moved_aside(cache: Path) -> None:
    path = cache / "small.csv"
    path.write_bytes(WRONG)
    sentence = refusal(published="somewhere")
    aside = cache / "small.csv.rejected"
    assert sentence == (
        f"{path} differs from the public original (sha256 {sha256_of(aside)[:12]},"
        f" expected {small_file().sha256[:12]}), so it is not used;"
        f" it was moved to {aside}; try again to download a new copy"
    )
    assert aside.read_bytes() == WRONG
    assert not path.exists()


def test_the_last_wrong_file_is_the_one_that_is_kept(cache: Path) -> None:
    for content in (b"one", b"two"):
        (cache / "small.csv").write_bytes(content)
        refusal()
    assert [path.name for path in cache.iterdir()] == ["small.csv.rejected"]
    assert (cache / "small.csv.rejected").read_bytes() == b"two"


def test_a_wrong_file_that_cannot_be_moved_says_so(cache: Path) -> None:
    (cache / "small.csv").write_bytes(WRONG)
    (cache / "small.csv.rejected" / "inside").mkdir(parents=True)
    assert "; it could not be moved aside (" in refusal()
    assert (cache / "small.csv").read_bytes() == WRONG


def test_a_wrong_file_of_the_user_stays_where_it_is(folder: Path, cache: Path) -> None:
    path = folder / "small.csv"
    path.write_bytes(WRONG)
    (cache / "small.csv").write_bytes(CONTENT)
    sentence = refusal()
    assert sentence == (
        f"{path} differs from the copy that the published results were made with; no public hash is known"
        f" (sha256 {sha256_of(path)[:12]}, expected {small_file().sha256[:12]}), so it is not used;"
        f" it was left where it is; put {URL} in its place, or remove it"
    )
    assert path.read_bytes() == WRONG
    assert [path.name for path in folder.iterdir()] == ["small.csv"]


def test_a_file_is_checked_each_time(cache: Path) -> None:
    path = cache / "small.csv"
    path.write_bytes(CONTENT)
    assert fetch(small_file()) == path
    path.write_bytes(CONTENT[:-1])
    assert "differs" in refusal()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory; make it readable, or remove it"):
        sha256_of(tmp_path)


def test_a_file_that_is_here_needs_no_pooch(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    (cache / "small.csv").write_bytes(CONTENT)
    assert fetch(small_file()) == cache / "small.csv"


@pytest.mark.parametrize("package", ["pooch", "tqdm"])
def test_a_download_without_the_extra_says_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught:
        fetch(small_file())
    assert str(caught.value) == (
        f"downloading small.csv needs the package {package}, which is not installed;"
        f' run pip install "pac-wrap-ad[paper]", or download {URL} yourself, put it into a folder and set'
        " PAC_WRAP_DATA to that folder"
    )
    assert list(cache.iterdir()) == []


def test_a_loader_does_not_read_a_wrong_file(folder: Path) -> None:
    (folder / "annthyroid_21feat_normalised.csv").write_bytes(WRONG)
    with pytest.raises(DataError, match=r"annthyroid_21feat_normalised\.csv differs from the copy"):
        load_table("thyroid")
