import tracemalloc
import warnings
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap.ranks import memory
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.memory import (
    Bracket,
    RankedInMemory,
    count_below,
    kth_largest,
    kth_smallest,
    unchecked,
)
from support.slow import slow_but
from support.strategies import Floats, refusal, scores_of_any_type

pytestmark = pytest.mark.usefixtures("each_kernel")

N = 150_000


def ramp() -> Floats:
    return np.arange(N, dtype=np.float64)


# orders and ties that mislead a sample, each with more scores than np.partition takes alone
SHAPES: dict[str, Floats] = {
    "normal": np.random.default_rng(0).normal(size=N),
    "sorted": ramp(),
    "reversed": ramp()[::-1],
    "constant": np.full(N, 2.5),
    "two values": np.repeat([0.0, 1.0], N // 2),
    "few values": np.random.default_rng(1).integers(0, 5, N).astype(np.float64),
    "infinities": np.repeat([-inf, 0.0, inf], N // 3),
    "organ pipe": np.concatenate([ramp()[::2], ramp()[::-2]]),
    "one outlier": np.concatenate([np.zeros(N - 1), [1e300]]),
    "strided": np.repeat(np.random.default_rng(2).normal(size=N), 2)[::2],
    "heavy tails": np.random.default_rng(3).standard_cauchy(N) ** 3,
}
every_shape = pytest.mark.parametrize("values", SHAPES.values(), ids=SHAPES.keys())
every_width = pytest.mark.parametrize("kind", [np.float64, np.float32])
SHARES = (0.0, 1e-6, 0.01, 0.05, 0.5, 0.95, 0.99, 1.0)


@every_width
@every_shape
def test_large_arrays_have_the_ranks_of_the_sorted_ones(values: Floats, kind: Any) -> None:
    with np.errstate(over="ignore"):
        taken = values.astype(kind)
    taken.flags.writeable = False
    ordered = np.sort(taken)
    for share in SHARES:
        k = 1 + round(share * (taken.size - 1))
        ranked = RankedInMemory(taken, "normal", k)
        assert kth_smallest(ranked, k) == kth_smallest(taken, k) == float(ordered[k - 1])
        assert kth_largest(ranked, k) == float(ordered[-k])
        threshold = float(ordered[k - 1])
        assert count_below(ranked, threshold) == count_below(taken, threshold)
        assert count_below(taken, threshold) == np.searchsorted(ordered, ordered[k - 1])
    assert ranked.digest == digest(taken.astype(np.float64))


def test_a_sample_that_misleads_costs_time_but_not_exactness(monkeypatch: pytest.MonkeyPatch) -> None:
    # the sample knows two scores only
    monkeypatch.setattr(memory, "scattered_positions", lambda size, points: 7 + np.arange(points) % 2)
    assert kth_smallest(ramp(), 15_000) == 14_999.0
    ranked = RankedInMemory(ramp(), "normal", 15_000)
    assert ranked.kth_smallest(15_000) == 14_999.0
    assert ranked.kth_smallest(8) == 7.0


def test_random_scores_are_nearly_always_found_in_a_narrow_bracket() -> None:
    # independent scores: missed once in 400 times at worst; 40 ranks, so five misses have a chance below 1e-7
    values, missed = np.random.default_rng(5).normal(size=N), 0
    for k in range(1, N, N // 40):
        bracket = Bracket.around(values, k)
        missed += bracket.kth_smallest(k) is None
        assert bracket.found.scores.size == bracket.size < 0.08 * N
    assert missed < 5


@given(scores_of_any_type(1), st.data())
def test_few_scores_of_any_type_are_ranked_as_well(values: NDArray[Any], data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, values.size))
    taken = unchecked(values, "normal")
    ranked = RankedInMemory(taken, "normal", wanted)
    assert (ranked.size, ranked.digest) == (values.size, digest(taken))
    for k in range(1, values.size + 1):
        assert ranked.kth_smallest(k) == np.sort(taken)[k - 1]


def test_a_zero_at_a_rank_has_no_sign() -> None:
    for values in (np.array([-0.0]), np.array([-0.0, 0.0]), np.full(N, -0.0)):
        assert str(kth_smallest(values, 1)) == "0.0"
        assert str(kth_smallest(RankedInMemory(values, "normal", 1), 1)) == "0.0"


def test_float32_scores_are_compared_with_a_float64_threshold() -> None:
    values = np.full(N, 0.1, dtype=np.float32)
    ranked = RankedInMemory(values, "normal", 1)
    # 0.1 lies below the nearest float32
    assert count_below(ranked, 0.1) == 0
    assert count_below(ranked, float(np.float32(0.1))) == 0
    # one step of a double above, which is where an alarm begins, and no step at all for a float32
    assert count_below(ranked, nextafter(float(np.float32(0.1)), inf)) == N


@every_width
@pytest.mark.parametrize("position", [0, 17, N // 2, N - 1])
@pytest.mark.parametrize("shape", ["normal", "constant", "sorted"])
def test_nan_is_found_wherever_it_stands(kind: Any, position: int, shape: str) -> None:
    values = SHAPES[shape].astype(kind)
    values[position] = np.nan
    for k in (1, N // 20, N):
        message = refusal(RankedInMemory, values, "normal", k)
        start = f"normal must not contain NaN, got 1 of 150,000, the first at position {position};"
        assert message.startswith(start)


def test_a_signalling_nan_is_refused_without_a_warning() -> None:
    values = SHAPES["normal"].copy()
    values.view(np.uint64)[5] = 0x7FF0000000000001
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "the first at position 5" in refusal(lambda: RankedInMemory(values, "normal", 1))


def test_an_array_that_changes_while_it_is_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    values = SHAPES["normal"].copy()
    values[5] = np.nan
    monkeypatch.setattr(memory, "as_scores", lambda scores, name: scores)
    assert "normal changed while they were read" in refusal(lambda: RankedInMemory(values, "normal", 1))


@pytest.mark.parametrize(
    ("kind", "tied"),
    slow_but(
        1, [(np.float64, False), (np.float32, False), (np.float64, True), (np.float32, True)], several=True
    ),
)
def test_nothing_of_the_size_of_the_scores_is_allocated(kind: Any, tied: bool) -> None:
    values = np.random.default_rng(0).normal(size=3_000_000).astype(kind)
    k = values.size // 20
    if tied:
        values[:] = 2.5
    tracemalloc.start()
    ranked = RankedInMemory(values, "normal", k)
    ranked.kth_smallest(k)
    ranked.count_below(0.0)
    kth_smallest(values, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000
