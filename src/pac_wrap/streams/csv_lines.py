"""CSV with verdicts, from standard input or from files: cells stay the text they are."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from io import StringIO
from json.encoder import encode_basestring
from math import isfinite
from typing import Final

from pac_wrap.base.foreign import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.streams.scored_rows import ADDED, ANSWERS, ScoredRows
from pac_wrap.tables.columns import read_scores, refuse_added, require_column
from pac_wrap.tables.csv_format import CsvRows, up_to_first

# many numbers as JSON writes them, each followed by a comma; possessive, so that it never backtracks
_JSON_NUMBERS: Final = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+,)*+")


class CsvLines:
    """Batches of the rows of one or more CSV tables, each opened in its turn; columns are matched by name.

    `columns` are those of all tables; `keep` says that CSV is to be written.
    """

    def __init__(
        self,
        tables: Iterable[AbstractContextManager[CsvRows]],
        columns: Sequence[str],
        score: str,
        keep: bool,
    ) -> None:
        require_column(score, list(columns))
        refuse_added(columns, ADDED)
        self._tables, self._columns, self._score, self._keep = tables, tuple(columns), score, keep
        self.read = 0
        keys = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in columns]
        self._object = "{" + ",".join(f"{key}:%s" for key in keys) + ",%s"
        self._json_endings = [
            f'"verdict":{verdict},"prediction_set":"{labels}"}}\n' for verdict, labels in ANSWERS
        ]
        self._csv_endings = [f",{csv_text([answer])}" for answer in ANSWERS]

    def head(self) -> str:
        """Return the names of the columns as CSV, if it is written."""
        return csv_text([[*self._columns, *ADDED]]) if self._keep else ""

    def __iter__(self) -> Iterator[ScoredRows]:
        """Yield all rows up to the first that cannot be decided, then raise what is wrong with that."""
        for opened in self._tables:
            with opened as table:
                yield from self._batches(table)

    def _batches(self, table: CsvRows) -> Iterator[ScoredRows]:
        names = table.header.names
        if not self._keep and (what := not_utf8(list(names), "csv")):
            raise InputError(f"{table.where}the header {what}")
        self._place = names.index(self._score)
        # the place of each column that is written; a file may lack one that others have
        stands = {name: place for place, name in enumerate(names)}
        self._places = [stands.get(name) for name in self._columns]
        self._as_read = names == self._columns
        self._with_commas = table.header.delimiter == ","
        for cells, texts, unicode in table:
            rows, error, before = cells, None, table.read - len(cells)
            if not self._keep and not unicode:
                rows, error = up_to_first(cells, lambda row: not_utf8(row, "csv"), None, before, table.where)
            values = [row[self._place] for row in rows]
            scores, bad = read_scores(self._score, values, before, table.where)
            self.read += scores.size
            if scores.size:
                yield ScoredRows(scores, rows[: scores.size], texts[: scores.size])
            if problem := bad or error:
                raise problem

    def text(self, batch: ScoredRows, codes: list[int]) -> str:
        """Return rows with the answers of these codes as CSV, or as JSON lines."""
        if not self._keep:
            cells = list(zip(*batch.rows, strict=True))
            columns = [self._json(place, cells) for place in self._places]
            endings = [self._json_endings[code] for code in codes]
            return "".join([self._object % row for row in zip(*columns, endings, strict=True)])
        if batch.texts and self._as_read and self._with_commas:
            pairs = zip(batch.texts, codes, strict=True)
            return "".join([text + self._csv_endings[code] for text, code in pairs])
        rows: Iterable[list[str]] = batch.rows
        if not self._as_read:
            rows = ([row[place] if place is not None else "" for place in self._places] for row in rows)
        return csv_text([*row, *ANSWERS[code]] for row, code in zip(rows, codes, strict=True))

    def _json(self, place: int | None, cells: list[tuple[str, ...]]) -> Iterable[str]:
        """Return one column as JSON texts; the score is a number, every other cell a text."""
        if place is None:
            return ["null"] * len(cells[self._place])
        return _json_numbers(cells[place]) if place == self._place else map(encode_basestring, cells[place])


def csv_text(rows: Iterable[Sequence[str]]) -> str:
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


def not_utf8(row: list[str], same: str) -> str | None:
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
