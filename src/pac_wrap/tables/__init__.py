"""Files of scores through DuckDB, and tables that stay in their database: find, read, calibrate, decide."""
