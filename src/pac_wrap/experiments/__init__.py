"""The questions of the paper, one module each: rows in, rows out."""
