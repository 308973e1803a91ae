"""Labels as texts, as they stand in files: which of them mark an anomaly."""

import re
from collections.abc import Sequence
from typing import Final

from pac_wrap.errors import InputError
from pac_wrap.foreign import listed, quoted
from pac_wrap.sql import Dialect

# so many different labels are looked at; two are right
LOOKED_AT: Final = 9
TRUE: Final[tuple[str, ...]] = ("1", "1.0", "true")
FALSE: Final[tuple[str, ...]] = ("0", "0.0", "false")


def anomaly_marks(
    counted: Sequence[tuple[str | None, int]], column: str, anomaly_label: str | None
) -> tuple[str, ...]:
    """Return the lower-case texts that mark an anomaly, given each label of a column and its count.

    >>> anomaly_marks([("0", 990), ("1", 10)], "label", None)
    ('1', '1.0', 'true')
    >>> anomaly_marks([("fault", 10), ("ok", 990)], "state", "Fault")
    ('fault',)
    """
    values = [value for value, _ in counted if value is not None]
    for value, count in counted:
        if value is None:
            raise InputError(f"column {quoted(column)} has {count:,} rows without a label")
    if anomaly_label is None:
        strange = [value for value in values if value not in TRUE + FALSE]
        if strange:
            raise InputError(
                f"column {quoted(column)} must be 0/1 or true/false, got {quoted(strange[0])};"
                " name the label of anomalies with --anomaly-label"
            )
        return TRUE
    marks = spellings(anomaly_label)
    others = [value for value in values if value not in marks]
    if len(others) > 1 or len(others) == len(values):
        raise InputError(
            f"column {quoted(column)} must hold {quoted(anomaly_label)} and one other value,"
            f" got {listed(values)}"
        )
    return marks


def without_case(text: str) -> str:
    """Return a text in lower case if it is ASCII: of other letters, every engine makes something else.

    >>> without_case("Fault"), without_case("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}")
    ('fault', 'İ')
    """
    return text.lower() if text.isascii() else text


def without_case_sql(text: str, dialect: Dialect = "duckdb") -> str:
    """Return the SQL expression for `without_case`: of ASCII alone, each character is one byte."""
    size = "octet_length" if dialect == "spark" else "strlen"
    return f"CASE WHEN {size}({text}) = length({text}) THEN lower({text}) ELSE {text} END"


def spellings(label: str) -> tuple[str, ...]:
    """Return the texts, as `without_case` leaves them, that a label may stand in a file as.

    >>> spellings("1"), spellings("Böse")
    (('1', '1.0'), ('Böse', 'böse', 'BÖSE'))
    """
    text = without_case(label)
    if re.fullmatch(r"[+-]?\d+", text):
        return text, f"{text}.0"
    if text.isascii():
        return (text,)
    # the usual ways to write it; one that an engine alone would take for the same is refused
    ways = dict.fromkeys((text, text.lower(), text.upper(), text.capitalize()))
    return tuple(way for way in ways if not way.isascii())
