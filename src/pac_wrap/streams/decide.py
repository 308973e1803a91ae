"""CSV and JSON lines decided as they arrive, in constant memory; CSV files are decided the same way."""

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.rules import decided, sets_of
from pac_wrap.method.groups.values import NEVER
from pac_wrap.method.worth.shares import Counted
from pac_wrap.streams.answers import Asked, ScoredRows
from pac_wrap.streams.csv_lines import CsvLines
from pac_wrap.streams.json_lines import JsonLines
from pac_wrap.tables.columns import all_columns, miscounted, no_rows
from pac_wrap.tables.files.csv_files import CsvFile, headers, opened_rows, refuse_scores
from pac_wrap.tables.files.text_format import (
    CHUNK,
    EMPTY_INPUT,
    LONGEST,
    MARK,
    PARQUET,
    ByteReader,
    CsvRows,
    is_json,
    only_in_csv,
    refuse_binary,
)

# verdicts, prediction sets and counts of a few rows
Answered = tuple[NDArray[np.int8], NDArray[np.bool_], Counted]


def read_start(reader: ByteReader) -> bytes:
    """Return the bytes up to the first line with content, and what came with them."""
    start = b""
    while chunk := reader.read1(CHUNK):
        start += chunk
        if b"\n" in _content(start) or start[:4] == PARQUET or len(start) > LONGEST:
            break
    return start


def is_streamed(start: bytes) -> bool:
    """Return whether a table that starts so can be decided line by line: CSV and JSON lines can.

    Parquet, a JSON array and JSON objects that span lines have to be read whole.
    """
    refuse_binary(start, "standard input")
    if not _content(start):
        raise InputError(EMPTY_INPUT)
    if is_json(start):
        return is_json_line(start)
    return start[:4] != PARQUET


def is_json_line(start: bytes) -> bool:
    """Return whether the first line with content is a JSON object."""
    line = _content(start).split(b"\n", 1)[0]
    try:
        return line[:1] == b"{" and isinstance(json.loads(line.decode("utf-8", "surrogateescape")), dict)
    except (ValueError, RecursionError):
        return False


def _content(start: bytes) -> bytes:
    return start.removeprefix(MARK).lstrip()


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
        lines = JsonLines(reader, start, "-", asked)
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


def _decided(
    certificate: Certificate | GroupCertificate,
    lines: CsvLines | JsonLines,
    names: list[str],
    seen: Callable[[Scores], None],
) -> Iterator[tuple[Counted, bytes]]:
    """Yield rows with their answers, and the counts so far; all rows that were read must be among them."""
    counted, answers = Counted(), _answers(certificate)
    with _without_collector():
        for batch in lines:
            verdicts, possible, decided = answers(batch)
            sets = possible.view(np.int8)
            # the place of each score's answer among `ANSWERS`
            codes: Any = 3 * (sets[:, 0] + 2 * sets[:, 1]) + verdicts + 1
            text = ("" if counted.points else lines.head()) + lines.text(batch, codes.tolist())
            counted += decided
            seen(batch.scores)
            yield counted, text.encode("utf-8", "surrogateescape")
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


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switch the search for cycles off: rows make none, and it would take a fifth of the time."""
    usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()
