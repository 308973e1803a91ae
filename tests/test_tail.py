from math import nextafter

import pytest

from pac_wrap.tail import cdf, cdf_at_most
from strategies import around, exact_tail, tail_60

PROBABILITIES = (5e-324, 1e-12, 0.01, 0.05, 0.3, 0.5, 0.9, 1 - 1e-12)


@pytest.mark.parametrize("p", PROBABILITIES)
def test_both_tails_agree_with_exact_fractions(p: float) -> None:
    for n in (1, 2, 7, 30):
        for k in range(n):
            below = exact_tail(k, n, p)
            assert cdf(k, n, p) == pytest.approx(float(below), rel=1e-13)


def test_all_n_errors_or_fewer_are_certain() -> None:
    assert cdf(0, 0, 0.3) == cdf(5, 5, 0.3) == cdf(9, 5, 0.3) == 1.0
    assert not cdf_at_most(5, 5, 0.3, nextafter(1.0, 0.0))


@pytest.mark.parametrize("n", [1, 2, 5, 20, 60])
@pytest.mark.parametrize("p", PROBABILITIES)
def test_delta_beside_the_tail_is_decided_by_the_fraction(n: int, p: float) -> None:
    for k in {0, n // 3, n // 2, n - 1}:
        tail = exact_tail(k, n, p)
        for delta in around(tail):
            if 0.0 < delta < 1.0:
                assert cdf_at_most(k, n, p, delta) == (tail <= delta), (k, delta)


@pytest.mark.parametrize(
    ("k", "n", "p"),
    [
        (0, 10**4, 1e-4),
        (463, 10**4, 0.05),
        (4900, 10**4, 0.5),
        (9995, 10**4, 0.9999),
        (3, 10**6, 1.4883312320326456e-05),
        (49_640, 10**6, 0.05),
        (700_500, 10**6, 0.7),
        (17, 10**8, 2.245841812034951e-07),
        # SciPy's tail is off by 1.3e-11 to 5.2e-11 in the next four
        (14, 5 * 10**8, 7.479394811780778e-08),
        (4, 10**9, 7.56075592387493e-09),
        (31, 10**9, 4.418010988313148e-08),
        (2, 2 * 10**9, 4.015008650934519e-09),
        (49_988_000, 10**9, 0.05),
    ],
)
def test_delta_beside_the_tail_is_decided_by_60_digits(k: int, n: int, p: float) -> None:
    tail = tail_60(k, n, p)
    for delta in around(tail):
        assert cdf_at_most(k, n, p, delta) == (tail <= delta), delta


@pytest.mark.parametrize("n", [1, 3, 99, 1999, 2001, 99_999, 9_999_999, 999_999_999])
def test_the_median_of_a_fair_coin_is_exactly_one_half(n: int) -> None:
    assert cdf_at_most((n - 1) // 2, n, 0.5, 0.5)
    assert not cdf_at_most((n - 1) // 2, n, 0.5, nextafter(0.5, 0.0))


def test_powers_of_two_are_equal_down_to_the_smallest_double() -> None:
    assert cdf_at_most(0, 1074, 0.5, 5e-324)
    assert not cdf_at_most(0, 1073, 0.5, 5e-324)
    assert not cdf_at_most(1, 1074, 0.5, 5e-324)
    assert cdf_at_most(0, 20, 1 - 2.0**-53, 2.0**-1060)
    assert not cdf_at_most(0, 20, 1 - 2.0**-53, nextafter(2.0**-1060, 0.0))
