"""What a report is about: a certificate, the scores it was made from, its error rates and its verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from pac_wrap.base.arguments import Scores, as_scores
from pac_wrap.base.floats import rounded
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.alarms import Prevalence, as_interval
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.metrics import Metrics, Rate, exceeded
from pac_wrap.method.promise import Promise
from pac_wrap.method.rule import Rule, Verdict
from pac_wrap.method.thresholds import Evidence
from pac_wrap.ranks.kernels import digest
from pac_wrap.report.words.numbers import ceiling, share, told_apart

# [low, high), None where it is unbounded: infinite scores are then included
Range = tuple[float | None, float | None]

# what a promise about points of a series rests on where these are worth too few
CONDITION: Final = "points of one series do not depend on each other"
_UNDECIDED: Final = "Undecided: neither an alarm nor an all-clear. Have these points looked at."


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the calibration scores came from: the tables, the column of scores and that of labels."""

    tables: tuple[str, ...]
    score: str
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A certificate with the scores it was calibrated on, if they are at hand; what every renderer takes.

    `metrics` are rates measured on held-out points, `prevalence` is the share of anomalies among future
    points, or two between which it lies, `in_time` what is said of series that calibrate and of those that
    were held out, as pairs of a heading and a text. Scores that are not those of the certificate are refused,
    because everything that is said about calibration points would be untrue.

    >>> from pac_wrap import calibrate
    >>> Report(calibrate(range(100), range(200, 300)), range(100), range(300, 400))
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: the anomalous scores are not those the certificate was made from (their \
digests differ); pass the calibration scores
    """

    certificate: Certificate
    normal: Scores | None = None
    anomalous: Scores | None = None
    source: Origin | None = None
    metrics: Metrics | None = None
    detector: str | None = None
    prevalence: Prevalence | None = None
    in_time: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if (self.normal is None) != (self.anomalous is None):
            raise InputError("pass the calibration scores of both classes, or of neither")
        if self.prevalence is not None:
            object.__setattr__(self, "prevalence", as_interval(self.prevalence))
        for name in () if self.normal is None else ("normal", "anomalous"):
            scores = rounded(as_scores(getattr(self, name), name), self.certificate.score_type)
            evidence = getattr(self.certificate, name)
            if scores.size != evidence.n or evidence.digest not in (None, digest(scores)):
                raise InputError(
                    f"the {name} scores are not those the certificate was made from (their digests differ);"
                    " pass the calibration scores"
                )
            object.__setattr__(self, name, scores)

    @property
    def shares(self) -> tuple[float, float] | None:
        """The least and the greatest prevalence: that which was stated, or that of the calibration points."""
        if isinstance(self.prevalence, tuple):
            return self.prevalence
        sizes = self.certificate.normal.n, self.certificate.anomalous.n
        return (sizes[1] / sum(sizes),) * 2 if all(sizes) else None


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """One of the two error rates: its names, what was asked and certified, and what it rests on."""

    name: str
    kind: str
    errors: str
    mistake: str
    asked: float | None
    certified: float | None
    delta: float
    asked_delta: float
    evidence: Evidence
    threshold: float | None
    measured: Rate | None = None
    promise: Promise | None = None  # what was asked for, with its room for shift and wrong labels
    effective: float | None = None  # how many independent points those of a series are worth
    misjudged: int | None = None  # how many points of a series the rule gets wrong
    overstated: bool = False  # whether so few independent points do not carry what is promised

    @property
    def at_hand(self) -> int:
        """How many labels there are, or how many independent ones they are worth."""
        return self.evidence.n if self.effective is None else int(min(self.effective, self.evidence.n))

    @property
    def counted(self) -> str:
        """The number of labels, and what they are worth if they are of a series."""
        return f"{self.evidence.n:,}{'' if self.effective is None else f', worth about {self.at_hand:,}'}"

    exceeded: bool = False  # whether the measured rate is significantly above the ceiling

    @property
    def lacks_labels(self) -> bool:
        """Whether too few points are labelled for what was asked."""
        return self.evidence.budget is not None and self.evidence.budget.errors is None

    @property
    def kept(self) -> bool:
        """Whether a ceiling is promised that enough labels support."""
        return self.certified is not None and not self.lacks_labels

    @property
    def needed(self) -> int:
        """How many labelled points the budget needs at least."""
        return self.evidence.n + (self.evidence.budget.missing if self.evidence.budget else 0)

    @property
    def raised(self) -> bool:
        """Whether the ceiling is higher than what was asked for."""
        return self.asked is not None and (self.certified is None or self.certified > self.asked)

    @property
    def less_confident(self) -> bool:
        """Whether the confidence is lower than what was asked for."""
        return self.certified is not None and self.delta > self.asked_delta

    @property
    def sentence(self) -> str:
        """The promise of this rate, as part of a sentence."""
        return f"the rate of {self.mistake} is at most {ceiling(self.certified or 1.0)}"


def error_rates(certificate: Certificate, metrics: Metrics | None = None) -> tuple[ErrorRate, ErrorRate]:
    """Return the false positive and the false negative rate of a certificate.

    >>> from pac_wrap import calibrate
    >>> [rate.name for rate in error_rates(calibrate(range(100), range(200, 300)))]
    ['FPR', 'FNR']
    """
    asked = certificate.guarantee
    kept, taken = certificate.certified, certificate.sampling
    promised = asked if kept is None else kept
    evidence = {"FPR": certificate.normal, "FNR": certificate.anomalous}
    lacking = [name for name, one in evidence.items() if one.budget is not None and one.budget.errors is None]
    over = () if metrics is None else exceeded(metrics, kept, lacking)
    return (
        ErrorRate(
            "FPR",
            "normal",
            "false alarms",
            "future normal points that are called anomalies",
            asked.max_fpr,
            None if kept is None else kept.max_fpr,
            promised.delta_fpr,
            asked.delta_fpr,
            certificate.normal,
            certificate.thresholds.alarm_from,
            None if metrics is None else metrics.fpr,
            asked.fpr,
            None if taken is None else taken.effective_normal,
            None if taken is None else taken.errors_normal,
            "normal" in certificate.overstated,
            "FPR" in over,
        ),
        ErrorRate(
            "FNR",
            "anomalous",
            "missed anomalies",
            "future anomalies that are called normal",
            asked.max_fnr,
            None if kept is None else kept.max_fnr,
            promised.delta_fnr,
            asked.delta_fnr,
            certificate.anomalous,
            certificate.thresholds.clear_below,
            None if metrics is None else metrics.fnr,
            asked.fnr,
            None if taken is None else taken.effective_anomalous,
            None if taken is None else taken.errors_anomalous,
            "anomalous" in certificate.overstated,
            "FNR" in over,
        ),
    )


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One verdict: the scores that get it, what it means, and the calibration points it fell on.

    `scores` is the range in words, `range` in numbers; it is None where no score gets the verdict.
    """

    verdict: Verdict
    range: Range | None
    scores: str
    meaning: str
    normal: int | None
    n_normal: int
    anomalous: int | None
    n_anomalous: int

    @property
    def name(self) -> str:
        """The verdict in the word that the table shows."""
        return self.verdict.name.lower()

    @property
    def normal_share(self) -> str:
        """The share of calibration normals that got this verdict."""
        return "not counted" if self.normal is None else share(self.normal, self.n_normal)

    @property
    def anomalous_share(self) -> str:
        """The share of calibration anomalies that got this verdict."""
        return "not counted" if self.anomalous is None else share(self.anomalous, self.n_anomalous)


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
    sizes = certificate.normal.n, certificate.anomalous.n
    said, kept = {}, certificate.certified
    if kept is not None:
        said[Verdict.NORMAL] = meaning("No alarm.", kept.max_fnr, "anomalies")
        said[Verdict.ANOMALY] = meaning("Alarm.", kept.max_fpr, "normal points")
    return rows_of_rule(certificate.rule, (report.normal, report.anomalous), sizes, said)


def rows_of_rule(
    rule: Rule,
    scores: tuple[Scores | None, Scores | None],
    sizes: tuple[int, int],
    meanings: Mapping[Verdict, str],
) -> tuple[VerdictRow, ...]:
    """Return a row for each verdict of a rule, with what it means; without a meaning it is undecided."""
    found = ranges(rule)
    words = range_words(found)
    normal, anomalous = (_counts(rule, some) for some in scores)
    return tuple(
        VerdictRow(
            verdict,
            found.get(verdict),
            words.get(verdict, "no score"),
            meanings.get(verdict, _UNDECIDED) if verdict in found else "This verdict is never given.",
            normal.get(verdict),
            sizes[0],
            anomalous.get(verdict),
            sizes[1],
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


def meaning(said: str, rate: float | None, others: str) -> str:
    """Return what a verdict means, given that at most that share of others get it."""
    if rate is None:
        return f"{said} How many {others} get this verdict is not promised."
    return f"{said} The rate of future {others} that get this verdict is at most {ceiling(rate)}."


def _counts(rule: Rule, scores: Scores | None) -> dict[Verdict, int]:
    if scores is None:
        return {}
    verdicts = rule.verdicts(scores)
    return {verdict: int(np.count_nonzero(verdicts == verdict)) for verdict in Verdict}
