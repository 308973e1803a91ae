"""The rows of a DuckDB query, batch by batch and without copies: Arrow's C stream, read through ctypes.

The structures are those of the Arrow C data interface, which is stable; no Arrow library is needed. No buffer
is read before the schema has said what it holds.
"""

import ctypes
from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

_CALL: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_TEXT: Final = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
_RELEASE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_pointer_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

# Arrow's names for rows of columns, doubles and unsigned bytes
_ROWS: Final = b"+s"
_TYPES: Final[dict[bytes, Any]] = {b"g": ctypes.c_double, b"C": ctypes.c_uint8}


class _Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", _CALL),
        ("get_next", _CALL),
        ("get_last_error", _TEXT),
        ("release", _RELEASE),
        ("private_data", ctypes.c_void_p),
    )


class _Schema(ctypes.Structure):
    pass


_Schema._fields_ = (
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", _RELEASE),
    ("private_data", ctypes.c_void_p),
)


class _Array(ctypes.Structure):
    pass


_Array._fields_ = (
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", _RELEASE),
    ("private_data", ctypes.c_void_p),
)


class Streamable(Protocol):
    """What Arrow can read as a stream, such as a DuckDB relation."""

    def __arrow_c_stream__(self) -> Any:
        """Return a capsule that holds the stream."""


# a column of DOUBLE and one of UTINYINT
PAIR: Final = b"gC"
# one more column of DOUBLE
DOUBLE: Final = b"g"
TRIPLE: Final = PAIR + DOUBLE


def batches(relation: Streamable, formats: bytes = PAIR) -> Generator[tuple[NDArray[Any], ...]]:
    """Yield columns of these formats, none with NULL; what is yielded is valid until the next one.

    What goes wrong, and whatever else the stream holds, raises a RuntimeError that says so.
    """
    capsule = relation.__arrow_c_stream__()
    stream = _Stream.from_address(_pointer_of(capsule, b"arrow_array_stream"))
    try:
        wanted = [formats[place : place + 1] for place in range(len(formats))]
        _check_schema(stream, wanted)
        while True:
            array = _Array()
            _call(stream, stream.get_next, array)
            if not array.release:
                return
            try:
                yield _columns(array, wanted)
            finally:
                array.release(ctypes.byref(array))
    finally:
        # now: an error that is being raised keeps the capsule alive, and with it the query
        stream.release(ctypes.byref(stream))


def gathered(parts: Iterable[tuple[NDArray[Any], ...]], rows: int) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield the same rows in batches of about `rows`, in one buffer: every batch has a cost of its own.

    >>> pairs = [(np.zeros(2), np.ones(2, np.uint8))] * 3
    >>> [scores.size for scores, _ in gathered(pairs, 3)]
    [2, 2, 2]
    >>> [scores.size for scores, _ in gathered(pairs, 4)]
    [4, 2]
    """
    buffers: list[NDArray[Any]] = []
    filled = 0
    for columns in parts:
        size = columns[0].size
        if filled and filled + size > rows:
            yield tuple(buffer[:filled] for buffer in buffers)
            filled = 0
        if size > rows:
            yield columns
            continue
        buffers = buffers or [np.empty(rows, dtype=column.dtype) for column in columns]
        for buffer, column in zip(buffers, columns, strict=True):
            buffer[filled : filled + size] = column
        filled += size
    if filled:
        yield tuple(buffer[:filled] for buffer in buffers)


def _call(stream: _Stream, function: Any, target: ctypes.Structure) -> None:
    """Have the stream fill in a structure; its own words say what goes wrong."""
    if function(ctypes.byref(stream), ctypes.byref(target)):
        message = stream.get_last_error(ctypes.byref(stream)) or b""
        raise RuntimeError(message.decode(errors="replace"))


def _check_schema(stream: _Stream, wanted: list[bytes]) -> None:
    """Refuse a stream of anything but rows of the columns that are wanted."""
    schema = _Schema()
    _call(stream, stream.get_schema, schema)
    try:
        columns = [schema.children[place].contents for place in range(schema.n_children)]
        found = [schema.format, *(column.format for column in columns)]
        plain = not any(column.dictionary or column.n_children for column in columns)
        if found != [_ROWS, *wanted] or not plain:
            said, read = (b" ".join(formats).decode() for formats in (found, [_ROWS, *wanted]))
            raise RuntimeError(f"the Arrow stream has the formats {said}, and {read} are read")
    finally:
        schema.release(ctypes.byref(schema))


def _columns(array: _Array, wanted: list[bytes]) -> tuple[NDArray[Any], ...]:
    """Return the columns of a batch."""
    if array.n_children != len(wanted):
        raise RuntimeError(f"an Arrow batch has {array.n_children} columns, and {len(wanted)} are read")
    _refuse_nulls(array, array.offset, array.length)
    children = (array.children[place].contents for place in range(len(wanted)))
    return tuple(
        _values(child, _TYPES[one], array.offset, array.length)
        for child, one in zip(children, wanted, strict=True)
    )


def _values(column: _Array, kind: Any, skipped: int, length: int) -> NDArray[Any]:
    """Return the values of a column; a batch may skip the first ones, and take fewer than there are."""
    if not length:
        return np.empty(0, dtype=kind)
    if column.n_buffers != 2 or not column.buffers[1] or column.length < skipped + length:
        raise RuntimeError(
            f"an Arrow column has {column.n_buffers} buffers and {column.length:,} values where"
            f" 2 and {skipped + length:,} are read"
        )
    first = column.offset + skipped
    _refuse_nulls(column, first, length)
    start = column.buffers[1] + first * ctypes.sizeof(kind)
    return np.ctypeslib.as_array((kind * length).from_address(start))


def _refuse_nulls(array: _Array, first: int, length: int) -> None:
    """Refuse values that are NULL; a count of -1 says that nobody has counted them."""
    if array.null_count == 0 or not length or not array.n_buffers or not array.buffers[0]:
        return
    start, end = first // 8, (first + length + 7) // 8
    bits = np.ctypeslib.as_array((ctypes.c_uint8 * (end - start)).from_address(array.buffers[0] + start))
    valid = np.unpackbits(bits, bitorder="little")[first - 8 * start :][:length]
    if not valid.all():
        missing = int(length - np.count_nonzero(valid))
        raise RuntimeError(f"an Arrow batch has {missing:,} NULLs, and none is read")
