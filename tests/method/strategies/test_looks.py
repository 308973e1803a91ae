"""The budgets of looks as a strategy: what it certifies, and which of its certificates are believed."""

import time
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import Certificate, CertificateError, Guarantee, InputError, calibrate
from pac_wrap.method.calibrate import Request, calibrate_chunks
from pac_wrap.method.rule import Regime, Rule
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.report.account import account_of
from pac_wrap.report.render import markdown
from pac_wrap.tails.bounds import error_budget, exact_confidence
from support.kept import kept as kept_by
from support.kept import with_clause
from support.resealed import PATIENCE, mutants, said, tampered
from support.strategies import Floats, decided, scores

RNG = np.random.default_rng(0)
NORMAL, FAR, NEAR = RNG.normal(0, 1, 300), RNG.normal(6, 1, 250), RNG.normal(1, 1, 250)
MADE = {
    "separated": calibrate(NORMAL, FAR, overlap=Looks()),
    "overlapping": calibrate(NORMAL, NEAR, overlap=Looks()),
    "few": calibrate(NORMAL[:50], FAR, overlap=Looks()),
    "given": calibrate(NORMAL, FAR, overlap=Looks(threshold=3.0)),
    "not kept": calibrate(NORMAL, NEAR, overlap=Looks(threshold=3.0)),
    "one-sided": calibrate(NORMAL, [], Guarantee(max_fnr=None), overlap=Looks(threshold=3.0)),
}


@pytest.mark.parametrize("kind", MADE)
def test_every_certificate_is_believed_again_and_verified(kind: str) -> None:
    certificate = MADE[kind]
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert isinstance(certificate.overlap, Looks)
    anomalous = NEAR if kind in ("overlapping", "not kept") else FAR[: certificate.fnr.n]
    assert certificate.verify(NORMAL[: certificate.fpr.n], anomalous)
    assert "must not depend on their scores" in str(certificate)


def test_what_each_certifies() -> None:
    assert {kind: one.regime.value for kind, one in MADE.items()} == {
        "separated": "separated",
        "overlapping": "overlapping",
        "few": "vacuous",
        "given": "separated",
        "not kept": "overlapping",
        "one-sided": "separated",
    }
    assert [kind for kind, one in MADE.items() if one.uncertified] == ["not kept"]
    assert MADE["given"].rule == MADE["one-sided"].rule == Rule(3.0, 3.0)
    assert MADE["separated"].rule.single
    # a score between the two thresholds, as in `Abstain`: no number that nobody has seen
    assert MADE["separated"].rule.anomaly_from in np.concatenate([NORMAL, FAR])
    assert not MADE["overlapping"].rule.single


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"overlap.every": 1}, "the budget of normal points"),
        ({"overlap.up_to": 4000}, "the budget of normal points"),
        ({"normal.found_at.delta": 0.05}, "the budget of normal points"),
        ({"normal.budget": 14}, "the budget of normal points"),
        ({"overlap.threshold": 2.5}, "the rule does not follow"),
        ({"overlap.threshold": "inf"}, "threshold must be a finite number"),
        ({"overlap.every": 0}, "every must be a whole number, 1 or more, got 0"),
        ({"overlap.up_to": 10**12}, "up_to must be at most 20,000 labels"),
        ({"normal.certified": {"ceiling": None}}, "the certified ceilings do not follow"),
    ],
)
def test_what_was_tampered_with_is_refused(changes: dict[str, object], sentence: str) -> None:
    assert sentence in said(tampered(MADE["separated"], changes))


def test_tampered_looks_are_refused_or_claim_no_more_than_one_look_would() -> None:
    refusals = 0
    for what, text in mutants(14, 150, list(MADE.values())):
        try:
            found = Certificate.from_json(text)
        except CertificateError:
            refusals += 1
            continue
        assert kept_by(found) in (None, found.guarantee), what
        for evidence, delta in (
            (found.fpr, found.guarantee.delta_fpr),
            (found.fnr, found.guarantee.delta_fnr),
        ):
            if isinstance(found.overlap, Looks) and evidence.budget is not None:
                assert evidence.budget.delta <= delta, what
                assert (evidence.budget.errors or 0) <= (
                    error_budget(evidence.n, evidence.budget.rate, delta) or 0
                )
    assert 90 < refusals < 150


@pytest.mark.slow
def test_the_slowest_looks_are_certified_and_loaded_in_time() -> None:
    from pac_wrap.tails.levels import local_delta

    # the local levels take the time, of a certificate as of its file
    local_delta.cache_clear()
    started = time.process_time()
    certificate = calibrate(NORMAL, FAR, Guarantee(0.5, 0.4), overlap=Looks(10, 20_000))
    Certificate.from_json(certificate.to_json())
    assert time.process_time() - started < 10 * PATIENCE


@given(st.integers(0, 3000))
def test_between_two_looks_the_budget_is_that_of_the_last(n: int) -> None:
    promise = Guarantee().promises[0]
    budget = Looks().budget(promise, n)
    look = min(n // 20 * 20, 2000)
    assert (budget.n, budget.delta) == (n, 0.0074044621)
    assert budget.errors == error_budget(look, 0.05, 0.0074044621)
    # more points than at the look only make the same budget surer
    assert budget.confidence == exact_confidence(n, 0.05, budget.errors)


@given(scores(), scores(), st.floats(allow_nan=False, allow_infinity=False))
def test_a_threshold_is_kept_exactly_if_its_errors_are_within_budget(
    normal: Floats, anomalous: Floats, tau: float
) -> None:
    asked, looks = Guarantee(0.4, 0.4, 0.3, 0.3), Looks(2, 40)
    assert asked.fpr is not None
    assert asked.fnr is not None
    fpr, fnr = looks.budget(asked.fpr, normal.size), looks.budget(asked.fnr, anomalous.size)
    both = np.concatenate((normal, anomalous))
    for place in (tau, *both, *np.nextafter(both, inf)):
        alarms, misses = np.count_nonzero(normal >= place), np.count_nonzero(anomalous < place)
        within = fpr.errors is not None and alarms <= fpr.errors
        within = within and fnr.errors is not None and misses <= fnr.errors
        if abs(place) < inf:
            given = Looks(2, 40, threshold=place)
            assert (decided(given, asked, normal, anomalous).certified is not None) == within


def test_a_report_says_what_the_looks_cost_and_assume() -> None:
    page = markdown(account_of(MADE["given"], NORMAL, FAR))
    assert "every 20 of a class up to 2,000" in page
    assert "a local delta of 0.00740446 (FPR) and 0.00740446 (FNR)" in page
    assert "the threshold 3.0 was fixed beforehand" in page
    assert "choice of labelled points did not depend on their scores" in page
    assert "All looks share one delta, so more labels are needed" in page
    few = markdown(account_of(calibrate(NORMAL[:80], FAR, overlap=Looks()), NORMAL[:80], FAR))
    assert "Label more normal points (at hand 80, needed at least 96)." in few


def test_prediction_sets_follow_the_threshold_that_was_given() -> None:
    found = MADE["one-sided"]
    assert found.thresholds.alarm_from is not None
    between = (found.thresholds.alarm_from + 3.0) / 2.0
    assert found.verdicts([between, 3.0]).tolist() == [0, 1]
    assert found.prediction_sets([between, 3.0]).tolist() == [[True, True], [False, True]]


def test_every_entrance_gives_the_same() -> None:
    labels = np.append(np.zeros(NORMAL.size), np.ones(NEAR.size))
    together = np.append(NORMAL, NEAR)
    request = Request.of(Guarantee(), Looks())
    chunks = [(part, named) for part, named in zip(np.split(together, 5), np.split(labels, 5), strict=True)]
    assert calibrate_chunks(lambda: chunks, request).to_json() == MADE["overlapping"].to_json()


def test_zeros_and_infinite_scores() -> None:
    assert Looks(threshold=-0.0) == Looks(threshold=0.0)
    endless = calibrate(np.full(200, inf), np.full(200, inf), overlap=Looks(threshold=1.0))
    assert endless.uncertified
    assert calibrate(np.zeros(200), np.full(200, inf), overlap=Looks()).regime is Regime.SEPARATED
    with pytest.raises(InputError, match="threshold must be a finite number"):
        Looks(threshold=inf)


def test_a_certificate_that_claims_more_labels_than_its_looks_is_judged_by_the_last_look() -> None:
    certificate = calibrate(RNG.normal(0, 1, 500), RNG.normal(7, 1, 500), overlap=Looks(20, 100))
    assert certificate.fpr.budget is not None
    assert certificate.fpr.budget.errors == error_budget(100, 0.05, certificate.fpr.budget.delta)
    changed = with_clause(certificate, "fpr", budget=replace(certificate.fpr.budget, errors=0))
    with pytest.raises(CertificateError, match="the budget of normal points"):
        Certificate.from_json(changed.to_json())
