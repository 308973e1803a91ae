"""The test of units: exact on tiny populations of units, and the units that it needs, with stated power."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from pac_wrap import Guarantee, calibrate_labelled
from pac_wrap.method.calibrate import Request
from pac_wrap.method.groups.units import certify_units
from pac_wrap.method.provenance import Units
from pac_wrap.tails.bounds import min_samples
from pac_wrap.tails.units import highest_mean, refutes
from statistical.claims import assert_at_most, assert_power

SHARES = (0.0, 0.5, 1.0)
PARTS = 12
MIXTURES = [
    (PARTS - i - j, i, j) for i in range(PARTS + 1) for j in range(PARTS + 1 - i)
]  # of the three shares


@pytest.mark.parametrize(("rate", "delta"), [(0.5, 0.3), (0.25, 0.4), (0.75, 0.1), (0.5, 0.05)])
def test_no_distribution_of_shares_is_refuted_more_often_than_delta(rate: float, delta: float) -> None:
    """Exact: all orders of five units, for all mixtures of three shares in twelfths whose mean is `rate`."""
    m, worst = 5, Fraction(0)
    orders = list(product(range(3), repeat=m))
    refuted = [one for one in orders if refutes(np.array([SHARES[place] for place in one]), rate, delta)]
    counts = [[one.count(place) for place in range(3)] for one in refuted]
    for mixture in MIXTURES:
        if Fraction(mixture[1] + 2 * mixture[2], 2 * PARTS) < Fraction(rate):
            continue
        ways = sum(mixture[0] ** a * mixture[1] ** b * mixture[2] ** c for a, b, c in counts)
        worst = max(worst, Fraction(ways, PARTS**m))
    assert worst <= Fraction(delta)
    assert bool(refuted) == (m >= min_samples(rate, delta))
    if refuted:
        assert worst > Fraction(delta) / 4  # the worst case is near, so the test is not idle


@pytest.mark.parametrize("delta", [0.3, 0.1])
def test_no_distribution_has_a_mean_above_the_bound_more_often_than_delta(delta: float) -> None:
    m = 4
    bounds = {
        one: highest_mean(np.array([SHARES[i] for i in one]), delta) for one in product(range(3), repeat=m)
    }
    worst = Fraction(0)
    for mixture in MIXTURES:
        mean = (mixture[1] + 2 * mixture[2]) / (2 * PARTS)
        chance = sum(
            Fraction(np.prod([mixture[i] for i in one]).item(), PARTS**m)
            for one, bound in bounds.items()
            if bound < mean
        )
        worst = max(worst, Fraction(chance))
    assert 0 < worst <= Fraction(delta)


def test_thresholds_keep_the_promise_in_every_tiny_population_of_units() -> None:
    """Exact: four units of two tied points each, drawn from all mixtures of four kinds of units in sixths."""
    kinds = [(0.0, 0.0), (0.0, 1.0), (1.0, 2.0), (2.0, 2.0)]
    rate, delta, m, parts = 0.5, 0.3, 4, 6
    request = Request.of(Guarantee(rate, None, delta_fpr=delta))
    edges = {}
    for drawn in product(range(len(kinds)), repeat=m):
        scores = [score for one in drawn for score in kinds[one]]
        made = certify_units(request, scores, [0] * 2 * m, np.repeat(range(m), 2), Units("0" * 16))
        edges[drawn] = made.rule.anomaly_from
    assert len(set(edges.values())) > 2
    worst = Fraction(0)
    for cut in product(range(parts + 1), repeat=len(kinds) - 1):
        if sum(cut) > parts:
            continue
        mixture = (*cut, parts - sum(cut))
        rates = {
            edge: sum(
                Fraction(share, parts) * sum(score >= edge for score in own) / 2
                for share, own in zip(mixture, kinds, strict=True)
            )
            for edge in set(edges.values())
        }
        ways = sum(
            int(np.prod([mixture[one] for one in drawn]))
            for drawn, edge in edges.items()
            if rates[edge] > Fraction(rate)
        )
        worst = max(worst, Fraction(ways, parts**m))
    assert Fraction(delta) / 4 < worst <= Fraction(delta)


def shares_of(runs: int, m: int, rate: float, correlation: float, seed: int) -> NDArray[np.float64]:
    """Return shares of errors among 20 points of each unit: beta-binomial, so that points go together."""
    random = np.random.default_rng(seed)
    if correlation == 0.0:
        return random.binomial(20, rate, (runs, m)) / 20
    size = (1.0 - correlation) / correlation
    return random.binomial(20, random.beta(rate * size, (1.0 - rate) * size, (runs, m))) / 20


@pytest.mark.parametrize(
    ("rate", "correlation", "units"),
    [
        (0.02, 0.0, 113),
        (0.02, 0.2, 162),
        (0.02, 0.5, 307),
        (0.01, 0.0, 80),
        (0.01, 0.2, 95),
        (0.01, 0.5, 140),
    ],
)
def test_as_many_units_as_the_theory_says_certify_nine_times_in_ten(
    rate: float, correlation: float, units: int
) -> None:
    runs = 20_000
    refuted = refutes(shares_of(runs, units, rate, correlation, 7), 0.05, 0.05)
    assert_at_most(runs - int(np.count_nonzero(refuted)), runs, 0.105)
    assert_power(runs, 0.105, 0.125, at_most=True)


def test_units_on_the_ceiling_are_refuted_at_most_as_often_as_delta_and_as_often_with_one_point_each() -> (
    None
):
    runs, m = 20_000, 150
    for correlation in (0.0, 0.2):
        broken = refutes(shares_of(runs, m, 0.05, correlation, 8), 0.05, 0.05)
        assert_at_most(int(np.count_nonzero(broken)), runs, 0.05)
    assert_power(runs, 0.05, 0.065, at_most=True)
    single = (np.random.default_rng(9).random((runs, m)) < 0.05).astype(np.float64)
    broken = refutes(single, 0.05, 0.05)
    assert_at_most(int(np.count_nonzero(broken)), runs, 0.05)
    assert broken.mean() > 0.035  # with one point a unit little is lost


def test_dependent_points_break_a_promise_that_takes_them_for_independent() -> None:
    """The reason for units: 60 machines whose points all agree, certified as 1,200 independent points."""
    runs, broken = 200, {True: 0, False: 0}
    random = np.random.default_rng(11)
    for _ in range(runs):
        scores, units = np.repeat(random.random(60), 20), np.repeat(np.arange(60), 20)
        for known in (True, False):
            more = {"units": units} if known else {}
            made = calibrate_labelled(scores, np.zeros(1200, int), Guarantee(0.05, None), **more)  # type: ignore[call-overload]
            broken[known] += 1.0 - made.rule.anomaly_from > 0.05
    assert_at_most(broken[True], runs, 0.05)
    assert broken[False] > runs / 5
    assert_power(runs, 0.05, 0.25, at_most=True)
