"""CSV as it comes: cells stay the text they are."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from json.encoder import encode_basestring
from typing import Any, Final

from pac_wrap.columns import refuse_added, refuse_twins, require_column
from pac_wrap.errors import InputError
from pac_wrap.lines.cells import (
    ADDED,
    Answers,
    Batch,
    is_unicode,
    json_numbers,
    not_utf8,
    read_scores,
    up_to_first,
)
from pac_wrap.lines.source import LONGEST, Source, too_long, whole_lines

_DELIMITERS: Final = ",\t;|"
_OPEN: Final = "unexpected end of data"  # what the csv module says of a quote that is not closed yet
_UNCLOSED: Final = "a quote is opened and never closed"
_REASONS: Final = {
    _OPEN[:8]: _UNCLOSED,
    "new-line": "a carriage return stands in a cell without quotes",
}


class CsvLines:
    """Batches of the rows of a CSV with a header; `keep` says that CSV is to be written."""

    def __init__(self, source: Source, start: bytes, score: str, keep: bool) -> None:
        # for the whole process, since the csv module knows no other way; longer rows are refused here
        csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST))
        self._pieces = whole_lines(source, start)
        self._score, self._keep, self._before = score, keep, 0
        self._names, self._delimiter, self._rest = _header(self._pieces, score)
        refuse_twins(self._names, "standard input")
        refuse_added(self._names, ADDED)
        if not keep and (what := not_utf8(self._names, "csv")):
            raise InputError(f"the header {what}")
        self._column, self._width = self._names.index(score), len(self._names)
        keys = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in self._names]
        self._object = "{" + ",".join(f"{key}:%s" for key in keys) + ",%s"

    def header(self) -> str:
        """Return the line that comes before the rows, if any."""
        return csv_text([[*self._names, *ADDED]]) if self._keep else ""

    def __iter__(self) -> Iterator[Batch]:
        if self._rest:
            yield from self._batches(self._rest, last=False)
        for piece in self._pieces:
            yield from self._batches(self._rest + piece, last=False)
            if len(self._rest) > LONGEST:
                raise too_long()
        if self._rest:
            yield from self._batches(self._rest, last=True)

    def text(self, batch: Batch, codes: list[int], answers: Answers) -> str:
        """Return the rows with their answers as text."""
        if not self._keep:
            endings = [f'"verdict":{verdict},"prediction_set":"{labels}"}}\n' for verdict, labels in answers]
            columns = [
                json_numbers(cells) if place == self._column else map(encode_basestring, cells)
                for place, cells in enumerate(zip(*batch.rows, strict=True))
            ]
            written = zip(*columns, [endings[code] for code in codes], strict=True)
            return "".join([self._object % row for row in written])
        if batch.texts and self._delimiter == ",":
            endings = ["," + csv_text([answer]) for answer in answers]
            return "".join([text + endings[code] for text, code in zip(batch.texts, codes, strict=True)])
        return csv_text([*row, *answers[code]] for row, code in zip(batch.rows, codes, strict=True))

    def _batches(self, text: str, last: bool) -> Iterator[Batch]:
        """Yield the batch of the whole rows in a text, then raise what is wrong with the row after it."""
        texts: list[str] = []
        error = None
        if '"' in text or "\r" in text:
            rows, self._rest, error = self._parse(text, last)
        else:  # the same, quicker, with rows that may be written as they were read
            texts, self._rest = text.removesuffix("\n").split("\n"), ""
            if "" in texts and self._width > 1:
                texts = [line for line in texts if line]
            rows = [line.split(self._delimiter) for line in texts]
        if set(map(len, rows)) != {self._width}:
            rows, error = up_to_first(rows, self._miscounted, error, self._before)
        if not self._keep and not is_unicode(text):
            rows, error = up_to_first(rows, lambda row: not_utf8(row, "csv"), error, self._before)
        scores, bad = read_scores(self._score, [row[self._column] for row in rows], self._before)
        self._before += scores.size
        if scores.size:
            yield Batch(scores, rows[: scores.size], texts[: scores.size])
        if problem := bad or error:
            raise problem

    def _parse(self, text: str, last: bool) -> tuple[list[list[str]], str, InputError | None]:
        """Return the whole rows of a text, what is left of it, and what is wrong with the row after them."""
        rows: list[list[str]] = []
        done, blank = 0, [[""]] if self._width == 1 else []  # of one column, a blank line is an empty cell
        reader = _reader(text, self._delimiter)
        try:
            for row in reader:
                rows += [row] if row else blank
                done = reader.line_num
        except csv.Error as error:
            if str(error) == _OPEN and not last:
                return rows, _after(text, done), None
            what = _REASONS.get(str(error)[:8], str(error))
            place = self._before + len(rows) + 1
            return rows, "", InputError(f"row {place:,} is not CSV: {what}; mend that row")
        return rows, "", None

    def _miscounted(self, row: list[str]) -> str | None:
        if len(row) == self._width:
            return None
        many = f"{len(row):,} cell" + "s" * (len(row) != 1)
        return f"has {many}, but the header has {self._width:,}; mend that row"


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV."""
    listed, out = list(rows), StringIO(newline="")
    usual = csv.writer(out, lineterminator="\n")
    usual.writerows(listed)
    if "\r" in out.getvalue():  # which older versions of csv do not quote on their own
        out = StringIO(newline="")
        usual = csv.writer(out, lineterminator="\n")
        quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for row in listed:
            (quoted if any("\r" in cell for cell in row) else usual).writerow(row)
    return out.getvalue()


def _header(pieces: Iterator[str], score: str) -> tuple[list[str], str, str]:
    """Return the names of the columns, the delimiter with which the score is one, and the text after them."""
    text = ""
    for piece in pieces:
        text += piece
        found = {delimiter: _first_row(text, delimiter) for delimiter in _DELIMITERS}
        for delimiter, (names, lines) in found.items():
            if score in names:
                return names, delimiter, _after(text, lines)
        if all(lines for _, lines in found.values()):
            require_column(score, max((names for names, _ in found.values()), key=len))
        if len(text) > LONGEST:
            raise too_long()
    raise InputError(f"the header is not CSV: {_UNCLOSED}; mend it")


def _first_row(text: str, delimiter: str) -> tuple[list[str], int]:
    """Return the first row that is not blank, and after how many lines it ends, 0 if it has not yet."""
    reader = _reader(text, delimiter)
    try:
        for row in reader:
            if row:
                return row, reader.line_num
    except csv.Error as error:
        # what one delimiter makes nonsense of may be right with another
        return ([], 0) if str(error) == _OPEN else (text.strip().split("\n")[:1], reader.line_num)
    return [], 0


def _after(text: str, lines: int) -> str:
    return [*text.split("\n", lines), ""][lines]


def _reader(text: str, delimiter: str) -> Any:
    # not splitlines: a cell may hold any of the many characters that end a line for it
    return csv.reader(StringIO(text, newline="\n"), delimiter=delimiter, strict=True)
