"""The promise of a certificate in one sentence that needs no statistics, and what belongs beside it."""

from collections.abc import Iterator, Sequence
from typing import Final

from pac_wrap.certificate import Certificate
from pac_wrap.order import auc, is_upside_down
from pac_wrap.report.ranges import ranges, verdict_rows
from pac_wrap.report.result import Report
from pac_wrap.report.sides import Side, sides
from pac_wrap.report.wording import ceiling, confidence, percent
from pac_wrap.thresholds import Regime, Verdict

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
    if not proved(certificate):
        return "certified, confidence not guaranteed"
    if any(_raises(certificate)):
        return "certified, but less than was asked for"
    return "certified"


def proved(certificate: Certificate) -> bool:
    """Return whether the confidence is a theorem; the paper's uncorrected relaxation is not one."""
    strategy = certificate.strategy
    return strategy is None or strategy.name != "relax" or strategy.correction is not None


def promise(certificate: Certificate) -> str:
    """Return the promise in one sentence.

    >>> from pac_wrap import Guarantee, calibrate
    >>> promise(calibrate(range(100), range(200, 300), Guarantee(max_fpr=0.1, max_fnr=None)))
    'At most 10 % of future normal points will be called anomalies, with confidence 95 %; nothing is \
promised about missed anomalies.'
    """
    if certificate.certified is None:
        tried = certificate.levels or 1
        return (
            f"Nothing is promised: one threshold keeps none of the {tried:,} promises that were tried,"
            " so every point is left undecided."
        )
    both = sides(certificate)
    kept = [side for side in both if side.certified is not None and not side.short]
    short = [side for side in both if side.short]
    parts = []
    if short:
        counts = " and ".join(
            f"{side.evidence.n:,} {side.kind} (at least {side.needed:,} are needed)" for side in short
        )
        parts.append(f"{consequence(certificate)}, because too few points are labelled: {counts}")
    if len(kept) == 2:
        surely = f"both together with confidence {_joint(kept)}"
        if certificate.certified.joint_delta >= 1:
            surely = ", ".join(f"{side.errors} with confidence {confidence(side.delta)}" for side in kept)
        parts.append(f"{kept[0].sentence}, and {kept[1].sentence}: {surely}")
    elif kept:
        parts.append(f"{kept[0].sentence}, with confidence {confidence(kept[0].delta)}")
    parts += [
        f"nothing is promised about {side.errors}" for side in both if side not in kept and not side.short
    ]
    if not proved(certificate):
        parts.append("this confidence is not guaranteed")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def consequence(certificate: Certificate) -> str:
    """Return what a rule that lacks a verdict does with every point, in words."""
    return _CONSEQUENCES[frozenset(ranges(certificate.rule))]


def notes(report: Report) -> Iterator[str]:
    """Return what a reader of the promise has to know: confidence, abstention, ceilings that were raised."""
    certificate = report.certificate
    kept = [side for side in sides(certificate) if side.certified is not None and not side.short]
    if kept and sum(side.delta for side in kept) < 1 and proved(certificate):
        yield (
            f"Confidence {_joint(kept)} means: if the calibration were repeated with fresh labelled points,"
            f" at least {_joint(kept)} of the certificates made in this way would be true."
        )
        if len(kept) == 2:
            alone = [f"{side.errors} {confidence(side.delta)}" for side in kept]
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
    if not proved(certificate) and certificate.certified is not None:
        yield (
            "The confidence is not guaranteed: the promise was chosen on the points that certify it, and"
            ' delta was not shared among the levels. Use correction="share", or a strategy that holds'
            " one side."
        )
    for side in sides(certificate, report.metrics):
        if side.exceeded and side.measured is not None:
            yield (
                f"On held-out points the {side.rate} was {percent(side.measured.value)}, beyond chance above"
                f" its ceiling of {ceiling(side.certified or 1.0)}. Do not rely on the promise before the"
                " reason is known."
            )
    sizes = report.normal.size, report.anomalous.size
    if all(sizes) and is_upside_down(auc(report.normal, report.anomalous), *sizes):
        yield (
            "Anomalies score lower than normal points. If low scores mean anomalous, negate the scores and"
            " calibrate again."
        )


def _joint(kept: Sequence[Side]) -> str:
    return confidence(*(side.delta for side in kept))


def _raises(certificate: Certificate) -> Iterator[str]:
    if certificate.certified is None:
        return
    for side in sides(certificate):
        if side.raised:
            now = "no ceiling" if side.certified is None else ceiling(side.certified)
            yield f"the ceiling of {side.errors} went from {ceiling(side.asked or 1.0)} to {now}"
        if side.doubted:
            yield (
                f"the confidence on {side.errors} went from {confidence(side.asked_delta)} to"
                f" {confidence(side.delta)}"
            )
