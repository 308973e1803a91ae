"""CSV files, surveyed before an engine reads them: how many rows they have, and which engine may read them.

A file of whole rows, with quotes only where they belong and one kind of line end, is read alike by every
engine that is told its delimiter. All others are read by `CsvRows`, and handed on.
"""

import codecs
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from gzip import GzipFile
from math import isnan
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from pac_wrap.base.arguments import OnMissing
from pac_wrap.base.files import scratch_folder
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.tables.columns import missing_scores, not_a_number, number, require_in_all
from pac_wrap.tables.files.cells import count_rows
from pac_wrap.tables.files.connection import connected, file_text, first_line
from pac_wrap.tables.files.text_format import (
    CHUNK,
    LONGEST,
    MARK,
    PARQUET,
    ByteReader,
    CsvHeader,
    CsvRows,
    JsonRows,
    read_start,
    refuse_binary,
)

_BLOCK: Final = 1 << 20
# an engine must be told of every column; beyond this many it is faster to split the lines here
_WIDE: Final = 1000
_ODD: Final = (
    "is not UTF-8, or holds a NUL byte; convert the file first, for example with iconv -f cp1252 -t utf-8"
)
PACKED: Final = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file; the number of rows and the line end are known if engines may read it as it is.

    So is how the cells of each column are spelled, if C has looked at them.
    """

    path: Path
    header: CsvHeader
    rows: int | None = None
    line_end: str = "\n"
    quoted: bool = False
    broken: bool = False
    spelled: tuple[int, ...] | None = None

    @property
    def packing(self) -> str:
        """How the file is packed: gzip, zstd or none."""
        return PACKED.get(self.path.suffix.lower(), "none")


def survey(file: Path, wanted: Sequence[str], delimiter: str | None) -> CsvFile:
    """Return what engines need to know to read a file; a row with too many or too few cells is refused."""
    with opened_rows(file, wanted, delimiter) as rows:
        found = CsvFile(file, rows.header)
    if not is_unicode("".join(found.header.names)) or "\0" in "".join(found.header.names):
        raise InputError(f"{file}: the header {_ODD}")
    width = len(found.header.names)
    if width > _WIDE or not set(wanted) <= set(found.header.names):
        return found
    with opened(file) as reader:
        counted = count_rows(reader, found.header.delimiter, width)
    if counted is not None:
        return replace(found, **counted._asdict())
    with opened(file) as reader:
        counts = _scan(reader, found.header.delimiter)
    if counts is None:
        return found
    lines, blank, delimiters, line_end = counts
    lines -= blank if width > 1 else 0
    if delimiters != lines * (width - 1):  # some row is too long or too short, and is named here
        refuse_rows([found])
        return found
    return replace(found, rows=lines - 1, line_end=line_end)


def headers(files: Sequence[Path], wanted: Sequence[str], delimiter: str | None) -> list[CsvHeader]:
    """Return the header of each file; a file without a wanted column that others have is refused."""
    found = []
    for file in files:
        with opened_rows(file, wanted, delimiter) as rows:
            found.append(rows.header)
    require_in_all(files, [header.names for header in found], wanted)
    return found


def columns_of(file: CsvFile, columns: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Yield some columns of a file, each as the cells of a few rows."""
    where = f"{file.path}: "
    places = [file.header.names.index(column) for column in columns]
    with opened_rows(file.path, (), file.header.delimiter) as rows:
        for cells, _, unicode in rows:
            picked = [tuple(map(itemgetter(place), cells)) for place in places]
            if not unicode or any("\0" in cell for column in picked for cell in column):
                before = rows.read - len(cells)
                _refuse_odd(cells, before, where)
            yield picked


def refuse_rows(files: Sequence[CsvFile]) -> None:
    """Refuse the first row that is no row of its file, if there is one."""
    for file in files:
        for _ in columns_of(file, file.header.names[:1]):
            pass


def refuse_scores(files: Sequence[CsvFile], score: str, on_missing: OnMissing = "stop") -> None:
    """Refuse the first row that is none, the first score that is no number, or all that are missing.

    Missing ones may be abstained on.
    """
    several, rows, missing = len(files) > 1, 0, []
    for file in files:
        before = rows
        for (cells,) in columns_of(file, [score]):
            for cell in cells:
                rows += 1
                value = number(cell)
                if value is None:
                    where = f"{file.path}: " if several else ""
                    raise InputError(f"{where}{not_a_number(score, cell, rows - before)}")
                if isnan(value):
                    missing.append(rows)
    if missing and on_missing == "stop":
        raise missing_scores(score, len(missing), rows, missing[0])


@contextmanager
def opened_rows(file: Path, wanted: Sequence[str], delimiter: str | None) -> Iterator[CsvRows]:
    """Yield the rows of a file, which may be packed."""
    with opened(file) as reader:
        start = reader.read1(CHUNK)
        refuse_binary(start, str(file))
        if start.startswith(PARQUET):
            raise InputError(f"{file} is Parquet; give it a name that ends in .parquet")
        rows = CsvRows(reader, start, wanted, delimiter, f"{file}: ")
        # else a reader would be told of columns that cannot be read
        if "\0" in "".join(rows.header.names) and not set(wanted) <= set(rows.header.names):
            raise InputError(f"{file}: the header {_ODD}")
        yield rows


@contextmanager
def opened_json(file: Path) -> Iterator[JsonRows]:
    """Yield the rows of a JSON file, which may be packed."""
    with opened(file) as reader:
        start = read_start(reader)
        refuse_binary(start, str(file))
        yield JsonRows(reader, start, f"{file}: ")


@contextmanager
def opened(file: Path) -> Iterator[ByteReader]:
    """Yield the bytes of a file, which may be packed."""
    packing = PACKED.get(file.suffix.lower())
    try:
        if packing == "zstd":
            with scratch_folder() as own, connected([file], own) as connection:
                yield _Lines(connection, file_text(file, own))
        else:
            with file.open("rb") as plain:
                if packing and not plain.peek(2).startswith(b"\x1f"):
                    raise InputError(f"{file} is not packed, though its name says so; rename it, without .gz")
                yield GzipFile(fileobj=plain) if packing else plain
    except (OSError, EOFError, zlib.error, duckdb.Error) as error:
        raise InputError(
            f"cannot read {file}: {first_line(error)}; unpack it first, or check that it is whole"
        ) from error


class _Lines:
    """The lines of a file packed by zstd, which Python cannot unpack and DuckDB can."""

    def __init__(self, connection: Any, file: str) -> None:
        # every line is one cell of one column: no line holds the delimiter
        self._rows = connection.execute(
            f"SELECT line FROM read_csv({file}, auto_detect = false, header = false,"
            " columns = {'line': 'VARCHAR'}, delim = '\x01', quote = '', escape = '', comment = '',"
            " nullstr = '',"
            f" new_line = '\\n', compression = 'zstd', max_line_size = {LONGEST})"
        )

    def read1(self, size: int, /) -> bytes:
        """Return some lines."""
        found = self._rows.fetchmany(4096)
        return "".join([f"{line or ''}\n" for (line,) in found]).encode()


def _refuse_odd(cells: list[list[str]], before: int, where: str) -> None:
    """Refuse the first row that is not UTF-8 or holds a NUL byte."""
    for place, row in enumerate(cells):
        whole = "".join(row)
        if not is_unicode(whole) or "\0" in whole:
            raise InputError(f"{where}row {before + place + 1:,} {_ODD}")


def _scan(reader: ByteReader, delimiter: str) -> tuple[int, int, int, str] | None:
    """Return the lines, how many are empty, the delimiters and the line end; None if there is more to it."""
    mark, decoder = ord(delimiter), codecs.getincrementaldecoder("utf-8")()
    newlines = returns = pairs = empty = packed_empty = delimiters = 0
    last = head = b""
    while block := reader.read1(_BLOCK):
        head = (head + block[:4])[:4]
        if b'"' in block or b"\0" in block:
            return None
        try:
            if not block.isascii() or decoder.getstate()[0]:
                decoder.decode(block)
        except UnicodeDecodeError:
            return None
        data, start = np.frombuffer(last + block, dtype=np.uint8), len(last)
        ends = data == 10
        newlines += int(np.count_nonzero(ends[start:]))
        delimiters += int(np.count_nonzero(data[start:] == mark))
        empty += int(np.count_nonzero(ends[max(start, 1) :] & ends[max(start, 1) - 1 : -1]))
        if b"\r" in block or last[-1:] == b"\r":
            carriage = data == 13
            returns += int(np.count_nonzero(carriage[start:]))
            after = ends[max(start, 1) :] & carriage[max(start, 1) - 1 : -1]
            pairs += int(np.count_nonzero(after))
            later = ends[max(start, 2) :] & carriage[max(start, 2) - 1 : -1] & ends[max(start, 2) - 2 : -2]
            packed_empty += int(np.count_nonzero(later))
        last = (last + block)[-2:]
    if decoder.getstate()[0] or head.removeprefix(MARK)[:1] in (b"\n", b"\r", b""):
        return None
    lines = newlines + (last[-1:] != b"\n")
    if not returns:
        return lines, empty, delimiters, "\n"
    if returns == pairs == newlines:
        return lines, packed_empty, delimiters, "\r\n"
    return None
