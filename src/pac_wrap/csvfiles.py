"""CSV files, looked at before an engine reads them: how many rows they have, and who can read them.

A file without quotes, of whole rows and with one kind of line end is read alike by every engine that is told
its delimiter. All others are read by `CsvRows`, and handed on.
"""

import codecs
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from gzip import GzipFile
from math import isnan
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from pac_wrap.columns import miscounted, missing_scores, not_a_number, refuse_twins, require_column
from pac_wrap.csvform import CsvRows, Form
from pac_wrap.database import connected, file_text
from pac_wrap.errors import InputError
from pac_wrap.numerals import BLANKS, number
from pac_wrap.refusals import first_line
from pac_wrap.scratch import scratch_folder
from pac_wrap.textlines import CHUNK, LONGEST, MARK, Source, is_unicode

_BLOCK: Final = 1 << 20
# an engine needs a word about every column; beyond so many it is quicker to cut the lines here
_WIDE: Final = 1000
# separates the cells of files that are written here, without quotes
_SEPARATOR: Final = "\x1f"
_ODD: Final = "is not UTF-8, or holds a NUL byte; convert the file first, for example with iconv -t utf-8"
PACKED: Final = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file; the number of rows and the line end are known if engines may read it as it is."""

    path: Path
    form: Form
    rows: int | None = None
    line_end: str = "\n"

    @property
    def packing(self) -> str:
        """How the file is packed: gzip, zstd or none."""
        return PACKED.get(self.path.suffix.lower(), "none")


def survey(file: Path, wanted: Sequence[str], delimiter: str | None) -> CsvFile:
    """Return what engines need to know to read a file; a row with too many or too few cells is refused."""
    with opened_rows(file, wanted, delimiter) as rows:
        found = CsvFile(file, rows.form)
    if not is_unicode("".join(found.form.names)) or "\0" in "".join(found.form.names):
        raise InputError(f"{file}: the header {_ODD}")
    width = len(found.form.names)
    if width > _WIDE or not set(wanted) <= set(found.form.names):
        return found
    with opened(file) as source:
        counts = _scan(source, found.form.delimiter)
    if counts is None:
        return found
    lines, blank, delimiters, line_end = counts
    lines -= blank if width > 1 else 0
    if delimiters != lines * (width - 1):  # some row is miscounted, and is named here
        refuse_rows([found])
        return found
    return replace(found, rows=lines - 1, line_end=line_end)


def headers(files: Sequence[Path], wanted: Sequence[str], delimiter: str | None) -> list[Form]:
    """Return the header of each file; a file without a wanted column that others have is refused."""
    forms = []
    for file in files:
        with opened_rows(file, wanted, delimiter) as rows:
            forms.append(rows.form)
    require_in_all(files, [form.names for form in forms], wanted)
    return forms


def require_in_all(files: Sequence[Path], names: Sequence[Sequence[str]], wanted: Sequence[str]) -> None:
    """Refuse a file without a wanted column that others have; engines would fill it with nothing."""
    for column in wanted:
        lacking = [place for place, known in enumerate(names) if column not in known]
        if lacking and len(lacking) < len(files):
            raise InputError(
                f"{files[lacking[0]]} has no column {column!r}, which other files have; its columns are"
                f" {', '.join(names[lacking[0]])}; leave that file out or fix it"
            )


def all_columns(files: Sequence[Path], names: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns of all files, each once; two that differ only in case are refused.

    Engines would take them for one, and fill each with what both hold.
    """
    columns = list(dict.fromkeys(name for known in names for name in known))
    refuse_twins(columns, f"the table of {', '.join(map(str, files))}")
    return columns


def columns_of(file: CsvFile, columns: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Yield some columns of a file, each as the cells of a few rows."""
    where = f"{file.path}: "
    places = [file.form.names.index(column) for column in columns]
    with opened_rows(file.path, (), file.form.delimiter) as rows:
        for cells, _, unicode in rows:
            picked = [tuple(map(itemgetter(place), cells)) for place in places]
            if not unicode or any("\0" in cell for column in picked for cell in column):
                before = rows.read - len(cells)
                _refuse_odd(cells, before, where)
            yield picked


def refuse_rows(files: Sequence[CsvFile]) -> None:
    """Refuse the first row that is no row of its file, if there is one."""
    for file in files:
        for _ in columns_of(file, file.form.names[:1]):
            pass


def refuse_scores(files: Sequence[CsvFile], score: str) -> None:
    """Refuse the first row that is none, the first score that is no number, or all that are missing."""
    several, rows, missing = len(files) > 1, 0, []
    for file in files:
        before = rows
        for (cells,) in columns_of(file, [score]):
            for cell in cells:
                rows += 1
                value = number(cell)
                if value is None:
                    where = f"{file.path}: " if several else ""
                    raise InputError(f"{where}{not_a_number(score, cell, rows - before)}")
                if isnan(value):
                    missing.append(rows)
    if missing:
        raise missing_scores(score, len(missing), rows, missing[0])


@contextmanager
def engine_files(
    files: Sequence[str], columns: Sequence[str], delimiter: str | None, scratch: Path
) -> Iterator[list[CsvFile]]:
    """Yield what an engine other than DuckDB is to read for each file, which may be the file itself.

    The first column is the score. If the engine refuses a row, it is named here.
    """
    paths = [Path(file) for file in files]
    surveyed = [survey(path, columns, delimiter) for path in paths]
    require_in_all(paths, [file.form.names for file in surveyed], columns)
    for column in columns:
        require_column(column, list(surveyed[0].form.names))
    try:
        yield [
            file
            if file.rows is not None and file.packing == "none"
            else simplified(file, columns, scratch / f"simplified-{place}.csv")
            for place, file in enumerate(surveyed)
        ]
    except InputError:
        refuse_scores(surveyed, columns[0])
        raise


def expect_rows(files: Sequence[CsvFile], rows: int) -> None:
    """Refuse to go on if an engine has read another number of rows than the files hold."""
    known = sum(file.rows or 0 for file in files)
    if files and rows != known:
        raise miscounted([str(file.path) for file in files], known, rows)


def simplified(file: CsvFile, columns: Sequence[str], target: Path) -> CsvFile:
    """Return a file that every engine reads alike, with the given columns, written where `target` says.

    A cell that holds a line break is refused.
    """
    written = 0
    with target.open("w", encoding="utf-8", newline="") as out:
        out.write(_SEPARATOR.join(columns) + "\n")
        for picked in columns_of(file, columns):
            rows = [[cell.strip(BLANKS) or cell for cell in cells] for cells in picked[:1]] + list(picked[1:])
            lines = list(map(_SEPARATOR.join, zip(*rows, strict=True)))
            for place, line in enumerate(lines):
                if "\n" in line or "\r" in line or line.count(_SEPARATOR) != len(columns) - 1:
                    raise InputError(
                        f"{file.path}: row {written + place + 1:,} has a line break or a control character in"
                        f" {' or '.join(map(repr, columns))}; fix that row, or let DuckDB read it"
                    )
            written += len(lines)
            out.write("\n".join([*lines, ""]))
    return CsvFile(target, Form(_SEPARATOR, tuple(columns)), written)


@contextmanager
def opened_rows(file: Path, wanted: Sequence[str], delimiter: str | None) -> Iterator[CsvRows]:
    """Yield the rows of a file, which may be packed."""
    with opened(file) as source:
        yield CsvRows(source, source.read1(CHUNK), wanted, delimiter, f"{file}: ")


@contextmanager
def opened(file: Path) -> Iterator[Source]:
    """Yield the bytes of a file, which may be packed."""
    packing = PACKED.get(file.suffix.lower())
    try:
        if packing == "zstd":
            with scratch_folder() as own, connected([file], own) as connection:
                yield _Lines(connection, file_text(file, own))
        else:
            with file.open("rb") as plain:
                yield GzipFile(fileobj=plain) if packing else plain
    except (OSError, EOFError, zlib.error, duckdb.Error) as error:
        raise InputError(
            f"cannot read {file}: {first_line(error)}; unpack it first, or check that it is whole"
        ) from error


class _Lines:
    """The lines of a file packed by zstd, which Python cannot unpack and DuckDB can."""

    def __init__(self, connection: Any, file: str) -> None:
        # every line is one cell of one column: no line holds the delimiter
        self._rows = connection.execute(
            f"SELECT line FROM read_csv({file}, auto_detect = false, header = false,"
            " columns = {'line': 'VARCHAR'}, delim = '\x01', quote = '', escape = '', comment = '',"
            " nullstr = '',"
            f" new_line = '\\n', compression = 'zstd', max_line_size = {LONGEST})"
        )

    def read1(self, size: int, /) -> bytes:
        """Return some lines."""
        found = self._rows.fetchmany(4096)
        return "".join([f"{line or ''}\n" for (line,) in found]).encode()


def _refuse_odd(cells: list[list[str]], before: int, where: str) -> None:
    """Refuse the first row that is not UTF-8 or holds a NUL byte."""
    for place, row in enumerate(cells):
        whole = "".join(row)
        if not is_unicode(whole) or "\0" in whole:
            raise InputError(f"{where}row {before + place + 1:,} {_ODD}")


def _scan(source: Source, delimiter: str) -> tuple[int, int, int, str] | None:
    """Return the lines, how many are empty, the delimiters and the line end; None if there is more to it."""
    mark, decoder = ord(delimiter), codecs.getincrementaldecoder("utf-8")()
    newlines = returns = pairs = empty = packed_empty = delimiters = 0
    last = head = b""
    while block := source.read1(_BLOCK):
        head = (head + block[:4])[:4]
        if b'"' in block or b"\0" in block:
            return None
        try:
            if not block.isascii() or decoder.getstate()[0]:
                decoder.decode(block)
        except UnicodeDecodeError:
            return None
        data, start = np.frombuffer(last + block, dtype=np.uint8), len(last)
        ends = data == 10
        newlines += int(np.count_nonzero(ends[start:]))
        delimiters += int(np.count_nonzero(data[start:] == mark))
        empty += int(np.count_nonzero(ends[max(start, 1) :] & ends[max(start, 1) - 1 : -1]))
        if b"\r" in block or last[-1:] == b"\r":
            carriage = data == 13
            returns += int(np.count_nonzero(carriage[start:]))
            after = ends[max(start, 1) :] & carriage[max(start, 1) - 1 : -1]
            pairs += int(np.count_nonzero(after))
            later = ends[max(start, 2) :] & carriage[max(start, 2) - 1 : -1] & ends[max(start, 2) - 2 : -2]
            packed_empty += int(np.count_nonzero(later))
        last = (last + block)[-2:]
    if decoder.getstate()[0] or head.removeprefix(MARK)[:1] in (b"\n", b"\r", b""):
        return None
    lines = newlines + (last[-1:] != b"\n")
    if not returns:
        return lines, empty, delimiters, "\n"
    if returns == pairs == newlines:
        return lines, packed_empty, delimiters, "\r\n"
    return None
