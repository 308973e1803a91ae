"""CSV and JSON lines decided as they arrive, in constant memory; CSV files are decided the same way."""

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import numpy as np

from pac_wrap.base.arguments import Scores
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.rule import Rule
from pac_wrap.method.thresholds import Thresholds
from pac_wrap.streams.lines import CsvLines, JsonLines
from pac_wrap.tables.columns import all_columns, miscounted, no_rows
from pac_wrap.tables.csv_files import CsvFile, headers, opened_rows, refuse_scores
from pac_wrap.tables.text_format import (
    CHUNK,
    EMPTY_INPUT,
    LONGEST,
    MARK,
    PARQUET,
    ByteReader,
    CsvRows,
    is_json,
)

_UNREADABLE: Final = {
    b"\x1f\x8b": "packed by gzip; unpack it first, for example with gunzip",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first, for example with unzstd",
    b"\xff\xfe": "UTF-16; convert it first, for example with iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "UTF-16; convert it first, for example with iconv -f utf-16 -t utf-8",
}
TextFormat = Literal["jsonl", "csv"]


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
    for bytes_, what in _UNREADABLE.items():
        if start.startswith(bytes_):
            raise InputError(f"standard input is {what}")
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
    certificate: Certificate,
    reader: ByteReader,
    start: bytes,
    target: BinaryIO,
    score: str,
    form: TextFormat,
    delimiter: str | None = None,
) -> None:
    """Write every row, with its verdict and prediction set, as soon as it arrives.

    `start` is what `read_start` gave. A row that cannot be decided ends the stream with a sentence that names
    it; all rows before it are written.
    """
    lines: CsvLines | JsonLines
    if is_json_line(start):
        lines = JsonLines(reader, start, score, form == "csv")
    else:
        rows = CsvRows(reader, start, [score], delimiter)
        lines = CsvLines([nullcontext(rows)], rows.header.names, score, form == "csv")
    written = 0
    try:
        for decided, text in _decided(certificate, lines, ["-"]):
            target.write(text)
            target.flush()
            written = decided
    except InputError as error:
        if not written:
            raise
        raise InputError(f"{error}; rows decided before it: {written:,}") from error


def decide_files(
    certificate: Certificate,
    files: Sequence[Path],
    target: BinaryIO,
    score: str,
    form: TextFormat,
    delimiter: str | None,
) -> None:
    """Write every row of CSV files, with its verdict and prediction set."""
    found = [CsvFile(*pair) for pair in zip(files, headers(files, [score], delimiter), strict=True)]
    columns = all_columns(files, [file.header.names for file in found])
    opened = (opened_rows(file.path, [score], file.header.delimiter) for file in found)
    lines = CsvLines(opened, columns, score, form == "csv")
    try:
        for _, text in _decided(certificate, lines, list(map(str, files))):
            target.write(text)
    except InputError:
        refuse_scores(found, score)  # which counts what is missing
        raise


def _decided(
    certificate: Certificate, lines: CsvLines | JsonLines, names: list[str]
) -> Iterator[tuple[int, bytes]]:
    """Yield rows with their answers, and their number so far; all rows that were read must be among them."""
    rows, rule, exclusions = 0, certificate.rule, certificate.exclusions
    with _without_collector():
        for batch in lines:
            text = ("" if rows else lines.head()) + lines.text(batch, _codes(rule, exclusions, batch.scores))
            rows += batch.scores.size
            yield rows, text.encode("utf-8", "surrogateescape")
    if not rows:
        raise no_rows(names)
    if rows != lines.read:
        raise miscounted(names, lines.read, rows)


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


def _codes(rule: Rule, exclusions: Thresholds, scores: Scores) -> list[int]:
    """Return the place of each score's answer among `ANSWERS`."""
    sets = exclusions.prediction_sets(scores).view(np.int8)
    codes: Any = 3 * (sets[:, 0] + 2 * sets[:, 1]) + rule.verdicts(scores) + 1
    return list(codes.tolist())
