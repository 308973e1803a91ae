"""How a delta is shared: numbers of few digits, the same on every machine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.base.floats import shared_together
from pac_wrap.tails.bounds import (
    Sharing,
    common_share,
    equal_deltas,
    number_at,
    place_among,
    split_confidence,
    tails_at,
)
from pac_wrap.tails.levels import first_success, local_delta, look_budgets


def test_the_shares_are_what_they_were() -> None:
    assert split_confidence(0.95, Sharing((126,), (0.05,)), Sharing((59,), (0.05,))) == (
        0.0015822029,
        0.048515514,
    )
    assert equal_deltas(0.95) == 0.025320565
    assert common_share(np.array([100, 100]), 0.05, 0.05, 0.05) == 0.03708
    assert round(shared_together(0.05, 2), 4) == 0.0253
    assert common_share(np.array([100, 20]), 0.05, 0.05, 0.05) == 0.05
    tails = tails_at(np.array([58, 59, 100, 2000]), 0.05, 0.05)
    assert tails.round(6).tolist() == [0.0, 0.048495, 0.037081, 0.042315]


def test_the_looks_have_the_budgets_they_had() -> None:
    assert look_budgets(0.05, 0.0074, [80, 100, 200]) == [-1, 0, 2]
    assert first_success(0.5, [1, 2], [-1, 0]).tolist() == [0.0, 0.25]
    assert local_delta(0.05, 0.05, 20, 2000) == 0.0074044621
    assert local_delta(0.05, 0.05, 2000, 2000) == 0.05


@pytest.mark.parametrize("digits", [4, 8])
@given(value=st.floats(1e-300, 1e300))
def test_places_are_those_of_numbers_rounded_down(value: float, digits: int) -> None:
    place = place_among(value, digits)
    assert number_at(place, digits) <= value < number_at(place + 1, digits)
    assert place_among(number_at(place, digits), digits) == place
