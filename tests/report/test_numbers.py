"""Numbers in a report: none is rounded in favour of the promise."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.report.numbers import (
    ceiling,
    confidence,
    exact,
    exact_percent,
    least,
    number,
    percent,
    range_of,
    share,
    sure,
    told_apart,
    written_alike,
)

rates = st.floats(1e-9, 1.0, exclude_max=True)


@given(rates)
def test_no_number_is_rounded_in_favour_of_the_promise(rate: float) -> None:
    exact = Decimal(repr(rate))

    def read(text: str) -> Decimal:
        return Decimal(text.removesuffix(" %")) / 100

    assert exact <= read(ceiling(rate)) <= exact * Decimal("1.11")
    if rate >= 0.01:
        assert read(ceiling(rate)) <= exact * Decimal("1.011")
    assert read(sure(rate)) <= exact
    assert read(confidence(rate)) <= 1 - exact
    assert (read(percent(rate)) == 1) == (rate == 1.0)


def test_close_thresholds_are_told_apart() -> None:
    assert told_apart([1.0, 1.0 + 1e-12]) == ["1", "1.000000000001"]
    assert told_apart([-inf, inf]) == ["\N{MINUS SIGN}\N{INFINITY}", "\N{INFINITY}"]


@pytest.mark.parametrize(
    ("written", "cases"),
    [
        (ceiling, {0.05: "5 %", 0.01125: "1.125 %", 0.0431201: "4.32 %", 0.0043121: "0.44 %"}),
        (confidence, {0.05: "95 %", 0.0000123: "99.99 %"}),
        (sure, {0.95774: "95 %", 0.975: "97.5 %", 0.999342: "99.93 %", 1.0: "100 %"}),
        (least, {0.831871: "83.1 %", 0.0079981: "0.79 %"}),
        (percent, {1 / 3: "33.3 %", 0.009913: "0.99 %", 2.5e-7: "0.000025 %", 0.9999: "99.9 %"}),
        (exact, {0.1: "0.1", None: "none"}),
        (exact_percent, {0.012345: "1.2345 %"}),
        (number, {1.23456: "1.235", inf: "inf"}),
        (partial(number, span=10.0), {1e9 + 1.5: "1000000001.5"}),
    ],
)
def test_a_number_is_written_like_this(
    written: Callable[[object], str], cases: dict[float | None, str]
) -> None:
    assert {value: written(value) for value in cases} == cases


def test_two_numbers_are_written_like_this() -> None:
    assert confidence(0.1, 0.2) == "70 %"
    assert (range_of(0.007273, 0.38181), range_of(0.0, 1.0)) == ("0.72 % to 38.2 %", "0 % to 100 %")
    assert share(1884, 2000) == "94.2 % (1,884 of 2,000)"
    assert (share(999_999, 1_000_000), share(0, 0)) == ("99.9 % (999,999 of 1,000,000)", "no points")
    assert told_apart([0.1234567, 12.0]) == ["0.123457", "12"]
    assert written_alike([0.0, 0.25, 0.5]) == ["0.00", "0.25", "0.50"]
    assert written_alike([1e9, 1e9 + 1]) == ["1000000000", "1000000001"]
