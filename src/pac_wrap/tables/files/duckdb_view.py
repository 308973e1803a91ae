"""Files of one format as one DuckDB view called source, which shows the columns asked for."""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from struct import error, unpack_from
from typing import Any, Final

import duckdb
import numpy as np

from pac_wrap.base.arguments import ScoreType, score_type
from pac_wrap.tables.columns import (
    all_columns,
    no_rows,
    refuse_added,
    refuse_twins,
    require_column,
    require_in_all,
)
from pac_wrap.tables.files.connection import file_text
from pac_wrap.tables.files.csv_files import CsvFile, opened_json, survey
from pac_wrap.tables.files.csv_queries import (
    SAMPLE,
    csv_queries,
    kinds_of,
    known_query,
    quoted_names,
    typed_query,
)
from pac_wrap.tables.files.find import FoundFiles
from pac_wrap.tables.files.numpy_files import numpy_columns, read_numpy
from pac_wrap.tables.files.text_format import only_in_csv, without_collector
from pac_wrap.tables.sql.expressions import quote_name, quote_text

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
) -> DuckDBView:
    """Make files the view called source, which shows texts of CSV and JSON.

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
        return _csv(connection, surveyed, wanted, found, whole, source)
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
    queries = list(csv_queries(connection, files, quoted, found.scratch, sources))
    texts = " UNION ALL BY NAME ".join(f"({query})" for query, _ in queries)
    picked = ", ".join(quoted[name] for name in shown if name in wanted) or "*"
    connection.execute(f"CREATE VIEW source AS SELECT {picked} FROM ({texts})")
    types = {name: "VARCHAR" for name in wanted if name in columns}
    rows = sum(rows for _, rows in queries)
    if not whole:
        return DuckDBView(columns, types, f"({texts})", tuple(files), rows)
    kinds = kinds_of(files)
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
