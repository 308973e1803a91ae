"""An oracle for certificates, from SciPy's binomial and the theory alone: what in one cannot be true."""

import time
from math import inf, isclose, isfinite, isinf, nextafter
from sys import float_info

import numpy as np
from scipy.stats import beta, binom

from pac_wrap import Certificate, CertificateError, Regime
from pac_wrap.assumptions import OF_SERIES
from resealed import PATIENCE


def belongs_together(certificate: Certificate) -> list[str]:
    """Return what cannot be true of a certificate, from SciPy's binomial and the theory alone."""
    wrong = []
    asked, kept, strategy = certificate.guarantee, certificate.certified, certificate.strategy
    alarm, clear = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
    vacuous = False
    ceilings = (None, None) if kept is None else (kept.max_fpr, kept.max_fnr)
    for evidence, ceiling, threshold, never in (
        (certificate.normal, ceilings[0], alarm, inf),
        (certificate.anomalous, ceilings[1], clear, -inf),
    ):
        budget = evidence.budget
        if (budget is None) != (threshold is None):
            wrong.append("a threshold without a budget")
        if len(evidence.digest) != 16 or set(evidence.digest) - set("0123456789abcdef"):
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
    counts = (certificate.normal.crossing, certificate.anomalous.crossing)
    if (counts == (None, None)) != (None in (alarm, clear)) or counts.count(None) == 1:
        wrong.append("crossing points are counted exactly if there are two thresholds")
    if expected is not Regime.VACUOUS and None not in counts and not alarm == clear == inf:
        for evidence in (certificate.normal, certificate.anomalous):
            assert evidence.budget is not None
            assert evidence.budget.errors is not None
            assert evidence.crossing is not None
            if (evidence.crossing <= evidence.budget.errors) != (expected is Regime.SEPARATED):
                wrong.append("eq. (13)")
    if strategy is None:
        if (certificate.tau, certificate.level, certificate.levels, kept) != (None, None, None, asked):
            wrong.append("what only a strategy has")
    elif strategy.name == "relax":
        reached = certificate.level is not None
        if (certificate.tau is not None, kept is not None) != (reached, reached):
            wrong.append("reached or not")
        tau = certificate.tau
        inside = None not in (alarm, clear, tau) and alarm <= tau <= clear and isfinite(tau)  # type: ignore[operator, arg-type]
        if reached and not inside:
            wrong.append("tau outside")
    else:
        held, other = (
            ("max_fnr", certificate.normal)
            if strategy.name == "hold_fnr"
            else ("max_fpr", certificate.anomalous)
        )
        if certificate.tau != (clear if strategy.name == "hold_fnr" else alarm):
            wrong.append("tau is not the threshold that is held")
        if kept is None or getattr(kept, held) != getattr(asked, held):
            wrong.append("what is held is not kept")
        if other.budget is not None:
            errors, n = other.crossing, other.n
            assert errors is not None
            if not isclose(
                other.budget.rate, beta.isf(other.budget.delta, errors + 1, n - errors), rel_tol=1e-6
            ):
                wrong.append("the bound of the other side")
    # the score behind alarm_from is the double before it;
    # the largest double stands for a threshold at infinity
    scores = [] if alarm is None or isinf(alarm) else [nextafter(alarm, -inf)]
    scores += [] if clear is None or abs(clear) >= float_info.max else [clear]
    if any(float(np.float64(score).astype(certificate.score_type)) != score for score in scores):
        wrong.append("a threshold that no score of its type gives")
    if certificate.sampling is None and any(one in OF_SERIES[:2] for one in certificate.assumptions):
        wrong.append("a series without windows")
    return wrong


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
