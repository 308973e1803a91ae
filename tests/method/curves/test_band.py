"""The band of equal local levels: its level and ranks, and that it holds at every threshold, with ties."""

from fractions import Fraction
from itertools import product
from math import exp, factorial, nextafter, prod
from time import process_time

import numpy as np
import pytest
from scipy.special import betainccinv
from scipy.stats import binom

from pac_wrap import InputError
from pac_wrap.base.arguments import LEAST_DELTA
from pac_wrap.method.curves.band import Band, _anchored, _reach, anchor_ranks, band_of, keeping
from pac_wrap.tails import error_budget, min_samples, upper_bound
from support.slow import slow_but


@pytest.mark.parametrize("n", slow_but(6, [1, 2, 7, 59, 170, 1000, 999, 20_000]))
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
def test_the_level_is_exact_to_six_digits_and_never_above(n: int, delta: float) -> None:
    band = band_of(n, delta)
    ranks = anchor_ranks(n)

    def fails(level: float) -> float:
        return keeping(n, betainccinv(ranks + 1.0, n - ranks, level), ranks + 1).failure

    assert fails(band.level) <= delta < fails(band.level * (1 + 1e-6))
    assert float(f"{band.level:.8g}") == band.level
    # and the bounds that are used are at least as safe, and no less sharp
    assert delta * (1 - 1e-5) <= keeping(n, band.bounds, at_least=band.ranks + 1).failure <= delta


def test_one_point_has_the_whole_delta() -> None:
    assert band_of(1, 0.05).level == pytest.approx(0.05, rel=1e-7)
    assert band_of(0, 0.05).of([0]).tolist() == [1.0]


@pytest.mark.parametrize("n", slow_but(2, [59, 5_000, 1_000_000]))
def test_bounds_are_those_of_clopper_and_pearson_at_the_level(n: int) -> None:
    band = band_of(n, 0.05)
    for place in (0, 1, 20, band.ranks.size // 2, band.ranks.size - 2):
        rank, bound = int(band.ranks[place]), float(band.bounds[place])
        exact = upper_bound(rank, n, band.level)
        assert exact <= bound <= exact * (1 + 1e-11)
        assert error_budget(n, bound, band.level) == rank


def test_so_many_labels_certify_a_ceiling_at_every_threshold() -> None:
    assert band_of(119, 0.05).bounds[0] <= 0.05 < band_of(118, 0.05).bounds[0]
    assert min_samples(0.05, 0.05) == 59


@pytest.mark.parametrize(("top", "labels"), [(0.15, 80), pytest.param(0.3, 90, marks=pytest.mark.slow)])
def test_fewer_labels_certify_a_ceiling_where_no_larger_bound_matters(top: float, labels: int) -> None:
    """119 without a top, above; 78 would do for a top of .15, but 79 have one rank more, and would not."""
    sizes = (labels - 1, labels, labels + 1, labels + 3, labels + 10, 119)
    enough = [n for n in sizes if band_of(n, 0.05, top).of([0])[0] <= 0.05]
    assert enough == [*sizes[1:]]


@pytest.mark.parametrize("n", slow_but(5, [1, 2, 7, 59, 1000, 170, 20_000]))
@pytest.mark.parametrize("top", [0.02, 0.1, 0.3, 0.7, 0.99])
def test_a_top_leaves_as_many_ranks_as_have_bounds_up_to_it(n: int, top: float) -> None:
    """Eq. (120): the level is exact for these, one rank more would lie above, and beyond nothing is said."""
    band, whole = band_of(n, 0.05, top), band_of(n, 0.05)
    count = band.ranks.size
    assert (band.ranks == anchor_ranks(n)[:count]).all()
    assert (band.bounds <= top).all()
    assert (band.of(anchor_ranks(n)[count:]) == 1.0).all()
    if count < anchor_ranks(n).size:
        assert _anchored(n, 0.05, count + 1).of(anchor_ranks(n)[count]) > top
    if count:
        assert 0.05 * (1 - 1e-5) <= keeping(n, band.bounds, at_least=band.ranks + 1).failure <= 0.05
    if 0 < count < whole.ranks.size:
        assert band.level > whole.level
        assert (band.bounds < whole.bounds[:count]).all()


@pytest.mark.parametrize("n", [59, 1000])
def test_a_bound_that_is_the_top_itself_belongs_to_the_band(n: int) -> None:
    band = band_of(n, 0.05, 0.3)
    same, less = (band_of(n, 0.05, top) for top in (band.bounds[-1], nextafter(band.bounds[-1], 0.0)))
    assert (same.level, same.ranks.size) == (band.level, band.ranks.size)
    assert less.ranks.size < band.ranks.size


def test_the_least_delta_of_a_band_is_one() -> None:
    assert band_of(20, LEAST_DELTA).delta == LEAST_DELTA
    with pytest.raises(InputError, match="delta must be at least"):
        band_of(20, nextafter(LEAST_DELTA, 0.0))


@pytest.mark.parametrize("top", [0.0, 1.0, -0.1, float("nan"), "0.3", True])
def test_a_top_is_a_rate(top: float) -> None:
    with pytest.raises(InputError, match="top must"):
        band_of(10, 0.05, top)


def test_all_ranks_are_anchors_of_few_points_and_a_thousand_of_many() -> None:
    assert anchor_ranks(999).tolist() == list(range(999))
    for n in (1000, 12_345, 10**6, 10**7):
        ranks = anchor_ranks(n)
        assert ranks[:51].tolist() == list(range(51))
        assert ranks.size <= 1100
        gaps = np.diff(np.append(ranks, n))
        assert (gaps <= np.maximum(1, np.minimum(ranks // 50, n // 500))).all()


def test_a_count_takes_the_bound_of_the_next_larger_anchor() -> None:
    band = band_of(100_000, 0.05)
    counts = np.arange(100_001)
    bounds = band.of(counts)
    assert (np.diff(bounds) >= 0).all()
    assert bounds[-1] == 1.0
    places = np.searchsorted(band.ranks, counts)
    known = places < band.ranks.size
    assert (band.ranks[places[known]] >= counts[known]).all()
    assert (bounds[known] == band.bounds[places[known]]).all()
    assert (bounds[~known] == 1.0).all()


def test_the_next_smaller_anchor_would_fail() -> None:
    # the mistake that the direction guards against: a count between two anchors with the bound of the lower
    n = 100_000
    band = band_of(n, 0.05)
    between = np.arange(0, n, 97)
    lower = band.bounds[np.searchsorted(band.ranks, between, side="right") - 1]
    rising = np.maximum.accumulate(lower + np.arange(lower.size) * 1e-13)
    assert keeping(n, rising, at_least=between + 1).failure > 0.9


def worst_failure(band: Band, masses: tuple[Fraction, ...]) -> Fraction:
    """Return how likely some threshold breaks its bound when scores have these atoms, the largest first."""
    n, broken = band.n, Fraction(0)
    rates = [sum(masses[: i + 1], Fraction(0)) for i in range(len(masses))]
    for sample in product(range(n + 1), repeat=len(masses)):
        if sum(sample) == n:
            counts = np.cumsum(sample)
            if any(
                rate > Fraction(bound) for rate, bound in zip(rates, band.of(counts).tolist(), strict=True)
            ):
                ways = factorial(n) // prod(factorial(k) for k in sample)
                broken += ways * prod(mass**k for mass, k in zip(masses, sample, strict=True))
    return broken


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize(("delta", "top"), [(0.05, None), (0.3, None), (0.05, 0.8), (0.3, 0.75)])
def test_it_holds_for_every_small_population_with_ties(n: int, delta: float, top: float | None) -> None:
    band = band_of(n, delta, top)
    twelfths = [
        tuple(Fraction(part, 12) for part in parts)
        for parts in product(range(13), repeat=3)
        if sum(parts) == 12
    ]
    found = [worst_failure(band, masses) for masses in twelfths]
    assert max(found) <= Fraction(delta)


@pytest.mark.parametrize(("n", "top"), [(3, None), (3, 0.75), (5, 0.8), (5, 0.6)])
def test_atoms_at_the_bounds_themselves_come_close_to_delta(n: int, top: float | None) -> None:
    # scores that are only told apart just beyond each bound lose nothing of the continuous case
    delta = 0.3
    band = band_of(n, delta, top)
    assert band.ranks.size
    edges = [Fraction(bound) + Fraction(1, 10**9) for bound in band.bounds.tolist()]
    masses = tuple(np.diff([Fraction(0), *edges, Fraction(1)]).tolist())
    assert float(worst_failure(band, masses)) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("top", slow_but(1, [None, 0.1]))
@pytest.mark.parametrize("n", slow_but(1, [10**7, 999, 10**6]))
def test_a_band_takes_no_more_than_a_second(n: int, top: float | None) -> None:
    _anchored.cache_clear()
    start = process_time()
    band_of.__wrapped__(n, 0.05, top)
    # of the processor: others may run here as well. More than is promised, since processors differ
    assert process_time() - start < 5.0


@pytest.mark.parametrize("variance", [0.0, 1e-3, 1.0, 1e3, 1e9])
def test_the_chance_beyond_its_reach_is_that_of_the_bound(variance: float) -> None:
    reach = _reach(variance)
    assert exp(-reach * reach / (2.0 * (variance + reach / 3.0))) == pytest.approx(exp(-37.0))


def test_a_wider_delta_gives_lower_bounds() -> None:
    levels = [band_of(200, delta).level for delta in (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5)]
    assert levels == sorted(levels)
    assert binom.cdf(0, 200, band_of(200, 0.05).bounds[0]) == pytest.approx(band_of(200, 0.05).level)


@pytest.mark.parametrize("delta", [0.0, 1.0, float("nan"), 1e-7])
def test_a_delta_that_no_band_has_is_refused(delta: float) -> None:
    with pytest.raises(InputError, match="delta must"):
        band_of(10, delta)


def test_more_points_than_a_band_takes_are_refused() -> None:
    with pytest.raises(InputError, match="at most 100,000,000 scores of a class, got 100,000,001"):
        band_of(10**8 + 1, 0.05)
