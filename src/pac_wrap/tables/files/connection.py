"""DuckDB, opened in one place: it reads and writes the files it is told of, and nothing else.

Extensions are neither fetched nor loaded, no query can name another file or change a setting.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import has_magic
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from pac_wrap.base.files import scratch_folder
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import usable_cores
from pac_wrap.tables.sql.expressions import quote_text


class Done(NamedTuple):
    """How far a job is: the pass it is in, the share of that in percent, and its rows if they are known."""

    share: float
    number: int = 1
    rows: int | None = None


Progress = Callable[[Done], None]

# no query joins tables, and preparing to order joins takes DuckDB time in the square of the columns
_NO_JOINS: Final = "join_order"
# writers leave NaN out of a Parquet file's statistics, so they prove nothing about NaN
# nor are the sides of a join exchanged: rows stay in the order of the first
_IN_ORDER: Final = (f"disabled_optimizers = 'statistics_propagation,{_NO_JOINS},build_side_probe_side'",)
# progress is asked for; DuckDB itself prints nothing. In Jupyter without ipywidgets it refuses to be asked.
_PROGRESS: Final = ("enable_progress_bar = true", "enable_progress_bar_print = false")
_ALWAYS: Final = (
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
)
_NEWER: Final = (
    # no query sees the variables of Python
    "python_enable_replacements = false",
    # DuckDB 2.0 may wait for ever for its own threads if one of them cannot write; older ones have none
    "async_threads = 0",
)


@contextmanager
def connected(
    files: Sequence[Path], scratch: Path | None = None, output: Path | None = None, *, passes: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection that reads these files, writes the output, and spills into the scratch folder.

    Rows come in order. `passes` is for going over many rows whose order does not matter: with the help of
    statistics, and in bounded memory.
    """
    for file in files:
        if not is_unicode(os.path.realpath(file)):
            raise InputError(f"the name {os.fspath(file)!r} is not UTF-8; rename it")
    with scratch_folder() as own, duckdb.connect() as connection:
        folder = os.path.realpath(scratch or own)
        paths = [
            *(os.path.realpath(file) for file in files),
            *([] if output is None else [os.path.realpath(output)]),
        ]
        for option in _PROGRESS:
            with suppress(duckdb.InvalidInputException):
                connection.execute(f"SET {option}")
        for option in (
            *_ALWAYS,
            *(_fast() if passes else _IN_ORDER),
            f"temp_directory = {quote_text(folder)}",
        ):
            connection.execute(f"SET {option}")
        for option in _NEWER:
            with suppress(duckdb.CatalogException):
                connection.execute(f"SET {option}")
        connection.execute(f"SET allowed_directories = [{quote_text(folder)}]")
        connection.execute(f"SET allowed_paths = [{', '.join(map(quote_text, paths))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def file_text(file: Path, scratch: Path) -> str:
    """Return a file's name as an SQL literal that is never a pattern: a link is made if it would be one."""
    path = os.path.realpath(file)
    if has_magic(path):
        links = scratch / "links"
        links.mkdir(exist_ok=True)
        link = links / f"{len(os.listdir(links))}{''.join(file.suffixes[-2:])}"
        link.symlink_to(path)
        path = str(link)
    return quote_text(path)


@contextmanager
def watched(
    connection: duckdb.DuckDBPyConnection, progress: Progress, number: int = 1, rows: int | None = None
) -> Iterator[None]:
    """Report the share done, a few times a second, while a query runs: a pass over so many rows."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            progress(Done(max(0.0, connection.query_progress()), number, rows))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _fast() -> tuple[str, ...]:
    # more threads read no faster from most disks, and would need more than a gigabyte
    threads = min(usable_cores(), 4)
    # each thread that reads a CSV needs its own buffers; the rest is spilled to disk
    return (
        f"threads = {threads}",
        f"memory_limit = '{300 + 100 * threads}MB'",
        "preserve_insertion_order = false",
        f"disabled_optimizers = '{_NO_JOINS}'",
    )


# what a query raises by itself where a cell is not what it was taken for
MISFIT: Final = "a cell is not what it was taken for"


class MisfitError(Exception):
    """A cell of a CSV is no number where those in the first rows are."""


def refusal(error: Exception, names: list[str]) -> BaseException:
    """Return what to raise instead of an error of DuckDB's: one sentence, or the Ctrl-C that it was."""
    if MISFIT in str(error):
        return MisfitError()
    if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
        return KeyboardInterrupt()
    return InputError(f"cannot read {', '.join(names)}: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Return the first two lines of an error that say something, as one."""
    lines = [text.strip() for text in str(error).splitlines() if text.strip()]
    useless = ("Original Line", "Possible", "LINE ", "^")
    wanted = [text for text in lines if not text.startswith(useless) and "sample_size" not in text]
    return re.sub(r"\s*Try .*", "", "; ".join(wanted[:2])) or type(error).__name__
