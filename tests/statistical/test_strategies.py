"""One threshold where abstaining is not allowed: what each strategy certifies, over fresh samples.

Where the probability of a violation is known it is tested two-sided, else against its bound; the false-alarm
rate is 1e-6 and the power 0.999 throughout.
"""

from math import inf
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, binom

from pac_wrap import Algorithm1, Certificate, Guarantee
from pac_wrap.tails.levels import fixed_level
from statistical.claims import assert_at_most, assert_power, assert_rate
from statistical.populations import Values, normal_scores
from statistical.trials import Classes, budget, repeat, tail
from support.kept import kept
from support.ladder import fixed_failures
from support.slow import slow_but
from support.strategies import calibrate_quietly

Growth = Literal["linear", "double"]
Ceilings = Literal["both", "fpr", "fnr"]

TENTH = Guarantee(0.1, 0.1, 0.1, 0.1)
SEPARATED = (normal_scores(0), normal_scores(12))
OVERLAPPING = (normal_scores(0), normal_scores(1.5))


def certified(certificate: Certificate) -> tuple[float | None, ...]:
    """Return tau and the promise; where nothing is certified or promised it cannot be broken."""
    promise = kept(certificate)
    if promise is None:
        return inf, 1.0, 1.0, None, None, None
    assert certificate.rule.single
    level = None
    if isinstance(certificate.overlap, Algorithm1):
        level, _ = certificate.overlap._reached(certificate.claim)
    return (
        certificate.rule.anomaly_from,
        promise.max_fpr or 1.0,
        promise.max_fnr or 1.0,
        promise.delta_fpr,
        promise.delta_fnr,
        level,
    )


def broken(classes: Classes, tau: Values, max_fpr: Values, max_fnr: Values) -> tuple[NDArray[np.bool_], ...]:
    """Return in which trials the true FPR and the true FNR of tau exceed what was certified."""
    return classes[0].reaching(tau) > max_fpr, classes[1].below(tau) > max_fnr


def bound_violation(rate: Values, n: int, delta: float) -> Values:
    """Return the probability that the Clopper-Pearson bound of a rate lies below it.

    It does if F(errors; n, rate) < delta, so it is the largest such tail.
    """
    tails = binom.cdf(np.arange(n)[:, None], n, rate)
    return np.asarray(np.where(tails < delta, tails, 0.0).max(axis=0))


@pytest.mark.parametrize("held", ["fnr", "fpr"])
def test_holding_one_side_is_exact_on_both(held: str) -> None:
    trials, n_held, n_other, points = 2_300, 52, 60, 4_000
    k = budget(n_held, 0.1, 0.1)
    assert k is not None
    # tau is an order statistic of the held class: the mass beyond it has a beta law, here its quantiles
    beyond = beta(k + 1, n_held - k).ppf((np.arange(points) + 0.5) / points)
    normal, anomalous = OVERLAPPING
    if held == "fnr":
        sizes, other_rate = (n_other, n_held), normal.reaching(anomalous.smooth.ppf(beyond))
        tau, *promise, _, _, _ = repeat(
            OVERLAPPING, sizes, TENTH, trials, certified, seed=5, overlap="hold_fnr"
        )
        other_broken, held_broken = broken(OVERLAPPING, tau, *promise)
    else:
        sizes, other_rate = (n_held, n_other), anomalous.below(normal.smooth.isf(beyond))
        tau, *promise, _, _, _ = repeat(
            OVERLAPPING, sizes, TENTH, trials, certified, seed=5, overlap="hold_fpr"
        )
        held_broken, other_broken = broken(OVERLAPPING, tau, *promise)

    held_violation = tail(k, n_held, 0.1)
    assert_power(trials, held_violation, tail(k + 1, n_held, 0.1))
    assert_power(trials, held_violation, tail(k - 1, n_held, 0.1))
    assert_rate(int(held_broken.sum()), trials, held_violation)

    given_tau = bound_violation(other_rate, n_other, 0.1)
    assert given_tau.max() <= 0.1
    other_violation = float(given_tau.mean())
    assert_power(trials, other_violation, float(bound_violation(other_rate, n_other, 0.05).mean()))
    assert_power(trials, other_violation, float(bound_violation(other_rate, n_other, 0.2).mean()))
    assert_rate(int(other_broken.sum()), trials, other_violation)

    either = float(np.where(beyond > 0.1, 1.0, given_tau).mean())
    assert either <= sum(one.delta for one in TENTH.promises)
    assert_power(trials, either, max(held_violation, other_violation))
    assert_rate(int((held_broken | other_broken).sum()), trials, either)


@pytest.mark.parametrize(
    ("position", "loose"), slow_but(1, [(0.0, "fpr"), (1.0, "fnr"), (0.5, "neither")], several=True)
)
def test_relaxing_what_is_separated_uses_exactly_its_part_of_delta(position: float, loose: str) -> None:
    trials, n = 2_200, 100
    ceilings = tuple(level.max_fpr or 0.0 for level in Algorithm1(step=0.4).levels(TENTH))
    tau, max_fpr, max_fnr, _, _, level = repeat(
        SEPARATED, (n, n), TENTH, trials, certified, seed=6, overlap=Algorithm1(step=0.4, position=position)
    )
    assert ceilings == (0.1, 0.5, 0.9)
    assert not level.any()
    k = budget(n, 0.1, fixed_level(n, ceilings, 0.1))
    assert k is not None
    part = tail(k, n, 0.1)
    assert_power(trials, part, tail(k + 1, n, 0.1))
    assert_power(trials, part, tail(k - 1, n, 0.1))
    # tau sits on the threshold of one side, and far beyond that of the other
    for side, found in zip(("fpr", "fnr"), broken(SEPARATED, tau, max_fpr, max_fnr), strict=True):
        assert_rate(int(found.sum()), trials, part if side == loose else 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["fpr", "fnr"])
def test_the_worst_case_of_fixed_levels_is_attained(side: str) -> None:
    """The other class has a single score: the failure is that of a constant c, and no caution is left."""
    n, trials, strategy = 865, 2_000, Algorithm1(step=0.05, position=0.0 if side == "fpr" else 1.0)
    ceilings = np.array([level.max_fpr for level in strategy.levels(Guarantee())])
    level = fixed_level(n, tuple(ceilings), 0.05)
    exact = fixed_failures(n, ceilings, level, ceilings)
    c, expected = float(ceilings[exact.argmax()]), float(exact.max())
    assert expected == pytest.approx(0.0448, abs=1e-4)
    random, broken = np.random.default_rng(0), 0
    for _ in range(trials):
        scores = random.random(n)
        classes = (scores, np.full(500, 1.0 - c)) if side == "fpr" else (np.full(500, c), scores)
        found = calibrate_quietly(*classes, overlap=strategy)
        if not found.uncertified:
            tau = found.rule.anomaly_from
            broken += (1.0 - tau if side == "fpr" else tau) > getattr(kept(found), f"max_{side}")
    assert_rate(broken, trials, expected)
    assert_power(trials, expected, 2 * expected)


# the side that is raised comes closest to its ceiling where tau sits on its threshold
@pytest.mark.parametrize(
    ("growth", "ceilings", "position", "relax_delta"),
    slow_but(
        3,
        [
            ("linear", "both", 0.5, True),
            ("double", "fpr", 0.0, False),
            ("linear", "fnr", 1.0, False),
            ("double", "both", 0.5, False),
            ("linear", "fpr", 0.0, True),
            ("double", "fnr", 1.0, True),
        ],
        several=True,
    ),
)
def test_relaxing_keeps_the_promise(
    growth: Growth, ceilings: Ceilings, position: float, relax_delta: bool
) -> None:
    trials = 1_200
    guarantee = Guarantee(0.3, 0.3, 0.1, 0.1) if relax_delta else TENTH
    strategy = Algorithm1(growth=growth, raised=ceilings, relax_delta=relax_delta, position=position)
    levels = strategy.levels(guarantee, (60, 60))
    tau, max_fpr, max_fnr, delta_fpr, delta_fnr, level = repeat(
        OVERLAPPING,
        (60, 60),
        guarantee,
        trials,
        certified,
        seed=7,
        overlap=strategy,
    )
    assert np.unique(level[~np.isnan(level)]).size > 1
    false_positives, false_negatives = broken(OVERLAPPING, tau, max_fpr, max_fnr)
    joint = 0.0
    for side, deltas, found in (
        ("fpr", delta_fpr, false_positives),
        ("fnr", delta_fnr, false_negatives),
    ):
        raised = relax_delta and ceilings in ("both", side)
        survives = getattr(levels[-1], f"delta_{side}") / len(levels) if raised else 0.1
        assert set(deltas[~np.isnan(deltas)]) == {survives}
        assert_power(trials, survives, 2 * survives, at_most=True)
        assert_at_most(int(found.sum()), trials, survives)
        joint += survives
    assert_power(trials, joint, 1.5 * joint, at_most=True)
    assert_at_most(int((false_positives | false_negatives).sum()), trials, joint)


@pytest.mark.parametrize("position", slow_but(1, [0.0, 0.5, 1.0]))
def test_relaxing_without_a_correction_stays_within_the_union_of_its_levels(position: float) -> None:
    trials, n = 1_000, 60
    tau, max_fpr, max_fnr, *_ = repeat(
        OVERLAPPING,
        (n, n),
        TENTH,
        trials,
        certified,
        seed=8,
        overlap=Algorithm1(correction=None, position=position),
    )
    ceilings = [level.max_fpr or 0.0 for level in Algorithm1(correction=None).levels(TENTH)]
    union = sum(tail(budget(n, ceiling, 0.1), n, ceiling) for ceiling in ceilings)
    assert 0.1 < union < 1.0
    for found in broken(OVERLAPPING, tau, max_fpr, max_fnr):
        assert_at_most(int(found.sum()), trials, union)
