"""Files of one format as one DuckDB view called source: names checked, types fixed where they matter."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from pac_wrap.columns import refuse_twins
from pac_wrap.errors import InputError
from pac_wrap.sources import literal_path
from pac_wrap.sql import quote_name, quote_text

# the names of folders are not data
NO_FOLDERS: Final = "hive_partitioning = false"
_HEADS: Final = {
    "read_csv": "SELECT * FROM read_csv({}, header = false, all_varchar = true) LIMIT 1",
    "read_parquet": "SELECT name, coalesce(num_children, 0) FROM parquet_schema({})",
}


def rows_of(reader: str, files: list[Path], options: list[str]) -> str:
    """Return the query for all rows of the files."""
    listed = "[" + ", ".join(map(_quoted, files)) + "]"
    return f"SELECT * FROM {reader}({', '.join([listed, *options])})"


def types_of(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, str]:
    """Return the types of the columns that a query gives."""
    return {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {query}").fetchall()}


def make_view(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Make the rows that a query gives a view called source."""
    connection.execute(f"CREATE OR REPLACE VIEW source AS {query}")


def csv_types(types: dict[str, str], scores: Sequence[str], label: str | None) -> dict[str, str]:
    """Return the types that the score and label columns of a CSV get, given those that were guessed."""
    wanted = dict.fromkeys(scores, "DOUBLE") | ({} if label is None else {label: "VARCHAR"})
    return {name: kind for name, kind in wanted.items() if types.get(name, "VARCHAR") != "VARCHAR"}


def types_option(types: dict[str, str]) -> list[str]:
    """Return the option that gives columns of a CSV their types."""
    given = ", ".join(f"{quote_text(name)}: '{kind}'" for name, kind in types.items())
    return [f"types = {{{given}}}"] if types else []


def refuse_twin_columns(connection: duckdb.DuckDBPyConnection, reader: str, files: list[Path]) -> None:
    """Refuse a file that names a column twice, in any case; DuckDB would rename the second silently."""
    if reader not in _HEADS:
        return
    for file in files:
        found = connection.execute(_HEADS[reader].format(_quoted(file))).fetchall()
        if reader == "read_parquet":
            found = [(name,) for name in _top_level(found)]
        names = [str(name) for row in found for name in row if name is not None]
        refuse_twins(names, file)


def widen_view(connection: duckdb.DuckDBPyConnection, files: list[Path], columns: Sequence[str]) -> None:
    """Make Parquet files a view called source with these columns as doubles in each file.

    Where one file has float32 and another whole numbers, DuckDB would make float32 of both.
    """
    doubles = ", ".join(f"CAST({quote_name(name)} AS DOUBLE) AS {quote_name(name)}" for name in columns)
    parts = (
        f"SELECT * REPLACE ({doubles}) FROM read_parquet({_quoted(file)}, {NO_FOLDERS})" for file in files
    )
    make_view(connection, " UNION ALL BY NAME ".join(parts))


def written_columns(types: dict[str, str], score: str, number: str, options: str) -> str:
    """Return the columns as they are written: `number` is the score as a double, `options` those of COPY.

    Where a float32 becomes text, it has all digits of the double that is compared. JSON has neither
    infinities nor NaN: they become the texts "Infinity", "-Infinity" and "NaN"; a column that was read from
    such texts and numbers has the type JSON.
    """
    kind = types[score]
    if options.startswith("FORMAT json"):
        floats = {name: quote_name(name) for name, kind in types.items() if kind in ("FLOAT", "DOUBLE")}
        shown = floats | ({score: number} if kind in ("FLOAT", "VARCHAR", "JSON") else {})
        shown = {name: _json(value) for name, value in shown.items()}
    else:
        text = options.startswith("FORMAT csv")
        shown = {score: number} if kind == "JSON" or (kind == "FLOAT" and text) else {}
    replaced = ", ".join(f"{value} AS {quote_name(name)}" for name, value in shown.items())
    return f"* REPLACE ({replaced})" if replaced else "*"


def _json(number: str) -> str:
    words = f"CASE WHEN isnan({number}) THEN 'NaN' WHEN {number} > 0 THEN 'Infinity' ELSE '-Infinity' END"
    finite = f"{number} IS NULL OR isfinite({number})"
    return f"CASE WHEN {finite} THEN to_json({number}) ELSE to_json({words}) END"


def common_types(
    connection: duckdb.DuckDBPyConnection, reader: str, files: list[Path], columns: Sequence[str]
) -> dict[str, set[str]]:
    """Return the types that columns have in all files; a file without one of them is refused.

    DuckDB would fill the column with NULL.
    """
    types: dict[str, set[str]] = {column: set() for column in columns}
    for file in files:
        described = types_of(connection, rows_of(reader, [file], [NO_FOLDERS]))
        names = list(described)
        for column in columns:
            if column not in names:
                raise InputError(
                    f"{file} has no column {column!r}, which other files have; its columns are"
                    f" {', '.join(names)}; leave that file out or mend it"
                )
            types[column].add(described[column])
    return types


def _quoted(file: Path) -> str:
    return quote_text(literal_path(str(file.absolute())))


def _top_level(schema: list[tuple[Any, ...]]) -> list[str]:
    """Return the columns of a Parquet schema, which lists every node before its children, the root first."""
    names, inside = [], 0
    for name, children in schema[1:]:
        if inside == 0:
            names.append(str(name))
        inside = max(0, inside - 1) + children
    return names
