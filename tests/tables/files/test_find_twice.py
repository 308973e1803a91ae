"""A file is found once, whatever its names; a copy of it is noted."""

from pathlib import Path

import pytest

from pac_wrap.errors import PACWrapWarning
from pac_wrap.tables.table import found_files
from support.shell import write
from support.strategies import refusal


def find_all(paths: list[str]) -> list[Path]:
    with found_files(paths) as found:
        return found.files


@pytest.mark.parametrize("way", ["same", "dots", "link", "linked folder", "hard link", "patterns", "pattern"])
def test_a_file_named_twice_is_refused(way: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    file = write(folder / "a.csv", "score\n1\n")
    write(folder / "b.csv", "score\n2\n")
    second = {
        "same": str(file),
        "dots": f"{folder}/../folder/a.csv",
        "link": f"{folder}/link.csv",
        "linked folder": f"{tmp_path}/linked/a.csv",
        "hard link": f"{folder}/hard.csv",
        "patterns": f"{folder}/?.csv",
        "pattern": f"{folder}/[a].csv",
    }[way]
    (folder / "link.csv").symlink_to(file)
    (tmp_path / "linked").symlink_to(folder)
    (folder / "hard.csv").hardlink_to(file)
    for paths in ([str(file), second], [second, str(file)]):
        sentence = refusal(find_all, paths)
        assert sentence.endswith(", and its rows would count twice; name it once")
        assert str(file) in sentence
    if way == "same":
        assert sentence == f"{file} is named twice, and its rows would count twice; name it once"
    if way == "link":
        assert sentence.startswith(f"{second} and {file} are one file, ")


def test_one_pattern_that_matches_a_file_by_two_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "z.csv").symlink_to(write(tmp_path / "a.csv", "score\n1\n"))
    assert "are one file" in refusal(lambda: find_all([f"{tmp_path}/?.csv"]))


def test_standard_input_named_twice_is_refused() -> None:
    assert refusal(lambda: find_all(["-", "-"])) == ("standard input can be read only once; name - once")


def contents(folder: Path, *texts: bytes) -> list[str]:
    return [str(write(folder / f"{place}.csv", text)) for place, text in enumerate(texts)]


LONG = b"0123456789abcdef" * 20_000


@pytest.mark.parametrize("text", [b"score\n1\n", LONG], ids=["short", "long"])
def test_files_of_one_content_are_warned_of_by_name(text: bytes, tmp_path: Path) -> None:
    paths = contents(tmp_path, text, b"other", text)
    expected = (
        f"{paths[0]} and {paths[2]} have the same content; if that is one table twice, its rows count twice"
    )
    with pytest.warns(PACWrapWarning) as caught:
        assert [str(file) for file in find_all(paths)] == paths
    assert [str(warning.message) for warning in caught] == [expected]


@pytest.mark.parametrize(
    "texts",
    [
        (b"score\n1\n", b"score\n2\n"),
        (b"score\n1\n", b"score\n1\n\n"),
        (LONG, LONG[:150_000] + b"x" + LONG[150_001:]),  # only the middle differs
        (LONG, b"x" + LONG[1:]),
        (LONG, LONG[:-1] + b"x"),
    ],
    ids=["a digit", "a length", "the middle", "the start", "the end"],
)
def test_files_of_different_content_are_not_warned_of(texts: tuple[bytes, bytes], tmp_path: Path) -> None:
    assert len(find_all(contents(tmp_path, *texts))) == 2  # a warning is an error


def test_large_files_that_differ_at_once_are_not_read_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole(*_: object, **how: object) -> None:
        raise AssertionError("it was read as a whole")

    monkeypatch.setattr("pac_wrap.tables.table.cmp", whole)
    assert len(find_all(contents(tmp_path, LONG, b"x" + LONG[1:], LONG[1:]))) == 3
