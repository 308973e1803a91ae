"""A table of a study as CSV: every number with all its digits."""

import csv
from io import StringIO

from pac_wrap.experiments.study import Cell, Interval, Spread, Table
from pac_wrap.metrics import Rate


def csv_text(table: Table) -> str:
    """Return a table as CSV with one head; what holds several numbers takes a column for each.

    >>> print(csv_text(Table("t", "A table", ({"n": 1000, "FPR": Rate(43, 1000, 0.0313, 0.0576)},))), end="")
    n,FPR count,FPR n,FPR low,FPR high
    1000,43,1000,0.0313,0.0576
    """
    parts = [{head: _parts(cell) for head, cell in row.items()} for row in table.rows]
    columns = [
        (head, name)
        for head in (parts[0] if parts else {})
        for name in dict.fromkeys(name for row in parts for name in row[head]) or ("",)
    ]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(f"{head} {name}".rstrip() for head, name in columns)
    writer.writerows([row[head].get(name, "") for head, name in columns] for row in parts)
    return text.getvalue()


def _parts(cell: Cell) -> dict[str, str]:
    """Return what a cell is made of, by name; the name of a single value is empty."""
    match cell:
        case None:
            return {}
        case bool():
            return {"": "true" if cell else "false"}
        case str() | int():
            return {"": str(cell)}
        case float():
            return {"": _digits(cell)}
        case Rate(count, n, low, high):
            return {"count": str(count), "n": str(n), "low": _digits(low), "high": _digits(high)}
        case Spread(mean, low, high):
            return {"mean": _digits(mean), "low": _digits(low), "high": _digits(high)}
        case Interval(low, high):
            return {"low": _digits(low), "high": _digits(high)}


def _digits(value: float) -> str:
    return repr(float(value))  # NumPy's floats are floats, too, but write their type
