"""What DuckDB has to say against a file, in one sentence."""

import re

import duckdb

from pac_wrap.errors import InputError


def refusal(error: Exception, names: list[str]) -> BaseException:
    """Return what to raise instead of an error of DuckDB's: one sentence, or the Ctrl-C that it was."""
    if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
        return KeyboardInterrupt()
    return InputError(_sentence(error, names))


def _sentence(error: Exception, names: list[str]) -> str:
    """Return what is wrong with the files, out of DuckDB's longer message."""
    message = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    value = re.search(r'converting column "(.*)"\. Could not convert string "(.*)" to', message)
    file = re.search(r"^ *file = (.*)$", message, re.MULTILINE)
    if line and value:
        several = len(names) > 1 or any(sign in names[0] for sign in "*?[")
        where = file[1] if file and several else ", ".join(names)
        return (
            f"cannot read {where}: column {value[1]!r} must hold numbers, got {value[2]!r} in line"
            f" {int(line[1]):,}; mend that line"
        )
    return f"cannot read {', '.join(names)}: {first_line(error)}"


def first_line(error: BaseException) -> str:
    """Return the first two lines of an error that say something, as one."""
    lines = [text.strip() for text in str(error).splitlines() if text.strip()]
    useless = ("Original Line", "Possible", "LINE ", "^")
    wanted = [text for text in lines if not text.startswith(useless) and "sample_size" not in text]
    return re.sub(r"\s*Try .*", "", "; ".join(wanted[:2])) or type(error).__name__
