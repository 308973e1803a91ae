"""The rows of CSV tables with verdicts, as CSV or JSON lines: cells stay the text they are."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from json.encoder import encode_basestring
from math import isfinite, isnan
from typing import Final

from pac_wrap.errors import InputError
from pac_wrap.streams.answers import Asked, Endings, ScoredRows, csv_text, json_text, not_utf8
from pac_wrap.tables.columns import read_scores, refuse_added, require_column
from pac_wrap.tables.files.text_format import CsvRows, up_to_first

# many numbers as JSON writes them, each followed by a comma; possessive, so that it never backtracks
_JSON_NUMBERS: Final = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+,)*+")


class CsvLines:
    """Batches of the rows of one or more CSV tables, each opened in its turn; columns are matched by name.

    `tables` are named; `columns` are those of all of them.
    """

    def __init__(
        self,
        tables: Iterable[tuple[str, AbstractContextManager[CsvRows]]],
        columns: Sequence[str],
        asked: Asked,
    ) -> None:
        for column in asked.wanted:
            require_column(column, list(columns))
        refuse_added(columns, asked.added)
        self._tables, self._columns, self._asked, self._as_csv = tables, tuple(columns), asked, asked.as_csv
        self.read = 0
        keys = [json_text(name).replace("%", "%%") for name in columns]
        self._object = "{" + ",".join(f"{key}:%s" for key in keys) + "%s"
        self._endings = Endings("", asked)

    def head(self) -> str:
        """Return the names of the columns as CSV, if it is written."""
        return csv_text([[*self._columns, *self._asked.added]]) if self._as_csv else ""

    def __iter__(self) -> Iterator[ScoredRows]:
        """Yield all rows up to the first that cannot be decided, then raise what is wrong with that."""
        for name, opened in self._tables:
            with opened as table:
                self._endings = Endings(name, self._asked)
                yield from self._batches(table)

    def _batches(self, table: CsvRows) -> Iterator[ScoredRows]:
        names = table.header.names
        if not self._as_csv and (what := not_utf8(list(names), "csv")):
            raise InputError(f"{table.where}the header {what}")
        self._place = names.index(self._asked.score)
        group = None if self._asked.group is None else names.index(self._asked.group)
        # the place of each column that is written; a file may lack one that others have
        stands = {name: place for place, name in enumerate(names)}
        self._places = [stands.get(name) for name in self._columns]
        self._as_read = names == self._columns
        self._with_commas = table.header.delimiter == ","
        for cells, texts, unicode in table:
            rows, error, before = cells, None, table.read - len(cells)
            if not self._as_csv and not unicode:
                rows, error = up_to_first(cells, lambda row: not_utf8(row, "csv"), None, before, table.where)
            values = [row[self._place] for row in rows]
            scores, bad = read_scores(self._asked.score, values, before, table.where, self._asked.on_missing)
            self.read += scores.size
            if scores.size:
                rows = rows[: scores.size]
                # an empty cell is a missing value, as in a table
                groups = None if group is None else [row[group] or None for row in rows]
                yield ScoredRows(scores, rows, texts[: scores.size], groups)
            if problem := bad or error:
                raise problem

    def text(self, batch: ScoredRows, codes: list[int]) -> str:
        """Return rows with the answers of these codes as CSV, or as JSON lines."""
        if not self._as_csv:
            cells = list(zip(*batch.rows, strict=True))
            columns = [self._json(place, cells) for place in self._places]
            endings = [self._endings.json[code] for code in codes]
            return "".join([self._object % row for row in zip(*columns, endings, strict=True)])
        if batch.texts and self._as_read and self._with_commas:
            pairs = zip(batch.texts, codes, strict=True)
            return "".join([text + self._endings.csv[code] for text, code in pairs])
        rows: Iterable[list[str]] = batch.rows
        if not self._as_read:
            rows = ([row[place] if place is not None else "" for place in self._places] for row in rows)
        return csv_text([*row, *self._endings.cells[code]] for row, code in zip(rows, codes, strict=True))

    def _json(self, place: int | None, cells: list[tuple[str, ...]]) -> Iterable[str]:
        """Return one column as JSON texts; the score is a number, every other cell a text."""
        if place is None:
            return ["null"] * len(cells[self._place])
        return _json_numbers(cells[place]) if place == self._place else map(encode_basestring, cells[place])


def _json_numbers(cells: Sequence[str]) -> Sequence[str]:
    """Return cells that hold numbers as JSON: their own text if JSON allows it, infinities as texts."""
    return cells if _JSON_NUMBERS.fullmatch(",".join(cells) + ",") else [_json_number(cell) for cell in cells]


def _json_number(cell: str) -> str:
    if _JSON_NUMBERS.fullmatch(f"{cell},"):
        return cell
    if not cell:
        return "null"
    number = float(cell)
    if isnan(number):
        return '"NaN"'
    return repr(number) if isfinite(number) else '"Infinity"' if number > 0.0 else '"-Infinity"'
