"""Doubles by their bits: both zeros are one number, and nothing changes where the processor flushes."""

import struct
from collections.abc import Callable
from math import copysign, inf, nextafter

import numpy as np
import pytest
from hypothesis import given

from pac_wrap.base.floats import (
    away_from_zero,
    bits_of,
    count_below_zero,
    flushes,
    from_order_key,
    is_delicate,
    is_flushed,
    just_below,
    largest_up_to,
    least_from,
    order_key,
    order_keys,
    reaches,
    unsigned_zero,
    widened,
)
from support.strategies import Floats, score, scores

LEAST, LEAST_NORMAL = 5e-324, 2.2250738585072014e-308
ENDS = np.array([-inf, -1e308, -1.0, -LEAST_NORMAL, -LEAST, -0.0, 0.0, LEAST, LEAST_NORMAL, 1.0, 1e308, inf])
NEAR_ZERO = np.array([-LEAST_NORMAL, -1e-310, -LEAST, -0.0, 0.0, LEAST, 1e-310, LEAST_NORMAL])
SINGLE = np.dtype(np.float32)
# the least and the largest subnormal float32, and the least normal one
BITS_32 = np.array([0, 1, 0x7FFFFF, 0x800000, 0x3F800000], dtype=np.uint32)
NARROW = np.concatenate([BITS_32, BITS_32 | np.uint32(1 << 31)]).view(np.float32)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@given(scores(), score)
def test_keys_are_in_the_order_of_the_scores(values: Floats, other: float) -> None:
    keys, one = order_keys(values), order_key(other)
    assert order_keys(np.array([other])).tolist() == [one]
    assert (keys < np.uint64(one)).tolist() == (values < other).tolist()
    assert (keys == np.uint64(one)).tolist() == (values == other).tolist()
    assert [from_order_key(int(key)) for key in keys] == values.tolist()


def test_making_keys_leaves_the_scores_alone() -> None:
    values = ENDS.copy()
    values.flags.writeable = False
    assert order_keys(values[::2]).size == 6
    assert np.array_equal(np.signbit(values), np.signbit(ENDS))


def test_both_zeros_are_one_number() -> None:
    assert order_key(-0.0) == order_key(0.0)
    assert bits(from_order_key(order_key(-0.0))) == bits(unsigned_zero(-0.0)) == bits(0.0)
    assert bits_of(np.array([-0.0]), np.empty(1)).tolist() == [0]
    assert not is_flushed(-0.0)
    assert not is_flushed(0.0)


def test_keys_and_bits_are_the_same_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    keys, raw, single = (
        order_keys(ENDS),
        bits_of(ENDS, np.empty(ENDS.size)).copy(),
        list(map(order_key, ENDS)),
    )
    assert keys.tolist() == single
    narrow, expected = order_keys(NARROW), [bits(unsigned_zero(value)) for value in ENDS.tolist()]
    flushing()
    assert flushes()
    assert np.array_equal(order_keys(ENDS), keys)
    assert list(map(order_key, ENDS)) == single
    assert np.array_equal(bits_of(ENDS, np.empty(ENDS.size)), raw)
    assert np.array_equal(order_keys(NARROW), narrow)
    assert [bits(from_order_key(key)) for key in single] == expected


@pytest.mark.parametrize("kind", ["<f4", ">f4"])
def test_float32_is_widened_exactly_where_the_processor_flushes(
    flushing: Callable[[], None], kind: str
) -> None:
    given_scores = NARROW.astype(kind)
    expected = NARROW.astype(np.float64).view(np.uint64)
    flushing()
    assert np.array_equal(widened(given_scores).view(np.uint64), expected)
    room = np.empty(NARROW.size)
    assert widened(given_scores, room) is room
    assert np.array_equal(room.view(np.uint64), expected)
    assert np.array_equal(widened(np.repeat(given_scores, 2)[::2]).view(np.uint64), expected)


def test_doubles_are_not_copied_when_they_are_widened() -> None:
    assert widened(ENDS) is ENDS


def test_a_number_that_is_taken_for_zero_is_told_from_zero(flushing: Callable[[], None]) -> None:
    assert not any(map(is_flushed, ENDS.tolist()))
    flushing()
    assert [value for value in ENDS.tolist() if is_flushed(value)] == [0.0, 0.0]
    assert bits(unsigned_zero(LEAST)) == bits(LEAST)
    assert bits(unsigned_zero(-LEAST)) == bits(-LEAST)


def test_scores_reach_a_threshold_as_always_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    cases = [(threshold, (threshold <= ENDS).tolist()) for threshold in (*NEAR_ZERO.tolist(), -inf, 1.0, inf)]
    counts = [(threshold, int((threshold > ENDS).sum())) for threshold in NEAR_ZERO[1:-1].tolist()]

    def check() -> None:
        for threshold, expected in cases:
            assert reaches(ENDS, threshold).tolist() == expected
        for threshold, count in counts:
            assert count_below_zero(ENDS, threshold) == count

    check()
    flushing()
    check()


def test_a_subnormal_number_is_moved_to_the_least_normal_one(
    flushing: Callable[[], None],
) -> None:
    def check() -> None:
        found = [bits(away_from_zero(value)) for value in NEAR_ZERO.tolist()]
        least = bits(LEAST_NORMAL)
        assert found == [bits(-LEAST_NORMAL)] * 3 + [bits(-0.0), bits(0.0)] + [least] * 3

    check()
    flushing()
    check()


@given(score)
def test_above_the_bound_is_at_or_above_the_edge(edge: float) -> None:
    bound = just_below(edge)
    if edge > -inf:
        assert bound < edge
        assert nextafter(bound, inf) == edge


def test_zero_lies_above_its_bound_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    assert just_below(0.0) == -LEAST
    flushing()
    assert just_below(0.0) < 0.0
    assert not just_below(LEAST) < 0.0
    assert copysign(1.0, just_below(LEAST)) == 1.0
    assert np.float32(0.0) > largest_up_to(just_below(0.0), SINGLE)


@given(score, score)
def test_a_narrower_bound_decides_float32_scores_as_the_double_does(bound: float, value: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(value)
    wide = float(narrow)
    assert (narrow > largest_up_to(bound, SINGLE)) == (wide > bound)
    assert (narrow < least_from(bound, SINGLE)) == (wide < bound)
    assert largest_up_to(bound, np.dtype(np.float64)) == least_from(bound, np.dtype(np.float64)) == bound


def test_only_numbers_next_to_zero_are_delicate() -> None:
    assert [is_delicate(value) for value in (0.0, -LEAST, 1e-40, -1e-45, 2.0**-126, 0.1, -inf)] == [
        *[True] * 4,
        *[False] * 3,
    ]
