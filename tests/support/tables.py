"""Open tables, asked for what a test compares, and databases to write tables in."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count

import duckdb
import numpy as np

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import ScoreType
from pac_wrap.method.groups.calibrate import GroupRequest, certify_groups
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.tables.calibrate import TableGroups
from pac_wrap.tables.table import Table

_names = map("database{}".format, count())


@cache
def _opened() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


@contextmanager
def empty_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a database without tables; to open DuckDB anew takes twenty times as long."""
    name = next(_names)
    with _opened().cursor() as connection:
        connection.execute(f"ATTACH ':memory:' AS {name}")
        connection.execute(f"USE {name}")
        try:
            yield connection
        finally:
            connection.execute("USE memory")
            connection.execute(f"DETACH {name}")


def scores_of(table: Table, score: str) -> Scores:
    """Return one column in the order of its rows; what is no number is refused."""
    table.require_numbers(score)
    with table.in_order() as ordered:
        found = ordered.arrays(f"SELECT {ordered.score_sql(score)} AS score FROM source")["score"]
        scores = np.ma.filled(found.astype(np.float64), np.nan)
        if np.isnan(scores).any() or not scores.size:
            ordered.check_scores(score)
        ordered.expect(scores.size)
        return scores


def calibrate_groups_table(
    table: Table,
    request: GroupRequest,
    columns: tuple[str, str, str],
    anomaly_label: str | None = None,
    score_type: ScoreType | None = None,
) -> GroupCertificate:
    """Return what a request gets from the groups of a table."""
    return certify_groups(TableGroups(table, columns, anomaly_label, score_type), request)
