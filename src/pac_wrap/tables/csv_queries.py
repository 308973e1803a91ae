"""CSV files as queries of DuckDB's: their cells as texts, and as the types that fit them.

DuckDB is told everything and guesses nothing. A file that it might read otherwise than Python's `csv` is
first copied into a table.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from pac_wrap.tables.connection import MISFIT, file_text
from pac_wrap.tables.csv_files import CsvFile, columns_of
from pac_wrap.tables.sql import number_sql, quote_name, quote_text
from pac_wrap.tables.text_format import LONGEST

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
) -> Iterator[tuple[str, int]]:
    """Yield queries for the files in order, those of one header together, each with its number of rows.

    With `sources`, a column and what each file is called in it, every file has its own query.
    """
    names = {} if sources is None else dict(zip(files, sources[1], strict=True))
    groups = groupby(
        files,
        lambda file: (file.header, file.line_end, file.packing, file.rows is None, names.get(file)),
    )
    for number, ((header, line_end, packing, odd, name), group) in enumerate(groups):
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
        typed = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(header.names)))
        query = (
            f"SELECT {renamed}{named} FROM read_csv([{paths}], auto_detect = false, header = true,"
            f" columns = {{{typed}}}, delim = {quote_text(header.delimiter)}, quote = '', escape = '',"
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
    kinds = dict.fromkeys(quoted, "VARCHAR")
    for kind, spelling in reversed(_KINDS.items()):
        left = [name for name in quoted if name not in wanted]
        for start in range(0, len(left), _TOGETHER):
            some = left[start : start + _TOGETHER]
            tests = ", ".join(f"bool_and(regexp_full_match({quoted[name]}, '{spelling}'))" for name in some)
            (found,) = connection.execute(f"SELECT {tests} FROM ({looked_at})").fetchall()
            kinds |= {name: kind for name, fits in zip(some, found, strict=True) if fits}
    shown = {name: text for name, text in quoted.items() if kinds[name] == "VARCHAR"}
    shown |= {name: _score(quoted[name]) for name in wanted[:1] if name in quoted}
    numbers = [(name, quoted[name], kind) for name, kind in kinds.items() if kind != "VARCHAR"]
    for start in range(0, len(numbers), _AT_ONCE):
        some = numbers[start : start + _AT_ONCE]
        shown |= {name: f"TRY_CAST({text} AS {kind})" for name, text, kind in some}
        if sample is not None:  # where one of a row's cells does not fit, the first of them fails
            name = some[0][0]
            shown[name] = f"CASE WHEN {_fit(some)} THEN {shown[name]} ELSE error('{MISFIT}') END"
    listed = [f"{shown[name]} AS {text}" for name, text in quoted.items()]
    listed += [] if source is None else [quote_name(source)]
    return f"(SELECT {', '.join(listed)} FROM ({texts}))"


def _fit(numbers: Sequence[tuple[str, str, str]]) -> str:
    """Return the condition that cells of a row are spelled as numbers; one look at all is faster."""
    cells = ", '|', ".join(text for _, text, _ in numbers)
    spelling = "[|]".join(f"({_KINDS[kind]})?" for _, _, kind in numbers)
    return f"regexp_full_match(concat({cells}), '{spelling}')"


def _score(text: str) -> str:
    # most scores start with a digit or a sign, and comparing beginnings is fast
    usual = f"{text} < ':' AND {text} NOT BETWEEN '+-' AND '+.' AND NOT contains({text}, '_')"
    cast = f"coalesce(TRY_CAST({text} AS DOUBLE), error('{MISFIT}'))"
    rest = f"WHEN {number_sql(text)} IS NOT NULL THEN {number_sql(text)} ELSE error('{MISFIT}')"
    return f"CASE WHEN {text} IS NULL THEN NULL WHEN {usual} THEN {cast} {rest} END"


def quoted_names(names: Sequence[str]) -> dict[str, str]:
    """Return what columns are called in DuckDB, which knows none without a name: that gets one of its own."""
    taken, free = {name.lower() for name in names}, "column0"
    while free in taken:
        free += "_"
    return {name: quote_name(name or free) for name in names}
