"""Time stamps: what is regular passes, and the first that is not is named."""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.series import check_times
from support.strategies import refusal


@pytest.mark.parametrize(
    "times",
    [
        [],
        [5.0],
        [3, 5, 7],
        np.arange(5, dtype=np.uint8),
        np.cumsum([10**7, 10**7 - 1, 10**7, 10**7 + 1], dtype=np.uint64),
        np.arange(1000) * 0.1,
        1.7e9 + np.arange(1000) * 0.01,
        np.arange(0, 10, 2, dtype="datetime64[m]"),
        np.array(["2024-01", "2024-02", "2024-03"], dtype="datetime64[M]"),
        np.cumsum(1.0 + 1e-7 * np.sin(np.arange(100.0))),
    ],
)
def test_regular_times_pass(times: Any) -> None:
    check_times(times)


@given(st.integers(2, 30), st.integers(1, 28), st.sampled_from([-3.0, -1.0, -0.5, 1e-5, 2.0]))
def test_the_first_irregular_time_is_named(size: int, at: int, shift: float) -> None:
    times = np.arange(float(max(size, at + 4)))
    times[at + 1 :] += shift
    text = refusal(lambda: check_times(times))
    kind = "sorted" if shift < -1 else "distinct" if shift == -1 else "regular"
    assert f"must be {kind}, but position {at + 1} is {times[at + 1]} after {times[at]}" in text


MINUTES: NDArray[np.datetime64] = np.array(["2024-01-01T00:00", "2024-01-01T00:01"], dtype="datetime64[m]")


@pytest.mark.parametrize(
    ("times", "text"),
    [
        (
            np.append(MINUTES, MINUTES[-1] + np.timedelta64(2, "m")),
            "position 2 is 2024-01-01T00:03 after 2024-01-01T00:01, .* 1 min",
        ),
        (np.append(MINUTES, np.datetime64("NaT", "m")), "timestamps must be finite, got NaT at position 2"),
        ([0.0, inf], "timestamps must be finite, got inf at position 1"),
        (["2024-01-01"], "timestamps must be numbers or datetime64, got dtype <U10; convert them"),
        ([[0, 1]], r"timestamps must be one-dimensional, one per step, got shape \(1, 2\)"),
    ],
)
def test_other_times_are_refused(times: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        check_times(times)
