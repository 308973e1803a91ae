"""Promises about traffic: every sample of tiny populations with every way to review it, and stated figures.

Traffic of few points falls into cells: a score, the class, and the marks that coins and reviewers give. All
multisets of cells are certified by the package, and then weighed with every population whose masses are whole
parts, so that the chance of a broken promise is an exact number. Whoever reviews knows everything, the labels
included, so a promise counts as broken if any choice of reviews breaks it.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations
from math import factorial, floor, inf, nan, prod
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from pac_wrap import Certificate, Guarantee, Reviews, calibrate_traffic, plan
from pac_wrap.tails import bounds
from statistical.claims import assert_at_most, assert_power, assert_rate
from statistical.enumeration import compositions
from support.by_hand import budget
from support.slow import slow_but
from support.traffic_by_hand import tail

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.PACWrapWarning")
Whole = NDArray[np.int64]
# two atoms above a score that never raises an alarm; a cell is a score and a class
SCORES: Final = (-inf, 0.0, 1.0)
CELLS: Final = tuple((score, anomalous) for score in SCORES for anomalous in (0, 1))
ROUNDING: Final = Fraction(1, 10**12)


@cache
def populations(parts: int, cells: int) -> Whole:
    """Return the masses of every population in these parts, one row for each."""
    return np.array(list(compositions(parts, cells)))


def chances(broken: NDArray[np.bool_], masses: Whole, n: int) -> Whole:
    """Return in how many of the parts ** n draws something happens, for each population."""
    samples = list(compositions(n, masses.shape[1]))
    assert int(masses.sum(axis=1)[0]) ** n < 2**53
    orders = np.array([factorial(n) // prod(map(factorial, one)) for one in samples], dtype=np.float64)
    found = np.zeros(len(masses))
    for place, sample in enumerate(samples):
        if broken[:, place].any():
            found += orders[place] * (masses ** np.array(sample)).prod(axis=1) * broken[:, place]
    return found.astype(np.int64)


def reaching(masses: Whole, threshold: float, cells: Sequence[tuple[float, ...]], normal: bool) -> Whole:
    """Return the parts of each population that reach a threshold: of normal points, or of all."""
    inside = [s >= threshold and not (normal and kind) and threshold < inf for s, kind, *_ in cells]
    return np.asarray(masses @ np.array(inside, dtype=np.int64))


def spread(sample: Sequence[int], cells: Sequence[Any]) -> list[Any]:
    return [cell for count, cell in zip(sample, cells, strict=True) for _ in range(count)]


def subsets(many: Sequence[Any]) -> Iterator[list[bool]]:
    return ([bool(code >> place & 1) for place in range(len(many))] for code in range(1 << len(many)))


def certified(points: Sequence[tuple[float, int]], seen: Sequence[bool], asked: Guarantee) -> Certificate:
    reviews = [float(kind) if here else nan for (_, kind), here in zip(points, seen, strict=True)]
    return calibrate_traffic([s for s, _ in points], reviews, asked)


SIZES: Final = [(4, 6, (0.3, 0.5)), (5, 4, (0.3, 0.4)), (6, 6, (0.45, 0.5))]


@pytest.mark.parametrize(("n", "parts", "promise"), slow_but(1, SIZES, several=True))
def test_whatever_is_reviewed_ceilings_fail_as_often_as_their_tails_say(
    n: int, parts: int, promise: tuple[float, float]
) -> None:
    """Equations (138), (141) and (142), with ties, at scores that are atoms."""
    (c, delta), masses = promise, populations(parts, len(CELLS))
    asked = Guarantee(max_false_alarms=c, delta_fpr=delta)
    both = Guarantee(max_false_alarms=c, max_alarms=(more := min(0.9, 1.5 * c)), delta_fpr=delta)
    alarms = Guarantee(max_alarms=more, delta_fpr=delta)
    samples = list(compositions(n, len(CELLS)))
    wrong = np.zeros((len(masses), len(samples)), dtype=bool)
    raised, either = wrong.copy(), wrong.copy()
    stated = 1.0
    for place, sample in enumerate(samples):
        points = spread(sample, CELLS)
        tops = [set[float](), set[float]()]
        ways = [
            one for one in subsets(points) if all(kind or not one[i] for i, (_, kind) in enumerate(points))
        ]
        for ask, found in zip((asked, both), tops, strict=True):
            for seen in ways:
                made = certified(points, seen, ask)
                found.add(made.rule.anomaly_from)
                stated = min(stated, made.confidence)
        lowest, (least, _) = min(tops[0]), (min(tops[1]), None)
        assert lowest == certified(points, [True] * n, asked).rule.anomaly_from
        above = certified(points, [False] * n, alarms).rule.anomaly_from
        for flags, edge, normal, limit in (
            (wrong, lowest, True, c),
            (raised, above, False, more),
            (either, least, True, c),
            (either, least, False, more),
        ):
            flags[:, place] |= reaching(masses, edge, CELLS, normal) > floor(Fraction(limit) * parts)
    draws = parts**n
    for flags, normal, limit in ((wrong, True, c), (raised, False, more)):
        errors = budget(n, limit, delta)
        assert errors is not None
        # exactly the tail at the lowest share above the ceiling that some threshold has
        shares = np.stack([reaching(masses, s, CELLS, normal) for s in SCORES[1:]])
        beyond = np.where(shares > floor(Fraction(limit) * parts), shares, parts + 1).min(axis=0)
        expected = [0 if a > parts else int(tail(errors, n, Fraction(int(a), parts)) * draws) for a in beyond]
        assert chances(flags, masses, n).tolist() == expected
        assert 0 < max(expected) <= tail(errors, n, Fraction(limit)) * draws <= Fraction(delta) * draws
    worst = Fraction(int(chances(either, masses, n).max()), draws)
    assert worst <= 1 - Fraction(stated) + ROUNDING
    tails = [tail(budget(n, one, delta) or 0, n, Fraction(one)) for one in (c, more)]
    assert stated == pytest.approx(1 - float(max(tails)), abs=1e-12)


@pytest.mark.parametrize("n", slow_but(1, [4, 5]))
def test_coins_and_mistaken_reviewers_fail_no_more_often_than_their_tail(n: int) -> None:
    """Equation (140): half of the normal points count; a floor for reviews is chosen by looking at all."""
    cells = tuple((score, kind, counts) for score in SCORES for kind, counts in ((0, 1), (0, 0), (1, 1)))
    # a part of normal points is split into two halves: drawn and found normal, and the rest
    rows = populations(3, 2 * len(SCORES)).reshape(-1, len(SCORES), 2)
    masses = (rows[:, :, [0, 0, 1]] * np.array([1, 1, 2])).reshape(-1, len(cells))
    assert (masses.sum(axis=1) == 6).all()
    c, delta = 0.6, 0.3
    for rate, mistaken in ((0.5, 0.0), (1.0, 0.5)):
        asked = Guarantee(max_false_alarms=c, delta_fpr=delta, reviews=Reviews(rate=rate, mistaken=mistaken))
        samples = list(compositions(n, len(cells)))
        broken = np.zeros((len(masses), len(samples)), dtype=bool)
        for place, sample in enumerate(samples):
            points = spread(sample, cells)
            edges = set()
            for lowest in SCORES:
                # without coins, the other half is taken for anomalies; with them, it is not drawn
                found = [
                    nan if s < lowest or (rate < 1.0 and not counts) else float(kind or not counts)
                    for s, kind, counts in points
                ]
                made = calibrate_traffic([s for s, *_ in points], found, asked)
                edges.add(made.rule.anomaly_from)
            broken[:, place] = reaching(masses, min(edges), cells, normal=True) > floor(Fraction(c) * 6)
        errors = budget(n, c / 2, delta)
        assert errors is not None
        worst = Fraction(int(chances(broken, masses, n).max()), 6**n)
        # of four sixths that reach the threshold, two are counted; without a review there is no alarm
        unseen = Fraction(2, 6) ** n if rate < 1.0 else 0
        assert worst == tail(errors, n, Fraction(2, 6)) - unseen <= tail(errors, n, Fraction(c) / 2)


def worst_in_order(
    n: int, parts: int, q: Fraction, delta: Fraction, cells: Sequence[Any], orders: Sequence[Sequence[int]]
) -> list[Fraction]:
    """Return the worst chance that a certified claim of precision is false, for each order of the ranks."""
    masses, samples = populations(parts, len(cells)), list(compositions(n, len(cells)))
    scores = sorted({s for s, _ in cells})
    false = np.stack(
        [
            reaching(masses, np.nextafter(s, inf), cells, True) * q.denominator
            > (q.denominator - q.numerator) * reaching(masses, np.nextafter(s, inf), cells, False)
            for s in scores
        ],
        axis=1,
    )
    at = np.zeros((len(samples), n + 1), dtype=np.int64)
    passed = np.zeros((len(samples), n + 1), dtype=bool)
    for place, sample in enumerate(samples):
        points = sorted(spread(sample, cells), reverse=True)
        for rank in range(1, n + 1):
            t = points[rank - 1][0]
            above = [kind for s, kind in points if s > t]
            at[place, rank] = scores.index(t)
            passed[place, rank] = bool(above) and tail(above.count(0), len(above), 1 - q) <= delta
    found = []
    for order in orders:
        alive, broken = (
            np.ones(len(samples), dtype=bool),
            np.zeros(false.shape[:1] + at.shape[:1], dtype=bool),
        )
        for rank in order:
            alive &= passed[:, rank]
            broken |= alive & false[:, at[:, rank]]
        found.append(Fraction(int(chances(broken, masses, n).max()), parts**n))
    return found


@pytest.mark.parametrize(
    ("n", "parts", "levels"), slow_but(1, [(4, 6, 4), (5, 8, 3), (6, 5, 4), (5, 5, 5)], several=True)
)
def test_precision_keeps_the_full_delta_in_any_fixed_order_of_ranks(n: int, parts: int, levels: int) -> None:
    """Theorem 45, at atoms: no order of the ranks fails more often than one rank may."""
    cells = [(float(level), kind) for level in range(levels) for kind in (0, 1)]
    orders = [*permutations(range(2, n + 1))] if n < 6 else [range(2, 7), range(6, 1, -1), (4, 2, 6, 3, 5)]
    for q, delta in ((Fraction(1, 2), Fraction(1, 4)), (Fraction(2, 3), Fraction(1, 3))):
        worst = worst_in_order(n, parts, q, delta, cells, orders)
        assert Fraction(0) < max(worst) <= delta


def test_certified_precision_is_kept_by_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule of the package at ranks 2, 3, 4 and 6 of six points; one claim would be tested too late."""
    monkeypatch.setattr(bounds, "_TESTED_ERRORS", 0)
    n, parts, delta, cells = 6, 4, 0.5, CELLS
    assert [*bounds.ranks_tested(n, 0.5, delta)] == [2, 3, 4, 6]
    masses, samples = populations(parts, len(cells)), list(compositions(n, len(cells)))
    broken, certain = np.zeros((len(masses), len(samples)), dtype=bool), set()
    for place, sample in enumerate(samples):
        points = spread(sample, cells)
        made = certified(points, [True] * n, Guarantee(min_precision=0.5, delta_fpr=delta))
        edge = made.rule.anomaly_from
        normal, every = (reaching(masses, edge, cells, one) for one in (True, False))
        broken[:, place] = 2 * normal > every
        certain |= {made.fpr.n}
    assert certain == {0, 1, 2, 3, 4, 5}
    assert 0 < chances(broken, masses, n).max() <= delta * parts**n


def test_audits_fail_no_more_often_than_delta() -> None:
    """Equation (149): a coin draws half of the anomalies, and any of the other ones may be reviewed."""
    n, e, delta = 5, 0.49, 0.5
    cells = (*((score, 1, drawn) for score in SCORES for drawn in (0, 1)), (0.0, 0, 1))
    rows = populations(4, len(SCORES) + 1)
    masses = np.concatenate([rows[:, :-1].repeat(2, axis=1), 2 * rows[:, -1:]], axis=1)
    asked = Guarantee(max_fnr=e, delta_fnr=delta, reviews=Reviews(audits=0.5))
    samples = list(compositions(n, len(cells)))
    broken, kept = np.zeros((len(masses), len(samples)), dtype=bool), 0
    anomalies = masses[:, :-1].sum(axis=1)
    for place, sample in enumerate(samples):
        points = spread(sample, cells)
        audits = np.array([drawn == 1 for *_, drawn in points])
        others = np.flatnonzero(~audits).tolist()
        edges = []
        for seen in subsets(others) if place % 8 == 0 else [[True] * len(others)]:
            reviewed = audits.copy()
            reviewed[others] = seen
            found = [
                float(kind) if here else nan for (_, kind, _), here in zip(points, reviewed, strict=True)
            ]
            made = calibrate_traffic([s for s, *_ in points], found, asked, audits=audits)
            edges.append(made.rule.normal_below if made.fnr.kept else -inf)
        kept += max(edges) > -inf
        # more reviews certify more, so the last way, where all is reviewed, is the worst
        assert edges[-1] == max(edges)
        missed = masses @ np.array([kind and s < max(edges) for s, kind, _ in cells], dtype=np.int64)
        broken[:, place] = (anomalies > 0) & (missed > e * anomalies)
    worst = Fraction(int(chances(broken, masses, n).max()), 8**n)
    assert kept > 20
    assert Fraction(1, 10) < worst <= Fraction(delta)


@pytest.mark.parametrize("independent", [True, False])
def test_labelled_anomalies_beside_traffic_hold_together_as_stated(independent: bool) -> None:
    """The product for a sample of its own, which is attained; the sum promises less."""
    n, m, parts, c, e, delta = 3, 3, 4, 0.45, 0.45, 0.2
    asked = Guarantee(max_false_alarms=c, max_fnr=e, delta_fpr=delta, delta_fnr=delta)
    samples = list(compositions(n, len(CELLS)))
    others = list(compositions(m, len(SCORES)))
    masses, theirs = populations(parts, len(CELLS)), populations(parts, len(SCORES))
    weights = {
        own.shape[1]: np.stack(
            [
                factorial(size) // prod(map(factorial, one)) * (own ** np.array(one)).prod(axis=1)
                for one in compositions(size, own.shape[1])
            ],
            axis=1,
        )
        for own, size in ((masses, n), (theirs, m))
    }
    kept, stated = np.zeros((len(masses), len(theirs)), dtype=np.int64), 1.0
    for place, sample in enumerate(samples):
        points = spread(sample, CELLS)
        reviews = [float(kind) for _, kind in points]
        for at, other in enumerate(others):
            made = calibrate_traffic(
                [s for s, _ in points],
                reviews,
                asked,
                anomalous=spread(other, SCORES),
                independent=independent,
            )
            stated = min(stated, made.confidence)
            fine = reaching(masses, made.rule.anomaly_from, CELLS, True) <= floor(Fraction(c) * parts)
            missed = theirs @ np.array([s < made.rule.normal_below for s in SCORES], dtype=np.int64)
            caught = missed <= floor(Fraction(e) * parts)
            own = weights[len(CELLS)][:, place] * fine
            kept += own[:, None] * (weights[len(SCORES)][:, at] * caught)[None, :]
    lowest = Fraction(int(kept.min()), parts ** (n + m))
    one, two = (1 - tail(0, size, Fraction(limit)) for size, limit in ((n, c), (m, e)))
    assert stated == pytest.approx(float(one * two if independent else one + two - 1), abs=1e-12)
    assert Fraction(stated) - ROUNDING <= lowest
    assert lowest == (1 - tail(0, n, Fraction(2, parts))) * (1 - tail(0, m, Fraction(2, parts)))


# ---- the figures of the theory


def traffic(rng: np.random.Generator, n: int, share: float, shift: float) -> tuple[Any, Any]:
    anomaly = rng.random(n) < share
    return rng.normal(size=n) + shift * anomaly, anomaly


def false_alarms_of(trials: int, seed: int) -> tuple[int, float]:
    """Return how often the ceiling of the reference fails, and how many points are reviewed on average."""
    rng, asked = np.random.default_rng(seed), Guarantee(max_false_alarms=0.001)
    edge, broken, reviewed = norm.isf(0.001 / 0.99), 0, 0
    for _ in range(trials):
        scores, anomaly = traffic(rng, 20_000, 0.01, 3.0)
        made = calibrate_traffic(scores, np.where(scores > 1.8, anomaly, nan), asked)
        assert made.fpr.errors == 12
        assert made.traffic is not None
        broken += made.rule.anomaly_from <= edge
        reviewed += made.traffic.alarms + 1
    return broken, reviewed / trials


@pytest.mark.parametrize(("trials", "caught"), slow_but(1, [(400, 0.15), (5000, 0.065)], several=True))
def test_false_alarms_from_95_reviews_fail_with_the_exact_tail(trials: int, caught: float) -> None:
    broken, reviewed = false_alarms_of(trials, 7)
    expected = float(binom.cdf(12, 20_000, 0.001))
    assert round(expected, 4) == 0.0389
    assert_rate(broken, trials, expected)
    assert_power(trials, expected, caught)
    assert reviewed == pytest.approx(95, abs=2.5)


def precision_of(trials: int, ranks: Sequence[int], level: float, in_order: bool) -> tuple[int, int]:
    """Return how often some rank is certified, alone or in order, and how often a false claim is."""
    rng, kept, broken = np.random.default_rng(3), 0, 0
    passed = [max((w for w in range(j) if binom.cdf(w, j - 1, 0.3) <= level), default=-1) for j in ranks]
    # below this score less than 0.7 of what lies above is anomalous
    grid = np.linspace(0.0, 4.0, 4001)
    shares = 0.05 * norm.sf(grid - 2.0) / (0.05 * norm.sf(grid - 2.0) + 0.95 * norm.sf(grid))
    edge = grid[np.argmax(shares >= 0.7)]
    for _ in range(trials):
        # points above 1, of which there are some 1,900
        normal, anomalous = rng.binomial(9_500, norm.sf(1.0)), rng.binomial(500, norm.sf(-1.0))
        scores = np.r_[
            norm.isf(rng.random(normal) * norm.sf(1.0)), 2.0 + norm.isf(rng.random(anomalous) * norm.sf(-1.0))
        ]
        order = np.argsort(-scores)[: ranks[-1]]
        wrong = np.cumsum(order < normal)
        fine = wrong[np.array(ranks) - 2] <= passed
        held = np.logical_and.accumulate(fine) if in_order else fine
        kept += bool(held.any())
        broken += bool((held & (scores[order[np.array(ranks) - 1]] < edge)).any())
    return kept, broken


def test_precision_is_certified_as_often_as_stated() -> None:
    ranks = [round(50 * 2 ** (i / 2)) for i in range(8)]
    assert (ranks[:3], ranks[-1]) == ([50, 71, 100], 566)
    for level, in_order, expected in ((0.05, True, 0.992), (0.05 / 8, False, 0.963)):
        kept, broken = precision_of(800, ranks, level, in_order)
        assert_rate(kept, 800, expected)
        assert_power(800, expected, expected - 0.08)
        assert_at_most(broken, 800, 0.05)
        assert_power(800, 0.05, 0.13, at_most=True)


@pytest.mark.parametrize(("fnr", "expected"), [(0.02, 0.74), (0.1, 0.038)])
def test_audits_certify_as_often_as_stated(fnr: float, expected: float) -> None:
    """The chance is a sum over the anomalies that are missed and audited, and those that are caught."""
    n, share, r, e = 100_000, 0.01, 0.05, 0.1
    rho, found = Reviews(audits=r).before(e), 0.0
    low, high = share * fnr * r, share * (1.0 - fnr)
    for x in range(40):
        h = int(np.argmax(binom.cdf(x, x + np.arange(5_000), rho) <= 0.05))
        found += binom.pmf(x, n, low) * binom.sf(h - 1, n - x, high / (1.0 - low))
    assert found == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize(("fnr", "expected"), [(0.02, 0.74), (0.1, 0.038)])
@pytest.mark.slow
def test_audits_of_the_package_certify_as_often_as_stated(fnr: float, expected: float) -> None:
    rng, asked, hits = np.random.default_rng(2), Guarantee(max_fnr=0.1, reviews=Reviews(audits=0.05)), 0
    edge = 3.0 + norm.ppf(fnr)
    for _ in range(400):
        scores, anomaly = traffic(rng, 100_000, 0.01, 3.0)
        audits = rng.random(100_000) < 0.05
        made = calibrate_traffic(
            scores, np.where(audits | (scores >= edge), anomaly, nan), asked, audits=audits
        )
        hits += made.fnr.kept and made.rule.normal_below >= edge
    assert_rate(hits, 400, expected)
    assert_power(400, expected, expected + 0.16)


def test_the_planned_traffic_keeps_the_guessed_alarms_nine_times_in_ten() -> None:
    """At half of the ceiling: the threshold is at or below the guessed one, whatever lies between."""
    asked = Guarantee(max_false_alarms=0.02)
    need = plan(asked, guess_alarms=0.03, guess_precision=2 / 3).needed[0].likely
    assert need is not None
    exact = float(binom.cdf(need.errors, need.labels, 0.01))
    assert 0.9 <= exact < 0.93
    fewer = bounds.min_samples(0.02, 0.05, need.errors - 1)
    assert binom.cdf(need.errors - 1, fewer, 0.01) < 0.9
    rng, edge, trials, kept, wide = np.random.default_rng(5), norm.isf(0.01 / 0.98), 800, 0, 0.0
    for _ in range(trials):
        anomaly = rng.random(need.labels) < 0.02
        scores = np.where(anomaly, 10.0, rng.normal(size=need.labels))  # all above the guessed threshold
        made = calibrate_traffic(scores, np.where(anomaly, 1.0, nan), asked)
        kept += made.rule.anomaly_from <= edge
        assert made.traffic is not None
        wide += made.traffic.found + need.errors + 1
    assert_rate(kept, trials, exact)
    assert_power(trials, exact, exact - 0.1)
    # reviews go on until one more than the budget is wrong
    assert wide / trials == pytest.approx(need.labels * 0.02 + need.errors + 1, rel=0.02)
