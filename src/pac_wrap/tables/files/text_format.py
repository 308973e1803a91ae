"""Tables as text: the bytes they come in, which of them are JSON, and what a CSV is for every reader of one.

A CSV is exactly the rows that Python's `csv` module reads, strictly. Its text is UTF-8, with or without a
byte order mark. The first line that is not empty holds the names of the columns, and every row has as many
cells as it. Cells are separated by a comma, a semicolon, a tab or a bar: the first of these, in this order,
with which all columns asked for are found in the header; if there is none, the one that gives most columns. A
cell that starts with `"` ends with the next single `"`; within it, `""` stands for one. Nothing is a comment,
nothing is escaped otherwise, and blanks belong to the cell. Lines end with LF or CRLF. Empty lines are no
rows, except that of one column they are empty cells. Rows are counted from 1, without the header.
"""

import csv
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import BufferedReader, StringIO
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from pac_wrap.base.foreign import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.tables.columns import refuse_twins

CHUNK: Final = 1 << 18
# bytes of a row; room for more than 100,000 cells
LONGEST: Final = 1 << 23
MARK: Final = b"\xef\xbb\xbf"
PARQUET: Final = b"PAR1"
_BINARY: Final = {
    b"\x1f\x8b": "packed by gzip; unpack it first, for example with gunzip",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first, for example with unzstd",
    b"\xff\xfe": "UTF-16; convert it first, for example with iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "UTF-16; convert it first, for example with iconv -f utf-16 -t utf-8",
    b"PK\x03\x04": "an archive or a spreadsheet; save the table in it as CSV first",
}
EMPTY_INPUT: Final = "standard input is empty; it needs a header and rows"


class ByteReader(Protocol):
    """Where bytes come from."""

    def read1(self, size: int, /) -> bytes:
        """Return what there is, at most `size` bytes, waiting only if there is nothing; empty at the end."""


def standard_input() -> BufferedReader:
    """Return standard input as bytes; reading waits for what is to come, whatever its writer has set."""
    if sys.stdin is None:
        raise InputError("standard input is closed; pipe a table into it or name a file")
    with suppress(OSError, AttributeError):  # not a file, or a system without such a setting
        # a read that does not wait would look like the end of the input
        os.set_blocking(sys.stdin.fileno(), True)
    return cast(BufferedReader, sys.stdin.buffer)


def is_json(start: bytes) -> bool:
    """Return whether a table that starts so is JSON; a column of a CSV may be called [id] or {id}.

    >>> is_json(b'{"score": 1}'), is_json(b"[id],score")
    (True, False)
    """
    return re.match(rb'(\xef\xbb\xbf)?\s*(\{\s*("|\}|$)|\[\s*(\{|\[|\]|$))', start) is not None


def refuse_binary(start: bytes, name: str) -> None:
    """Refuse a table whose first bytes show that it is no text that can be read."""
    for bytes_, what in _BINARY.items():
        if start.startswith(bytes_):
            raise InputError(f"{name} is {what}")


def whole_lines(reader: ByteReader, start: bytes) -> Iterator[str]:
    """Yield text that ends with a line's end, the last piece perhaps without one.

    Bytes that are no UTF-8 become surrogates, so that writing gives them back.
    """
    waiting, chunk = bytearray(), start.removeprefix(MARK)
    while chunk:
        cut = chunk.rfind(b"\n") + 1
        waiting += chunk[:cut] if cut else chunk
        if cut:
            yield waiting.decode("utf-8", "surrogateescape")
            waiting = bytearray(chunk[cut:])
        if len(waiting) > LONGEST:
            raise too_long()
        chunk = reader.read1(CHUNK)
    if waiting:
        yield waiting.decode("utf-8", "surrogateescape")


def too_long() -> InputError:
    """Return the refusal of a row that does not end."""
    return InputError(
        f"a row is longer than {LONGEST:,} bytes; look for a quote that is never closed"
        " or a line that is never ended"
    )


DELIMITERS: Final = ",;\t|"
_WORDS: Final = {"tab": "\t", "\\t": "\t"}
_OPEN: Final = "unexpected end of data"  # what the csv module says of a quote that is not closed yet
_RETURN: Final = "new-line character outside of quotes"
_LONE: Final = re.compile("\r(?!\n)")
_UNCLOSED: Final = "a quote is opened and never closed"
_REASONS: Final = {
    _OPEN[:8]: _UNCLOSED,
    "new-line": "a carriage return stands in a cell without quotes",
}
T = TypeVar("T")


class CsvHeader(NamedTuple):
    """The header of a CSV: what separates its cells, and the names of its columns."""

    delimiter: str
    names: tuple[str, ...]


class RowBatch(NamedTuple):
    """A few rows as cells, each row's own text if it may be written as it is, and whether all is UTF-8."""

    cells: list[list[str]]
    texts: list[str]
    unicode: bool


class CsvRows:
    """The rows of a CSV, batch by batch; `where` starts the sentence that refuses one."""

    def __init__(
        self,
        reader: ByteReader,
        start: bytes,
        wanted: Sequence[str],
        delimiter: str | None = None,
        where: str = "",
    ) -> None:
        # the csv module has one limit for the whole process; longer rows are refused here
        csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST))
        self._pieces, self.where = whole_lines(reader, start), where
        self.header, self._rest = _header(self._pieces, wanted, delimiter or DELIMITERS, where)
        refuse_twins(list(self.header.names), where.removesuffix(": ") or "standard input")
        self._width, self.read = len(self.header.names), 0

    def __iter__(self) -> Iterator[RowBatch]:
        """Yield all rows up to the first that is none, then raise what is wrong with that."""
        if self._rest:
            yield from self._batch(self._rest, last=False)
        for piece in self._pieces:
            yield from self._batch(self._rest + piece, last=False)
            if len(self._rest) > LONGEST:
                raise too_long()
        if self._rest:
            yield from self._batch(self._rest, last=True)

    def _batch(self, text: str, last: bool) -> Iterator[RowBatch]:
        texts: list[str] = []
        error = None
        if '"' in text or "\r" in text:
            rows, self._rest, error = self._parse(text, last)
        else:  # the same, faster
            texts, self._rest = text.removesuffix("\n").split("\n"), ""
            if "" in texts and self._width > 1:
                texts = [line for line in texts if line]
            rows = [line.split(self.header.delimiter) for line in texts]
        if set(map(len, rows)) != {self._width}:
            rows, error = up_to_first(rows, self._miscounted, error, self.read, self.where)
        self.read += len(rows)
        if rows:
            yield RowBatch(rows, texts[: len(rows)], text.isascii() or is_unicode(text))
        if error:
            raise error

    def _parse(self, text: str, last: bool) -> tuple[list[list[str]], str, InputError | None]:
        """Return the whole rows of a text, what is left of it, and what is wrong with the row after them."""
        rows: list[list[str]] = []
        done, blank = 0, [[""]] if self._width == 1 else []
        reader = _reader(text, self.header.delimiter)
        lines = text.split("\n") if text.count("\r") != text.count("\r\n") else None
        try:
            for row in reader:
                if lines and _stray(lines[done : reader.line_num], row):
                    raise csv.Error(_RETURN)
                rows += [row] if row else blank
                done = reader.line_num
        except csv.Error as error:
            if str(error) == _OPEN and not last:
                return rows, _after(text, done), None
            place = f"{self.where}row {self.read + len(rows) + 1:,}"
            return rows, "", InputError(f"{place} is not CSV: {_reason(str(error))}; fix that row")
        return rows, "", None

    def _miscounted(self, row: list[str]) -> str | None:
        if len(row) == self._width:
            return None
        many = f"{len(row):,} cell" + "s" * (len(row) != 1)
        return f"has {many}, but the header has {self._width:,}; fix that row"


def up_to_first(
    rows: list[T], problem: Callable[[T], str | None], error: InputError | None, before: int, where: str = ""
) -> tuple[list[T], InputError | None]:
    """Return the rows before the first one with a problem, and its refusal; or all of them, and `error`."""
    for position, row in enumerate(rows):
        if (what := problem(row)) is not None:
            return rows[:position], InputError(f"{where}row {before + position + 1:,} {what}")
    return rows, error


def check_delimiter(delimiter: str | None) -> str | None:
    """Return the delimiter, a tab for the word `tab`; what cannot separate cells is refused.

    >>> check_delimiter("tab")
    '\\t'
    """
    found = delimiter if delimiter is None else _WORDS.get(delimiter, delimiter)
    if found is None or (
        len(found) == 1 and found.isascii() and not found.isalnum() and found not in '"\r\n\0+-._'
    ):
        return found
    raise InputError(
        f"the delimiter must be one character such as , ; | or the word tab, got {delimiter!r};"
        " leave it out to have it found from the header"
    )


def only_in_csv(delimiter: str | None) -> None:
    """Refuse a delimiter of what is no CSV."""
    if delimiter is not None:
        raise InputError("the delimiter is for CSV, and what is read is none; leave it out")


def _header(
    pieces: Iterator[str], wanted: Sequence[str], delimiters: str, where: str
) -> tuple[CsvHeader, str]:
    """Return the header, read with the delimiter that fits, and the text after it."""
    text, found = "", {}
    for piece in pieces:
        text += piece
        found = {delimiter: _first_row(text, delimiter) for delimiter in delimiters}
        # a quote is still open: read on
        if not any(isinstance(row, str) and row == _OPEN for row, _ in found.values()) and text.strip("\r\n"):
            break
        if len(text) > LONGEST:
            raise too_long()
    read = {one: (row, lines) for one, (row, lines) in found.items() if isinstance(row, list) and row}
    for delimiter, (names, lines) in read.items():
        if set(wanted) <= set(names):
            return CsvHeader(delimiter, tuple(names)), _after(text, lines)
    reasons = [row for row, _ in found.values() if isinstance(row, str)]
    if read and _OPEN not in reasons:
        delimiter, (names, lines) = max(read.items(), key=lambda one: len(one[1][0]))
        return CsvHeader(delimiter, tuple(names)), _after(text, lines)
    if not reasons:
        raise InputError(f"{where}there is no header; the first line must name the columns")
    raise InputError(
        f"{where}the header is not CSV: {_reason(_OPEN if _OPEN in reasons else reasons[0])}; fix it"
    )


def _first_row(text: str, delimiter: str) -> tuple[list[str] | str, int]:
    """Return the first row that is not empty, or why there is none, and the number of lines up to its end."""
    reader = _reader(text, delimiter)
    try:
        row: list[str] = next((row for row in reader if row), [])
        if text.count("\r") != text.count("\r\n") and _stray(text.split("\n")[: reader.line_num], row):
            return _RETURN, reader.line_num
        return row, reader.line_num
    except csv.Error as error:  # another delimiter may fit
        return str(error), reader.line_num


def _stray(lines: list[str], row: list[str]) -> bool:
    """Return whether lines hold a carriage return that neither ends a line nor stands in a cell of their row.

    The csv module passes over some; read by other rules, they end rows.
    """
    inside = sum(len(_LONE.findall(cell)) for cell in row)
    return len(_LONE.findall("\n".join([*lines, ""]))) != inside


def _reason(error: str) -> str:
    return _REASONS.get(error[:8], error)


def _after(text: str, lines: int) -> str:
    return [*text.split("\n", lines), ""][lines]


def _reader(text: str, delimiter: str) -> Any:
    # not splitlines: it ends lines at characters that may stand in a cell
    return csv.reader(StringIO(text, newline="\n"), delimiter=delimiter, strict=True)
