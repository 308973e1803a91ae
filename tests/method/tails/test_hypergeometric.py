"""The hypergeometric tail against every way to draw, counted in whole numbers: the nearest double."""

from math import comb
from time import process_time
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from pac_wrap import Guarantee
from pac_wrap.tails import bounds
from pac_wrap.tails.bounds import hypergeometric_cdf
from pac_wrap.validation import independent_violation
from support.examples import examples


def counted(k: int, n: int, marked: int, total: int) -> float:
    """Return the share of all ways to draw n points that hold at most k marked ones."""
    ways = sum(comb(marked, i) * comb(total - marked, n - i) for i in range(min(k, n) + 1))
    return ways / comb(total, n)


def test_every_small_case_is_the_nearest_double() -> None:
    cases = [
        (k, n, marked, total)
        for total in range(1, 11)
        for n in range(total + 1)
        for marked in range(total + 1)
        for k in range(total + 2)
    ]
    assert len(cases) == 4_860
    assert [hypergeometric_cdf(*case) for case in cases] == [counted(*case) for case in cases]


@st.composite
def draws(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Draw counts of up to 1,500 points, mostly near the middle of their distribution."""
    total = draw(st.integers(1, 1500))
    n, marked = draw(st.integers(0, total)), draw(st.integers(0, total))
    middle = n * marked // total
    near = st.integers(-30, 30).map(lambda by: max(0, middle + by))
    return draw(near | st.integers(0, total)), n, marked, total


@settings(max_examples=examples(300))
@given(draws())
@example((700, 750, 750, 1500))  # 1.0
@example((0, 549, 549, 1100))  # below the least double
@example((0, 547, 547, 1100))  # 1e-316, subnormal
def test_larger_cases_are_the_nearest_double(case: tuple[int, int, int, int]) -> None:
    assert hypergeometric_cdf(*case) == counted(*case)


@settings(max_examples=examples(50))
@given(draws())
def test_where_the_sums_leave_doubt_every_way_is_counted(case: tuple[int, int, int, int]) -> None:
    k, n, marked, total = case
    assume(max(0, n + marked - total) <= k < min(marked, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "_DOUBT", 3)  # sums that may be off by an eighth leave doubt
        assert hypergeometric_cdf(*case) == counted(*case)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_half_way_between_two_doubles_the_even_one_is_nearest(n: int) -> None:
    # 1 - n / 2^54 has one digit more than a double
    assert hypergeometric_cdf(0, n, 1, 2**54) == counted(0, n, 1, 2**54)


LARGE: list[Any] = [
    (7_800, 160_000, 9_900, 200_000),
    (8_000, 160_000, 10_000, 200_000),
    (8_300, 160_000, 10_000, 200_000),
    (7_000, 160_000, 10_000, 200_000),
    (3_000, 160_000, 10_000, 200_000),
    (9_900, 160_000, 10_000, 200_000),
]


@pytest.mark.parametrize("case", LARGE)
def test_large_cases_agree_with_scipy(case: tuple[int, int, int, int]) -> None:
    k, n, marked, total = case
    expected = float(hypergeom.cdf(k, total, marked, n))
    assert hypergeometric_cdf(*case) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_large_cases_take_milliseconds() -> None:
    asked = Guarantee(0.05, 0.05, 0.05, 0.05)
    start = process_time()
    for _ in range(5):
        found = independent_violation((160_000, 160_000), (40_000, 160_000), asked)
    # each took 2.9 s when every way was counted; a slow machine is forgiven
    assert process_time() - start < 0.5
    assert found.fpr is not None
    assert 0.05 < found.fpr < 0.25
