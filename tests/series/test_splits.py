"""Divisions of a series: nothing is lost, nothing is shared, and the gap is kept."""

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.errors import InputError
from pac_wrap.series import SeriesSplit, window_points
from support.points import points_at
from support.strategies import refusal

SEED = st.integers(0, 2**32)
SHARE = st.sampled_from([0.01, 0.2, 0.5, 0.99])


def expected_size(share: float, among: int) -> int:
    return min(max(round(share * among), 1), among - 1)


@given(st.lists(st.integers(0, 1), max_size=60), SHARE, SEED)
def test_random_parts_cover_every_point_and_take_their_share(
    drawn: list[int], share: float, seed: int
) -> None:
    labels = np.array([0, 1, 0, 1, *drawn])
    points = points_at(range(labels.size), labels)
    division = points.divided(np.random.default_rng(seed), calibration=share)
    assert sorted([*division.calibration, *division.test]) == list(range(labels.size))
    assert (np.diff(division.calibration) > 0).all()
    assert (np.diff(division.test) > 0).all()
    for kind in (0, 1):
        among = int((labels == kind).sum())
        assert (labels[division.calibration] == kind).sum() == expected_size(share, among)
    assert (division.kind, division.gap, division.block) == ("random", 0, None)
    again = points.divided(np.random.default_rng(seed), calibration=share)
    assert again.calibration.tolist() == division.calibration.tolist()


@st.composite
def series(draw: st.DrawFn) -> tuple[NDArray[np.intp], NDArray[np.int_], dict[str, int]]:
    """Draw positions with holes, labels, and numbers that a split may accept."""
    steps = draw(st.lists(st.integers(1, 5), min_size=8, max_size=80))
    positions = np.cumsum(steps)
    labels = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=len(steps), max_size=len(steps))))
    numbers = {"block": st.integers(1, 25), "gap": st.integers(0, 9), "extent": st.integers(1, 5)}
    return positions, labels, {name: draw(number) for name, number in numbers.items()}


def apart(one: int, other: int, extent: int) -> int:
    """Return from the last step of the earlier point to the first of the later one."""
    return max(one, other) - (min(one, other) + extent - 1)


@given(series(), SHARE, SEED)
def test_blocks_keep_the_gap_and_leave_out_nothing_else(
    drawn: tuple[NDArray[np.intp], NDArray[np.int_], dict[str, int]], share: float, seed: int
) -> None:
    positions, labels, numbers = drawn
    block, gap, extent = numbers["block"], numbers["gap"], numbers["extent"]
    anomalous = {int(p) // block for p, y in zip(positions, labels, strict=True) if y}
    plain = {int(p) // block for p in positions} - anomalous

    def split() -> SeriesSplit:
        points = points_at(positions, labels, extent=extent)
        return points.divided(np.random.default_rng(seed), calibration=share, block=block, gap=gap)

    if min(len(anomalous), len(plain)) < 2:
        assert re.search("no anomaly|at least 2 blocks with an anomaly and 2 without", refusal(split))
        return
    division = None
    with suppress(InputError):
        division = split()
    # with a wide gap there may be nothing left to test on
    assume(division is not None)
    assert division is not None
    calibrating, testing = set(division.calibration.tolist()), set(division.test.tolist())
    assert not calibrating & testing
    chosen = {int(positions[i]) // block for i in calibrating}
    assert len(chosen & anomalous) == expected_size(share, len(anomalous))
    assert len(chosen & plain) == expected_size(share, len(plain))
    for i, position in enumerate(positions):
        near = min(apart(int(position), int(positions[j]), extent) for j in calibrating) < max(gap, 1)
        if int(position) // block in chosen:
            assert i in calibrating
        else:
            assert (i in testing) != near
    for part in (division.calibration, division.test):
        assert set(labels[part]) == {0, 1}
        assert (np.diff(part) > 0).all()
        assert part.dtype == np.intp
    assert (division.kind, division.gap, division.block) == ("blocks", gap, block)
    again = split()
    assert again.calibration.tolist() == division.calibration.tolist()
    assert again.test.tolist() == division.test.tolist()


def test_windows_and_blocks_fit_together() -> None:
    found = window_points(np.zeros(6000), np.arange(6000) % 900 < 30, length=15, every=60)
    random = np.random.default_rng(0)
    division = found.divided(random, block=300, gap=100)
    first = found.positions[division.test]
    for start in found.positions[division.calibration]:
        assert ((first - (start + 14) >= 100) | (start - (first + 14) >= 100)).all()


def test_every_block_of_a_kind_is_drawn_equally_often() -> None:
    points = points_at(range(100), np.arange(100) % 20 == 0)
    random = np.random.default_rng(0)
    drawn = np.zeros(10, dtype=int)
    for _ in range(2000):
        division = points.divided(random, block=10, gap=2)
        drawn += np.bincount(np.unique(division.calibration // 10), minlength=10)
    # one of five each time: 400 expected, six standard deviations are 107
    assert np.abs(drawn - 400).max() < 107


LABELS = np.arange(40) % 20 == 0


def attempt(labels: Any = LABELS, random: Any = None, **options: Any) -> SeriesSplit:
    random = np.random.default_rng(0) if random is None else random
    return points_at(np.arange(np.size(labels)), labels).divided(random, **{"block": 10, **options})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"labels": [0] * 40}, "labels mark no anomaly, so none can calibrate; pass a longer series"),
        (
            {"block": 20},
            "at least 2 blocks with an anomaly and 2 without, got 2 and 0 blocks of 20 steps; choose",
        ),
        ({"block": 0}, "block must be a whole number, 1 or more, got 0"),
        ({"gap": -1}, "gap must be a whole number, 0 or more, got -1"),
        (
            {"gap": 2**62},
            "a gap of 4,611,686,018,427,387,904 steps leaves the test part without points of one",
        ),
        ({"gap": 30}, "in 100 draws of blocks of 10 steps; choose a smaller gap, or larger blocks"),
        ({"calibration": 1.0}, "calibration must lie strictly between 0 and 1, got 1.0"),
        ({"random": 3}, r"random must be a NumPy generator, got 3; pass np.random.default_rng\(0\)"),
        ({"block": None, "gap": 3}, "a gap needs blocks, got gap = 3 and no block; pass block too"),
        ({"labels": [2] * 40}, r"step_labels must be 0 \(normal\) or 1 \(anomalous\), got 2"),
    ],
)
def test_impossible_block_splits_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        attempt(**options)


@pytest.mark.parametrize(
    ("labels", "options", "text"),
    [
        ([0, 0, 0, 1], {}, "at least 2 anomalous points, one for each part, got 1; pass a longer series"),
        ([1, 1], {}, "at least 2 normal points, one for each part, got 0"),
        ([0, 0, 1, 1], {"calibration": 0}, "calibration must lie strictly between 0 and 1"),
        ([0, 0, 1, 1], {"random": None}, "random must be a NumPy generator, got None"),
    ],
)
def test_impossible_random_splits_are_refused(labels: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        points_at(range(len(labels)), labels).divided(**{"random": np.random.default_rng(0), **options})
