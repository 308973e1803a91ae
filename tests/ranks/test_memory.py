from collections.abc import Callable
from math import ceil, inf, nextafter
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.base.floats import order_key
from pac_wrap.ranks import memory
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.memory import RankedInMemory, kth_between, kth_largest, kth_smallest
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


def between(normal: Any, anomalous: Any, low: float, high: float, share: float) -> float:
    """Return the same by sorting the pool of both classes."""
    pool = np.sort(np.concatenate([normal, anomalous]).astype(np.float64))
    inside = pool[(pool >= low) & (pool <= high)]
    return float(inside[max(1, ceil(share * inside.size)) - 1])


@given(scores(), scores(min_size=1), st.data())
def test_ranks_of_both_classes_between_two_scores(
    normal: Floats, anomalous: Floats, data: st.DataObject
) -> None:
    high = data.draw(st.sampled_from(anomalous.tolist()))
    low = data.draw(score.filter(lambda value: value <= high))
    share = data.draw(st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0.0, 1.0))
    expected = between(normal, anomalous, low, high, share)
    found = kth_between(normal, anomalous, low, high, share)
    assert found == expected
    assert str(found) != "-0.0"
    ranked = RankedInMemory(normal, "normal", 1), RankedInMemory(anomalous, "anomalous", 1)
    assert kth_between(*ranked, low, high, share) == expected


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.9, 1.0])
def test_many_scores_are_looked_at_only_near_the_rank(
    kind: Any, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "SMALL", 1000)
    rng = np.random.default_rng(8)
    normal, anomalous = rng.normal(0, 1, 20_000).astype(kind), rng.normal(3, 1, 5_000).astype(kind)
    for low, high in ((1.0, 2.0), (-inf, inf), (float(normal[0]), float(normal[0]))):
        expected = between(normal, anomalous, low, high, share)
        assert kth_between(normal, anomalous, low, high, share) == expected
    # a sample that misleads costs a second look, and nothing else
    monkeypatch.setattr(memory, "_ends_around", lambda *_: (1.4, 1.41))
    assert kth_between(normal, anomalous, 1.0, 2.0, share) == between(normal, anomalous, 1.0, 2.0, share)


@given(scores(min_size=1), scores(min_size=1), st.data())
def test_few_scores_that_are_sorted_answer_as_those_that_are_selected(
    normal: Floats, anomalous: Floats, data: st.DataObject
) -> None:
    few = RankedInMemory(normal, "normal", 1), RankedInMemory(anomalous, "anomalous", 1)
    with patch.object(memory, "_SORTED", -1):
        many = RankedInMemory(normal, "normal", 1), RankedInMemory(anomalous, "anomalous", 1)
    assert few[0].ordered is not None
    assert many[0].ordered is many[1].ordered is None
    high = data.draw(st.sampled_from(anomalous.tolist()))
    low = data.draw(score.filter(lambda value: value <= high))
    for one, other in zip(few, many, strict=True):
        assert one.digest == other.digest
        for k in range(1, one.size + 1):
            assert one.kth_smallest(k) == other.kth_smallest(k)
        for threshold in (low, high, nextafter(high, inf), 0.0, -0.0, 5e-324, inf, -inf):
            assert one.count_below(threshold) == other.count_below(threshold)
    for share in (0.0, 0.5, 1.0):
        expected = kth_between(*many, low, high, share)
        assert kth_between(*few, low, high, share) == expected
        # one class may be small and the other large
        assert kth_between(few[0], many[1], low, high, share) == expected


def test_few_scores_have_the_same_ranks_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    values = np.array([5e-324, -0.0, -5e-324, 1e-310, 0.0, -1e-310, 1.0, -1.0])
    before = RankedInMemory(values, "normal", 1)
    ranks = [order_key(before.kth_smallest(k)) for k in range(1, 9)]
    below = [before.count_below(value) for value in values.tolist()]
    shares = (0.0, 0.5, 1.0)
    between = [order_key(before.kth_between(before, -1e-310, 1e-310, share)) for share in shares]
    flushing()
    after = RankedInMemory(values, "normal", 1)
    assert [order_key(after.kth_smallest(k)) for k in range(1, 9)] == ranks
    assert [after.count_below(value) for value in values.tolist()] == below
    assert [
        order_key(after.kth_between(after, -1e-310, 1e-310, share)) for share in (0.0, 0.5, 1.0)
    ] == between
