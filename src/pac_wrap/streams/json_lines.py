"""The rows of JSON tables with verdicts, as JSON lines or CSV: a row stays the text it is."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal, DecimalException
from math import isinf, isnan
from typing import Any, Final

import numpy as np

from pac_wrap.base.arguments import OnMissing
from pac_wrap.errors import InputError
from pac_wrap.streams.answers import Asked, Endings, ScoredRows, csv_text, not_utf8
from pac_wrap.tables.columns import (
    missing_scores,
    read_scores,
    refuse_added,
    require_column,
    require_in_all,
)
from pac_wrap.tables.files.csv_files import opened_json
from pac_wrap.tables.files.text_format import JsonRows, Token, nested_in, up_to_first

# a text, which stays as it is, or a number that many write and JSON does not have
_NOT_JSON: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?Infinity|NaN)')
_WORDS: Final = {None: "", True: "true", False: "false"}
# whole numbers of so few digits that both a double and 64 bits hold them, each followed by a comma
_SMALL: Final = re.compile("(?:(?:0|-?[1-9][0-9]{0,14}),)*+")


class JsonLines:
    """Batches of the rows of one or more JSON tables, each opened in its turn.

    `tables` are named; `columns` are those of all of them, or none: then the first row has those of CSV.
    """

    def __init__(
        self,
        tables: Iterable[tuple[str, AbstractContextManager[JsonRows]]],
        asked: Asked,
        columns: Sequence[str] = (),
    ) -> None:
        self._tables, self._asked, self.read = tables, asked, 0
        # no row may have one of them
        self._added = {one.lower() for one in asked.added}
        self.endings = Endings("", asked)
        self._names = dict.fromkeys(columns)
        if columns:
            refuse_added(columns, asked.added)

    def head(self) -> str:
        """Return the names of the columns as CSV, if it is written."""
        return csv_text([[*self._names, *self._asked.added]]) if self._asked.as_csv else ""

    def __iter__(self) -> Iterator[ScoredRows]:
        """Yield all rows up to the first that cannot be decided, then raise what is wrong with that."""
        for name, opened in self._tables:
            with opened as table:
                self.endings, self._table = Endings(name, self._asked), table
                yield from self._batches(table)

    def refuse_odd(self, columns: Iterable[Sequence[Any]]) -> None:
        """Refuse the first row of the last batch whose texts are not UTF-8, as a database and Parquet are."""
        self._table.refuse_odd(columns)

    def text(self, batch: ScoredRows, codes: list[int]) -> str:
        """Return rows with the answers of these codes as JSON lines, or as CSV."""
        if self._asked.as_csv:
            cells, answers = self.cells(batch.rows), self.endings.cells
            return csv_text([*row, *answers[code]] for row, code in zip(cells, codes, strict=True))
        endings = self.endings.json
        # an object without a column has no comma before the first
        return "".join(
            [
                text[:-1] + endings[code] if row else "{" + endings[code][1:]
                for text, row, code in zip(batch.texts, batch.rows, codes, strict=True)
            ]
        )

    def cells(self, rows: list[Any]) -> Iterator[list[str]]:
        """Yield the values of each row as cells: texts as they are, all else as it is written."""
        for row in rows:
            values = map(row.get, self._names)
            yield [value if isinstance(value, str) else _WORDS[value] for value in values]

    def _batches(self, table: JsonRows) -> Iterator[ScoredRows]:
        """Yield the batches of a table, then raise what is wrong with the row after them."""
        score, group, as_csv = self._asked.score, self._asked.group, self._asked.as_csv
        for found in table:
            rows, error, before = found.rows, None, table.read - len(found.rows)
            if not self._names:
                for column in self._asked.wanted:
                    require_column(column, list(rows[0]))
                refuse_added(rows[0], self._added)
                if as_csv and (what := not_utf8(list(rows[0]), "jsonl")):
                    raise InputError(f"{table.where}row 1 {what}")
                self._names = dict.fromkeys(rows[0])
            if any(name.lower() in self._added for name in table.names):
                rows, error = up_to_first(rows, self._has_added, error, before, table.where)
            if as_csv and not table.names.keys() <= self._names.keys():
                rows, error = up_to_first(rows, self._new_name, error, before, table.where)
            whole = "".join(found.texts)
            if as_csv and (not found.unicode or "\\" in whole):
                rows, error = up_to_first(rows, self._not_utf8, error, before, table.where)
            if group is not None:
                rows, error = up_to_first(rows, lambda row: nested_in(row, group), error, before, table.where)
            values = [row.get(score) for row in rows]
            scores, bad = read_scores(score, values, before, table.where, self._asked.on_missing)
            self.read += scores.size
            texts = found.texts[: scores.size]
            if "Infinity" in whole or "NaN" in whole:
                texts = [_NOT_JSON.sub(_quoted, text) for text in texts]
            if scores.size:
                rows = rows[: scores.size]
                groups = None if group is None else table.column(group, found._replace(rows=rows))
                yield ScoredRows(scores, rows, texts, groups, table.names)
            if problem := bad or error:
                raise problem

    def _has_added(self, found: dict[str, Any]) -> str | None:
        taken = [name for name in found if name.lower() in self._added]
        return f"has a column {taken[0]!r} already; rename it or drop it first" if taken else None

    def _new_name(self, found: dict[str, Any]) -> str | None:
        for name in found:
            if name not in self._names:
                return f"has a column {name!r}, but the first row does not; --format jsonl keeps it as it is"
        return None

    def _not_utf8(self, found: dict[str, Any]) -> str | None:
        return not_utf8([one for pair in found.items() for one in pair if isinstance(one, str)], "jsonl")


def _quoted(found: re.Match[str]) -> str:
    return f'"{found[1]}"' if found[1] else found[0]


def json_columns(files: Sequence[Any], wanted: Sequence[str], *, whole: bool) -> list[str]:
    """Return the columns of JSON files, all of them if `whole`; one that is wanted must be in every file."""
    names: list[list[str]] = []
    for file in files:
        with opened_json(file) as table:
            for _ in table:
                if not whole and table.names.keys() >= set(wanted):
                    break
            names.append(list(table.names))
    require_in_all(files, names, wanted)
    columns = list(dict.fromkeys(name for known in names for name in known))
    for column in wanted if columns else ():
        require_column(column, columns)
    return columns


def refuse_json_scores(files: Sequence[Any], score: str, on_missing: OnMissing) -> None:
    """Refuse the first row that is none, the first score that is no number, or all that are missing."""
    rows, missing = 0, list[int]()
    for file in files:
        with opened_json(file) as table:
            for batch in table:
                values = [row.get(score) for row in batch.rows]
                where, before = table.where if len(files) > 1 else "", table.read - len(values)
                scores, error = read_scores(score, values, before, where, "abstain")
                if error is not None:
                    raise error
                missing += (rows + 1 + np.flatnonzero(np.isnan(scores))).tolist()
                rows += scores.size
    if missing and on_missing == "stop":
        raise missing_scores(score, len(missing), rows, missing[0])


class ColumnKind:
    """What a column of JSON is in a file that has types: numbers, where each value is one and none changes.

    >>> kind = ColumnKind()
    >>> kind.see([Token("9007199254740993"), None])
    >>> kind.name
    'BIGINT'
    >>> kind.see([Token("1.5")])
    >>> kind.name
    'VARCHAR'
    """

    def __init__(self) -> None:
        self._whole = self._exact = True
        self._seen = False

    def see(self, values: Sequence[Any]) -> None:
        """Look at some more values."""
        kinds = set(map(type, values)) - {type(None)}
        if not kinds or not (self._whole or self._exact):
            return
        self._seen = True
        if kinds != {Token}:
            self._whole = self._exact = False
            return
        tokens = [value for value in values if value is not None]
        if not _SMALL.fullmatch(",".join(tokens) + ","):
            self._whole = self._whole and all(map(_is_whole, tokens))
            self._exact = self._exact and all(map(_is_exact, tokens))

    @property
    def name(self) -> str:
        """The type in DuckDB: 64-bit integers, doubles that are the numbers as written, or else texts."""
        if not self._seen or not (self._whole or self._exact):
            return "VARCHAR"
        return "BIGINT" if self._whole else "DOUBLE"


def _is_whole(token: str) -> bool:
    return re.fullmatch("0|-?[1-9][0-9]{0,18}", token) is not None and -(2**63) <= int(token) < 2**63


def _is_exact(token: str) -> bool:
    """Return whether the shortest text of the nearest double is the same number."""
    number = float(token)
    if isinf(number) or isnan(number):
        return token in ("Infinity", "-Infinity", "NaN")
    try:
        return repr(number) == token or Decimal(repr(number)) == Decimal(token)
    except DecimalException:
        return False


def cell(value: Any) -> str | None:
    """Return a value as the text of a cell, None if there is none."""
    return value if value is None or isinstance(value, str) else _WORDS[value]
