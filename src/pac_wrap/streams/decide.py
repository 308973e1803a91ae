"""CSV and JSON decided row by row, as CSV or JSON lines: as they arrive, in constant memory, or from files.

A row stays the text it is; behind it stand its verdict, its prediction set, and its file if asked for.
"""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal, DecimalException
from functools import partial
from io import StringIO
from json.encoder import encode_basestring
from math import isfinite, isinf, isnan
from pathlib import Path
from typing import Any, BinaryIO, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.text import is_unicode
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate, decided, sets_of
from pac_wrap.method.groups.values import NEVER
from pac_wrap.method.rule import SETS, Counted
from pac_wrap.tables.columns import (
    all_columns,
    miscounted,
    no_rows,
    number,
    only_in_csv,
    read_scores,
    refuse_added,
    refuse_scores_of,
    refuse_twins,
    require_column,
    require_in_all,
)
from pac_wrap.tables.files.csv_files import (
    CsvFile,
    Lines,
    headers,
    opened_json,
    opened_rows,
    read_score_cells,
    read_score_objects,
    refuse_scores,
    with_endings,
)
from pac_wrap.tables.files.text_format import (
    EMPTY_INPUT,
    MARK,
    PARQUET,
    ByteReader,
    CsvRows,
    JsonRows,
    Token,
    is_json,
    is_json_line,
    nested_in,
    refuse_binary,
    up_to_first,
    without_collector,
)

R = TypeVar("R", CsvRows, JsonRows)
Codes = NDArray[np.uint8]
Said = Callable[[Counted], None]
Seen = Callable[[Scores], None]
Bytes = bytes | memoryview
# many numbers as JSON writes them, each followed by a comma; possessive, so that it never backtracks
_JSON_NUMBERS: Final = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+,)*+")
# a text, which stays as it is, or a number that many write and JSON does not have
_NOT_JSON: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?Infinity|NaN)')
_WORDS: Final = {None: "", True: "true", False: "false"}
# whole numbers of so few digits that both a double and 64 bits hold them, each followed by a comma
_SMALL: Final = re.compile("(?:(?:0|-?[1-9][0-9]{0,14}),)*+")
# the columns that an answer fills
ADDED: Final = ("verdict", "prediction_set")
# every set with every verdict; the code of an answer is its place here
ANSWERS: Final = [(str(verdict), text) for text in SETS for verdict in (-1, 0, 1)]


class ScoredRows(NamedTuple):
    """A few rows with their scores: each as cells or as an object, and its own text where that can stand."""

    scores: Scores
    rows: list[Any]
    texts: list[str]
    groups: list[Any] | None = None
    # the columns of the table so far, where each row has its own
    names: Iterable[str] = ()
    # rows that all stand as they are
    lines: Lines | None = None


class Asked(NamedTuple):
    """What is to be decided and written: the column of scores, whether as CSV, what else."""

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
        return ADDED if self.source is None else (self.source, *ADDED)


class Endings:
    """How a row from a table of a name ends, for each code of an answer: as cells, as CSV and as JSON."""

    def __init__(self, name: str, asked: Asked) -> None:
        source = asked.source
        self.cells = [answer if source is None else (name, *answer) for answer in ANSWERS]
        self.csv = [f",{csv_text([cells])}" for cells in self.cells]
        self.csv_bytes = list(map(_encoded, self.csv))
        named = "" if source is None else f",{json_text(source)}:{json_text(name)}"
        self.json = [f'{named},"verdict":{one},"prediction_set":"{labels}"}}\n' for one, labels in ANSWERS]
        self.json_bytes = list(map(_encoded, self.json))


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


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def not_utf8(row: list[str], same: str) -> str | None:
    """Return what is wrong with a row that is not UTF-8 and is to change its format; `same` would keep it."""
    text = "".join(row)
    whole = text.isascii() or is_unicode(text)
    return None if whole else f"is not UTF-8; --format {same} keeps it as it is"


def json_text(text: str) -> str:
    """Return a text as JSON."""
    return json.dumps(text, ensure_ascii=False)


class _AnsweredLines(ABC, Generic[R]):
    """Batches of the rows of some tables, each named and opened in its turn, and how they are written."""

    table: R

    def __init__(
        self, tables: Iterable[tuple[str, AbstractContextManager[R]]], columns: Sequence[str], asked: Asked
    ) -> None:
        refuse_added(columns, asked.added)
        self._tables: Iterable[tuple[str, AbstractContextManager[R]]] = tables
        self._asked, self.read = asked, 0
        self._names = dict.fromkeys(columns)
        self.endings = Endings("", asked)

    def head(self) -> str:
        """Return the names of the columns as CSV, if it is written."""
        return csv_text([[*self._names, *self._asked.added]]) if self._asked.as_csv else ""

    def __iter__(self) -> Iterator[ScoredRows]:
        """Yield all rows up to the first that cannot be decided, then raise what is wrong with that."""
        for name, opened in self._tables:
            with opened as table:
                self.endings, self.table = Endings(name, self._asked), table
                yield from self._batches(table)
            self.read += table.read

    @abstractmethod
    def _batches(self, table: R) -> Iterator[ScoredRows]:
        """Yield the batches of a table, then raise what is wrong with the row after them."""

    def _sound(self, found: Lines | None) -> Lines | None:
        """Return rows that were read at once, None if one of them has no score and must have one."""
        missing = found is not None and self._asked.on_missing == "stop" and np.isnan(found.scores).any()
        return None if missing else found


class CsvLines(_AnsweredLines[CsvRows]):
    """The rows of CSV tables, whose columns are matched by name."""

    def __init__(
        self,
        tables: Iterable[tuple[str, AbstractContextManager[CsvRows]]],
        columns: Sequence[str],
        asked: Asked,
    ) -> None:
        for column in asked.wanted:
            require_column(column, list(columns))
        super().__init__(tables, columns, asked)
        keys = [json_text(name).replace("%", "%%") for name in columns]
        self._object = "{" + ",".join(f"{key}:%s" for key in keys) + "%s"

    def _batches(self, table: CsvRows) -> Iterator[ScoredRows]:
        names, asked = table.header.names, self._asked
        if not asked.as_csv and (what := not_utf8(list(names), "csv")):
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
            if isinstance(found, Lines):
                yield ScoredRows(found.scores, [], [], lines=found)
                continue
            rows, error, before = found.rows, None, table.read - len(found.rows)
            if not asked.as_csv and not found.unicode:
                rows, error = up_to_first(rows, lambda row: not_utf8(row, "csv"), None, before, table.where)
            values = [row[self._place] for row in rows]
            scores, bad = read_scores(asked.score, values, before, table.where, asked.on_missing)
            if scores.size:
                rows = rows[: scores.size]
                # an empty cell is a missing value, as in a table
                groups = None if group is None else [row[group] or None for row in rows]
                yield ScoredRows(scores, rows, found.texts[: scores.size], groups)
            if problem := bad or error:
                raise problem

    def _at_once(self, width: int, text: str) -> Lines | None:
        """Return the rows of a text without quotes that all stand as they are; None if one may be wrong."""
        found = read_score_cells(_encoded(text), width, self._place)
        if found is None:
            return None
        for row, cell in found.doubts:
            score = number(cell)
            if score is None:
                return None
            found.scores[row] = score
        return self._sound(found)

    def text(self, batch: ScoredRows, codes: Codes) -> Bytes:
        """Return rows with the answers of these codes as CSV, or as JSON lines."""
        if batch.lines is not None:
            return with_endings(batch.lines, codes, self.endings.csv_bytes)
        listed = codes.tolist()
        if not self._asked.as_csv:
            cells = list(zip(*batch.rows, strict=True))
            columns = [self._json(place, cells) for place in self._places]
            endings = [self.endings.json[code] for code in listed]
            return _encoded("".join([self._object % row for row in zip(*columns, endings, strict=True)]))
        if batch.texts and self._kept:
            pairs = zip(batch.texts, listed, strict=True)
            return _encoded("".join([text + self.endings.csv[code] for text, code in pairs]))
        rows: Iterable[list[str]] = batch.rows
        if not self._as_read:
            rows = ([row[place] if place is not None else "" for place in self._places] for row in rows)
        answered = ([*row, *self.endings.cells[code]] for row, code in zip(rows, listed, strict=True))
        return _encoded(csv_text(answered))

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


class JsonLines(_AnsweredLines[JsonRows]):
    """The rows of JSON tables; without columns, the first row has those of CSV."""

    def __init__(
        self,
        tables: Iterable[tuple[str, AbstractContextManager[JsonRows]]],
        columns: Sequence[str],
        asked: Asked,
    ) -> None:
        super().__init__(tables, columns, asked)
        # no row may have one of them
        self._added = {one.lower() for one in asked.added}
        self.taken_apart = asked.as_csv or asked.group is not None

    def text(self, batch: ScoredRows, codes: Codes) -> Bytes:
        """Return rows with the answers of these codes as JSON lines, or as CSV."""
        if batch.lines is not None:
            return with_endings(batch.lines, codes, self.endings.json_bytes)
        listed = codes.tolist()
        if self._asked.as_csv:
            answers, pairs = self.endings.cells, zip(batch.rows, listed, strict=True)
            return _encoded(
                csv_text(
                    [*(cell(row.get(name)) or "" for name in self._names), *answers[code]]
                    for row, code in pairs
                )
            )
        endings = self.endings.json
        # an object without a column has no comma before the first
        return _encoded(
            "".join(
                [
                    text[:-1] + endings[code] if row else "{" + endings[code][1:]
                    for text, row, code in zip(batch.texts, batch.rows, listed, strict=True)
                ]
            )
        )

    def _batches(self, table: JsonRows) -> Iterator[ScoredRows]:
        score, group, as_csv = self._asked.score, self._asked.group, self._asked.as_csv
        if not self.taken_apart:
            table.at_once = partial(self._at_once, table)
        for found in table:
            if isinstance(found, Lines):
                yield ScoredRows(found.scores, [], [], lines=found)
                continue
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
            texts = found.texts[: scores.size]
            if "Infinity" in whole or "NaN" in whole:
                texts = [_NOT_JSON.sub(_quoted, text) for text in texts]
            if scores.size:
                rows = rows[: scores.size]
                groups = None if group is None else table.column(group, found._replace(rows=rows))
                yield ScoredRows(scores, rows, texts, groups, table.names)
            if problem := bad or error:
                raise problem

    def _at_once(self, table: JsonRows, text: str) -> Lines | None:
        """Return lines that all have the names found so far, in their order; None if one may not."""
        names = list(map(json_text, table.names))
        # of the first rows it is not known yet whether a name is one that is added
        if not table.read or self._asked.score not in table.names or "\\" in "".join(names):
            return None
        place = list(table.names).index(self._asked.score)
        return self._sound(read_score_objects(_encoded(text), list(map(_encoded, names)), place))

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


def refuse_json_scores(files: Sequence[Path], score: str, on_missing: OnMissing) -> None:
    """Refuse the first row that is none, the first score that is no number, or all that are missing."""

    def values(file: Path) -> Iterator[list[Any]]:
        with opened_json(file) as table:
            for batch in table:
                yield [row.get(score) for row in batch.rows]

    refuse_scores_of({file: values(file) for file in files}, score, on_missing)


class ColumnKind:
    """What a column of JSON is in a file that has types: numbers, where all values are and none changes."""

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


def is_streamed(start: bytes) -> bool:
    """Return whether a table that starts so can be decided line by line: CSV and JSON lines can."""
    refuse_binary(start, "standard input")
    if not start.removeprefix(MARK).strip():
        raise InputError(EMPTY_INPUT)
    if is_json(start):
        return is_json_line(start)
    return start[:4] != PARQUET


def decide_lines(
    certificate: Certificate | GroupCertificate,
    reader: ByteReader,
    start: bytes,
    target: BinaryIO,
    asked: Asked,
    delimiter: str | None = None,
    said: Said = lambda counted: None,
    seen: Seen = lambda scores: None,
) -> Counted:
    """Write every row, with its verdict and prediction set, as soon as it arrives, and return the counts.

    `start` is what `read_start` gave. A row that cannot be decided ends the stream with a sentence that names
    it; all rows before it are written. `said` is told the counts so far, those of the rows about to be
    written included, and `seen` the scores.
    """
    lines: CsvLines | JsonLines
    if is_json_line(start):
        only_in_csv(delimiter)
        lines = JsonLines([("-", nullcontext(JsonRows(reader, start)))], (), asked)
    else:
        rows = CsvRows(reader, start, asked.wanted, delimiter)
        lines = CsvLines([("-", nullcontext(rows))], rows.header.names, asked)
    written = Counted()
    try:
        for counted, text in _Deciding(certificate, lines, ["-"], seen).texts():
            # before whoever reads the rows may end it: what they have seen is counted
            said(counted)
            target.write(text)
            target.flush()
            written = counted
    except InputError as error:
        if not written.points:
            raise
        raise InputError(f"{error}; rows decided before it: {written.points:,}") from error
    return written


def decide_files(
    certificate: Certificate | GroupCertificate,
    files: Sequence[Path],
    names: Sequence[str],
    target: BinaryIO,
    asked: Asked,
    delimiter: str | None,
    said: Said = lambda counted: None,
    seen: Seen = lambda scores: None,
) -> Counted:
    """Write every row of CSV files, called `names` in a column of sources, as `decide_lines` does."""
    found = [CsvFile(*pair) for pair in zip(files, headers(files, asked.wanted, delimiter), strict=True)]
    columns = all_columns(files, [file.header.names for file in found])
    opened = (opened_rows(file.path, asked.wanted, file.header.delimiter) for file in found)
    lines = CsvLines(zip(names, opened, strict=True), columns, asked)
    try:
        return _Deciding(certificate, lines, list(map(str, files)), seen).written(target, said)
    except InputError:
        refuse_scores(found, asked.score, asked.on_missing)  # which counts what is missing
        raise


def decide_json_files(
    certificate: Certificate | GroupCertificate,
    files: Sequence[Path],
    names: Sequence[str],
    target: BinaryIO | Path,
    asked: Asked,
    seen: Seen = lambda scores: None,
) -> Counted:
    """Write every row of JSON files, as `decide_files` does; a target that is a path becomes Parquet."""
    columns = json_columns(files, asked.wanted, whole=asked.as_csv)
    opened = (opened_json(file) for file in files)
    lines = JsonLines(zip(names, opened, strict=True), columns, asked)
    deciding = _Deciding(certificate, lines, list(map(str, files)), seen)
    try:
        if isinstance(target, Path):
            return _to_parquet(deciding, lines, target, asked)
        return deciding.written(target, lambda counted: None)
    except InputError:
        refuse_json_scores(files, asked.score, asked.on_missing)  # which counts what is missing
        raise


def _to_parquet(deciding: "_Deciding", lines: JsonLines, target: Path, asked: Asked) -> Counted:
    """Write rows of JSON with their answers to a Parquet file, as texts unless a column is one of numbers."""
    from pac_wrap.tables.decide import copied
    from pac_wrap.tables.files.connection import Growing, connected
    from pac_wrap.tables.files.csv_files import quoted_names
    from pac_wrap.tables.sql import number_sql, quote_name

    def typed(column: str, kind: str) -> str:
        # a score is what number it is
        return number_sql(column) if kind == "SCORE" else f"CAST({column} AS {kind})"

    kinds: dict[str, ColumnKind] = {}
    counted, lines.taken_apart = Counted(), True
    added = {name: f"a{place}" for place, name in enumerate(asked.added)}
    with connected([], output=target) as connection:
        table = Growing(connection, "decided", dict.fromkeys(added.values(), "VARCHAR"))
        for so_far, batch, codes in deciding.answered():
            counted = so_far
            answers = zip(*(lines.endings.cells[code] for code in codes.tolist()), strict=True)
            columns: dict[str, Sequence[Any]] = dict(zip(added.values(), answers, strict=True))
            for name in batch.names:
                if name not in kinds:
                    table.widen(f"c{len(kinds)}")
                    kinds[name] = ColumnKind()
            for place, (name, kind) in enumerate(kinds.items()):
                values = [row.get(name) for row in batch.rows]
                kind.see(values)
                columns[f"c{place}"] = list(map(cell, values))
            lines.table.refuse_odd(columns.values())
            table.add(columns, len(batch.rows))
        table.flush()
        refuse_twins(list(kinds), ", ".join(deciding.names))
        quoted = quoted_names(list(kinds))
        shown = [
            f"{typed(f'c{place}', 'SCORE' if name == asked.score else kind.name)} AS {quoted[name]}"
            for place, (name, kind) in enumerate(kinds.items())
        ]
        shown += [
            f"{typed(place, 'INTEGER' if name == 'verdict' else 'VARCHAR')} AS {quote_name(name)}"
            for name, place in added.items()
        ]
        query = f"SELECT {', '.join(shown)} FROM decided"
        copied(
            lambda text: connection.execute(text).fetchall(),
            query,
            target,
            "FORMAT parquet",
            deciding.names,
            counted.points,
        )
    return counted


class _Deciding(NamedTuple):
    """What decides, the rows it decides, what their tables are called, and who is told of their scores."""

    certificate: Certificate | GroupCertificate
    lines: CsvLines | JsonLines
    names: list[str]
    seen: Seen

    def written(self, target: BinaryIO, said: Said) -> Counted:
        """Write all rows with their answers, and return the counts."""
        counted = Counted()
        for counted, text in self.texts():
            target.write(text)
            said(counted)
        return counted

    def texts(self) -> Iterator[tuple[Counted, Bytes]]:
        """Yield rows with their answers, and the counts so far."""
        started = False
        for counted, batch, codes in self.answered():
            text = self.lines.text(batch, codes)
            yield counted, text if started else _encoded(self.lines.head()) + bytes(text)
            started = True

    def answered(self) -> Iterator[tuple[Counted, ScoredRows, Codes]]:
        """Yield the counts so far, some rows, and the place of each row's answer among `ANSWERS`."""
        certificate, counted = self.certificate, Counted()
        rule: Any = certificate.rules if isinstance(certificate, GroupCertificate) else certificate.rule
        exclusions: Any = certificate.exclusions
        with without_collector():
            for batch in self.lines:
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
                self.seen(scores)
                yield counted, batch, codes
        if not counted.points:
            raise no_rows(self.names)
        if counted.points != self.lines.read:
            raise miscounted(self.names, self.lines.read, counted.points)
