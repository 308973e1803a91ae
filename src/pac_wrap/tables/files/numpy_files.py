"""Columns of NumPy files; files that are damaged, foreign or too large are refused."""

import ast
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap.tables.columns import refuse_added, refuse_twins

_MAGIC: Final = b"\x93NUMPY"
# by version of the format: the bytes of the header's length, and its encoding
_HEADERS: Final = {1: (2, "latin1"), 2: (4, "latin1"), 3: (4, "utf-8")}
_LONGEST_HEADER: Final = 10_000  # as in NumPy itself: Python's parser is not made for hostile text
_MOST_COLUMNS: Final = 100_000
# unpacked, an archive may take a gigabyte or a hundred times its own size, whichever is more
_EXPANSION: Final = 100
_UNPACKED: Final = 1 << 30


def numpy_columns(
    files: list[Path], source: str | None = None, names_of: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Return the columns of NumPy files, joined, and a column with the file name of each row."""
    tables = [read_numpy(file) for file in files]
    names = list(tables[0])
    for file, table in zip(files, tables, strict=True):
        lengths = {column.shape for column in table.values()}
        if set(table) != set(names) or len(lengths) != 1 or len(next(iter(lengths))) != 1:
            raise InputError(
                f"{file} must hold columns of one length, the same in every file: {', '.join(names)}"
            )
    columns = {name: np.concatenate([table[name] for table in tables]) for name in names}
    if source is not None:
        refuse_added(columns, [source])
        sizes = [table[names[0]].size for table in tables]
        columns[source] = np.repeat(np.array(names_of, dtype=object), sizes)
    return columns


def read_numpy(file: Path) -> dict[str, NDArray[Any]]:
    """Return the columns of one .npy or .npz file."""
    with file.open("rb") as opened:
        try:
            size, starts = file.stat().st_size, opened.peek(len(_MAGIC)).startswith(_MAGIC)
            columns = _columns(_array(opened, size)) if starts else _members(opened, size)
        except Exception as error:  # a damaged file makes its readers raise nearly anything
            reason = error if str(error) else type(error).__name__
            raise InputError(f"{file} is not a whole NumPy file: {reason}") from error
    refuse_twins(list(columns), file)
    for name, column in columns.items():
        kind = column.dtype
        if kind.kind not in "biufU" or (kind.kind == "f" and kind.itemsize > 8):
            raise InputError(f"column {name!r} of {file} must hold numbers or texts, but its type is {kind}")
    # in this machine's order of bytes
    return {name: one.astype(one.dtype.newbyteorder("="), copy=False) for name, one in columns.items()}


def _columns(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    if array.ndim == 1:
        return {"score": array}
    table = np.atleast_2d(array.T)
    if len(table) > _MOST_COLUMNS:
        raise ValueError(f"it has {len(table):,} columns; at most {_MOST_COLUMNS:,} are read")
    return {str(position): column for position, column in enumerate(table)}


def _members(opened: BinaryIO, packed: int) -> dict[str, NDArray[Any]]:
    with ZipFile(opened) as archive:
        members = archive.infolist()
        for member in members:
            if not member.filename.endswith(".npy"):
                raise ValueError(f"it holds {member.filename!r}, which is not an array")
        names = Counter(member.filename.removesuffix(".npy") for member in members)
        for name, times in names.items():
            if times > 1:
                raise ValueError(f"it holds {name!r} twice")
        unpacked = sum(member.file_size for member in members)
        most = max(_UNPACKED, _EXPANSION * packed)
        if unpacked > most:
            raise ValueError(
                f"unpacked it takes {unpacked:,} bytes; at most {most:,} are allowed for its size"
            )
        arrays = (_array(cast(BinaryIO, archive.open(one)), one.file_size) for one in members)
        return dict(zip(names, arrays, strict=True))


def _array(opened: BinaryIO, size: int) -> NDArray[Any]:
    """Return the array in a file of this many bytes, whose header is checked against them first."""
    if opened.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is not an array")
    version = opened.read(2)
    width, encoding = _HEADERS[version[0]] if version[:1] and version[0] in _HEADERS else (0, "")
    if not width:
        raise ValueError("its version is unknown")
    length = int.from_bytes(opened.read(width), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header has {length:,} bytes; at most {_LONGEST_HEADER:,} are read")
    header = opened.read(length)
    if len(header) < length:
        raise ValueError("it ends within its header")
    match ast.literal_eval(header.decode(encoding).strip()):
        case {"descr": stated, "fortran_order": bool(columnwise), "shape": tuple(shape), **rest}:
            sound = not rest and all(type(size) is int and size >= 0 for size in shape)
        case _:
            sound = False
    if not sound:
        raise ValueError("its header does not describe an array")
    kind: np.dtype[Any] = np.lib.format.descr_to_dtype(stated)
    if kind.itemsize == 0:
        raise ValueError("its header describes values of no bytes")
    if kind.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    wanted = math.prod(shape) * kind.itemsize
    there = size - len(_MAGIC) - 2 - width - length
    if wanted > there:
        raise ValueError(f"its header says {wanted:,} bytes, but {max(0, there):,} are there")
    array = np.empty(shape, kind, order="F" if columnwise else "C")
    flat, filled = array.reshape(-1, order="A").view(np.uint8), 0
    while filled < wanted:
        block = opened.read(min(wanted - filled, 1 << 20))
        if not block:
            raise ValueError("it ends too early")
        flat[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
        filled += len(block)
    return array
