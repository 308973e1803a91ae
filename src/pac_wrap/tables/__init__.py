"""Files of scores through DuckDB: find, read, calibrate, decide, and the rule as SQL."""
