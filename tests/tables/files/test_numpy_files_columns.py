"""NumPy files are tables: columns of one length, the same in every file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap.tables.files.numpy_files import numpy_columns
from support.shell import write
from support.strategies import refusal


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
