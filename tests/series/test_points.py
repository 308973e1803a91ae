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

from pac_wrap import Certificate, Guarantee, calibrate
from pac_wrap.errors import DependenceWarning, InputError, VacuousWarning
from pac_wrap.method.promise import OF_SERIES
from pac_wrap.method.provenance import Sampling
from pac_wrap.method.rule import Thresholds
from pac_wrap.series import (
    Points,
    calibrate_points,
    dependence,
    effective_size,
    joined,
    window_points,
)
from pac_wrap.series.points import SeriesSplit
from support.strategies import Floats, refusal

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
    errors = Thresholds(0.5, None).y_fp(np.tile(scores, 5))
    assert dependence(errors, max_lag=40).autocorrelation[40] > 0.9


def test_one_series_joined_is_itself() -> None:
    one = window_points(np.arange(20.0), np.arange(20) % 3 == 0, **WINDOW)
    for name in ("scores", "labels", "positions"):
        np.testing.assert_array_equal(getattr(joined([one]), name), getattr(one, name))


def independent_points(size: int = 3000, seed: int = 0) -> Points:
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(size // 50) % 3 == 0, 50).astype(int)
    return window_points(random.normal(4.0 * labels), labels, **WINDOW)


def calibrated(points: Points, guarantee: Guarantee = TENTH) -> tuple[Certificate, list[str]]:
    """Return the certificate, and what was warned of: dependence, or too few labels, which is ignored."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificate = calibrate_points(points, guarantee)
    assert {one.category for one in caught} <= {DependenceWarning, VacuousWarning}
    return certificate, [str(one.message) for one in caught if one.category is DependenceWarning]


def quiet(points: Points, split: SeriesSplit | None, **options: Any) -> Certificate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependenceWarning)
        return calibrate_points(points, TENTH, split=split, **options)


def divided(points: Points, kind: str) -> SeriesSplit | None:
    random = np.random.default_rng(1)
    if kind == "none":
        return None
    if kind == "random":
        return points.divided(random, calibration=0.5)
    return points.divided(random, calibration=0.5, block=100, gap=20)


@pytest.mark.parametrize("options", [{}, {"overlap": "algorithm1"}, {"overlap": "hold_fnr"}])
@pytest.mark.parametrize("kind", ["none", "random", "blocks"])
def test_the_certificate_is_that_of_the_calibration_part(kind: str, options: dict[str, Any]) -> None:
    points = independent_points()
    split = divided(points, kind)
    chosen = np.arange(points.scores.size) if split is None else split.calibration
    scores, labels = points.scores[chosen], points.labels[chosen]
    found = quiet(points, split, **options)
    expected = calibrate(scores[labels == 0], scores[labels == 1], TENTH, **options)
    assert replace(found, sampling=None, assumptions=expected.assumptions) == expected
    assert found.assumptions == OF_SERIES
    assert found.verify(scores[labels == 0], scores[labels == 1])
    effective = []
    for label in (0, 1):
        mine = scores[labels == label]
        thresholds = expected.thresholds
        errors = int(np.sum(thresholds.y_fn(mine) == 0 if label else thresholds.y_fp(mine) == 1))
        effective.append(effective_size(mine, anomalous=bool(label), errors=errors).effective)
    gap, block = (20, 100) if kind == "blocks" else (0, None)
    wrong = [
        int(np.count_nonzero(expected.verdicts(scores[labels == label]) == 1 - label)) for label in (0, 1)
    ]
    assert found.sampling == Sampling(3, 5, "max", kind, gap, block, *effective, *wrong)  # type: ignore[arg-type]  # kind is one of them
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
    certificate, told = calibrated(points)
    assert len(told) == (2 if phi else 0)
    sampling = certificate.sampling
    assert sampling is not None
    if not phi:
        assert min((sampling.effective_normal or 0) / 5000, (sampling.effective_anomalous or 0) / 2500) > 0.5
        return
    for text, name, anomalous, n in zip(
        told, ("normal", "anomalous"), (False, True), (5000, 2500), strict=True
    ):
        found = points.effective_size(certificate.thresholds, anomalous)
        assert text == (
            f"{n:,} {name} steps are worth about {found.effective:,.0f} independent ones, so the stated"
            f" confidence is too high; take one in about {4 * found.apart:,} steps"
        )
        assert found.apart > 1
        assert found.effective == getattr(sampling, f"effective_{name}")


def test_a_warning_points_at_the_line_that_calibrates() -> None:
    with pytest.warns(DependenceWarning) as caught:
        calibrate_points(window_points(np.arange(600.0), np.arange(600) % 2), TENTH)
    assert {one.filename for one in caught} == {__file__}


def events_of(*runs: int, apart: int = 30) -> Points:
    """Return independent scores of anomalies in so many runs of so many windows, amid normal windows."""
    labels = np.concatenate([np.repeat([0, 1], [apart, run]) for run in (*runs, 0)])
    return window_points(np.random.default_rng(1).normal(5.0 * labels), labels)


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        ((60, 60), "120 anomalous steps of only 2 events"),
        ((120,), "120 anomalous steps of only one event"),
    ],
)
def test_many_windows_of_one_or_two_events_warn_though_their_scores_look_independent(
    runs: tuple[int, ...], told: str
) -> None:
    points = events_of(*runs, apart=100)
    certificate, warned = calibrated(points)
    assert warned == [
        f"{told} can tell little about other events, so the stated confidence is too high; label steps of"
        " more events"
    ]
    assert certificate.sampling is not None
    assert certificate.sampling.effective_anomalous == len(runs)
    told = " ".join(str(certificate).split())
    assert f"120 anomalous points count as about {len(runs)}." in told
    assert f"about {len(runs)} independent anomalous score{'s' * (len(runs) > 1)}" in told
    found = points.effective_size(certificate.thresholds, anomalous=True).dependence
    assert found is not None
    assert not found.misleading


def test_the_same_windows_in_many_events_do_not() -> None:
    assert calibrated(events_of(*[4] * 30))[1] == []


def test_events_are_runs_of_neighbouring_windows_also_of_a_part_and_of_joined_series() -> None:
    rule = Thresholds(3.0, 3.0)
    points = events_of(5, 1, 7)

    def events(found: Points, part: list[int] | None = None) -> int | None:
        return found.effective_size(
            rule, True, None if part is None else np.array(part, dtype=np.intp)
        ).events

    assert events(points) == 3
    # windows 30 to 34, 65 and 96 to 102 are anomalous
    assert events(points, [30, 34]) == events(points, [0, 32]) == 1
    assert events(points, [30, 33, 65, 70]) == 2
    assert events(points, [0, 1]) == 0
    assert points.effective_size(rule, anomalous=False).events is None
    # the end of one series and the start of the next are not neighbours
    anomalous = window_points(np.zeros(4), np.ones(4, dtype=int))
    assert events(anomalous) == 1
    assert events(joined([anomalous] * 3)) == 3
    # windows of more than one step are neighbours if none is left out between them
    labels = np.zeros(40, dtype=int)
    labels[[0, 7, 9, 21, 39]] = 1
    assert events(window_points(np.zeros(40), labels, length=5, every=5)) == 3


def test_what_cannot_be_judged_warns() -> None:
    random = np.random.default_rng(0)
    # 28 normal windows, 29 anomalous ones, each by itself
    few = window_points(random.normal(5.0 * (np.arange(57) % 2 == 0)), np.arange(57) % 2 == 0)
    labels = np.arange(400) % 2
    alike = window_points(6.0 * labels, labels)
    for points, counts in ((few, (28, 29)), (alike, (200, 200))):
        certificate, told = calibrated(points)
        assert told == [
            f"{n} {name} steps cannot show whether steps depend on each other, because no score has 15 of"
            " them on either side, so the stated confidence holds only if they do not; label more"
            for n, name in zip(counts, ("normal", "anomalous"), strict=True)
        ]
        sampling = certificate.sampling
        assert sampling is not None
        assert (sampling.effective_normal, sampling.effective_anomalous) == (None, None)
        assert sampling.worth == (
            "the effective size of the normal scores is unknown;"
            " the effective size of the anomalous scores is unknown"
        )


def test_one_window_of_a_class_warns() -> None:
    half = Guarantee(0.5, 0.5, 0.5, 0.5)
    for scores, labels, told in (
        ([0.0, 1.0], [0, 1], ["1 normal step cannot show", "1 anomalous step of only one event can"]),
        ([0.0], [0], ["1 normal step cannot show"]),
    ):
        _, warned = calibrated(window_points(scores, labels), half)
        assert [text.startswith(start) for text, start in zip(warned, told, strict=True)] == [True] * len(
            told
        )


def test_a_class_that_is_promised_nothing_does_not_warn() -> None:
    trend = window_points(np.arange(200.0), np.repeat([0, 1], [180, 20]))
    # 20 anomalies are too few for a tenth at .1, so nothing is promised about them
    assert [text[:10] for text in calibrated(trend)[1]] == ["180 normal"]
    assert [text[:10] for text in calibrated(trend, Guarantee(0.1, None, 0.1))[1]] == ["180 normal"]
    assert [text[:12] for text in calibrated(trend, Guarantee(None, 0.2, delta_fnr=0.1))[1]] == [
        "20 anomalous"
    ]


def test_a_series_too_short_to_be_thinned_is_told_so() -> None:
    # it hardly moves within its 120 windows, so that no spacing within the series helps
    noise = np.random.default_rng(0).standard_normal(120)
    points = window_points(lfilter([1.0], [1.0, -0.99], noise), np.zeros(120, dtype=int))
    certificate, (text,) = calibrated(points, Guarantee(0.05, None, 0.05))
    found = points.effective_size(certificate.thresholds, anomalous=False)
    assert text == (
        f"120 normal steps are worth about {found.effective:,.0f} independent ones, so the stated"
        " confidence is too high; the series is too short to take steps further apart, because fewer"
        " than the 59 that are needed would remain"
    )


def test_windows_as_far_apart_as_advised_are_worth_more() -> None:
    random = np.random.default_rng(4)
    noise = random.normal(size=200_000)
    labels = np.repeat(np.arange(100) % 2, 2000)
    scores = lfilter([1.0], [1.0, -0.95], noise) / 3.2 + 5.0 * labels
    dense = window_points(scores, labels)
    with pytest.warns(DependenceWarning):
        thresholds = calibrate_points(dense, TENTH).thresholds
    apart = max(dense.effective_size(thresholds, anomalous).apart for anomalous in (False, True))
    spaced = window_points(scores, labels, length=1, every=apart)
    certificate = calibrate_points(spaced, TENTH)  # a warning would be an error
    assert certificate.sampling is not None
    assert (certificate.sampling.effective_normal or 0.0) > 0.5 * certificate.fpr.n


def test_what_a_class_without_points_or_threshold_is_worth_is_unknown() -> None:
    points = window_points(np.random.default_rng(0).normal(size=300), np.zeros(300, dtype=int))
    certificate = calibrate_points(points, Guarantee(0.1, None, 0.1))
    assert certificate.sampling is not None
    assert (certificate.sampling.effective_anomalous, certificate.fnr.n) == (None, 0)
    assert points.dependence(certificate.thresholds, anomalous=True) is None
    one_sided = quiet(independent_points(), None)
    without = replace(one_sided.thresholds, clear_below=None)
    assert independent_points().dependence(without, anomalous=True) is None
    # what its points are worth hangs on no threshold
    assert independent_points().effective_size(without, anomalous=True).effective is not None


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


def test_a_split_of_more_points_than_there_are_is_refused() -> None:
    others = independent_points(6000)
    with pytest.raises(InputError, match="split must divide"):
        calibrate_points(independent_points(3000), TENTH, split=divided(others, "random"))


def test_points_share_nothing_with_what_they_were_made_of() -> None:
    scores: Floats = np.arange(10.0)
    points = window_points(scores, np.zeros(10, dtype=int))
    scores[0] = 99.0
    assert points.scores[0] == 0.0
