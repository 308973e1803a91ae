"""What DuckDB has to say against a file, in one sentence."""

import re

import duckdb

from pac_wrap.errors import InputError


def refusal(error: Exception, names: list[str]) -> BaseException:
    """Return what to raise instead of an error of DuckDB's: one sentence, or the Ctrl-C that it was."""
    if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
        return KeyboardInterrupt()
    return InputError(f"cannot read {', '.join(names)}: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Return the first two lines of an error that say something, as one."""
    lines = [text.strip() for text in str(error).splitlines() if text.strip()]
    useless = ("Original Line", "Possible", "LINE ", "^")
    wanted = [text for text in lines if not text.startswith(useless) and "sample_size" not in text]
    return re.sub(r"\s*Try .*", "", "; ".join(wanted[:2])) or type(error).__name__
