"""Connections to DuckDB that read and write only the named files.

They neither download nor load extensions, and no query can open another file or change a setting.
"""

import ctypes
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from glob import has_magic
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.files import scratch_folder
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import usable_cores
from pac_wrap.tables.sql import quote_text


class Done(NamedTuple):
    """The progress of a job: its pass, the share of the pass in percent, and its rows if known."""

    share: float
    number: int = 1
    rows: int | None = None


Progress = Callable[[Done], None]

# no query joins many tables, and planning the order of joins takes time in the square of the columns
# writers leave NaN out of a Parquet file's statistics, so they prove nothing about NaN
_DISABLED: Final = "disabled_optimizers = 'statistics_propagation,join_order"
# nor are the sides of a join exchanged: rows stay in the order of the first
_IN_ORDER: Final = (f"{_DISABLED},build_side_probe_side'",)
# we ask for the progress, DuckDB prints nothing; in Jupyter without ipywidgets it refuses the option
_PROGRESS: Final = ("enable_progress_bar = true", "enable_progress_bar_print = false")
_ALWAYS: Final = (
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
)
_NEWER: Final = (
    # no query sees the variables of Python
    "python_enable_replacements = false",
    # DuckDB 2.0 may wait for ever for its own threads if one of them cannot write; older ones have none
    "async_threads = 0",
)
_CLOSED: Final = "SET enable_external_access = false; SET lock_configuration = true"


@contextmanager
def connected(
    files: Sequence[Path], scratch: Path | None = None, output: Path | None = None, *, passes: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection that reads these files, in order or fast, and writes the output."""
    for file in files:
        if not is_unicode(os.path.realpath(file)):
            raise InputError(f"file names must be UTF-8, got {os.fspath(file)!r}; rename it")
    with scratch_folder() as own, duckdb.connect() as connection:
        folder = os.path.realpath(scratch or own)
        paths = [os.path.realpath(file) for file in (*files, *([] if output is None else [output]))]
        for options, unknown in (_PROGRESS, duckdb.InvalidInputException), (_NEWER, duckdb.CatalogException):
            for option in options:
                with suppress(unknown):
                    connection.execute(f"SET {option}")
        for option in *_ALWAYS, *(_fast() if passes else _IN_ORDER), f"temp_directory = {quote_text(folder)}":
            connection.execute(f"SET {option}")
        connection.execute(f"SET allowed_directories = [{quote_text(folder)}]")
        connection.execute(f"SET allowed_paths = [{', '.join(map(quote_text, paths))}]")
        connection.execute(_CLOSED)
        yield connection


def file_text(file: Path, scratch: Path) -> str:
    """Return a file name as an SQL literal; a name that would be a pattern gets a link."""
    path = os.path.realpath(file)
    if has_magic(path):
        links = scratch / "links"
        links.mkdir(exist_ok=True)
        link = links / f"{len(os.listdir(links))}{''.join(file.suffixes[-2:])}"
        link.symlink_to(path)
        path = str(link)
    return quote_text(path)


# cells that go to the database together, since each transfer costs as much as some hundred cells
_HELD: Final = 1 << 18


class Growing:
    """A table of a database that grows by many rows of texts and doubles at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, types: dict[str, str]) -> None:
        self._connection, self.name, self.types, self.rows = connection, name, types, 0
        self._held: dict[str, list[Any]] = {column: [] for column in types}
        typed = ", ".join(f"{column} {kind}" for column, kind in types.items())
        connection.execute(f"CREATE TABLE {name} ({typed})")

    def add(self, columns: Mapping[str, Sequence[Any]], rows: int) -> None:
        """Add this many rows; columns that are not given stay empty."""
        for column, held in self._held.items():
            held.extend(columns.get(column) or [None] * rows)
        self.rows += rows
        if sum(map(len, self._held.values())) >= _HELD:
            self.flush()

    def widen(self, column: str) -> None:
        """Add an empty column of texts, or convert a column of doubles to texts."""
        self.flush()
        change = f"ALTER COLUMN {column} TYPE" if column in self.types else f"ADD COLUMN {column}"
        self._connection.execute(f"ALTER TABLE {self.name} {change} VARCHAR")
        self.types[column] = "VARCHAR"
        self._held[column] = []

    def flush(self) -> None:
        """Send all rows to the database."""
        if not next(iter(self._held.values())):
            return
        # as objects: in an array of NumPy texts each takes as much memory as the longest
        kinds: dict[str, Any] = {"DOUBLE": np.float64, "VARCHAR": object}
        arrays = {column: np.array(held, kinds[self.types[column]]) for column, held in self._held.items()}
        # a column of None alone has no type of its own
        cells = ", ".join(f"CAST({column} AS {kind})" for column, kind in self.types.items())
        self._connection.register("batch", arrays)
        self._connection.execute(f"INSERT INTO {self.name} ({', '.join(arrays)}) SELECT {cells} FROM batch")
        self._connection.unregister("batch")
        self._held = {column: [] for column in self.types}


def _fast() -> tuple[str, ...]:
    # more threads read no faster from most disks, and would need more than a gigabyte
    threads = min(usable_cores(), 4)
    # each thread that reads a CSV needs its own buffers; the rest is spilled to disk
    memory = f"memory_limit = '{300 + 100 * threads}MB'"
    return f"threads = {threads}", memory, "preserve_insertion_order = false", f"{_DISABLED}'"


# the error of a query for a cell of another type than expected
MISFIT: Final = "a cell is not what it was taken for"


class MisfitError(Exception):
    """A cell of a CSV is not a number, though the cells in the first rows are."""


def refusal(error: Exception, names: list[str]) -> BaseException:
    """Return the error to raise instead of DuckDB's: one sentence, or the Ctrl-C that caused it."""
    if MISFIT in str(error):
        return MisfitError()
    if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
        return KeyboardInterrupt()
    return InputError(f"cannot read {', '.join(names)}: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Return the first two useful lines of an error, as one line."""
    lines = [text.strip() for text in str(error).splitlines() if text.strip()]
    useless = ("Original Line", "Possible", "LINE ", "^")
    wanted = [text for text in lines if not text.startswith(useless) and "sample_size" not in text]
    return re.sub(r"\s*Try .*", "", "; ".join(wanted[:2])) or type(error).__name__


_CALL: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_TEXT: Final = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
_RELEASE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_pointer_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

# Arrow's names for rows of columns, doubles and unsigned bytes
_ROWS: Final = b"+s"
_TYPES: Final[dict[bytes, Any]] = {b"g": ctypes.c_double, b"C": ctypes.c_uint8}


# how all three structures end, and what follows the number of children in two of them
_OWNED: Final = ("release", _RELEASE), ("private_data", ctypes.c_void_p)
_SHARED: Final = ("children", ctypes.POINTER(ctypes.c_void_p)), ("dictionary", ctypes.c_void_p), *_OWNED


class _Stream(ctypes.Structure):
    _fields_ = ("get_schema", _CALL), ("get_next", _CALL), ("get_last_error", _TEXT), *_OWNED


class _Schema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        *_SHARED,
    )


class _Array(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        *_SHARED,
    )


# a column of DOUBLE and one of UTINYINT
PAIR: Final = b"gC"
DOUBLE: Final = b"g"
TRIPLE: Final = PAIR + DOUBLE


def batches(relation: Any, formats: bytes = PAIR) -> Generator[tuple[NDArray[Any], ...]]:
    """Yield batches of columns in these formats, from a stream of Arrow; each is valid until the next."""
    capsule = relation.__arrow_c_stream__()
    stream = _Stream.from_address(_pointer_of(capsule, b"arrow_array_stream"))
    wanted = [formats[place : place + 1] for place in range(len(formats))]
    try:
        _check_schema(stream, wanted)
        while True:
            array = _Array()
            _call(stream, stream.get_next, array)
            if not array.release:
                return
            try:
                if array.n_children != len(wanted):
                    raise RuntimeError(
                        f"an Arrow batch has {array.n_children} columns, and {len(wanted)} are read"
                    )
                _refuse_nulls(array, array.offset, array.length)
                yield tuple(
                    _values(_Array.from_address(column), _TYPES[one], array.offset, array.length)
                    for column, one in zip(array.children[: len(wanted)], wanted, strict=True)
                )
            finally:
                array.release(ctypes.byref(array))
    finally:
        # now: an error that is being raised keeps the capsule alive, and with it the query
        stream.release(ctypes.byref(stream))


def gathered(parts: Iterable[tuple[NDArray[Any], ...]], rows: int) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield the same rows in one buffer, in batches of about `rows`, as every batch has a fixed cost."""
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
    """Make the stream fill in a structure; an error has the message of the stream."""
    if function(ctypes.byref(stream), ctypes.byref(target)):
        message = stream.get_last_error(ctypes.byref(stream)) or b""
        raise RuntimeError(message.decode(errors="replace"))


def _check_schema(stream: _Stream, wanted: list[bytes]) -> None:
    schema = _Schema()
    _call(stream, stream.get_schema, schema)
    try:
        columns = [_Schema.from_address(schema.children[place]) for place in range(schema.n_children)]
        found = [schema.format, *(column.format for column in columns)]
        plain = not any(column.dictionary or column.n_children for column in columns)
        if found != [_ROWS, *wanted] or not plain:
            said, read = (b" ".join(formats).decode() for formats in (found, [_ROWS, *wanted]))
            raise RuntimeError(f"the Arrow stream has the formats {said}, and {read} are read")
    finally:
        schema.release(ctypes.byref(schema))


def _values(column: _Array, kind: Any, skipped: int, length: int) -> NDArray[Any]:
    """Return the values of a column; a batch may skip the first values and leave out the last."""
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
    """Refuse values that are NULL; a count of -1 means unknown."""
    if array.null_count == 0 or not length or not array.n_buffers or not array.buffers[0]:
        return
    start, end = first // 8, (first + length + 7) // 8
    bits = np.ctypeslib.as_array((ctypes.c_uint8 * (end - start)).from_address(array.buffers[0] + start))
    valid = np.unpackbits(bits, bitorder="little")[first - 8 * start :][:length]
    if not valid.all():
        missing = int(length - np.count_nonzero(valid))
        raise RuntimeError(f"an Arrow batch has {missing:,} NULLs, and none is read")
