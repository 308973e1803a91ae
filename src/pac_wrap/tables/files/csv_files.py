"""CSV files: surveyed before an engine reads them, and as queries for DuckDB.

A file of whole rows, with quotes only where they belong and one kind of line end, is read alike by every
engine that is told its delimiter. All others are read by `CsvRows`, and handed on.
"""

import codecs
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from gzip import GzipFile
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from pac_wrap.base.arguments import OnMissing
from pac_wrap.base.files import scratch_folder
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.tables.columns import refuse_scores_of, require_in_all
from pac_wrap.tables.files.cells import Kind, count_rows, kind_of
from pac_wrap.tables.files.connection import MISFIT, Growing, connected, file_text, first_line
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
from pac_wrap.tables.sql import number_sql, quote_name, quote_text

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
    """Refuse the first row that is none, the first score that is no number, or all that are missing."""
    values = {file.path: (cells for (cells,) in columns_of(file, [score])) for file in files}
    refuse_scores_of(values, score, on_missing)


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


# how the cells of a column must be spelled for it to become numbers in a file that has types
_KINDS: Final[dict[Kind, str]] = {
    "BIGINT": "-?(0|[1-9][0-9]{0,17})",
    "DOUBLE": "-?(0|[1-9][0-9]{0,16})([.][0-9]+)?(e[+-]?[0-9]{1,2})?",
}
# bytes that a thread reads at once; left alone, DuckDB takes sixteen of the longest lines
_BUFFER: Final = 4 * LONGEST
# most columns in one query
_TOGETHER: Final = 500
# told of CRLF, DuckDB 2.0 reads no rows at all; left alone, it reads them right
_LINE_ENDS: Final = {"\n": r"new_line = '\n', ", "\r\n": ""}


def csv_queries(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[CsvFile],
    quoted: dict[str, str],
    scratch: Path,
    named: Sequence[str],
    types: Mapping[str, Kind],
    *,
    shared: bool = False,
) -> tuple[str, int]:
    """Return the query for some columns of files in order, and its number of rows.

    `named` is what is selected besides from each file. Threads share a file without quotes; where they share
    others, DuckDB may fail, but never errs.
    """
    queries: list[str] = []
    rows = 0

    def layout(one: tuple[CsvFile, str]) -> tuple[Any, ...]:
        file, name = one
        facts = file.header, file.line_end, file.packing, file.rows is None, file.quoted, file.broken
        return *facts, name

    for facts, group in groupby(zip(files, named, strict=True), layout):
        header, line_end, packing, odd, marked, broken, name = facts
        alike = [file for file, _ in group]
        places = {column: f"c{place}" for place, column in enumerate(header.names)}
        present = [column for column in quoted if column in places]
        shown = ", ".join(f"{places[column]} AS {quoted[column]}" for column in present) + name
        for file in alike if odd else ():
            table = Growing(
                connection, f"loaded_{len(queries)}", {places[column]: "VARCHAR" for column in present}
            )
            for picked in columns_of(file, present):
                cells = ([cell or None for cell in column] for column in picked)
                table.add(dict(zip(table.types, cells, strict=True)), len(picked[0]))
            table.flush()
            rows += table.rows
            queries.append(f"SELECT {shown} FROM {table.name}")
        if odd:
            continue
        paths = ", ".join(file_text(file.path, scratch) for file in alike)
        typed = ", ".join(f"{place}: '{types[column]}'" for column, place in places.items())
        mark, parallel = '"' if marked else "", not broken and (shared or not marked)
        queries.append(
            f"SELECT {shown} FROM read_csv([{paths}], auto_detect = false, header = true,"
            f" columns = {{{typed}}}, delim = {quote_text(header.delimiter)}, quote = '{mark}',"
            f" escape = '{mark}', parallel = {str(parallel).lower()},"
            f" comment = '', nullstr = '', {_LINE_ENDS[line_end]}compression = '{packing}',"
            " encoding = 'utf-8', strict_mode = true, null_padding = false, ignore_errors = false,"
            f" max_line_size = {LONGEST}, buffer_size = {_BUFFER}, hive_partitioning = false)"
        )
        rows += sum(file.rows or 0 for file in alike)
    return " UNION ALL BY NAME ".join(f"({query})" for query in queries), rows


def kinds_of(files: Sequence[CsvFile]) -> dict[str, Kind] | None:
    """Return what each column of several files is, if it is known of all how their cells are spelled."""
    spelled: dict[str, int] = {}
    for file in files:
        if file.spelled is None:
            return None
        for name, one in zip(file.header.names, file.spelled, strict=True):
            spelled[name] = spelled.get(name, 0) | one
    return {name: kind_of(one) for name, one in spelled.items()}


def kinds_in(
    connection: duckdb.DuckDBPyConnection, texts: str, quoted: dict[str, str], kept: Sequence[str]
) -> dict[str, Kind]:
    """Return what each column of a query for texts is, but of those kept as texts, by a look at all cells."""
    kinds: dict[str, Kind] = dict.fromkeys(quoted, "VARCHAR")
    looked_at = [name for name in quoted if name not in kept]
    for kind, spelling in reversed(_KINDS.items()):
        for start in range(0, len(looked_at), _TOGETHER):
            some = looked_at[start : start + _TOGETHER]
            tests = ", ".join(f"bool_and(regexp_full_match({quoted[name]}, '{spelling}'))" for name in some)
            (found,) = connection.execute(f"SELECT {tests} FROM ({texts})").fetchall()
            kinds |= {name: kind for name, fits in zip(some, found, strict=True) if fits}
    return kinds


def typed_sql(quoted: dict[str, str], kinds: Mapping[str, Kind], score: str) -> str:
    """Return all columns with their types, as they are selected; a score that is no number makes it fail."""
    shown = {name: f"CAST({text} AS {kinds[name]}) AS {text}" for name, text in quoted.items()}
    if kinds[score] == "VARCHAR":
        shown[score] = f"{_score(quoted[score])} AS {quoted[score]}"
    return ", ".join(shown.values())


def _score(text: str) -> str:
    # most scores start with a digit or a point, perhaps after a minus, and comparing beginnings is fast
    begun = f"({text} >= '.' AND {text} < ':' OR {text} >= '-.' AND {text} < '-:')"
    usual = f"{begun} AND NOT contains({text}, '_')"
    cast = f"coalesce(TRY_CAST({text} AS DOUBLE), error('{MISFIT}'))"
    rest = f"WHEN {number_sql(text)} IS NOT NULL THEN {number_sql(text)} ELSE error('{MISFIT}')"
    return f"CASE WHEN {text} IS NULL THEN NULL WHEN {usual} THEN {cast} {rest} END"


def quoted_names(names: Sequence[str]) -> dict[str, str]:
    """Return what columns are called in DuckDB, which knows none without a name: that gets one of its own."""
    taken, free = {name.lower() for name in names}, "column0"
    while free in taken:
        free += "_"
    return {name: quote_name(name or free) for name in names}
