"""CSV with verdicts: cells stay the text they are."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from json.encoder import encode_basestring
from pathlib import Path
from typing import cast

from pac_wrap.columns import refuse_added, require_column
from pac_wrap.csvfiles import CsvFile, all_columns, headers, opened_rows
from pac_wrap.csvform import CsvRows, up_to_first
from pac_wrap.errors import InputError
from pac_wrap.lines.cells import ADDED, Answers, Batch, json_numbers, not_utf8, read_scores


class CsvLines:
    """Batches of the rows of a CSV; `keep` says that CSV is to be written, `columns` which ones."""

    def __init__(
        self, rows: CsvRows, score: str, keep: bool, columns: Sequence[str] = (), where: str = ""
    ) -> None:
        names = rows.form.names
        require_column(score, list(names))
        self._columns = columns or names
        refuse_added(self._columns, ADDED)
        if not keep and (what := not_utf8(list(names), "csv")):
            raise InputError(f"{where}the header {what}")
        self._rows, self._score, self._keep, self._where, self.read = rows, score, keep, where, 0
        self._column = names.index(score)
        # where each column stands that is written; a file may lack one that others have
        stands = {name: place for place, name in enumerate(names)}
        self._places = [stands.get(name) for name in self._columns]
        self._as_read = tuple(self._columns) == names
        keys = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in self._columns]
        self._object = "{" + ",".join(f"{key}:%s" for key in keys) + ",%s"

    def header(self) -> str:
        """Return the line that comes before the rows, if any."""
        return csv_text([[*self._columns, *ADDED]]) if self._keep else ""

    def __iter__(self) -> Iterator[Batch]:
        for cells, texts, unicode in self._rows:
            rows, error = cells, None
            if not self._keep and not unicode:
                rows, error = up_to_first(
                    cells, lambda row: not_utf8(row, "csv"), None, self.read, self._where
                )
            values = [row[self._column] for row in rows]
            scores, bad = read_scores(self._score, values, self.read, self._where)
            self.read += scores.size
            if scores.size:
                yield Batch(scores, rows[: scores.size], texts[: scores.size])
            if problem := bad or error:
                raise problem

    def text(self, batch: Batch, codes: list[int], answers: Answers) -> str:
        """Return the rows with their answers as text."""
        if not self._keep:
            endings = [f'"verdict":{verdict},"prediction_set":"{labels}"}}\n' for verdict, labels in answers]
            cells = list(zip(*batch.rows, strict=True))
            written = zip(
                *map(self._json, self._places, [cells] * len(self._places)),
                [endings[code] for code in codes],
                strict=True,
            )
            return "".join([self._object % row for row in written])
        if batch.texts and self._as_read and self._rows.form.delimiter == ",":
            endings = ["," + csv_text([answer]) for answer in answers]
            return "".join([text + endings[code] for text, code in zip(batch.texts, codes, strict=True)])
        rows: Iterable[list[str]] = batch.rows
        if not self._as_read:
            rows = ([row[place] if place is not None else "" for place in self._places] for row in rows)
        return csv_text([*row, *answers[code]] for row, code in zip(rows, codes, strict=True))

    def _json(self, place: int | None, cells: list[tuple[str, ...]]) -> Iterable[str]:
        """Return one column as JSON texts; the score is a number, every other cell a text."""
        if place is None:
            return ["null"] * len(cells[self._column])
        return json_numbers(cells[place]) if place == self._column else map(encode_basestring, cells[place])


class CsvFilesLines:
    """Batches of the rows of several CSV files, whose columns are matched by name."""

    def __init__(self, files: Sequence[Path], score: str, keep: bool, delimiter: str | None) -> None:
        self.files = [CsvFile(*pair) for pair in zip(files, headers(files, [score], delimiter), strict=True)]
        self._score, self._keep = score, keep
        self._columns = tuple(all_columns(files, [file.form.names for file in self.files]))
        self._done, self._current = 0, cast(CsvLines | None, None)
        require_column(score, list(self._columns))
        refuse_added(self._columns, ADDED)

    @property
    def read(self) -> int:
        """How many rows were read."""
        return self._done + (self._current.read if self._current else 0)

    def header(self) -> str:
        """Return the line that comes before the rows, if any."""
        return csv_text([[*self._columns, *ADDED]]) if self._keep else ""

    def __iter__(self) -> Iterator[Batch]:
        for file in self.files:
            where = f"{file.path}: "
            with opened_rows(file.path, [self._score], file.form.delimiter) as rows:
                self._current = CsvLines(rows, self._score, self._keep, self._columns, where)
                yield from self._current
            self._done, self._current = self.read, None

    def text(self, batch: Batch, codes: list[int], answers: Answers) -> str:
        """Return the rows with their answers as text."""
        assert self._current is not None
        return self._current.text(batch, codes, answers)


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
