"""What a certificate means in practice: alarms, misses and undecided points per 1,000, with bounds."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from pac_wrap.base.rounding import between, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.worth.alarms import Workload
from pac_wrap.report.subject import Report
from pac_wrap.report.words.numbers import confidence, floored, least, percent

PER: Final = 1000
_NAMES: Final = {
    "alarms": "Alarms",
    "right": "of which right",
    "false_alarms": "of which false",
    "missed": "Missed anomalies",
    "undecided": "Undecided",
}


@dataclass(frozen=True, slots=True)
class WorkRow:
    """One expected number of points: its bounds, in words too, and as parts of the longest bar in percent."""

    kind: str
    name: str
    low: float
    high: float
    words: str
    sure: str
    possible: str


@dataclass(frozen=True, slots=True)
class Practice:
    """What so many points bring on average, in a sentence and in rows; without rows the sentence says why."""

    lead: str
    rows: tuple[WorkRow, ...] = ()
    precision: str = ""


def practice_of(report: Report) -> Practice:
    """Return what future points bring: eqs. (48) and (49).

    >>> from pac_wrap import calibrate
    >>> found = practice_of(Report(calibrate(range(1000), range(900, 1900)), prevalence=0.01))
    >>> [(row.name, row.words) for row in found.rows[:2]]
    [('Alarms', '9.23 to 59.5'), ('of which right', '9.23 to 10')]
    """
    certificate, shares = report.certificate, report.shares
    if shares is None:
        alone = _without(certificate, 0.0, f"Of {PER:,} future normal points")
        return Practice(" ".join(filter(None, (alone, "Other numbers need a prevalence; state yours."))))
    told, known = _told(*shares), ", as in the calibration table (else state your prevalence)"
    if report.prevalence is not None:
        known = ""
    try:
        work, precision = certificate.workload(shares, PER), certificate.precision(shares)
    except InputError as error:
        among = f"Of {PER:,} future points, if {told} are anomalous{known}"
        return Practice(_without(certificate, shares[0], among) or f"Not counted: {error}.")
    return Practice(
        f"Of {PER:,} future points, if {told} are anomalous{known}: on average, and all of it with confidence"
        f" {floored(work.confidence)}.",
        _rows(work),
        f"At least {least(precision.low)} of the alarms are right, with confidence"
        f" {floored(precision.confidence)}.",
    )


def _rows(work: Workload) -> tuple[WorkRow, ...]:
    found = [(kind, name, getattr(work, kind)) for kind, name in _NAMES.items()]
    longest = max(one.high for _, _, one in found)
    return tuple(
        WorkRow(
            kind,
            name,
            one.low,
            one.high,
            between(one.low, one.high),
            f"{100.0 * one.low / longest:.2f}",
            f"{100.0 * one.high / longest:.2f}",
        )
        for kind, name, one in found
    )


def _without(certificate: Certificate, share: float, among: str) -> str | None:
    """Return what the ceiling of the FPR alone says."""
    kept = certificate.certified
    if kept is None or kept.max_fpr is None or not certificate.overlap.proved or certificate.empty:
        return None
    # in decimals, so that 1,000 times .98 times .05 is 49 and no more
    false = PER * (1 - Decimal(repr(share))) * Decimal(repr(kept.max_fpr))
    return (
        f"{among}, at most {rounded_up(float(false), digits=3)} are false alarms: on average, with confidence"
        f" {confidence(kept.delta_fpr)}. How many anomalies are caught is not promised."
    )


def _told(low: float, high: float) -> str:
    return percent(low) if low == high else f"{percent(low)} to {percent(high)}"
