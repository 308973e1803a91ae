"""What alarms are worth: every bound on every sample of tiny populations, worst cases, and real data."""

import os
from dataclasses import replace
from math import comb, inf
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from pac_wrap import Abstain, Algorithm1, Certificate, Guarantee, InputError, calibrate
from pac_wrap.method.certificate import Overlap
from pac_wrap.method.promise import of_units
from pac_wrap.method.rule import Counted
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.tails.bounds import lower_bound, upper_bound
from statistical.enumeration import PARTS, POPULATIONS, SUPPORT, Answers, answers, weights
from support.kept import kept as kept_by

RNG = np.random.default_rng(0)
NORMAL, NEAR, FAR = RNG.normal(0, 1, 2000), RNG.normal(2, 1, 500), RNG.normal(8, 1, 500)
PREVALENCES = (0.01, 0.1, 0.5)


def masses(found: Answers, verdict: int) -> Any:
    """Return the parts of each population that get a verdict, per pair of samples."""
    region = found.read(lambda one: one.verdicts(SUPPORT) == verdict).astype(np.int64)
    return np.einsum("ijs,ps->pij", region, POPULATIONS)


def chance(found: Answers, broken: Any) -> float:
    """Return the largest chance over populations of a mask over (normal, anomalous, i, j)."""
    total = np.einsum("pi,qj,pqij->pq", weights(found.n), weights(found.m), broken, optimize=True)
    return float(total.max() / found.draws)


CASES: list[tuple[Guarantee, str | Overlap]] = [
    (Guarantee(0.374, 0.374, 0.2, 0.2), "abstain"),
    (Guarantee(0.374, 0.249, 0.3, 0.4), "abstain"),
    (Guarantee(0.374, 0.374, 0.2, 0.2), Abstain(always=True)),
    (Guarantee(0.249, 0.374, 0.3, 0.3), "hold_fnr"),
    (Guarantee(0.249, 0.249, 0.3, 0.3), "raise"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "overlap"), CASES)
def test_no_precision_is_overstated_more_often_than_said(asked: Guarantee, overlap: str | Overlap) -> None:
    """On every sample of four and four scores from every pair of small populations."""
    found = answers(4, 4, asked, overlap)
    alarms = masses(found, 1)
    worst = 0.0
    for p in PREVALENCES:
        bound = np.zeros((len(found.grid), len(found.grid[0])))
        confidence = 1.0
        for i, row in enumerate(found.grid):
            for j, one in enumerate(row):
                try:
                    told = one.precision(p)
                except InputError:
                    continue
                bound[i, j], confidence = told.low, min(confidence, told.confidence)
        right, wrong = p * alarms[None, :], (1 - p) * alarms[:, None]
        broken = right < (bound - 1e-12) * (right + wrong)
        worst = max(worst, chance(found, broken))
        assert chance(found, broken) <= 1 - confidence + 1e-12
    # something is promised, and it can fail
    assert worst > 0


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "overlap"), CASES[:3])
def test_no_workload_is_understated_more_often_than_said(asked: Guarantee, overlap: str | Overlap) -> None:
    found = answers(4, 4, asked, overlap)
    shares = {name: masses(found, verdict) for name, verdict in (("alarms", 1), ("missed", 0))}
    undecided = PARTS - shares["alarms"] - shares["missed"]
    p, shape = 0.25, (len(found.grid), len(found.grid[0]))
    low, high = {}, {}
    for name in ("alarms", "right", "false_alarms", "missed", "undecided"):
        low[name], high[name] = np.zeros(shape), np.full(shape, float(PARTS))
    confidence = 1.0
    for i, row in enumerate(found.grid):
        for j, one in enumerate(row):
            try:
                told = one.workload(p, PARTS)
            except InputError:
                continue
            confidence = min(confidence, told.confidence)
            for name in low:
                low[name][i, j], high[name][i, j] = getattr(told, name).low, getattr(told, name).high
    alarms, missed = shares["alarms"], shares["missed"]
    true = {
        "alarms": (1 - p) * alarms[:, None] + p * alarms[None, :],
        "right": p * alarms[None, :],
        "false_alarms": (1 - p) * alarms[:, None],
        "missed": p * missed[None, :],
        "undecided": (1 - p) * undecided[:, None] + p * undecided[None, :],
    }
    broken = np.zeros((165, 165, *shape), dtype=bool)
    for name, rate in true.items():
        broken |= (rate < low[name] - 1e-12) | (rate > high[name] + 1e-12)
    assert 0 < chance(found, broken) <= 1 - confidence + 1e-12


POINTS, SMALL = 4, 0.2


def failing(one: Certificate, name: str, p: float) -> tuple[Any, float]:
    """Return how likely four unlabelled points give a wrong bound, per pair of populations."""
    verdicts = one.verdicts(SUPPORT)
    alarm, clear = (POPULATIONS @ (verdicts == verdict) / PARTS for verdict in (1, 0))
    rate, clears = ((1 - p) * share[:, None] + p * share[None, :] for share in (alarm, clear))
    true = np.divide(p * alarm[None, :], rate, out=np.ones_like(rate), where=rate > 0)
    fails, confidence = np.zeros_like(rate), 1.0
    for a in range(POINTS + 1):
        for b in range(POINTS + 1 - a):
            try:
                bound = getattr(one, f"{name}_from_counts")(Counted(a, b, POINTS), SMALL)
            except InputError:
                return fails, 1.0
            confidence = bound.confidence
            value = true if name == "precision" else p
            wrong = (value < bound.low - 1e-12) | (value > bound.high + 1e-12)
            ways = comb(POINTS, a) * comb(POINTS - a, b)
            others = np.maximum(0.0, 1 - rate - clears) ** (POINTS - a - b)
            fails += ways * rate**a * clears**b * others * wrong
    return fails, confidence


@pytest.mark.parametrize("name", ["precision", "prevalence"])
@pytest.mark.parametrize("asked", [Guarantee(0.374, None, 0.3), Guarantee(0.249, 0.374, 0.4, 0.4)])
def test_what_is_found_without_labels_is_wrong_no_more_often_than_said(asked: Guarantee, name: str) -> None:
    """Over calibrations, and over unlabelled samples from every mixture of small populations."""
    found = answers(4, 3, asked)
    shape = len(found.grid), len(found.grid[0])
    # what is found depends on the verdicts only, which few samples tell apart
    alike: dict[Any, tuple[Certificate, Any]] = {}
    for i, row in enumerate(found.grid):
        for j, one in enumerate(row):
            key = (*one.verdicts(SUPPORT), one.rule.single)
            alike.setdefault(key, (one, np.zeros(shape)))[1][i, j] = 1.0
    drawn = [(one, weights(4) @ where @ weights(3).T / found.draws) for one, where in alike.values()]
    worst = 0.0
    for p in (0.05, 0.25, 0.75):
        failed, sure = zip(*(failing(one, name, p) for one, _ in drawn), strict=True)
        weighed = [fails * likely for fails, (_, likely) in zip(failed, drawn, strict=True)]
        highest = float(np.sum(weighed, axis=0).max())
        worst = max(worst, highest)
        assert highest <= 1 - min(sure) + 1e-9
    assert worst > 0


def test_the_bounds_follow_from_the_counts() -> None:
    one = calibrate(NORMAL, NEAR, Guarantee(0.05, 0.1, 0.05, 0.02))
    assert not one.rule.single
    caught = lower_bound(int(np.sum(float(one.thresholds.alarm_from or 0) <= NEAR)), 500, 0.02)
    told = one.precision(0.1)
    assert told.low == pytest.approx(0.1 * caught / (0.1 * caught + 0.9 * 0.05))
    # eq. (121): the FPR by its exact tail, and one delta for the share that is caught in either case
    exact = one.confidences["FPR"]
    assert told.confidence == pytest.approx(exact * (1 - 0.02))
    assert one.precision((0.1, 0.5)) == told
    assert one.precision(0.1, delta=0.01).confidence == told.confidence
    assert one.precision(0.1, delta=0.3).confidence == pytest.approx(exact * (1 - 0.02 - 0.3))
    work = one.workload(0.1, 1000)
    undecided = upper_bound(int(np.sum(float(one.thresholds.clear_below or 0) <= NORMAL)), 2000, 0.05)
    assert work.undecided.high == pytest.approx(1000 * (0.9 * undecided + 0.1 * (1 - caught)))
    assert work.missed.high == pytest.approx(1000 * 0.1 * 0.1)
    assert (work.right.low, work.right.high) == pytest.approx((100 * caught, 100))
    assert (work.alarms.low, work.alarms.high) == pytest.approx((100 * caught, 145))
    assert (work.false_alarms.low, work.false_alarms.high) == pytest.approx((0, 45))
    assert one.workload((0.1, 0.2), 1000).false_alarms.high == pytest.approx(45)
    # with the anomalies that are missed, and the undecided normal points, all of it is added
    assert work.confidence == pytest.approx(1 - 0.05 - 0.02 - 0.02 - 0.05)


def test_where_one_threshold_decides_the_fnr_says_how_many_are_caught() -> None:
    one = calibrate(NORMAL, FAR)
    assert one.rule.single
    assert one.precision(0.5).low == pytest.approx(0.95 / (0.95 + 0.05))
    # the case was chosen by looking, and the same delta pays for both
    assert one.precision(0.5).confidence == pytest.approx(one.confidences["FPR"] * 0.95)
    # points of one unit are of both classes: then nothing multiplies
    dependent = replace(one, assumptions=of_units(True, False))
    assert dependent.precision(0.5).confidence == pytest.approx(0.9)
    assert dependent.precision(0.5, delta=0.1).confidence == pytest.approx(0.8)
    assert one.workload(0.5).undecided.high == 0.0
    raised = calibrate(NORMAL, NEAR, overlap="raise")
    kept = kept_by(raised)
    assert kept is not None
    assert kept.max_fpr is not None
    assert kept.max_fnr is not None
    assert raised.precision(0.2).low == pytest.approx(
        0.2 * (1 - kept.max_fnr) / (0.2 * (1 - kept.max_fnr) + 0.8 * kept.max_fpr)
    )
    assert raised.precision(0.2).confidence == pytest.approx(0.9)


def test_with_two_thresholds_though_one_would_do_alarms_begin_at_clear_below() -> None:
    one = calibrate(NORMAL, FAR, overlap=Abstain(always=True))
    assert one.rule.anomaly_from == one.thresholds.clear_below
    assert one.precision(0.5).low == pytest.approx(0.95)
    assert one.workload(0.5).undecided.high == pytest.approx(1000 * 0.05)


def test_too_few_anomalies_are_still_counted() -> None:
    one = calibrate(NORMAL, FAR[:20])
    told = one.precision(0.5)
    assert told.low == pytest.approx(
        0.5 * lower_bound(20, 20, 0.05) / (0.5 * lower_bound(20, 20, 0.05) + 0.025)
    )
    # they cannot make the other case, which takes no delta then
    assert told.confidence == pytest.approx(one.confidences["FPR"] * 0.95)
    assert one.precision(0.5, delta=0.1).confidence == pytest.approx(one.confidences["FPR"] * 0.9)
    assert one.workload(0.5).missed.high == 0.0
    assert calibrate(NORMAL, []).precision(0.5).low == 0.0


@pytest.mark.parametrize(
    ("certificate", "sentence"),
    [
        (calibrate(NORMAL, FAR, Guarantee(None, 0.05)), "ask for a ceiling of the FPR"),
        (calibrate(NORMAL[:10], FAR), "label more normal points"),
        (calibrate(NORMAL, FAR, Guarantee(0.05, None)), "or count new points without labels"),
        (calibrate(NORMAL, NEAR, overlap=Looks()), "looked at as they came"),
        (calibrate(NORMAL, NORMAL[:500], overlap="raise"), "no threshold is certified"),
        (calibrate(NORMAL, NEAR, overlap=Algorithm1(correction=None)), "not guaranteed"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_said_is_refused_in_one_sentence(certificate: Certificate, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        certificate.precision(0.1)


def test_where_nothing_is_counted_only_one_case_can_fail() -> None:
    """Labels looked at as they came, and weights up to intervals, say nothing where classes overlap."""
    looked = calibrate(NORMAL, FAR, overlap=Looks())
    assert looked.rule.single
    assert looked.precision(0.5).confidence == looked.confidence
    pair = np.full(2000, 0.9), np.ones(2000)
    drawn = calibrate(NORMAL, FAR, normal_weights=pair, weight_bound=1.0, seed=0)
    assert drawn.precision(0.5).confidence == drawn.confidence


def test_the_ceiling_of_the_fpr_alone_says_how_many_alarms_are_false() -> None:
    one = calibrate(NORMAL, [], Guarantee(max_fpr=0.02, max_fnr=None))
    work = one.workload(0.01, 1000)
    assert (work.false_alarms.low, work.false_alarms.high) == pytest.approx((0.0, 19.8))
    assert (work.alarms.low, work.alarms.high) == pytest.approx((0.0, 29.8))
    assert (work.right.low, work.right.high) == pytest.approx((0.0, 10.0))
    assert (work.missed.low, work.missed.high) == pytest.approx((0.0, 10.0))
    assert work.undecided.high == 0.0
    assert work.confidence == pytest.approx(0.95)
    assert "false      at most 19.8\n" in str(work)


def test_what_unlabelled_points_show_is_about_alarms_to_come() -> None:
    """Half are anomalies, all caught, the FPR is at its ceiling: of the counted alarms too many are false.

    Exactly, over 50 points: more often than the confidence that is said for future alarms allows.
    """
    one = calibrate(range(1000), [], Guarantee(max_fpr=0.02, max_fnr=None))
    points, wrong = 50, 0.0
    bounds = [one.precision_from_counts(Counted(alarms, 0, points), 0.05) for alarms in range(points + 1)]
    assert bounds[0].confidence == pytest.approx(0.9)
    for anomalies in range(points + 1):
        false = np.arange(points - anomalies + 1)
        least = np.array([bounds[anomalies + one].low for one in false.tolist()])
        chances = binom.pmf(false, points - anomalies, 0.02)
        wrong += binom.pmf(anomalies, points, 0.5) * chances[anomalies < least * (anomalies + false)].sum()
    assert wrong == pytest.approx(0.3747, abs=1e-4)
    # future alarms, of which half of 1.02 are right, hold it
    share = 0.5 / 0.51
    failing = [binom.pmf(alarms, points, 0.51) for alarms in range(points + 1) if bounds[alarms].low > share]
    assert 0.0 < sum(failing) <= 0.05


@pytest.mark.parametrize("wrong", [0, 1, -0.1, inf, float("nan"), (0.3, 0.2), (0.1, 0.2, 0.3), "a", None, ()])
def test_a_prevalence_that_is_none_is_refused(wrong: Any) -> None:
    one = calibrate(NORMAL, FAR)
    for ask in (one.precision, one.workload):
        with pytest.raises(InputError, match="prevalence must be a share"):
            ask(wrong)


def test_unlabelled_scores_are_counted_with_those_that_are_missing() -> None:
    one = calibrate(NORMAL, NEAR)
    scores = np.concatenate([NORMAL, NEAR, [np.nan] * 7])
    verdicts = one.verdicts(scores[:-7])
    counted = Counted(int((verdicts == 1).sum()), int((verdicts == 0).sum()), 2507, 7)
    assert Counted.of(np.append(verdicts, [-1] * 7).astype(np.int8), 7) == counted
    assert one.precision_from_unlabelled(scores) == one.precision_from_counts(counted, 0.05)
    assert one.prevalence_of(scores, delta=0.01) == one.prevalence_from_counts(counted, 0.01)
    with pytest.raises(InputError, match="numbers"):
        one.precision_from_unlabelled(["a"])
    assert one.precision_from_unlabelled([]).low == 0.0


def test_counts_add_up_and_say_what_is_undecided() -> None:
    one, other = Counted(10, 20, 40, 3, 2), Counted(1, 2, 5, 1, 1)
    assert one + other == Counted(11, 22, 45, 4, 3)
    assert (
        str(one) == "40 rows: 20 normal, 10 alarms, 10 undecided (3 without a score, 2 in groups never seen)"
    )
    assert str(Counted(1, 0, 1)) == "1 row: 0 normal, 1 alarm, 0 undecided"


def test_no_more_are_missed_than_are_not_caught() -> None:
    """With so large a delta that the share that is caught leaves less than the ceiling of the FNR."""
    rng = np.random.default_rng(4)
    one = calibrate(NORMAL, rng.normal(3.4, 1, 500), Guarantee(0.05, 0.1))
    late = calibrate(NORMAL, np.append(np.full(469, 9.0), np.full(31, 0.0)), Guarantee(0.05, 0.07))
    assert not late.rule.single
    assert late.fnr.beyond == 31
    caught = lower_bound(469, 500, 0.9)
    assert 1 - caught < 0.07
    assert late.workload(0.5, 1000, delta=0.9).missed.high == pytest.approx(500 * (1 - caught))
    assert late.workload(0.5, 1000).missed.high == pytest.approx(500 * 0.07)
    assert one.workload((0.012345, 0.02)).prevalence == (0.012345, 0.02)
    assert "at a prevalence of 0.01234 to 0.02, on average" in str(one.workload((0.012345, 0.02)))
    assert str(calibrate(range(1000), range(900, 1900)).workload(0.01)).splitlines() == [
        "per 1,000 points at a prevalence of 0.01, on average and with confidence 0.8:",
        "alarms     9.23 to 59.5",
        "right      9.23 to 10",
        "false      at most 49.5",
        "missed     at most 0.5",
        "undecided  at most 76.1",
    ]


def test_alarms_that_may_all_be_false_have_no_worth() -> None:
    one = calibrate(NORMAL, FAR)
    assert one.precision_from_unlabelled(NORMAL).low == 0.0
    assert one.precision_from_unlabelled(np.full(1000, 9.0)).low > 0.99
    told = one.prevalence_of(np.full(1000, 9.0))
    assert told.low > 0.99
    assert told.high == 1.0
    assert str(told).startswith("at least 0.99")
    # and where most are declared normal, there are few anomalies: eq. (51)
    most = one.prevalence_from_counts(Counted(100, 900, 1000), 0.05)
    assert most.high == pytest.approx((1 - lower_bound(900, 1000, 0.05)) / 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["thyroid", "celeba"])
def test_on_real_data_the_bounds_hold_and_are_not_idle(name: str) -> None:
    """Labels are known: one part calibrates, another is the future. One run, which is always the same."""
    from pac_wrap_paper.data import load

    if not os.environ.get("PAC_WRAP_DATA"):
        pytest.skip("PAC_WRAP_DATA is not set")
    from sklearn.ensemble import HistGradientBoostingClassifier

    data = load(name)
    rng = np.random.default_rng(3)
    part = rng.choice(3, data.y.size) if data.y.size < 20_000 else rng.choice(40, data.y.size)
    model = HistGradientBoostingClassifier(max_iter=40).fit(data.X[part == 0], data.y[part == 0])
    scores = model.decision_function(data.X[(part == 1) | (part == 2)])
    labels, where = data.y[(part == 1) | (part == 2)], part[(part == 1) | (part == 2)]
    known, new = where == 1, where == 2
    one = calibrate(
        scores[known & (labels == 0)], scores[known & (labels == 1)], Guarantee(0.02, 0.2), overlap="raise"
    )
    verdicts, truth = one.verdicts(scores[new]), labels[new]
    share = float(truth.mean())
    precision = float(truth[verdicts == 1].mean())
    assert one.precision(share).low <= precision
    assert one.precision_from_unlabelled(scores[new]).low <= precision
    found = one.prevalence_of(scores[new])
    assert found.low <= share <= found.high
    assert one.precision(share).low > 0.2 * precision
