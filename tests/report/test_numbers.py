"""Numbers in a report: none is rounded in favour of the promise."""

from decimal import Decimal
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.report.numbers import ceiling, confidence, floored, percent, told_apart

rates = st.floats(1e-9, 1.0, exclude_max=True)


@given(rates)
def test_no_number_is_rounded_in_favour_of_the_promise(rate: float) -> None:
    exact = Decimal(repr(rate))

    def read(text: str) -> Decimal:
        return Decimal(text.removesuffix(" %")) / 100

    assert exact <= read(ceiling(rate)) <= exact * Decimal("1.11")
    if rate >= 0.01:
        assert read(ceiling(rate)) <= exact * Decimal("1.011")
    assert read(floored(rate)) <= exact
    assert read(confidence(rate)) <= 1 - exact
    assert (read(percent(rate)) == 1) == (rate == 1.0)


def test_close_thresholds_are_told_apart() -> None:
    assert told_apart([1.0, 1.0 + 1e-12]) == ["1", "1.000000000001"]
    assert told_apart([-inf, inf]) == ["\N{MINUS SIGN}\N{INFINITY}", "\N{INFINITY}"]
