"""CSV files as queries of DuckDB's: their cells as texts, and as the types that fit them.

DuckDB is told everything and guesses nothing. A file that it might read otherwise than Python's `csv` is
first copied into a table.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from pac_wrap.tables.files.cells import Kind, kind_of
from pac_wrap.tables.files.connection import MISFIT, file_text
from pac_wrap.tables.files.csv_files import CsvFile, columns_of
from pac_wrap.tables.files.text_format import LONGEST
from pac_wrap.tables.sql.expressions import number_sql, quote_name, quote_text

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
