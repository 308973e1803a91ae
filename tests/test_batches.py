"""Rows out of DuckDB through Arrow's C stream are those that it gives otherwise."""

import gc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from pac_wrap import batches as module
from pac_wrap.batches import batches, gathered
from pac_wrap.engines import duckdb as engine
from shell import parquet
from strategies import refusal


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


def numbers(rows: int, where: str = "true") -> str:
    return f"SELECT i::DOUBLE / 7 AS s, (i % 3)::UTINYINT AS y FROM range({rows}) t(i) WHERE {where}"


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 700_000])
@pytest.mark.parametrize("where", ["true", "i % 5 = 1", "i > 2040", "false"])
@pytest.mark.parametrize("size", [1, 5000, 1 << 20])
def test_rows_are_those_of_fetchnumpy(
    connection: duckdb.DuckDBPyConnection, rows: int, where: str, size: int
) -> None:
    query = numbers(rows, where)
    expected = connection.execute(query).fetchnumpy()
    # a pair is valid until the next one only
    found = [(s.copy(), y.copy()) for s, y in gathered(batches(connection.sql(query)), size)]
    scores = np.concatenate([np.empty(0), *(s for s, _ in found)])
    marks = np.concatenate([np.empty(0, dtype=np.uint8), *(y for _, y in found)])
    assert scores.tobytes() == np.asarray(expected["s"]).tobytes()
    assert marks.tobytes() == np.asarray(expected["y"]).tobytes()
    assert (scores.dtype.name, marks.dtype.name) == ("float64", "uint8")
    if size == 1 << 20:
        assert len(found) == (scores.size > 0)


def test_a_stream_that_nobody_finishes_is_let_go(connection: duckdb.DuckDBPyConnection) -> None:
    with closing(batches(connection.sql(numbers(3_000_000)))) as pairs:
        first, _ = next(pairs)
        assert first[7] == 1.0
    del pairs, first
    gc.collect()
    assert connection.execute("SELECT 42").fetchall() == [(42,)]


def test_an_interrupt_in_the_middle_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "scores.parquet"
    parquet(path, "SELECT hash(i) / 1e19 AS s, i % 2 AS y FROM range(500000) t(i)")
    seen: list[int] = []

    def values(column: Any, kind: Any) -> Any:
        seen.append(column.length)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return np.zeros(column.length, dtype=kind)

    monkeypatch.setattr(module, "_values", values)
    with pytest.raises(KeyboardInterrupt):
        engine.calibrate(path, score="s", label="y")


def test_what_goes_wrong_on_the_way_is_said(connection: duckdb.DuckDBPyConnection) -> None:
    late = "CASE WHEN i = 900000 THEN error('out of luck') ELSE i::DOUBLE END"
    query = f"SELECT {late} AS s, 0::UTINYINT AS y FROM range(1000000) t(i)"
    with pytest.raises((RuntimeError, duckdb.Error), match="out of luck"):
        for _ in batches(connection.sql(query)):
            pass
    assert connection.execute("SELECT 42").fetchall() == [(42,)]


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    parquet(path, "SELECT hash(i) / 1e19 AS s, i % 2 AS y FROM range(500000) t(i)")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200_000] = b"\xff" * 200_000
    path.write_bytes(content)
    message = refusal(lambda: engine.calibrate(path, score="s", label="y"))
    assert message.startswith(f"cannot read {path}")
    assert "\n" not in message
