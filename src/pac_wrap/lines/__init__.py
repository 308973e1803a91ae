"""CSV and JSON lines decided as they come, in constant memory; CSV files are decided the same way."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pac_wrap.columns import miscounted, no_rows
from pac_wrap.csvfiles import refuse_scores
from pac_wrap.csvform import CsvRows
from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores
from pac_wrap.lines.cells import Answers, Batch
from pac_wrap.lines.csv_lines import CsvFilesLines, CsvLines
from pac_wrap.lines.json_lines import JsonLines
from pac_wrap.lines.source import is_json_line, is_streamed, read_start
from pac_wrap.stream import VerdictStream
from pac_wrap.textlines import Source
from pac_wrap.thresholds import Thresholds

__all__ = ["decide_files", "decide_lines", "is_streamed", "read_start"]

Form = Literal["jsonl", "csv"]
# label 0 possible counts 1, label 1 possible counts 2
_SETS: Final = ("{}", "{0}", "{1}", "{0,1}")
# every set with every verdict, in the order of the code that `_codes` gives
_ANSWERS: Final[Answers] = [(str(verdict), text) for text in _SETS for verdict in (-1, 0, 1)]


class _Lines(Protocol):
    @property
    def read(self) -> int: ...
    def __iter__(self) -> Iterator[Batch]: ...
    def header(self) -> str: ...
    def text(self, batch: Batch, codes: list[int], answers: Answers) -> str: ...


def decide_lines(
    rule: Thresholds,
    source: Source,
    start: bytes,
    target: BinaryIO,
    score: str,
    form: Form,
    delimiter: str | None = None,
) -> None:
    """Write every row of a source, with its verdict and prediction set, as soon as it has come.

    `start` is what `read_start` gave. A row that cannot be decided ends the stream with a sentence that names
    it; all rows before it are written.
    """
    lines: _Lines
    if is_json_line(start):
        lines = JsonLines(source, start, score, form == "csv")
    else:
        lines = CsvLines(CsvRows(source, start, [score], delimiter), score, form == "csv")
    written = 0
    try:
        for rows, text in _decided(rule, lines, ["-"]):
            target.write(text)
            target.flush()
            written = rows
    except InputError as error:
        if not written:
            raise
        raise InputError(f"{error}; rows decided before it: {written:,}") from error


def decide_files(
    rule: Thresholds, files: Sequence[Path], target: BinaryIO, score: str, form: Form, delimiter: str | None
) -> None:
    """Write every row of CSV files, with its verdict and prediction set."""
    lines = CsvFilesLines(files, score, form == "csv", delimiter)
    try:
        for _, text in _decided(rule, lines, list(map(str, files))):
            target.write(text)
    except InputError:
        refuse_scores(lines.files, score)  # which counts what is missing
        raise


def _decided(rule: Thresholds, lines: _Lines, names: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield rows with their answers, and how many there are so far; all that were read must be among them."""
    held: list[Batch] = []
    stream = VerdictStream(rule, _scores(lines, held))
    with _without_collector():
        for verdicts in stream:
            (batch,) = held
            head = lines.header() if stream.rows == verdicts.size else ""
            text = lines.text(batch, _codes(rule, batch.scores, verdicts), _ANSWERS)
            yield stream.rows, (head + text).encode("utf-8", "surrogateescape")
    if not stream.rows:
        raise no_rows(names)
    if stream.rows != lines.read:
        raise miscounted(names, lines.read, stream.rows)


def _scores(lines: _Lines, held: list[Batch]) -> Iterator[Scores]:
    """Yield the scores of each batch, which is held until the next one is asked for."""
    for batch in lines:
        held[:] = [batch]
        yield batch.scores


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


def _codes(rule: Thresholds, scores: Scores, verdicts: NDArray[np.int8]) -> list[int]:
    sets = rule.prediction_sets(scores).view(np.int8)
    codes: Any = 3 * (sets[:, 0] + 2 * sets[:, 1]) + verdicts + 1
    return list(codes.tolist())
