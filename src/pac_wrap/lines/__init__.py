"""CSV and JSON lines decided as they come, line by line, in constant memory."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pac_wrap.columns import no_rows
from pac_wrap.errors import InputError
from pac_wrap.inputs import Scores
from pac_wrap.lines.cells import Answers, Batch
from pac_wrap.lines.csv_lines import CsvLines
from pac_wrap.lines.json_lines import JsonLines
from pac_wrap.lines.source import Source, is_json_line, is_streamed, read_start
from pac_wrap.stream import VerdictStream
from pac_wrap.thresholds import Thresholds

__all__ = ["decide_lines", "is_streamed", "read_start"]

Form = Literal["jsonl", "csv"]
# label 0 possible counts 1, label 1 possible counts 2
_SETS: Final = ("{}", "{0}", "{1}", "{0,1}")
# every set with every verdict, in the order of the code that `_codes` gives
_ANSWERS: Final[Answers] = [(str(verdict), text) for text in _SETS for verdict in (-1, 0, 1)]


class _Lines(Protocol):
    def __iter__(self) -> Iterator[Batch]: ...
    def header(self) -> str: ...
    def text(self, batch: Batch, codes: list[int], answers: Answers) -> str: ...


def decide_lines(
    rule: Thresholds, source: Source, start: bytes, target: BinaryIO, score: str, form: Form
) -> None:
    """Write every row of a source, with its verdict and prediction set, as soon as it has come.

    `start` is what `read_start` gave. A row that cannot be decided ends the stream with a sentence that names
    it; all rows before it are written.
    """
    lines: _Lines = (JsonLines if is_json_line(start) else CsvLines)(source, start, score, form == "csv")
    held: list[Batch] = []
    stream = VerdictStream(rule, _scores(lines, held))
    try:
        with _without_collector():
            for verdicts in stream:
                (batch,) = held
                head = lines.header() if stream.rows == verdicts.size else ""
                text = lines.text(batch, _codes(rule, batch.scores, verdicts), _ANSWERS)
                target.write((head + text).encode("utf-8", "surrogateescape"))
                target.flush()
    except InputError as error:
        if not stream.rows:
            raise
        raise InputError(f"{error}; rows decided before it: {stream.rows:,}") from error
    if not stream.rows:
        raise no_rows(["-"])


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
