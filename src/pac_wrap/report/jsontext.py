"""A report as JSON: every number a program may want, and the sentences."""

import json
from dataclasses import asdict
from math import isinf
from typing import Any

from pac_wrap.metrics import Metrics, Rate
from pac_wrap.report.content import Content, content_of
from pac_wrap.report.ranges import VerdictRow
from pac_wrap.report.result import Report

_HEADER = {"format": "pac-wrap report", "schema": 1}


def render(report: Report) -> str:
    """Return the report as strict JSON; `certificate` is the certificate as it is saved.

    Infinite thresholds are written as "inf" and "-inf", as in the certificate.

    >>> from pac_wrap import calibrate
    >>> text = render(Report(calibrate([0.1, 0.2], [0.8]), [0.1, 0.2], [0.8]))
    >>> json.loads(text)["status"]
    'too few labels'
    """
    content = content_of(report)
    data = _HEADER | {
        "title": content.title,
        "status": content.status,
        "promise": content.promise,
        "notes": content.notes,
        "warnings": content.warnings,
        "verdicts": [_verdict(row) for row in content.verdicts],
        "held_out": None if report.metrics is None else _metrics(report.metrics, content),
        "reached": [asdict(row) for row in content.reached],
        "explanations": content.explanations,
        "assumptions": content.assumptions,
        "breaks": content.breaks,
        "not_promised": content.not_promised,
        "next_steps": content.next_steps,
        "plan": [asdict(row) for row in content.plan],
        "detector": report.detector,
        "source": None if report.source is None else asdict(report.source),
        "versions": dict(content.versions),
        "digests": dict(content.digests),
        "certificate": json.loads(content.certificate),
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _verdict(row: VerdictRow) -> dict[str, Any]:
    low, high = (None, None) if row.range is None else row.range
    return {
        "verdict": row.name,
        "code": int(row.verdict),
        "declared": row.range is not None,
        "from": _number(low),
        "below": _number(high),
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


def _number(value: float | None) -> float | str | None:
    return str(value) if value is not None and isinf(value) else value
