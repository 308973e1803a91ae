"""Room for shift: attained by a two-point distribution, never exceeded by any, and rounded against itself."""

from collections.abc import Callable
from itertools import product
from math import inf, log, nan, nextafter
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap import KL, ChiSquared, DensityRatio, Guarantee, InputError, TotalVariation, calibrate
from pac_wrap.method.robust.shift_and_noise import SHIFTS, Shift
from pac_wrap.tails import min_samples
from support.examples import examples
from support.strategies import refusal

Masses = np.ndarray
SOME: list[Shift] = [
    TotalVariation(0.02),
    TotalVariation(0.3),
    DensityRatio(2),
    DensityRatio(5),
    KL(0.01),
    KL(0.7),
    KL(4.0),
    ChiSquared(0.1),
    ChiSquared(3.0),
]
# how far Q is from P, for masses on a few points
DISTANCES: dict[type, Callable[[Masses, Masses], float]] = {
    TotalVariation: lambda q, p: float(np.abs(q - p).sum() / 2),
    DensityRatio: lambda q, p: float((q / p).max()),
    KL: lambda q, p: float(sum(one * log(one / other) for one, other in zip(q, p, strict=True) if one)),
    ChiSquared: lambda q, p: float(((q - p) ** 2 / p).sum()),
}
ceilings = st.floats(1e-6, 0.999)


@pytest.mark.parametrize(
    ("shift", "labels"),
    [
        (TotalVariation(0.02), 99),
        (DensityRatio(2), 119),
        (DensityRatio(5), 299),
        (KL(0.01), 119),
        (ChiSquared(0.1), 221),
    ],
)
def test_labels_for_five_percent(shift: Shift, labels: int) -> None:
    promise = Guarantee(max_fpr=0.05, max_fnr=None, shift=shift).promises[0]
    assert min_samples(promise.at_calibration, 0.05) == labels
    assert promise.budget(labels).errors == 0
    assert promise.budget(labels - 1).errors is None
    assert promise.budget(labels - 1).missing == 1


def two_points(rate: float, ceiling: float) -> tuple[Masses, Masses]:
    return np.array([ceiling, 1.0 - ceiling]), np.array([rate, 1.0 - rate])


@pytest.mark.parametrize("shift", SOME, ids=str)
@pytest.mark.parametrize("ceiling", [0.001, 0.05, 0.4, 0.9])
def test_the_worst_case_is_attained_by_two_points(shift: Shift, ceiling: float) -> None:
    """At the rate that calibration must keep, a Q within the distance has the ceiling itself."""
    if isinstance(shift, TotalVariation) and shift.distance >= ceiling:
        assert shift.before(ceiling) <= 0.0
        return
    rate = shift.before(ceiling)
    if rate < 1e-30:
        assert isinstance(shift, KL)
        return
    found = DISTANCES[type(shift)](*two_points(rate, ceiling))
    assert found == pytest.approx(shift.size, rel=1e-6)


@pytest.mark.parametrize("shift", SOME, ids=str)
@settings(max_examples=examples(30))
@given(ceiling=ceilings)
def test_before_and_after_undo_each_other_and_never_in_their_own_favour(shift: Shift, ceiling: float) -> None:
    rate = shift.before(ceiling)
    if rate < 1e-15:
        return
    assert shift.after(rate) <= ceiling
    assert rate < ceiling
    # a rate that is a little higher is too high
    assert shift.after(rate * (1.0 + 1e-9)) > ceiling * (1.0 - 1e-15)
    assert shift.after(rate) == pytest.approx(ceiling, rel=1e-9)


@pytest.mark.parametrize("shift", SOME, ids=str)
@settings(max_examples=examples(30))
@given(pair=st.tuples(st.floats(1e-9, 1.0), st.floats(1e-9, 1.0)))
def test_what_a_rate_may_become_rises_with_it_and_stays_a_rate(
    shift: Shift, pair: tuple[float, float]
) -> None:
    low, high = sorted(pair)
    assert low <= shift.after(low) <= shift.after(high) <= 1.0


@pytest.mark.parametrize("kind", SHIFTS)
@settings(max_examples=examples(30))
@given(pair=st.tuples(st.floats(1e-6, 0.99), st.floats(1e-6, 0.99)))
def test_more_room_needs_less_at_calibration(kind: Any, pair: tuple[float, float]) -> None:
    small, large = (kind(1.0 + size if kind is DensityRatio else size) for size in sorted(pair))
    assert small.before(0.3) >= large.before(0.3)
    assert small.after(0.3) <= large.after(0.3)


@pytest.mark.parametrize("kind", SHIFTS)
@settings(max_examples=examples(30))
@given(
    masses=st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=2, max_size=4).filter(
        lambda pairs: sum(q for _, q in pairs) > 0
    )
)
def test_no_event_of_any_distribution_within_the_distance_is_likelier(
    kind: type, masses: list[tuple[int, int]]
) -> None:
    """Every event of every pair of distributions on a few points, at the distance that they have."""
    p, q = np.array(masses, dtype=float).T
    p, q = p / p.sum(), q / q.sum()
    distance = DISTANCES[kind](q, p) * (1.0 + 1e-12)
    if distance <= (1.0 + 1e-9 if kind is DensityRatio else 1e-9) or (
        kind is TotalVariation and distance >= 1.0
    ):
        return
    shift = kind(distance)
    for event in product([False, True], repeat=p.size):
        chosen = np.array(event)
        if 0.0 < p[chosen].sum() < 1.0:
            assert q[chosen].sum() <= shift.after(float(p[chosen].sum())) + 1e-12


@pytest.mark.parametrize("kind", SHIFTS)
@settings(max_examples=examples(30))
@given(pair=st.tuples(st.floats(1e-6, 0.99), st.floats(1e-6, 0.99)).filter(lambda two: two[0] != two[1]))
def test_the_farthest_shift_between_two_rates_is_exact(kind: Any, pair: tuple[float, float]) -> None:
    low, high = sorted(pair)
    found = kind.between(low, high)
    if found is None:  # nothing is left when it is rounded down
        assert high / low < 1.0 + 1e-7
        return
    assert found.after(low) <= nextafter(high, inf)
    assert kind.between(high, low) is None


def test_a_shift_that_rounds_to_none_is_none() -> None:
    assert KL.between(1e-6, nextafter(1e-6, 1.0)) is None
    close = nextafter(0.3, 1.0)
    assert DensityRatio.between(0.9, nextafter(0.9, 1.0)) is None
    assert TotalVariation.between(0.3, close) == TotalVariation(close - 0.3)


def test_kl_agrees_with_mpmath_where_it_is_extreme() -> None:
    for divergence, ceiling in ((1e-12, 0.05), (0.5, 0.05), (1e-13, 1e-12), (2.0, 0.99), (30.0, 0.999999)):
        rate = KL(divergence).before(ceiling)
        with mpmath.workdps(60):
            e, x = mpmath.mpf(ceiling), mpmath.mpf(rate)
            found = e * mpmath.log(e / x) + (1 - e) * mpmath.log((1 - e) / (1 - x))
            assert found >= divergence
            assert mpmath.almosteq(found, divergence, rel_eps=1e-3)


def test_a_divergence_too_small_for_its_digits_counts_as_a_larger_one() -> None:
    assert 0.05 > KL(5e-324).before(0.05) == KL(1e-24).before(0.05) > 0.05 - 1e-11
    assert KL(5e-324).after(0.05) >= 0.05
    assert KL(1e-24).before(1e-12) < 1e-12


def test_kl_reaches_one_where_the_event_can_be_all() -> None:
    assert KL(1.0).after(0.4) == 1.0  # -ln 0.4 = 0.916
    assert KL(0.9).after(0.4) < 1.0
    assert KL(0.9162907).after(0.4) == pytest.approx(1.0)
    assert ChiSquared(1.0).after(0.5) == 1.0


@pytest.mark.parametrize("size", [0.0, -1.0, nan, inf, True, "0.1", None, 1e16])
@pytest.mark.parametrize("kind", SHIFTS)
def test_what_is_no_distance_is_refused(kind: type, size: object) -> None:
    with pytest.raises(InputError, match=r"got"):
        kind(size)


def test_a_density_ratio_of_one_or_less_is_refused() -> None:
    assert "must be a number above 1" in refusal(lambda: DensityRatio(1.0))


def test_room_that_leaves_nothing_is_refused() -> None:
    assert "is too low to tolerate total variation up to 0.05" in refusal(
        lambda: Guarantee(max_fpr=0.05, shift=TotalVariation(0.05))
    )
    refusal(lambda: Guarantee(max_fpr=0.05, shift=KL(10.0)))
    assert Guarantee(max_fpr=0.05, max_fnr=0.5, shift=(None, TotalVariation(0.3))).fpr == Guarantee().fpr


@pytest.mark.parametrize(
    "shift", ["tv", 0.02, (TotalVariation(0.01),), (1, 2), [TotalVariation(0.01)] * 3, TotalVariation]
)
def test_what_is_no_shift_is_refused(shift: object) -> None:
    assert "shift must be one of TotalVariation, DensityRatio, KL, ChiSquared" in refusal(
        Guarantee, shift=shift
    )


def test_a_radius_is_said_in_words() -> None:
    words = (
        "total variation up to 0.05, or a density ratio up to 2, or a Kullback-Leibler divergence"
        " up to 0.02065, or a chi-squared divergence up to 0.05263"
    )
    found = calibrate(range(100), range(200, 300)).radius(0.1)
    assert str(found) == f"FPR <= 0.1: {words}\nFNR <= 0.1: {words}"


def test_a_pair_is_for_normal_and_anomalous_and_a_side_without_a_promise_has_no_room() -> None:
    asked = Guarantee(shift=[TotalVariation(0.01), KL(0.01)])  # type: ignore[arg-type]  # a list will do
    assert asked.shift == (TotalVariation(0.01), KL(0.01))
    assert [one.tolerance for one in asked.promises] == [
        "total variation up to 0.01",
        "a Kullback-Leibler divergence up to 0.01",
    ]
    assert Guarantee(max_fpr=None, shift=KL(0.01)).shift == (None, KL(0.01))
    assert Guarantee(max_fpr=None, shift=(KL(0.01), None)) == Guarantee(max_fpr=None)
