"""The promise of two thresholds, over fresh calibration samples; true rates are computed, never estimated.

Every rate is tested two-sided at a false-alarm rate of 1e-6, and every test proves that a budget off by one
(by 0.1 % of the points where there are thousands) would be caught with probability 0.999.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from pac_wrap import Certificate, Guarantee, Regime
from statistical.claims import assert_power, assert_rate
from statistical.populations import (
    Edge,
    Population,
    heavy_scores,
    normal_scores,
    rounded_scores,
    uniform_scores,
)
from statistical.trials import Classes, Sizes, budget, repeat, tail
from support.slow import slow_but

TENTH = Guarantee(0.1, 0.1, 0.1, 0.1)
TWENTIETH = Guarantee(0.05, 0.05, 0.05, 0.05)
UNEVEN = Guarantee(0.02, 0.2, 0.1, 0.05)

# the last number is how many trials that power takes, in whole hundreds
CASES: dict[str, tuple[Classes, Sizes, Guarantee, int]] = {
    "uniform": ((uniform_scores(0, 1), uniform_scores(0.5, 1.5)), (93, 93), TWENTIETH, 2_000),
    "separated": ((normal_scores(0), normal_scores(8)), (100, 60), TENTH, 2_200),
    "overlapping": ((normal_scores(0), normal_scores(0.5)), (100, 60), TENTH, 2_200),
    "heavy tails": ((heavy_scores(0), heavy_scores(3)), (93, 59), TWENTIETH, 2_100),
    "different rates": ((normal_scores(0), normal_scores(2)), (150, 22), UNEVEN, 2_100),
    "least sizes, a twentieth": ((normal_scores(0), normal_scores(2)), (59, 59), TWENTIETH, 2_000),
    "least sizes, a tenth": ((normal_scores(0), normal_scores(2)), (22, 22), TENTH, 1_100),
    "imbalanced": ((normal_scores(0), normal_scores(2)), (5000, 22), TENTH, 3_900),
    "ties": ((rounded_scores(0, 0.5), rounded_scores(1.5, 0.5)), (65, 52), TENTH, 1_300),
    "point masses": (
        (Population(norm(0), ((1.53, 0.05),)), Population(norm(2), ((0.47, 0.05),))),
        (65, 52),
        TENTH,
        1_600,
    ),
    "infinite masses": (
        (
            Population(norm(0), ((inf, 0.11), (-inf, 0.2))),
            Population(norm(2), ((-inf, 0.11), (inf, 0.3))),
        ),
        (78, 65),
        TENTH,
        1_800,
    ),
}


@dataclass(frozen=True)
class Side:
    """One promised rate: n points, its ceiling and delta, and the masses where the ceiling is exceeded."""

    n: int
    ceiling: float
    delta: float
    edge: Edge

    @property
    def budget(self) -> int | None:
        return budget(self.n, self.ceiling, self.delta)

    @property
    def violation(self) -> float:
        """The exact probability that the ceiling does not hold: the tail at the mass of the edge."""
        return tail(self.budget, self.n, self.edge.included)

    @property
    def mistakes(self) -> list[float]:
        """What that probability would be with a wrong budget, or with ties on the wrong side."""
        k, slip = self.budget, max(1, self.n // 1000)
        assert k is not None
        wrong = [tail(k + slip, self.n, self.edge.included), tail(k - slip, self.n, self.edge.included)]
        return [*wrong, tail(k, self.n, self.edge.beyond)] if self.edge.beyond < self.ceiling else wrong


def sides(classes: Classes, sizes: Sizes, guarantee: Guarantee) -> tuple[Side, Side]:
    assert guarantee.max_fpr is not None
    assert guarantee.max_fnr is not None
    return (
        Side(sizes[0], guarantee.max_fpr, guarantee.delta_fpr, classes[0].upper_edge(guarantee.max_fpr)),
        Side(sizes[1], guarantee.max_fnr, guarantee.delta_fnr, classes[1].lower_edge(guarantee.max_fnr)),
    )


def assert_exact(violated: NDArray[np.bool_], side: Side) -> None:
    for mistake in side.mistakes:
        assert_power(violated.size, side.violation, mistake)
    assert side.violation <= side.delta
    assert_rate(int(violated.sum()), violated.size, side.violation)


def thresholds(certificate: Certificate) -> tuple[float | None, float | None]:
    return certificate.thresholds.alarm_from, certificate.thresholds.clear_below


QUICK = ["overlapping", "different rates", "least sizes, a tenth", "ties", "infinite masses"]


@pytest.mark.parametrize("case", slow_but(len(QUICK), [*QUICK, *(one for one in CASES if one not in QUICK)]))
def test_violations_are_exactly_as_likely_as_the_binomial_tail_says(case: str) -> None:
    classes, sizes, guarantee, trials = CASES[case]
    fpr, fnr = sides(classes, sizes, guarantee)
    alarm_from, clear_below, alarms = repeat(
        classes,
        sizes,
        guarantee,
        trials,
        # if the highest score is no alarm, nothing is
        lambda certificate: (*thresholds(certificate), certificate.thresholds.y_fp([inf])[0]),
        seed=1,
    )
    false_positives = alarms * classes[0].reaching(alarm_from) > fpr.ceiling
    false_negatives = classes[1].below(clear_below) > fnr.ceiling
    assert_exact(false_positives, fpr)
    assert_exact(false_negatives, fnr)

    # the classes are independent
    joint = 1 - (1 - fpr.violation) * (1 - fnr.violation)
    assert_power(trials, joint, max(fpr.violation, fnr.violation))
    assert_power(trials, joint, 1 - (1 - fpr.mistakes[0]) * (1 - fnr.mistakes[0]))
    assert joint <= sum(one.delta for one in guarantee.promises)
    assert_rate(int((false_positives | false_negatives).sum()), trials, joint)


@pytest.mark.parametrize(("least", "guarantee"), slow_but(1, [(22, TENTH), (59, TWENTIETH)], several=True))
def test_below_the_least_size_the_promise_is_empty_and_never_broken(least: int, guarantee: Guarantee) -> None:
    trials, few = 1_000, least - 1
    alarm_from, clear_below, vacuous = repeat(
        (normal_scores(0), normal_scores(2)),
        (few, few),
        guarantee,
        trials,
        lambda certificate: (*thresholds(certificate), certificate.regime is Regime.VACUOUS),
        seed=2,
    )
    assert (alarm_from == inf).all()
    assert (clear_below == -inf).all()
    assert vacuous.all()
    # a budget of zero errors would break it more often than delta allows, and that would be seen
    assert guarantee.max_fpr is not None
    loose = tail(0, few, guarantee.max_fpr)
    assert loose > guarantee.delta_fpr
    assert_power(trials, 0.0, loose)


@pytest.mark.parametrize("side", ["fpr", "fnr"])
def test_one_promise_alone_decides_every_point(side: str) -> None:
    classes, sizes = (normal_scores(0), normal_scores(1)), (100, 60)
    fpr, fnr = sides(classes, sizes, TENTH)
    promise = Guarantee(0.1, None, 0.1) if side == "fpr" else Guarantee(None, 0.1, delta_fnr=0.1)
    # alarms run upwards from the threshold, so they are too many if they begin at or below this score
    last, first = classes[0].smooth.isf(0.1), classes[1].smooth.ppf(0.1)
    at_last, at_first, undecided = repeat(
        classes,
        sizes,
        promise,
        2_200,
        lambda certificate: (
            *certificate.verdicts([last, first]).tolist(),
            certificate.rule.ambiguity(np.linspace(-5, 5, 21)),
        ),
        seed=3,
    )
    assert not undecided.any()
    assert_exact(*((at_last == 1, fpr) if side == "fpr" else (at_first == 0, fnr)))


@pytest.mark.parametrize(
    ("distance", "separated"),
    slow_but(2, [(1.0, (0.0, 0.0)), (3.1, (0.1, 0.9)), (8.0, (1.0, 1.0))], several=True),
)
def test_the_abstaining_rule_itself_keeps_both_promises(
    distance: float, separated: tuple[float, float]
) -> None:
    classes, sizes = (normal_scores(0), normal_scores(distance)), (100, 60)
    fpr, fnr = sides(classes, sizes, TENTH)
    last, first = classes[0].smooth.isf(0.1), classes[1].smooth.ppf(0.1)
    trials = 1_500
    at_last, at_first, apart = repeat(
        classes,
        sizes,
        TENTH,
        trials,
        lambda certificate: (
            *certificate.verdicts([last, first]).tolist(),
            certificate.regime is Regime.SEPARATED,
        ),
        seed=4,
        overlap="abstain_always",
    )
    assert separated[0] <= apart.mean() <= separated[1]
    # verdict 1 needs both thresholds at or below the score, verdict 0 both above it
    alarms = fpr.violation * (1 - tail(fnr.budget, fnr.n, float(classes[1].below(last))))
    misses = fnr.violation * (1 - tail(fpr.budget, fpr.n, float(classes[0].reaching(first))))
    for found, expected, side in ((at_last == 1, alarms, fpr), (at_first == 0, misses, fnr)):
        # a rule that looks at one threshold only would be wrong as often as that threshold
        assert_power(trials, expected, side.mistakes[0] if distance == 1.0 else side.violation)
        assert expected <= side.violation <= side.delta
        assert_rate(int(found.sum()), trials, expected)
