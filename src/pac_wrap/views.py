"""Files of one format as one DuckDB view called source, of the columns asked for, and what holds all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from pac_wrap.columns import refuse_twins
from pac_wrap.csvfiles import CsvFile, require_in_all
from pac_wrap.csvtables import csv_queries
from pac_wrap.database import file_text
from pac_wrap.precision import ScoreType, score_type
from pac_wrap.sources import numpy_columns
from pac_wrap.sql import quote_name, quote_text

# the names of folders are not data
_NO_FOLDERS: Final = "hive_partitioning = false"


@dataclass(frozen=True, slots=True)
class View:
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
    reader: str,
    files: Sequence[Path],
    wanted: Sequence[str],
    *,
    scratch: Path,
    whole: bool,
    delimiter: str | None,
) -> View:
    """Make files the view called source, which shows texts of CSV and JSON."""
    if reader == "numpy":
        arrays = numpy_columns(list(files))
        halves = {
            name: column.astype(np.float32) for name, column in arrays.items() if column.dtype == np.half
        }
        connection.register("source", arrays | halves)  # two bytes are a type that DuckDB does not know
        narrow = {name: score_type(column.dtype) for name, column in arrays.items()}
        return View(list(arrays), types_of(connection, "source"), "source", score_types=narrow)
    if reader == "read_csv":
        found = csv_queries(connection, files, wanted, scratch=scratch, whole=whole, delimiter=delimiter)
        connection.execute(f"CREATE VIEW source AS {found.wanted}")
        types = {name: "VARCHAR" for name in wanted if name in found.columns}
        return View(found.columns, types, f"({found.everything})", found.files, found.rows)
    read = _json if reader == "read_json" else _parquet
    columns, picked, everything = read(connection, files, wanted, scratch)
    connection.execute(f"CREATE VIEW source AS {picked}")
    return View(columns, types_of(connection, "source"), everything)


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
    parts = [f"(SELECT {{}} REPLACE ({doubles}) FROM read_parquet({one}, {_NO_FOLDERS}))" for one in each]
    everything = f"({' UNION ALL BY NAME '.join(part.format('*') for part in parts)})"
    return columns, f"SELECT {shown} FROM {everything}", everything


def types_of(connection: duckdb.DuckDBPyConnection, table: str, columns: str = "*") -> dict[str, str]:
    """Return the types of the columns of what may stand after FROM."""
    # not by DESCRIBE, which goes through all columns twice
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
