"""An oracle for certificates, from SciPy's binomial and the theory alone: what in one cannot be true."""

import time
from math import inf, isclose, isinf, nextafter
from sys import float_info

import numpy as np
from scipy.stats import beta, binom

from pac_wrap import Abstain, Algorithm1, Certificate, CertificateError, Hold, Raise, Regime
from pac_wrap.method.promise import OF_SERIES
from support.kept import kept as kept_by
from support.ladder import worst_failure
from support.resealed import PATIENCE


def belongs_together(certificate: Certificate) -> list[str]:
    """Return what cannot be true of a certificate, from SciPy's binomial and the theory alone."""
    wrong = []
    asked, kept, overlap = certificate.guarantee, kept_by(certificate), certificate.overlap
    alarm, clear = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
    vacuous = False
    ceilings = (None, None) if kept is None else (kept.max_fpr, kept.max_fnr)
    for evidence, ceiling, threshold, never in (
        (certificate.fpr, ceilings[0], alarm, inf),
        (certificate.fnr, ceilings[1], clear, -inf),
    ):
        budget = evidence.budget
        if (budget is None) != (threshold is None):
            wrong.append("a threshold without a budget")
        digest = "0" * 16 if evidence.digest is None and evidence.n else str(evidence.digest)
        if len(digest) != 16 or set(digest) - set("0123456789abcdef"):
            wrong.append("digest")
        if kept is not None and ceiling != (None if budget is None else budget.rate):
            wrong.append("a ceiling without evidence")
        if budget is None:
            continue
        short = (1 - budget.rate) ** evidence.n > budget.delta * (1 + 1e-9)
        vacuous |= budget.errors is None
        if budget.errors is None:
            if (1 - budget.rate) ** evidence.n <= budget.delta * (1 - 1e-9) or threshold != never:
                wrong.append("too few labels, or not")
            continue
        # one error more must be too many, up to the digits of SciPy's tail
        tail = binom.cdf([budget.errors, budget.errors + 1], evidence.n, budget.rate)
        slack = 1e-9 + 1e-16 * evidence.n
        if short or tail[0] > budget.delta * (1 + slack) or tail[1] <= budget.delta * (1 - slack):
            wrong.append("error budget")
        if abs(1 - tail[0] - budget.confidence) > 1e-7:
            wrong.append("confidence")
    expected = Regime.OVERLAPPING
    if vacuous:
        expected = Regime.VACUOUS
    elif alarm is None or clear is None or alarm <= clear < inf or (clear == inf and alarm < inf):
        expected = Regime.SEPARATED
    if certificate.regime is not expected:
        wrong.append("regime")
    counts = (certificate.fpr.beyond, certificate.fnr.beyond)
    if (counts == (None, None)) != (None in (alarm, clear)) or counts.count(None) == 1:
        wrong.append("crossing points are counted exactly if there are two thresholds")
    if expected is not Regime.VACUOUS and None not in counts and not alarm == clear == inf:
        for evidence in (certificate.fpr, certificate.fnr):
            assert evidence.budget is not None
            assert evidence.budget.errors is not None
            assert evidence.beyond is not None
            if (evidence.beyond <= evidence.budget.errors) != (expected is Regime.SEPARATED):
                wrong.append("eq. (13)")
    rule = certificate.rule
    # what each threshold says of the scores of the type that lie next to it
    low, high = (_beside(edge, certificate.score_type) for edge in (alarm, clear))
    if len(asked.promises) == 1 and not isinstance(overlap, Abstain):
        wrong.append("nothing overlaps where one side is promised")
    spared = isinstance(overlap, Hold) and not overlap.always and kept == asked
    if spared and expected is not Regime.SEPARATED:
        wrong.append("both ceilings are kept without a threshold that separates")
    if isinstance(overlap, Abstain) or spared:
        if kept != asked:
            wrong.append("what is promised is not what was asked for")
        always = isinstance(overlap, Abstain) and overlap.always
        alone = expected is Regime.SEPARATED and len(asked.promises) == 2 and not always
        if alone and (not rule.single or rule.verdicts([low[0], high[-1]]).tolist() != [0, 1]):
            wrong.append("the single threshold does not lie between the two")
        if not alone and any(
            rule.verdicts([score])[0] != _verdict(score, alarm, clear) for score in {*low, *high}
        ):
            wrong.append("the rule does not follow from the two thresholds")
    elif isinstance(overlap, Raise):
        wrong += _raised(certificate, overlap, low, high)
    elif isinstance(overlap, Algorithm1):
        reached = kept is not None
        if reached is not rule.single or (
            not reached and (rule.normal_below, rule.anomaly_from) != (-inf, inf)
        ):
            wrong.append("reached or not")
        if reached and (alarm is None or clear is None or not alarm <= clear or isinf(rule.anomaly_from)):
            wrong.append("a level is reached without a threshold")
        elif reached and rule.verdicts([low[0], high[-1]]).tolist() != [0, 1]:
            wrong.append("the threshold lies outside")
    else:
        assert isinstance(overlap, Hold)
        held, other, edge, beside = (
            ("max_fnr", certificate.fpr, clear, high)
            if overlap.rate == "fnr"
            else ("max_fpr", certificate.fnr, alarm, low)
        )
        if edge is None or not rule.single:
            wrong.append("one threshold must be held")
        elif rule.verdicts(beside).tolist() != [_verdict(score, edge, None) for score in beside]:
            wrong.append("the rule is not the threshold that is held")
        if kept is None or getattr(kept, held) != getattr(asked, held):
            wrong.append("what is held is not kept")
        if other.budget is not None:
            errors, n = other.beyond, other.n
            assert errors is not None
            if not isclose(
                other.budget.rate, beta.isf(other.budget.delta, errors + 1, n - errors), rel_tol=1e-6
            ):
                wrong.append("the bound of the other side")
            ceiling = asked.max_fpr if overlap.rate == "fnr" else asked.max_fnr
            if not overlap.always and other.budget.rate <= (ceiling or 0.0) * (1 - 1e-9):
                wrong.append("a ceiling is given up that could have been kept")
    if (certificate.separable is None) is isinstance(overlap, Raise):
        wrong.append("whether one threshold would have done belongs to raising")
    # the score behind alarm_from is the double before it;
    # the largest double stands for a threshold at infinity
    scores = [] if alarm is None or isinf(alarm) else [nextafter(alarm, -inf)]
    scores += [] if clear is None or abs(clear) >= float_info.max else [clear]
    if any(float(np.float64(score).astype(certificate.score_type)) != score for score in scores):
        wrong.append("a threshold that no score of its type gives")
    if certificate.sampling is None and any(one in OF_SERIES[:2] for one in certificate.assumptions):
        wrong.append("a series without windows")
    return wrong


def _raised(certificate: Certificate, overlap: Raise, low: list[float], high: list[float]) -> list[str]:
    """Return what cannot be true of ceilings that were raised: eqs. (27) to (29)."""
    wrong = []
    asked, kept, rule = certificate.guarantee, kept_by(certificate), certificate.rule
    assert asked.fpr is not None
    assert asked.fnr is not None
    payer, other = certificate.fpr, certificate.fnr
    promised, others = asked.fpr, asked.fnr
    if other.n > payer.n:
        payer, other, promised, others = other, payer, others, promised
    if payer.budget is None or other.budget is None:
        return ["raised without budgets"]
    if other.budget.delta != others.delta or payer.budget.delta > promised.delta:
        wrong.append("more delta than there is")
    factor = max(1.0, overlap.highest / max(promised.ceiling, others.ceiling))
    top = promised.ceiling * factor
    if kept is not None and worst_failure(payer.n, promised.ceiling, payer.budget.delta, top) > (
        promised.delta * (1 + 1e-6)
    ):
        wrong.append("the ladder fails more often than delta")
    if kept is None:
        return wrong if (rule.normal_below, rule.anomaly_from) == (-inf, inf) else [*wrong, "not reached"]
    ceilings = kept.max_fpr, kept.max_fnr
    if None in ceilings or (kept.delta_fpr, kept.delta_fnr) != (asked.delta_fpr, asked.delta_fnr):
        return [*wrong, "both sides are promised with the deltas asked for"]
    # the threshold is that of the class that pays; the other class's count must fit its own budget there
    thresholds = certificate.thresholds
    edge, beside = thresholds.clear_below, high
    if payer is certificate.fpr:
        edge, beside = thresholds.alarm_from, low
    assert edge is not None
    if not rule.single or rule.verdicts(beside).tolist() != [int(score >= edge) for score in beside]:
        wrong.append("not the threshold of the class that pays")
    if payer.budget.rate < promised.ceiling * (1 - 1e-9) or payer.budget.rate > top * (1 + 1e-9):
        wrong.append("a ceiling outside the ladder")
    least = -np.expm1(np.log(others.delta) / other.n) if other.n else 1.0
    share = others.ceiling * payer.budget.rate / promised.ceiling
    if not isclose(other.budget.rate, max(share, least), rel_tol=1e-9):
        wrong.append("the other ceiling does not follow")
    if not certificate.separable and kept == asked:
        wrong.append("kept as asked, with less than the whole deltas, and not separable")
    return wrong


def _beside(edge: float | None, score_type: str) -> list[float]:
    """Return the last score of a type below an edge, if there is one, and the first that reaches it."""
    if edge is None:
        return []
    kind = np.dtype(score_type).type
    with np.errstate(over="ignore", under="ignore"):
        near = kind(edge)
        first = near if near >= edge else np.nextafter(near, kind(inf))
        # the largest double stands for inf
        lonely = first == -inf or (edge == inf and score_type == "float64")
        return [float(first)] if lonely else [float(np.nextafter(first, kind(-inf))), float(first)]


def _verdict(score: float, alarm: float | None, clear: float | None) -> int:
    """Return the verdict that two thresholds give: eq. (11)."""
    alarms = None if alarm is None else alarm <= score and alarm < inf
    kept = None if clear is None else clear <= score
    said = {one for one in (alarms, kept) if one is not None}
    return int(said.pop()) if len(said) == 1 else -1


def outcome(what: str, text: str) -> str:
    """Return what becomes of a certificate's text, in bounded time and without a control character."""
    started = time.process_time()
    try:
        certificate = Certificate.from_json(text)
    except CertificateError as error:
        shown, found = str(error), "refused"
    else:
        shown, found = str(certificate), "nothing in it is false"
        assert belongs_together(certificate) == [], what
        assert Certificate.from_json(certificate.to_json()) == certificate, what
    assert shown.replace("\n", "").isprintable(), what
    assert time.process_time() - started < PATIENCE, what
    return found
