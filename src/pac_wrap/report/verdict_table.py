"""Which scores get which verdict: the rows of the verdict table."""

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from pac_wrap.base.arguments import Scores
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Rule, Verdict
from pac_wrap.report.numbers import ceiling, share, told_apart
from pac_wrap.report.subject import Report

# [low, high), None where it is unbounded: infinite scores are then included
Range = tuple[float | None, float | None]

_UNDECIDED: Final = "Undecided: neither an alarm nor an all-clear. Have these points looked at."


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One verdict: the scores that get it, what it means, and the calibration points it fell on.

    `scores` is the range in words, `range` in numbers; it is None where no score gets the verdict.
    """

    verdict: Verdict
    range: Range | None
    scores: str
    meaning: str
    normal: int
    n_normal: int
    anomalous: int
    n_anomalous: int

    @property
    def name(self) -> str:
        """The verdict in the word that the table shows."""
        return self.verdict.name.lower()

    @property
    def normal_share(self) -> str:
        """The share of calibration normals that got this verdict."""
        return share(self.normal, self.n_normal)

    @property
    def anomalous_share(self) -> str:
        """The share of calibration anomalies that got this verdict."""
        return share(self.anomalous, self.n_anomalous)


def ranges(rule: Rule) -> dict[Verdict, Range]:
    """Return the scores that get each verdict, in ascending order; a verdict that none gets is left out.

    >>> ranges(Rule(normal_below=0.3, anomaly_from=0.7))[Verdict.ABSTAIN]
    (0.3, 0.7)
    >>> ranges(Rule(0.7, 0.7))
    {<Verdict.NORMAL: 0>: (None, 0.7), <Verdict.ANOMALY: 1>: (0.7, None)}
    """
    low, high = rule.normal_below, rule.anomaly_from
    start, stop = None if low == -inf else low, None if high == inf else high
    found: dict[Verdict, Range] = {}
    if low > -inf:
        found[Verdict.NORMAL] = (None, stop if rule.single else low)
    if not rule.single:
        found[Verdict.ABSTAIN] = (start, stop)
    if stop is not None:
        found[Verdict.ANOMALY] = (start if rule.single else stop, None)
    return found


def verdict_rows(report: Report) -> tuple[VerdictRow, ...]:
    """Return a row for each verdict; without abstention that row is left out, the others never are."""
    certificate = report.certificate
    rule = certificate.rule
    found = ranges(rule)
    words = range_words(found)
    normal, anomalous = _counts(rule, report.normal), _counts(rule, report.anomalous)
    return tuple(
        VerdictRow(
            verdict,
            found.get(verdict),
            words.get(verdict, "no score"),
            _meaning(certificate.certified, verdict, verdict in found),
            normal[verdict],
            report.normal.size,
            anomalous[verdict],
            report.anomalous.size,
        )
        for verdict in (Verdict.NORMAL, Verdict.ABSTAIN, Verdict.ANOMALY)
        if verdict in found or verdict is not Verdict.ABSTAIN
    )


def range_words(found: dict[Verdict, Range]) -> dict[Verdict, str]:
    """Return each range in words.

    >>> range_words({Verdict.NORMAL: (None, 0.3)})[Verdict.NORMAL]
    'below 0.3'
    """
    ends = sorted({end for ends in found.values() for end in ends if end is not None})
    text = dict(zip(ends, told_apart(ends), strict=True))

    def words(low: float | None, high: float | None) -> str:
        if low is None:
            return "every score" if high is None else f"below {text[high]}"
        return f"from {text[low]} on" if high is None else f"from {text[low]} to below {text[high]}"

    return {verdict: words(*ends) for verdict, ends in found.items()}


def _meaning(kept: Guarantee | None, verdict: Verdict, declared: bool) -> str:
    if not declared:
        return "This verdict is never given."
    if verdict is Verdict.ABSTAIN or kept is None:
        return _UNDECIDED
    said, rate, others = (
        ("No alarm.", kept.max_fnr, "anomalies")
        if verdict is Verdict.NORMAL
        else ("Alarm.", kept.max_fpr, "normal points")
    )
    if rate is None:
        return f"{said} How many {others} get this verdict is not promised."
    return f"{said} At most {ceiling(rate)} of future {others} get this verdict."


def _counts(rule: Rule, scores: Scores) -> dict[Verdict, int]:
    verdicts = rule.verdicts(scores)
    return {verdict: int(np.count_nonzero(verdicts == verdict)) for verdict in Verdict}
