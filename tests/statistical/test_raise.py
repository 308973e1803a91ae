"""Ceilings raised along a ladder: what is promised, exactly and by simulation, and why not otherwise."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pytest
from scipy.stats import binom, norm

from pac_wrap import Certificate, Guarantee, Raise, Rule, calibrate
from pac_wrap.tails.levels import failure, local_level
from statistical.claims import assert_at_most, assert_power, assert_rate
from statistical.enumeration import PARTS, POPULATIONS, SUPPORT, Answers, answers, scores, weights
from support.ladder import failures, rungs
from support.strategies import LARGEST, calibrate_quietly

pytestmark = pytest.mark.slow

# tiny samples need loose promises: ceilings just below multiples of 1/8, where they are broken most often
LOOSE = [
    Guarantee(0.249, 0.374, 0.32, 0.32),
    Guarantee(0.374, 0.249, 0.2, 0.4),
    Guarantee(0.124, 0.124, 0.3, 0.3),
    Guarantee(0.499, 0.499, 0.32, 0.1),
]
# half of them for each promise, so that each is met by few and by many of either class
SIZES = [(4, 3), (3, 4), (5, 3), (3, 5), (4, 4), (6, 4)]


def worst(answer: Answers) -> tuple[Fraction, Fraction]:
    """Return how often each rate is broken in the worst of all pairs of populations."""
    return (
        answer.worst(answer.count_alarms(answer.too_many_alarms)),
        answer.worst(answer.count_misses(answer.too_many_misses)),
    )


@pytest.mark.parametrize(
    ("asked", "n", "m"),
    [(asked, n, m) for place, asked in enumerate(LOOSE) for n, m in SIZES[place % 2 :: 2]],
)
def test_no_small_population_breaks_a_delta(asked: Guarantee, n: int, m: int) -> None:
    answer = answers(n, m, asked, Raise(0.95))
    fpr, fnr = worst(answer)
    assert answer.deltas("fpr") <= {asked.delta_fpr}
    assert fpr <= Fraction(asked.delta_fpr)
    assert fnr <= Fraction(asked.delta_fnr)
    # something is certified, and may go wrong
    assert answer.deltas("fpr")
    assert max(fpr, fnr) > 0


def varied(
    n: int, m: int, asked: Guarantee, rule: Callable[[Certificate], Rule], highest: float = 0.95
) -> Answers:
    """Return the answers of a variant that sets another threshold on the rung that was reached."""

    def certify(normal: list[float], anomalous: list[float]) -> Certificate:
        found = calibrate(normal, anomalous, asked, overlap=Raise(highest))
        return found if found.uncertified else replace(found, rule=rule(found))

    return Answers(n, m, certify)


def test_the_other_end_loses_the_delta_of_the_smaller_class() -> None:
    """The threshold of the class that pays is the only one that keeps the other's whole delta."""
    asked, n, m = Guarantee(0.22, 0.374, 0.3, 0.3), 9, 6
    ours, other_end = np.zeros((2, len(POPULATIONS)), dtype=np.int64)
    # normals that all have one score, so that the rung depends on the anomalies alone
    for j, anomalous in enumerate(scores(m)):
        found = calibrate_quietly(np.zeros(n), anomalous, asked, overlap=Raise(0.95))
        if not found.uncertified:
            assert found.thresholds.clear_below is not None
            assert found.fnr.ceiling is not None
            allowed = found.fnr.ceiling * PARTS
            for tau, broken in (
                (found.rule.anomaly_from, ours),
                (min(found.thresholds.clear_below, LARGEST), other_end),
            ):
                missed = POPULATIONS @ (np.array(SUPPORT) < tau) > allowed
                broken += weights(m)[:, j] * missed
    assert other_end.max() / PARTS**m == pytest.approx(0.3483, abs=1e-4)
    assert ours.max() / PARTS**m <= 0.3


def test_in_the_mirror_image_the_next_double_misses_an_atom_whole() -> None:
    asked = Guarantee(0.374, 0.374, 0.3, 0.3)

    def one_double_later(found: Certificate) -> Rule:
        # between two scores of the support nothing but the atom at the threshold itself is lost
        tau = nextafter(found.rule.anomaly_from, inf)
        return Rule(min(tau, LARGEST), min(tau, LARGEST))

    assert worst(varied(3, 5, asked, one_double_later))[1] > Fraction(0.3)
    assert worst(answers(3, 5, asked, Raise(0.95)))[1] <= Fraction(0.3)


def test_a_shared_atom_is_not_split() -> None:
    """With "<=" in place of "<", a threshold just above the atom would be certified, and miss all of it."""
    normal, anomalous = np.zeros(865), np.zeros(170)
    certificate = calibrate(normal, anomalous, overlap="raise")
    assert certificate.uncertified
    level = local_level(865, 0.05, 0.05, 0.5)
    first, _ = rungs(865, 0.05, level, 0.5)
    accepted = np.sort(normal)[::-1][first] <= np.sort(anomalous)[3]
    tau = nextafter(0.0, 1.0)
    assert accepted
    assert (anomalous < tau).mean() == 1.0  # certified would be 0.05, with certainty false


def test_the_whole_budget_first_and_the_ladder_after_it_is_broken_too_often() -> None:
    n, delta = 93, 0.05
    level = local_level(n, 0.05, delta, 0.5)
    whole = int(binom.ppf(delta, n, 0.05))
    whole -= binom.cdf(whole, n, 0.05) > delta
    assert whole == 1
    first, ceilings = rungs(n, 0.05, level, 0.5)
    places = np.linspace(0.0501, 0.2, 3000)
    # accepted at once if at most `whole` normals lie above c > .05, and false then
    later = ceilings[whole + 1 - first :]
    variant = binom.cdf(whole, n, places) + failures(n, whole + 1, later, places)
    # the counts up to `whole` are in the first part already
    variant -= sum(
        binom.pmf(i, n, places)
        * np.where(
            later[0] < places,
            1.0,
            binom.cdf(whole + 1 - i, n - i, np.clip((later[0] - places) / (1 - places), 0.0, 1.0)),
        )
        for i in range(whole + 1)
    )
    assert variant.max() == pytest.approx(0.065, abs=5e-4)
    assert failure(n, 0.05, level, 0.5) <= delta


def test_falling_back_to_two_thresholds_is_broken_too_often() -> None:
    n, delta = 865, 0.05
    level = local_level(n, 0.05, delta, 0.5)
    first, ceilings = rungs(n, 0.05, level, 0.5)
    last, top = first + ceilings.size - 1, ceilings[-1]
    whole = 32
    assert binom.cdf([whole, whole + 1], n, 0.05).tolist() == pytest.approx([0.0422, 0.0598], abs=1e-3)
    # at c = the last ceiling: the ladder fails, or is of no use while the two thresholds fail
    counts = np.arange(whole + 1)
    beyond = binom.sf(last - counts, n - counts, (top - 0.05) / 0.95)
    fallback = float(binom.pmf(counts, n, 0.05) @ beyond)
    ladder = float(failures(n, first, ceilings, np.array([top]))[0])
    assert ladder <= delta
    assert ladder + fallback == pytest.approx(0.0789, abs=5e-4)


def test_the_worst_case_is_attained_at_865() -> None:
    """Anomalies that all have one score: the failure is that of a constant c, and no caution is left."""
    n, trials = 865, 2_000
    level = local_level(n, 0.05, 0.05, 0.5)
    first, ceilings = rungs(n, 0.05, level, 0.5)
    exact = failures(n, first, ceilings, ceilings)
    c, expected = float(ceilings[exact.argmax()]), float(exact.max())
    assert 0.0497 <= expected <= 0.05
    rng = np.random.default_rng(0)
    anomalous = np.full(170, 1.0 - c)
    broken = 0
    for _ in range(trials):
        certificate = calibrate(rng.random(n), anomalous, overlap="raise")
        if not certificate.uncertified:
            broken += 1.0 - certificate.rule.anomaly_from > (certificate.fpr.ceiling or 1.0)
    assert_rate(broken, trials, expected)
    assert_power(trials, expected, 2 * expected)


MEANS = {2.0: 0.20, 3.0: 0.10}
DRAWS = 1500


@pytest.mark.parametrize("distance", MEANS)
def test_mean_certified_ceilings_and_what_is_broken(distance: float) -> None:
    rng = np.random.default_rng(int(distance * 10))
    ceilings, broken = [], np.zeros(2, dtype=int)
    for _ in range(DRAWS):
        found = calibrate(rng.normal(0, 1, 865), rng.normal(distance, 1, 170), overlap="raise")
        assert not found.uncertified
        fpr, fnr = found.fpr.ceiling, found.fnr.ceiling
        assert fpr is not None
        assert fpr == pytest.approx(fnr, rel=1e-11)  # each is rounded up to twelve digits
        tau = found.rule.anomaly_from
        broken += norm.sf(tau) > fpr, norm.cdf(tau - distance) > fnr
        ceilings.append(fpr)
    # 4.8 standard errors: if the true mean were above, this would be seen with a chance of 1e-6
    assert np.mean(ceilings) + 4.8 * np.std(ceilings) / np.sqrt(DRAWS) <= MEANS[distance]
    for count in broken:
        assert_at_most(int(count), DRAWS, 0.05)
    assert_power(DRAWS, 0.05, 0.105, at_most=True)


def test_few_anomalies_cost_the_normals_no_more_than_they_must() -> None:
    rng = np.random.default_rng(4)
    ceilings, broken = [], np.zeros(2, dtype=int)
    for _ in range(600):
        found = calibrate(rng.normal(0, 1, 1500), rng.normal(4, 1, 30), overlap="raise")
        assert not found.uncertified
        fpr, fnr, tau = found.fpr.ceiling, found.fnr.ceiling, found.rule.anomaly_from
        assert fpr is not None
        ceilings.append(fpr)
        broken += norm.sf(tau) > fpr, norm.cdf(tau - 4.0) > fnr
    assert np.mean(ceilings) + 4.8 * np.std(ceilings) / np.sqrt(600) <= 0.07
    for count in broken:
        assert_at_most(int(count), 600, 0.05)
    assert_power(600, 0.05, 0.15, at_most=True)


@pytest.mark.parametrize("distance", [3.5, 4.0])
def test_abstaining_only_if_needed_keeps_both_promises(distance: float) -> None:
    """Whether one threshold or two decide is chosen on the same data, and costs nothing."""
    rng = np.random.default_rng(7)
    broken, single = np.zeros(2, dtype=int), 0
    for _ in range(DRAWS):
        found = calibrate(rng.normal(0, 1, 200), rng.normal(distance, 1, 170))
        rule = found.rule
        single += rule.single
        broken += norm.sf(rule.anomaly_from) > 0.05, norm.cdf(rule.normal_below - distance) > 0.05
    assert 0 < single < DRAWS or distance == 4.0
    for count in broken:
        assert_at_most(int(count), DRAWS, 0.05)


@pytest.mark.parametrize(("n", "m"), [(4, 3), (3, 4), (5, 5)])
@pytest.mark.parametrize("asked", [Guarantee(0.499, 0.499, 0.32, 0.32), Guarantee(0.499, 0.624, 0.2, 0.15)])
def test_no_small_population_breaks_a_single_threshold_between_the_two(
    n: int, m: int, asked: Guarantee
) -> None:
    answer = answers(n, m, asked)
    fpr, fnr = worst(answer)
    assert fpr <= Fraction(asked.delta_fpr)
    assert fnr <= Fraction(asked.delta_fnr)
    assert answer.read(lambda certificate: certificate.rule.single).any()
