"""Several series as points, what they are worth one by one and together, and divisions by whole series."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from pac_wrap import Certificate, DependenceWarning, Guarantee, InputError, calibrate
from pac_wrap.method.rule import Thresholds
from pac_wrap.series import calibrate_points, joined, several_series, window_points

TENTH = Guarantee(0.1, 0.1, 0.1, 0.1)
RNG = np.random.default_rng(0)
NAN = float("nan")


@given(
    sizes=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=5),
    every=st.integers(1, 4),
)
def test_points_are_those_of_each_series_by_itself(sizes: list[tuple[int, int]], every: int) -> None:
    scores, parts, skipped = [], [], 0
    for place, (size, warm_up) in enumerate(sizes):
        one = np.arange(100.0 * place, 100.0 * place + size)
        one[:warm_up] = np.nan
        scores.append(one)
        skipped += min(warm_up, size)
        if warm_up <= (size - 1) // every * every:
            parts.append(window_points(one, np.zeros(size, dtype=int), length=1, every=every))
    values = np.concatenate(scores)
    names, counts = [str(i) for i in range(len(sizes))], [one.size for one in scores]
    if not parts:
        with pytest.raises(InputError, match=r"^none of the taken steps, one in every \d of \d+, has"):
            several_series(names, counts, values, np.zeros(values.size), every=every)
        return
    found = several_series(names, counts, values, np.zeros(values.size), every=every)
    expected = joined(parts)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.positions, expected.positions)
    assert found.longest == expected.longest
    assert [int(found.names[one]) for one in found.series] == (found.scores // 100).tolist()
    assert found.warm_up == skipped
    twice = joined([found, found])
    assert (twice.names, twice.warm_up) == (found.names * 2, 2 * skipped)
    np.testing.assert_array_equal(twice.series, [*found.series, *found.series + len(found.names)])


def test_scores_keep_their_type() -> None:
    labels = np.tile([0, 1], 400)
    scores = RNG.normal(5.0 * labels).astype(np.float32)
    found = several_series(["a"], [800], scores, labels)
    certificate = calibrate_points(found, TENTH)
    assert certificate.score_type == "float32"
    assert certificate.rule == calibrate(scores[::2], scores[1::2], TENTH).rule


def test_a_missing_score_after_the_warm_up_names_its_series() -> None:
    with pytest.raises(
        InputError, match=r"^series 'b': series must not contain NaN after the warm-up, got 1"
    ):
        several_series(["a", "b"], [1, 3], [0.0, 1.0, NAN, 2.0], [0, 0, 0, 0])


@pytest.mark.parametrize(
    ("sizes", "labels", "reason"),
    [([4], [0, 0], "labels"), ([3], [0] * 4, "all series together"), ([2, 2], [0] * 4, "names and sizes")],
)
def test_what_does_not_fit_together_is_refused(sizes: list[int], labels: list[int], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        several_series(["a"], sizes, [0.0] * 4, labels)


def levels(count: int, spread: float, coefficient: float) -> tuple[Any, Any]:
    """Return scores of series with their own levels, each an autoregression of 200 steps, and labels."""
    noise = lfilter([1.0], [1.0, -coefficient], RNG.normal(size=(count, 200)), axis=1)
    labels = np.tile(np.repeat([0, 1], [150, 50]), (count, 1))
    return (noise + spread * RNG.normal(size=(count, 1)) + 9.0 * labels).ravel(), labels.ravel()


def test_dependence_is_judged_within_each_series_and_over_them() -> None:
    thresholds = Thresholds(alarm_from=2.0, clear_below=5.0)
    names = [f"m{i}" for i in range(20)]
    apart, labels = levels(20, 5.0, 0.0)
    found = several_series(names, [200] * 20, apart, labels)
    within = dict(found.within(thresholds, False))
    assert list(within) == names
    assert sum(one.misleading for one in within.values()) < 10
    together = found.effective_size(thresholds, False).effective
    assert together is not None
    assert together < 100 < sum(one.effective or 0.0 for one in within.values())
    inside, labels = levels(20, 0.0, 0.95)
    found = several_series(names, [200] * 20, inside, labels)
    assert all(one.misleading for _, one in found.within(thresholds, False))
    some = np.flatnonzero(found.series < 3)
    assert [name for name, _ in found.within(thresholds, True, some)] == names[:3]
    assert [one.n for _, one in found.within(thresholds, True, some)] == [50, 50, 50]


def test_series_too_short_to_judge_are_not_named() -> None:
    found = several_series(["a", "b"], [10, 100], RNG.normal(size=110), np.zeros(110))
    assert [name for name, _ in found.within(Thresholds(2.0, None), False)] == ["b"]
    assert not list(found.within(Thresholds(2.0, None), True))


def test_whole_series_calibrate_and_the_certificate_says_so() -> None:
    scores, labels = levels(20, 0.0, 0.0)
    labels[: 200 * 8] = 0  # eight series without an anomaly
    found = several_series([f"m{i}" for i in range(20)], [200] * 20, scores, labels)
    split = found.divided(np.random.default_rng(1), calibration=0.5, by_series=True)
    parts = set(found.series[split.calibration]), set(found.series[split.test])
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == set(range(20))
    assert (len(parts[0] & set(range(8))), len(parts[0])) == (4, 10)
    with pytest.warns(DependenceWarning):
        certificate = calibrate_points(found, TENTH, split=split)
    assert str(certificate.sampling) == "every step, split by whole series"
    assert Certificate.from_json(certificate.to_json()) == certificate
    again = found.divided(np.random.default_rng(1), calibration=0.5, by_series=True)
    np.testing.assert_array_equal(split.test, again.test)


def test_a_division_needs_two_series_with_an_anomaly() -> None:
    found = several_series(["a", "b"], [3, 3], range(6), [0, 0, 1, 0, 0, 0])
    with pytest.raises(InputError, match="at least 2 series with an anomaly, one for each part, got 1 of 2"):
        found.divided(np.random.default_rng(0), by_series=True)
    with pytest.raises(InputError, match="points are divided by series or in blocks; leave out"):
        found.divided(np.random.default_rng(0), by_series=True, block=2)
