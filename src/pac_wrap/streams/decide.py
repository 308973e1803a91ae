"""CSV and JSON lines decided as they arrive, in constant memory; CSV files are decided the same way."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.shares import Counted
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate, decided, sets_of
from pac_wrap.method.groups.values import NEVER
from pac_wrap.streams.answers import Asked, ScoredRows
from pac_wrap.streams.csv_lines import CsvLines
from pac_wrap.streams.json_lines import ColumnKind, JsonLines, cell, json_columns, refuse_json_scores
from pac_wrap.tables.columns import all_columns, miscounted, no_rows, refuse_twins
from pac_wrap.tables.decide import copied
from pac_wrap.tables.files.connection import connected
from pac_wrap.tables.files.csv_files import CsvFile, headers, opened_json, opened_rows, refuse_scores
from pac_wrap.tables.files.duckdb_view import Growing, quoted_names
from pac_wrap.tables.files.text_format import (
    EMPTY_INPUT,
    MARK,
    PARQUET,
    ByteReader,
    CsvRows,
    JsonRows,
    is_json,
    is_json_line,
    only_in_csv,
    refuse_binary,
    without_collector,
)
from pac_wrap.tables.sql.expressions import number_sql, quote_name

# verdicts, prediction sets and counts of a few rows
Answered = tuple[NDArray[np.int8], NDArray[np.bool_], Counted]


def is_streamed(start: bytes) -> bool:
    """Return whether a table that starts so can be decided line by line: CSV and JSON lines can.

    Parquet, a JSON array and JSON objects that span lines have to be read whole.
    """
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
    said: Callable[[Counted], None] = lambda counted: None,
    seen: Callable[[Scores], None] = lambda scores: None,
) -> Counted:
    """Write every row, with its verdict and prediction set, as soon as it arrives, and return the counts.

    `start` is what `read_start` gave. A row that cannot be decided ends the stream with a sentence that names
    it; all rows before it are written. `said` is told the counts so far, those of the rows about to be
    written included, and `seen` the scores.
    """
    lines: CsvLines | JsonLines
    if is_json_line(start):
        only_in_csv(delimiter)
        lines = JsonLines([("-", nullcontext(JsonRows(reader, start)))], asked)
    else:
        rows = CsvRows(reader, start, asked.wanted, delimiter)
        lines = CsvLines([("-", nullcontext(rows))], rows.header.names, asked)
    written = Counted()
    try:
        for decided, text in _decided(certificate, lines, ["-"], seen):
            # before whoever reads the rows may end it: what they have seen is counted
            said(decided)
            target.write(text)
            target.flush()
            written = decided
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
    said: Callable[[Counted], None] = lambda counted: None,
    seen: Callable[[Scores], None] = lambda scores: None,
) -> Counted:
    """Write every row of CSV files, with its verdict and prediction set, and return the counts.

    `names` are what the files are called in the column of sources.
    """
    score, wanted = asked.score, asked.wanted
    found = [CsvFile(*pair) for pair in zip(files, headers(files, wanted, delimiter), strict=True)]
    columns = all_columns(files, [file.header.names for file in found])
    opened = (opened_rows(file.path, wanted, file.header.delimiter) for file in found)
    lines = CsvLines(zip(names, opened, strict=True), columns, asked)
    counted = Counted()
    try:
        for counted, text in _decided(certificate, lines, list(map(str, files)), seen):
            target.write(text)
            said(counted)
    except InputError:
        refuse_scores(found, score, asked.on_missing)  # which counts what is missing
        raise
    return counted


def decide_json_files(
    certificate: Certificate | GroupCertificate,
    files: Sequence[Path],
    names: Sequence[str],
    target: BinaryIO | Path,
    asked: Asked,
    said: Callable[[Counted], None] = lambda counted: None,
    seen: Callable[[Scores], None] = lambda scores: None,
) -> Counted:
    """Write every row of JSON files, with its verdict and prediction set, and return the counts.

    A target that is a path becomes Parquet.
    """
    columns = json_columns(files, asked.wanted, whole=asked.as_csv)
    opened = (opened_json(file) for file in files)
    lines = JsonLines(zip(names, opened, strict=True), asked, columns)
    listed, counted = list(map(str, files)), Counted()
    try:
        if isinstance(target, Path):
            return _to_parquet(certificate, lines, listed, target, asked, seen)
        for counted, text in _decided(certificate, lines, listed, seen):
            target.write(text)
            said(counted)
    except InputError:
        refuse_json_scores(files, asked.score, asked.on_missing)  # which counts what is missing
        raise
    return counted


def _to_parquet(
    certificate: Certificate | GroupCertificate,
    lines: JsonLines,
    names: list[str],
    target: Path,
    asked: Asked,
    seen: Callable[[Scores], None],
) -> Counted:
    """Write rows of JSON with their answers to a Parquet file, as texts unless a column is one of numbers."""
    kinds: dict[str, ColumnKind] = {}
    counted = Counted()
    added = {name: f"a{place}" for place, name in enumerate(asked.added)}
    with connected([], output=target) as connection:
        table = Growing(connection, "decided", dict.fromkeys(added.values(), "VARCHAR"))
        for so_far, batch, codes in _answered(certificate, lines, names, seen):
            counted = so_far
            answers = zip(*(lines.endings.cells[code] for code in codes), strict=True)
            columns: dict[str, Sequence[Any]] = dict(zip(added.values(), answers, strict=True))
            for name in batch.names:
                if name not in kinds:
                    table.widen(f"c{len(kinds)}")
                    kinds[name] = ColumnKind()
            for place, (name, kind) in enumerate(kinds.items()):
                values = [row.get(name) for row in batch.rows]
                kind.see(values)
                columns[f"c{place}"] = list(map(cell, values))
            lines.refuse_odd(columns.values())
            table.add(columns, len(batch.rows))
        table.flush()
        refuse_twins(list(kinds), ", ".join(names))
        quoted = quoted_names(list(kinds))
        shown = [
            f"{_typed(f'c{place}', 'SCORE' if name == asked.score else kind.name)} AS {quoted[name]}"
            for place, (name, kind) in enumerate(kinds.items())
        ]
        shown += [
            f"{_typed(place, 'INTEGER' if name == 'verdict' else 'VARCHAR')} AS {quote_name(name)}"
            for name, place in added.items()
        ]
        written = copied(
            connection, f"SELECT {', '.join(shown)} FROM decided", target, "FORMAT parquet", names
        )
    if written != counted.points:
        raise miscounted(names, counted.points, written)
    return counted


def _typed(column: str, kind: str) -> str:
    """Return a column of texts as a type; a score is what number it is."""
    return number_sql(column) if kind == "SCORE" else f"CAST({column} AS {kind})"


def _decided(
    certificate: Certificate | GroupCertificate,
    lines: CsvLines | JsonLines,
    names: list[str],
    seen: Callable[[Scores], None],
) -> Iterator[tuple[Counted, bytes]]:
    """Yield rows with their answers, and the counts so far."""
    started = False
    for counted, batch, codes in _answered(certificate, lines, names, seen):
        text = ("" if started else lines.head()) + lines.text(batch, codes)
        started = True
        yield counted, text.encode("utf-8", "surrogateescape")


def _answered(
    certificate: Certificate | GroupCertificate,
    lines: CsvLines | JsonLines,
    names: list[str],
    seen: Callable[[Scores], None],
) -> Iterator[tuple[Counted, ScoredRows, list[int]]]:
    """Yield the counts so far, some rows, and the place of each row's answer among `ANSWERS`.

    All rows that were read must be among them.
    """
    counted, answers = Counted(), _answers(certificate)
    with without_collector():
        for batch in lines:
            verdicts, possible, decided = answers(batch)
            sets = possible.view(np.int8)
            codes: Any = 3 * (sets[:, 0] + 2 * sets[:, 1]) + verdicts + 1
            counted += decided
            seen(batch.scores)
            yield counted, batch, codes.tolist()
    if not counted.points:
        raise no_rows(names)
    if counted.points != lines.read:
        raise miscounted(names, lines.read, counted.points)


def _answers(certificate: Certificate | GroupCertificate) -> Callable[[ScoredRows], Answered]:
    """Return what gives the verdicts, the prediction sets and the counts of a few rows."""
    if isinstance(certificate, GroupCertificate):
        return partial(_by_group, certificate, certificate.rules, certificate.exclusions)
    rule, exclusions = certificate.rule, certificate.exclusions

    def answers(batch: ScoredRows) -> Answered:
        verdicts, missing = rule.decided(batch.scores)
        possible = exclusions.possible(batch.scores, missing)
        return verdicts, possible, Counted.of(verdicts, missing.size)

    return answers


def _by_group(certificate: GroupCertificate, rules: Any, exclusions: Any, batch: ScoredRows) -> Answered:
    places = certificate.lookup.places(batch.groups or [])
    verdicts = decided(rules, batch.scores, places)
    missing, unseen = np.isnan(batch.scores), places == NEVER
    counted = Counted.of(verdicts, int(missing.sum()), int(unseen.sum()))
    return verdicts, sets_of(exclusions, batch.scores, places), counted
