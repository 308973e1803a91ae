"""Rules and calibrations as SQL: expressions, statements, and the loop around a database."""
