"""Files of scores: found, looked into, and read by DuckDB as one view."""
