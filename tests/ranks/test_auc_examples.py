import numpy as np

from pac_wrap.ranks.memory import auc, breaks_off, is_upside_down, spaced_positions


def test_auc() -> None:
    assert (auc(np.array([1.0, 2.0]), np.array([2.0, 3.0]))) == (0.875)


def test_spaced_positions() -> None:
    assert (spaced_positions(3).tolist()) == ([0, 1, 2])


def test_is_upside_down() -> None:
    assert (is_upside_down(0.1, 60, 20), is_upside_down(0.45, 60, 20), is_upside_down(0.0, 1000, 6)) == (
        (True, False, False)
    )


def test_breaks_off() -> None:
    rng = np.random.default_rng(0)
    normal, anomalous = rng.normal(0, 1, 10_000), rng.normal(2, 1, 1000)
    assert (breaks_off(anomalous, normal) is None, breaks_off(anomalous[anomalous >= 1.6], normal)) == (
        (True, (544, 1.6047406620251254))
    )
