"""Autocorrelations and numbers of points against direct sums."""

from math import isnan, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.errors import InputError
from pac_wrap.series import Dependence, dependence


def direct(values: list[float], positions: list[int]) -> tuple[list[float], list[int]]:
    """Return autocorrelation and number of pairs at each lag, by looking at every pair."""
    mean = sum(values) / len(values)
    variance = sum((x - mean) ** 2 for x in values) / len(values)
    products: list[list[float]] = [[] for _ in range(positions[-1] - positions[0] + 1)]
    for i, x in enumerate(values):
        for y, place in zip(values[i:], positions[i:], strict=True):
            products[place - positions[i]].append((x - mean) * (y - mean))
    found = [sum(row) / len(row) / variance if row else float("nan") for row in products]
    return found, [len(row) for row in products]


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    """Draw values that are not constant, on a grid with holes."""
    kind = draw(st.sampled_from([st.integers(0, 1).map(float), st.integers(-50, 50).map(lambda x: x / 7)]))
    values = draw(st.lists(kind, min_size=2, max_size=40).filter(lambda x: min(x) < max(x)))
    steps = draw(st.lists(st.integers(1, 4), min_size=len(values), max_size=len(values)))
    return values, np.cumsum(steps).tolist()


@given(sequences())
def test_autocorrelation_is_the_direct_sum_over_the_pairs_there_are(
    drawn: tuple[list[float], list[int]],
) -> None:
    values, positions = drawn
    expected, _ = direct(values, positions)
    np.testing.assert_allclose(dependence(values, positions).autocorrelation, expected, rtol=0, atol=1e-10)
    for max_lag in (0, 3, len(expected) + 2):
        found = dependence(values, positions, max_lag).autocorrelation
        np.testing.assert_allclose(found, expected[: max_lag + 1], rtol=0, atol=1e-10)


@given(sequences())
def test_the_number_of_points_follows_from_the_direct_sums(drawn: tuple[list[float], list[int]]) -> None:
    values, positions = drawn
    rho, pairs = direct(values, positions)
    found = dependence(values, positions)
    n = len(values)
    there = [k for k in range(len(rho)) if pairs[k]]
    terms = [pairs[k] / n * rho[k] for k in there]
    total, k = 0.0, 0
    while k < len(terms) and sum(terms[k : k + 2]) > 1e-10:
        total += sum(terms[k : k + 2])
        k += 2
    assert found.effective == pytest.approx(n / max(2 * total - 1, 1), rel=1e-8)
    assert 1 <= found.effective <= found.n == n
    bound = [2 / sqrt(pairs[k]) for k in there]
    near = [k for k, most in zip(there, bound, strict=True) if k and abs(rho[k]) <= most + 1e-10]
    surely = [k for k, most in zip(there, bound, strict=True) if k and abs(rho[k]) <= most - 1e-10]
    assert found.lag in {*near[:1], *surely[:1]} or (not surely and found.lag == there[-1] + 1)
    assert found.misleading == (found.effective < n / 2)


@given(sequences(), sequences())
def test_series_that_were_joined_are_not_compared_beyond_the_last_lag(
    first: tuple[list[float], list[int]], second: tuple[list[float], list[int]]
) -> None:
    values = first[0] + second[0]
    # each series spans 160 steps at most
    near, far = (
        dependence(values, first[1] + [place + begin for place in second[1]], max_lag=160)
        for begin in (400, 700)
    )
    assert near.effective == pytest.approx(far.effective, rel=1e-8)
    assert near.lag == far.lag <= 161
    np.testing.assert_allclose(near.autocorrelation, far.autocorrelation, rtol=0, atol=1e-10)


def test_points_further_apart_than_the_last_lag_show_no_dependence() -> None:
    found = dependence([0, 1, 0], [0, 10, 20], max_lag=5)
    assert (found.effective, found.lag) == (3.0, 1)


@given(sequences(), st.floats(-10, 10), st.floats(1e-3, 1e3), st.integers(0, 9))
def test_scale_origin_and_start_do_not_matter(
    drawn: tuple[list[float], list[int]], origin: float, scale: float, start: int
) -> None:
    values, positions = drawn
    moved = scale * np.array(values) + origin
    found = dependence(moved, np.array(positions) + start)
    np.testing.assert_allclose(
        found.autocorrelation, dependence(values, positions).autocorrelation, atol=1e-8
    )


def test_positions_on_a_coarser_grid_change_the_unit_of_the_lag_only() -> None:
    values = np.repeat([0, 1, 0, 0], 25)
    fine, coarse = dependence(values, 60 * np.arange(100)), dependence(values)
    assert fine.effective == pytest.approx(coarse.effective, rel=1e-12)
    assert fine.lag == 60 * coarse.lag


def test_enormous_and_tiny_numbers_stay_finite() -> None:
    for scale in (1e308, 5e-324):
        found = dependence(scale * np.array([1.0, 0.0, 1.0, 0.0]))
        np.testing.assert_allclose(found.autocorrelation, [1, -1, 1, -1])


@pytest.mark.parametrize("values", [[0], [1, 1, 1], [0.1] * 7])
def test_a_constant_shows_no_dependence(values: list[float]) -> None:
    found = dependence(values)
    assert (found.n, found.effective, found.lag) == (len(values), len(values), 1)
    assert found.autocorrelation[0] == 1.0
    assert all(isnan(value) for value in found.autocorrelation[1:])
    assert not found.misleading


def test_a_sequence_that_never_comes_to_rest_has_the_whole_length_as_lag() -> None:
    # it alternates, the more strongly the closer to its ends, where there are few pairs
    place = np.arange(400)
    values = (-1.0) ** place * (np.minimum(place + 1, 400 - place) / 400) ** -0.25
    found = dependence(values)
    assert (np.abs(found.autocorrelation[1:]) > 2 / np.sqrt(400 - place[1:])).all()
    assert (found.lag, found.effective) == (400, 400.0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([],), "indicator is empty; pass at least one point"),
        (([0, np.inf],), "indicator must be finite, got infinite values; pass exceedances"),
        (([0, np.nan],), "indicator must not contain NaN"),
        (([[0, 1]],), "indicator must be one-dimensional"),
        (([0, 1], [0]), "indicator and positions must have the same length, got 2 and 1"),
        (([0, 1], [1, 0]), "positions must increase, but number 1 is 0 after 1; sort"),
        (([0, 1], [0, 0]), "positions must increase, but number 1 is 0 after 0; sort"),
        (([0, 1], [0.0, 1.0]), "positions must be whole step numbers, got dtype float64; count steps"),
        (([0, 1], [-1, 0]), r"positions must lie between 0 and 2\^62, got -1 to 0"),
        (([0, 1], [[0], [1]]), r"positions must be one-dimensional, .* got shape \(2, 1\)"),
        (([0, 1], []), "indicator and positions must have the same length, got 2 and 0"),
        (
            ([0, 1], [0, 2**30]),
            "must span at most 67,108,864 units of the grid, got 1,073,741,825; count in units",
        ),
    ],
)
def test_bad_sequences_are_refused(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(InputError, match=text):
        dependence(*arguments)


def test_the_span_is_limited_wherever_it_begins() -> None:
    # the shortest span that is too long, and a short one that begins beyond it
    for start in (0, 5, 2**40):
        with pytest.raises(InputError, match="at most 67,108,864 units of the grid, got 67,108,865"):
            dependence([0, 1], [start, start + 2**26])
    assert dependence([0, 1, 0], [2**26, 2**26 + 1, 2**26 + 2]).n == 3


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match="max_lag must be a whole number, 0 or more, got -1"):
        dependence([0, 1], max_lag=-1)


def test_half_of_the_points_is_not_yet_misleading() -> None:
    assert not Dependence(10, 5.0, 2, np.ones(1)).misleading
    assert Dependence(10, 4.99, 2, np.ones(1)).misleading
