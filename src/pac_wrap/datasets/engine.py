"""DuckDB as a reader of text."""

import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection that prints nothing; left alone, it draws a bar on the screen in long queries."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection
