"""What a report is about: a certificate, the scores it was made from, and its two error rates."""

from dataclasses import dataclass

from pac_wrap.base.arguments import Scores, as_scores
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate, Evidence
from pac_wrap.method.metrics import Metrics, Rate, is_exceeded
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.precision import rounded
from pac_wrap.report.numbers import ceiling


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the calibration scores came from: the tables, the column of scores and that of labels."""

    tables: tuple[str, ...]
    score: str
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A certificate with the scores it was calibrated on; what every renderer takes.

    `metrics` are rates measured on held-out points. Scores that are not those of the certificate are refused,
    because everything that is said about calibration points would be untrue.

    >>> from pac_wrap import calibrate
    >>> Report(calibrate([0.1, 0.2], [0.8]), [0.1, 0.2], [0.9])
    Traceback (most recent call last):
    ...
    pac_wrap.errors.InputError: the anomalous scores are not those the certificate was made from (their \
digests differ); pass the calibration scores
    """

    certificate: Certificate
    normal: Scores
    anomalous: Scores
    source: Origin | None = None
    metrics: Metrics | None = None
    detector: str | None = None

    def __post_init__(self) -> None:
        for name in ("normal", "anomalous"):
            scores = rounded(as_scores(getattr(self, name), name), self.certificate.score_type)
            evidence = getattr(self.certificate, name)
            if scores.size != evidence.n or digest(scores) != evidence.digest:
                raise InputError(
                    f"the {name} scores are not those the certificate was made from (their digests differ);"
                    " pass the calibration scores"
                )
            object.__setattr__(self, name, scores)


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
    def exceeded(self) -> bool:
        """Whether the rate measured on held-out points lies significantly above the ceiling."""
        return self.measured is not None and is_exceeded(self.certified, self.measured)

    @property
    def sentence(self) -> str:
        """The promise of this rate, as part of a sentence."""
        return f"at most {ceiling(self.certified or 1.0)} of {self.mistake}"


def error_rates(certificate: Certificate, metrics: Metrics | None = None) -> tuple[ErrorRate, ErrorRate]:
    """Return the false positive and the false negative rate of a certificate.

    >>> from pac_wrap import calibrate
    >>> [rate.name for rate in error_rates(calibrate([0.1, 0.2], [0.8]))]
    ['FPR', 'FNR']
    """
    asked = certificate.guarantee
    kept = certificate.certified
    promised = asked if kept is None else kept
    return (
        ErrorRate(
            "FPR",
            "normal",
            "false alarms",
            "future normal points will be called anomalies",
            asked.max_fpr,
            None if kept is None else kept.max_fpr,
            promised.delta_fpr,
            asked.delta_fpr,
            certificate.normal,
            certificate.thresholds.alarm_from,
            None if metrics is None else metrics.fpr,
        ),
        ErrorRate(
            "FNR",
            "anomalous",
            "missed anomalies",
            "future anomalies will be called normal",
            asked.max_fnr,
            None if kept is None else kept.max_fnr,
            promised.delta_fnr,
            asked.delta_fnr,
            certificate.anomalous,
            certificate.thresholds.clear_below,
            None if metrics is None else metrics.fnr,
        ),
    )
