import io
import os
import sys
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap.sources import find_files, literal_path, numpy_columns, reader_of
from shell import write
from strategies import refusal


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
        sentence = refusal(lambda path=path: find_files(path, folder))  # type: ignore[misc]  # a default
        assert sentence == f"{path} is a folder; name the files in it, for example {folder}/*.parquet"


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
        f"{folder}/pipe.csv is no regular file, and a table is read more than once;"
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
        (["a.CSV", "b.tsv", "c.txt", "d.csv.gz", "e.tsv.zst"], "read_csv"),
        (["a.parquet", "b.pq"], "read_parquet"),
        (["a.json", "b.jsonl", "c.ndjson", "d.jsonl.gz"], "read_json"),
        (["a.npy", "b.npz"], "numpy"),
        (["v1.2.csv"], "read_csv"),
    ],
)
def test_the_ending_says_which_reader_fits(names: list[str], reader: str) -> None:
    assert reader_of([Path(name) for name in names]) == reader


@pytest.mark.parametrize("name", ["a", "a.xlsx", "a.gz", ".csv.bak", "a.pickle", "a.csv.bz2"])
def test_an_unknown_ending_is_refused_with_the_known_ones(name: str) -> None:
    sentence = refusal(lambda: reader_of([Path(name)]))
    assert sentence.startswith(f"{name} has no known format; the endings are .csv, .tsv, .txt, .parquet")


def test_mixed_formats_are_refused() -> None:
    assert "different formats" in refusal(lambda: reader_of([Path("a.csv"), Path("b.parquet")]))


@pytest.mark.parametrize("name", ["a.csv", "[ab].csv", "*.csv", "?.csv", "[!a].csv", "{a}'b.csv"])
def test_a_literal_path_matches_its_own_file_alone(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / name, "score\n1\n")
    monkeypatch.chdir(folder)
    for path in (name, str(folder / name)):
        assert [os.path.realpath(found) for found in glob(literal_path(path))] == [str(folder / name)]


def saved(path: Path, content: Any) -> Path:
    if path.suffix == ".npy":
        np.save(path, content)
    else:
        np.savez(path, **content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.npy", np.array([1.0, 2.0]), {"score": [1.0, 2.0]}),
        ("a.npy", np.array([[1.0, 0.0], [2.0, 1.0]]), {"0": [1.0, 2.0], "1": [0.0, 1.0]}),
        ("a.npy", np.array([[1.0], [2.0]]), {"0": [1.0, 2.0]}),
        ("a.npy", np.array([(1.0, 0)], [("s", "f4"), ("y", "i1")]), {"s": [1.0], "y": [0]}),
        ("a.npz", {"s": np.array([1.0]), "y": np.array([True])}, {"s": [1.0], "y": [True]}),
        ("a.npz", {"<b>": np.array([3])}, {"<b>": [3]}),
    ],
)
def test_numpy_files_are_columns(
    name: str, content: Any, columns: dict[str, list[float]], tmp_path: Path
) -> None:
    read = numpy_columns([saved(tmp_path / name, content)])
    assert {key: value.tolist() for key, value in read.items()} == columns


def test_several_numpy_files_are_one_table_whatever_the_order_of_their_columns(tmp_path: Path) -> None:
    one = saved(tmp_path / "1.npz", {"s": np.array([1.0]), "y": np.array([0])})
    two = saved(tmp_path / "2.npz", {"y": np.array([1]), "s": np.array([2.0])})
    read = numpy_columns([one, two])
    assert read["s"].tolist() == [1.0, 2.0]
    assert read["y"].tolist() == [0, 1]


def test_the_ending_of_a_numpy_file_may_be_in_capitals(tmp_path: Path) -> None:
    small = saved(tmp_path / "a.npz", {"s": np.array([1.0])})
    assert numpy_columns([small.rename(tmp_path / "B.NPZ")])["s"].tolist() == [1.0]


@pytest.mark.parametrize(
    "content",
    [
        {"s": np.array([1.0, 2.0]), "y": np.array([0])},
        {"s": np.array([[1.0], [2.0]]), "y": np.array([[0], [1]])},
        {"s": np.array(1.0)},
        {},
    ],
    ids=["lengths", "two dimensions", "no dimension", "nothing"],
)
def test_columns_that_make_no_table_are_refused(content: dict[str, Any], tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", content)
    assert refusal(lambda: numpy_columns([path])).startswith(f"{path} must hold columns of one length")


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    one = saved(tmp_path / "1.npz", {"s": np.array([1.0])})
    two = saved(tmp_path / "2.npz", {"t": np.array([1.0])})
    assert refusal(lambda: numpy_columns([one, two])).startswith(f"{two} must hold columns")


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
@pytest.mark.parametrize("damage", ["truncated", "text", "pickled"])
def test_a_damaged_or_pickled_numpy_file_is_refused_and_never_run(
    name: str, damage: str, tmp_path: Path
) -> None:
    array = np.array([1.0, "x"], dtype=object) if damage == "pickled" else np.arange(100.0)
    path = saved(tmp_path / name, array if name == "a.npy" else {"s": array})
    if damage != "pickled":
        write(path, path.read_bytes()[:300] if damage == "truncated" else "no array at all")
    try:
        numpy_columns([path])
    except Exception as error:
        # only the text is kept: a traceback would hold the file open until after the last test
        raised = f"{type(error).__name__}: {error}"
    assert raised.startswith(f"InputError: {path} is not a whole NumPy file")
