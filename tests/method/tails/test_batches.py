"""How many of the next points reach a threshold: counted over all orders of the points, in whole numbers."""

from fractions import Fraction
from itertools import accumulate, combinations
from math import comb

import numpy as np
import pytest

from pac_wrap import InputError
from pac_wrap.tails.batches import MOST_PAIRS, batch_envelope, batch_failure, batch_tail
from support.slow import slow_but


def above(n: int, m: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return for each order of n + m points how many of the m lie above the 1st, 2nd, ... of the n."""
    orders = [np.array(places) - np.arange(n) for places in combinations(range(n + m), n)]
    return np.array(orders).reshape(-1, n)


def counted(limits: list[int], m: int) -> Fraction:
    """Return the chance that some number exceeds its limit: one less the sequences below all limits."""
    ways = [1] * (limits[0] + 1)
    for limit in limits[1:]:
        more = [0] * (limit + 1 - len(ways))
        ways = [*accumulate([*ways, *more])]
    return 1 - Fraction(sum(ways), comb(len(limits) + m, m))


def exceeded(j: int, b: int, n: int, m: int) -> Fraction:
    """Return P(M_j > b): at most j - 1 of the j + b largest are calibration points."""
    ways = sum(comb(n, i) * comb(m, j + b - i) for i in range(j))
    return Fraction(ways, comb(n + m, j + b)) if b < m else Fraction(0)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 4), (5, 2), (4, 4), (1, 6)])
def test_the_tail_is_the_share_of_orders(n: int, m: int) -> None:
    orders = above(n, m)
    for k in range(n):
        for v in range(1, m + 1):
            share = Fraction(int((orders[:, k] >= v).sum()), len(orders))
            assert batch_tail(v, n, k, m) == pytest.approx(float(share), rel=1e-14)
        assert batch_tail(m + 1, n, k, m) == 0.0
        assert batch_tail(0, n, k, m) == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_a_failure_is_counted_over_all_sequences_and_rounded_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 7))
    for _ in range(20):
        limits = np.sort(rng.integers(0, m + 1, n))
        share = Fraction(int((above(n, m) > limits).any(axis=1).sum()), comb(n + m, n))
        assert counted(limits.tolist(), m) == share
        found = batch_failure(n, m, np.append(limits, m))
        assert Fraction(found) >= share
        assert found == pytest.approx(float(share), rel=1e-13)
    assert batch_failure(n, m, np.full(n + 1, m)) == 0.0


SIZES = [(6, 5, 0.3), (1, 3, 0.51), (20, 15, 0.05), (40, 25, 0.05), (25, 60, 0.01)]


@pytest.mark.parametrize(("n", "m", "delta"), slow_but(3, SIZES, several=True))
def test_the_envelope_is_that_of_the_largest_level_of_four_digits(n: int, m: int, delta: float) -> None:
    found = batch_envelope(n, m, delta).tolist()
    assert len(found) == n + 1
    assert found[-1] == m
    assert counted(found[:-1], m) <= delta
    # the tails just above and just below the level; at the next number of four digits it would fail
    least = max(exceeded(j, b, n, m) for j, b in enumerate(found[:-1], 1))
    steps = [exceeded(j, b - 1, n, m) for j, b in enumerate(found[:-1], 1) if b > 0]
    level = min(steps)
    assert least < level
    lower = [min(b for b in range(m + 1) if exceeded(j, b, n, m) <= level) for j in range(1, n + 1)]
    digit = Fraction(10) ** (-3 if level >= Fraction(1, 10) else -4)
    assert counted(lower, m) > delta or level > delta or level - least < digit


def test_no_next_points_and_too_many_of_them() -> None:
    assert batch_envelope(3, 0).tolist() == [0, 0, 0, 0]
    with pytest.raises(InputError, match="use fewer calibration points"):
        batch_envelope(MOST_PAIRS, 2)
    with pytest.raises(InputError, match="k must be less than n"):
        batch_tail(1, 5, 5, 3)
