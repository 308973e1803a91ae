import numpy as np

from pac_wrap.series.windows import as_positions, windows


def test_as_positions() -> None:
    assert as_positions([0, 60, 120]).tolist() == [0, 60, 120]


def test_windows() -> None:
    assert windows(10, length=2, every=4).starts.tolist() == [0, 4, 8]
    late = windows([np.nan, 0.5, 0.1, 0.2, 0.3], length=1, every=2)
    assert (late.starts.tolist(), late.dropped) == ([2, 4], 1)
    found = windows(8, length=2, every=3)
    assert found.labels([0, 0, 1, 0, 1, 0, 0, 0]).tolist() == [0, 1, 0]
    assert found.scores([1, 5, 9, 2, 3, 9, 4, 0], reduce="mean").tolist() == [3.0, 2.5, 2.0]
