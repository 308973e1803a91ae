"""Comparing scores with those of the calibration takes at most a hundredth of the time of scoring."""

from typing import Any

import numpy as np
import pytest

from pac_wrap import InputError, PACWrap
from pac_wrap.detectors import safety
from pac_wrap.detectors.safety import WITNESSES

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(4, 1, (200, 3))]
Y = np.repeat([0, 1], [400, 200])
CHANGED = r"has changed since it was calibrated, .*; call calibrate\(X, y\) again"


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_asking_again_takes_at_most_a_hundredth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(safety, "perf_counter", clock)
    times = {True: 0.0, False: 0.0}

    def slow(X: Any) -> Any:
        seconds = 0.5 + len(X) / 16
        clock.now += seconds
        times[len(X) == WITNESSES] += seconds
        return X[:, 0]

    wrap = PACWrap(slow).fit(X, Y)
    times.update({True: 0.0, False: 0.0})
    wrap.predict(X[:1])
    assert times == {True: 1.0, False: 0.5625}  # once before the first scores
    asked = []
    for _ in range(2000):
        wrap.predict(X[:1])
        asked.append(times[True])
    total = times[True] + times[False]
    # a hundredth besides the first, and not so little that a change would go unseen for long
    assert 0.009 * total < times[True] - 1.0 <= 0.01 * times[False] + 1e-9
    assert np.flatnonzero(np.diff([1.0, *asked]))[0] == pytest.approx(100 / 0.5625, abs=2)


def test_what_leaves_no_trace_is_found_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(safety, "perf_counter", clock)
    weights = np.ones(3)

    def weighted(X: Any) -> Any:
        clock.now += 1.0
        return X @ weights

    wrap = PACWrap(weighted).fit(X, Y)
    wrap.predict(X)
    weights[:] = 2.0  # in place
    for _ in range(99):
        wrap.predict(X)
    with pytest.raises(InputError, match=CHANGED):
        wrap.predict(X)


def test_a_detector_that_changes_with_each_call_is_not_asked_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(safety, "perf_counter", clock)

    class Counting:
        def __init__(self) -> None:
            self.calls, self.asked, self.last = 0, 0, None

        def __call__(self, X: Any) -> Any:
            clock.now += 1.0
            self.calls += 1000  # beyond the small numbers that Python keeps one object of
            self.asked += len(X) == WITNESSES
            self.last = X
            return X[:, 0]

    wrap = PACWrap(Counting()).fit(X, Y)
    for _ in range(90):
        wrap.predict(X.copy())
    # at calibration, before the first scores, and once more because it held the very rows that were kept
    assert wrap.detector_.asked == 3
