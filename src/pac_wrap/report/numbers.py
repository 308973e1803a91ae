"""How a report writes numbers: no promise is rounded in its own favour."""

from collections.abc import Sequence
from decimal import Context, Decimal
from math import isinf
from typing import Final

from pac_wrap.base.rounding import confidence_left, rounded_down, rounded_up

_DIGITS: Final = 4


def ceiling(rate: float) -> str:
    """Return a promised rate in percent, rounded up.

    >>> ceiling(0.05), ceiling(0.0431201)
    ('5 %', '4.313 %')
    """
    return f"{rounded_up(rate, 100)} %"


def confidence(*deltas: float) -> str:
    """Return the confidence that is left after some deltas, in percent and rounded down.

    >>> confidence(0.05), confidence(0.1, 0.2), confidence(0.0000123)
    ('95 %', '70 %', '99.99 %')
    """
    return floored(confidence_left(*deltas))


def floored(value: Decimal | float) -> str:
    """Return an exact confidence in percent, rounded down.

    >>> floored(0.95774)
    '95.77 %'
    """
    return f"{rounded_down(value, 100, _DIGITS)} %"


def share(count: int, n: int) -> str:
    """Return a counted share in percent, with its counts; it is 100 % or 0 % only where it is exactly that.

    >>> share(1884, 2000), share(999_999, 1_000_000), share(0, 0)
    ('94.2 % (1,884 of 2,000)', '99.99 % (999,999 of 1,000,000)', 'no points')
    """
    return f"{percent(count / n)} ({count:,} of {n:,})" if n else "no points"


def percent(value: float) -> str:
    """Return a measured share in percent, to the nearest of four digits.

    >>> percent(1 / 3), percent(2.5e-7)
    ('33.33 %', '0.000025 %')
    """
    rounded = Context(prec=_DIGITS).multiply(Decimal(repr(value)), 100)
    return floored(value) if rounded == 100 else f"{rounded.normalize():f} %"


def told_apart(values: Sequence[float]) -> list[str]:
    """Return scores with six digits, or as many as it takes to tell them apart.

    >>> told_apart([0.1234567, 12.0]), told_apart([1.00000001, 1.00000002])
    (['0.123457', '12'], ['1.00000001', '1.00000002'])
    """

    def written(digits: int) -> list[str]:
        return [f"{value + 0.0:.{digits}g}" for value in values]

    # 17 digits tell any two doubles apart
    digits = next(digits for digits in range(6, 18) if len(set(written(digits))) == len(set(values)))
    return [text.replace("-", "\N{MINUS SIGN}").replace("inf", "\N{INFINITY}") for text in written(digits)]


def exact(value: float | None) -> str:
    """Return a threshold with all its digits.

    >>> exact(0.1), exact(None)
    ('0.1', 'none')
    """
    if value is None:
        return "none"
    return told_apart([value])[0] if isinf(value) else repr(value)
