"""Verdicts behind rows of CSV and JSON, whose text stays: from streams in constant memory, or files."""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal, DecimalException
from functools import partial
from io import StringIO
from itertools import chain
from json.encoder import encode_basestring
from math import isfinite, isinf, isnan
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate, decided, sets_of
from pac_wrap.method.groups.values import NEVER
from pac_wrap.method.rule import SETS, Counted
from pac_wrap.tables import columns
from pac_wrap.tables.files import csv_files, text_format
from pac_wrap.tables.files.text_format import ByteReader, CsvRows, JsonRows, Token

Decides = Certificate | GroupCertificate
Codes = NDArray[np.uint8]
Opened = Iterable[tuple[str, AbstractContextManager[Any]]]
Said = Callable[[Counted], None]
Seen = Callable[[Scores], None]
# many numbers as JSON writes them, each followed by a comma; possessive, so that it never backtracks
_JSON_NUMBERS: Final = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+,)*+")
# a text, which stays as it is, or a common number that JSON does not have
_NOT_JSON: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?Infinity|NaN)')
_WORDS: Final = {None: "", True: "true", False: "false"}
# whole numbers of so few digits that both a double and 64 bits hold them, each followed by a comma
_SMALL: Final = re.compile("(?:(?:0|-?[1-9][0-9]{0,14}),)*+")
# every set with every verdict; the code of an answer is its position here
ANSWERS: Final = [(str(verdict), text) for text in SETS for verdict in (-1, 0, 1)]


class ScoredRows(NamedTuple):
    """A few rows with their scores: each as cells or as an object, with its own text if that can stay."""

    scores: Scores
    rows: list[Any]
    texts: list[str]
    groups: list[Any] | None = None
    # the columns of the table so far, where each row has its own
    names: Iterable[str] = ()
    # rows that all stand as they are
    lines: csv_files.Lines | None = None


class Asked(NamedTuple):
    """The request: the column of scores, the format of the output, and further columns."""

    score: str
    as_csv: bool
    on_missing: OnMissing = "abstain"
    # the column in which the name of each row's file is written
    source: str | None = None
    # that of the groups, if each has its own rule
    group: str | None = None

    @property
    def wanted(self) -> list[str]:
        """The columns that a table must have."""
        return [self.score] if self.group is None else [self.score, self.group]

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that are added to those of a table."""
        return columns.ADDED if self.source is None else (self.source, *columns.ADDED)


def _csv_text(rows: Iterable[Sequence[str]]) -> str:
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


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _not_utf8(row: Iterable[Any], same: str) -> str | None:
    """Return the error for a row that is not UTF-8 and would change its format, else None."""
    text = "".join(one for one in row if isinstance(one, str))
    whole = text.isascii() or is_unicode(text)
    return None if whole else f"is not UTF-8; --format {same} keeps it as it is"


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class _AnsweredLines(ABC):
    """The rows of tables, opened one after the other, with their answers as CSV or JSON lines."""

    def __init__(self, tables: Opened, header: Sequence[str], asked: Asked) -> None:
        columns.refuse_added(header, asked.added)
        self._tables, self._asked, self.read = tables, asked, 0
        self._names = dict.fromkeys(header)

    def texts(self, certificate: Decides, names: list[str], seen: Seen) -> Iterator[tuple[Counted, Any]]:
        """Yield the counts so far and rows with their answers; `names` are the names of the tables."""
        head = None
        for counted, batch, codes in self.answered(certificate, names, seen):
            if batch.lines is not None:
                text: Any = csv_files.with_endings(batch.lines, codes, list(map(_encoded, self._ends)))
            else:
                text = _encoded(self._text(batch, codes.tolist()))
            if head is None:
                head = _csv_text([[*self._names, *self._asked.added]]) if self._asked.as_csv else ""
                text = _encoded(head) + bytes(text)
            yield counted, text

    def answered(
        self, certificate: Decides, names: list[str], seen: Seen
    ) -> Iterator[tuple[Counted, ScoredRows, Codes]]:
        """Yield the counts so far, some rows, and the position of each answer in `ANSWERS`."""
        counted = Counted()
        rule: Any = certificate.rules if isinstance(certificate, GroupCertificate) else certificate.rule
        exclusions: Any = certificate.exclusions
        with text_format.without_collector():
            for batch in self._rows():
                scores, unseen = batch.scores, 0
                if isinstance(certificate, GroupCertificate):
                    places = certificate.lookup.places(batch.groups or [])
                    verdicts, missing = decided(rule, scores, places), np.flatnonzero(np.isnan(scores))
                    possible, unseen = sets_of(exclusions, scores, places), int((places == NEVER).sum())
                else:
                    verdicts, missing = rule.decided(scores)
                    possible = exclusions.possible(scores, missing)
                sets = possible.view(np.int8)
                codes = (3 * (sets[:, 0] + 2 * sets[:, 1]) + verdicts + 1).view(np.uint8)
                counted += Counted.of(verdicts, missing.size, unseen)
                seen(scores)
                yield counted, batch, codes
        if not counted.points:
            raise columns.no_rows(names)
        columns.expect_rows(names, self.read, counted.points)

    def _rows(self) -> Iterator[ScoredRows]:
        """Yield all rows before the first one that cannot be decided, then raise its error."""
        asked = self._asked
        for name, opened in self._tables:
            # how a row of this table ends, for each code of an answer: as cells, and as a text
            self.cells = [answer if asked.source is None else (name, *answer) for answer in ANSWERS]
            if asked.as_csv:
                self._ends = [f",{_csv_text([cells])}" for cells in self.cells]
            else:
                file = "" if asked.source is None else f",{_json_text(asked.source)}:{_json_text(name)}"
                self._ends = [f'{file},"verdict":{one},"prediction_set":"{of}"}}\n' for one, of in ANSWERS]
            with opened as table:
                self.table = table
                yield from self._batches(table)
            self.read += table.read

    @abstractmethod
    def _batches(self, table: Any) -> Iterator[ScoredRows]:
        """Yield the batches of a table, then raise the error of the row after them."""

    @abstractmethod
    def _text(self, batch: ScoredRows, codes: list[int]) -> str:
        """Return rows with the answers of these codes, as CSV or JSON lines."""

    def _sound(self, found: csv_files.Lines | None) -> csv_files.Lines | None:
        """Return rows that were read together, None if a score is missing but required."""
        missing = found is not None and self._asked.on_missing == "stop" and np.isnan(found.scores).any()
        return None if missing else found


class CsvLines(_AnsweredLines):
    """The rows of CSV tables, whose columns are matched by name."""

    def __init__(self, tables: Opened, header: Sequence[str], asked: Asked) -> None:
        columns.require_columns(asked.wanted, header)
        super().__init__(tables, header, asked)
        keys = [_json_text(name).replace("%", "%%") for name in header]
        self._object = "{" + ",".join(f"{key}:%s" for key in keys) + "%s"

    def _batches(self, table: CsvRows) -> Iterator[ScoredRows]:
        names, asked = table.header.names, self._asked
        if not asked.as_csv and (what := _not_utf8(names, "csv")):
            raise InputError(f"{table.where}the header {what}")
        self._place = names.index(asked.score)
        group = None if asked.group is None else names.index(asked.group)
        # the place of each column that is written; a file may lack one that others have
        stands = {name: place for place, name in enumerate(names)}
        self._places = [stands.get(name) for name in self._names]
        self._as_read = names == tuple(self._names)
        self._kept = asked.as_csv and self._as_read and table.header.delimiter == ","
        if self._kept and group is None:
            table.at_once = partial(self._at_once, len(names))
        for found in table:
            if isinstance(found, csv_files.Lines):
                yield ScoredRows(found.scores, [], [], lines=found)
                continue
            rows, error, before = found.rows, None, table.read - len(found.rows)
            if not asked.as_csv and not found.unicode:
                odd = partial(_not_utf8, same="csv")
                rows, error = text_format.up_to_first(rows, odd, None, before, table.where)
            values = [row[self._place] for row in rows]
            scores, bad = columns.read_scores(asked.score, values, before, table.where, asked.on_missing)
            if scores.size:
                rows = rows[: scores.size]
                # an empty cell is a missing value, as in a table
                groups = None if group is None else [row[group] or None for row in rows]
                yield ScoredRows(scores, rows, found.texts[: scores.size], groups)
            if problem := bad or error:
                raise problem

    def _at_once(self, width: int, text: str) -> csv_files.Lines | None:
        """Return the rows of a text without quotes, with their texts unchanged; None if one may be wrong."""
        found = csv_files.read_score_cells(_encoded(text), width, self._place)
        if found is None:
            return None
        for row, cell in found.doubts:
            score = columns.number(cell)
            if score is None:
                return None
            found.scores[row] = score
        return self._sound(found)

    def _text(self, batch: ScoredRows, codes: list[int]) -> str:
        if not self._asked.as_csv:
            cells = list(zip(*batch.rows, strict=True))
            texts = [self._json(place, cells) for place in self._places]
            endings = [self._ends[code] for code in codes]
            return "".join([self._object % row for row in zip(*texts, endings, strict=True)])
        if batch.texts and self._kept:
            return "".join([text + self._ends[code] for text, code in zip(batch.texts, codes, strict=True)])
        rows: Iterable[list[str]] = batch.rows
        if not self._as_read:
            rows = ([row[place] if place is not None else "" for place in self._places] for row in rows)
        return _csv_text([*row, *self.cells[code]] for row, code in zip(rows, codes, strict=True))

    def _json(self, place: int | None, cells: list[tuple[str, ...]]) -> Iterable[str]:
        """Return one column as JSON texts; the score is a number, every other cell a text."""
        if place is None:
            return ["null"] * len(cells[self._place])
        if place != self._place:
            return map(encode_basestring, cells[place])
        # numbers keep their own text if JSON allows it
        whole = _JSON_NUMBERS.fullmatch(",".join(cells[place]) + ",")
        return cells[place] if whole else map(_json_number, cells[place])


def _json_number(cell: str) -> str:
    if _JSON_NUMBERS.fullmatch(f"{cell},"):
        return cell
    if not cell:
        return "null"
    number = float(cell)
    if isnan(number):
        return '"NaN"'
    return repr(number) if isfinite(number) else '"Infinity"' if number > 0.0 else '"-Infinity"'


class JsonLines(_AnsweredLines):
    """The rows of JSON tables; without columns, the first row has those of CSV."""

    def __init__(self, tables: Opened, header: Sequence[str], asked: Asked) -> None:
        super().__init__(tables, header, asked)
        # no row may have one of them
        self._added = {one.lower() for one in asked.added}
        self._taken_apart = asked.as_csv or asked.group is not None

    def _text(self, batch: ScoredRows, codes: list[int]) -> str:
        if self._asked.as_csv:
            return _csv_text(
                [*(_cell(row.get(name)) or "" for name in self._names), *self.cells[code]]
                for row, code in zip(batch.rows, codes, strict=True)
            )
        ended = zip(batch.texts, batch.rows, [self._ends[code] for code in codes], strict=True)
        # an object without a column has no comma before the first
        return "".join([text[:-1] + end if row else "{" + end[1:] for text, row, end in ended])

    def to_parquet(self, target: Path, certificate: Decides, names: list[str], seen: Seen) -> Counted:
        """Write rows with their answers to a Parquet file; columns are texts unless all are numbers."""
        from pac_wrap.tables.decide import copied
        from pac_wrap.tables.files.connection import Growing, connected
        from pac_wrap.tables.sql import number_sql, quote_name

        kinds: dict[str, set[str]] = {}
        counted, self._taken_apart = Counted(), True
        added = {name: f"a{place}" for place, name in enumerate(self._asked.added)}
        with connected([], output=target) as connection:
            table = Growing(connection, "decided", dict.fromkeys(added.values(), "VARCHAR"))
            for so_far, batch, codes in self.answered(certificate, names, seen):
                counted = so_far
                answers = zip(*(self.cells[code] for code in codes.tolist()), strict=True)
                filled: dict[str, Sequence[Any]] = dict(zip(added.values(), answers, strict=True))
                for name in batch.names:
                    if name not in kinds:
                        table.widen(f"c{len(kinds)}")
                        kinds[name] = set()
                for place, name in enumerate(kinds):
                    values = [row.get(name) for row in batch.rows]
                    if kinds[name] != {"VARCHAR"} and (types := types_holding(values)):
                        kinds[name] = kinds[name] & types or types
                    filled[f"c{place}"] = list(map(_cell, values))
                self.table.refuse_odd(filled.values())
                table.add(filled, len(batch.rows))
            table.flush()
            columns.refuse_twins(list(kinds), ", ".join(names))
            quoted, shown = csv_files.quoted_names(list(kinds)), list[str]()
            for place, (name, types) in enumerate(kinds.items()):
                typed = f"CAST(c{place} AS {min(types, default='VARCHAR')})"  # the narrowest comes first
                if name == self._asked.score:  # which is what number it is
                    typed = number_sql(f"c{place}")
                shown.append(f"{typed} AS {quoted[name]}")
            for name, column in added.items():
                kind_of_answer = "INTEGER" if name == "verdict" else "VARCHAR"
                shown.append(f"CAST({column} AS {kind_of_answer}) AS {quote_name(name)}")
            answered = f"SELECT {', '.join(shown)} FROM decided", target, "FORMAT parquet", names
            copied(lambda query: connection.execute(query).fetchall(), *answered, counted.points)
        return counted

    def _batches(self, table: JsonRows) -> Iterator[ScoredRows]:
        score, group, as_csv = self._asked.score, self._asked.group, self._asked.as_csv
        if not self._taken_apart:
            table.at_once = partial(self._at_once, table)
        for found in table:
            if isinstance(found, csv_files.Lines):
                yield ScoredRows(found.scores, [], [], lines=found)
                continue
            rows, error, before = found.rows, None, table.read - len(found.rows)
            if not self._names:
                columns.require_columns(self._asked.wanted, rows[0])
                columns.refuse_added(rows[0], self._added)
                if as_csv and (what := _not_utf8(rows[0], "jsonl")):
                    raise InputError(f"{table.where}row 1 {what}")
                self._names = dict.fromkeys(rows[0])
            whole = "".join(found.texts)
            problems: list[Callable[[dict[str, Any]], str | None]] = []
            if any(name.lower() in self._added for name in table.names):
                problems.append(self._has_added)
            if as_csv and not table.names.keys() <= self._names.keys():
                problems.append(self._has_new_name)
            if as_csv and (not found.unicode or "\\" in whole):
                problems.append(lambda row: _not_utf8(chain.from_iterable(row.items()), "jsonl"))
            if group is not None:
                problems.append(lambda row: text_format.nested_in(row, group))
            for problem in problems:
                rows, error = text_format.up_to_first(rows, problem, error, before, table.where)
            values = [row.get(score) for row in rows]
            scores, bad = columns.read_scores(score, values, before, table.where, self._asked.on_missing)
            texts = found.texts[: scores.size]
            if "Infinity" in whole or "NaN" in whole:
                texts = [
                    _NOT_JSON.sub(lambda one: f'"{one[1]}"' if one[1] else one[0], text) for text in texts
                ]
            if scores.size:
                rows = rows[: scores.size]
                groups = None if group is None else table.column(group, found._replace(rows=rows))
                yield ScoredRows(scores, rows, texts, groups, table.names)
            if refused := bad or error:
                raise refused

    def _at_once(self, table: JsonRows, text: str) -> csv_files.Lines | None:
        """Return lines that all have the names found so far, in their order; None if one may not."""
        names = list(map(_json_text, table.names))
        # the names of the first rows have not been compared yet with the added columns
        if not table.read or self._asked.score not in table.names or "\\" in "".join(names):
            return None
        place = list(table.names).index(self._asked.score)
        return self._sound(csv_files.read_score_objects(_encoded(text), list(map(_encoded, names)), place))

    def _has_added(self, found: dict[str, Any]) -> str | None:
        taken = [name for name in found if name.lower() in self._added]
        return f"has a column {taken[0]!r} already; rename it or drop it first" if taken else None

    def _has_new_name(self, found: dict[str, Any]) -> str | None:
        for name in found:
            if name not in self._names:
                return f"has a column {name!r}, but the first row does not; --format jsonl keeps it as it is"
        return None


def _json_columns(files: Sequence[Path], wanted: Sequence[str], *, whole: bool) -> list[str]:
    """Return the columns of JSON files, all of them if `whole`; wanted columns must be in every file."""
    names: list[list[str]] = []
    for file in files:
        with csv_files.opened_json(file) as table:
            for _ in table:
                if not whole and table.names.keys() >= set(wanted):
                    break
            names.append(list(table.names))
    columns.require_in_all(files, names, wanted)
    found = list(dict.fromkeys(chain.from_iterable(names)))
    columns.require_columns(wanted if found else (), found)
    return found


def _json_values(file: Path, column: str) -> Iterator[list[Any]]:
    with csv_files.opened_json(file) as table:
        for batch in table:
            yield [row.get(column) for row in batch.rows]


def types_holding(values: Sequence[Any]) -> set[str]:
    """Return the types of DuckDB in which JSON values stay what they are; texts hold all that is no gap."""
    tokens = [value for value in values if value is not None]
    types = {"VARCHAR"} if tokens else set()
    if set(map(type, tokens)) == {Token}:
        small = _SMALL.fullmatch(",".join(tokens) + ",")
        types |= {"BIGINT"} if small or all(map(_is_whole, tokens)) else set()
        types |= {"DOUBLE"} if small or all(map(_is_exact, tokens)) else set()
    return types


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


def _cell(value: Any) -> str | None:
    """Return a value as the text of a cell, None if it is missing."""
    return value if value is None or isinstance(value, str) else _WORDS[value]


def is_streamed(start: bytes) -> bool:
    """Return whether a table with this start can be decided line by line, as CSV and JSON lines can."""
    text_format.refuse_binary(start, "standard input")
    if not start.removeprefix(text_format.MARK).strip():
        raise InputError(text_format.EMPTY_INPUT)
    if text_format.is_json(start):
        return text_format.is_json_line(start)
    return start[:4] != text_format.PARQUET


def decide_lines(
    certificate: Decides,
    reader: ByteReader,
    start: bytes,
    target: BinaryIO,
    asked: Asked,
    delimiter: str | None = None,
    said: Said = lambda counted: None,
    seen: Seen = lambda scores: None,
) -> Counted:
    """Write every row with its verdict and prediction set as soon as it arrives, and return the counts."""
    if text_format.is_json_line(start):
        columns.only_in_csv(delimiter)
        lines: CsvLines | JsonLines = JsonLines([("-", nullcontext(JsonRows(reader, start)))], (), asked)
    else:
        rows = CsvRows(reader, start, asked.wanted, delimiter)
        lines = CsvLines([("-", nullcontext(rows))], rows.header.names, asked)
    counted = Counted()
    try:
        for counted, text in lines.texts(certificate, ["-"], seen):
            # before writing, as a reader may end the process: all rows that were seen are counted
            said(counted)
            target.write(text)
            target.flush()
    except InputError as error:
        if not counted.points:
            raise
        raise InputError(f"{error}; rows decided before it: {counted.points:,}") from error
    return counted


def decide_files(
    certificate: Decides,
    files: Sequence[Path],
    names: Sequence[str],
    target: BinaryIO | Path,
    asked: Asked,
    delimiter: str | None = None,
    said: Said = lambda counted: None,
    seen: Seen = lambda scores: None,
    *,
    as_json: bool = False,
) -> Counted:
    """Write rows of files with verdict and prediction set, JSON to a path as Parquet; return the counts."""
    counted, listed = Counted(), list(map(str, files))
    found: list[csv_files.CsvFile] = []
    if as_json:
        columns.only_in_csv(delimiter)
        header = _json_columns(files, asked.wanted, whole=asked.as_csv)
        lines: Any = JsonLines(zip(names, map(csv_files.opened_json, files), strict=True), header, asked)
    else:
        found = csv_files.with_headers(files, asked.wanted, delimiter)
        header = columns.all_columns(files, [file.header.names for file in found])
        opened = (csv_files.opened_rows(file.path, asked.wanted, file.header.delimiter) for file in found)
        lines = CsvLines(zip(names, opened, strict=True), header, asked)
    try:
        if isinstance(target, Path):
            counted = lines.to_parquet(target, certificate, listed, seen)
        else:
            for counted, text in lines.texts(certificate, listed, seen):
                target.write(text)
                said(counted)
    except InputError:
        # which counts what is missing
        if as_json:
            values = {file: _json_values(file, asked.score) for file in files}
            columns.refuse_scores_of(values, asked.score, asked.on_missing)
        csv_files.refuse_scores(found, asked.score, asked.on_missing)
        raise
    return counted
