"""Files are found by path, by pattern and on standard input, and read by what fits their ending."""

import io
import os
import sys
from pathlib import Path

import pytest

from pac_wrap.tables.table import find_files, reader_of
from support.shell import write
from support.strategies import refusal


def found(path: str, scratch: Path) -> list[str]:
    return [file.name for file in find_files(path, scratch)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", "[ab].csv", "c d.csv", "ü.csv"):
        write(tmp_path / name, "score\n1\n")
    return tmp_path


@pytest.mark.parametrize("name", ["a.csv", "[ab].csv", "c d.csv", "ü.csv"])
def test_a_file_that_exists_is_taken_as_it_is_named(folder: Path, name: str) -> None:
    assert found(str(folder / name), folder) == [name]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("?.csv", ["a.csv", "b.csv", "ü.csv"]), ("[a-c].csv", ["a.csv", "b.csv"]), ("**/c*.csv", ["c d.csv"])],
)
def test_patterns_give_the_files_in_the_order_of_their_names(
    folder: Path, pattern: str, names: list[str]
) -> None:
    assert found(str(folder / pattern), folder) == names


def test_patterns_reach_into_folders(folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    write(folder / "deep" / "er" / "z.csv", "score\n1\n")
    assert found(str(folder / "**" / "z.csv"), folder) == ["z.csv"]


def test_a_pattern_without_a_match_is_refused(folder: Path) -> None:
    assert refusal(lambda: find_files(f"{folder}/z*.csv", folder)) == f"no file matches {folder}/z*.csv"


def test_a_missing_file_is_refused_with_the_nearest_name(folder: Path) -> None:
    write(folder / "scores.csv", "score\n1\n")
    sentence = refusal(lambda: find_files(f"{folder}/score.csv", folder))
    assert sentence == f"there is no file {folder}/score.csv; did you mean {folder}/scores.csv?"


@pytest.mark.parametrize("name", ["nothing-like-it.parquet", "nowhere/scores.csv"])
def test_a_missing_file_without_a_near_name_is_refused(folder: Path, name: str) -> None:
    sentence = refusal(lambda: find_files(f"{folder}/{name}", folder))
    assert sentence == f"there is no file {folder}/{name}; check the path"


def test_a_folder_is_refused_with_what_to_write(folder: Path) -> None:
    for path in (str(folder), f"{folder}/"):
        sentence = refusal(find_files, path, folder)
        assert sentence == f"{path} is a folder; name the files in it, for example {folder}/*.csv"


@pytest.mark.parametrize("pattern", ["empty.csv", "empt*.csv"])
def test_an_empty_file_is_refused_however_it_is_named(folder: Path, pattern: str) -> None:
    write(folder / "empty.csv", "")
    assert "empty.csv is empty; it needs a header and rows" in refusal(
        lambda: find_files(f"{folder}/{pattern}", folder)
    )


def test_a_folder_that_a_pattern_matches_is_not_taken_for_a_table(folder: Path) -> None:
    (folder / "z.csv").mkdir()
    write(folder / "zz.csv", "score\n1\n")
    assert found(f"{folder}/z*.csv", folder) == ["zz.csv"]


def test_a_pipe_cannot_be_a_table(folder: Path) -> None:
    os.mkfifo(folder / "pipe.csv")
    assert refusal(lambda: find_files(f"{folder}/pipe.csv", folder)) == (
        f"{folder}/pipe.csv must be a regular file, as it is read more than once;"
        " pipe it in and name - instead"
    )


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (b"score\n1\n", ".csv"),
        (b"\xef\xbb\xbfscore\n1\n", ".csv"),
        (b'{"score": 1}\n', ".jsonl"),
        (b'[{"score": 1}]', ".jsonl"),
        (b"PAR1....", ".parquet"),
        (b"PAR", ".csv"),
        (b"s", ".csv"),
    ],
)
def test_standard_input_is_recognised_by_how_it_starts(
    content: bytes, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    (file,) = find_files("-", tmp_path)
    assert file.suffix == suffix
    assert file.read_bytes() == content


def test_standard_input_that_is_empty_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert "standard input is empty" in refusal(lambda: find_files("-", tmp_path))


@pytest.mark.parametrize(
    ("names", "reader"),
    [
        (["a.csv"], "read_csv"),
        (["a.CSV", "b.tsv", "c.txt", "d.csv.gz"], "read_csv"),
        (["a.parquet", "b.pq"], "read_parquet"),
        (["a.json", "b.jsonl", "c.ndjson", "d.jsonl.gz"], "read_json"),
        (["a.npy", "b.npz"], "numpy"),
        (["v1.2.csv"], "read_csv"),
    ],
)
def test_the_ending_says_which_reader_fits(names: list[str], reader: str) -> None:
    assert reader_of([Path(name) for name in names]) == reader


@pytest.mark.parametrize("name", ["a", "a.xlsx", "a.gz", ".csv.bak", "a.pickle", "a.csv.bz2", "a.csv.zst"])
def test_an_unknown_ending_is_refused_with_the_known_ones(name: str) -> None:
    sentence = refusal(lambda: reader_of([Path(name)]))
    assert sentence.startswith(f"{name} has no known format; the endings are .csv, .tsv, .txt, .parquet")


def test_mixed_formats_are_refused() -> None:
    assert "different formats" in refusal(lambda: reader_of([Path("a.csv"), Path("b.parquet")]))


@pytest.mark.parametrize(
    ("names", "example"),
    [
        (["a.csv", "b.csv.gz", "c.parquet"], "*.csv"),
        (["a.parquet", "notes.md"], "*.parquet"),
        (["notes.md"], None),
        ([], None),
    ],
)
def test_a_folder_is_told_of_the_files_that_are_in_it(
    names: list[str], example: str | None, tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).touch()
    hint = "" if example is None else f", for example {tmp_path}/{example}"
    assert refusal(lambda: find_files(str(tmp_path), tmp_path)) == (
        f"{tmp_path} is a folder; name the files in it{hint}"
    )


@pytest.mark.parametrize(
    "path", ["s3://bucket/scores.csv", "https://a.org/*.parquet", "gs://b/c.jsonl", "hdfs://n:80/x.csv"]
)
def test_a_file_that_is_elsewhere_is_refused_as_such(folder: Path, path: str) -> None:
    assert refusal(lambda: find_files(path, folder)) == (
        f"{path} is not a local file; copy it to this machine, or pipe it in and name - instead"
    )
