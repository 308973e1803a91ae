"""What a certificate says in words: its printed lines, why its thresholds lie as they do, and its numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Final

from pac_wrap.base.rounding import confidence_left, rounded_down, rounded_up
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.thresholds import Evidence, Regime
from pac_wrap.report.numbers import ceiling, confidence, exact, floored
from pac_wrap.report.subject import ErrorRate, error_rates

_NOTHING: Final = "not promised"


def lines_of(certificate: Certificate) -> list[tuple[str, str]]:
    """Return what a certificate says, as pairs of a heading and a text; a heading may be empty."""
    lines = [
        ("asked", str(certificate.guarantee)),
        ("promised", _promised(certificate)),
        ("rule", _rule(certificate)),
    ]
    if certificate.score_type != "float64":
        lines += [("", f"which decides as if every score were rounded to {certificate.score_type} first")]
    lines += [("regime", f"{certificate.regime.value}: {certificate.regime.explanation}")]
    lines += [("", sentence) for sentence in diagnosis_of(certificate)]
    chosen = certificate.overlap.tried(certificate.guarantee, certificate.claim.sizes) > 1
    lines += [(name, _evidence(one, chosen)) for name, _, one in _classes(certificate)]
    if certificate.sampling is not None:
        lines += [("series", str(certificate.sampling)), ("", certificate.sampling.worth)]
    if certificate.overlap.single:
        lines += [("overlap", certificate.overlap.summary(certificate.claim))]
    texts = map(str, certificate.assumptions)
    return lines + [("" if i else "assumes", text) for i, text in enumerate(texts)]


def diagnosis_of(certificate: Certificate) -> tuple[str, ...]:
    """Return sentences that say why the thresholds lie as they do, and which labels are missing."""
    sentences = []
    asked = (certificate.guarantee.max_fpr, certificate.guarantee.max_fnr)
    for (name, rate, evidence), asked_for in zip(_classes(certificate), asked, strict=True):
        budget = evidence.budget
        if budget is not None and budget.errors is None:
            needed = evidence.n + budget.missing
            sentences.append(
                f"{evidence.n:,} {name} scores cannot certify {rate} <= {rounded_up(budget.rate)} at"
                f" delta = {rounded_up(budget.delta)}; at least {needed:,} are needed"
            )
        elif budget is None and asked_for is not None:
            sentences.append(f"{evidence.n:,} {name} scores certify no {rate} below 1 at this threshold")
    for (name, _, evidence), threshold, beyond in zip(
        _classes(certificate), ("clear_below", "alarm_from"), ("at or above", "below"), strict=True
    ):
        if certificate.regime is not Regime.VACUOUS and evidence.crossing is not None and evidence.budget:
            sentences.append(
                f"{evidence.crossing:,} of {evidence.n:,} {name} scores lie {beyond} {threshold};"
                f" the budget is {evidence.budget.errors:,}"
            )
    return tuple(sentences)


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One fact, for each rate."""

    name: str
    normal: str
    anomalous: str


def evidence_rows(certificate: Certificate) -> tuple[EvidenceRow, ...]:
    """Return the numbers behind a certificate, one column for each rate.

    >>> from pac_wrap import calibrate
    >>> evidence_rows(calibrate(range(100), range(200, 300)))[4]
    EvidenceRow(name='Error budget k*', normal='1', anomalous='1')
    """
    columns = [_column(rate) for rate in error_rates(certificate)]
    rows = [EvidenceRow(name, columns[0][name], columns[1][name]) for name in columns[0]]
    rows.append(
        EvidenceRow(
            "Rule",
            f"normal_below = {exact(certificate.rule.normal_below)}",
            f"anomaly_from = {exact(certificate.rule.anomaly_from)}",
        )
    )
    return tuple(rows)


def explanations(certificate: Certificate) -> Iterator[str]:
    """Return sentences on regime, diagnosis and what was done where the classes overlap."""
    regime = certificate.regime
    yield f"Regime {regime.value}: {regime.explanation}."
    yield from (f"{sentence}." for sentence in certificate.diagnosis)
    yield from certificate.overlap.explanation(certificate.claim)


def _classes(certificate: Certificate) -> tuple[tuple[str, str, Evidence], ...]:
    return ("normal", "FPR", certificate.normal), ("anomalous", "FNR", certificate.anomalous)


def _promised(certificate: Certificate) -> str:
    certified = certificate.certified
    if certified is None:
        return "nothing: no single threshold can be certified at any level tried; every point is abstained"
    kept = {rate.name for rate in error_rates(certificate) if rate.kept}
    promises = [promise for promise in certified.promises if promise.name in kept]
    if not promises:
        return "nothing: too few points are labelled"
    joint = f"; jointly {rounded_down(confidence_left(certified.delta_fpr, certified.delta_fnr))}"
    return f"{', '.join(map(str, promises))}{joint if len(promises) == 2 else ''}"


def _rule(certificate: Certificate) -> str:
    low, high = certificate.rule.normal_below, certificate.rule.anomaly_from
    if certificate.rule.single:
        return "never an alarm" if high == inf else f"anomaly from {high!r} on, normal below"
    alarm = "never an alarm" if high == inf else f"anomaly from {high!r} on"
    clear = "never cleared" if low == -inf else f"normal below {low!r}"
    return f"{clear}, {alarm}, abstain between"


def _evidence(evidence: Evidence, chosen: bool) -> str:
    text = f"{evidence.n:,} scores"
    if evidence.budget is None:
        return f"{text}, nothing promised"
    if evidence.budget.errors is None:
        return f"{text}, too few for any error budget"
    of = "confidence of this level alone" if chosen else "exact confidence"
    return f"{text}, error budget {evidence.budget.errors:,}, {of} {rounded_down(evidence.budget.confidence)}"


def _column(rate: ErrorRate) -> dict[str, str]:
    budget = rate.evidence.budget
    none = "none yet, too few points" if rate.lacks_labels else _NOTHING
    return {
        "Ceiling asked for": _NOTHING if rate.asked is None else ceiling(rate.asked),
        "Ceiling certified": ceiling(rate.certified or 1.0) if rate.kept else none,
        "Confidence promised": confidence(rate.delta) if rate.kept else none,
        "Labelled points n": f"{rate.evidence.n:,}",
        "Error budget k*": _NOTHING if budget is None else _errors(budget.errors),
        "Delta of that budget": _NOTHING if budget is None else rounded_up(budget.delta),
        "Exact confidence of that budget": none
        if budget is None or rate.lacks_labels
        else floored(budget.confidence),
        "Points beyond the other threshold": _crossing(rate.evidence.crossing),
        "Threshold": f"{'alarm_from' if rate.name == 'FPR' else 'clear_below'} = {exact(rate.threshold)}",
    }


def _errors(errors: int | None) -> str:
    return "none yet, too few points" if errors is None else f"{errors:,}"


def _crossing(crossing: int | None) -> str:
    return "not counted" if crossing is None else f"{crossing:,}"
