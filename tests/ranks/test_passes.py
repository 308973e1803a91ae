import pickle
from functools import reduce
from math import inf
from operator import add
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap.base.floats import order_keys
from pac_wrap.ranks import passes as module
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.memory import BOTH, Rank, spaced_positions
from pac_wrap.ranks.passes import RankSearch, ScoreAtRank, survey
from support.examples import examples
from support.slow import slow_but
from support.strategies import Floats, refusal, scores

pytestmark = pytest.mark.usefixtures("each_kernel")

Piece = tuple[Floats, Floats]
ENDS = np.array([-inf, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 2.2e-308, 1.0, 1e308, inf])


def merged(results: list[Any], random: Random | None) -> Any:
    """Return the sum, in the order given or along a random tree."""
    results = list(results)
    while random is not None and len(results) > 1:
        random.shuffle(results)
        results.append(results.pop() + results.pop())
    return reduce(add, results)


def found(
    pieces: list[Piece], ranks: list[Rank], random: Random | None = None
) -> tuple[dict[Rank, ScoreAtRank], int]:
    """Return what a search finds, and in how many passes; every task and answer travels as bytes."""

    def run(task: Any) -> Any:
        task = pickle.loads(pickle.dumps(task))
        return merged([pickle.loads(pickle.dumps(task(*piece))) for piece in pieces], random)

    one, passes = RankSearch.begin(run(survey), ranks), 1
    while one.wanted:
        one, passes = one.advance(run(one)), passes + 1
    return one.found, passes


def expected(normal: Floats, anomalous: Floats, rank: Rank) -> ScoreAtRank:
    pool = np.concatenate([(normal, anomalous)[label] for label in rank.labels])
    value = float(np.sort(pool)[rank.k - 1])
    below = int(np.count_nonzero(normal < value)), int(np.count_nonzero(anomalous < value))
    equal = int(np.count_nonzero(normal == value)), int(np.count_nonzero(anomalous == value))
    return ScoreAtRank(value, below, equal)


def every_rank(normal: Floats, anomalous: Floats) -> list[Rank]:
    sizes: list[tuple[int | tuple[int, ...], int]] = [(0, normal.size), (1, anomalous.size)]
    sizes += [(BOTH, normal.size + anomalous.size)]
    return [Rank(label, k) for label, size in sizes for k in range(1, size + 1)]


@pytest.mark.parametrize("few", slow_but(1, [module._FEW, 0, 3]))
@settings(max_examples=examples(30))
@given(
    st.lists(st.tuples(scores(max_size=8), scores(max_size=8)), min_size=1, max_size=6),
    st.randoms(),
    st.data(),
)
def test_every_chunking_and_every_merge_tree_finds_every_rank(
    few: int, pieces: list[Piece], random: Random, data: st.DataObject
) -> None:
    normal, anomalous = (np.concatenate([piece[label] for piece in pieces]) for label in (0, 1))
    ranks = every_rank(normal, anomalous)
    ranks = data.draw(st.lists(st.sampled_from(ranks), max_size=6)) if ranks else []
    with patch.object(module, "_FEW", few):
        results, passes = found(pieces, ranks, random)
    assert results == {rank: expected(normal, anomalous, rank) for rank in ranks}
    assert passes <= 4


@pytest.mark.parametrize(
    "values",
    [
        ENDS,
        np.full(1000, 3.0),
        # neighbours differ in their last bit only, so that every bit has to be looked at
        (np.arange(8_000, dtype=np.uint64) + np.float64(1.0).view(np.uint64)).view(np.float64),
        np.repeat((np.arange(3, dtype=np.uint64) + 7).view(np.float64), 2_000),
        -np.geomspace(1e-320, 1e300, 6_000),
    ],
    ids=["ends", "constant", "neighbours", "tied subnormals", "all sizes"],
)
def test_four_passes_find_sixteen_ranks_of_any_scores(values: Floats) -> None:
    normal, anomalous = values, values[::-3].copy()
    every = every_rank(normal, anomalous)
    ranks = every[:: max(1, len(every) // 15)][:16]
    pieces = [(normal[start::3], anomalous[start::3]) for start in range(3)]
    with patch.object(module, "_FEW", 5_000):  # else they are all sorted at once
        results, passes = found(pieces, ranks)
    assert results == {rank: expected(normal, anomalous, rank) for rank in ranks}
    assert passes <= 4


def test_thousands_of_ranks_share_the_counters() -> None:
    normal = np.random.default_rng(0).normal(size=20_000)
    ranks = [Rank(0, k) for k in range(1, 20_001, 10)]
    with patch.object(module, "_FEW", 0):
        results, passes = found([(normal, normal[:0])], ranks)
    ordered = np.sort(normal)
    assert all(results[rank].score == ordered[rank.k - 1] for rank in ranks)
    assert passes <= 8
    assert found([(normal, normal[:0])], ranks)[1] <= 3


def test_a_search_is_small_wherever_it_is_sent() -> None:
    normal = np.random.default_rng(0).normal(size=400_000)
    one = RankSearch.begin(survey(normal, normal), [Rank(0, 380_000), Rank(1, 20_000)])
    assert len(pickle.dumps(one)) < 1_000
    many = RankSearch.begin(survey(normal, normal), [Rank(0, k) for k in range(1, 1000)])
    assert len(pickle.dumps(many)) < 50_000


@given(scores(1), scores(1))
def test_a_survey_knows_sizes_digests_and_roughly_the_area(normal: Floats, anomalous: Floats) -> None:
    whole = survey(normal, anomalous)
    assert whole.sizes == (normal.size, anomalous.size)
    assert whole.digests == (digest(normal), digest(anomalous))
    # scores in one of the 2^16 ranges count as if the anomaly were the greater
    tops = [(order_keys(values) >> np.uint64(48)).astype(np.float64) for values in (normal, anomalous)]
    assert whole.largest_auc() == pytest.approx((tops[1][:, np.newaxis] >= tops[0]).mean(), abs=1e-12)


def test_scores_that_change_between_passes_are_refused() -> None:
    normal = np.arange(10.0)
    one = RankSearch.begin(survey(normal, normal), [Rank(0, 5)])
    assert "changed between two passes" in refusal(lambda: one.advance(one(normal[:4], normal)))


@pytest.mark.parametrize("k", [0, 4])
def test_a_rank_beyond_the_scores_is_refused(k: int) -> None:
    whole = survey(np.arange(3.0), np.zeros(0))
    assert refusal(lambda: RankSearch.begin(whole, [Rank(0, k)])) == f"rank must be 1 to 3, got {k}"
    assert not RankSearch.begin(whole, []).wanted


@settings(deadline=None)
@given(st.integers(1, 5))
def test_the_state_is_a_value(times: int) -> None:
    one = RankSearch.begin(survey(ENDS, ENDS), [Rank(0, times)])
    assert pickle.loads(pickle.dumps(one)) == one


def test_evenly_spaced_scores_are_picked_from_parts_in_order() -> None:
    classes = np.arange(5000.0), np.arange(7.0)
    spaced = module._Spaced([whole.size for whole in classes])
    for start in range(0, 5000, 900):
        assert not spaced.whole
        spaced.pick((classes[0][start : start + 900], classes[1][start : start + 900]))
    assert spaced.whole
    for whole, picked in zip(classes, spaced.picked, strict=True):
        assert np.array_equal(np.concatenate(picked), whole[spaced_positions(whole.size)])
