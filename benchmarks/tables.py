"""Tables of labelled scores, made by DuckDB in a temporary folder that is gone afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import duckdb

from benchmarks.record import SkipError

# two columns of a CSV take about 20 bytes a row, of Parquet fewer; twice that leaves room
_BYTES_PER_ROW = 40
# one label in ten marks an anomaly
_ROWS = """
SELECT random() + 0.8 * (i % 10 = 0)::DOUBLE AS s, (i % 10 = 0)::INTEGER AS y FROM range({first}, {last}) t(i)
"""


@contextmanager
def labelled_files(rows: int, kind: Literal["csv", "parquet"], files: int = 1) -> Iterator[list[str]]:
    """Yield files with a score `s` and a label `y`, together of this many rows, and delete them."""
    with tempfile.TemporaryDirectory(prefix="pac-wrap-bench-") as folder:
        if shutil.disk_usage(folder).free < _BYTES_PER_ROW * rows:
            raise SkipError(f"{rows:,} rows need {_BYTES_PER_ROW * rows / 1e9:.1f} GB of free disk")
        options = "FORMAT csv, HEADER" if kind == "csv" else "FORMAT parquet"
        paths = [str(Path(folder) / f"part-{number:03}.{kind}") for number in range(files)]
        with duckdb.connect() as connection:
            connection.execute("SELECT setseed(0.5)")
            for number, path in enumerate(paths):
                query = _ROWS.format(first=number * rows // files, last=(number + 1) * rows // files)
                connection.execute(f"COPY ({query}) TO '{path}' ({options})")
        yield paths
