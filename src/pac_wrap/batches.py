"""What a DuckDB query gives, batch by batch and without copies: Arrow's C stream, read through ctypes.

The structures are those of the Arrow C data interface, which is stable; no Arrow library is needed.
"""

import ctypes
from collections.abc import Generator, Iterable, Iterator
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.inputs import Scores

_CALL: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_TEXT: Final = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
_RELEASE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_pointer_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


class _Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", _CALL),
        ("get_next", _CALL),
        ("get_last_error", _TEXT),
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


def batches(relation: duckdb.DuckDBPyRelation) -> Generator[tuple[Scores, NDArray[np.uint8]]]:
    """Yield a column of DOUBLE and one of UTINYINT, neither with NULL; a pair is valid until the next one.

    What goes wrong raises a RuntimeError with DuckDB's message.
    """
    capsule = relation.__arrow_c_stream__()
    stream = _Stream.from_address(_pointer_of(capsule, b"arrow_array_stream"))
    try:
        while True:
            array = _Array()
            if stream.get_next(ctypes.byref(stream), ctypes.byref(array)):
                message = stream.get_last_error(ctypes.byref(stream)) or b""
                raise RuntimeError(message.decode(errors="replace"))
            if not array.release:
                return
            try:
                scores, marks = (array.children[place].contents for place in (0, 1))
                yield _values(scores, ctypes.c_double), _values(marks, ctypes.c_uint8)
            finally:
                array.release(ctypes.byref(array))
    finally:
        # at once, since an error on its way keeps the capsule, and the connection would stay taken
        stream.release(ctypes.byref(stream))


def gathered(
    pairs: Iterable[tuple[Scores, NDArray[np.uint8]]], size: int
) -> Iterator[tuple[Scores, NDArray[np.uint8]]]:
    """Yield the same rows in batches of about `size`, in one buffer: small ones would each cost a survey.

    >>> pairs = [(np.zeros(2), np.ones(2, np.uint8))] * 3
    >>> [scores.size for scores, _ in gathered(pairs, 3)]
    [2, 2, 2]
    >>> [scores.size for scores, _ in gathered(pairs, 4)]
    [4, 2]
    """
    scores, marks, filled = np.empty(size), np.empty(size, dtype=np.uint8), 0
    for more, marked in pairs:
        if filled and filled + more.size > size:
            yield scores[:filled], marks[:filled]
            filled = 0
        if more.size > size:
            yield more, marked
            continue
        scores[filled : filled + more.size] = more
        marks[filled : filled + more.size] = marked
        filled += more.size
    if filled:
        yield scores[:filled], marks[:filled]


def _values(column: _Array, kind: Any) -> NDArray[Any]:
    if not column.length:
        return np.empty(0, dtype=kind)
    start = column.buffers[1] + column.offset * ctypes.sizeof(kind)
    return np.ctypeslib.as_array((kind * column.length).from_address(start))
