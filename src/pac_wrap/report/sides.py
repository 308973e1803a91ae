"""The two error rates of a certificate, told alike."""

from dataclasses import dataclass

from pac_wrap.certificate import Certificate, Evidence
from pac_wrap.metrics import Metrics, Rate, is_exceeded
from pac_wrap.report.wording import ceiling


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two error rates: its names, what was asked and certified, and what it rests on."""

    rate: str
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
    def short(self) -> bool:
        """Whether too few points are labelled for what was asked."""
        return self.evidence.budget is not None and self.evidence.budget.errors is None

    @property
    def needed(self) -> int:
        """How many labelled points the budget needs at least."""
        return self.evidence.n + (self.evidence.budget.missing if self.evidence.budget else 0)

    @property
    def raised(self) -> bool:
        """Whether the ceiling is higher than what was asked for."""
        return self.asked is not None and (self.certified is None or self.certified > self.asked)

    @property
    def doubted(self) -> bool:
        """Whether the confidence is lower than what was asked for."""
        return self.certified is not None and self.delta > self.asked_delta

    @property
    def exceeded(self) -> bool:
        """Whether the rate measured on held-out points lies above the ceiling, beyond chance."""
        return self.measured is not None and is_exceeded(self.certified, self.measured)

    @property
    def sentence(self) -> str:
        """The promise of this side, as part of a sentence."""
        return f"at most {ceiling(self.certified or 1.0)} of {self.mistake}"


def sides(certificate: Certificate, metrics: Metrics | None = None) -> tuple[Side, Side]:
    """Return the false positive and the false negative side of a certificate.

    >>> from pac_wrap import calibrate
    >>> [side.rate for side in sides(calibrate([0.1, 0.2], [0.8]))]
    ['FPR', 'FNR']
    """
    asked = certificate.guarantee
    kept = certificate.certified
    promised = asked if kept is None else kept
    return (
        Side(
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
        Side(
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
