"""Files of one format as one DuckDB view called source, which shows the columns asked for.

DuckDB is told everything about CSV files and guesses nothing. A file that it might read otherwise than
Python's `csv` is first copied into a table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from pac_wrap.base.arguments import ScoreType, score_type
from pac_wrap.tables.columns import all_columns, refuse_twins, require_column, require_in_all
from pac_wrap.tables.connection import file_text
from pac_wrap.tables.csv_files import CsvFile, columns_of, survey
from pac_wrap.tables.find import FoundFiles
from pac_wrap.tables.numpy_files import numpy_columns
from pac_wrap.tables.sql import number_sql, quote_name, quote_text
from pac_wrap.tables.text_format import LONGEST

# the names of folders are not data
_NO_FOLDERS: Final = "hive_partitioning = false"
# how the cells of a column must be spelled for it to become numbers in a file that has types
_KINDS: Final = {
    "BIGINT": "-?(0|[1-9][0-9]{0,17})",
    "DOUBLE": "-?(0|[1-9][0-9]{0,16})([.][0-9]+)?(e[+-]?[0-9]{1,2})?",
}
# bytes that a thread reads at once; left alone, DuckDB takes sixteen of the longest lines
_BUFFER: Final = 4 * LONGEST
# most columns in one query
_TOGETHER: Final = 500
# told of CRLF, DuckDB 2.0 reads no rows at all; left alone, it reads them right
_LINE_ENDS: Final = {"\n": r"new_line = '\n', ", "\r\n": ""}


@dataclass(frozen=True, slots=True)
class DuckDBView:
    """What the view called source shows: the types of its columns, and what else is in the files.

    `everything` holds every column and stands after FROM. For Parquet it is no query of its own: each `*`
    takes DuckDB a time that grows with the square of the number of columns. CSV files were looked at, and
    their rows counted, beforehand.
    """

    columns: list[str]
    types: dict[str, str]
    everything: str
    csv_files: tuple[CsvFile, ...] = ()
    rows: int | None = None
    score_types: dict[str, ScoreType] = field(default_factory=dict)


def make_view(
    connection: duckdb.DuckDBPyConnection,
    found: FoundFiles,
    wanted: Sequence[str],
    *,
    whole: bool,
    delimiter: str | None,
) -> DuckDBView:
    """Make files the view called source, which shows texts of CSV and JSON."""
    if found.reader == "numpy":
        arrays = numpy_columns(found.files)
        halves = {
            name: column.astype(np.float32) for name, column in arrays.items() if column.dtype == np.half
        }
        connection.register("source", arrays | halves)  # DuckDB has no numbers of two bytes
        narrow = {name: score_type(column.dtype) for name, column in arrays.items()}
        return DuckDBView(list(arrays), types_of(connection, "source"), "source", score_types=narrow)
    if found.reader == "read_csv":
        surveyed = [survey(file, wanted, delimiter) for file in found.files]
        return _csv(connection, surveyed, wanted, found.scratch, whole)
    read = _json if found.reader == "read_json" else _parquet
    columns, picked, everything = read(connection, found.files, wanted, found.scratch)
    connection.execute(f"CREATE VIEW source AS {picked}")
    return DuckDBView(columns, types_of(connection, "source"), everything)


def _json(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], wanted: Sequence[str], scratch: Path
) -> tuple[list[str], str, str]:
    each = [file_text(file, scratch) for file in files]
    options = f"{_NO_FOLDERS}, union_by_name = true, sample_size = -1"
    names = [list(types_of(connection, f"read_json({one}, {options})")) for one in each]
    require_in_all(files, names, wanted)
    columns = list(dict.fromkeys(name for listed in names for name in listed))
    listed = f"[{', '.join(each)}]"
    present = [name for name in wanted if name in columns] or columns[:1]
    # as JSON, every value keeps the text it was written as, whatever the other rows hold
    typed = ", ".join(f"{quote_text(name)}: 'JSON'" for name in present)
    texts = ", ".join(f"{quote_name(name)} ->> '$' AS {quote_name(name)}" for name in present)
    picked = f"SELECT {texts} FROM read_json({listed}, {_NO_FOLDERS}, columns = {{{typed}}})"
    return columns, picked, f"read_json({listed}, {options})"


def _parquet(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], wanted: Sequence[str], scratch: Path
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
        return columns, f"SELECT {shown} FROM {rows}", rows
    rows = f"read_parquet([{', '.join(each)}], {_NO_FOLDERS}, union_by_name = true)"
    kinds = [types_of(connection, f"read_parquet({one}, {_NO_FOLDERS})", shown) for one in each]
    together = types_of(connection, rows, shown)
    mixed = [
        name for name in present if together[name] == "FLOAT" and len({kind[name] for kind in kinds}) > 1
    ]
    if not mixed:
        return columns, f"SELECT {shown} FROM {rows}", rows
    # where one file has float32 and another whole numbers, DuckDB would make float32 of both
    doubles = ", ".join(f"CAST({quote_name(name)} AS DOUBLE) AS {quote_name(name)}" for name in mixed)
    selects = [f"(SELECT * REPLACE ({doubles}) FROM read_parquet({one}, {_NO_FOLDERS}))" for one in each]
    everything = f"({' UNION ALL BY NAME '.join(selects)})"
    return columns, f"SELECT {shown} FROM {everything}", everything


def _csv(
    connection: duckdb.DuckDBPyConnection,
    files: list[CsvFile],
    wanted: Sequence[str],
    scratch: Path,
    whole: bool,
) -> DuckDBView:
    """Show columns as texts, NULL where a cell is empty; without `whole` there are only the wanted ones.

    With `whole`, columns of numbers become numbers where everything is written.
    """
    paths, names = [file.path for file in files], [file.header.names for file in files]
    require_in_all(paths, names, wanted)
    columns = all_columns(paths, names)
    for column in wanted:
        require_column(column, columns)
    shown = columns if whole else [name for name in columns if name in wanted] or columns[:1]
    quoted = _quoted(shown)
    queries = list(_queries(connection, files, quoted, scratch))
    texts = " UNION ALL BY NAME ".join(f"({query})" for query, _ in queries)
    picked = ", ".join(quoted[name] for name in shown if name in wanted) or "*"
    everything = _typed(connection, texts, quoted, wanted) if whole else texts
    connection.execute(f"CREATE VIEW source AS SELECT {picked} FROM ({texts})")
    types = {name: "VARCHAR" for name in wanted if name in columns}
    rows = sum(rows for _, rows in queries)
    return DuckDBView(columns, types, f"({everything})", tuple(files), rows)


def _queries(
    connection: duckdb.DuckDBPyConnection, files: Sequence[CsvFile], quoted: dict[str, str], scratch: Path
) -> Iterator[tuple[str, int]]:
    """Yield queries for the files in order, those of one header together, each with its number of rows."""
    groups = groupby(files, lambda file: (file.header, file.line_end, file.packing, file.rows is None))
    for number, ((header, line_end, packing, odd), group) in enumerate(groups):
        places = {name: place for place, name in enumerate(header.names)}
        present = {name: text for name, text in quoted.items() if name in places}
        if odd:
            for place, file in enumerate(group):
                yield _loaded(connection, file, present, f"loaded_{number}_{place}")
            continue
        listed = list(group)
        renamed = ", ".join(f"c{places[name]} AS {text}" for name, text in present.items())
        paths = ", ".join(file_text(file.path, scratch) for file in listed)
        typed = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(header.names)))
        query = (
            f"SELECT {renamed} FROM read_csv([{paths}], auto_detect = false, header = true,"
            f" columns = {{{typed}}}, delim = {quote_text(header.delimiter)}, quote = '', escape = '',"
            f" comment = '', nullstr = '', {_LINE_ENDS[line_end]}compression = '{packing}',"
            " encoding = 'utf-8', strict_mode = true, null_padding = false, ignore_errors = false,"
            f" max_line_size = {LONGEST}, buffer_size = {_BUFFER}, hive_partitioning = false)"
        )
        yield query, sum(file.rows or 0 for file in listed)


def _loaded(
    connection: duckdb.DuckDBPyConnection, file: CsvFile, quoted: dict[str, str], table: str
) -> tuple[str, int]:
    """Make a table of columns of a file, and return the query for it and its number of rows."""
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
    return f"SELECT * FROM {table}", rows


def _typed(
    connection: duckdb.DuckDBPyConnection, texts: str, quoted: dict[str, str], scores: Sequence[str]
) -> str:
    """Return the query for all columns with types: scores are doubles, others numbers if each cell is one."""
    kinds = dict.fromkeys(quoted, "VARCHAR")
    for kind, spelling in reversed(_KINDS.items()):
        left = [name for name in quoted if name not in scores]
        for start in range(0, len(left), _TOGETHER):
            some = left[start : start + _TOGETHER]
            tests = ", ".join(f"bool_and(regexp_full_match({quoted[name]}, '{spelling}'))" for name in some)
            (found,) = connection.execute(f"SELECT {tests} FROM ({texts})").fetchall()
            kinds |= {name: kind for name, fits in zip(some, found, strict=True) if fits}
    shown = ", ".join(
        f"{number_sql(text) if name in scores else f'CAST({text} AS {kinds[name]})'} AS {text}"
        for name, text in quoted.items()
    )
    return f"SELECT {shown} FROM ({texts})"


def _quoted(names: Sequence[str]) -> dict[str, str]:
    """Return what columns are called in DuckDB, which knows none without a name: that gets one of its own."""
    taken, free = {name.lower() for name in names}, "column0"
    while free in taken:
        free += "_"
    return {name: quote_name(name or free) for name in names}


def types_of(connection: duckdb.DuckDBPyConnection, table: str, columns: str = "*") -> dict[str, str]:
    """Return the types of the columns of what may stand after FROM."""
    # DESCRIBE would go through all columns twice
    found = connection.sql(f"SELECT {columns} FROM {table}")
    return dict(zip(found.columns, map(str, found.types), strict=True))


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
