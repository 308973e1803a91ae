"""Rows in a certain order: by series and time, or by the keys of another table."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.text import quoted, visible
from pac_wrap.errors import InputError
from pac_wrap.tables.columns import no_rows, require_column, require_two
from pac_wrap.tables.files.connection import Progress
from pac_wrap.tables.sql import number_sql, quote_name, text_sql
from pac_wrap.tables.table import WHOLE, Table, found_files, open_found

_TIMES: Final = rf"{WHOLE}|FLOAT|DOUBLE|DECIMAL\(.*\)|TIMESTAMP.*|DATE|TIME.*"
_TEXTS: Final = ("VARCHAR", "JSON")


@dataclass(frozen=True, eq=False)
class RowsInTime:
    """Scores and labels of all rows, ordered by series and time; a score that is missing is NaN."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    scores: NDArray[np.floating[Any]]
    anomalous: NDArray[np.bool_]


def rows_in_time(
    table: Table, score: str, label: str, anomaly_label: str | None, time: str, series: str | None = None
) -> RowsInTime:
    """Return the rows of a table by series and time; without `series`, all of them are one."""
    require_two(score, label)
    table.require_numbers(score)
    for column in (time, *([] if series is None else [series])):
        require_column(column, table.columns)
    anomalous = table.anomalous_sql(label, anomaly_label)
    number, kind = table.score_sql(score), table.types[score]
    if kind in _TEXTS:
        text = text_sql(score, kind)
        strange = table.rows(f"SELECT count(*) FROM source WHERE {text} IS NOT NULL AND {number} IS NULL")
        if strange[0][0]:
            table.check_scores(score)
    when = _time_sql(table, time)
    whose = "''" if series is None else f"CAST({text_sql(series, table.types[series])} AS VARCHAR)"
    counted = table.rows(f"SELECT {whose}, count(*) FROM source GROUP BY 1 ORDER BY 1")
    if not counted:
        raise no_rows(table.names)
    if series is not None and counted[-1][0] is None:  # NULL comes last
        raise InputError(f"column {quoted(series)} is empty in {counted[-1][1]:,} rows; name their series")
    # two rows of one series at one time are in no certain order
    for at, name, count in table.rows(
        f"SELECT CAST({when} AS VARCHAR), {whose}, count(*) FROM source GROUP BY {when}, {whose}"
        " HAVING count(*) > 1 ORDER BY 2, 1 LIMIT 1"
    ):
        of, remedy = ("", "name the column of series with --series, or keep one of them")
        if series is not None:
            of, remedy = f" of series {quoted(name)}", "keep one of them"
        raise InputError(
            f"column {quoted(time)} has {count:,} rows{of} at {at}, in no certain order; {remedy}"
        )
    found = table.arrays(
        f"SELECT {number} AS score, {anomalous} AS anomalous FROM source"
        f" ORDER BY {'' if series is None else f'{whose}, '}{when}"
    )
    scores = np.ma.filled(found["score"].astype(np.float64), np.nan)
    table.expect(scores.size)
    names, sizes = zip(*counted, strict=True)
    return RowsInTime(
        names, sizes, scores.astype(table.score_type(score)), np.asarray(found["anomalous"], bool)
    )


def _time_sql(table: Table, time: str) -> str:
    """Return the expression that rows are ordered by, after looking at all of them."""
    kind, column = table.types[time], quote_name(time)
    if kind not in _TEXTS:
        if not re.fullmatch(_TIMES, kind):
            raise InputError(
                f"column {quoted(time)} must hold numbers, dates or time stamps, but its type is {kind}; pick"
                " the column of times"
            )
        ways = [column]
    else:
        column = text_sql(time, kind)
        ways = [number_sql(column), f"TRY_CAST({column} AS TIMESTAMP)"]
    nan = "false" if kind not in ("FLOAT", "DOUBLE") else f"isnan({column})"
    missing, *unread = table.rows(
        f"SELECT count(*) FILTER ({column} IS NULL OR {nan}),"
        f" {', '.join(f'count(*) FILTER ({way} IS NULL)' for way in ways)} FROM source"
    )[0]
    if missing:
        raise InputError(
            f"column {quoted(time)} is empty or NaN in {missing:,} rows; drop them or add their time"
        )
    for way, count in zip(ways, unread, strict=True):
        if not count:
            return way
    unknown = f"{ways[0]} IS NULL AND {ways[1]} IS NULL"
    found = table.rows(f"SELECT {column} FROM source WHERE {unknown} LIMIT 1")
    example = f", got {quoted(found[0][0])}" if found else ", got some of either"
    raise InputError(
        f"column {quoted(time)} must hold numbers or times such as 2027-01-31 12:00:00{example};"
        " fix those rows"
    )


# the name of a table, the row of each key, its columns of scores, and its labels if it has any
_Part = tuple[str, dict[str, int], dict[str, Scores], NDArray[np.bool_] | None]


def joined(
    paths: Sequence[str],
    scores: Sequence[str],
    label: str,
    key: str,
    *,
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    progress: Progress = lambda share: None,
) -> dict[str, tuple[Scores, NDArray[np.bool_]]]:
    """Return each column of scores with its labels, of tables that share a key, in the order of the first."""
    for one in (*scores, label):
        if one == key:
            raise InputError(f"column {quoted(key)} cannot be the key and something else; name two columns")
    for one in scores:
        require_two(one, label)
    parts: list[_Part] = []
    columns: dict[str, None] = {}
    for path in paths:
        with found_files([path]) as found:
            with open_found(found, [key], delimiter=delimiter) as table:
                known = list(table.columns)
            require_column(key, known)
            columns |= dict.fromkeys(known)
            mine, marked = [one for one in dict.fromkeys(scores) if one in known], label in known
            # the first of them may be read as scores are, and the key never
            wanted = [*(mine or [label] * marked), key]
            with open_found(
                found, wanted, label if marked else None, delimiter=delimiter, progress=progress
            ) as table:
                parts.append(_part(table, mine, key, label if marked else None, anomaly_label))
    for one in (*scores, label):
        require_column(one, list(columns))
    for one in scores:
        holders = [name for name, _, own, _ in parts if one in own]
        if len(holders) > 1:
            raise InputError(f"column {quoted(one)} is in {' and in '.join(holders)}; rename one of them")
    values: dict[str, Scores] = {}
    labelled: list[tuple[str, NDArray[np.bool_]]] = []
    first, keys, *_ = parts[0]
    for name, rows, own, marks in parts:
        lacking = [one for one in keys if one not in rows]
        more = [one for one in rows if one not in keys]
        if lacking or more:
            which = quoted((lacking or more)[0])
            raise InputError(
                f"{len(lacking):,} keys of {first} are not in {name}, and {len(more):,} of {name} are not in"
                f" {first}, such as {which} in column {quoted(key)}; keep the rows that both have"
            )
        order = np.fromiter((rows[one] for one in keys), np.intp, len(keys))
        values |= {one: column[order] for one, column in own.items()}
        labelled += [] if marks is None else [(name, marks[order])]
    name, anomalous = labelled[0]
    for other, marks in labelled[1:]:
        if differ := int(np.count_nonzero(marks != anomalous)):
            raise InputError(
                f"{name} and {other} label {differ:,} of {anomalous.size:,} rows otherwise in column"
                f" {quoted(label)}; drop that column from one of them, or fix it"
            )
    return {one: (values[one], anomalous) for one in scores}


def _part(
    table: Table, scores: Sequence[str], key: str, label: str | None, anomaly_label: str | None
) -> _Part:
    """Return what a table holds of the columns that are asked for."""
    for one in scores:
        table.check_scores(one)
    read = [f"CAST({quote_name(key)} AS VARCHAR) AS k"]
    read += [f"{table.score_sql(one)} AS s{place}" for place, one in enumerate(scores)]
    read += [] if label is None else [f"{table.anomalous_sql(label, anomaly_label)} AS anomalous"]
    arrays = table.arrays(f"SELECT {', '.join(read)} FROM source")
    name, keys = visible(table.names[0]), np.ma.asarray(arrays["k"]).tolist()
    if missing := sum(one is None or one == "" for one in keys):
        raise InputError(f"{name} has {missing:,} rows without a key in column {quoted(key)}; fill them in")
    rows = {one: place for place, one in enumerate(keys)}
    if len(rows) < len(keys):
        twice = next(one for place, one in enumerate(keys) if rows[one] != place)
        raise InputError(
            f"{name} has {len(keys) - len(rows):,} rows whose key another row has, such as {quoted(twice)};"
            f" column {quoted(key)} must tell rows apart"
        )
    values = {one: np.asarray(arrays[f"s{place}"], dtype=np.float64) for place, one in enumerate(scores)}
    return name, rows, values, None if label is None else np.asarray(arrays["anomalous"], dtype=bool)
