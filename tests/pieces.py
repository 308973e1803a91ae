"""Bytes that arrive in pieces, decided line by line in this process."""

import csv
import io
from itertools import pairwise

from pac_wrap import Thresholds
from pac_wrap.lines import Form, decide_lines, is_streamed, read_start
from strategies import refusal

RULE = Thresholds(alarm_from=0.7, clear_below=0.3)
SETS = {(True, False): "{0}", (False, True): "{1}", (True, True): "{0,1}", (False, False): "{}"}


def answers(rule: Thresholds, scores: list[float]) -> list[tuple[int, str]]:
    """Return the verdicts and prediction sets of scores as they have to be written."""
    sets = [SETS[bool(zero), bool(one)] for zero, one in rule.prediction_sets(scores)]
    return list(zip(rule.verdicts(scores).tolist(), sets, strict=True))


class Pieces:
    """Bytes that arrive as they were cut."""

    def __init__(self, content: bytes, cuts: list[int] | None = None) -> None:
        edges = [0, *sorted(cut for cut in cuts or [] if 0 < cut < len(content)), len(content)]
        self.left = [content[a:b] for a, b in pairwise(edges) if b > a]

    def read1(self, size: int, /) -> bytes:
        return self.left.pop(0) if self.left else b""


def decided(
    content: bytes | str,
    form: Form = "jsonl",
    *,
    score: str = "s",
    cuts: list[int] | None = None,
    rule: Thresholds = RULE,
) -> bytes:
    source, target = Pieces(content.encode() if isinstance(content, str) else content, cuts), io.BytesIO()
    start = read_start(source)
    assert is_streamed(start)
    decide_lines(rule, source, start, target, score, form)
    return target.getvalue()


def stopped(content: bytes | str, form: Form = "jsonl", score: str = "s") -> tuple[bytes, str]:
    """Return what was written before the stream stopped, and the sentence."""
    source, target = Pieces(content.encode() if isinstance(content, str) else content), io.BytesIO()
    start = read_start(source)

    def run() -> None:
        assert is_streamed(start)
        decide_lines(RULE, source, start, target, score, form)

    sentence = refusal(run)
    return target.getvalue(), sentence


def rows_of(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8", "surrogateescape"), newline="")))
