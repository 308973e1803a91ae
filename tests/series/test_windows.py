"""Windows against a plain loop."""

from math import fsum, inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.series import Points, window_points
from support.strategies import Floats, score, scores


def windows(values: Any, length: Any, every: Any, reduce: Any = "max", labels: Any = None) -> Points:
    """Return the windows of a series whose steps are normal unless labels say otherwise."""
    labels = np.zeros(np.size(values), dtype=int) if labels is None else labels
    return window_points(values, labels, length=length, every=every, reduce=reduce)


def loop(steps: int, length: int, every: int, warm_up: int = 0) -> tuple[list[int], int]:
    """Return the starts of the windows, and how many were dropped, one step at a time."""
    starts, dropped = [], 0
    for start in range(0, steps, every):
        if start + length > steps:
            break
        if start < warm_up:
            dropped += 1
        else:
            starts.append(start)
    return starts, dropped


@st.composite
def grids(draw: st.DrawFn) -> tuple[int, int, int]:
    """Draw a number of steps, a length and a period that leave at least one window."""
    every = draw(st.integers(1, 9))
    length = draw(st.integers(1, every))
    return draw(st.integers(length, 40)), length, every


@given(grids(), st.data())
def test_windows_are_those_of_a_plain_loop(grid: tuple[int, int, int], data: st.DataObject) -> None:
    steps, length, every = grid
    last = loop(*grid)[0][-1]
    warm_up = data.draw(st.integers(0, last))
    values = data.draw(scores(steps, steps))
    values[:warm_up] = nan
    found = windows(values, length, every)
    starts, dropped = loop(*grid, warm_up)
    assert (found.length, found.every, found.reduce) == (length, every, "max")
    assert found.longest == dropped + len(starts)
    assert found.positions.tolist() == starts
    assert found.positions.dtype == np.intp
    cut = [values[start : start + length].tolist() for start in starts]
    assert found.scores.tolist() == [max(row) for row in cut]
    assert windows(values, length, every, "last").scores.tolist() == [row[-1] for row in cut]
    assert found.scores.dtype == np.float64


@given(grids(), st.data())
def test_a_window_is_anomalous_if_any_of_its_steps_is(
    grid: tuple[int, int, int], data: st.DataObject
) -> None:
    steps, length, every = grid
    labels = data.draw(st.lists(st.integers(0, 1), min_size=steps, max_size=steps))
    values = np.zeros(steps)
    values[: data.draw(st.integers(0, loop(*grid)[0][-1]))] = nan
    found = windows(values, length, every, labels=labels)
    assert found.labels.tolist() == [int(any(labels[i : i + length])) for i in found.positions]
    assert found.labels.dtype == np.int8
    marked = windows(values, length, every, labels=np.array(labels, dtype=bool))
    assert marked.labels.tolist() == found.labels.tolist()


@given(st.integers(1, 9), st.data())
def test_the_mean_of_a_window_is_right_and_between_its_extremes(length: int, data: st.DataObject) -> None:
    finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e308, 5e-324, 0.1])
    rows = data.draw(st.lists(st.lists(finite, min_size=length, max_size=length), min_size=1, max_size=6))
    values = np.array(rows)
    means = windows(values.ravel(), length, length, "mean").scores
    for row, mean in zip(rows, means, strict=True):
        assert min(row) <= mean <= max(row)
        largest = max(abs(value) for value in row)
        assert mean == pytest.approx(
            fsum(value / length for value in row), rel=0, abs=1e-14 * largest + 1e-322
        )


def test_a_mean_keeps_one_infinity() -> None:
    found = windows([1.0, inf, -inf, 2.0], 2, 2, "mean").scores
    assert found.tolist() == [inf, -inf]


@given(st.lists(score, min_size=1, max_size=20))
def test_windows_of_one_step_are_the_steps(values: list[float]) -> None:
    assert windows(values, 1, 1).positions.tolist() == list(range(len(values)))
    for reduce in ("max", "mean", "last"):
        assert windows(values, 1, 1, reduce).scores.tolist() == values


def test_first_15_of_every_60() -> None:
    found = windows(np.zeros(10_000), 15, 60)
    assert found.positions.size == 167
    assert found.positions[:3].tolist() == [0, 60, 120]
    # the last window, at 9960, ends before the series does
    assert windows(np.zeros(9_974), 15, 60).positions.size == 166


def test_results_do_not_share_memory_with_the_series() -> None:
    values = np.arange(6.0)
    found = windows(values, 2, 3, "last").scores
    found[:] = 9.0
    assert values.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            (range(10), 15, 60),
            "at least one window long, got 10 steps and windows of 15; pass a longer series",
        ),
        (([0.5], 2, 2), "at least one window long, got 1 steps and windows of 2"),
        (([], 1, 1), "at least one window long, got 0 steps and windows of 1"),
        ((range(10), 4, 3), "length must not exceed every, .* got length = 4 and every = 3; raise every"),
        ((range(10), 0, 3), "length must be a whole number, 1 or more, got 0"),
        ((range(10), -1, 3), "length must be a whole number, 0 or more, got -1"),
        ((range(10), 1, 1.5), "every must be a whole number, .* got 1.5"),
        ((10, 1, 1), r"series must be one-dimensional, .* got shape \(\)"),
        ((np.zeros((3, 2)), 1, 1), r"series must be one-dimensional, .* got shape \(3, 2\)"),
        ((["a"], 1, 1), "series must be real numbers, got dtype <U1"),
        (
            ([nan, 1.0, nan, 2.0, nan], 1, 1),
            "series must not contain NaN after the warm-up, got 2 of 5, the first at position 2; cut",
        ),
        (([nan, nan], 1, 1), "no whole window after its warm-up: its first 2 of 2 steps are NaN"),
        (([nan, nan, nan, 1.0, 1.0], 1, 2), None),
        (([nan, nan, nan, 1.0], 2, 2), "the last window begins at step 2; pass a longer series"),
    ],
)
def test_impossible_windows_are_refused(arguments: tuple[Any, Any, Any], text: str | None) -> None:
    if text is None:
        assert windows(*arguments).positions.tolist() == [4]
    else:
        with pytest.raises(ValueError, match=text):
            windows(*arguments)


def test_scores_that_cannot_be_reduced_are_refused() -> None:
    with pytest.raises(ValueError, match="inf and -inf in 1 windows, the first at step 3"):
        windows([0.0, 0.0, 0.0, inf, -inf, 0.0], 2, 3, "mean")
    with pytest.raises(ValueError, match="reduce must be one of 'max', 'mean', 'last'; got 'min'"):
        windows([0.0], 1, 1, "min")


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([0] * 7, "step_labels and the series must have the same length, got 7 and 6"),
        ([0, 1, 2, 0, 0, 0], r"step_labels must be 0 \(normal\) or 1 \(anomalous\), got 2"),
        (np.zeros((6, 1)), "step_labels must be one-dimensional"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        windows(range(6), 2, 3, labels=labels)


def test_large_series_are_cut_without_a_copy() -> None:
    values: Floats = np.zeros(6_000_000)
    assert windows(values, 15, 60).scores.shape == (100_000,)


def test_windows_by_example() -> None:
    late = windows([nan, 0.5, 0.1, 0.2, 0.3], length=1, every=2)
    assert (late.positions.tolist(), late.longest) == ([2, 4], 3)
    found = windows([1, 5, 9, 2, 3, 9, 4, 0], 2, 3, "mean", [0, 0, 1, 0, 1, 0, 0, 0])
    assert found.labels.tolist() == [0, 1, 0]
    assert found.scores.tolist() == [3.0, 2.5, 2.0]
