"""CSV files: looked at before an engine reads them, in one pass in C on all cores, and as queries for DuckDB.

Which of them an engine reads, and which are read by `CsvRows` and handed on, says decision 19.
"""

import codecs
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from gzip import GzipFile
from io import BufferedIOBase
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import OnMissing
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.ranks.compiled import stops
from pac_wrap.ranks.kernels import compiled_functions, together, usable_cores
from pac_wrap.tables.columns import refuse_scores_of, require_in_all
from pac_wrap.tables.files import text_format
from pac_wrap.tables.files.connection import MISFIT, Growing, file_text, first_line
from pac_wrap.tables.sql import number_sql, quote_name, quote_text

Kind = Literal["BIGINT", "DOUBLE", "VARCHAR"]
_SOURCE: Final = Path(__file__).with_name("cells.c")
# what cells.c says of a column, and the order in which it counts
_FILLED, _NOT_WHOLE, _NOT_PLAIN = 1, 2, 4
_COUNTS: Final = 7
_BLOCK: Final = 1 << 20
# an engine must be told of every column; beyond this many it is faster to split the lines here
_WIDE: Final = 1000
_ODD: Final = (
    "is not UTF-8, or holds a NUL byte; convert the file first, for example with iconv -f cp1252 -t utf-8"
)
PACKED: Final = ".gz"
_EMPTY: Final = re.compile(rb"(?<=\n)\r?\n")


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file, and what C has seen of it: rows without the header, quotes, cells with line breaks."""

    path: Path
    header: text_format.CsvHeader
    rows: int | None = None
    line_end: str = "\n"
    quoted: bool = False
    broken: bool = False
    spelled: tuple[int, ...] | None = None

    @property
    def packing(self) -> str:
        """How the file is packed: gzip or none."""
        return "gzip" if self.path.suffix.lower() == PACKED else "none"


def survey(file: Path, wanted: Sequence[str], delimiter: str | None) -> CsvFile:
    """Return the facts that engines need to read a file; a row with too many or too few cells is refused."""
    (found,) = with_headers([file], wanted, delimiter)
    if not is_unicode("".join(found.header.names)) or "\0" in "".join(found.header.names):
        raise InputError(f"{file}: the header {_ODD}")
    width = len(found.header.names)
    if width > _WIDE or not set(wanted) <= set(found.header.names):
        return found
    with opened(file) as reader:
        counted = count_rows(reader, found.header.delimiter, width)
    if counted is not None:
        return replace(found, **counted)
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


def with_headers(files: Sequence[Path], wanted: Sequence[str], delimiter: str | None) -> list[CsvFile]:
    """Return files with their headers; a file without a wanted column that others have is refused."""
    found = []
    for file in files:
        with opened_rows(file, wanted, delimiter) as rows:
            found.append(CsvFile(file, rows.header))
    require_in_all(files, [file.header.names for file in found], wanted)
    return found


def columns_of(file: CsvFile, columns: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Yield some columns of a file, each as the cells of a few rows."""
    places = [file.header.names.index(column) for column in columns]
    with opened_rows(file.path, (), file.header.delimiter) as rows:
        for cells, _, unicode in rows:
            picked = [tuple(map(itemgetter(place), cells)) for place in places]
            if not unicode or any("\0" in cell for column in picked for cell in column):
                for number, row in enumerate(cells, rows.read - len(cells) + 1):
                    if not is_unicode("".join(row)) or "\0" in "".join(row):
                        raise InputError(f"{file.path}: row {number:,} {_ODD}")
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
def opened_rows(file: Path, wanted: Sequence[str], delimiter: str | None) -> Iterator[text_format.CsvRows]:
    """Yield the rows of a file, which may be packed."""
    with opened(file) as reader:
        start = reader.read1(text_format.CHUNK)
        text_format.refuse_binary(start, str(file))
        if start.startswith(text_format.PARQUET):
            raise InputError(f"{file} is Parquet; give it a name that ends in .parquet")
        rows = text_format.CsvRows(reader, start, wanted, delimiter, f"{file}: ")
        # else a reader would be told of columns that cannot be read
        if "\0" in "".join(rows.header.names) and not set(wanted) <= set(rows.header.names):
            raise InputError(f"{file}: the header {_ODD}")
        yield rows


@contextmanager
def opened_json(file: Path) -> Iterator[text_format.JsonRows]:
    """Yield the rows of a JSON file, which may be packed."""
    with opened(file) as reader:
        start = text_format.read_start(reader)
        text_format.refuse_binary(start, str(file))
        yield text_format.JsonRows(reader, start, f"{file}: ")


@contextmanager
def opened(file: Path) -> Iterator[BufferedIOBase]:
    """Yield the bytes of a file, which may be packed."""
    packed = file.suffix.lower() == PACKED
    try:
        with file.open("rb") as plain:
            if packed and not plain.peek(2).startswith(b"\x1f"):
                raise InputError(f"{file} is not packed, though its name says so; rename it, without .gz")
            yield GzipFile(fileobj=plain) if packed else plain
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"cannot read {file}: {first_line(error)}; unpack it first, or check that it is whole"
        ) from error


def library() -> Path:
    """Return where the compiled source lies, if it does; its name tells of which source it was made."""
    return _SOURCE.with_name(f"cells-{zlib.crc32(_SOURCE.read_bytes()):08x}.so")


@cache
def functions() -> dict[str, Any] | None:
    """Return the compiled functions, if there are any."""
    return compiled_functions(library(), "CSV files with quotes are read more slowly")


def count_rows(reader: BufferedIOBase, delimiter: str, width: int) -> dict[str, Any] | None:
    """Return the facts of a `CsvFile` after one pass, None if a row is in doubt or line ends are mixed."""
    compiled = functions()
    if compiled is None:
        return None
    look = partial(_looked_at, compiled["look_at_rows"], ord(delimiter), stops(ord(delimiter)), width)
    spelled, counts = np.zeros(width, np.uint8), np.zeros(_COUNTS, np.uint64)
    rest, header, cores = b"", b"", min(usable_cores(), 4)
    blocks = iter(partial(reader.read, _BLOCK), b"")
    while True:
        texts = []
        several = list(islice(blocks, cores))
        for block in several:
            cut = block.rfind(b"\n") + 1
            texts += [rest + block[:cut]] if cut else []
            rest = block[cut:] if cut else rest + block
        if not several and rest:  # a last line that nothing ends
            if rest[-1:] == b"\r":
                return None
            texts, rest = [rest + (b"\r\n" if counts[3] else b"\n")], b""
        if texts and not header:
            header, end, texts[0] = texts[0].removeprefix(text_format.MARK).partition(b"\n")
            used, _, found = look(header + end)
            counts += found
            if used < len(header) + 1 or found[0] != 1 or not header.strip(b"\r"):
                return None
        texts = [text for text in texts if text]
        looked = together([partial(look, text) for text in texts]) if texts else []
        for place, (used, own, found) in enumerate(looked):
            if found[-1]:
                return None
            spelled |= own
            counts += found
            # the next text was taken to begin with a row, which is right only if this one ends with one
            if used < len(texts[place]):
                rest = b"".join([texts[place][used:], *texts[place + 1 :], rest])
                break
        # what has no end here is looked at again with what follows it; a row may be only so long
        if len(rest) > text_format.LONGEST + cores * _BLOCK or (rest and not several):
            return None
        if not several:
            break
    rows, _, plain, packed, quoted, broken, _ = counts.tolist()
    if not rows or (plain and packed):
        return None
    found = {"rows": rows - 1, "line_end": "\r\n" if packed else "\n", "spelled": tuple(spelled.tolist())}
    return found | {"quoted": quoted > 0, "broken": broken > 0}


def _looked_at(look: Any, delimiter: int, ends: Any, width: int, text: bytes) -> tuple[int, Any, Any]:
    """Return how many bytes of a text are whole rows, how their cells are spelled, and what was counted."""
    columns, counts = np.zeros(width, np.uint8), np.zeros(_COUNTS, np.uint64)
    used = look(text, len(text), delimiter, ends, width, columns.ctypes.data, counts.ctypes.data)
    try:
        if not text.isascii():
            text[:used].decode()
    except UnicodeDecodeError:
        counts[-1] += 1
    return used, columns, counts


def _scan(reader: text_format.ByteReader, delimiter: str) -> tuple[int, int, int, str] | None:
    """Return the lines, how many are empty, the delimiters and the line end; None if there is more to it."""
    mark, decoder = ord(delimiter), codecs.getincrementaldecoder("utf-8")()
    newlines = returns = pairs = empty = delimiters = 0
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
        text = last + block
        data = np.frombuffer(text, np.uint8)
        ends = data == 10
        newlines += int(np.count_nonzero(ends[len(last) :]))
        delimiters += int(np.count_nonzero(data[len(last) :] == mark))
        returns += block.count(b"\r")
        pairs += (last[-1:] + block).count(b"\r\n") if returns else 0
        if (ends[1:] & ends[:-1]).any() or (returns and b"\n\r\n" in text):
            empty += sum(found.end() > len(last) for found in _EMPTY.finditer(text))
        last = text[-2:]
    if decoder.getstate()[0] or head.removeprefix(text_format.MARK)[:1] in (b"\n", b"\r", b""):
        return None
    if returns not in (0, pairs) or (returns and newlines != pairs):
        return None
    return newlines + (last[-1:] != b"\n"), empty, delimiters, "\r\n" if returns else "\n"


# how the cells of a column must be spelled for it to become numbers in a file that has types
_KINDS: Final[dict[Kind, str]] = {
    "BIGINT": "-?(0|[1-9][0-9]{0,17})",
    "DOUBLE": "-?(0|[1-9][0-9]{0,16})([.][0-9]+)?(e[+-]?[0-9]{1,2})?",
}
# bytes that a thread reads at once; left alone, DuckDB takes sixteen of the longest lines
_BUFFER: Final = 4 * text_format.LONGEST
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
    """Return the query for some columns of files in order, with what is `named` for each, and its rows."""
    queries: list[str] = []
    rows = 0

    def layout(one: tuple[CsvFile, str]) -> tuple[Any, ...]:
        file, name = one
        return file.header, file.line_end, file.packing, file.rows is None, file.quoted, file.broken, name

    for facts, group in groupby(zip(files, named, strict=True), layout):
        header, line_end, packing, odd, marked, broken, name = facts
        alike = [file for file, _ in group]
        places = {column: f"c{place}" for place, column in enumerate(header.names)}
        present = [column for column in quoted if column in places]
        shown = ", ".join(f"{places[column]} AS {quoted[column]}" for column in present) + name
        for file in alike if odd else ():
            texts = {places[column]: "VARCHAR" for column in present}
            table = Growing(connection, f"loaded_{len(queries)}", texts)
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
        # where threads share a file with quotes, DuckDB may fail, but never errs
        mark, parallel = '"' if marked else "", not broken and (shared or not marked)
        queries.append(
            f"SELECT {shown} FROM read_csv([{paths}], auto_detect = false, header = true,"
            f" columns = {{{typed}}}, delim = {quote_text(header.delimiter)}, quote = '{mark}',"
            f" escape = '{mark}', parallel = {str(parallel).lower()},"
            f" comment = '', nullstr = '', {_LINE_ENDS[line_end]}compression = '{packing}',"
            " encoding = 'utf-8', strict_mode = true, null_padding = false, ignore_errors = false,"
            f" max_line_size = {text_format.LONGEST}, buffer_size = {_BUFFER}, hive_partitioning = false)"
        )
        rows += sum(file.rows or 0 for file in alike)
    return " UNION ALL BY NAME ".join(f"({query})" for query in queries), rows


def kinds_of(files: Sequence[CsvFile]) -> dict[str, Kind] | None:
    """Return the type of each column of several files, if it is known of all how their cells are spelled."""
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
    """Return the type of each column of a query for texts, by a look at all cells; some are kept as texts."""
    kinds: dict[str, Kind] = dict.fromkeys(quoted, "VARCHAR")
    looked_at = [name for name in quoted if name not in kept]
    for kind, spelling in reversed(_KINDS.items()):
        for start in range(0, len(looked_at), _TOGETHER):
            some = looked_at[start : start + _TOGETHER]
            tests = ", ".join(f"bool_and(regexp_full_match({quoted[name]}, '{spelling}'))" for name in some)
            (found,) = connection.execute(f"SELECT {tests} FROM ({texts})").fetchall()
            kinds |= {name: kind for name, fits in zip(some, found, strict=True) if fits}
    return kinds


def checked_score(text: str) -> str:
    """Return a text as a double; one that is no number makes the query fail."""
    # most scores start with a digit or a point, perhaps after a minus, and comparing beginnings is fast
    begun = f"({text} >= '.' AND {text} < ':' OR {text} >= '-.' AND {text} < '-:')"
    usual = f"{begun} AND NOT contains({text}, '_')"
    cast = f"coalesce(TRY_CAST({text} AS DOUBLE), error('{MISFIT}'))"
    rest = f"WHEN {number_sql(text)} IS NOT NULL THEN {number_sql(text)} ELSE error('{MISFIT}')"
    return f"CASE WHEN {text} IS NULL THEN NULL WHEN {usual} THEN {cast} {rest} END"


def quoted_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of columns in DuckDB; one without a name gets a name, since DuckDB needs it."""
    taken, free = {name.lower() for name in names}, "column0"
    while free in taken:
        free += "_"
    return {name: quote_name(name or free) for name in names}


class Lines(NamedTuple):
    """Rows of CSV or JSON that stand as they are: their text, where each begins and ends, their scores."""

    text: bytes
    spans: NDArray[np.uint64]
    scores: NDArray[np.float64]
    # the rows whose cell is no number that is read here, and what it holds
    doubts: list[tuple[int, str]]


def read_score_cells(text: bytes, width: int, place: int) -> Lines | None:
    """Return the rows of a text with commas alone, and their scores; None if in doubt, or without C."""
    compiled = functions()
    if compiled is None:
        return None
    text += b"" if text.endswith(b"\n") else b"\n"
    most = text.count(b"\n")
    scores, spans, doubts = np.empty(most), np.empty((most, 2), np.uint64), np.empty((most, 3), np.uint64)
    count = np.zeros(1, np.uint64)
    arrays = (one.ctypes.data for one in (scores, spans, doubts, count))
    rows = compiled["read_score_cells"](text, len(text), ord(","), width, place, *arrays)
    if rows > most:
        return None
    cells = doubts[: int(count[0])].tolist()
    unsure = [(row, text[start:end].decode("utf-8", "surrogateescape")) for row, start, end in cells]
    return Lines(text, spans[:rows], scores[:rows], unsure)


def read_score_objects(text: bytes, names: list[bytes], place: int) -> Lines | None:
    """Return the rows of JSON lines that all have these names, and their scores; None if in doubt."""
    compiled = functions()
    if compiled is None:
        return None
    text += b"" if text.endswith(b"\n") else b"\n"
    most, places = text.count(b"\n"), np.cumsum([0, *map(len, names)], dtype=np.uint64)
    scores, spans = np.empty(most), np.empty((most, 2), np.uint64)
    arrays = scores.ctypes.data, spans.ctypes.data
    written = b"".join(names), places.ctypes.data, len(names), place
    rows = compiled["read_score_objects"](text, len(text), *written, *arrays)
    return None if rows > most else Lines(text, spans[:rows], scores[:rows], [])


def with_endings(lines: Lines, codes: NDArray[np.uint8], endings: list[bytes]) -> memoryview:
    """Return every row with the ending of its code behind it."""
    compiled = functions()
    assert compiled is not None  # or there were no lines
    places = np.cumsum([0, *map(len, endings)], dtype=np.uint64)
    room = np.empty(len(lines.text) + codes.size * max(map(len, endings)), np.uint8)
    codes = np.ascontiguousarray(codes)
    rows = lines.text, lines.spans.ctypes.data, codes.ctypes.data, codes.size
    used = compiled["write_endings"](*rows, b"".join(endings), places.ctypes.data, room.ctypes.data)
    return room[:used].data


def kind_of(spelled: int) -> Kind:
    """Return the type of a column whose cells are spelled so: a number if all are, and there are some."""
    if not spelled & _FILLED or (spelled & _NOT_WHOLE and spelled & _NOT_PLAIN):
        return "VARCHAR"
    return "DOUBLE" if spelled & _NOT_WHOLE else "BIGINT"
