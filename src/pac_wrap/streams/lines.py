"""Lines with verdicts, CSV or JSON, as they come: cells stay the text they are, and so does a JSON line."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from io import StringIO
from itertools import chain
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, Final, NamedTuple

from pac_wrap.base.arguments import Scores
from pac_wrap.base.foreign import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.tables.columns import read_scores, refuse_added, require_column
from pac_wrap.tables.text_format import ByteReader, CsvRows, up_to_first, whole_lines

# the columns that an answer fills
ADDED: Final = ("verdict", "prediction_set")
# 1 for label 0, 2 for label 1, added up
_SETS: Final = ("{}", "{0}", "{1}", "{0,1}")
# every set with every verdict; the code of an answer is its place here
ANSWERS: Final = [(str(verdict), text) for text in _SETS for verdict in (-1, 0, 1)]
# many numbers as JSON writes them, each followed by a comma; possessive, so that it never backtracks
_JSON_NUMBERS: Final = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+,)*+")
_BLANK = " \t\r"
# a text, which stays as it is, or a number that many write and JSON does not have
_NOT_JSON: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?Infinity|NaN)')
_JSON_ENDINGS: Final = [
    f',"verdict":{verdict},"prediction_set":"{labels}"}}\n' for verdict, labels in ANSWERS
]
_Scan = Callable[[str, int], tuple[Any, int]]


class ScoredRows(NamedTuple):
    """A few rows with their scores: each row as cells, or its own text where that can stand as it is."""

    scores: Scores
    rows: list[list[str]]
    texts: list[str]


class CsvLines:
    """Batches of the rows of one or more CSV tables, each opened in its turn; columns are matched by name.

    `columns` are those of all tables; `as_csv` says that CSV is to be written.
    """

    def __init__(
        self,
        tables: Iterable[AbstractContextManager[CsvRows]],
        columns: Sequence[str],
        score: str,
        as_csv: bool,
    ) -> None:
        require_column(score, list(columns))
        refuse_added(columns, ADDED)
        self._tables, self._columns, self._score, self._as_csv = tables, tuple(columns), score, as_csv
        self.read = 0
        keys = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in columns]
        self._object = "{" + ",".join(f"{key}:%s" for key in keys) + "%s"
        self._csv_endings = [f",{_csv_text([answer])}" for answer in ANSWERS]

    def head(self) -> str:
        """Return the names of the columns as CSV, if it is written."""
        return _csv_text([[*self._columns, *ADDED]]) if self._as_csv else ""

    def __iter__(self) -> Iterator[ScoredRows]:
        """Yield all rows up to the first that cannot be decided, then raise what is wrong with that."""
        for opened in self._tables:
            with opened as table:
                yield from self._batches(table)

    def _batches(self, table: CsvRows) -> Iterator[ScoredRows]:
        names = table.header.names
        if not self._as_csv and (what := _not_utf8(list(names), "csv")):
            raise InputError(f"{table.where}the header {what}")
        self._place = names.index(self._score)
        # the place of each column that is written; a file may lack one that others have
        stands = {name: place for place, name in enumerate(names)}
        self._places = [stands.get(name) for name in self._columns]
        self._as_read = names == self._columns
        self._with_commas = table.header.delimiter == ","
        for cells, texts, unicode in table:
            rows, error, before = cells, None, table.read - len(cells)
            if not self._as_csv and not unicode:
                rows, error = up_to_first(cells, lambda row: _not_utf8(row, "csv"), None, before, table.where)
            values = [row[self._place] for row in rows]
            scores, bad = read_scores(self._score, values, before, table.where)
            self.read += scores.size
            if scores.size:
                yield ScoredRows(scores, rows[: scores.size], texts[: scores.size])
            if problem := bad or error:
                raise problem

    def text(self, batch: ScoredRows, codes: list[int]) -> str:
        """Return rows with the answers of these codes as CSV, or as JSON lines."""
        if not self._as_csv:
            cells = list(zip(*batch.rows, strict=True))
            columns = [self._json(place, cells) for place in self._places]
            endings = [_JSON_ENDINGS[code] for code in codes]
            return "".join([self._object % row for row in zip(*columns, endings, strict=True)])
        if batch.texts and self._as_read and self._with_commas:
            pairs = zip(batch.texts, codes, strict=True)
            return "".join([text + self._csv_endings[code] for text, code in pairs])
        rows: Iterable[list[str]] = batch.rows
        if not self._as_read:
            rows = ([row[place] if place is not None else "" for place in self._places] for row in rows)
        return _csv_text([*row, *ANSWERS[code]] for row, code in zip(rows, codes, strict=True))

    def _json(self, place: int | None, cells: list[tuple[str, ...]]) -> Iterable[str]:
        """Return one column as JSON texts; the score is a number, every other cell a text."""
        if place is None:
            return ["null"] * len(cells[self._place])
        return _json_numbers(cells[place]) if place == self._place else map(encode_basestring, cells[place])


def _csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV."""
    listed, out = list(rows), StringIO(newline="")
    usual = csv.writer(out, lineterminator="\n")
    usual.writerows(listed)
    if "\r" in out.getvalue():  # older versions of csv do not quote it
        out = StringIO(newline="")
        usual = csv.writer(out, lineterminator="\n")
        quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for row in listed:
            (quoted if any("\r" in cell for cell in row) else usual).writerow(row)
    return out.getvalue()


def _not_utf8(row: list[str], same: str) -> str | None:
    """Return what is wrong with a row that is not UTF-8 and is to change its format; `same` would keep it."""
    text = "".join(row)
    whole = text.isascii() or is_unicode(text)
    return None if whole else f"is not UTF-8; --format {same} keeps it as it is"


def _json_numbers(cells: Sequence[str]) -> Sequence[str]:
    """Return cells that hold numbers as JSON: their own text if JSON allows it, infinities as texts."""
    return cells if _JSON_NUMBERS.fullmatch(",".join(cells) + ",") else [_json_number(cell) for cell in cells]


def _json_number(cell: str) -> str:
    if _JSON_NUMBERS.fullmatch(f"{cell},"):
        return cell
    number = float(cell)
    return repr(number) if isfinite(number) else '"Infinity"' if number > 0.0 else '"-Infinity"'


class JsonLines:
    """Batches of the objects of JSON lines; `as_csv` says that CSV is to be written."""

    def __init__(self, reader: ByteReader, start: bytes, score: str, as_csv: bool) -> None:
        self._pieces = whole_lines(reader, start)
        self._score, self._as_csv, self.read = score, as_csv, 0
        self._names: dict[str, None] = {}
        self._quoted = json.dumps(score, ensure_ascii=False)
        self._quick: _Scan = json.JSONDecoder().raw_decode
        # on the way to CSV, numbers keep their own text, and of two values with one name neither may be lost
        kept: dict[str, Any] = dict.fromkeys(("parse_float", "parse_int", "parse_constant"), str)
        hook = partial(_without_twins, None if as_csv else score)
        self._careful: _Scan = json.JSONDecoder(object_pairs_hook=hook, **(kept if as_csv else {})).raw_decode

    def head(self) -> str:
        """Return the names of the columns as CSV, if it is written."""
        return _csv_text([[*self._names, *ADDED]]) if self._as_csv else ""

    def __iter__(self) -> Iterator[ScoredRows]:
        """Yield all rows up to the first that cannot be decided, then raise what is wrong with that."""
        for piece in self._pieces:
            yield from self._batches(piece)

    def text(self, batch: ScoredRows, codes: list[int]) -> str:
        """Return rows with the answers of these codes as JSON lines, or as CSV."""
        if self._as_csv:
            return _csv_text([*row, *ANSWERS[code]] for row, code in zip(batch.rows, codes, strict=True))
        return "".join(
            [text[:-1] + _JSON_ENDINGS[code] for text, code in zip(batch.texts, codes, strict=True)]
        )

    def _batches(self, piece: str) -> Iterator[ScoredRows]:
        """Yield the batch of a piece of text, then raise what is wrong with the row after it."""
        lines = [line for text in piece.split("\n") if (line := text.strip(_BLANK))]
        escaped, lowered = "\\" in piece, piece.lower()
        found, error = self._objects(piece, lines, escaped)
        if found and not self._names:
            require_column(self._score, list(found[0]))
            refuse_added(found[0], ADDED)
            if self._as_csv and (what := _not_utf8(list(found[0]), "jsonl")):
                raise InputError(f"row 1 {what}")
            self._names = dict.fromkeys(found[0])
        if escaped or any(name in lowered for name in ADDED):
            found, error = up_to_first(found, _has_added, error, self.read)
        rows: list[list[Any]] = []
        if self._as_csv:
            if not all(one.keys() <= self._names.keys() for one in found):
                found, error = up_to_first(found, self._new_name, error, self.read)
            rows = [list(map(one.get, self._names)) for one in found]
            if set(map(type, chain.from_iterable(rows))) != {str}:
                rows = [self._cells(row, line) for row, line in zip(rows, lines, strict=False)]
            if escaped or not is_unicode(piece):
                rows, error = up_to_first(rows, lambda row: _not_utf8(row, "jsonl"), error, self.read)
                found = found[: len(rows)]
        scores, bad = read_scores(self._score, [one.get(self._score) for one in found], self.read)
        self.read += scores.size
        if "Infinity" in piece or "NaN" in piece:
            lines = [_NOT_JSON.sub(_quoted, line) for line in lines]
        if scores.size:
            yield ScoredRows(scores, rows[: scores.size], lines[: scores.size])
        if problem := bad or error:
            raise problem

    def _objects(
        self, piece: str, lines: list[str], escaped: bool
    ) -> tuple[list[dict[str, Any]], InputError | None]:
        """Return the objects of lines, up to the first line that is none, and what is wrong with that."""
        # without a backslash the name of the score has one spelling: found once per line, it has no twin
        if not self._as_csv and not escaped and piece.count(self._quoted) == len(lines):
            try:
                pairs = [self._quick(line, 0) for line in lines]
            except (ValueError, RecursionError):
                pairs = []
            found, ends = [one for one, _ in pairs], [end for _, end in pairs]
            whole = ends == list(map(len, lines)) and set(map(type, found)) == {dict}
            if whole and all(self._score in one for one in found):
                return found, None
        found = [_object(line, self._careful) for line in lines]
        return up_to_first(found, _not_an_object, None, self.read)

    def _new_name(self, found: dict[str, Any]) -> str | None:
        for name in found:
            if name not in self._names:
                return f"has a column {name!r}, but the first row does not; --format jsonl keeps it as it is"
        return None

    def _cells(self, values: list[Any], line: str) -> list[str]:
        """Return the values of an object as cells; what is nested becomes JSON text."""
        if any(isinstance(value, (dict, list)) for value in values):
            plain = json.loads(line)
            values = [
                json.dumps(plain[name], ensure_ascii=False) if isinstance(value, (dict, list)) else value
                for name, value in zip(self._names, values, strict=True)
            ]
        words = {None: "", True: "true", False: "false"}
        return [value if isinstance(value, str) else words[value] for value in values]


def _quoted(found: re.Match[str]) -> str:
    return f'"{found[1]}"' if found[1] else found[0]


class _TwinsError(ValueError):
    """An object names a key twice."""


def _without_twins(only: str | None, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs as a dict; `only` is the one name that may not occur twice, or none may."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        for name in names if only is None else [only]:
            if names.count(name) > 1:
                raise _TwinsError(name)
    return found


def _object(line: str, scan: _Scan) -> Any:
    """Return the object on a line, or the words for what is wrong with it."""
    try:
        found, end = scan(line, 0)
    except _TwinsError as twins:
        return f"has two columns named {str(twins)!r}; rename one of them"
    except (ValueError, RecursionError):
        found, end = None, 0
    if end == len(line) and type(found) is dict:
        return found
    return "is not a JSON object on one line; fix that row"


def _not_an_object(found: Any) -> str | None:
    return None if isinstance(found, dict) else str(found)


def _has_added(found: dict[str, Any]) -> str | None:
    taken = [name for name in found if name.lower() in ADDED]
    return f"has a column {taken[0]!r} already; rename it or drop it first" if taken else None
