"""The boundary-crossing programme against exact fractions, known cases, itself by another way, and trials."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainccinv
from scipy.stats import binom, ksone

from pac_wrap.method.curves import band
from pac_wrap.method.curves.band import Held, keeping
from statistical.claims import assert_power, assert_rate
from support.examples import examples

# a first prototype in another language gave these: n, then the failure of upper(count, n, level) by level
REFERENCE = {
    170: {0.01: 0.177, 0.005: 0.104, 0.002: 0.0494, 0.001: 0.0275},
    59: {0.01: 0.132, 0.005: 0.0755, 0.002: 0.0348, 0.001: 0.0190},
    117: {0.01: 0.161, 0.005: 0.0939, 0.002: 0.0442, 0.001: 0.0244},
}


def exactly(n: int, places: list[float], floors: list[int], caps: list[int]) -> Fraction:
    """Return the same probability in fractions, by binomial steps: no Poisson process, no window."""
    mass, last = {0: Fraction(1)}, Fraction(0)
    for place, least, most in zip(places, floors, caps, strict=True):
        share = (Fraction(place) - last) / (1 - last)
        new: dict[int, Fraction] = {}
        for count, chance in mass.items():
            left = n - count
            for more in range(left + 1):
                if least <= count + more <= most:
                    step = comb(left, more) * share**more * (1 - share) ** (left - more)
                    new[count + more] = new.get(count + more, Fraction(0)) + chance * step
        mass, last = new, Fraction(place)
    return sum(mass.values(), Fraction(0))


@pytest.mark.parametrize(
    ("n", "level", "expected"), [(n, a, p) for n, s in REFERENCE.items() for a, p in s.items()]
)
def test_the_reference_figures_come_out(n: int, level: float, expected: float) -> None:
    ranks = np.arange(n)
    found = keeping(n, betainccinv(ranks + 1, n - ranks, level), at_least=ranks + 1)
    assert f"{found.failure:.3g}" == f"{expected:.3g}"
    assert found.error < 1e-11


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_it_agrees_with_exact_fractions(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9))
    inner = st.integers(1, 63).map(lambda k: k / 64)
    places = sorted(data.draw(st.sets(inner, min_size=1, max_size=5)))
    limits = st.lists(st.integers(-1, n + 1), min_size=len(places), max_size=len(places))
    floors, caps = data.draw(limits), data.draw(limits)
    exact = exactly(n, places, floors, caps)
    found = keeping(n, places, floors, caps)
    assert abs(Fraction(found.probability) - exact) <= Fraction(found.error) + Fraction(1, 10**15)
    assert Fraction(found.failure) >= 1 - exact - Fraction(1, 10**15)


def test_one_limit_is_a_binomial_tail() -> None:
    for n in (0, 1, 7, 300, 100_000):
        for place, least in ((0.03, 1), (0.5, n // 2), (0.999, n)):
            found = keeping(n, [place], at_least=[least])
            assert found.probability == pytest.approx(binom.sf(least - 1, n, place), abs=1e-12)
            found = keeping(n, [place], at_most=[least])
            assert found.probability == pytest.approx(binom.cdf(least, n, place), abs=1e-12)


@pytest.mark.parametrize("n", [10, 200, 3000])
def test_a_fixed_width_is_the_distribution_of_kolmogorov_and_smirnov(n: int) -> None:
    # F <= F_n + width everywhere: at place i/n + width more than i numbers lie
    width = float(ksone.isf(0.05, n))
    ranks = np.arange(n)
    places = ranks / n + width
    inside = places < 1
    found = keeping(n, places[inside], at_least=ranks[inside] + 1)
    assert found.failure == pytest.approx(0.05, rel=1e-7)


def test_caps_are_floors_seen_from_the_other_end() -> None:
    n, places = 40, np.array([0.1, 0.3, 0.55, 0.8])
    caps = np.array([8, 17, 28, 37])
    below = keeping(n, places, at_most=caps).probability
    above = keeping(n, 1 - places[::-1], at_least=n - caps[::-1]).probability
    assert below == pytest.approx(above, abs=1e-13)


@pytest.mark.parametrize("n", [20_000, 300_000])
def test_transforms_err_no_more_than_they_say(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = np.unique(np.geomspace(1, n - 1, 60).astype(np.int64))
    places = betainccinv(ranks + 1.0, n - ranks, 0.002)
    monkeypatch.setattr(band, "_MANY", 10**12)
    summed = keeping(n, places, ranks + 1)
    monkeypatch.setattr(band, "_MANY", 10_000)
    transformed = keeping(n, places, ranks + 1)
    assert summed.probability != transformed.probability, "both ways are taken"
    difference = abs(summed.probability - transformed.probability)
    assert difference <= summed.error + transformed.error
    # bounded, and still small enough for a level to six digits
    assert transformed.error < 1e-9


def test_the_failure_counts_the_error_against_the_limits() -> None:
    assert Held(probability=0.95, error=0.01).failure == pytest.approx(0.06)
    assert Held(probability=0.0, error=0.01).failure == 1.0


def test_what_cannot_be_kept_fails_for_certain() -> None:
    assert keeping(3, [0.5], at_least=[4]).failure == 1.0
    assert keeping(3, [0.2, 0.5], at_least=[2, 0], at_most=[3, 1]).failure == 1.0
    assert keeping(3, [], at_least=[]).probability == pytest.approx(1.0)


def test_simulated_counts_fail_as_often_as_computed() -> None:
    n, level, trials = 59, 0.01, 80_000
    bounds = betainccinv(np.arange(n) + 1, n - np.arange(n), level)
    expected = keeping(n, bounds, at_least=np.arange(n) + 1).failure
    assert_power(trials, expected, 1.08 * expected)
    assert_power(trials, expected, 0.92 * expected)
    rng = np.random.default_rng(20240501)
    hits = sum(
        int((np.sort(rng.random((2_000, n)), axis=1) > bounds).any(axis=1).sum())
        for _ in range(trials // 2_000)
    )
    assert_rate(hits, trials, expected)
