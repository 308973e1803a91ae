"""NumPy files that are odd, damaged or hostile: columns, or one sentence, and never memory for a lie."""

import io
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.tables.files.numpy_files import read_numpy
from support.shell import CERTIFICATE, refused, write
from support.strategies import refusal


def array_file(header: str, body: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """Return an .npy file with a header of any text."""
    text = header.encode("latin1" if version[0] < 3 else "utf-8")
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + body


def described(descr: object, shape: object, fortran_order: object = False) -> str:
    return repr({"descr": descr, "fortran_order": fortran_order, "shape": shape})


def saved(array: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array))
    return out.getvalue()


def archive(path: Path, *members: tuple[str, bytes], packed: bool = False) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as written:
        for name, content in members:
            written.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "kind", ["<f8", ">f8", "<f4", ">f4", "<f2", ">i2", "<i8", "|u1", "|b1", "<U3", ">U2"]
)
@pytest.mark.parametrize("columnwise", [False, True])
def test_every_plain_type_reads_as_numpy_reads_it(kind: str, columnwise: bool, tmp_path: Path) -> None:
    array = np.asarray(np.arange(6).reshape(3, 2), kind, order="F" if columnwise else "C")
    np.save(tmp_path / "a.npy", array)
    read = read_numpy(tmp_path / "a.npy")
    assert {name: column.tolist() for name, column in read.items()} == {
        "0": array[:, 0].tolist(),
        "1": array[:, 1].tolist(),
    }
    assert all(column.dtype.isnative for column in read.values())


def test_infinities_nan_and_negative_zero_stay_what_they_are(tmp_path: Path) -> None:
    values = np.array([np.inf, -np.inf, np.nan, -0.0, 5e-324])
    np.savez_compressed(tmp_path / "a.npz", s=values, t=values.astype(">f8"))
    read = read_numpy(tmp_path / "a.npz")
    for name in "st":
        assert read[name].tobytes() == values.tobytes()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(version: tuple[int, int], tmp_path: Path) -> None:
    header = described([("größe", "<f8")], (1,))
    path = write(tmp_path / "a.npy", array_file(header, np.float64(2.5).tobytes(), version))
    assert {name: column.tolist() for name, column in read_numpy(path).items()} == {"größe": [2.5]}


F8 = described("<f8", (1,))
ODD: dict[str, tuple[bytes, str]] = {
    "nothing after the magic": (b"\x93NUMPY", "its version is unknown"),
    "an unknown version": (array_file(F8, bytes(8), (9, 0)), "its version is unknown"),
    "half a header": (array_file(F8)[:30], "it ends within its header"),
    "a header too long": (array_file(F8 + " " * 60_000), "its header has 60,"),
    "no bytes": (array_file(F8), "its header says 8 bytes, but 0 are there"),
    "too few bytes": (array_file(described("<f8", (3,)), bytes(23)), "says 24 bytes, but 23 are there"),
    "more than memory": (array_file(described("<f8", (10**15,)), bytes(8)), "8,000,000,000,000,000 bytes"),
    "more than an integer": (
        array_file(described("<f8", (2**62, 2**62)), bytes(8)),
        "bytes, but 8 are there",
    ),
    "many columns of nothing": (array_file(described("<f8", (0, 10**9))), "1,000,000,000 columns"),
    "values of no bytes": (array_file(described("|V0", (10**12,))), "values of no bytes"),
    "texts of no bytes": (array_file(described("<U0", (10**12,))), "values of no bytes"),
    "a negative size": (array_file(described("<f8", (-1,))), "does not describe an array"),
    "a size that is true": (array_file(described("<f8", (True,)), bytes(8)), "does not describe an array"),
    "a size that is a text": (array_file(described("<f8", ("3",))), "does not describe an array"),
    "a shape that is a list": (array_file(described("<f8", [1]), bytes(8)), "does not describe an array"),
    "an order that is a text": (array_file(described("<f8", (1,), "C"), bytes(8)), "does not describe"),
    "an unknown type": (array_file(described("<q9", (1,)), bytes(8)), "not understood"),
    "a type that is a number": (array_file(described(7, (1,)), bytes(8)), ""),
    "objects": (array_file(described("|O", (1,)), bytes(8)), "Python objects, which are never loaded"),
    "objects in fields": (array_file(described([("s", "|O")], (1,)), bytes(8)), "never loaded"),
    "a list": (array_file("[1, 2]"), "does not describe an array"),
    "a key too many": (array_file(F8[:-1] + ", 'x': 1}", bytes(8)), "does not describe an array"),
    "a call": (array_file("__import__('os').getcwd()"), "malformed"),
    "brackets": (array_file("(" * 9_000), ""),
    "signs": (array_file("-" * 9_000 + "1"), ""),
    "a header that is no text": (
        array_file(F8, bytes(8), (3, 0)).replace(b"descr", b"\xff\xff\xff\xff\xff"),
        "utf-8",
    ),
    "zeros": (bytes(1000), "not a zip file"),
    "a zip that is cut": (b"PK\x03\x04" + bytes(30), "not a zip file"),
}


def test_a_header_may_be_as_long_as_numpy_reads(tmp_path: Path) -> None:
    header = described([("s", "<f8")], (1,)).ljust(10_000)
    path = write(tmp_path / "a.npy", array_file(header, np.float64(2.5).tobytes()))
    assert read_numpy(path)["s"].tolist() == np.load(path)["s"].tolist() == [2.5]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    content, words = ODD[name]
    path = write(tmp_path / "a.npy", content)
    sentence = refused(tmp_path, "decide", CERTIFICATE, path, "--score", "score")
    assert sentence.startswith(f"{path} is not a whole NumPy file: ")
    assert words in sentence


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("c16", "complex128"),
        ("g", "float128"),
        ("S3", "|S3"),
        ("V4", "|V4"),
        ("M8[s]", "datetime64[s]"),
        ("m8[D]", "timedelta64[D]"),
        ([("a", "f8"), ("b", [("c", "f8")])], "[('c', '<f8')]"),
    ],
)
def test_values_that_are_neither_numbers_nor_texts_are_refused(kind: Any, shown: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(2, kind))
    sentence = refused(tmp_path, "decide", CERTIFICATE, tmp_path / "a.npy", "--score", "score")
    assert sentence.endswith(f"must hold numbers or texts, but its type is {shown}")


@pytest.mark.parametrize(
    "array", [np.zeros((2, 2, 2)), np.zeros(2, [("s", "f8", (3,))]), np.zeros((2, 0)), np.zeros((0, 0))]
)
def test_shapes_that_are_no_table_are_refused(array: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    sentence = refused(tmp_path, "decide", CERTIFICATE, tmp_path / "a.npy", "--score", "score")
    assert "must hold columns of one length" in sentence


MEMBERS: dict[str, tuple[list[tuple[str, bytes]], str]] = {
    "a text": ([("s.npy", saved([1.0])), ("README", b"text")], "it holds 'README', which is not an array"),
    "a text called array": ([("s.npy", b"text")], "it is not an array"),
    "an empty member": ([("s.npy", b"")], "it is not an array"),
    "a folder": ([("folder/", b"")], "it holds 'folder/', which is not an array"),
    "objects": ([("s.npy", array_file(described("|O", (1,)), bytes(8)))], "never loaded"),
    "a member that says too much": ([("s.npy", array_file(described("<f8", (10**12,))))], "0 are there"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_an_odd_member_is_one_sentence(name: str, tmp_path: Path) -> None:
    members, words = MEMBERS[name]
    path = archive(tmp_path / "a.npz", *members)
    assert words in refused(tmp_path, "decide", CERTIFICATE, path, "--score", "s")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", ("s.npy", saved([1.0])), ("s.npy", saved([2.0])))
    assert refusal(lambda: read_numpy(path)) == f"{path} is not a whole NumPy file: it holds 's' twice"


def test_two_members_that_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", ("s.npy", saved([1.0])), ("S.npy", saved([2.0])))
    assert refusal(lambda: read_numpy(path)) == f"{path} has two columns named 's'; rename one of them"


def test_a_member_that_is_locked_or_packed_in_an_unknown_way_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", ("s.npy", saved(np.zeros(5))))
    content = path.read_bytes()
    central = content.index(b"PK\x01\x02")
    for place, value in ((8, 1), (10, 99)):  # flags, method
        changed = bytearray(content)
        changed[central + place] = value
        changed[place - 2] = value
        write(path, bytes(changed))
        assert refusal(lambda: read_numpy(path)).startswith(f"{path} is not a whole NumPy file: ")


def test_a_changed_byte_is_noticed_by_its_checksum(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", ("s.npy", saved(np.zeros(100))))
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    assert "Bad CRC-32" in refusal(lambda: read_numpy(write(path, bytes(content))))


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    zeros = array_file(described("|i1", (3 << 29,)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written, written.open("s.npy", "w") as member:
        member.write(zeros)
        for _ in range(3 << 9):
            member.write(bytes(1 << 20))
    size = path.stat().st_size
    assert size < 3_000_000
    tracemalloc.start()
    try:
        sentence = refused(tmp_path, "decide", CERTIFICATE, path, "--score", "s")
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    unpacked = len(zeros) + (3 << 29)
    assert sentence == (
        f"{path} is not a whole NumPy file: unpacked it takes {unpacked:,} bytes; at most {1 << 30:,} are"
        " allowed for its size"
    )


@given(data=st.data())
def test_no_damage_raises_anything_else(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = archive(
        folder / "a.npz", ("s.npy", saved(np.arange(3.0))), ("y.npy", saved([0, 1, 1])), packed=True
    )
    if data.draw(st.booleans()):
        path = write(folder / "a.npy", saved(np.arange(4.0)))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    write(path, bytes(content[: data.draw(st.integers(1, len(content)))]))
    with suppress(InputError):
        assert sum(column.nbytes for column in read_numpy(path).values()) < 10_000
