"""Which texts are numbers: one answer for cells of CSV files and streams, texts in JSON, and every engine.

A number is what Python's `float` takes, in ASCII and without underscores: `1`, `+.5e-3`, ` 7 `, `-Infinity`,
`nan`. One that is too large for a double, `1e400` or 400 digits, is rounded to an infinity, as `float` does.
"""

from math import nan
from typing import Final

# for engines that take more than this for a number; in lower case, without the blanks around it
NUMBER: Final = "[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)"
BLANKS: Final = " \t\n\v\f\r"
# DuckDB also takes 1_000, +-5 and nan(7)
_STRANGE: Final = ("_", "+-", "(")


def number(text: str) -> float | None:
    """Return a text as a number, NaN if it is empty, None if it is no number.

    >>> [number(text) for text in ("", "0.5", " -INF ", "-1e400", "1_000", "0x10", "1,5", "true")]
    [nan, 0.5, -inf, -inf, None, None, None, None]
    """
    if not text:
        return nan
    if not text.isascii() or "_" in text:  # float() also takes 1_000 and the digits of every script
        return None
    try:
        return float(text)
    except ValueError:
        return None


def number_sql(text: str) -> str:
    """Return DuckDB's expression for `number`: NULL where a text is NULL or no number."""
    strange = " OR ".join(f"contains({text}, '{part}')" for part in _STRANGE)
    return f"CASE WHEN NOT ({strange}) THEN TRY_CAST({text} AS DOUBLE) END"
