"""Step functions of the score: every type and layout, many scores, wrapped arrays, and what is refused."""

import tracemalloc
from bisect import bisect_right
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.method import rule as module
from pac_wrap.method.rule import Steps
from pac_wrap.ranks import kernels as cores
from pac_wrap.ranks.kernels import Plain
from support.strategies import LARGEST, refusal

pytestmark = pytest.mark.usefixtures("each_kernel")

# every score reaches -inf, so that it is no edge
EDGES = st.sampled_from([-1.0, -5e-324, 0.0, 5e-324, 1.0, 2.0, inf])
SCORES = [-inf, -1.5, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.5, 1.0, np.nextafter(1.0, 0.0), 2.0, 1.7e308, inf]
SIZES = [1, 7, 512, 513, 200_000]
CODES = [0, -1, 1]


def kinds(scores: list[float]) -> list[NDArray[Any]]:
    """Return the same scores in every length class and layout that is decided in its own way."""
    few = np.array(scores)
    spread = np.empty((few.size, 2))
    spread[:, 0] = few
    return [few, np.tile(few, 513), spread[:, 0], np.array(scores, dtype=object).astype(float)]


@given(
    edges=st.lists(EDGES, max_size=2).map(sorted),
    scores=st.lists(st.sampled_from(SCORES), min_size=1, max_size=30),
)
def test_every_way_gives_the_code_of_the_edges_that_are_reached(
    edges: list[float], scores: list[float]
) -> None:
    steps = Steps(edges, CODES[: len(edges) + 1])
    expected = [CODES[bisect_right(edges, score)] for score in scores]
    for values in kinds(scores):
        found = steps.codes_of(values)[0]
        assert found.dtype == np.int8
        assert found[: len(scores)].tolist() == expected
        # and the binary search that callers make for a few
        assert steps.codes.take(steps.ends.searchsorted(values))[: len(scores)].tolist() == expected
    assert steps.codes_of(scores)[0].tolist() == expected


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, np.uint8, bool])
def test_every_type_is_compared_in_float64(kind: Any) -> None:
    # 0.1 in float32 is a little more than 0.1
    edges = [0.05, float(np.nextafter(np.float64(np.float32(0.1)), 1.0))]
    steps = Steps(edges, CODES)
    for size in SIZES:
        values = (np.arange(size) % 20 / 10).astype(kind)
        found = steps.codes_of(values)[0].tolist()
        assert found == steps.codes_of(values.astype(np.float64)[:].copy())[0].tolist(), size
        assert found[:50] == [CODES[bisect_right(edges, float(value))] for value in values[:50]], size


@given(
    edges=st.lists(st.floats(-LARGEST, inf), min_size=2, max_size=2).map(sorted),
    upwards=st.booleans(),
)
def test_float32_beside_a_double_is_compared_as_a_double(edges: list[float], upwards: bool) -> None:
    steps = Steps(edges, CODES)
    with np.errstate(over="ignore"):  # beyond the largest float32 lies infinity
        near = np.array(edges, dtype=np.float32)
        # the float32 numbers around each edge
        scores = np.concatenate([near, np.nextafter(near, np.float32(inf if upwards else -inf))])
    expected = [CODES[bisect_right(edges, float(score))] for score in scores]
    assert steps.codes_of(np.tile(scores, 513))[0][: scores.size].tolist() == expected
    assert steps.codes_of(scores)[0].tolist() == expected


@pytest.mark.parametrize("size", [1, 100, 513, 300_000])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_a_nan_is_abstained_on_and_found_wherever_it_stands(size: int, kind: Any) -> None:
    steps = Steps([0.3, 0.7], CODES)
    for place in {0, size // 2, size - 1}:
        scores = np.full(size, inf, dtype=kind)
        scores[::2] = -inf
        expected, nowhere = steps.codes_of(scores)
        assert nowhere.size == 0
        scores[place] = nan
        expected[place] = -1
        codes, missing = steps.codes_of(scores)
        assert missing.tolist() == [place]
        np.testing.assert_array_equal(codes, expected)


def test_many_scores_use_every_core_and_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    together = cores.together
    monkeypatch.setattr(cores, "usable_cores", lambda: 3)
    monkeypatch.setattr(module, "_MANY", 1 << 19)
    monkeypatch.setattr(module, "usable_cores", lambda: 3)

    def count(actions: Any) -> Any:
        asked.append(len(actions))
        return together(actions)

    monkeypatch.setattr(module, "together", count)
    steps = Steps([0.3, 0.7], CODES)
    scores = np.random.default_rng(0).random(2_000_003)
    expected = np.where(scores >= 0.7, 1, np.where(scores < 0.3, 0, -1))
    assert np.array_equal(steps.codes_of(scores)[0], expected)
    assert asked == [3]
    for values in (scores, scores.astype(np.float32), (scores * 9).astype(np.int64)):
        tracemalloc.start()
        codes = steps.codes_of(values)[0]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # two buffers of bytes for each of three threads, and what widening needs
        assert peak - codes.nbytes < 3_000_000


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64])
def test_a_memory_map_is_decided_without_a_copy(kind: Any, tmp_path: Path) -> None:
    scores = (np.random.default_rng(0).random(1_000_003) * 9).astype(kind)
    scores.tofile(tmp_path / "scores")
    mapped = np.memmap(tmp_path / "scores", dtype=kind, mode="r")
    steps = Steps([3.0, 7.0], CODES)
    tracemalloc.start()
    codes = steps.codes_of(mapped)[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert type(codes) is np.ndarray
    assert np.array_equal(codes, steps.codes_of(scores)[0])
    # a copy as float64 alone would take 8 MB; widening in chunks needs half a megabyte
    assert peak - codes.nbytes < 1_500_000


class Named(np.ndarray[Any, Any]):
    """An array with something more, as many packages have."""


def test_other_wrapped_arrays_are_decided_as_arrays_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Watched(Plain):
        def codes(self, scores: Any, *others: Any) -> bool:
            seen.append((type(scores), scores.dtype))
            return super().codes(scores, *others)

    monkeypatch.setattr(module, "kernels", Watched)
    steps = Steps([0.3, 0.7], CODES)
    scores = np.linspace(0.0, 1.0, 1000, dtype=np.float32)
    expected = steps.codes_of(scores)[0]
    for same in (scores.view(Named), np.ma.MaskedArray(scores), pd.Series(scores)):
        assert np.array_equal(steps.codes_of(same)[0], expected)
    assert seen == [(np.ndarray, np.dtype(np.float32))] * 4
    masked = np.ma.MaskedArray(scores, mask=scores > 0.99)
    assert "must not contain masked values, got 10" in refusal(lambda: steps.codes_of(masked)[0])
    with pytest.warns(PendingDeprecationWarning, match="matrix"):
        matrix = np.asmatrix(scores)
    assert "scores must be one-dimensional" in refusal(lambda: steps.codes_of(matrix)[0])


def test_only_steps_next_to_zero_are_outdated_when_flushing_begins(
    flushing: Callable[[], None],
) -> None:
    made = [Steps(edges, CODES[: len(edges) + 1]) for edges in ([], [0.0], [-1.0, 1e-40], [-1.0, 1e-30])]
    assert [one.delicate for one in made] == [False, True, True, False]
    assert not any(one.outdated() for one in made)
    flushing()
    assert [one.outdated() for one in made] == [False, True, True, False]
    assert not Steps([0.0], CODES[:2]).outdated()
