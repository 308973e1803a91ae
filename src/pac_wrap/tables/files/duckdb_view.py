"""Files of one format as one DuckDB view called source, which shows the columns asked for."""

import ast
import math
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from struct import error, unpack_from
from typing import Any, BinaryIO, Final, cast
from zipfile import ZipFile, ZipInfo

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import score_type
from pac_wrap.base.floats import ScoreType
from pac_wrap.errors import InputError
from pac_wrap.tables.columns import (
    all_columns,
    no_rows,
    refuse_added,
    refuse_twins,
    require_column,
    require_in_all,
)
from pac_wrap.tables.files.cells import Kind, kind_of
from pac_wrap.tables.files.connection import MISFIT, file_text
from pac_wrap.tables.files.csv_files import CsvFile, columns_of, opened_json, survey
from pac_wrap.tables.files.find import FoundFiles
from pac_wrap.tables.files.text_format import LONGEST, only_in_csv, without_collector
from pac_wrap.tables.sql.expressions import number_sql, quote_name, quote_text

_MAGIC: Final = b"\x93NUMPY"
# by version of the format: the bytes of the header's length, and its encoding
_HEADERS: Final = {1: (2, "latin1"), 2: (4, "latin1"), 3: (4, "utf-8")}
_LONGEST_HEADER: Final = 10_000  # as in NumPy itself: Python's parser is not made for hostile text
_MOST_COLUMNS: Final = 100_000
# unpacked, an archive may take a gigabyte or a hundred times its own size, whichever is more
_EXPANSION: Final = 100
_UNPACKED: Final = 1 << 30


def numpy_columns(files: list[Path]) -> dict[str, NDArray[Any]]:
    """Return the columns of NumPy files, one after the other."""
    tables = [read_numpy(file) for file in files]
    names = list(tables[0])
    for file, table in zip(files, tables, strict=True):
        lengths = {column.shape for column in table.values()}
        if set(table) != set(names) or len(lengths) != 1 or len(next(iter(lengths))) != 1:
            raise InputError(
                f"{file} must hold columns of one length, the same in every file: {', '.join(names)}"
            )
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


def read_numpy(file: Path) -> dict[str, NDArray[Any]]:
    """Return the columns of an .npy or .npz file; one that is damaged, foreign or too large is refused."""
    with file.open("rb") as opened:
        try:
            columns = _read(opened, file.stat().st_size)
        except Exception as error:  # a damaged file makes its readers raise nearly anything
            reason = error if str(error) else type(error).__name__
            raise InputError(f"{file} is not a whole NumPy file: {reason}") from error
    refuse_twins(list(columns), file)
    return {name: _native(column, name, file) for name, column in columns.items()}


def _read(opened: BinaryIO, size: int) -> dict[str, NDArray[Any]]:
    start = opened.read(len(_MAGIC))
    opened.seek(0)
    if start == _MAGIC:
        return _columns(_array(opened, size))
    with ZipFile(opened) as archive:
        return dict(_members(archive, size))


def _columns(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    if array.ndim == 1:
        return {"score": array}
    table = np.atleast_2d(array.T)
    if len(table) > _MOST_COLUMNS:
        raise ValueError(f"it has {len(table):,} columns; at most {_MOST_COLUMNS:,} are read")
    return {str(position): column for position, column in enumerate(table)}


def _members(archive: ZipFile, packed: int) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of an archive with their names."""
    members = archive.infolist()
    names = [_name(member) for member in members]
    (name, times), *_ = Counter(names).most_common(1) or [("", 0)]
    if times > 1:
        raise ValueError(f"it holds {name!r} twice")
    unpacked = sum(member.file_size for member in members)
    most = max(_UNPACKED, _EXPANSION * packed)
    if unpacked > most:
        raise ValueError(f"unpacked it takes {unpacked:,} bytes; at most {most:,} are allowed for its size")
    for name, member in zip(names, members, strict=True):
        with archive.open(member) as opened:
            yield name, _array(cast(BinaryIO, opened), member.file_size)


def _name(member: ZipInfo) -> str:
    if not member.filename.endswith(".npy"):
        raise ValueError(f"it holds {member.filename!r}, which is not an array")
    return member.filename.removesuffix(".npy")


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
    kind, shape, columnwise = _described(header.decode(encoding))
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


def _described(header: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Return the type and shape that a header states, and whether its columns lie one after the other."""
    stated = ast.literal_eval(header.strip())
    if not isinstance(stated, dict) or set(stated) != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header does not describe an array")
    shape, columnwise = stated["shape"], stated["fortran_order"]
    sound = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
    if not sound or not isinstance(columnwise, bool):
        raise ValueError("its header does not describe an array")
    kind: np.dtype[Any] = np.lib.format.descr_to_dtype(stated["descr"])
    if kind.itemsize == 0:
        raise ValueError("its header describes values of no bytes")
    if kind.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    return kind, shape, columnwise


def _native(column: NDArray[Any], name: str, file: Path) -> NDArray[Any]:
    """Return a column in this machine's order of bytes; what is neither numbers nor texts is refused."""
    kind = column.dtype
    if kind.kind not in "biufU" or (kind.kind == "f" and kind.itemsize > 8):
        raise InputError(f"column {name!r} of {file} must hold numbers or texts, but its type is {kind}")
    return column.astype(kind.newbyteorder("="), copy=False)


# rows from which types are found, before the others prove them right or wrong
SAMPLE: Final = 1 << 14
# how the cells of a column must be spelled for it to become numbers in a file that has types
_KINDS: Final = {
    "BIGINT": "-?(0|[1-9][0-9]{0,17})",
    "DOUBLE": "-?(0|[1-9][0-9]{0,16})([.][0-9]+)?(e[+-]?[0-9]{1,2})?",
}
# bytes that a thread reads at once; left alone, DuckDB takes sixteen of the longest lines
_BUFFER: Final = 4 * LONGEST
# columns whose cells are looked at in one go
_AT_ONCE: Final = 8
# most columns in one query
_TOGETHER: Final = 500
# told of CRLF, DuckDB 2.0 reads no rows at all; left alone, it reads them right
_LINE_ENDS: Final = {"\n": r"new_line = '\n', ", "\r\n": ""}


def csv_queries(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[CsvFile],
    quoted: dict[str, str],
    scratch: Path,
    sources: tuple[str, Sequence[str]] | None,
    types: Mapping[str, Kind] | None = None,
    *,
    shared: bool = False,
) -> Iterator[tuple[str, int]]:
    """Yield queries for the files in order, those of one header together, each with its number of rows.

    With `sources`, a column and what each file is called in it, every file has its own query. Without
    types, cells are texts. Threads share a file without quotes, and others if they may.
    """
    names = {} if sources is None else dict(zip(files, sources[1], strict=True))
    groups = groupby(
        files,
        lambda file: (
            (file.header, file.line_end, file.packing, names.get(file)),
            (file.rows is None, file.quoted, file.broken),
        ),
    )
    for number, ((facts, (odd, marked, broken)), group) in enumerate(groups):
        header, line_end, packing, name = facts
        named = "" if sources is None else f", {quote_text(name or '')} AS {quote_name(sources[0])}"
        places = {name: place for place, name in enumerate(header.names)}
        present = {name: text for name, text in quoted.items() if name in places}
        if odd:
            for place, file in enumerate(group):
                table, rows = (
                    f"loaded_{number}_{place}",
                    _load(connection, file, present, f"loaded_{number}_{place}"),
                )
                yield f"SELECT *{named} FROM {table}", rows
            continue
        listed = list(group)
        renamed = ", ".join(f"c{places[name]} AS {text}" for name, text in present.items())
        paths = ", ".join(file_text(file.path, scratch) for file in listed)
        typed = ", ".join(
            f"c{place}: '{'VARCHAR' if types is None else types[column]}'" for column, place in places.items()
        )
        mark, parallel = '"' if marked else "", not broken and (shared or not marked)
        query = (
            f"SELECT {renamed}{named} FROM read_csv([{paths}], auto_detect = false, header = true,"
            f" columns = {{{typed}}}, delim = {quote_text(header.delimiter)}, quote = '{mark}',"
            f" escape = '{mark}', parallel = {str(parallel).lower()},"
            f" comment = '', nullstr = '', {_LINE_ENDS[line_end]}compression = '{packing}',"
            " encoding = 'utf-8', strict_mode = true, null_padding = false, ignore_errors = false,"
            f" max_line_size = {LONGEST}, buffer_size = {_BUFFER}, hive_partitioning = false)"
        )
        yield query, sum(file.rows or 0 for file in listed)


def _load(connection: duckdb.DuckDBPyConnection, file: CsvFile, quoted: dict[str, str], table: str) -> int:
    """Make a table of columns of a file, and return its number of rows."""
    typed = ", ".join(f"{text} VARCHAR" for text in quoted.values())
    connection.execute(f"CREATE TABLE {table} ({typed})")
    cells = ", ".join(f"nullif(CAST(c{place} AS VARCHAR), '')" for place in range(len(quoted)))
    rows = 0
    for picked in columns_of(file, list(quoted)):
        # as objects: in an array of NumPy's own texts each takes as much room as the longest
        arrays = {f"c{place}": np.array(column, dtype=object) for place, column in enumerate(picked)}
        connection.register("batch", arrays)
        connection.execute(f"INSERT INTO {table} SELECT {cells} FROM batch")
        connection.unregister("batch")
        rows += len(picked[0])
    return rows


def kinds_of(files: Sequence[CsvFile]) -> dict[str, Kind] | None:
    """Return what each column of several files is, if it is known of all how their cells are spelled."""
    spelled: dict[str, int] = {}
    for file in files:
        if file.spelled is None:
            return None
        for name, one in zip(file.header.names, file.spelled, strict=True):
            spelled[name] = spelled.get(name, 0) | one
    return {name: kind_of(one) for name, one in spelled.items()}


def known_query(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[CsvFile],
    quoted: dict[str, str],
    scratch: Path,
    sources: tuple[str, Sequence[str]] | None,
    wanted: Sequence[str],
    kinds: Mapping[str, Kind],
    *,
    shared: bool,
) -> str:
    """Return what holds all columns with types that are known; wanted columns are as in `typed_query`.

    Threads may share files with quotes: DuckDB may then fail where they meet, but never errs.
    """
    score = wanted[0]
    plain = kinds[score] != "VARCHAR"
    types: dict[str, Kind] = {**kinds, **dict.fromkeys(wanted, "VARCHAR")}
    types |= {score: "DOUBLE"} if plain else {}
    queries = csv_queries(connection, files, quoted, scratch, sources, types, shared=shared)
    rows = " UNION ALL BY NAME ".join(f"({query})" for query, _ in queries)
    shown = "" if plain else f" REPLACE ({_score(quoted[score])} AS {quoted[score]})"
    return f"(SELECT *{shown} FROM ({rows}))"


def typed_query(
    connection: duckdb.DuckDBPyConnection,
    texts: str,
    quoted: dict[str, str],
    wanted: Sequence[str],
    source: str | None,
    sample: int | None = None,
) -> str:
    """Return what holds all columns with types: numbers, where each cell is one.

    The first wanted column is that of scores, which are doubles; other wanted ones stay texts.

    With a sample, those of the first rows decide, and the query fails with MISFIT at a later cell that is
    spelled otherwise: to look at every cell beforehand would take as long as to copy them. A score that is no
    number always makes it fail.
    """
    looked_at = texts if sample is None else f"SELECT * FROM ({texts}) LIMIT {sample}"
    kinds, empty = dict.fromkeys(quoted, "VARCHAR"), set()
    for kind, spelling in reversed(_KINDS.items()):
        left = [name for name in quoted if name not in wanted]
        for start in range(0, len(left), _TOGETHER):
            some = left[start : start + _TOGETHER]
            tests = ", ".join(f"bool_and(regexp_full_match({quoted[name]}, '{spelling}'))" for name in some)
            (found,) = connection.execute(f"SELECT {tests} FROM ({looked_at})").fetchall()
            kinds |= {name: kind for name, fits in zip(some, found, strict=True) if fits}
            empty |= {name for name, fits in zip(some, found, strict=True) if fits is None}
    shown = {name: text for name, text in quoted.items() if kinds[name] == "VARCHAR"}
    shown |= {name: _score(quoted[name]) for name in wanted[:1] if name in quoted}
    if sample is not None:  # a column whose first cells are empty may still turn out to be one of numbers
        absent = f"CASE WHEN {{0}} IS NOT NULL THEN error('{MISFIT}') ELSE {{0}} END"
        shown |= {name: absent.format(quoted[name]) for name in empty}
    numbers = [(name, quoted[name], kind) for name, kind in kinds.items() if kind != "VARCHAR"]
    for start in range(0, len(numbers), _AT_ONCE):
        group = numbers[start : start + _AT_ONCE]
        shown |= {name: f"TRY_CAST({text} AS {kind})" for name, text, kind in group}
        if sample is not None:  # where one of a row's cells does not fit, the first of them fails
            name = group[0][0]
            shown[name] = f"CASE WHEN {_fit(group)} THEN {shown[name]} ELSE error('{MISFIT}') END"
    listed = [f"{shown[name]} AS {text}" for name, text in quoted.items()]
    listed += [] if source is None else [quote_name(source)]
    return f"(SELECT {', '.join(listed)} FROM ({texts}))"


def _fit(numbers: Sequence[tuple[str, str, str]]) -> str:
    """Return the condition that cells of a row are spelled as numbers; one look at all is faster."""
    cells = ", '|', ".join(text for _, text, _ in numbers)
    spelling = "[|]".join(f"({_KINDS[kind]})?" for _, _, kind in numbers)
    return f"regexp_full_match(concat({cells}), '{spelling}')"


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


# the names of folders are not data
_NO_FOLDERS: Final = "hive_partitioning = false"
# what Arrow calls durations among its types
_DURATION: Final = 18
# rows that are handed to the database together: each time costs as much as some hundred rows
_HELD: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class DuckDBView:
    """What the view called source shows: the types of its columns, and what else is in the files.

    `everything` holds every column and stands after FROM. For Parquet it is no query of its own: each `*`
    takes DuckDB a time that grows with the square of the number of columns. CSV files were looked at, and
    their rows counted, beforehand; a Parquet file tells its rows. Of JSON there are the wanted columns alone.
    """

    columns: list[str]
    types: dict[str, str]
    everything: str
    csv_files: tuple[CsvFile, ...] = ()
    rows: int | None = None
    score_types: dict[str, ScoreType] = field(default_factory=dict)
    # gives `everything` with types that fit every cell, where they were found from the first rows
    thorough: Callable[[], str] | None = None
    # whether threads share a file with quotes in `everything`, at which DuckDB may fail
    shared: bool = False


def make_view(
    connection: duckdb.DuckDBPyConnection,
    found: FoundFiles,
    wanted: Sequence[str],
    *,
    whole: bool,
    delimiter: str | None,
    source: str | None = None,
    number: str | None = None,
) -> DuckDBView:
    """Make files the view called source, which shows texts of CSV and JSON.

    One column of a CSV is shown as numbers where every cell is one.

    Where everything is shown, the column `source` holds the name of each row's file, if it is asked for.
    """
    # what stands after the columns of each file
    named = [
        "" if source is None else f", {quote_text(name)} AS {quote_name(source)}"
        for name in found.source_names
    ]
    if found.reader != "read_csv":
        only_in_csv(delimiter)
    if found.reader == "numpy":
        arrays = numpy_columns(found.files)
        if source is not None:
            refuse_added(arrays, [source])
            sizes = [len(next(iter(read_numpy(file).values()))) for file in found.files]
            arrays[source] = np.repeat(np.array(found.source_names, dtype=object), sizes)
        halves = {
            name: column.astype(np.float32) for name, column in arrays.items() if column.dtype == np.half
        }
        connection.register("source", arrays | halves)  # DuckDB has no numbers of two bytes
        narrow = {name: score_type(column.dtype) for name, column in arrays.items()}
        return DuckDBView(list(arrays), types_of(connection, "source"), "source", score_types=narrow)
    if found.reader == "read_csv":
        surveyed = [survey(file, wanted, delimiter) for file in found.files]
        return _csv(connection, surveyed, wanted, found, whole, source, number)
    if found.reader == "read_json":
        return _json(connection, found.files, wanted)
    columns, picked, everything = _parquet(connection, found.files, wanted, found.scratch, named)
    if source is not None:
        refuse_added(columns, [source])
    connection.execute(f"CREATE VIEW source AS {picked}")
    listed = ", ".join(file_text(file, found.scratch) for file in found.files)
    counted = f"SELECT sum(num_rows) FROM parquet_file_metadata([{listed}])"
    ((rows,),) = connection.execute(counted).fetchall()
    types = types_of(connection, "source")
    if "BIGINT" in types.values():
        told = f"SELECT DISTINCT value FROM parquet_kv_metadata([{listed}]) WHERE key = 'ARROW:schema'"
        for (schema,) in connection.execute(told).fetchall():
            types |= dict.fromkeys(durations(schema) & types.keys(), "INTERVAL")
    return DuckDBView(columns, types, everything, rows=rows)


class Growing:
    """A table of a database that grows by rows of texts and doubles, many of them at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, types: dict[str, str]) -> None:
        self._connection, self._name, self.types = connection, name, types
        self._held: dict[str, list[Any]] = {column: [] for column in types}
        typed = (f"{column} {kind}" for column, kind in types.items())
        connection.execute(f"CREATE TABLE {name} ({', '.join(typed)})")

    def add(self, columns: Mapping[str, Sequence[Any]], rows: int) -> None:
        """Add so many rows; a column that is not among those given is empty in them."""
        for column, held in self._held.items():
            held.extend(columns.get(column) or [None] * rows)
        if len(next(iter(self._held.values()))) >= _HELD:
            self.flush()

    def widen(self, column: str) -> None:
        """Add a column of texts, empty so far; or make one of doubles a column of texts."""
        self.flush()
        known = column in self.types
        change = f"ALTER COLUMN {column} TYPE" if known else f"ADD COLUMN {column}"
        self._connection.execute(f"ALTER TABLE {self._name} {change} VARCHAR")
        self.types[column] = "VARCHAR"
        self._held[column] = []

    def flush(self) -> None:
        """Hand all rows to the database."""
        if not next(iter(self._held.values())):
            return
        # as objects: in an array of NumPy's own texts each takes as much room as the longest
        arrays = {
            column: np.array(held, dtype=np.float64 if self.types[column] == "DOUBLE" else object)
            for column, held in self._held.items()
        }
        # a column of None alone has no type of its own
        cells = ", ".join(f"CAST({column} AS {kind})" for column, kind in self.types.items())
        self._connection.register("batch", arrays)
        self._connection.execute(f"INSERT INTO {self._name} ({', '.join(arrays)}) SELECT {cells} FROM batch")
        self._connection.unregister("batch")
        self._held = {column: [] for column in self.types}


def _json(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], wanted: Sequence[str]) -> DuckDBView:
    """Copy the wanted columns, the first of which holds scores, into a table: DuckDB would guess at types."""
    score, *others = wanted
    places = {name: f"c{place}" for place, name in enumerate(wanted)}
    table = Growing(connection, "loaded", dict.fromkeys(places.values(), "VARCHAR") | {"c0": "DOUBLE"})
    names: list[list[str]] = []
    rows = 0
    with without_collector():
        for file in files:
            with opened_json(file) as found:
                for batch in found:
                    columns: dict[str, list[Any]] = {places[one]: found.column(one, batch) for one in others}
                    scores = found.numbers(score, batch) if table.types["c0"] == "DOUBLE" else None
                    if scores is None and table.types["c0"] == "DOUBLE":
                        table.widen("c0")  # there are texts among the scores
                    columns["c0"] = found.column(score, batch) if scores is None else scores
                    found.refuse_odd(columns.values())
                    table.add(columns, len(batch.rows))
                names.append(list(found.names))
                rows += found.read
        table.flush()
    if not rows:
        raise no_rows(list(map(str, files)))
    require_in_all(files, names, wanted)
    every = list(dict.fromkeys(name for listed in names for name in listed))
    types = {name: table.types[place] for name, place in places.items() if name in every}
    shown = ", ".join(f"{places[name]} AS {quote_name(name)}" for name in types)
    connection.execute(f"CREATE VIEW source AS SELECT {shown or '*'} FROM loaded")
    return DuckDBView(every, types, "source", rows=rows)


def _parquet(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[Path],
    wanted: Sequence[str],
    scratch: Path,
    named: Sequence[str],
) -> tuple[list[str], str, str]:
    each = [file_text(file, scratch) for file in files]
    names = [_top_level(connection, one) for one in each]
    for file, listed in zip(files, names, strict=True):
        refuse_twins(listed, file)
    require_in_all(files, names, wanted)
    columns = list(dict.fromkeys(name for listed in names for name in listed))
    present = [name for name in wanted if name in columns] or columns[:1]
    shown = ", ".join(map(quote_name, present))
    if len(files) == 1:
        rows = f"read_parquet({each[0]}, {_NO_FOLDERS})"
        return (
            columns,
            f"SELECT {shown} FROM {rows}",
            f"(SELECT *{named[0]} FROM {rows})" if named[0] else rows,
        )
    rows = f"read_parquet([{', '.join(each)}], {_NO_FOLDERS}, union_by_name = true)"
    kinds = [types_of(connection, f"read_parquet({one}, {_NO_FOLDERS})", shown) for one in each]
    together = types_of(connection, rows, shown)
    mixed = [
        name for name in present if together[name] == "FLOAT" and len({kind[name] for kind in kinds}) > 1
    ]
    if not mixed and not any(named):
        return columns, f"SELECT {shown} FROM {rows}", rows
    # where one file has float32 and another whole numbers, DuckDB would make float32 of both
    doubles = ", ".join(f"CAST({quote_name(name)} AS DOUBLE) AS {quote_name(name)}" for name in mixed)
    every = f"* REPLACE ({doubles})" if mixed else "*"
    selects = [
        f"(SELECT {every}{text} FROM read_parquet({one}, {_NO_FOLDERS}))"
        for one, text in zip(each, named, strict=True)
    ]
    everything = f"({' UNION ALL BY NAME '.join(selects)})"
    return columns, f"SELECT {shown} FROM {everything}", everything


def _csv(
    connection: duckdb.DuckDBPyConnection,
    files: list[CsvFile],
    wanted: Sequence[str],
    found: FoundFiles,
    whole: bool,
    source: str | None,
    number: str | None,
) -> DuckDBView:
    """Show columns as texts, NULL where a cell is empty; without `whole` there are only the wanted ones.

    With `whole`, columns of numbers become numbers where everything is written.
    """
    paths, names = [file.path for file in files], [file.header.names for file in files]
    require_in_all(paths, names, wanted)
    columns = all_columns(paths, names)
    if source is not None:
        refuse_added(columns, [source])
    for column in wanted:
        require_column(column, columns)
    shown = columns if whole else [name for name in columns if name in wanted] or columns[:1]
    quoted = quoted_names(shown)
    sources = None if source is None else (source, found.source_names)
    kinds = kinds_of(files)
    typed: dict[str, Kind] | None = None
    if not whole and number is not None and kinds is not None and kinds[number] != "VARCHAR":
        typed = {**dict.fromkeys(columns, "VARCHAR"), number: "DOUBLE"}
    queries = list(csv_queries(connection, files, quoted, found.scratch, sources, typed))
    texts = " UNION ALL BY NAME ".join(f"({query})" for query, _ in queries)
    picked = ", ".join(quoted[name] for name in shown if name in wanted) or "*"
    connection.execute(f"CREATE VIEW source AS SELECT {picked} FROM ({texts})")
    types: dict[str, str] = {name: (typed or {}).get(name, "VARCHAR") for name in wanted if name in columns}
    rows = sum(rows for _, rows in queries)
    if not whole:
        return DuckDBView(columns, types, f"({texts})", tuple(files), rows)
    if kinds is None:
        thorough = partial(typed_query, connection, texts, quoted, wanted, source)
        everything = thorough(sample=SAMPLE)
        return DuckDBView(columns, types, everything, tuple(files), rows, thorough=thorough)
    known = partial(known_query, connection, files, quoted, found.scratch, sources, wanted, kinds)
    shared = any(file.quoted for file in files)
    return DuckDBView(
        columns,
        types,
        known(shared=True),
        tuple(files),
        rows,
        thorough=partial(known, shared=False),
        shared=shared,
    )


def types_of(connection: duckdb.DuckDBPyConnection, table: str, columns: str = "*") -> dict[str, str]:
    """Return the types of the columns of what may stand after FROM."""
    # DESCRIBE would go through all columns twice
    found = connection.sql(f"SELECT {columns} FROM {table}")
    return dict(zip(found.columns, map(str, found.types), strict=True))


def durations(schema: bytes) -> set[str]:
    """Return the columns that Arrow's own schema in a Parquet file calls durations, as Parquet has none.

    The schema is a FlatBuffer in base64: a table starts with the way back to the offsets of its fields.
    """
    try:
        data = b64decode(schema)
        start = 8 if data[:4] == b"\xff\xff\xff\xff" else 4

        def number(kind: str, at: int) -> int:
            return int(unpack_from(f"<{kind}", data, at)[0])

        def field(table: int, place: int) -> int:
            offsets = table - number("i", table)
            inside = 4 + 2 * place < number("H", offsets)
            at = number("H", offsets + 4 + 2 * place) if inside else 0
            return table + at if at else 0

        def follow(at: int) -> int:
            return at + number("I", at)

        fields = follow(field(follow(field(follow(start), 2)), 1))
        found = set()
        for place in range(number("I", fields)):
            column = follow(fields + 4 + 4 * place)
            name, kind = follow(field(column, 0)), field(column, 2)
            if kind and data[kind] == _DURATION:
                found.add(data[name + 4 : name + 4 + number("I", name)].decode())
    except (ValueError, error, IndexError):
        return set()
    return found


def _top_level(connection: duckdb.DuckDBPyConnection, file: str) -> list[str]:
    """Return the columns of a Parquet file; its schema lists a node before its children, the root first."""
    schema: list[tuple[Any, ...]] = connection.execute(
        f"SELECT name, coalesce(num_children, 0) FROM parquet_schema({file})"
    ).fetchall()
    names, inside = [], 0
    for name, children in schema[1:]:
        if inside == 0:
            names.append(str(name))
        inside = max(0, inside - 1) + children
    return names
