"""What a report says, as plain data: every renderer takes its words and numbers from here."""

import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy

from pac_wrap.certificate import Certificate
from pac_wrap.foreign import visible
from pac_wrap.report.next_steps import PlanRow, next_steps, plan, plan_caption
from pac_wrap.report.promise import notes, promise, status, warnings_of
from pac_wrap.report.ranges import VerdictRow, verdict_rows
from pac_wrap.report.reached import ReachedRow, explanations, reached_rows
from pac_wrap.report.result import Report
from pac_wrap.report.sides import Side, sides
from pac_wrap.report.wording import ceiling, percent
from pac_wrap.version import __version__

_TABLES: Final = 10

BREAKS: Final = (
    "Calibration points that the detector was trained on, or copies of training rows.",
    "A detector that is retrained or rescaled after the calibration.",
    "Points that depend on each other, such as neighbours in a time series or several records of one patient:"
    " n then counts too many.",
    "A shift: future points of a class that differ from its calibration points.",
    "Choosing among several certificates after having seen them, with no delta shared beforehand.",
    "Calibrating again and again while labels come in, and keeping the first success: looks at every 20"
    " labels up to 2,000 break a ceiling of 5 % in 24 % of runs where delta is 5 %.",
)
NOT_PROMISED: Final = (
    "A single batch: the rate is promised, and the share of errors in a batch varies around it.",
    "Only those calibrations in which the classes come out apart: the confidence is that of all of them, and"
    " may be lower among these.",
    "How often it abstains.",
    "Anything about a single point.",
    "The share of alarms that are right: it depends on how frequent anomalies are.",
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
    status: str
    promise: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    verdicts: tuple[VerdictRow, ...]
    held_out: tuple[HeldOutRow, ...]
    reached: tuple[ReachedRow, ...]
    explanations: tuple[str, ...]
    assumptions: tuple[str, ...]
    breaks: tuple[str, ...]
    not_promised: tuple[str, ...]
    next_steps: tuple[str, ...]
    plan: tuple[PlanRow, ...]
    plan_caption: str
    origin: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    digests: tuple[tuple[str, str], ...]
    certificate: str


def content_of(report: Report) -> Content:
    """Return what there is to say about a report.

    >>> from pac_wrap import calibrate
    >>> content_of(Report(calibrate([0.1, 0.2], [0.8]), [0.1, 0.2], [0.8])).status
    'too few labels'
    """
    certificate = report.certificate
    return Content(
        title=_title(report),
        status=status(certificate),
        promise=promise(certificate),
        notes=tuple(notes(report)),
        warnings=tuple(warnings_of(report)),
        verdicts=verdict_rows(report),
        held_out=tuple(_held_out(report)),
        reached=reached_rows(certificate),
        explanations=tuple(explanations(certificate)),
        assumptions=tuple(_sentence(text) for text in _assumed(certificate)),
        breaks=BREAKS,
        not_promised=NOT_PROMISED,
        next_steps=next_steps(report),
        plan=plan(certificate),
        plan_caption=plan_caption(certificate),
        origin=tuple(_origin(report)),
        versions=_versions(certificate),
        digests=_digests(certificate),
        certificate=certificate.to_json(),
    )


def _title(report: Report) -> str:
    name = visible(report.detector) if report.detector else "an anomaly detector"
    return f"Error rates of {name}"


def _assumed(certificate: Certificate) -> tuple[str, ...]:
    """Return what the promise assumes, and how the points were taken if they are windows of a series."""
    sampling = certificate.sampling
    taken = () if sampling is None else (f"the points are {sampling}; {sampling.worth}",)
    return (*map(str, certificate.assumptions), *taken)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _held_out(report: Report) -> Iterator[HeldOutRow]:
    metrics = report.metrics
    if metrics is None:
        return
    rows = [
        (f"{side.rate}, {side.errors}", side.measured, side) for side in sides(report.certificate, metrics)
    ]
    rates = [(name, rate, side) for name, rate, side in rows if rate is not None]
    for name, rate, side in [
        *rates,
        ("abstained, normal", metrics.abstained_normal, None),
        ("abstained, anomalous", metrics.abstained_anomalous, None),
    ]:
        promised = None if side is None else side.certified
        yield HeldOutRow(
            name=name,
            measured=percent(rate.value) if rate.n else "no points",
            interval=f"{percent(rate.low)} to {percent(rate.high)}" if rate.n else "",
            points=f"{rate.n:,}",
            ceiling="none" if promised is None else ceiling(promised),
            finding=_finding(side),
        )


def _finding(side: Side | None) -> str:
    if side is None or side.certified is None:
        return "nothing promised"
    rate = side.measured
    if rate is None or not rate.n:
        return "not measured"
    if rate.value <= side.certified:
        return "within the ceiling"
    return f"above the ceiling, {'beyond' if side.exceeded else 'but within'} chance"


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


def _versions(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    return (
        ("Certificate made by pac-wrap-ad", visible(certificate.version)),
        ("Report made by pac-wrap-ad", __version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", scipy.__version__),
    )


def _digests(certificate: Certificate) -> tuple[tuple[str, str], ...]:
    return (
        ("Normal scores", certificate.normal.digest),
        ("Anomalous scores", certificate.anomalous.digest),
        ("Certificate (its checksum)", str(json.loads(certificate.to_json())["checksum"])),
    )
