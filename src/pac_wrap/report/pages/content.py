"""What a report says, as plain data and as JSON: every renderer takes its words and numbers from here."""

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import numpy as np
import scipy

from pac_wrap.base.floats import between, rounded_down, rounded_up
from pac_wrap.base.text import visible
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.precision import Workload
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.certificates.provenance import Provenance
from pac_wrap.method.metrics import Metrics, Rate
from pac_wrap.method.robust.radius import before_shift
from pac_wrap.method.robust.shift import KL, SHIFTS, ChiSquared, DensityRatio, Distance, TotalVariation
from pac_wrap.method.rule import Verdict
from pac_wrap.method.thresholds import Regime
from pac_wrap.report.pages.explorer import Explorer, explorer_of
from pac_wrap.report.pages.pictures import Line
from pac_wrap.report.subject import (
    ErrorRate,
    Report,
    VerdictRow,
    error_rates,
    range_words,
    ranges,
    verdict_rows,
)
from pac_wrap.report.words.certificate import EvidenceRow, evidence_rows, explanations
from pac_wrap.report.words.numbers import ceiling, confidence, floored, least, percent
from pac_wrap.report.words.sentences import Status, notes, promise, status, warnings_of
from pac_wrap.tails.bounds import LEAST_CEILING, Budget, achievable_rate, min_samples
from pac_wrap.version import __version__

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


_SHIFTS: Final[dict[type[Distance], str]] = {
    TotalVariation: "Total variation",
    DensityRatio: "Density ratio",
    KL: "KL divergence",
    ChiSquared: "Chi-squared",
}
# looser ceilings that are shown, in units of what is certified, and how far the picture goes
_LOOSER: Final = (1.5, 2.0, 4.0)
_MOST: Final = 4.0
_POINTS: Final = 60


@dataclass(frozen=True, slots=True)
class RobustRow:
    """How far points may shift until a looser ceiling breaks, by each distance."""

    kept: str
    total_variation: str
    ratio: str
    kl: str
    chi_squared: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One distance: paths of the ceilings of both rates against it, and the scales."""

    name: str
    fpr: str
    fnr: str
    ticks: tuple[Line, ...]
    levels: tuple[Line, ...]


def robust_rows(certificate: Certificate) -> tuple[RobustRow, ...]:
    """Return looser ceilings with the farthest shift that keeps each: eq. (77).

    >>> from pac_wrap import calibrate
    >>> row = robust_rows(calibrate(range(100), range(200, 300)))[1]
    >>> row.kept, row.total_variation, row.ratio
    ('FPR at most 10 %', '0.05', '2')
    """
    return tuple(
        RobustRow(f"{name} at most {ceiling(limit)}", *(_size(kind, rate, limit) for kind in SHIFTS))
        for name, rate, promised in _sides(certificate)
        for limit in (round(factor * promised, 12) for factor in _LOOSER)
        if limit < 1.0
    )


def panels(certificate: Certificate) -> tuple[Panel, ...]:
    """Return a small picture for each distance, from the certified ceilings on; none if nothing is promised.

    >>> from pac_wrap import calibrate
    >>> [panel.name for panel in panels(calibrate(range(100), range(200, 300)))][:2]
    ['Total variation', 'Density ratio']
    """
    rates = {name: rate for name, rate, _ in _sides(certificate)}
    top = min(0.999, _MOST * max(rates.values(), default=0.0))
    if top <= max(rates.values(), default=0.0):
        return ()
    return tuple(_panel(kind, rates, top) for kind in SHIFTS)


def _panel(kind: type[Distance], rates: dict[str, float], top: float) -> Panel:
    first = 1.0 if kind is DensityRatio else 0.0
    ends = (kind.between(rate, top) for rate in rates.values())
    farthest = max(first if end is None else end.size for end in ends)

    def path(name: str) -> str:
        if name not in rates:
            return ""
        limits = np.linspace(rates[name], top, _POINTS)[1:].tolist()
        found = [(kind.between(rates[name], limit), limit) for limit in limits]
        points = [(first, rates[name]), *((one.size, limit) for one, limit in found if one is not None)]
        places = ((1000.0 * (x - first) / (farthest - first), 100.0 - 100.0 * y / top) for x, y in points)
        return "M" + "L".join(f"{x:.1f} {y:.2f}" for x, y in places)

    middle = (first + farthest) / 2.0
    ticks = (
        Line("0", f"{first:g}", "start"),
        Line("50", f"{middle:.2g}"),
        Line("100", f"{farthest:.2g}", "end"),
    )
    levels = tuple(Line(f"{100.0 - 100.0 * share:.1f}", percent(share * top)) for share in (0.25, 0.5, 0.75))
    return Panel(_SHIFTS[kind], path("FPR"), path("FNR"), ticks, levels)


def _sides(certificate: Certificate) -> Iterator[tuple[str, float, float]]:
    """Yield each rate that is promised, what it is before any shift, and its ceiling."""
    for kept, rate in before_shift(certificate):
        yield kept.name, rate, kept.ceiling


def _size(kind: type[Distance], rate: float, limit: float) -> str:
    found = kind.between(rate, limit)
    return "none" if found is None else rounded_down(found.size, digits=4)


_TIGHTER: Final = (1, 2, 5, 10)
TOLERATED: Final = 10
# theory.md, section 9: what is chosen after these labels were seen has another chance to fail
_AGAIN: Final = (
    "A second strategy or ceiling on the same labels would not keep its promise, because these labels led to"
    " it."
)
# as Python spells them, and as a shell does
_HOLD: Final = "overlap hold_fnr or hold_fpr; --overlap hold-fnr or hold-fpr"


@dataclass(frozen=True, slots=True)
class PlanRow:
    """Labels that one ceiling needs: if none of them may be an error, and if `TOLERATED` of them may."""

    side: str
    kind: str
    ceiling: float
    delta: float
    none_tolerated: int
    some_tolerated: int
    at_hand: int

    @property
    def promise(self) -> str:
        """The promise in short."""
        return f"{self.side} \N{LESS-THAN OR EQUAL TO} {ceiling(self.ceiling)}"

    @property
    def state(self) -> str:
        """How the labels at hand compare."""
        missing = self.none_tolerated - self.at_hand
        return f"{self.at_hand:,} {self.kind}, {'enough' if missing <= 0 else f'{missing:,} missing'}"


def plan(certificate: Certificate) -> tuple[PlanRow, ...]:
    """Return the labels that the ceilings asked for need, and those of tighter ones: eq. (4).

    >>> from pac_wrap import calibrate
    >>> [(row.ceiling, row.none_tolerated) for row in plan(calibrate(range(100), range(200, 300)))[:2]]
    [(0.05, 59), (0.025, 119)]
    """
    return tuple(
        PlanRow(
            rate.name,
            rate.kind,
            lower,
            rate.asked_delta,
            none,
            _labels(rate, lower, TOLERATED) or none,
            rate.at_hand,
        )
        for rate in error_rates(certificate)
        if rate.asked is not None
        for lower in (rate.asked / divisor for divisor in _TIGHTER)
        if (none := _labels(rate, lower)) is not None
    )


def plan_caption(certificate: Certificate) -> str:
    """Return what the numbers of the plan are for."""
    asked = [rate for rate in error_rates(certificate) if rate.asked is not None]
    listed = ", ".join(f"{rate.name} {confidence(rate.asked_delta)}" for rate in asked)
    text = (
        "Labels needed for the ceilings that were asked for and for lower ones, at the confidence asked for"
        f" ({listed}): if none of the labelled points may be misjudged, and if {TOLERATED} may."
    )
    if any(rate.effective is not None for rate in asked):
        text += " At hand: the number of independent points that those of the series are worth."
    more = certificate.overlap.needs_more_labels
    return text if more is None else f"{text} {more}"


def next_steps(report: Report) -> tuple[str, ...]:
    """Return what to do next, most urgent first."""
    certificate = report.certificate
    both = error_rates(certificate, report.metrics)
    steps = [
        f"Find out why held-out points exceed the {rate.name} ceiling (see what would break the promise), and"
        " calibrate again on fresh points."
        for rate in both
        if rate.exceeded
    ]
    steps += [step for rate in both for step in _space_out(rate)]
    steps += [step for rate in both for step in _label_more(rate)]
    steps += _decide(report)
    steps += [step for rate, other in (both, both[::-1]) for step in _tighten(certificate, rate, other)]
    if report.metrics is None and not any(heading == "held out" for heading, _ in report.in_time):
        steps.append("As a check, measure the rates on labelled points that were not used here.")
    steps.append("Calibrate again, on fresh points, when the detector is retrained or the data change.")
    return tuple(steps)


def _space_out(rate: ErrorRate) -> Iterator[str]:
    """Return what helps where points of a series are worth too few for what is promised."""
    if rate.overstated and rate.asked is not None:
        yield (
            f"Do not rely on the {rate.name} yet: {rate.evidence.n:,} {rate.kind} points are worth"
            f" {_worth(rate)}. Label points of more series, or points farther apart (--every)."
        )


def _worth(rate: ErrorRate) -> str:
    """Return what points of a series are worth, and why that is too little for what is promised."""
    budget = rate.evidence.budget
    if rate.effective is None or budget is None:
        return "nobody knows how many independent ones"
    fewer = Budget.of(rate.at_hand, budget.rate, budget.delta)
    why = f"{rate.at_hand + fewer.missing:,} are needed"
    if fewer.errors is not None:
        wrong = budget.errors if rate.misjudged is None else rate.misjudged
        share = percent((wrong or 0) / budget.n)
        why = f"{fewer.errors:,} of those may be errors, while the rule misjudges {share}"
    return f"about {rate.at_hand:,} independent ones, and {why}"


def _label_more(rate: ErrorRate) -> Iterator[str]:
    """Return which labels are missing for what was asked, where it could not be kept."""
    n = rate.evidence.n
    if rate.asked is None or not (rate.lacks_labels or rate.raised):
        return
    needed = _labels(rate, rate.asked) or 0
    if n >= needed:
        if rate.lacks_labels:  # enough for one promise at one look, but more than that is covered
            yield f"Label more {rate.kind} points (at hand {n:,}, needed at least {rate.needed:,})."
        return
    yield (
        f"Label more {rate.kind} points (at hand {n:,}, needed at least {needed:,}, missing {needed - n:,})."
        f" With fewer, no useful rule can promise an {rate.name} of at most {ceiling(rate.asked)} with"
        f" confidence {confidence(rate.asked_delta)}."
    )
    if n and rate.lacks_labels:
        yield (
            f"Or ask for less: the number of {rate.kind} labels at hand ({n:,}) suffices for {rate.name}"
            f" ceilings down to {ceiling(_least(rate))}."
        )


def _least(rate: ErrorRate) -> float:
    """Return the lowest ceiling that the labels at hand can keep."""
    found = achievable_rate(rate.at_hand, rate.asked_delta)
    return found if rate.promise is None else rate.promise.afterwards(found)


def _labels(rate: ErrorRate, lower: float, errors: int = 0) -> int | None:
    """Return how many labels a ceiling needs if so many are errors; None if no number is enough."""
    found = lower if rate.promise is None else rate.promise.allowing(lower)
    return None if found < LEAST_CEILING else min_samples(found, rate.asked_delta, errors)


def _decide(report: Report) -> Iterator[str]:
    """Return what helps to decide more points, or to get back what was given up for one threshold."""
    certificate, found = report.certificate, ranges(report.certificate.rule)
    if certificate.certified is None:
        yield (
            "Calibrate on fresh labels with overlap abstain (two thresholds keep both ceilings as far as the"
            f" labels suffice, and leave the points between them undecided), or hold one side ({_HOLD}) and"
            f" accept the other rate as it comes. {_AGAIN}"
        )
    elif certificate.regime is Regime.VACUOUS:
        return
    elif certificate.regime is Regime.OVERLAPPING:
        yield f"Decide who looks at the undecided points{_how_many(report)}, and how soon."
        yield (
            "To have fewer of them, improve the detector so that the classes overlap less, or ask for a"
            " higher ceiling on fresh labels; more labels help a little."
        )
        if report.normal is not None and certificate.sampling is None:
            yield "To decide every point now, choose one threshold on the curve (see other thresholds)."
        yield (
            "To decide every point from fresh labels on, calibrate them with overlap hold_fnr_if_needed (one"
            " threshold: it keeps both ceilings if the classes separate, else the FNR's) or raise (both"
            f" ceilings raised as little as can be proved). {_AGAIN}"
        )
    elif Verdict.ABSTAIN in found:
        yield (
            "No point has to be left undecided: any single threshold among the undecided scores"
            f" ({range_words(found)[Verdict.ABSTAIN]}) keeps both ceilings with the same confidence;"
            " overlap abstain sets one."
        )
    elif any(rate.raised or rate.less_confident for rate in error_rates(certificate)):
        yield (
            "To get back what was asked for, improve the detector so that the classes overlap less, or"
            f" calibrate fresh labels with overlap abstain, which may leave points undecided. {_AGAIN}"
        )


def _how_many(report: Report) -> str:
    found = [row for row in verdict_rows(report) if row.verdict is Verdict.ABSTAIN]
    shares = [
        f"{percent(count / n)} of the {kind}"
        for row in found
        for kind, count, n in (
            ("normal", row.normal, row.n_normal),
            ("anomalous", row.anomalous, row.n_anomalous),
        )
        if count is not None and n
    ]
    return f" ({' and '.join(shares)} calibration points)" if shares else ""


def _tighten(certificate: Certificate, rate: ErrorRate, other: ErrorRate) -> Iterator[str]:
    """Return how far a ceiling can be lowered with the labels at hand."""
    n = rate.counted
    if rate.lacks_labels or not rate.at_hand or rate.name not in certificate.overlap.keeps:
        return
    least = ceiling(_least(rate))
    if rate.asked is None:
        yield (
            f"Nothing is promised about {rate.errors}. If they matter, set max_{rate.name.lower()} for fresh"
            f" labels: as many {rate.kind} ones as here ({n}) suffice for ceilings down to {least}."
        )
    else:
        costs = ""
        if certificate.regime is Regime.OVERLAPPING:
            costs = ", at the price of more undecided points"
        elif certificate.rule.single:
            costs = f", at the price of more {other.errors}"
        yield (
            f"For a lower {rate.name} ceiling, use fresh labels: as many {rate.kind} ones as here ({n})"
            f" suffice for ceilings down to {least}{costs}; lower ones need more."
        )


_TABLES: Final = 10
_NAME: Final = 60  # of a title, in full below
_NOT_TAKEN: Final = "not taken: the database could not compute it"
_HEADER: Final = {"format": "pac-wrap report", "schema": 2}

BREAKS: Final = (
    "Calibration points that the detector was trained on, or copies of training rows.",
    "Points that were labelled because of their scores, such as reviewed alarms.",
    "A detector that is retrained or rescaled after the calibration.",
    "Points that depend on each other, such as neighbours in a time series or several records of one patient:"
    " n then overstates the evidence.",
    "A shift: future points of a class that differ more from its calibration points than there is room for.",
    "Choosing among several certificates after seeing them, unless they shared delta beforehand.",
    "Calibrating again as labels come in and keeping the first success: looking after every 20 labels, up to"
    " 2,000, breaks a ceiling of 5 % in 24 % of runs where delta is 5 %.",
)
NOT_PROMISED: Final = (
    "A single batch: the rate is promised, and the share of errors in a batch varies around it.",
    "The calibrations in which the classes come out separated, taken alone: the confidence is that of all"
    " calibrations, and may be lower among these.",
    "How often it abstains.",
    "Anything about a single point.",
)


@dataclass(frozen=True, slots=True)
class HeldOutRow:
    """One rate measured on held-out points, beside its ceiling."""

    name: str
    measured: str
    interval: str
    points: str
    ceiling: str
    finding: str


@dataclass(frozen=True, slots=True)
class Content:
    """All that a report says, in the order in which it is said."""

    title: str
    subtitle: str
    status: Status
    promise: str
    warnings: tuple[str, ...]
    next_steps: tuple[str, ...]
    practice: Practice
    explorer: Explorer | None
    verdicts: tuple[VerdictRow, ...]
    held_out: tuple[HeldOutRow, ...]
    in_time: tuple[str, ...]
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]
    breaks: tuple[str, ...]
    not_promised: tuple[str, ...]
    robust: tuple[RobustRow, ...]
    evidence: tuple[EvidenceRow, ...]
    explanations: tuple[str, ...]
    plan: tuple[PlanRow, ...]
    plan_caption: str
    origin: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    digests: tuple[tuple[str, str], ...]
    certificate: str


def content_of(report: Report) -> Content:
    """Return what there is to say about a report.

    >>> from pac_wrap import calibrate
    >>> content_of(Report(calibrate(range(100), range(200, 300)))).status.words
    'certified'
    """
    certificate = report.certificate
    return Content(
        title=title(report.detector, _noted(report), None if report.source is None else report.source.score),
        subtitle=subtitle(_noted(report), None if report.source is None else report.source.tables),
        status=status(report),
        promise=promise(certificate),
        warnings=tuple(warnings_of(report)),
        next_steps=next_steps(report),
        practice=practice_of(report),
        explorer=explorer_of(report),
        verdicts=verdict_rows(report),
        held_out=tuple(_held_out(report)),
        in_time=tuple(_in_time(report)),
        notes=tuple(notes(report)),
        assumptions=tuple(sentence(text) for text in _assumed(certificate)),
        breaks=BREAKS,
        not_promised=NOT_PROMISED,
        robust=robust_rows(certificate),
        evidence=evidence_rows(certificate),
        explanations=tuple(explanations(certificate)),
        plan=plan(certificate),
        plan_caption=plan_caption(certificate),
        origin=tuple(_origin(report)),
        versions=versions(certificate.version),
        digests=_digests(certificate),
        certificate=certificate.to_json(),
    )


def _noted(report: Report) -> Provenance:
    return report.certificate.provenance or Provenance()


def title(detector: str | None, known: Provenance, column: str | None = None) -> str:
    """Return what a page is called: by its detector, or by its column of scores."""
    name = detector or known.detector or column or known.score or "an anomaly detector"
    return f"Error rates of {visible(name, _NAME)}"


def subtitle(known: Provenance, named: tuple[str, ...] | None = None) -> str:
    """Return the tables and the date, as far as they are known."""
    tables = known.tables if named is None else named
    names = [visible(table, _NAME) for table in tables[:2]]
    if len(tables) > 2:
        names.append(f"{len(tables) - 2:,} more")
    if known.date is not None:
        day = datetime.strptime(known.date[:10], "%Y-%m-%d")
        names.append(f"{day.day} {day:%B %Y}")
    return ", ".join(names)


def _assumed(certificate: Certificate) -> tuple[str, ...]:
    """Return what the promise assumes, and how the points were taken: from a series, or by their weights."""
    sampling = certificate.sampling
    taken = () if sampling is None else (f"the points are {sampling}; {sampling.worth}",)
    room = (f"there is room for this, {text}" for text in certificate.guarantee.room)
    drawn = () if certificate.weighting is None else (str(certificate.weighting),)
    noted = (certificate.provenance or Provenance()).notes or ()
    return (*map(str, certificate.assumptions), *room, *taken, *drawn, *noted)


def sentence(text: str) -> str:
    """Return a text as a sentence: with a capital, and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _in_time(report: Report) -> Iterator[str]:
    """Yield what is said of series as sentences; a heading begins one."""
    for heading, text in report.in_time:
        yield sentence(f"{heading}: {text}" if heading else text)


def _held_out(report: Report) -> Iterator[HeldOutRow]:
    metrics = report.metrics
    if metrics is None:
        return
    rates = error_rates(report.certificate, metrics)
    for rate, measured in zip(rates, (metrics.fpr, metrics.fnr), strict=True):
        yield _held_out_row(f"{rate.name}, {rate.errors}", measured, rate.certified, _finding(rate))
    yield _held_out_row("abstained, normal", metrics.abstained_normal)
    yield _held_out_row("abstained, anomalous", metrics.abstained_anomalous)


def _held_out_row(
    name: str, measured: Rate, promised: float | None = None, finding: str = "nothing promised"
) -> HeldOutRow:
    return HeldOutRow(
        name=name,
        measured=percent(measured.value) if measured.n else "no points",
        interval=f"{percent(measured.low)} to {percent(measured.high)}" if measured.n else "",
        points=f"{measured.n:,}",
        ceiling="none" if promised is None else ceiling(promised),
        finding=finding,
    )


def _finding(rate: ErrorRate) -> str:
    if rate.certified is None:
        return "nothing promised"
    if rate.measured is None or not rate.measured.n:
        return "not measured"
    if rate.measured.value <= rate.certified:
        return "within the ceiling"
    return "significantly above the ceiling" if rate.exceeded else "above the ceiling, not significantly"


def _origin(report: Report) -> Iterator[tuple[str, str]]:
    if report.detector:
        yield "Detector", visible(report.detector)
    if report.source is not None:
        tables = report.source.tables
        for table in tables[:_TABLES]:
            yield "Table of scores", visible(table)
        if len(tables) > _TABLES:
            yield "More tables", f"{len(tables) - _TABLES:,}"
        yield "Column of scores", visible(report.source.score)
        yield "Column of labels", visible(report.source.label)


def versions(made_by: str) -> tuple[tuple[str, str], ...]:
    """Return which software made a certificate, and which makes its report."""
    return (
        ("Certificate made by pac-wrap-ad", visible(made_by)),
        ("Report made by pac-wrap-ad", __version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", scipy.__version__),
    )


def _digests(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    return (
        ("Normal scores", certificate.normal.digest or _NOT_TAKEN),
        ("Anomalous scores", certificate.anomalous.digest or _NOT_TAKEN),
        ("Certificate (its checksum)", str(json.loads(certificate.to_json())["checksum"])),
    )


def to_json(report: Report) -> str:
    """Return the report as strict JSON; `certificate` is the certificate as it is saved.

    >>> from pac_wrap import calibrate
    >>> text = to_json(Report(calibrate(range(100), range(200, 300))))
    >>> json.loads(text)["status"]
    'certified'
    """
    content = content_of(report)
    data = _HEADER | {
        "title": content.title,
        "status": content.status.words,
        "promise": content.promise,
        "warnings": content.warnings,
        "next_steps": content.next_steps,
        "practice": _work(report, content.practice),
        "thresholds": None if content.explorer is None else _thresholds(content.explorer),
        "verdicts": [_verdict(row) for row in content.verdicts],
        "held_out": None if report.metrics is None else _metrics(report.metrics, content),
        "in_time": content.in_time,
        "notes": content.notes,
        "assumptions": content.assumptions,
        "breaks": content.breaks,
        "not_promised": content.not_promised,
        "robust": [asdict(row) for row in content.robust],
        "reached": [asdict(row) for row in content.evidence],
        "explanations": content.explanations,
        "plan": [asdict(row) for row in content.plan],
        "detector": report.detector,
        "source": None if report.source is None else asdict(report.source),
        "versions": dict(content.versions),
        "digests": dict(content.digests),
        "certificate": json.loads(content.certificate),
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _work(report: Report, practice: Practice) -> dict[str, Any]:
    numbers = {row.kind: {"from": row.low, "to": row.high} for row in practice.rows}
    told = {"said": practice.lead, "precision": practice.precision or None}
    return told | {"per": PER, "prevalence": report.shares} | numbers


def _thresholds(explorer: Explorer) -> dict[str, Any]:
    return {"said": explorer.sure, "choices": [asdict(choice) for choice in explorer.choices]}


def _verdict(row: VerdictRow) -> dict[str, Any]:
    low, high = (None, None) if row.range is None else row.range
    return {
        "verdict": row.name,
        "code": int(row.verdict),
        "declared": row.range is not None,
        "from": low,
        "below": high,
        "scores": row.scores,
        "meaning": row.meaning,
        "normal": {"count": row.normal, "n": row.n_normal},
        "anomalous": {"count": row.anomalous, "n": row.n_anomalous},
    }


def _metrics(metrics: Metrics, content: Content) -> dict[str, Any]:
    rates = {name: _rate(getattr(metrics, name)) for name in metrics.__dataclass_fields__}
    findings = {name: row.finding for name, row in zip(("fpr", "fnr"), content.held_out, strict=False)}
    return rates | {"findings": findings}


def _rate(rate: Rate) -> dict[str, Any]:
    return asdict(rate) | {"value": rate.value if rate.n else None}
