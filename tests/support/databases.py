"""Databases that commands of one process use one after another: making one takes most of their time."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import duckdb
import pytest

from pac_wrap.tables.files import connection

_idle: list[duckdb.DuckDBPyConnection] = []
_CHANGED = "threads", "memory_limit", "preserve_insertion_order", "disabled_optimizers", "temp_directory"


@contextmanager
def lent() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to an empty database with the usual settings, which can be changed."""
    owner = _idle.pop() if _idle else duckdb.connect(config={"enable_external_file_cache": False})
    borrower = owner.cursor()
    borrower.execute("ATTACH ':memory:' AS lent")
    borrower.execute("USE lent")
    try:
        yield borrower
    finally:
        borrower.close()
        # one that is still in use, or has spilled to a folder that is gone, is not lent again
        with suppress(duckdb.Error):
            owner.execute("DETACH lent")
            for name in _CHANGED:
                owner.execute(f"RESET {name}")
            _idle.append(owner)


def lend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be opened in databases that are lent, in which files are not closed off."""
    monkeypatch.setattr(connection, "duckdb", SimpleNamespace(**vars(duckdb) | {"connect": lent}))
    monkeypatch.setattr(connection, "_CLOSED", "")
