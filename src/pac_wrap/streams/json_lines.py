"""JSON lines with verdicts, as JSON lines or CSV, as they come: a line stays the text it is."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from pac_wrap.base.foreign import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.streams.answers import Asked, Endings, ScoredRows, csv_text, json_text, not_utf8
from pac_wrap.tables.columns import read_scores, refuse_added, require_column
from pac_wrap.tables.files.text_format import ByteReader, up_to_first, whole_lines

_BLANK: Final = " \t\r"
# a text, which stays as it is, or a number that many write and JSON does not have
_NOT_JSON: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?Infinity|NaN)')
_Scan = Callable[[str, int], tuple[Any, int]]


class JsonLines:
    """Batches of the objects of JSON lines, which come from a table of a name."""

    def __init__(self, reader: ByteReader, start: bytes, name: str, asked: Asked) -> None:
        self._pieces = whole_lines(reader, start)
        score, as_csv = asked.score, asked.as_csv
        self._asked, self._score, self._as_csv, self.read = asked, score, as_csv, 0
        self._endings = Endings(name, asked)
        # no row may have one of them, and a row in whose text none stands has none
        self._added = tuple(one.lower() for one in asked.added)
        self._names: dict[str, None] = {}
        self._quoted = json_text(score)
        self._quick: _Scan = json.JSONDecoder().raw_decode
        # on the way to CSV, numbers keep their own text, and of two values with one name neither may be lost
        kept: dict[str, Any] = dict.fromkeys(("parse_float", "parse_int", "parse_constant"), str)
        hook = partial(_without_twins, None if as_csv else score)
        self._careful: _Scan = json.JSONDecoder(object_pairs_hook=hook, **(kept if as_csv else {})).raw_decode

    def head(self) -> str:
        """Return the names of the columns as CSV, if it is written."""
        return csv_text([[*self._names, *self._asked.added]]) if self._as_csv else ""

    def __iter__(self) -> Iterator[ScoredRows]:
        """Yield all rows up to the first that cannot be decided, then raise what is wrong with that."""
        for piece in self._pieces:
            yield from self._batches(piece)

    def text(self, batch: ScoredRows, codes: list[int]) -> str:
        """Return rows with the answers of these codes as JSON lines, or as CSV."""
        if self._as_csv:
            return csv_text(
                [*row, *self._endings.cells[code]] for row, code in zip(batch.rows, codes, strict=True)
            )
        return "".join(
            [text[:-1] + self._endings.json[code] for text, code in zip(batch.texts, codes, strict=True)]
        )

    def _batches(self, piece: str) -> Iterator[ScoredRows]:
        """Yield the batch of a piece of text, then raise what is wrong with the row after it."""
        lines = [line for text in piece.split("\n") if (line := text.strip(_BLANK))]
        escaped, lowered = "\\" in piece, piece.lower()
        found, error = self._objects(piece, lines, escaped)
        if found and not self._names:
            for column in self._asked.wanted:
                require_column(column, list(found[0]))
            refuse_added(found[0], self._added)
            if self._as_csv and (what := not_utf8(list(found[0]), "jsonl")):
                raise InputError(f"row 1 {what}")
            self._names = dict.fromkeys(found[0])
        if escaped or any(name in lowered for name in self._added):
            found, error = up_to_first(found, self._has_added, error, self.read)
        rows: list[list[Any]] = []
        if self._as_csv:
            if not all(one.keys() <= self._names.keys() for one in found):
                found, error = up_to_first(found, self._new_name, error, self.read)
            rows = [list(map(one.get, self._names)) for one in found]
            if set(map(type, chain.from_iterable(rows))) != {str}:
                rows = [self._cells(row, line) for row, line in zip(rows, lines, strict=False)]
            if escaped or not is_unicode(piece):
                rows, error = up_to_first(rows, lambda row: not_utf8(row, "jsonl"), error, self.read)
                found = found[: len(rows)]
        values = [one.get(self._score) for one in found]
        scores, bad = read_scores(self._score, values, self.read, "", self._asked.on_missing)
        self.read += scores.size
        if "Infinity" in piece or "NaN" in piece:
            lines = [_NOT_JSON.sub(_quoted, line) for line in lines]
        if scores.size:
            group = self._asked.group
            groups = None if group is None else [one.get(group) for one in found[: scores.size]]
            yield ScoredRows(scores, rows[: scores.size], lines[: scores.size], groups)
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

    def _has_added(self, found: dict[str, Any]) -> str | None:
        taken = [name for name in found if name.lower() in self._added]
        return f"has a column {taken[0]!r} already; rename it or drop it first" if taken else None

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
