from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.ranks.auc import auc, rough_auc
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.memory import kth_largest, kth_smallest
from support.strategies import Floats, score, scores

pytestmark = pytest.mark.usefixtures("each_kernel")


@given(scores(min_size=1))
def test_ranks_are_those_of_the_sorted_scores(values: Floats) -> None:
    ordered = sorted(values.tolist())
    for k in range(1, values.size + 1):
        assert kth_smallest(values, k) == ordered[k - 1]
        assert kth_largest(values, k) == ordered[-k]


def test_ranks_are_plain_floats_and_leave_the_scores_alone() -> None:
    values = np.array([3.0, -inf, inf, 2.0])
    values.flags.writeable = False
    assert type(kth_smallest(values, 2)) is float
    assert kth_largest(values, 1) == inf
    assert values.tolist() == [3.0, -inf, inf, 2.0]


@given(scores(), st.randoms(use_true_random=False))
def test_digest_does_not_depend_on_the_order(values: Floats, random: Random) -> None:
    shuffled = values.tolist()
    random.shuffle(shuffled)
    assert digest(np.array(shuffled, dtype=np.float64)) == digest(values)


@given(scores(min_size=1), score, st.data())
def test_digest_changes_with_any_single_score(values: Floats, other: float, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, values.size - 1))
    changed = values.copy()
    changed[position] = other
    assert (digest(changed) == digest(values)) == (other == values[position])


def test_digest_is_16_hex_digits_and_takes_both_zeros_for_one() -> None:
    text = digest(np.array([1.0, -0.0, 2.0]))
    assert len(text) == 16
    assert int(text, 16) >= 0
    assert text == digest(np.array([1.0, 0.0, 2.0]))


@given(scores(max_size=10), scores(max_size=10))
def test_digests_of_parts_add_up(left: Floats, right: Floats) -> None:
    together = int(digest(np.concatenate([left, right])), 16)
    assert together == (int(digest(left), 16) + int(digest(right), 16)) % 2**64


def test_digest_of_many_scores_does_not_depend_on_the_order_or_the_layout() -> None:
    values = np.random.default_rng(0).normal(size=100_003)
    wide = np.repeat(values, 2)[::2]
    wide.flags.writeable = False
    assert digest(wide) == digest(values) == digest(values[::-1]) == digest(np.sort(values))
    assert digest(values[:-1]) != digest(values)


def test_a_rough_auc_is_not_misled_by_a_period() -> None:
    size = 999 * 8 + 1
    normal, anomalous = np.resize([0.0] + [9.0] * 7, size), np.ones(size)
    assert rough_auc(normal, anomalous) == auc(normal, anomalous) == pytest.approx(0.125, abs=1e-3)
    assert rough_auc(anomalous, normal) == pytest.approx(0.875, abs=0.01)
    assert rough_auc(normal[:5], anomalous[:7]) == auc(normal[:5], anomalous[:7])


@given(scores(min_size=1, max_size=12), scores(min_size=1, max_size=12))
def test_auc_is_the_share_of_pairs_in_order(normal: Floats, anomalous: Floats) -> None:
    pairs = [1.0 if a > n else 0.5 if a == n else 0.0 for n, a in product(normal, anomalous)]
    assert auc(normal, anomalous) == pytest.approx(sum(pairs) / len(pairs), rel=1e-12, abs=1e-15)


def test_auc_of_perfect_reversed_and_constant_scores() -> None:
    low, high = np.array([-inf, 0.0]), np.array([1.0, inf])
    assert auc(low, high) == 1.0
    assert auc(high, low) == 0.0
    assert auc(np.zeros(5), np.zeros(3)) == 0.5


def test_auc_of_many_points_is_taken_on_evenly_spaced_ones() -> None:
    # sorted scores: the first 10,000 alone would say 0 or 1
    normal = np.linspace(0.0, 1.0, 40_000)
    assert auc(normal, normal) == pytest.approx(0.5, abs=1e-3)
    assert auc(normal, np.linspace(0.5, 1.5, 30_000)) == pytest.approx(0.875, abs=1e-3)
    assert auc(normal, np.array([0.25])) == pytest.approx(0.25, abs=1e-3)
