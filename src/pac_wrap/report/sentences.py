"""The promise of a certificate in one sentence that needs no statistics, and what belongs beside it."""

from collections.abc import Iterator, Sequence
from typing import Final

from pac_wrap.method.certificate import Certificate
from pac_wrap.method.rule import Verdict
from pac_wrap.method.thresholds import Regime
from pac_wrap.ranks.auc import auc, is_upside_down
from pac_wrap.report.numbers import ceiling, confidence, percent
from pac_wrap.report.subject import ErrorRate, Report, error_rates
from pac_wrap.report.verdict_table import ranges, verdict_rows

_CONSEQUENCES: Final = {
    frozenset({Verdict.NORMAL}): "every point is called normal",
    frozenset({Verdict.ANOMALY}): "every point is called an anomaly",
    frozenset({Verdict.ABSTAIN}): "every point is left undecided",
    frozenset({Verdict.NORMAL, Verdict.ABSTAIN}): "no anomaly is ever declared",
    frozenset({Verdict.ABSTAIN, Verdict.ANOMALY}): "no point is ever called normal",
}


def status(certificate: Certificate) -> str:
    """Return in a few words whether something is certified."""
    if certificate.certified is None:
        return "nothing certified"
    if certificate.regime is Regime.VACUOUS:
        return "too few labels"
    if not certificate.overlap.proved:
        return "certified, confidence not guaranteed"
    if any(_raises(certificate)):
        return "certified, but less than was asked for"
    return "certified"


def promise(certificate: Certificate) -> str:
    """Return the promise in one sentence.

    >>> from pac_wrap import Guarantee, calibrate
    >>> promise(calibrate(range(100), range(200, 300), Guarantee(max_fpr=0.1, max_fnr=None)))
    'At most 10 % of future normal points will be called anomalies, with confidence 95 %; nothing is \
promised about missed anomalies.'
    """
    if certificate.certified is None:
        tried = certificate.overlap.tried(certificate.guarantee, certificate.claim.sizes)
        return (
            f"Nothing is promised: one threshold keeps none of the {tried:,} promises that were tried,"
            " so every point is left undecided."
        )
    both = error_rates(certificate)
    kept = [rate for rate in both if rate.kept]
    lacking = [rate for rate in both if rate.lacks_labels]
    clauses = []
    if lacking:
        counts = " and ".join(
            f"{rate.evidence.n:,} {rate.kind} (at least {rate.needed:,} are needed)" for rate in lacking
        )
        clauses.append(f"{consequence(certificate)}, because too few points are labelled: {counts}")
    if len(kept) == 2:
        surely = f"both together with confidence {_joint(kept)}"
        if certificate.certified.joint_delta >= 1:
            surely = ", ".join(f"{rate.errors} with confidence {confidence(rate.delta)}" for rate in kept)
        clauses.append(f"{kept[0].sentence}, and {kept[1].sentence}: {surely}")
    elif kept:
        clauses.append(f"{kept[0].sentence}, with confidence {confidence(kept[0].delta)}")
    clauses += [
        f"nothing is promised about {rate.errors}"
        for rate in both
        if rate not in kept and not rate.lacks_labels
    ]
    if not certificate.overlap.proved:
        clauses.append("this confidence is not guaranteed")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


def consequence(certificate: Certificate) -> str:
    """Return what a rule that lacks a verdict does with every point, in words."""
    return _CONSEQUENCES[frozenset(ranges(certificate.rule))]


def notes(report: Report) -> Iterator[str]:
    """Return what a reader of the promise has to know: confidence, abstention, ceilings that were raised."""
    certificate = report.certificate
    kept = [rate for rate in error_rates(certificate) if rate.kept]
    if kept and sum(rate.delta for rate in kept) < 1 and certificate.overlap.proved:
        yield (
            f"Confidence {_joint(kept)} means: if the calibration were repeated with fresh labelled points,"
            f" at least {_joint(kept)} of the certificates made in this way would be true."
        )
        if len(kept) == 2:
            alone = [f"{rate.errors} {confidence(rate.delta)}" for rate in kept]
            yield f"Each part on its own holds with more confidence: {alone[0]}, {alone[1]}."
    for row in verdict_rows(report):
        if row.verdict is Verdict.ABSTAIN and row.range != (None, None):
            yield (
                "Points that cannot be decided are left to you, and do not count as errors: among the"
                f" calibration points {row.normal_share} of the normal and {row.anomalous_share} of the"
                " anomalous ones."
            )
    if changes := list(_raises(certificate)):
        yield f"One threshold could not keep what was asked for: {'; '.join(changes)}."


def warnings_of(report: Report) -> Iterator[str]:
    """Return reasons not to rely on the promise yet."""
    certificate = report.certificate
    if not certificate.overlap.proved and certificate.certified is not None:
        yield (
            "The confidence is not guaranteed: the promise was chosen on the points that certify it, and"
            ' delta was not shared among the levels. Use correction="share", or hold one ceiling.'
        )
    for rate in error_rates(certificate, report.metrics):
        if rate.exceeded and rate.measured is not None:
            yield (
                f"On held-out points the {rate.name} was {percent(rate.measured.value)}, significantly above"
                f" its ceiling of {ceiling(rate.certified or 1.0)}. Do not rely on the promise before the"
                " reason is known."
            )
    sizes = report.normal.size, report.anomalous.size
    if all(sizes) and is_upside_down(auc(report.normal, report.anomalous), *sizes):
        yield (
            "Anomalies score lower than normal points. If low scores mean anomalous, negate the scores and"
            " calibrate again."
        )


def _joint(kept: Sequence[ErrorRate]) -> str:
    return confidence(*(rate.delta for rate in kept))


def _raises(certificate: Certificate) -> Iterator[str]:
    if certificate.certified is None:
        return
    for rate in error_rates(certificate):
        if rate.raised:
            now = "no ceiling" if rate.certified is None else ceiling(rate.certified)
            yield f"the ceiling of {rate.errors} went from {ceiling(rate.asked or 1.0)} to {now}"
        if rate.less_confident:
            yield (
                f"the confidence on {rate.errors} went from {confidence(rate.asked_delta)} to"
                f" {confidence(rate.delta)}"
            )
