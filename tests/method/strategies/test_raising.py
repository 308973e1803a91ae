import time
from dataclasses import replace
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import Certificate
from pac_wrap.base.floats import ceiling_up
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import inconsistencies
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Regime, Rule
from pac_wrap.method.strategies.interface import asked_of
from pac_wrap.method.strategies.raising import Raise, staircase
from pac_wrap.tails.bounds import upper_bound
from support.kept import kept as kept_by
from support.ladder import rungs
from support.reports import facts_told
from support.strategies import LARGEST, Floats, calibrate_quietly, exact_budget, guarantee, refusal, scores

FIVE = Guarantee()
RNG = np.random.default_rng(5)
NORMAL, NEAR, FAR = RNG.normal(0, 1, 865), RNG.normal(2, 1, 170), RNG.normal(8, 1, 170)


def by_definition(
    normal: Floats, anomalous: Floats, asked: Guarantee, level: float, highest: float
) -> tuple[float, float, float] | None:
    """Return ceilings and threshold of the first rung that is accepted, trying each in turn: eq. (27)."""
    assert asked.fpr is not None
    assert asked.fnr is not None
    payer, other, paying, others = asked.fpr, asked.fnr, normal, anomalous
    normal_pays = normal.size >= anomalous.size
    if not normal_pays:
        payer, other, paying, others = other, payer, others, paying
    top = payer.ceiling * max(1.0, highest / max(payer.ceiling, other.ceiling))
    least = 1.0 - other.delta ** (1.0 / others.size)
    if least > max(highest, other.ceiling):
        return None
    first, ceilings = rungs(paying.size, payer.ceiling, level, top)
    high, low = np.sort(normal)[::-1], np.sort(anomalous)
    for i, ceiling in enumerate(ceilings, start=first):
        share = max(other.ceiling * ceiling / payer.ceiling, least * (1.0 + 1e-14))
        allowed = exact_budget(others.size, float(share), other.delta)
        k = (i, allowed) if normal_pays else (allowed, i)
        if k[0] is None or k[1] is None:
            continue
        edge = nextafter(high[k[0]], inf)
        if edge <= low[k[1]] and edge < inf:
            tau = min(edge if normal_pays else low[k[1]], LARGEST)
            return (ceiling, share, tau) if normal_pays else (share, ceiling, tau)
    return None


@given(scores(1, 25), scores(1, 25), guarantee, st.sampled_from([0.3, 0.5, 0.9]))
def test_the_first_rung_that_is_accepted_is_certified(
    normal: Floats, anomalous: Floats, asked: Guarantee, highest: float
) -> None:
    certificate = calibrate_quietly(normal, anomalous, asked, overlap=Raise(highest))
    paid = certificate.fpr if normal.size >= anomalous.size else certificate.fnr
    assert paid.budget is not None
    expected = by_definition(normal, anomalous, asked, paid.budget.delta, highest)
    if expected is None:
        assert certificate.uncertified
        assert certificate.rule == Rule(-inf, inf)
        return
    assert not certificate.uncertified
    found = certificate.fpr.ceiling, certificate.fnr.ceiling
    assert found == pytest.approx(expected[:2], rel=1e-9)
    assert certificate.rule == Rule(expected[2], expected[2])


def test_the_larger_class_pays_and_the_normal_one_if_both_are_equal() -> None:
    larger = calibrate(NORMAL, NEAR, overlap="raise")
    mirrored = calibrate(-NEAR, -NORMAL, overlap="raise")
    assert not larger.uncertified
    assert not mirrored.uncertified
    assert larger.fpr.ceiling == mirrored.fnr.ceiling
    assert larger.fnr.ceiling == mirrored.fpr.ceiling
    # the threshold lies just above a normal score, or at an anomalous one itself
    assert nextafter(larger.rule.anomaly_from, -inf) in NORMAL
    assert mirrored.rule.anomaly_from in -NORMAL
    for certificate, payer, other in (
        (larger, larger.fpr, larger.fnr),
        (mirrored, mirrored.fnr, mirrored.fpr),
    ):
        assert payer.budget is not None
        assert other.budget is not None
        assert 0.04 < payer.budget.delta < 0.05
        assert other.budget.delta == 0.05
        assert not certificate.uncertified
        assert [promise.delta for promise in certificate.promises] == [0.05, 0.05]
    equal = calibrate(NORMAL[:170], NEAR, overlap="raise")
    assert equal.fpr.budget is not None
    assert equal.fpr.budget.delta == pytest.approx(0.0328, abs=5e-5)


def test_separated_classes_keep_what_was_asked_for() -> None:
    certificate = calibrate(NORMAL, FAR, overlap="raise")
    assert kept_by(certificate) == certificate.guarantee
    assert certificate.separable is True
    summary = certificate.overlap.summary(certificate.claim)
    assert summary == "raise: ceilings kept as requested; the choice is covered by delta"


def test_where_abstaining_would_do_without_raising_text_and_summary_say_so() -> None:
    # 32 errors are within the whole delta, 31 within that of a rung
    normal = np.concatenate([np.zeros(865 - 32), np.full(32, 2.0)])
    anomalous = np.concatenate([np.full(3, 1.0), np.full(167, 3.0)])
    certificate = calibrate(normal, np.where(anomalous == 3.0, 2.0, anomalous), overlap="raise")
    assert calibrate(normal, np.where(anomalous == 3.0, 2.0, anomalous)).regime is Regime.SEPARATED
    assert certificate.separable is True
    assert not certificate.uncertified
    assert certificate.fpr.ceiling == pytest.approx(0.0501, abs=2e-4)
    sentence = (
        "one threshold would have kept the requested ceilings, had overlap abstain been fixed before these"
    )
    assert sentence in " ".join(str(certificate).split())
    assert sentence[1:] in list(certificate.overlap.explanation(certificate.claim))[-1]
    raised = calibrate(NORMAL, NEAR, overlap="raise")
    assert raised.separable is False
    told = " ".join(str(raised).split())
    assert sentence not in told
    assert "ceilings raised as little as can be proved; the choice is covered by delta" in told


def test_no_ceiling_goes_beyond_the_highest() -> None:
    for highest in (0.051, 0.1, 0.2, 0.3, 0.9):
        certificate = calibrate(NORMAL, NEAR, overlap=Raise(highest))
        if certificate.uncertified:
            assert highest < 0.2
            assert certificate.verdicts([-inf, 0.0, inf]).tolist() == [-1, -1, -1]
            assert certificate.empty
            assert "none could be kept" in " ".join(certificate.overlap.explanation(certificate.claim))
        else:
            assert max(certificate.fpr.ceiling or 1, certificate.fnr.ceiling or 1) <= highest
    # what was asked for may be higher
    asked = Guarantee(0.6, 0.6)
    assert kept_by(calibrate(NORMAL, NEAR, asked, overlap=Raise(0.5))) == asked
    for wrong in (0.0, 1.0, -0.1, float("nan"), "much"):
        message = refusal(Raise, wrong)
        assert message.startswith("highest must lie strictly between 0 and 1, got")


def test_a_ratio_that_was_asked_for_is_kept() -> None:
    certificate = calibrate(NORMAL, NEAR, Guarantee(0.04, 0.08), overlap="raise")
    assert not certificate.uncertified
    assert certificate.fpr.ceiling is not None
    assert certificate.fnr.ceiling == pytest.approx(2 * certificate.fpr.ceiling, rel=1e-12)


def test_a_class_with_too_few_labels_gets_what_they_can_keep() -> None:
    normal, few = RNG.normal(0, 1, 1500), RNG.normal(9, 1, 30)
    certificate = calibrate(normal, few, overlap="raise")
    assert not certificate.uncertified
    assert certificate.fpr.ceiling == 0.05
    assert certificate.fnr.ceiling == ceiling_up(upper_bound(0, 30, 0.05))
    assert certificate.regime is Regime.SEPARATED
    assert certificate.separable is False
    assert Certificate.from_json(certificate.to_json()) == certificate
    # mirrored
    other = kept_by(calibrate(-few, -normal, overlap="raise"))
    assert other is not None
    assert (other.max_fpr, other.max_fnr) == (certificate.fnr.ceiling, 0.05)
    # both few: the larger class has no rung at what was asked for, and pays all the same
    both = kept_by(calibrate(normal[:40], few, overlap="raise"))
    assert both is not None
    assert both.max_fnr is not None
    assert both.max_fpr is not None
    assert 0.07 < both.max_fpr < 0.11
    assert both.max_fnr >= upper_bound(0, 30, 0.05)


@pytest.mark.parametrize(("n", "m"), [(3, 1000), (1000, 3), (4, 4), (0, 100), (100, 0), (1, 0)])
def test_too_few_labels_for_any_ceiling_abstain_everywhere(n: int, m: int) -> None:
    certificate = calibrate(np.zeros(n), np.ones(m), overlap="raise")
    assert certificate.uncertified
    assert certificate.empty
    assert certificate.verdicts([-inf, 0.5, inf]).tolist() == [-1, -1, -1]
    assert certificate.regime is Regime.VACUOUS
    text = " ".join(str(certificate).split())
    reason = "no ceilings up to the highest allowed can be kept by one threshold"
    assert text.startswith(f"Nothing is promised: {reason}. Every point is left undecided. ")
    assert Certificate.from_json(certificate.to_json()) == certificate
    (sentence,) = certificate.overlap.explanation(certificate.claim)
    assert sentence == "Strategy raise: too few labels for any ceiling up to 0.5."
    assert certificate.verify(np.zeros(n), np.ones(m))


def test_ties_are_never_split() -> None:
    # "<=" would accept, and miss every anomaly
    for n, m in ((300, 200), (200, 300)):
        same = calibrate(np.zeros(n), np.zeros(m), overlap="raise")
        assert same.uncertified
        assert same.verdicts([0.0]).tolist() == [-1]


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(("n", "m"), [(300, 200), (200, 300)])
@pytest.mark.parametrize("pair", [(-inf, inf), (0.0, inf), (-inf, -0.0), (-0.0, 5e-324), (0.0, 1.0)])
def test_infinities_and_signed_zeros(kind: Any, n: int, m: int, pair: tuple[float, float]) -> None:
    normal, anomalous = np.full(n, pair[0], kind), np.full(m, pair[1], kind)
    certificate = calibrate(normal, anomalous, overlap="raise")
    if normal[0] == anomalous[0]:  # float32 has no 5e-324
        assert certificate.uncertified
        return
    assert kept_by(certificate) == certificate.guarantee
    assert certificate.verdicts(np.array(pair, kind)).tolist() == [0, 1]
    assert str(certificate.rule.anomaly_from) != "-0.0"
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.verify(normal, anomalous)


def test_the_largest_double_and_infinity_are_one() -> None:
    for n, m in ((300, 200), (200, 300)):
        # between them is no threshold at which the largest double would not alarm as well
        top = calibrate(np.full(n, LARGEST), np.full(m, inf), overlap="raise")
        assert top.uncertified
        below = nextafter(LARGEST, 0.0)
        certificate = calibrate(np.full(n, below), np.full(m, inf), overlap="raise")
        assert kept_by(certificate) == certificate.guarantee
        assert certificate.rule == Rule(LARGEST, LARGEST)
        assert certificate.verdicts([below, LARGEST, inf]).tolist() == [0, 1, 1]


def test_what_raising_says_of_itself() -> None:
    strategy = Raise()
    assert (strategy.word, strategy.keeps, strategy.single, strategy.proved) == ("raise", (), True, True)
    assert (
        strategy.needs_more_labels
        == "A level of raise has nearly the whole delta, so a few more labels are needed."
    )
    certificate = calibrate(NORMAL, NEAR, overlap=strategy)
    count = strategy.tried(FIVE, (865, 170))
    assert 350 < count < 400
    (sentence,) = strategy.explanation(certificate.claim)
    assert sentence == (
        f"Strategy raise: {count} levels, one for each number of normal errors, were fixed beforehand; the"
        " first that one threshold keeps is certified. The normal class pays for the choice: its delta at"
        " each level is 0.04092. The other class keeps its whole delta."
    )
    (told,) = facts_told(certificate)["overlap"]
    assert told == "raise: ceilings raised as little as can be proved; the choice is covered by delta"


def test_verify_says_what_differs() -> None:
    certificate = calibrate(NORMAL, NEAR, overlap="raise")
    assert certificate.verify(NORMAL, NEAR)
    moved = NORMAL.copy()
    moved[:40] += 3.0
    assert not certificate.verify(moved, NEAR)
    assert not replace(certificate, separable=True).verify(NORMAL, NEAR)


def test_more_labels_than_rungs_can_be_gone_through_are_refused() -> None:
    message = refusal(lambda: list(Raise().ranks(asked_of(FIVE), (10**8 + 1, 10))))
    assert message == (
        'overlap="raise" takes at most 100,000,000 labels of a class, got 100,000,001; "hold_fnr" and'
        ' "hold_fpr" take any number'
    )


def test_a_hundred_thousand_labels_of_each_class_take_a_second() -> None:
    rng = np.random.default_rng(0)
    normal, anomalous = rng.normal(0, 1, 100_000), rng.normal(2.5, 1, 100_000)
    started = time.process_time()
    certificate = calibrate(normal, anomalous, overlap="raise")
    assert time.process_time() - started < 1.0
    assert not certificate.uncertified
    assert certificate.fpr.ceiling == pytest.approx(0.1075, abs=0.003)


def test_a_rung_is_claimed_only_where_its_thresholds_are_separated() -> None:
    made = calibrate_quietly(NORMAL, NEAR, overlap=Raise(0.06))
    assert made.uncertified
    assert list(inconsistencies(made)) == []
    claimed = tuple(replace(one, certified=one.asked) for one in made.clauses)
    assert "the certified ceilings do not follow from the requested ones" in inconsistencies(
        replace(made, clauses=claimed)
    )


def test_where_no_rung_is_reached_the_last_is_claimed() -> None:
    made = calibrate_quietly(NORMAL, NEAR, overlap=Raise(0.06))
    budgets = staircase(FIVE.promises, (NORMAL.size, NEAR.size), 0.06).at(0)
    first = tuple(replace(one, budget=budget) for one, budget in zip(made.clauses, budgets, strict=True))
    assert any("the budget of" in one for one in inconsistencies(replace(made, clauses=first)))
