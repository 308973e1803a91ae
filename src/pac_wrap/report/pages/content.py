"""What a report says, as plain data and as JSON: every renderer takes its words and numbers from here."""

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import scipy

from pac_wrap.base.foreign import visible
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.certificates.provenance import Provenance
from pac_wrap.method.metrics import Metrics, Rate
from pac_wrap.report.pages.explorer import Explorer, explorer_of
from pac_wrap.report.pages.practice import PER, Practice, practice_of
from pac_wrap.report.pages.robust import RobustRow, robust_rows
from pac_wrap.report.pages.steps import PlanRow, next_steps, plan, plan_caption
from pac_wrap.report.subject import ErrorRate, Report, VerdictRow, error_rates, verdict_rows
from pac_wrap.report.words.certificate import EvidenceRow, evidence_rows, explanations
from pac_wrap.report.words.numbers import ceiling, percent
from pac_wrap.report.words.sentences import Status, notes, promise, status, warnings_of
from pac_wrap.version import __version__

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
