"""pac-wrap data: what is there, what is fetched, and where it lies."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from pac_wrap.cli.commands import app, data
from pac_wrap_paper.data import registry
from pac_wrap_paper.data.registry import ENTRIES, Entry
from pac_wrap_paper.data.store import VARIABLE
from support.datafolder import CONTENT, empty_cache, needs, small_file
from support.shell import invoke, one_sentence, refused, succeeded

COMMANDS = ["list", "get", "where"]
UNKNOWN = "the data sets are thyroid, campaign, celeba, census, usps, mnist, nasa, smd, adbench"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = empty_cache(tmp_path, monkeypatch)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def small(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """Add two data sets of small files, so that nothing real is needed; nobody listens at their address."""
    first, second = small_file(), small_file("http://127.0.0.1:9/other.csv")
    entry = Entry((first, second), 2, 1, 1, "", "none", "")
    entries = {"pair": entry, "single": Entry((first,), 2, 1, 1, "", "none", "")}
    for module in (registry, sys.modules["pac_wrap_paper.data"]):
        monkeypatch.setattr(module, "ENTRIES", entries)
    return entry


def documented() -> dict[str, list[str]]:
    found = {}
    for registered in data.registered_commands:
        assert registered.callback is not None
        name = registered.name or registered.callback.__name__
        text = " ".join((registered.callback.__doc__ or "").split())
        found[name] = re.findall(r"\[bold\](pac-wrap .*?)\[/bold\]", text)
    return found


def rows_of(table: str) -> dict[str, list[str]]:
    """Return the cells of each line of a table by its first cell."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
    return {cells[0]: cells[1:] for cells in lines if len(cells) > 2}


def test_every_command_is_there_with_one_example() -> None:
    assert list(documented()) == COMMANDS
    for name, lines in documented().items():
        assert [line.split()[:3] for line in lines] == [["pac-wrap", "data", name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_example(name: str) -> None:
    shown = " ".join(succeeded("data", name, "--help").replace("│", " ").split())
    assert documented()[name][0] in shown
    assert "[bold]" not in shown


def test_every_argument_says_what_it_is() -> None:
    group: Any = typer.main.get_command(app)
    for name in COMMANDS:
        for parameter in group.commands["data"].commands[name].params:
            assert parameter.help, f"{name} {parameter.name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_works_as_typed(name: str) -> None:
    needs("thyroid", "usps")
    for line in documented()[name]:
        assert succeeded(*shlex.split(line)[1:])


def test_the_help_of_the_whole_names_it() -> None:
    assert re.search(r"^│ data ", succeeded("--help"), flags=re.MULTILINE)


def test_the_list_has_every_data_set_and_its_facts() -> None:
    needs(*ENTRIES)
    rows = rows_of(succeeded("data", "list"))
    assert list(rows) == ["name", *ENTRIES]
    assert rows["census"][:3] == ["299,285 x 500", "18,568", "CC BY 4.0"]
    assert rows["mnist"][-2] == "11.6 MB"
    assert rows["usps"][2] == "not stated"
    assert rows["nasa"][:3] == ["705,876 x 55", "63,738", "not stated"]
    assert rows["smd"][:4] == ["900,451 x 38", "20,763", "MIT", "63.9 MB"]


@pytest.mark.usefixtures("cache")
def test_the_list_says_of_which_series_a_data_set_is_made() -> None:
    assert succeeded("data", "list").splitlines()[-3:] == [
        "nasa: 81 of 82 channels; T-10 has no labels; 25 or 55 columns",
        "smd: 19 of 28 machines; the others have labels only",
        "adbench: 43 of 47 tables; backdoor, census, fraud and speech are left out",
    ]


@pytest.mark.usefixtures("cache")
def test_the_list_fits_on_a_screen() -> None:
    assert max(map(len, succeeded("data", "list").splitlines())) <= 80


@pytest.mark.usefixtures("small")
def test_the_list_says_where_each_is(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def places() -> list[str]:
        rows = rows_of(succeeded("data", "list"))
        assert rows["pair"][:3] == ["2 x 1", "1", "none"]
        return [rows[name][-1] for name in ("pair", "single")]

    own = tmp_path / "own"
    own.mkdir()
    assert places() == ["not here", "not here"]
    (cache / "small.csv").write_bytes(CONTENT)
    assert places() == ["in part", "cache"]
    monkeypatch.setenv(VARIABLE, str(own))
    (own / "other.csv").write_bytes(CONTENT)
    assert places() == ["folder and cache", "cache"]
    (own / "small.csv").write_bytes(CONTENT)
    assert places() == ["folder", "folder"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("names", [["all"], ["pair", "single"], ["single", "pair", "pair"], ["all", "pair"]])
def test_get_prints_the_path_of_every_file(cache: Path, names: list[str]) -> None:
    for name in ("small.csv", "other.csv"):
        (cache / name).write_bytes(CONTENT)
    lines = succeeded("data", "get", *names).splitlines()
    pair, single = [str(cache / "small.csv"), str(cache / "other.csv")], [str(cache / "small.csv")]
    assert lines == (single + pair if names[0] == "single" else pair + single)


@pytest.mark.usefixtures("small")
def test_get_without_a_network_is_one_sentence(cache: Path) -> None:
    pytest.importorskip("pooch")
    done = invoke("data", "get", "single")
    assert (done.code, done.out) == (2, "")
    sentence = one_sentence(done.err)
    assert list(cache.iterdir()) == []
    assert sentence.startswith("cannot download http://127.0.0.1:9/small.csv: the server cannot be reached")
    assert sentence.endswith("put it into a folder and set PAC_WRAP_DATA to that folder")


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", ["nasa", "smd"])
def test_get_does_not_download_what_would_be_refused(tmp_path: Path, name: str) -> None:
    (file,) = ENTRIES[name].files
    sentence = refused(tmp_path, "data", "get", name)
    assert sentence.startswith(
        f"{file.name} is not on this machine and cannot be downloaded, because {file.url} is "
    )
    assert sentence.endswith(
        f"; put a copy of {file.name} into a folder and set PAC_WRAP_DATA to that folder"
    )
    assert (
        succeeded("data", "where", name)
        == f"{file.name} is not here; put a copy into the folder PAC_WRAP_DATA\n"
    )


@pytest.mark.parametrize("name", ["nasa", "smd"])
def test_get_and_where_show_the_archives_that_are_here(name: str) -> None:
    needs(name)
    shown = succeeded("data", "get", name)
    assert shown.endswith(f"{ENTRIES[name].files[0].name}\n")
    assert succeeded("data", "where", name) == shown


@pytest.mark.usefixtures("small")
def test_get_without_pooch_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert 'run pip install "pac-wrap-ad[paper]", or download' in refused(tmp_path, "data", "get", "single")


@pytest.mark.usefixtures("small")
def test_get_refuses_a_wrong_file_with_the_whole_sentence(cache: Path) -> None:
    (cache / "small.csv").write_bytes(b"wrong")
    done = invoke("data", "get", "single")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"pac-wrap: {cache / 'small.csv'} differs from the copy that the published")
    assert done.err.endswith("small.csv.rejected; try again to download a new copy\n")


@pytest.mark.parametrize(
    "words", [["get", "tyroid"], ["get", "usps", "tyroid"], ["get", "all", "tyroid"], ["where", "tyroid"]]
)
def test_an_unknown_name_lists_the_known_ones(cache: Path, tmp_path: Path, words: list[str]) -> None:
    sentence = refused(tmp_path, "data", *words)
    assert sentence == f"there is no data set 'tyroid'; did you mean 'thyroid'? {UNKNOWN}"


def test_get_needs_a_name() -> None:
    done = invoke("data", "get")
    assert done.code == 2
    assert "missing argument" in done.err


def test_where_shows_the_folders(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert succeeded("data", "where") == f"folder: none; PAC_WRAP_DATA is not set\ncache: {cache}\n"
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert succeeded("data", "where") == f"folder: {tmp_path}\ncache: {cache}\n"


@pytest.mark.usefixtures("small")
def test_where_shows_the_files_of_a_data_set(cache: Path) -> None:
    (cache / "small.csv").write_bytes(CONTENT)
    assert succeeded("data", "where", "pair").splitlines() == [
        str(cache / "small.csv"),
        "other.csv is not here; pac-wrap data get pair fetches it",
    ]


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("words", [["list"], ["get", "usps"], ["where"], ["where", "usps"]])
def test_a_folder_that_is_none_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    assert refused(tmp_path, "data", *words).startswith("PAC_WRAP_DATA must name a folder, got ")


def test_the_command_ends_with_the_right_code(cache: Path) -> None:
    assert invoke("data", "where").code == 0
    assert invoke("data", "get", "tyroid").code == 2


def test_listing_loads_nothing_heavy(cache: Path) -> None:
    script = (
        "import sys; from pac_wrap.cli import main; sys.argv = ['pac-wrap', 'data', 'list']\n"
        "try: main()\n"
        "finally: sys.stderr.write(' '.join({'duckdb', 'sklearn', 'scipy', 'pooch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
