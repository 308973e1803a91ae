"""Tables as text: their bytes, and the definitions of CSV and JSON for all readers.

A CSV is exactly the rows that Python's `csv` module reads, strictly. Its text is UTF-8, with or without a
byte order mark. The first line that is not empty holds the names of the columns, and every row has as many
cells. The delimiter is a comma, a semicolon, a tab or a bar: the first of them, in this order, that finds all
wanted columns in the header; if none does, the one that gives the most columns. A cell that starts with `"`
ends with the next single `"`; within it, `""` stands for one. There are no comments and no other escapes, and
blanks belong to the cell. Lines end with LF or CRLF. Empty lines are not rows, but with a single column they
are empty cells. Rows are counted from 1, without the header.

JSON is what Python's `json` module reads: an object on each line, or else objects one after the other or in
one array, each of them a row. No type is guessed: numbers, lists and objects keep the text in which they are
written. An object with the same name twice is refused.
"""

import csv
import gc
import json
import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, StringIO
from itertools import chain
from math import isfinite, isnan, nan
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from pac_wrap.base.text import amount, is_unicode, quoted
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
    """A source of bytes."""

    def read1(self, size: int, /) -> bytes:
        """Return up to `size` available bytes; wait only if there are none; empty at the end."""


def standard_input() -> BufferedReader:
    """Return standard input as bytes; reading waits for more input, whatever the writer has set."""
    if sys.stdin is None:
        raise InputError("standard input is closed; pipe a table into it, or name a file")
    with suppress(OSError, AttributeError):  # not a file, or a system without such a setting
        # a read that does not wait would look like the end of the input
        os.set_blocking(sys.stdin.fileno(), True)
    return cast(BufferedReader, sys.stdin.buffer)


def is_json(start: bytes) -> bool:
    """Return whether a table with this start is JSON; a column of a CSV may be called [id] or {id}."""
    return re.match(rb'(\xef\xbb\xbf)?\s*(\{\s*("|\}|$)|\[\s*(\{|\[|\]|$))', start) is not None


def refuse_binary(start: bytes, name: str) -> None:
    """Refuse a table whose first bytes show a format other than text."""
    for bytes_, what in _BINARY.items():
        if start.startswith(bytes_):
            raise InputError(f"{name} is {what}")


def whole_lines(reader: ByteReader, start: bytes) -> Iterator[str]:
    """Yield pieces of text that end with a line; the last piece may lack the line end."""
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
    """Return the error for a row that is too long."""
    return InputError(
        f"a row is longer than {LONGEST:,} bytes; look for a quote that is never closed or a missing line end"
    )


DELIMITERS: Final = ",;\t|"
_WORDS: Final = {"tab": "\t", "\\t": "\t"}
_OPEN: Final = "unexpected end of data"  # what the csv module says of a quote that is not closed yet
_RETURN: Final = "new-line character outside of quotes"
_LONE: Final = re.compile("\r(?!\n)")
_REASONS: Final = {
    _OPEN[:8]: "a quote is opened and never closed",
    "new-line": "a carriage return stands in a cell without quotes",
}
T = TypeVar("T")


class CsvHeader(NamedTuple):
    """The header of a CSV: its delimiter and the names of its columns."""

    delimiter: str
    names: tuple[str, ...]


class RowBatch(NamedTuple):
    """A few rows as cells or objects, their texts if these can be written again, and whether all is UTF-8."""

    rows: list[Any]
    texts: list[str]
    unicode: bool


class CsvRows:
    """The rows of a CSV in batches; `where` starts the error for a bad row."""

    def __init__(
        self, reader: ByteReader, start: bytes, wanted: Sequence[str], delimiter: str | None, where: str = ""
    ) -> None:
        # the csv module has one limit for the whole process; longer rows are refused here
        csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST))
        self._pieces, self.where = whole_lines(reader, start), where
        known = check_delimiter(delimiter) or DELIMITERS
        self.header, self._rest = _header(self._pieces, wanted, known, where)
        refuse_twins(list(self.header.names), where.removesuffix(": ") or "standard input")
        self._width, self.read = len(self.header.names), 0
        # what reads a text without quotes all at once, if it can
        self.at_once: Callable[[str], Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Yield all rows up to the first that is none, then raise what is wrong with that."""
        for piece in chain([""] if self._rest else (), self._pieces):
            yield from self._batch(self._rest + piece, last=False)
            if len(self._rest) > LONGEST:
                raise too_long()
        if self._rest:
            yield from self._batch(self._rest, last=True)

    def _batch(self, text: str, last: bool) -> Iterator[Any]:
        texts: list[str] = []
        error = None
        plain = '"' not in text and "\r" not in text
        if plain and self.at_once is not None and (found := self.at_once(text)) is not None:
            self._rest = ""
            self.read += found.scores.size
            if found.scores.size:
                yield found
            return
        if not plain:
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
        """Return the whole rows of a text, the rest of the text, and the error of the row after them."""
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
            reason = _REASONS.get(str(error)[:8], str(error))
            place = f"{self.where}row {self.read + len(rows) + 1:,}"
            return rows, "", InputError(f"{place} is not CSV: {reason}; fix that row")
        return rows, "", None

    def _miscounted(self, row: list[str]) -> str | None:
        if len(row) == self._width:
            return None
        return f"has {amount(len(row), 'cell')}, but the header has {self._width:,}; fix that row"


def up_to_first(
    rows: list[T], problem: Callable[[T], str | None], error: InputError | None, before: int, where: str = ""
) -> tuple[list[T], InputError | None]:
    """Return the rows before the first one with a problem, and its error; or all rows, and `error`."""
    for position, row in enumerate(rows):
        if (what := problem(row)) is not None:
            return rows[:position], InputError(f"{where}row {before + position + 1:,} {what}")
    return rows, error


def check_delimiter(delimiter: str | None) -> str | None:
    """Return the delimiter, a tab for the word `tab`, after checking that it can separate cells."""
    found = delimiter if delimiter is None else _WORDS.get(delimiter, delimiter)
    if found is None or (
        len(found) == 1 and found.isascii() and not found.isalnum() and found not in '"\r\n\0+-._'
    ):
        return found
    raise InputError(
        f"the delimiter must be one character such as , ; | or the word tab, got {delimiter!r};"
        " remove it to find it from the header"
    )


def _header(pieces: Iterator[str], wanted: Sequence[str], allowed: str, where: str) -> tuple[CsvHeader, str]:
    """Return the header, read with the delimiter that fits, and the following text."""
    text, found = "", {}
    for piece in pieces:
        text += piece
        found = {delimiter: _first_row(text, delimiter) for delimiter in allowed}
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
    reason = _OPEN if _OPEN in reasons else reasons[0]
    raise InputError(f"{where}the header is not CSV: {_REASONS.get(reason[:8], reason)}; fix it")


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
    """Return whether lines hold a carriage return that ends no line and stands in no cell of their row."""
    # the csv module passes over some; read by other rules, they end rows
    inside = sum(len(_LONE.findall(cell)) for cell in row)
    return len(_LONE.findall("\n".join([*lines, ""]))) != inside


def _after(text: str, lines: int) -> str:
    return [*text.split("\n", lines), ""][lines]


def _reader(text: str, delimiter: str) -> Any:
    # not splitlines: it ends lines at characters that may stand in a cell
    return csv.reader(StringIO(text, newline="\n"), delimiter=delimiter, strict=True)


# blanks around a row, and within JSON
_BLANK: Final = " \t\r"
_SPACE: Final = re.compile(r"[ \t\r\n]*")
# what stands between two objects of an array, and after the last
_COMMA: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_CLOSED: Final = re.compile(r"[ \t\r\n]*\][ \t\r\n]*")
# rows of JSON that does not stand on lines, taken together
_TOGETHER: Final = 4096
_WHOLE: Final = re.compile("-?[0-9]+")
# floats below are whole numbers where they have no fraction, as `as_group` has it
_LARGEST: Final = 10**18


class Token(str):
    """A number of JSON as the text that it is written as."""

    __slots__ = ()


class Nested(Token):
    """A list or an object of JSON likewise."""

    __slots__ = ()


class JsonRows:
    """The rows of JSON in batches, with the columns found so far; `where` starts an error."""

    def __init__(
        self, reader: ByteReader, start: bytes, where: str = "", on_lines: bool | None = None
    ) -> None:
        self._on_lines = is_json_line(start) if on_lines is None else on_lines
        self._pieces: Iterator[str] | Iterator[list[str]] = (
            whole_lines(reader, start) if self._on_lines else self._scattered(_texts(reader, start))
        )
        self.where, self.read = where, 0
        self.names: dict[str, None] = {}
        # what reads lines all at once, if it can
        self.at_once: Callable[[str], Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Yield all rows up to the first that is none, then raise what is wrong with that."""
        for piece in self._pieces:
            if isinstance(piece, list):
                texts = piece
            elif self.at_once is not None and (quick := self.at_once(piece)) is not None:
                self.read += quick.scores.size
                if quick.scores.size:
                    yield quick
                continue
            else:
                texts = [line for text in piece.split("\n") if (line := text.strip(_BLANK))]
            rows: list[Any] | None = _flat_objects(texts)
            error = None
            if rows is None:
                found: list[Any] = [_object(text, self._on_lines) for text in texts]
                rows, error = up_to_first(
                    found, lambda one: one if isinstance(one, str) else None, None, self.read, self.where
                )
            self.names |= dict.fromkeys(chain.from_iterable(rows))
            self.read += len(rows)
            if rows:
                whole = "".join(texts)
                yield RowBatch(rows, texts[: len(rows)], whole.isascii() or is_unicode(whole))
            if error:
                raise error

    def numbers(self, name: str, batch: RowBatch) -> list[float] | None:
        """Return a column of the last batch as doubles (NaN if missing), None if it holds anything else."""
        values = [row.get(name) for row in batch.rows]
        if not set(map(type, values)) <= {Token, type(None)}:
            return None
        return [nan if value is None else float(value) for value in values]

    def refuse_odd(self, columns: Iterable[Sequence[Any]]) -> None:
        """Refuse the first row of the last batch with a text that is not UTF-8, as databases need."""
        for column in columns:
            whole = "".join(one for one in column if isinstance(one, str))
            if not whole.isascii() and not is_unicode(whole):
                place = next(at for at, one in enumerate(column, 1) if not is_unicode(str(one)))
                row = self.read - len(column) + place
                raise InputError(f"{self.where}row {row:,} is not UTF-8; convert the file first")

    def column(self, name: str, batch: RowBatch) -> list[str | None]:
        """Return a column of the last batch as texts, None where missing; a list or an object is refused."""
        values = [row.get(name) for row in batch.rows]
        kinds = set(map(type, values))
        if kinds == {str}:
            return cast("list[str | None]", values)
        if Nested in kinds:
            before = self.read - len(values)
            _, error = up_to_first(batch.rows, lambda row: nested_in(row, name), None, before, self.where)
            raise cast(InputError, error)
        if kinds == {Token}:  # most often few numbers many times; beside texts, 7 and "7" would be one
            texts = {value: known_as(value) for value in set(values)}
            return [texts[value] for value in values]
        return list(map(known_as, values))

    def _scattered(self, pieces: Iterator[str]) -> Iterator[list[str]]:
        """Yield the texts of objects in an array or in a sequence, each on one line."""
        text = _SPACE.sub("", next(pieces, ""), 1)
        array = text.startswith("[")
        place, between, found = int(array), _SPACE, list[str]()
        while True:
            gap, end = between.match(text, place), 0
            with suppress(ValueError, RecursionError):
                if gap is not None and text.startswith("{", gap.end()):
                    end = _DECODER.raw_decode(text, gap.end())[1]
            if gap is not None and end:
                found.append(text[gap.end() : end].replace("\n", " ").replace("\r", " "))
                place, between = end, _COMMA if array else _SPACE
                if len(found) == _TOGETHER:
                    yield found
                    found = []
            elif len(text) - place <= LONGEST and (more := next(pieces, "")):
                text, place = text[place:] + more, 0
            else:
                break
        if found:
            yield found
        if not (_CLOSED if array else _SPACE).fullmatch(text, place):
            raise InputError(f"{self.where}row {self.read + 1:,} {_NO_OBJECT}; fix that row")


def read_start(reader: ByteReader) -> bytes:
    """Return the bytes up to the first line with content, and the bytes read with them."""
    start = b""
    while chunk := reader.read1(CHUNK):
        start += chunk
        if b"\n" in _content(start) or start[:4] == PARQUET or len(start) > LONGEST:
            break
    return start


def is_json_line(start: bytes) -> bool:
    """Return whether the first line with content is a JSON object."""
    line = _content(start).split(b"\n", 1)[0]
    try:
        return line[:1] == b"{" and isinstance(_DECODER.decode(line.decode("utf-8", "surrogateescape")), dict)
    except (ValueError, RecursionError):
        return False


def _content(start: bytes) -> bytes:
    return start.removeprefix(MARK).lstrip()


def _texts(reader: ByteReader, start: bytes) -> Iterator[str]:
    """Yield text as it comes, never empty; bytes that are not UTF-8 become surrogates."""
    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    chunk, waiting = start.removeprefix(MARK), ""
    while chunk:
        waiting += decoder.decode(chunk)
        if waiting.strip():
            yield waiting
            waiting = ""
        chunk = reader.read1(CHUNK)
    if rest := waiting + decoder.decode(b"", True):
        yield rest


def _flat_objects(texts: list[str]) -> list[dict[str, Any]] | None:
    """Return the objects of texts that are one each and hold none, read together; None if in doubt."""
    joined = ",".join(texts)
    if joined.count("{") != len(texts) or any(sign in joined for sign in ("[", " :", "\t:", "\r:")):
        return None
    if {text[0] for text in texts} != {"{"} or {text[-1] for text in texts} != {"}"}:
        return None
    try:
        rows: list[dict[str, Any]] = _DECODER.decode(f"[{joined}]")
    except (ValueError, RecursionError):
        return None
    # with one { each, as many objects as texts are one on each; a name ends in ": as nothing else does
    return rows if len(rows) == len(texts) and joined.count('":') == sum(map(len, rows)) else None


class _TwinsError(ValueError):
    """An object with the same name twice."""


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwinsError(next(name for name in names if names.count(name) > 1))
    return found


_NUMBERS: Final[dict[str, Any]] = dict.fromkeys(("parse_float", "parse_int", "parse_constant"), Token)
_DECODER: Final = json.JSONDecoder(**_NUMBERS)
_CAREFUL: Final = json.JSONDecoder(object_pairs_hook=_without_twins, **_NUMBERS)
_NO_OBJECT: Final = "is not a JSON object"


def _object(text: str, on_line: bool) -> Any:
    """Return the object in a text, or the words for its error."""
    try:
        found = _CAREFUL.decode(text)
    except _TwinsError as twins:
        return f"has two columns named {quoted(str(twins))}; rename one of them"
    except (ValueError, RecursionError):
        found = None
    if type(found) is not dict:
        return f"{_NO_OBJECT}{' on one line' * on_line}; fix that row"
    if not any(isinstance(value, (dict, list)) for value in found.values()):
        return found
    # nested values keep the text in which they are written
    place = _after_space(text, 1)
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        start = _after_space(text, _after_space(text, place) + 1)
        value, end = _DECODER.raw_decode(text, start)
        found[name] = Nested(text[start:end]) if isinstance(value, (dict, list)) else value
        place = _after_space(text, end)
        if text[place] == ",":
            place = _after_space(text, place + 1)
    return found


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def nested_in(row: dict[str, Any], column: str) -> str | None:
    """Return the words for the error of a row with a list or an object in a column, else None."""
    if not isinstance(row.get(column), Nested):
        return None
    return f"has a list or an object in column {quoted(column)}; name a column of single values"


def known_as(value: Any) -> str | None:
    """Return the text of a value that is not nested; 7.0 becomes 7, as in Parquet."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if _WHOLE.fullmatch(value):
        return "0" if value == "-0" else str(value)
    number = float(value)
    if isnan(number):
        return None
    if not isfinite(number):
        return str(value)
    return str(int(number)) if number.is_integer() and abs(number) < _LARGEST else repr(number)


@contextmanager
def without_collector() -> Iterator[None]:
    """Switch off the search for cycles: rows have none, and it would take a fifth of the time."""
    usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()
