"""Windows as points against plain loops, and certificates of them against calibration by hand."""

import warnings
from dataclasses import replace
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from pac_wrap import Certificate, Guarantee, calibrate, verify
from pac_wrap.assumptions import OF_SERIES
from pac_wrap.errors import DependenceWarning, InputError
from pac_wrap.sampling import Sampling
from pac_wrap.thresholds import Thresholds
from pac_wrap.timeseries import (
    Points,
    block_split,
    calibrate_points,
    dependence,
    exceedances,
    joined,
    misleading,
    random_split,
    window_points,
)
from pac_wrap.timeseries.splits import Parts
from strategies import Floats, refusal

TENTH = Guarantee(0.1, 0.1, 0.1, 0.1)
WINDOW: dict[str, Any] = {"length": 3, "every": 5}


@st.composite
def series(draw: st.DrawFn) -> tuple[list[float], list[int], int, int]:
    """Draw scores after a warm-up, labels, and a window that fits at least once behind the warm-up."""
    every = draw(st.integers(1, 7))
    length = draw(st.integers(1, every))
    warm_up = draw(st.integers(0, 12))
    first = -(-warm_up // every) * every
    size = first + length + draw(st.integers(0, 40))
    values = draw(st.lists(st.integers(-3, 3).map(float), min_size=size, max_size=size))
    labels = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    return [float("nan")] * warm_up + values[warm_up:], labels, length, every


REDUCE: dict[str, Any] = {"max": max, "mean": lambda x: sum(x) / len(x), "last": lambda x: x[-1]}


@given(series(), st.sampled_from(list(REDUCE)))
def test_points_are_the_windows_of_a_plain_loop(
    drawn: tuple[list[float], list[int], int, int], reduce: Any
) -> None:
    values, labels, length, every = drawn
    scores, anomalous, places, room = [], [], [], 0
    for start in range(0, len(values) - length + 1, every):
        room += 1
        window = values[start : start + length]
        if any(value != value for value in window):
            continue
        scores.append(REDUCE[reduce](window))
        anomalous.append(max(labels[start : start + length]))
        places.append(start)
    points = window_points(values, labels, length=length, every=every, reduce=reduce)
    np.testing.assert_allclose(points.scores, scores, rtol=0, atol=1e-12)
    assert points.labels.tolist() == anomalous
    assert points.positions.tolist() == places
    assert (points.length, points.every, points.reduce, points.longest) == (length, every, reduce, room)
    for kind in (False, True):
        index = [i for i, label in enumerate(anomalous) if label == kind]
        assert points.of_class(kind).tolist() == index
        part = np.arange(0, len(scores), 2)
        assert points.of_class(kind, part).tolist() == [i for i in index if i % 2 == 0]


def test_by_default_every_step_is_a_point_and_the_warm_up_is_none() -> None:
    points = window_points([np.nan, np.nan, 0.5, 0.25, inf], [1, 0, 0, 1, 0])
    assert points.scores.tolist() == [0.5, 0.25, inf]
    assert points.labels.tolist() == [0, 1, 0]
    assert points.positions.tolist() == [2, 3, 4]
    assert points.longest == 5


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 8)), min_size=1, max_size=5), st.integers(1, 4))
def test_joined_series_keep_their_points_and_stay_out_of_each_others_reach(
    sizes: list[tuple[int, int]], every: int
) -> None:
    random = np.random.default_rng(len(sizes))
    parts = []
    for size, warm_up in sizes:
        scores = random.normal(size=every * (size + warm_up))
        scores[:warm_up] = np.nan
        parts.append(window_points(scores, random.integers(0, 2, scores.size), length=1, every=every))
    points = joined(parts)
    np.testing.assert_array_equal(points.scores, np.concatenate([part.scores for part in parts]))
    np.testing.assert_array_equal(points.labels, np.concatenate([part.labels for part in parts]))
    assert points.longest == max(part.longest for part in parts)
    assert (points.length, points.every, points.reduce) == (1, every, "max")
    assert (np.diff(points.positions) > 0).all()
    owner = np.repeat(np.arange(len(parts)), [part.scores.size for part in parts])
    units = points.positions // every
    apart = np.abs(np.subtract.outer(units, units))
    assert (apart[owner[:, None] != owner] > points.longest).all()
    for number, part in enumerate(parts):
        mine = points.positions[owner == number]
        np.testing.assert_array_equal(mine - mine[0], part.positions - part.positions[0])
        np.testing.assert_array_equal(mine % every, part.positions % every)


def test_joined_series_depend_only_within_themselves() -> None:
    # errors come at the same place of every series: 10 units into each
    scores = np.zeros(40)
    scores[10] = 1.0
    one = window_points(scores, np.zeros(40, dtype=int))
    found = joined([one] * 5).dependence(Thresholds(0.5, None), anomalous=False)
    assert found is not None
    assert found.n == 200
    assert found.autocorrelation.size == one.longest + 1
    assert np.nanmax(found.autocorrelation[1:]) < 0.03
    # one behind the other they would seem to have a period
    errors = exceedances(np.tile(scores, 5), Thresholds(0.5, None))
    assert dependence(errors, max_lag=40).autocorrelation[40] > 0.9


def test_one_series_joined_is_itself() -> None:
    one = window_points(np.arange(20.0), np.arange(20) % 3 == 0, **WINDOW)
    for name in ("scores", "labels", "positions"):
        np.testing.assert_array_equal(getattr(joined([one]), name), getattr(one, name))


def independent_points(size: int = 3000, seed: int = 0) -> Points:
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(size // 50) % 3 == 0, 50).astype(int)
    return window_points(random.normal(4.0 * labels), labels, **WINDOW)


def quiet(points: Points, parts: Parts | None, **options: Any) -> Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependenceWarning)
        return calibrate_points(points, TENTH, parts=parts, **options)


def divided(points: Points, kind: str) -> Parts | None:
    random = np.random.default_rng(1)
    if kind == "none":
        return None
    if kind == "random":
        return random_split(points.labels, random, calibration=0.5)
    return block_split(
        points.positions, points.labels, random, calibration=0.5, block=100, gap=20, extent=points.length
    )


@pytest.mark.parametrize("options", [{}, {"abstain": False}, {"abstain": False, "strategy": "hold_fnr"}])
@pytest.mark.parametrize("kind", ["none", "random", "blocks"])
def test_the_certificate_is_that_of_the_calibration_part(kind: str, options: dict[str, Any]) -> None:
    points = independent_points()
    parts = divided(points, kind)
    chosen = np.arange(points.scores.size) if parts is None else parts.calibration
    scores, labels = points.scores[chosen], points.labels[chosen]
    found = quiet(points, parts, **options)
    expected = calibrate(scores[labels == 0], scores[labels == 1], TENTH, **options)
    assert replace(found, sampling=None, assumptions=expected.assumptions) == expected
    assert found.assumptions == OF_SERIES
    assert verify(found, scores[labels == 0], scores[labels == 1])
    effective = []
    for label in (0, 1):
        index = chosen[labels == label]
        errors = exceedances(points.scores[index], expected.thresholds, bool(label))
        by_hand = dependence(errors, points.positions[index] // points.every, max_lag=points.longest)
        effective.append(by_hand.effective if 0 < errors.sum() < errors.size else None)
    gap, block = (20, 100) if kind == "blocks" else (0, None)
    assert found.sampling == Sampling(3, 5, "max", kind, gap, block, *effective)  # type: ignore[arg-type]
    assert Certificate.from_json(found.to_json()) == found


def test_effective_sizes_are_those_of_the_errors_alone() -> None:
    # 8 runs of 5 errors among 400 normal points; autocorrelations by hand, from pairs of errors
    scores, labels = np.zeros(600), np.repeat([0, 1], [400, 200])
    scores[labels == 1] = 9.0
    for run in range(8):
        scores[50 * run : 50 * run + 5] = 5.0
    points = window_points(scores, labels)
    found = points.dependence(Thresholds(5.0, 5.0), anomalous=False)
    assert found is not None
    share = 40 / 400
    for lag in range(1, 5):
        together, pairs = 8 * (5 - lag), 400 - lag
        # every error stands in two pairs, but for those of the first `lag` points, where a run begins
        product = together - share * (2 * 40 - lag) + share**2 * pairs
        assert found.autocorrelation[lag] == pytest.approx(product / pairs / (share * (1 - share)))
    assert 40 < found.effective < 100  # about n / 5, for errors come in runs of 5
    # without a single error there is nothing to judge by
    assert points.dependence(Thresholds(5.0, 5.0), anomalous=True) is None


@pytest.mark.parametrize("phi", [0.95, 0.0])
def test_a_warning_says_what_dependent_windows_are_worth_and_what_spacing_helps(phi: float) -> None:
    random = np.random.default_rng(3)
    noise = random.normal(size=30_000) * sqrt(1 - phi**2)
    labels = np.repeat(np.arange(60) % 3 == 0, 500).astype(int)
    points = window_points(lfilter([1.0], [1.0, -phi], noise) + 5.0 * labels, labels, length=1, every=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificate = calibrate_points(points, TENTH)
    told = [str(one.message) for one in caught if one.category is DependenceWarning]
    assert len(told) == len(caught) == (2 if phi else 0)
    sampling = certificate.sampling
    assert sampling is not None
    if not phi:
        assert min((sampling.effective_normal or 0) / 5000, (sampling.effective_anomalous or 0) / 2500) > 0.5
        return
    for text, name, anomalous, n in zip(
        told, ("normal", "anomalous"), (False, True), (5000, 2500), strict=True
    ):
        found = points.dependence(certificate.thresholds, anomalous)
        assert found is not None
        assert misleading(found)
        assert text == (
            f"{n:,} {name} windows are worth about {found.effective:,.0f} independent ones, so the stated"
            f" confidence is too high; take windows about {4 * found.lag:,} steps apart"
        )
        assert found.lag > 1
        assert found.effective == getattr(sampling, f"effective_{name}")
    assert caught[0].filename == __file__


def test_windows_as_far_apart_as_advised_are_worth_more() -> None:
    random = np.random.default_rng(4)
    noise = random.normal(size=200_000)
    labels = np.repeat(np.arange(100) % 2, 2000)
    scores = lfilter([1.0], [1.0, -0.95], noise) / 3.2 + 5.0 * labels
    dense = window_points(scores, labels)
    with pytest.warns(DependenceWarning):
        thresholds = calibrate_points(dense, TENTH).thresholds
    found = dense.dependence(thresholds, anomalous=False)
    assert found is not None
    spaced = window_points(scores, labels, length=1, every=found.spacing(1))
    certificate = calibrate_points(spaced, TENTH)  # a warning would be an error
    assert certificate.sampling is not None
    assert (certificate.sampling.effective_normal or 0.0) > 0.5 * certificate.normal.n


def test_what_a_class_without_points_or_threshold_is_worth_is_unknown() -> None:
    points = window_points(np.random.default_rng(0).normal(size=300), np.zeros(300, dtype=int))
    certificate = calibrate_points(points, Guarantee(0.1, None, 0.1))
    assert certificate.sampling is not None
    assert (certificate.sampling.effective_anomalous, certificate.anomalous.n) == (None, 0)
    assert points.dependence(certificate.thresholds, anomalous=True) is None
    one_sided = quiet(independent_points(), None)
    without = replace(one_sided.thresholds, clear_below=None)
    assert independent_points().dependence(without, anomalous=True) is None


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (lambda: joined([]), "series is empty; pass the points of at least one series"),
        (
            lambda: joined([window_points([0.5], [0]), window_points([0.5], [0], every=2)]),
            "all series must have the same windows; make them with the same length and every",
        ),
        (
            lambda: joined([window_points([0.5], [0]), window_points([0.5], [0], reduce="mean")]),
            "all series must have the same windows",
        ),
        (lambda: window_points([1.0, 2.0], [0, 1, 1]), "must have the same length, got 3 and 2"),
        (lambda: window_points([np.nan] * 2, [0, 1]), "no whole window after its warm-up"),
        (lambda: window_points([0.1, np.nan, 0.2], [0, 0, 1]), "must not contain NaN after the warm-up"),
        (lambda: window_points([0.1], [0], length=2, every=2), "at least one window long"),
        (lambda: window_points([0.1] * 9, [0] * 9, length=3, every=2), "length must not exceed every"),
        (lambda: window_points([0.1], [0], reduce="min"), "reduce must be one of"),  # type: ignore[arg-type]
        (lambda: window_points([0.1, 0.2], [0, 2]), "must be 0 (normal) or 1 (anomalous), got 2"),
        (
            lambda: calibrate_points(independent_points(), 0.1),  # type: ignore[arg-type]
            "guarantee must be a Guarantee, got 0.1",
        ),
    ],
)
def test_bad_input_is_refused(action: Any, text: str) -> None:
    assert text in refusal(action)


def test_parts_of_more_points_than_there_are_are_refused() -> None:
    others = independent_points(6000)
    with pytest.raises(InputError, match="parts"):
        calibrate_points(independent_points(3000), TENTH, parts=divided(others, "random"))


def test_points_share_nothing_with_what_they_were_made_of() -> None:
    scores: Floats = np.arange(10.0)
    points = window_points(scores, np.zeros(10, dtype=int))
    scores[0] = 99.0
    assert points.scores[0] == 0.0
