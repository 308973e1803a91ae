import numpy as np

from pac_wrap.detectors.training import calibrating, divide_classes
from pac_wrap.method.promise import Guarantee


def test_calibrating() -> None:
    promise = Guarantee(max_fnr=0.05).fnr  # 59 labels certify it
    assert ([calibrating(n, "auto", promise) for n in (200, 100, 66, 65)]) == ([100, 59, 59, 32])


def test_divide_classes() -> None:
    assert (divide_classes(np.array(["a", "b", "a", "b"]), 0.5, np.random.RandomState(0))[1].size) == (2)
