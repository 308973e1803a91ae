"""Rows out of DuckDB through Arrow's C stream are those that it gives otherwise."""

import ctypes
import gc
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from pac_wrap.tables import calibrate as engine
from pac_wrap.tables.files import connection as module
from pac_wrap.tables.files.connection import batches, gathered
from pac_wrap.tables.table import open_table
from support.shell import parquet
from support.strategies import refusal
from support.tables import empty_database, scores_of


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_database() as opened:
        yield opened


def numbers(rows: int, where: str = "true") -> str:
    return f"SELECT i::DOUBLE / 7 AS s, (i % 3)::UTINYINT AS y FROM range({rows}) t(i) WHERE {where}"


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 700_000])
@pytest.mark.parametrize("where", ["true", "i % 5 = 1", "i > 2040", "false"])
def test_rows_are_those_of_fetchnumpy(connection: duckdb.DuckDBPyConnection, rows: int, where: str) -> None:
    query = numbers(rows, where)
    expected = connection.execute(query).fetchnumpy()
    for size in (1, 5000, 1 << 20):
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

    def values(column: Any, kind: Any, skipped: int, length: int) -> Any:
        seen.append(length)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return np.zeros(length, dtype=kind)

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


S, Y = pa.array([0.5, 1.5, 2.5]), pa.array([0, 1, 2], pa.uint8())


def stream(*columns: Any, names: str = "sy") -> Any:
    """Return a stream of one batch, made by Arrow itself."""
    batch = pa.record_batch(list(columns), names=list(names))
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def rows(reader: Any) -> list[tuple[float, int]]:
    return [pair for s, y in batches(reader) for pair in zip(s.tolist(), y.tolist(), strict=True)]


def test_a_stream_of_the_two_formats_is_read_whoever_made_it() -> None:
    assert rows(stream(S, Y)) == [(0.5, 0), (1.5, 1), (2.5, 2)]
    assert rows(stream(S[:0], Y[:0])) == []


@pytest.mark.parametrize("skipped", [0, 1, 7, 8, 9])
@pytest.mark.parametrize("missing", [False, True])
def test_values_that_a_batch_skips_are_not_read(skipped: int, missing: bool) -> None:
    # a slice shares its buffers, and the NULLs before it are none of its own
    before = [None if missing else 9.0] * skipped
    scores = pa.array([*before, 0.5, 1.5], pa.float64())
    marks = pa.array([*(None if missing else 9 for _ in before), 3, 4], pa.uint8())
    whole = pa.record_batch([scores, marks], names=["s", "y"])
    columns = pa.record_batch([scores[skipped:], marks[skipped:]], names=["s", "y"])
    assert rows(pa.RecordBatchReader.from_batches(columns.schema, [columns])) == [(0.5, 3), (1.5, 4)]
    batch = whole.slice(skipped)
    assert rows(pa.RecordBatchReader.from_batches(batch.schema, [batch])) == [(0.5, 3), (1.5, 4)]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ([S.cast(pa.float32()), Y], "+s f C"),
        ([S, Y.cast(pa.int8())], "+s g c"),
        ([S, Y.cast(pa.int64())], "+s g l"),
        ([Y, S], "+s C g"),
        ([S], "+s g"),
        ([S, Y, Y], "+s g C C"),
        ([S.cast(pa.string()), Y], "+s u C"),
        ([S, pa.array([0, 1, 0], pa.uint8()).dictionary_encode()], "+s g i"),
        ([S, pa.array([True, False, True])], "+s g b"),
        ([pa.array([[0.5], [], []]), Y], "+s +l C"),
        ([S, pa.nulls(3)], "+s g n"),
        ([], "+s"),
    ],
)
def test_another_format_is_refused_before_a_buffer_is_read(
    columns: list[Any], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_values", None)
    with pytest.raises(RuntimeError, match=re.escape(f"has the formats {found}, and +s g C are read")):
        rows(stream(*columns, names="abc"[: len(columns)]))


@pytest.mark.parametrize("place", [0, 8, 9, 20, 180])
@pytest.mark.parametrize("skipped", [0, 1, 9])
def test_nulls_are_refused(place: int, skipped: int) -> None:
    values = [None if one == place + skipped else 1 for one in range(max(20, place) + 1 + skipped)]
    for columns in (
        [pa.array(values, pa.float64()), pa.array(range(len(values)), pa.uint8())],
        [pa.array(range(len(values)), pa.float64()), pa.array(values, pa.uint8())],
    ):
        batch = pa.record_batch(columns, names=["s", "y"]).slice(skipped)
        with pytest.raises(RuntimeError, match=r"an Arrow batch has 1 NULLs, and none is read"):
            rows(pa.RecordBatchReader.from_batches(batch.schema, [batch]))


class _Changed:
    """A stream whose batches were changed after its schema was told."""

    def __init__(self, change: Callable[[Any], None]) -> None:
        self._change, self._kept = change, stream(S, Y).__arrow_c_stream__()
        self._stream = module._Stream.from_address(module._pointer_of(self._kept, b"arrow_array_stream"))

    def __arrow_c_stream__(self) -> Any:
        usual = module._CALL(ctypes.cast(self._stream.get_next, ctypes.c_void_p).value or 0)

        def get_next(own: Any, target: Any) -> int:
            code = usual(own, target)
            array = module._Array.from_address(target)
            if array.release:
                self._change(array)
            return int(code)

        self._stream.get_next = module._CALL(get_next)
        return self._kept


def _shorten(array: Any) -> None:
    module._Array.from_address(array.children[0]).length = 2


def _drop_a_column(array: Any) -> None:
    array.n_children = 1


def _drop_a_buffer(array: Any) -> None:
    module._Array.from_address(array.children[1]).n_buffers = 1


def _drop_values(array: Any) -> None:
    module._Array.from_address(array.children[1]).buffers[1] = None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_shorten, "an Arrow column has 2 buffers and 2 values where 2 and 3 are read"),
        (_drop_a_column, "an Arrow batch has 1 columns, and 2 are read"),
        (_drop_a_buffer, "an Arrow column has 1 buffers and 3 values where 2 and 3 are read"),
        (_drop_values, "an Arrow column has 2 buffers and 3 values where 2 and 3 are read"),
    ],
)
def test_a_batch_that_is_not_what_the_schema_said_is_refused(
    change: Callable[[Any], None], said: str
) -> None:
    with pytest.raises(RuntimeError, match=said):
        rows(_Changed(change))


def test_a_table_says_in_one_sentence_that_the_stream_is_another(tmp_path: Path) -> None:
    path = parquet(tmp_path / "scores.parquet", "SELECT 1.5 AS s, 1 AS y")
    with open_table([str(path)], ["s"], "y") as table:
        said = refusal(lambda: list(table.batches("SELECT 1::FLOAT, 1::UTINYINT")))
        assert said == f"cannot read {path}: the Arrow stream has the formats +s f C, and +s g C are read"
        assert scores_of(table, "s").tolist() == [1.5]


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
