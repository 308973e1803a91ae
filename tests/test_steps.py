import tracemalloc
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap import cores, steps
from pac_wrap.kernels import Plain
from pac_wrap.thresholds import Thresholds
from strategies import refusal

pytestmark = pytest.mark.usefixtures("each_kernel")

EDGES = st.sampled_from([None, -inf, -1.0, -5e-324, 0.0, 5e-324, 1.0, 2.0, inf])
SCORES = [-inf, -1.5, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.5, 1.0, np.nextafter(1.0, 0.0), 2.0, 1.7e308, inf]


def slow(rule: Thresholds, score: float) -> int:
    """Return the verdict on one score by the definition, eqs. (7) to (11)."""
    alarm = rule.alarm_from is None or (rule.alarm_from < inf and score >= rule.alarm_from)
    kept = rule.clear_below is None or score >= rule.clear_below
    if rule.alarm_from is None:
        return int(kept)
    if rule.clear_below is None:
        return int(alarm)
    return 1 if alarm and kept else 0 if not alarm and not kept else -1


def kinds(scores: list[float]) -> list[NDArray[Any]]:
    """Return the same scores in every length class and layout that is decided in its own way."""
    few = np.array(scores)
    many = np.tile(few, steps._FEW)
    spread = np.empty((few.size, 2))
    spread[:, 0] = few
    return [few, many, spread[:, 0], np.array(scores, dtype=object).astype(float)]


@given(alarm_from=EDGES, clear_below=EDGES, scores=st.lists(st.sampled_from(SCORES), min_size=1, max_size=30))
def test_every_way_gives_the_verdicts_of_the_definition(
    alarm_from: float | None, clear_below: float | None, scores: list[float]
) -> None:
    if alarm_from is None and clear_below is None:
        return
    rule = Thresholds(alarm_from, clear_below)
    expected = [slow(rule, score) for score in scores]
    for values in kinds(scores):
        found = rule.verdicts(values)
        assert found.dtype == np.int8
        assert found[: len(scores)].tolist() == expected
    assert rule.verdicts(scores).tolist() == expected


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, np.uint8, bool])
@pytest.mark.parametrize("size", [1, 7, steps._FEW, steps._FEW + 1, 200_000])
def test_every_type_is_compared_in_float64(kind: Any, size: int) -> None:
    # 0.1 in float32 is a little more than 0.1
    rule = Thresholds(alarm_from=float(np.nextafter(np.float64(np.float32(0.1)), 1.0)), clear_below=0.05)
    values = (np.arange(size) % 20 / 10).astype(kind)
    assert rule.verdicts(values).tolist() == rule.verdicts(values.astype(np.float64)[:].copy()).tolist()
    assert rule.verdicts(values[:50]).tolist() == [slow(rule, float(value)) for value in values[:50]]


@given(
    alarm_from=st.floats(allow_nan=False),
    clear_below=st.floats(allow_nan=False),
    upwards=st.booleans(),
)
def test_float32_beside_a_double_is_compared_as_a_double(
    alarm_from: float, clear_below: float, upwards: bool
) -> None:
    rule = Thresholds(alarm_from, clear_below)
    with np.errstate(over="ignore"):
        near = np.array([alarm_from, clear_below], dtype=np.float32)
    # the float32 numbers around each threshold
    scores = np.concatenate([near, np.nextafter(near, np.float32(inf if upwards else -inf))])
    many = np.tile(scores, steps._FEW)
    expected = [slow(rule, float(score)) for score in scores]
    assert rule.verdicts(many)[: scores.size].tolist() == expected


@pytest.mark.parametrize("size", [1, 100, steps._FEW + 1, 300_000])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_nan_is_refused_wherever_it_stands(size: int, kind: Any) -> None:
    rule = Thresholds(alarm_from=0.7, clear_below=0.3)
    for place in {0, size // 2, size - 1}:
        scores = np.full(size, inf, dtype=kind)
        scores[::2] = -inf
        scores[place] = nan
        message = refusal(lambda: rule.verdicts(scores))  # noqa: B023  (called at once)
        assert f"got 1 of {size:,}, the first at position {place};" in message


def test_many_scores_use_every_core_and_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    together = cores.together
    monkeypatch.setattr(cores, "usable_cores", lambda: 3)
    monkeypatch.setattr(steps, "_MANY", 1 << 19)
    monkeypatch.setattr(steps, "usable_cores", lambda: 3)

    def count(actions: Any) -> Any:
        asked.append(len(actions))
        return together(actions)

    monkeypatch.setattr(steps, "together", count)
    rule = Thresholds(alarm_from=0.7, clear_below=0.3)
    scores = np.random.default_rng(0).random(2_000_003)
    expected = np.where(scores >= 0.7, 1, np.where(scores < 0.3, 0, -1))
    assert np.array_equal(rule.verdicts(scores), expected)
    assert asked == [3]
    for values in (scores, scores.astype(np.float32), (scores * 9).astype(np.int64)):
        tracemalloc.start()
        verdicts = rule.verdicts(values)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # two buffers of bytes for each of three threads, and what widening needs
        assert peak - verdicts.nbytes < 3_000_000


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64])
def test_a_memory_map_is_decided_without_a_copy(kind: Any, tmp_path: Path) -> None:
    scores = (np.random.default_rng(0).random(1_000_003) * 9).astype(kind)
    scores.tofile(tmp_path / "scores")
    mapped = np.memmap(tmp_path / "scores", dtype=kind, mode="r")
    rule = Thresholds(alarm_from=7.0, clear_below=3.0)
    tracemalloc.start()
    verdicts = rule.verdicts(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert type(verdicts) is np.ndarray
    assert np.array_equal(verdicts, rule.verdicts(scores))
    # a copy as float64 alone would take 8 MB; widening in chunks needs half a megabyte
    assert peak - verdicts.nbytes < 1_500_000


class Named(np.ndarray[Any, Any]):
    """An array with something more, as many packages have."""


def test_other_wrapped_arrays_are_decided_as_arrays_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Watched(Plain):
        def codes(self, scores: Any, *others: Any) -> bool:
            seen.append((type(scores), scores.dtype))
            return super().codes(scores, *others)

    monkeypatch.setattr(steps, "kernels", Watched)
    rule = Thresholds(alarm_from=0.7, clear_below=0.3)
    scores = np.linspace(0.0, 1.0, 1000, dtype=np.float32)
    expected = rule.verdicts(scores)
    for same in (scores.view(Named), np.ma.MaskedArray(scores), pd.Series(scores)):
        assert np.array_equal(rule.verdicts(same), expected)
    assert seen == [(np.ndarray, np.dtype(np.float32))] * 4
    masked = np.ma.MaskedArray(scores, mask=scores > 0.99)
    assert "must not contain masked values, got 10" in refusal(lambda: rule.verdicts(masked))
    with pytest.warns(PendingDeprecationWarning, match="matrix"):
        matrix = np.asmatrix(scores)
    assert "scores must be one-dimensional" in refusal(lambda: rule.verdicts(matrix))


def test_an_error_in_a_thread_arrives() -> None:
    def fail() -> int:
        raise ValueError("in a thread")

    with pytest.raises(ValueError, match="in a thread"):
        cores.together([lambda: 1, fail])
    with pytest.raises(ValueError, match="in a thread"):
        cores.together([fail, lambda: 1])


def test_one_core_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    assert cores.usable_cores() == 1
    assert cores.together([lambda: 1, lambda: 2]) == [1, 2]
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert cores.usable_cores() == 1
