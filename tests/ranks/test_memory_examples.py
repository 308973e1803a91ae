import numpy as np

from pac_wrap.ranks.memory import (
    RankedInMemory,
    _select,
    count_below,
    kth_between,
    kth_largest,
    kth_smallest,
    scattered_positions,
)


def test_kth_smallest() -> None:
    assert (kth_smallest(np.array([3.0, 1.0, 2.0]), 2)) == (2.0)


def test_kth_largest() -> None:
    assert (kth_largest(np.array([3.0, 1.0, 2.0]), 1)) == (3.0)


def test_count_below() -> None:
    assert (count_below(np.array([3.0, 1.0, 2.0]), 3.0)) == (2)


def test_kth_between() -> None:
    assert (kth_between(np.array([1.0, 2.0, 3.0]), np.array([2.5, 4.0]), 2.0, 4.0, 0.5)) == (2.5)


def test_select() -> None:
    assert (_select(np.arange(200_000.0)[::-1], 5_000)) == (4999.0)


def test_rankedinmemory() -> None:
    normal = RankedInMemory(np.array([3.0, 1.0, 2.0]), "normal", 3)
    assert (normal.kth_smallest(2), normal.count_below(2.0), normal.size) == ((2.0, 1, 3))


def test_scattered_positions() -> None:
    assert (scattered_positions(100, 4).tolist()) == ([0, 61, 23, 85])
