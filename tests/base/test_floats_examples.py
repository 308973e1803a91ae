from decimal import Decimal
from math import inf

import numpy as np

from pac_wrap.base.floats import (
    away_from_zero,
    between,
    bits_of,
    confidence_left,
    count_below_zero,
    equal_share,
    float_below,
    from_order_key,
    from_order_keys,
    is_delicate,
    is_narrower,
    just_below,
    kept_together,
    largest_up_to,
    least_from,
    of_few_digits,
    order_key,
    order_keys,
    reaches,
    represents,
    rounded,
    rounded_down,
    rounded_up,
    rounding_edge,
    shared_together,
    straddled,
    told,
    unsigned_zero,
)


def test_is_delicate() -> None:
    assert (is_delicate(0.0), is_delicate(1e-45), is_delicate(1e-30)) == ((True, True, False))


def test_unsigned_zero() -> None:
    assert (unsigned_zero(-0.0), unsigned_zero(-5e-324)) == ((0.0, -5e-324))


def test_away_from_zero() -> None:
    assert (away_from_zero(-5e-324), away_from_zero(0.0), away_from_zero(0.5)) == (
        (-2.2250738585072014e-308, 0.0, 0.5)
    )


def test_bits_of() -> None:
    assert (bits_of(np.array([-0.0, 5e-324]), np.empty(2)).tolist()) == ([0, 1])


def test_order_keys() -> None:
    keys = order_keys(np.array([-np.inf, -1.0, -0.0, 0.0, 5e-324, np.inf]))
    assert ((keys[1:] > keys[:-1]).tolist()) == ([True, True, False, True, True])


def test_order_key() -> None:
    assert order_key(-0.0) == order_key(0.0) < order_key(5e-324)


def test_from_order_key() -> None:
    assert ([from_order_key(order_key(value)) for value in (-2.5, 0.0, inf)]) == ([-2.5, 0.0, inf])


def test_from_order_keys() -> None:
    assert (from_order_keys(order_keys(np.array([-2.5, -0.0, np.inf]))).tolist()) == ([-2.5, 0.0, inf])


def test_reaches() -> None:
    assert (reaches(np.array([-0.0, 0.0, 5e-324]), 5e-324).tolist()) == ([False, False, True])


def test_count_below_zero() -> None:
    assert (count_below_zero(np.array([-1.0, -5e-324, -0.0, 0.0]), 0.0)) == (2)


def test_just_below() -> None:
    assert just_below(1.0) < 1.0


def test_largest_up_to() -> None:
    assert float(largest_up_to(0.1, np.dtype(np.float32))) < 0.1


def test_least_from() -> None:
    assert float(least_from(0.1, np.dtype(np.float32))) > 0.1


def test_is_narrower() -> None:
    assert is_narrower("float32", "float64")


def test_rounded() -> None:
    assert (rounded([0.3, 1e39], "float32").tolist()) == ([0.30000001192092896, inf])


def test_rounding_edge() -> None:
    # the next float32 above 0.3, less half a step
    assert rounding_edge(0.3, "float32") == 0.29999999701976776


def test_straddled() -> None:
    assert (straddled(0.3, "float32"), straddled(rounding_edge(0.3, "float32"), "float32")) == (
        (0.30000001192092896, None)
    )


def test_represents() -> None:
    assert (represents("float32", 0.5), represents("float32", 0.3)) == ((True, False))


def test_rounded_up() -> None:
    assert (rounded_up(0.758641), rounded_up(0.05), rounded_up(0.0431201, 100)) == (
        ("0.7587", "0.05", "4.313")
    )


def test_rounded_down() -> None:
    assert (rounded_down(0.95), rounded_down(0.999999999), rounded_down(0.957742, 100, 4)) == (
        ("0.95", "0.999999", "95.77")
    )


def test_told() -> None:
    assert (told(0.1), told(0.009)) == ((3, 2))


def test_between() -> None:
    assert (between(9.2391, 59.5), between(0.0, 2031.0), between(0.0, 0.0)) == (
        ("9.23 to 59.5", "at most 2,040", "none")
    )


def test_confidence_left() -> None:
    assert (confidence_left(0.1, 0.2), confidence_left(0.6, 0.6)) == ((Decimal("0.7"), Decimal("0")))


def test_kept_together() -> None:
    assert (kept_together(0.95, 0.95)) == (Decimal("0.9025"))


def test_equal_share() -> None:
    assert (equal_share(0.95, 2), equal_share(0.95, 1)) == ((0.025, 0.05))


def test_of_few_digits() -> None:
    assert (
        of_few_digits(0.0123456789),
        of_few_digits(0.0123456789, up=True),
        of_few_digits(Decimal("0.1")),
    ) == ((0.012345678, 0.012345679, 0.1))


def test_float_below() -> None:
    assert (float_below(Decimal("0.9025"))) == (0.9025)


def test_shared_together() -> None:
    assert (round(shared_together(0.05, 20), 6), shared_together(0.05, 1)) == ((0.002561, 0.05))
