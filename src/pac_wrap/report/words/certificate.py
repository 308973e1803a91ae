"""What a certificate says in words: its printed lines, why its thresholds lie as they do, and its numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import inf
from typing import Final

import numpy as np

from pac_wrap.base.floats import between, rounded_down, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.alarms.precision import Bounds, Counted, Workload
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.certificates.provenance import Provenance
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.rule import Rule
from pac_wrap.method.sampling import OF_DRAWS
from pac_wrap.method.strategies.given import TOGETHER
from pac_wrap.method.thresholds import Evidence, Regime
from pac_wrap.report.subject import CONDITION, ErrorRate, error_rates
from pac_wrap.report.words.numbers import ceiling, confidence, exact, floored, least, range_of
from pac_wrap.tails.bounds import Budget, achievable_rate

_NOTHING: Final = "not promised"
# ceilings of the FPR that a curve is shown at
_CEILINGS: Final = (0.01, 0.05, 0.1)


def lines_of(certificate: Certificate) -> list[tuple[str, str]]:
    """Return what a certificate says, as pairs of a heading and a text; a heading may be empty."""
    lines = [
        ("asked", str(certificate.guarantee)),
        ("promised", _promised(certificate)),
        *(("" if place else "room", text) for place, text in enumerate(certificate.guarantee.room)),
        ("rule", rule_words(certificate.rule)),
    ]
    if certificate.score_type != "float64":
        lines += [("", f"which decides as if every score were rounded to {certificate.score_type} first")]
    lines += [("regime", f"{certificate.regime.value}: {certificate.regime.explanation}")]
    lines += [("", sentence) for sentence in _beyond(certificate)]
    chosen = certificate.overlap.tried(certificate.guarantee, certificate.claim.sizes) > 1
    of = f"confidence of this {certificate.overlap.choices} alone" if chosen else "exact confidence"
    lines += [(name, _evidence(one, of)) for name, _, one in _classes(certificate)]
    if certificate.sampling is not None:
        lines += [("series", str(certificate.sampling)), ("", certificate.sampling.worth)]
    if certificate.weighting is not None:
        lines += [("weights", str(certificate.weighting))]
    if certificate.lineage is not None:
        lines += [("lineage", str(certificate.lineage))]
    if chosen or certificate.overlap.single:
        lines += [("overlap", certificate.overlap.summary(certificate.claim))]
    texts = map(str, certificate.assumptions)
    lines += [("" if i else "assumes", text) for i, text in enumerate(texts)]
    return lines + list(made_lines(certificate))


def diagnosis_of(certificate: Certificate) -> tuple[str, ...]:
    """Return sentences that say why the thresholds lie as they do, and which labels are missing."""
    sentences = []
    for rate in error_rates(certificate):
        n, budget = rate.evidence.n, rate.evidence.budget
        if budget is not None and budget.errors is None:
            limit = budget.rate if rate.promise is None else rate.promise.afterwards(budget.rate)
            sentences.append(
                f"{n:,} {rate.kind} scores cannot certify {rate.name} <= {rounded_up(limit)} at"
                f" delta = {rounded_up(budget.delta)}; at least {rate.needed:,} are needed"
                f"{_instead(rate, budget)}"
            )
        elif budget is None and rate.asked is not None:
            sentences.append(f"{n:,} {rate.kind} scores certify no {rate.name} below 1 at this threshold")
    return (*sentences, *_beyond(certificate))


def shortfall_of(certificate: Certificate) -> str | None:
    """Return what was asked for and is not promised, and what it would take, in one sentence or None."""
    if not certificate.empty:
        return None
    if certificate.certified is None:
        return f"nothing is promised: {certificate.overlap.unreached}; every point is left undecided"
    lacking = [rate for rate in error_rates(certificate) if rate.asked is not None and not rate.kept]
    return "; ".join(f"nothing is promised of the {rate.name} {_why(rate)}" for rate in lacking)


def _why(rate: ErrorRate) -> str:
    """Return why nothing is promised of a rate, and what would do."""
    n, budget = rate.evidence.n, rate.evidence.budget
    labels = f"{n:,} label{'s' * (n != 1)}" if n else "no labels"
    if budget is None:
        bound = "which bound it" if n else "so it is bounded"
        return f"({labels}, {bound} nowhere below 1 at this threshold)"
    return f"({labels}; {rate.needed:,} needed{_instead(rate, budget)})"


def _instead(rate: ErrorRate, budget: Budget) -> str:
    """Return which ceiling so many labels could keep, if any."""
    if not budget.n:
        return ""
    lowest = achievable_rate(budget.n, budget.delta)
    return f", or ask for {rounded_up(lowest if rate.promise is None else rate.promise.afterwards(lowest))}"


def _beyond(certificate: Certificate) -> Iterator[str]:
    """Yield how many scores of each class lie beyond the threshold of the other."""
    for (name, _, evidence), threshold, beyond in zip(
        _classes(certificate), ("clear_below", "alarm_from"), ("at or above", "below"), strict=True
    ):
        if certificate.regime is not Regime.VACUOUS and evidence.crossing is not None and evidence.budget:
            yield (
                f"{evidence.crossing:,} of {evidence.n:,} {name} scores lie {beyond} {threshold};"
                f" the budget is {evidence.budget.errors:,}"
            )


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
        return f"nothing: {certificate.overlap.unreached}; the rule abstains on every point"
    promises = {promise.name: str(promise) for promise in certified.promises}
    rates = [rate for rate in error_rates(certificate) if rate.asked is not None]
    texts = [promises[rate.name] if rate.kept else f"{rate.name}: nothing {_why(rate)}" for rate in rates]
    both = len(rates) == 2 and all(rate.kept for rate in rates)
    joint = f"; jointly {rounded_down(certificate.confidence)}"
    only = f"only if {CONDITION}: " if certificate.overstated else ""
    return f"{only}{', '.join(texts)}{joint if both else ''}"


def rule_words(rule: Rule) -> str:
    """Return what a rule does, in words."""
    low, high = rule.normal_below, rule.anomaly_from
    if rule.single:
        return "never an alarm" if high == inf else f"anomaly from {high!r} on, normal below"
    alarm = "never an alarm" if high == inf else f"anomaly from {high!r} on"
    clear = "never cleared" if low == -inf else f"normal below {low!r}"
    return f"{clear}, {alarm}, abstain between"


def _evidence(evidence: Evidence, of: str) -> str:
    text = f"{evidence.n:,} score{'s' * (evidence.n != 1)}"
    if evidence.budget is None:
        return f"{text}, nothing promised"
    if evidence.budget.errors is None:
        return f"{text}, too few for any error budget"
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


def lines_of_curve(curve: Curve) -> list[tuple[str, str]]:
    """Return what a curve says, as pairs of a heading and a text: what a few ceilings cost the other rate."""
    lines = [
        (
            name,
            f"{side.n:,} scores, every bound of the {rate} holds with {confidence(side.delta)}"
            + (
                "" if side.top is None else f"; where it would exceed {rounded_up(side.top)}, nothing is said"
            ),
        )
        for name, rate, side in (("normal", "FPR", curve.normal), ("anomalous", "FNR", curve.anomalous))
    ]
    found = [(f"FPR <= {rounded_up(rate)}", _chosen(curve, rate)) for rate in _CEILINGS]
    lines += [("" if place else "keeps", f"{name}: {text}") for place, (name, text) in enumerate(found)]
    _, fpr, fnr = curve.steps()
    if (np.maximum(fpr, fnr) < 1.0).any():
        balanced = curve.balanced()
        lines += [("balanced", f"{_bounds_of(balanced)}, anomaly from {balanced.rule.anomaly_from!r} on")]
    joint = rounded_down(curve.confidence)
    lines += [("holds", f"at every threshold at once, however it is chosen; both rates jointly {joint}")]
    lines += [("", TOGETHER)]
    texts = map(str, OF_DRAWS)
    lines += [("" if i else "assumes", text) for i, text in enumerate(texts)]
    return lines + list(made_lines(curve))


def made_lines(certified: Certificate | Curve) -> Iterator[tuple[str, str]]:
    """Yield where a certificate or a curve comes from, if that is known."""
    known = certified.provenance
    if known is not None:
        when = "" if known.date is None else f"{known.date}, "
        yield "made", f"{when}pac-wrap {certified.version}{': ' * bool(str(known))}{known}"
    yield from note_lines(known)


def note_lines(known: Provenance | None) -> Iterator[tuple[str, str]]:
    """Yield what else was noticed when the scores were made."""
    for place, text in enumerate((known and known.notes) or ()):
        yield "" if place else "notes", text


def _chosen(curve: Curve, rate: float) -> str:
    try:
        found = curve.choose(max_fpr=rate)
    except InputError:
        return "no threshold"
    return f"{_bounds_of(found)}, anomaly from {found.rule.anomaly_from!r} on"


def _bounds_of(certificate: Certificate) -> str:
    certified = certificate.guarantee
    rates = (("FPR", certified.max_fpr), ("FNR", certified.max_fnr))
    return ", ".join(f"{name} <= {'1' if rate is None else rounded_up(rate)}" for name, rate in rates)


def lines_of_worth(
    precision: Bounds | None = None,
    workload: Workload | None = None,
    counted: Counted | None = None,
    unlabelled: Bounds | None = None,
    prevalence: Bounds | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield what alarms are worth, as pairs of a heading and a text."""
    if workload is not None:
        low, high = workload.prevalence
        share = _plain(low) if low == high else f"{_plain(low)} to {_plain(high)}"
        if precision is None:
            yield "alarms", f"how many anomalies are caught is not promised; if {share} are anomalous:"
        else:
            yield "alarms", f"{_least(precision)} if {share} of all points are anomalous"
        yield "work", f"per {workload.per:,} points, on average; together {_sure(workload.confidence)}"
        for name, found in (
            ("alarms", workload.alarms),
            ("right alarms", workload.right),
            ("false alarms", workload.false_alarms),
            ("missed anomalies", workload.missed),
            ("undecided", workload.undecided),
        ):
            yield "", f"{name}: {between(found.low, found.high)}"
    if counted is not None and unlabelled is not None and prevalence is not None:
        gone = f", {counted.missing:,} of them without a score" if counted.missing else ""
        yield "counted", f"{counted.alarms:,} alarms among {counted.points:,} points without labels{gone}"
        yield "alarms", f"{_least(unlabelled)}, whatever the anomalies are"
        if unlabelled.low == 0.0:
            yield "", "alarms are hardly more frequent than false ones may be, so they may all be false"
        else:
            yield "", "this is about alarms to come: among those that were counted, more may be false"
        share = range_of(prevalence.low, prevalence.high)
        yield "anomalies", f"{share} of all points, {_sure(prevalence.confidence)}"


def _least(precision: Bounds) -> str:
    return f"at least {least(precision.low)} of future ones are right ({_sure(precision.confidence)})"


def _sure(confidence: float) -> str:
    return f"with confidence {floored(confidence)}"


def _plain(share: float) -> str:
    return f"{(Decimal(repr(share)) * 100).normalize():f} %"
