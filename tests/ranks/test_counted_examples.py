import numpy as np

from pac_wrap.ranks.counted import Grid, Spread, least_auc


def test_grid() -> None:
    assert ([piece.first for piece in Grid((0.0, 1.0), (4,)).pieces]) == ([1, 5])


def test_least_auc() -> None:
    low, high = Spread.estimated(np.array([1.0, 2.0]), 1.0), Spread.estimated(np.array([2.0, 3.0]), 1.0)
    assert (least_auc(low, high)) == (0.875)
