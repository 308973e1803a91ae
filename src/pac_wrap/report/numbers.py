"""How a report writes numbers: no promise is rounded in its own favour."""

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from itertools import count, pairwise
from math import inf, isinf
from typing import Final

from pac_wrap.base.floats import confidence_left, rounded_down, rounded_up, told

_DIGITS: Final = 4


def ceiling(rate: float) -> str:
    """Return a promised rate in percent: exact where four digits say it, else rounded up to fewer."""
    exact = len(Decimal(repr(float(rate))).normalize().as_tuple().digits) <= _DIGITS
    return f"{rounded_up(rate, 100, _DIGITS if exact else told(rate))} %"


def confidence(*deltas: float) -> str:
    """Return the confidence that is left after some deltas, in percent and rounded down."""
    return f"{rounded_down(confidence_left(*deltas), 100, _DIGITS)} %"


def sure(value: Decimal | float) -> str:
    """Return a confidence for a sentence: exact where three digits say it, else down, never certainty."""
    left = 1 - Decimal(repr(value) if isinstance(value, float) else value)
    few = rounded_down(value, 100, 3)
    exact = Decimal(few) == 100 * (1 - left)
    return f"{few if exact else rounded_down(value, 100, max(2, -left.adjusted()))} %"


def least(share: float) -> str:
    """Return a lower bound of a share in percent, rounded down."""
    return f"{rounded_down(share, 100, told(share))} %"


def share(count: int, n: int) -> str:
    """Return a counted share in percent, with its counts; 100 % or 0 % only where it is exactly that."""
    return f"{percent(count / n)} ({count:,} of {n:,})" if n else "no points"


def percent(value: float) -> str:
    """Return a measured share in percent, to the nearest of three digits, or two below 1 %."""
    digits = told(value)
    rounded = Context(prec=digits).multiply(Decimal(repr(float(value))), 100)
    if rounded == 100 and value < 1.0:
        return f"{rounded_down(value, 100, digits)} %"
    return f"{rounded.normalize():f} %"


def range_of(low: float, high: float) -> str:
    """Return two bounds of a share in percent, the lower rounded down and the upper one up."""
    return f"{least(low)} to {rounded_up(high, 100, told(high))} %"


def told_apart(values: Sequence[float], few: int = 6) -> list[str]:
    """Return scores with a few digits, or with as many as tell them apart and write their whole part."""

    def written(digits: int) -> list[str]:
        return [f"{value + 0.0:.{digits}g}" for value in values]

    few = max([few, *(len(f"{abs(value):.0f}") for value in values if abs(value) < 1e15)])
    # 17 digits tell any two doubles apart
    digits = next(digits for digits in range(few, 18) if len(set(written(digits))) == len(set(values)))
    return [minus(text).replace("inf", "\N{INFINITY}") for text in written(digits)]


def shortened(*thresholds: float) -> tuple[list[str], bool]:
    """Return thresholds in ASCII with few digits that tell them apart, and whether they are exact."""
    plain = str.maketrans({"\N{MINUS SIGN}": "-", "\N{INFINITY}": "inf"})
    texts = [text.translate(plain) for text in told_apart(thresholds, 4)]
    return texts, all(float(text) == x for text, x in zip(texts, thresholds, strict=True))


def about(threshold: float) -> str:
    """Return a threshold in few digits, after "about" if it is rounded."""
    (text,), exact = shortened(threshold)
    return text if exact else f"about {text}"


def exact(value: float | None) -> str:
    """Return a threshold with all its digits."""
    if value is None:
        return "none"
    return told_apart([value])[0] if isinf(value) else repr(value)


def minus(text: str) -> str:
    """Return a number's text with a minus sign instead of a hyphen."""
    return text.replace("-", "\N{MINUS SIGN}")


def number(value: float, span: float = inf) -> str:
    """Return a number with four digits, or as many as place it on an axis of that span."""
    texts = (f"{value:.{digits}g}" for digits in range(4, 18))
    near = (text for text in texts if float(text) == value or abs(float(text) - value) <= 1e-3 * span)
    return minus(next(near))


def written_alike(values: Iterable[float]) -> list[str]:
    """Return the ticks of an axis, all with the fewest digits that tell them apart."""
    ticks = [float(value) for value in values]
    if not ticks:
        return []
    step = min((b - a for a, b in pairwise(ticks)), default=1e-6 * abs(ticks[0]))
    ticks = [0.0 if abs(tick) < 1e-6 * step else tick for tick in ticks]
    largest = max(abs(tick) for tick in ticks)
    fixed = largest == 0.0 or 1e-3 <= largest < 1e6
    forms = ((f"{{:.{digits}f}}" if fixed else f"{{:.{digits + 1}g}}").format for digits in count())
    form = next(form for form in forms if all(abs(float(form(tick)) - tick) <= 1e-3 * step for tick in ticks))
    return [minus(form(tick)) for tick in ticks]


def exact_percent(share: float) -> str:
    """Return a share in percent, with all its digits."""
    return f"{(Decimal(repr(share)) * 100).normalize():f} %"
