"""No randomness: every sample of every small population, so the violation probabilities are exact."""

from fractions import Fraction

import numpy as np
import pytest

from pac_wrap import Guarantee
from statistical import formulas
from statistical.enumeration import (
    PARTS,
    POPULATIONS,
    SUPPORT,
    Answers,
    Flags,
    answers,
    compositions,
    weights,
)
from support.kept import kept as kept_by
from support.slow import slow_but

# no population meets the first ceilings exactly and some the second; the tails at 0.499 come closest to delta
JUST_MISSED = (0.499, 0.499, 0.32, 0.32)
MET = (0.5, 0.5, 0.32, 0.32)
UNEVEN = (0.249, 0.624, 0.35, 0.2)

# of one normal point nothing can be certified; of four, one error is allowed
SIZES = [(4, 2), (1, 4), (4, 3), (5, 2), (2, 5)]
QUICK = [(JUST_MISSED, 4, 2), (UNEVEN, 4, 2), (MET, 1, 4)]
EVERY = [(promise, n, m) for promise in (JUST_MISSED, MET, UNEVEN) for n, m in SIZES]
promises_and_sizes = pytest.mark.parametrize(
    ("promise", "n", "m"),
    slow_but(3, [*QUICK, *(one for one in EVERY if one not in QUICK)], several=True),
)
sizes = pytest.mark.parametrize(("n", "m"), slow_but(2, SIZES, several=True))

Promise = tuple[float, float, float, float]
# a stated confidence is a double
ROUNDING = Fraction(1, 10**12)


def assert_kept(answer: Answers, promise: Promise, alarms: Flags, misses: Flags) -> None:
    delta_fpr, delta_fnr = map(Fraction, promise[2:])
    assert answer.worst(answer.count_alarms(alarms)) <= delta_fpr
    assert answer.worst(answer.count_misses(misses)) <= delta_fnr
    either = answer.worst(answer.count_either(alarms, misses))
    assert either <= delta_fpr + delta_fnr
    assert either <= 1 - Fraction(answer.stated) + ROUNDING


def label_ruled_out(answer: Answers, label: int) -> Flags:
    sets = answer.read(lambda certificate: certificate.thresholds.prediction_sets(SUPPORT)[:, label])
    return np.asarray(~sets)


def test_the_weights_of_all_samples_add_up() -> None:
    assert POPULATIONS.shape == (165, len(SUPPORT))
    assert set(POPULATIONS.sum(axis=1)) == {PARTS}
    assert set(weights(5).sum(axis=1)) == {PARTS**5}
    assert list(compositions(2, 2)) == [(0, 2), (1, 1), (2, 0)]


@promises_and_sizes
def test_each_threshold_is_wrong_exactly_as_often_as_its_tail_says(promise: Promise, n: int, m: int) -> None:
    max_fpr, max_fnr, delta_fpr, delta_fnr = promise
    answer = answers(n, m, Guarantee(*promise))
    alarms = answer.exceeds(label_ruled_out(answer, 0), "fpr")
    misses = answer.exceeds(label_ruled_out(answer, 1), "fnr")
    fpr = formulas.fpr_broken(formulas.budget(n, max_fpr, delta_fpr), n, max_fpr)[:, None]
    fnr = formulas.fnr_broken(formulas.budget(m, max_fnr, delta_fnr), m, max_fnr)[None, :]
    assert (answer.count_alarms(alarms) == fpr * PARTS**m).all()
    assert (answer.count_misses(misses) == fnr * PARTS**n).all()
    # the classes are independent: 1 - (1 - a)(1 - b)
    kept = (PARTS**n - fpr) * (PARTS**m - fnr)
    assert (answer.count_either(alarms, misses) == answer.draws - kept).all()
    assert_kept(answer, promise, alarms, misses)


def test_delta_is_nearly_used_up() -> None:
    answer = answers(4, 4, Guarantee(*JUST_MISSED))
    tail = Fraction(5, 16)  # F(1; 4, 1/2)
    alarms = answer.exceeds(label_ruled_out(answer, 0), "fpr")
    misses = answer.exceeds(label_ruled_out(answer, 1), "fnr")
    assert answer.worst(answer.count_alarms(alarms)) == tail
    assert answer.worst(answer.count_misses(misses)) == tail
    either = answer.worst(answer.count_either(alarms, misses))
    assert either == 1 - (1 - tail) ** 2
    # the stated confidence is that of the ceiling 0.499, just beside 1/2: no slack, and none left by the sum
    assert 0 <= 1 - Fraction(answer.stated) - either < Fraction(1, 200)
    assert answer.stated > 1 - 2 * 0.32 + 0.1


@promises_and_sizes
def test_the_abstaining_rule_is_wrong_exactly_where_both_thresholds_are(
    promise: Promise, n: int, m: int
) -> None:
    max_fpr, max_fnr, delta_fpr, delta_fnr = promise
    answer = answers(n, m, Guarantee(*promise), "abstain_always")
    k_fpr, k_fnr = formulas.budget(n, max_fpr, delta_fpr), formulas.budget(m, max_fnr, delta_fnr)
    alarms, misses = answer.too_many_alarms, answer.too_many_misses
    # too many alarms: neither threshold is above the last score from which they are too many
    last = formulas.highest(formulas.too_low(max_fpr))
    not_beyond = PARTS**m - formulas.clear_beyond(k_fnr, m)[:, last].T
    expected = formulas.fpr_broken(k_fpr, n, max_fpr)[:, None] * not_beyond
    assert (answer.count_alarms(alarms) == expected).all()
    # too many misses: both thresholds are above the first score up to which they are too many
    first = formulas.lowest(formulas.too_high(max_fnr))
    beyond = PARTS**n - formulas.alarms_at(k_fpr, n)[:, first]
    expected = beyond * formulas.fnr_broken(k_fnr, m, max_fnr)[None, :]
    assert (answer.count_misses(misses) == expected).all()
    assert_kept(answer, promise, alarms, misses)
    # one threshold between the two, where one can keep both: wrong more often, and still within delta
    single = answers(n, m, Guarantee(*promise))
    alarms, misses = single.too_many_alarms, single.too_many_misses
    assert (single.count_alarms(alarms) >= answer.count_alarms(answer.too_many_alarms)).all()
    assert_kept(single, promise, alarms, misses)


@sizes
@pytest.mark.parametrize("ceiling", [0.499, 0.5])
def test_a_promise_on_one_side_needs_nothing_of_the_other(ceiling: float, n: int, m: int) -> None:
    fpr_only = answers(n, m, Guarantee(ceiling, None, delta_fpr=0.32))
    expected = formulas.fpr_broken(formulas.budget(n, ceiling, 0.32), n, ceiling)[:, None] * PARTS**m
    assert (fpr_only.count_alarms(fpr_only.too_many_alarms) == expected).all()
    assert not fpr_only.too_many_misses.any()
    fnr_only = answers(n, m, Guarantee(None, ceiling, delta_fnr=0.32))
    expected = formulas.fnr_broken(formulas.budget(m, ceiling, 0.32), m, ceiling)[None, :] * PARTS**n
    assert (fnr_only.count_misses(fnr_only.too_many_misses) == expected).all()
    assert not fnr_only.too_many_alarms.any()


@promises_and_sizes
def test_hold_fnr_is_wrong_exactly_as_often_as_predicted(promise: Promise, n: int, m: int) -> None:
    _, max_fnr, delta_fpr, delta_fnr = promise
    answer = answers(n, m, Guarantee(*promise), overlap="hold_fnr")
    alarms, misses = answer.too_many_alarms, answer.too_many_misses
    k = formulas.budget(m, max_fnr, delta_fnr)
    held = formulas.fnr_broken(k, m, max_fnr)[None, :] * PARTS**n
    assert (answer.count_misses(misses) == held).all()
    # tau looks at anomalies only, so given tau the normal scores that reach it are binomial
    beyond = formulas.clear_beyond(k, m)
    tau = -np.diff(beyond, axis=1, prepend=PARTS**m)
    bound = formulas.bound_broken(n, delta_fpr)[formulas.REACHING]
    assert (answer.count_alarms(alarms) == bound @ tau.T).all()
    # tau keeps the FNR up to the first score at which clearing all would break it
    keeps = np.array(SUPPORT) <= np.array(SUPPORT)[formulas.lowest(formulas.too_high(max_fnr))][:, None]
    assert (answer.count_either(alarms, misses) == bound @ (tau * keeps).T + held).all()
    assert_kept(answer, promise, alarms, misses)


@promises_and_sizes
def test_hold_fpr_is_wrong_exactly_as_often_as_predicted(promise: Promise, n: int, m: int) -> None:
    max_fpr, _, delta_fpr, delta_fnr = promise
    answer = answers(n, m, Guarantee(*promise), overlap="hold_fpr")
    alarms, misses = answer.too_many_alarms, answer.too_many_misses
    k = formulas.budget(n, max_fpr, delta_fpr)
    held = formulas.fpr_broken(k, n, max_fpr)[:, None] * PARTS**m
    assert (answer.count_alarms(alarms) == held).all()
    # tau lies just above a normal score, so it clears all anomalies up to that score
    just_below_tau = np.diff(formulas.alarms_at(k, n), axis=1, append=PARTS**n)
    bound = formulas.bound_broken(m, delta_fnr)[formulas.UP_TO]
    assert (answer.count_misses(misses) == just_below_tau @ bound.T).all()
    keeps = np.array(SUPPORT) >= np.array(SUPPORT)[formulas.highest(formulas.too_low(max_fpr))][:, None]
    assert (answer.count_either(alarms, misses) == (just_below_tau * keeps) @ bound.T + held).all()
    assert_kept(answer, promise, alarms, misses)


@promises_and_sizes
@pytest.mark.parametrize("rate", ["fnr", "fpr"])
def test_holding_only_if_needed_keeps_both_deltas(promise: Promise, n: int, m: int, rate: str) -> None:
    answer = answers(n, m, Guarantee(*promise), overlap=f"hold_{rate}_if_needed")
    alarms, misses = answer.too_many_alarms, answer.too_many_misses
    delta_fpr, delta_fnr = map(Fraction, promise[2:])
    assert_kept(answer, promise, alarms, misses)
    # given the class that is held, the other side keeps its delta: jointly by independence
    either = answer.worst(answer.count_either(alarms, misses))
    assert either <= 1 - (1 - delta_fpr) * (1 - delta_fnr)


def test_holding_only_if_needed_both_keeps_and_gives_up() -> None:
    answer = answers(4, 3, Guarantee(*JUST_MISSED), overlap="hold_fnr_if_needed")
    both = answer.read(lambda certificate: kept_by(certificate) == certificate.guarantee)
    assert 0.05 < both.mean() < 0.95
    # and where it gives one up, the bound is that of `hold_fnr`
    held = answers(4, 3, Guarantee(*JUST_MISSED), overlap="hold_fnr")
    ceilings = [one.read(lambda certificate: certificate.fpr.ceiling or 1.0) for one in (answer, held)]
    assert (ceilings[0] == ceilings[1])[~both].all()
    assert (ceilings[0] >= ceilings[1]).all()


@sizes
@pytest.mark.parametrize("overlap", ["abstain", "hold_fnr", "hold_fpr"])
@pytest.mark.parametrize("confidence", slow_but(1, [0.5, 0.62]))
def test_a_confidence_that_is_shared_by_the_counts_is_kept(
    confidence: float, overlap: str, n: int, m: int
) -> None:
    answer = answers(n, m, Guarantee(0.499, 0.624, confidence=confidence), overlap)
    # no sample decides the deltas
    assert len(answer.deltas("fpr")) == len(answer.deltas("fnr")) == 1
    alarms, misses = answer.too_many_alarms, answer.too_many_misses
    either = answer.worst(answer.count_either(alarms, misses))
    assert either <= 1 - Fraction(confidence)
    assert either <= 1 - Fraction(answer.stated) + ROUNDING


def test_sharing_by_the_counts_uses_what_equal_deltas_leave() -> None:
    """Three normal points certify nothing at half of the delta; five anomalous ones leave them more."""
    shared = answers(3, 5, Guarantee(0.499, 0.499, confidence=0.82))
    equal = answers(3, 5, Guarantee(0.499, 0.499, 0.09, 0.09))
    assert list(equal.grid[0][0].confidences) == ["FNR"]
    assert list(shared.grid[0][0].confidences) == ["FPR", "FNR"]
    either = shared.worst(shared.count_either(shared.too_many_alarms, shared.too_many_misses))
    assert Fraction(3, 25) < either <= 1 - Fraction(82, 100)
