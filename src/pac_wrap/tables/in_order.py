"""The rows of a table in the order of time, series by series: what a dependence in time is judged by."""

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.tables.columns import no_rows, require_column, require_two
from pac_wrap.tables.sql.expressions import number_sql, quote_name, text_sql
from pac_wrap.tables.table import WHOLE, Table

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
    """Return the rows of a table by series and time; without `series`, all of them are one.

    Times are numbers, dates or time stamps, as texts too. A time that is missing, or that two rows of a
    series have, is refused, and so is a score that is neither a number nor missing.
    """
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
    _refuse_twice(table, time, when, series, whose)
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


def _refuse_twice(table: Table, time: str, when: str, series: str | None, whose: str) -> None:
    """Refuse two rows of one series at one time: their order is unknown."""
    twice = table.rows(
        f"SELECT CAST({when} AS VARCHAR), {whose}, count(*) FROM source GROUP BY {when}, {whose}"
        " HAVING count(*) > 1 ORDER BY 2, 1 LIMIT 1"
    )
    for at, name, count in twice:
        of, remedy = ("", "name the column of series with --series, or keep one of them")
        if series is not None:
            of, remedy = f" of series {quoted(name)}", "keep one of them"
        raise InputError(
            f"column {quoted(time)} has {count:,} rows{of} at {at}, in no certain order; {remedy}"
        )
