"""CSV files as DuckDB queries: everything is stated and nothing guessed.

What DuckDB might read otherwise than Python's `csv` becomes a table of its own first.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import numpy as np

from pac_wrap.columns import require_column
from pac_wrap.csvfiles import CsvFile, all_columns, columns_of, require_in_all, survey
from pac_wrap.database import file_text
from pac_wrap.numerals import number_sql
from pac_wrap.sql import quote_name, quote_text
from pac_wrap.textlines import LONGEST

# how the cells of a column must be spelled for it to become numbers in a file that has types
_KINDS: Final = {
    "BIGINT": "-?(0|[1-9][0-9]{0,17})",
    "DOUBLE": "-?(0|[1-9][0-9]{0,16})([.][0-9]+)?(e[+-]?[0-9]{1,2})?",
}
# bytes that a thread reads at once; left alone, DuckDB takes sixteen of the longest lines
_BUFFER: Final = 4 * LONGEST
# so many columns in one query
_TOGETHER: Final = 500
# told of CRLF, DuckDB 2.0 reads no row at all; not told, it takes them for what they are
_LINE_ENDS: Final = {"\n": r"new_line = '\n', ", "\r\n": ""}


class CsvQueries(NamedTuple):
    """Some CSV files: all their columns, queries for the wanted ones and for all, and the number of rows."""

    files: tuple[CsvFile, ...]
    columns: list[str]
    wanted: str
    everything: str
    rows: int


def csv_queries(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[Path],
    wanted: Sequence[str],
    *,
    scratch: Path,
    whole: bool,
    delimiter: str | None,
) -> CsvQueries:
    """Return queries for columns as texts, NULL where a cell is empty; only the wanted ones without `whole`.

    With `whole`, columns of numbers become numbers in the query for all.
    """
    surveyed = [survey(file, wanted, delimiter) for file in files]
    require_in_all(files, [file.form.names for file in surveyed], wanted)
    columns = all_columns(files, [file.form.names for file in surveyed])
    for column in wanted:
        require_column(column, columns)
    shown = columns if whole else [name for name in columns if name in wanted] or columns[:1]
    quoted = _quoted(shown)
    parts = list(_parts(connection, surveyed, quoted, scratch))
    texts = " UNION ALL BY NAME ".join(f"({query})" for query, _ in parts)
    picked = ", ".join(quoted[name] for name in shown if name in wanted) or "*"
    everything = _typed(connection, texts, quoted, wanted) if whole else texts
    rows = sum(rows for _, rows in parts)
    return CsvQueries(tuple(surveyed), columns, f"SELECT {picked} FROM ({texts})", everything, rows)


def _parts(
    connection: duckdb.DuckDBPyConnection, files: Sequence[CsvFile], quoted: dict[str, str], scratch: Path
) -> Iterator[tuple[str, int]]:
    """Yield queries for the files in their order, those of one form together, each with its rows counted."""
    groups = groupby(files, lambda file: (file.form, file.line_end, file.packing, file.rows is None))
    for number, ((form, line_end, packing, odd), group) in enumerate(groups):
        places = {name: place for place, name in enumerate(form.names)}
        present = {name: text for name, text in quoted.items() if name in places}
        if odd:
            for place, file in enumerate(group):
                yield _loaded(connection, file, present, f"loaded_{number}_{place}")
            continue
        listed = list(group)
        renamed = ", ".join(f"c{places[name]} AS {text}" for name, text in present.items())
        paths = ", ".join(file_text(file.path, scratch) for file in listed)
        typed = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(form.names)))
        query = (
            f"SELECT {renamed} FROM read_csv([{paths}], auto_detect = false, header = true,"
            f" columns = {{{typed}}}, delim = {quote_text(form.delimiter)}, quote = '', escape = '',"
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
        connection.register("batch", {f"c{place}": _texts(cells_) for place, cells_ in enumerate(picked)})
        connection.execute(f"INSERT INTO {table} SELECT {cells} FROM batch")
        connection.unregister("batch")
        rows += len(picked[0])
    return f"SELECT * FROM {table}", rows


def _texts(cells: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    return np.array(cells, dtype=object)


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
