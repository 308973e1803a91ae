"""How rates are written: ceilings rounded up, confidences down; no promise is rounded in its own favour."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import nextafter
from typing import Final

# what a reader takes in at a glance
_TOLD: Final = 3
# what two machines agree on
_FEW: Final = 8
# digits enough for a sum or a share of doubles as they are written
_FLOOR: Final = Context(prec=28, rounding=ROUND_FLOOR)
# digits enough for a double in what 1 and the millionth part of a logarithm leave
_EXACT: Final = Context(prec=50)


def rounded_up(rate: float, unit: int = 1, digits: int = 4) -> str:
    """Return a ceiling or a delta with so many digits, never below the true one; `unit` is 100 for percent.

    >>> rounded_up(0.758641), rounded_up(0.05), rounded_up(0.0431201, 100)
    ('0.7587', '0.05', '4.313')
    """
    return _written(Context(prec=digits, rounding=ROUND_CEILING).multiply(Decimal(repr(float(rate))), unit))


def rounded_down(share: Decimal | float, unit: int = 1, digits: int = 6) -> str:
    """Return a confidence with so many digits, never above the true one; `unit` is 100 for percent.

    >>> rounded_down(0.95), rounded_down(0.999999999), rounded_down(0.957742, 100, 4)
    ('0.95', '0.999999', '95.77')
    """
    exact = share if isinstance(share, Decimal) else Decimal(repr(float(share)))
    return _written(Context(prec=digits, rounding=ROUND_FLOOR).multiply(exact, unit))


def told(share: float) -> int:
    """Return how many digits a measured or bounded share is told with: three, or two below 1 %.

    >>> told(0.1), told(0.009)
    (3, 2)
    """
    return _TOLD if share >= 0.01 else _TOLD - 1


def between(low: float, high: float) -> str:
    """Return two bounds of a number, the lower rounded down and the upper one up.

    >>> between(9.2391, 59.5), between(0.0, 2031.0), between(0.0, 0.0)
    ('9.23 to 59.5', 'at most 2,040', 'none')
    """
    most = f"{Decimal(rounded_up(high, digits=_TOLD)):,f}"
    if low > 0.0:
        return f"{Decimal(rounded_down(low, digits=_TOLD)):,f} to {most}"
    return f"at most {most}" if high > 0.0 else "none"


def confidence_left(*deltas: float) -> Decimal:
    """Return 1 minus the deltas, never more than that is; 0 where they leave nothing.

    >>> confidence_left(0.1, 0.2), confidence_left(0.6, 0.6)
    (Decimal('0.7'), Decimal('0'))
    """
    left = Decimal(1)
    for delta in deltas:
        left = _FLOOR.subtract(left, Decimal(repr(float(delta))))
    # rounded down, nothing left is -0, which would be written so
    return max(Decimal(0), left)


def kept_together(*shares: Decimal | float) -> Decimal:
    """Return the confidence that independent ones have together: their product, never more than that is.

    >>> kept_together(0.95, 0.95)
    Decimal('0.9025')
    """
    left = Decimal(1)
    for share in shares:
        left = _FLOOR.multiply(left, share if isinstance(share, Decimal) else Decimal(repr(float(share))))
    return left


def equal_share(confidence: float, count: int) -> float:
    """Return what each of so many deltas may take so that together they leave a confidence, never more.

    >>> equal_share(0.95, 2), equal_share(0.95, 1)
    (0.025, 0.05)
    """
    return float_below(_FLOOR.divide(confidence_left(confidence), Decimal(count)))


def of_few_digits(share: Decimal | float, *, up: bool = False) -> float:
    """Return a delta with eight digits, the same on every machine: never more than it is, or never less.

    >>> of_few_digits(0.0123456789), of_few_digits(0.0123456789, up=True), of_few_digits(Decimal("0.1"))
    (0.012345678, 0.012345679, 0.1)
    """
    exact = share if isinstance(share, Decimal) else Decimal(repr(float(share)))
    return float(Context(prec=_FEW, rounding=ROUND_CEILING if up else ROUND_FLOOR).plus(exact))


def float_below(share: Decimal) -> float:
    """Return the double nearest to a share, or the one before it if that is written as more.

    >>> float_below(Decimal("0.9025"))
    0.9025
    """
    nearest = float(share)
    return nearest if Decimal(repr(nearest)) <= share else nextafter(nearest, 0.0)


def shared_together(delta: float, count: int) -> float:
    """Return the delta of each of so many independent promises that fail together with delta: eq. (53).

    1 - (1 - delta)^(1/count), never more than that is.

    >>> round(shared_together(0.05, 20), 6), shared_together(0.05, 1)
    (0.002561, 0.05)
    """
    if count <= 1:
        return delta
    keeping = _EXACT.subtract(1, Decimal(repr(float(delta))))
    share = _EXACT.subtract(1, _EXACT.exp(_EXACT.divide(_EXACT.ln(keeping), count)))
    nearest = float(share)
    return nearest if Decimal(nearest) <= share else nextafter(nearest, 0.0)


def _written(number: Decimal) -> str:
    short = number.normalize()
    return f"{short:f}" if short == 0 or short.adjusted() > -20 else str(short)
