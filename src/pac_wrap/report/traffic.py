"""The account of a certificate of traffic, in an operator's words: alarms, wrong ones, the next reviews."""

from collections.abc import Iterator

from pac_wrap.base.text import amount
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.promise import Clause, Error, Promise
from pac_wrap.method.provenance import Traffic
from pac_wrap.report.account import Fact, Status, facts_of
from pac_wrap.report.numbers import ceiling, confidence, least, sure

_WORDS = {
    "max_alarms": "raise an alarm",
    "max_false_alarms": "raise a false alarm",
    "max_fpr": "of the normal ones raise a false alarm",
    "max_fnr": "of anomalies are missed",
}


def status_of(certificate: Certificate) -> Status:
    """Return whether all, some or none of the promises about traffic are certified."""
    lacking = [one for one in certificate.clauses if one.lacking]
    if not lacking:
        return Status("certified", "certified", 0)
    if not certificate.promises:
        return Status("none", "too little traffic, or too few reviews", 1)
    return Status("partly", f"partly certified: nothing is promised about {_about(lacking[0])}", 1)


def _about(one: Clause) -> str:
    return {"alarms": "precision", "anomalous": "missed anomalies"}.get(
        one.of.label, f"{one.of.error.value}s"
    )


def _most(promise: Promise) -> str:
    """Return a ceiling in words: points per so many points, or a share."""
    if promise.limit is not None and len(promise.limit) > 1:
        return f"{promise.limit[0]:,.12g} of {promise.limit[1]:,.0f} points"
    of = " of points" if promise.of.label == "traffic" else " "
    return f"{ceiling(promise.ceiling)}{of}".rstrip()


def headline_of(certificate: Certificate) -> str:
    """Return the promises in one sentence, and the promises that are lacking in another."""
    kept = certificate.promises
    said = []
    for one in kept:
        if one.error is Error.WRONG_ALARM:
            said.append(f"at least {least((one.limit or (1.0 - one.ceiling,))[0])} of alarms are right")
        else:
            said.append(f"at most {_most(one)} {_WORDS[one.of.option]}")
    texts = []
    if kept:
        surely = f"with {confidence(kept[0].delta)} confidence"
        if len(kept) > 1:
            surely = f"all together with {sure(certificate.confidence)} confidence"
        texts.append(f"In the long run, {', and '.join(said)}: {surely}.")
    lacking = [one for one in certificate.clauses if one.lacking]
    texts += [f"Nothing is promised about {_about(one)} yet: {_why(one, certificate)}." for one in lacking]
    if not certificate.rule.anomaly_from < float("inf"):
        texts.append("No alarm is ever raised.")
    return " ".join(texts)


def _why(one: Clause, certificate: Certificate) -> str:
    if one.of.label == "alarms":
        return "review more alarms from the highest score down, or ask for less"
    if one.asked is not None and one.asked.by_audits and certificate.traffic is not None:
        needed, drawn = one.n + one.missing, certificate.traffic.audits or 0
        many = float(f"{drawn * needed / one.n:.1e}") if one.n else 0.0
        audits = f"; that takes about {many:,.0f} audits, not {drawn:,}" if many else ""
        return f"{one.n:,} caught anomalies are too few, {needed:,} are needed{audits}"
    points = "anomalies" if one.of.label == "anomalous" else "points of traffic"
    return f"{one.n:,} {points} are too few, {one.n + one.missing:,} are needed"


def facts_in_short(certificate: Certificate, rule: str, assumes: str) -> Iterator[Fact]:
    """Yield the short account: the rule, the traffic, the alarms, the budgets, the next review."""
    seen = certificate.traffic
    assert seen is not None
    yield Fact("rule", rule)
    unscored = f", {seen.unscored:,} without a score" if seen.unscored else ""
    reviewed = "" if seen.cleared is None else f"{amount(seen.found + seen.cleared, 'review')}, "
    yield Fact(
        "traffic", f"{amount(seen.points, 'point')}{unscored}; {reviewed}{seen.found:,} found anomalous"
    )
    left = f", {seen.unreviewed:,} not reviewed" if seen.unreviewed else ""
    wrong = "the others count as wrong" if seen.wrong is None else f"{seen.wrong:,} wrong{left}"
    yield Fact("alarms", f"{seen.alarms:,} of these points: {seen.right:,} right, {wrong}")
    yield from facts_of("allowed", [_allowed(one) for one in certificate.clauses if one.kept])
    yield from facts_of("review", [text] if (text := next_review(certificate, seen)) else [])
    yield Fact("assumes", assumes)


def _allowed(one: Clause) -> str:
    errors = amount(one.errors or 0, one.of.error.value if one.of.label != "anomalous" else "miss")
    errors = errors.replace("misss", "misses")
    return f"{errors} among {one.n:,} {'alarms' if one.of.label == 'alarms' else one.of.label + ' points'}"


def next_review(certificate: Certificate, seen: Traffic) -> str | None:
    """Return the gain from reviewing more alarms, if there is any."""
    if (
        seen.wrong is not None
        and seen.unreviewed
        and any(one.of.error is not Error.ALARM for one in certificate.of("normal"))
    ):
        return (
            f"the {seen.unreviewed:,} alarms without a review count as wrong; each that is right lets the"
            " threshold fall"
        )
    return None
