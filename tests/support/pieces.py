"""Bytes that arrive in pieces, decided line by line in this process."""

import csv
import io
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from pac_wrap import Certificate, Guarantee, calibrate
from pac_wrap.base.arguments import OnMissing
from pac_wrap.method.rule import Thresholds
from pac_wrap.streams.decide import Asked, decide_lines, is_streamed
from pac_wrap.tables.files.text_format import read_start
from support.strategies import refusal

TextFormat = Literal["jsonl", "csv"]


def certificate_of(thresholds: Thresholds) -> Certificate:
    """Return a certificate whose two classes, or the only one that is promised, give these thresholds."""
    ceilings = (None if edge is None else 0.05 for edge in (thresholds.alarm_from, thresholds.clear_below))
    made = calibrate(range(100), range(100), Guarantee(*ceilings))
    edges = {"normal": thresholds.alarm_from, "anomalous": thresholds.clear_below}
    clauses = tuple(replace(one, threshold=edges[one.of.label]) for one in made.clauses)
    return replace(made, clauses=clauses, rule=thresholds.rule)


RULE = certificate_of(Thresholds(alarm_from=0.7, clear_below=0.3))
SETS = {(True, False): "{0}", (False, True): "{1}", (True, True): "{0,1}", (False, False): "{}"}


def answers(rule: Certificate, scores: list[float]) -> list[tuple[int, str]]:
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
    form: TextFormat = "jsonl",
    *,
    score: str = "s",
    cuts: list[int] | None = None,
    rule: Certificate = RULE,
    source: str | None = None,
) -> bytes:
    reader, target = Pieces(content.encode() if isinstance(content, str) else content, cuts), io.BytesIO()
    start = read_start(reader)
    assert is_streamed(start)
    decide_lines(rule, reader, start, target, Asked(score, form == "csv", source=source))
    return target.getvalue()


def stopped(
    content: bytes | str, form: TextFormat = "jsonl", score: str = "s", on_missing: OnMissing = "abstain"
) -> tuple[bytes, str]:
    """Return what was written before the stream stopped, and the sentence."""
    reader, target = Pieces(content.encode() if isinstance(content, str) else content), io.BytesIO()
    start = read_start(reader)

    def run() -> None:
        assert is_streamed(start)
        decide_lines(RULE, reader, start, target, Asked(score, form == "csv", on_missing))

    sentence = refusal(run)
    return target.getvalue(), sentence


def rows_of(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8", "surrogateescape"), newline="")))
