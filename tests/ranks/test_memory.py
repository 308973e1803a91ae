from math import inf
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
