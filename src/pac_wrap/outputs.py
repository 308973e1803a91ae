"""How a table with verdicts is written: which formats there are, and numbers that every reader takes."""

from pathlib import Path
from typing import Final

from pac_wrap.errors import InputError
from pac_wrap.sql import quote_name

_WRITERS: Final = {
    ".parquet": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


def output_options(name: str) -> str:
    """Return what DuckDB's COPY needs for a file name: Parquet, CSV or JSON lines, perhaps packed."""
    packed = name.lower().endswith(".gz")
    suffix = Path(name.lower().removesuffix(".gz")).suffix or name.lower()
    if suffix not in _WRITERS or (packed and suffix == ".parquet"):
        raise InputError(f"the output {name} has no known format; the endings are {', '.join(_WRITERS)}")
    return _WRITERS[suffix] + (", COMPRESSION gzip" if packed else "")


def written_columns(types: dict[str, str], score: str, number: str, options: str) -> str:
    """Return the columns as they are written: `number` is the score as a double, `options` those of COPY.

    Where a float32 becomes text, it has all digits of the double that is compared. JSON has neither
    infinities nor NaN: they become the texts "Infinity", "-Infinity" and "NaN"; a column that was read from
    such texts and numbers has the type JSON.
    """
    kind = types[score]
    if options.startswith("FORMAT json"):
        floats = {name: quote_name(name) for name, kind in types.items() if kind in ("FLOAT", "DOUBLE")}
        shown = floats | ({score: number} if kind in ("FLOAT", "VARCHAR", "JSON") else {})
        shown = {name: _json(value) for name, value in shown.items()}
    else:
        text = options.startswith("FORMAT csv")
        shown = {score: number} if kind == "JSON" or (kind == "FLOAT" and text) else {}
    replaced = ", ".join(f"{value} AS {quote_name(name)}" for name, value in shown.items())
    return f"* REPLACE ({replaced})" if replaced else "*"


def _json(number: str) -> str:
    words = f"CASE WHEN isnan({number}) THEN 'NaN' WHEN {number} > 0 THEN 'Infinity' ELSE '-Infinity' END"
    finite = f"{number} IS NULL OR isfinite({number})"
    return f"CASE WHEN {finite} THEN to_json({number}) ELSE to_json({words}) END"
