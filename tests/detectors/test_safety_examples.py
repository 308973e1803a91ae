import numpy as np

from pac_wrap.detectors.safety import Tolerance, TrainingRows, repeated_rows


def test_tolerance_around() -> None:
    assert (Tolerance.around(np.array([0.0, 1.0, 2.0, 3.0, np.inf]), 0.5).spread) == (1.0)


def test_repeated_rows() -> None:
    assert (repeated_rows(TrainingRows.of(np.array([[1.0], [2.0]])), np.array([[2.0], [3.0]]))[0][:48]) == (
        "1 of 2 calibration rows equal a training row: no"
    )
