"""What a report says in sentences: its status, the promise, and what belongs beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.robust.noise import NEW_LABELS
from pac_wrap.method.rule import Verdict
from pac_wrap.method.thresholds import Regime
from pac_wrap.ranks.auc import is_upside_down, rough_auc
from pac_wrap.report.subject import CONDITION, Report, error_rates, ranges
from pac_wrap.report.words.numbers import ceiling, confidence, floored, percent

# what a rule that lacks a verdict does with every point
_CONSEQUENCES: Final = {
    frozenset({Verdict.NORMAL}): "every point is called normal",
    frozenset({Verdict.ANOMALY}): "every point is called an anomaly",
    frozenset({Verdict.ABSTAIN}): "every point is left undecided",
    frozenset({Verdict.NORMAL, Verdict.ABSTAIN}): "no anomaly is ever declared",
    frozenset({Verdict.ABSTAIN, Verdict.ANOMALY}): "no point is ever called normal",
}


@dataclass(frozen=True, slots=True)
class Status:
    """Whether something is certified: in a few words, and as a sign that is seen from afar.

    `sign` is "certified", "raised", "partly", "none" or "broken".
    """

    sign: str
    words: str


def status(report: Report) -> Status:
    """Return whether something is certified, and whether held-out points contradict it.

    >>> from pac_wrap import calibrate
    >>> status(Report(calibrate(range(100), range(200, 300))))
    Status(sign='certified', words='certified')
    """
    certificate = report.certificate
    rates = error_rates(certificate, report.metrics)
    kept = [rate for rate in rates if rate.kept]
    lacking = [rate.kind for rate in rates if rate.lacks_labels]
    if certificate.certified is None:
        return Status("none", "nothing certified")
    if any(rate.exceeded for rate in rates):
        return Status("broken", "certified, but held-out points contradict it")
    if certificate.regime is Regime.VACUOUS:
        if kept:
            return Status("partly", f"partly certified: too few {lacking[0]} labels")
        return Status("none", "too few labels")
    if not certificate.overlap.proved:
        return Status("broken", "confidence not guaranteed")
    if certificate.overstated:
        return Status("partly", f"certified only if {CONDITION}")
    if any(rate.asked is not None and not rate.kept for rate in rates):
        return Status("partly", "partly certified")
    if any(rate.raised for rate in rates):
        return Status("raised", "certified with raised ceilings")
    if any(rate.less_confident for rate in rates):
        return Status("raised", "certified with less confidence")
    return Status("certified", "certified")


def promise(certificate: Certificate) -> str:
    """Return the promise in one sentence.

    >>> from pac_wrap import Guarantee, calibrate
    >>> promise(calibrate(range(100), range(200, 300), Guarantee(max_fpr=0.1, max_fnr=None)))
    'The rate of future normal points that are called anomalies is at most 10 %, with confidence 95 %; \
nothing is promised about missed anomalies.'
    """
    if certificate.certified is None:
        return f"Nothing is promised, since {certificate.overlap.unreached}: every point is left undecided."
    both = error_rates(certificate)
    kept = [rate for rate in both if rate.kept]
    lacking = [rate for rate in both if rate.lacks_labels]
    clauses = []
    if lacking:
        counts = " and ".join(
            f"{rate.evidence.n:,} {rate.kind} (at least {rate.needed:,} are needed)" for rate in lacking
        )
        consequence = _CONSEQUENCES[frozenset(ranges(certificate.rule))]
        clauses.append(f"{consequence}, because too few points are labelled: {counts}")
    if len(kept) == 2:
        surely = f"both together with confidence {floored(certificate.confidence)}"
        if not certificate.confidence:
            surely = ", ".join(f"{rate.errors} with confidence {confidence(rate.delta)}" for rate in kept)
        clauses.append(f"{kept[0].sentence}, and {kept[1].sentence}: {surely}")
    elif kept:
        clauses.append(f"{kept[0].sentence}, with confidence {confidence(kept[0].delta)}")
    clauses += [
        f"nothing is promised about {rate.errors}"
        for rate in both
        if rate not in kept and not rate.lacks_labels
    ]
    names = {rate.name for rate in kept}
    if room := [
        f"{one.name}, {one.room}" for one in certificate.certified.promises if one.room and one.name in names
    ]:
        clauses.append(f"with room for this: {'; '.join(room)}")
    if not certificate.overlap.proved:
        clauses.append("this confidence is not guaranteed")
    text = "; ".join(clauses)
    if doubted := list(_overstated(certificate)):
        return f"But {' and '.join(doubted)}. If they were independent, this would hold: {text}."
    return f"{text[0].upper()}{text[1:]}."


def _overstated(certificate: Certificate) -> Iterator[str]:
    """Yield what points of a series are worth, where that is too little for what is promised."""
    for rate in error_rates(certificate):
        if rate.overstated:
            points = f"{rate.evidence.n:,} {rate.kind} points"
            if rate.effective is None:
                yield f"it is unknown what the {points} are worth"
            else:
                yield f"the {points} are worth about {rate.at_hand:,} independent ones"


def notes(report: Report) -> Iterator[str]:
    """Return what a reader of the promise has to know: confidence, abstention, ceilings that were raised."""
    certificate = report.certificate
    kept = [rate for rate in error_rates(certificate) if rate.kept]
    if kept and certificate.confidence and certificate.overlap.proved:
        sure = floored(certificate.confidence) if len(kept) == 2 else confidence(kept[0].delta)
        yield (
            f"Confidence {sure} means: if the calibration were repeated with fresh labelled points,"
            f" in the long run at least {sure} of the certificates made in this way would be true."
        )
        if len(kept) == 2:
            alone = [f"{rate.errors} {floored(certificate.confidences[rate.name])}" for rate in kept]
            yield f"Each part on its own holds with more confidence: {alone[0]}, {alone[1]}."
    if ranges(certificate.rule).get(Verdict.ABSTAIN, (None, None)) != (None, None):
        yield "Points that cannot be decided are left to you, and do not count as errors."
    if changes := list(_raises(certificate)):
        why = "One threshold could not keep what was asked for"
        if certificate.separable:
            why = "The ladder of raise begins above the ceilings that one threshold keeps here"
        yield f"{why}: {'; '.join(changes)}."


def warnings_of(report: Report) -> Iterator[str]:
    """Return reasons not to rely on the promise yet."""
    certificate = report.certificate
    if not certificate.overlap.proved and certificate.certified is not None:
        yield (
            "The confidence is not guaranteed: the promise was chosen on the points that certify it, and"
            ' delta was not corrected for that. Use correction="exact", or hold one ceiling.'
        )
    if certificate.overstated:
        held_out = any(heading == "held out" for heading, _ in report.in_time)
        yield (
            "Every confidence on this page counts each point as an independent draw, which these are not."
            f"{' What held-out series show stands below.' if held_out else ''}"
        )
    for rate in error_rates(certificate, report.metrics):
        if rate.exceeded and rate.measured is not None:
            yield (
                f"On held-out points the {rate.name} was {percent(rate.measured.value)}, significantly above"
                f" its ceiling of {ceiling(rate.certified or 1.0)}. Do not rely on the promise before the"
                " reason is known."
            )
            if rate.promise is not None and rate.promise.label_noise is not None:
                yield f"{NEW_LABELS[0].upper()}{NEW_LABELS[1:]}."
    normal, anomalous = report.normal, report.anomalous
    if normal is None or anomalous is None or not (normal.size and anomalous.size):
        return
    if is_upside_down(rough_auc(normal, anomalous), normal.size, anomalous.size):
        yield (
            "Anomalies score lower than normal points. If low scores mean anomalous, negate the scores and"
            " calibrate again."
        )


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
