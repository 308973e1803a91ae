"""Tables of very many columns cost no more than DuckDB's own copy of them."""

from pathlib import Path
from time import process_time

import duckdb
import pytest

from pac_wrap.tables.decide import copy_with
from pac_wrap.tables.table import found_files, open_found

_COLUMNS = 10_000


@pytest.mark.slow
def test_a_wide_parquet_file_is_copied_in_less_time_than_duckdb_takes_by_itself(tmp_path: Path) -> None:
    source, target = tmp_path / "wide.parquet", tmp_path / "copied.csv"
    with duckdb.connect() as connection:
        columns = ", ".join(f"i + {place} AS f{place}" for place in range(_COLUMNS))
        query = f"SELECT {columns}, i / 4.0::FLOAT AS score FROM range(5) t(i)"
        connection.execute(f"COPY ({query}) TO '{source}' (FORMAT parquet)")
    alone: list[float] = []
    ours: list[float] = []
    # the least of each, which more rounds bring nearer to the truth
    while len(ours) < 3 or (min(ours) >= min(alone) and len(ours) < 15):
        with duckdb.connect() as connection:
            start = process_time()
            connection.execute(f"COPY (FROM read_parquet('{source}')) TO '{tmp_path / 'bare.csv'}'")
            alone.append(process_time() - start)
        start = process_time()
        with (
            found_files([str(source)]) as found,
            open_found(found, ["score"], whole=True, output=target) as table,
        ):
            copy_with(table, "score", lambda _: ("1", "2"), target, "FORMAT csv, HEADER", 5)
        ours.append(process_time() - start)
    header, first, *_ = target.read_text().splitlines()
    assert header.split(",")[-4:] == [f"f{_COLUMNS - 1}", "score", "verdict", "prediction_set"]
    assert first.split(",")[-4:] == [str(_COLUMNS - 1), "0.0", "1", "2"]
    # processor time, which a busy machine leaves alone; ordering joins, or asking for all types, made it 1.2
    assert min(ours) < min(alone)
