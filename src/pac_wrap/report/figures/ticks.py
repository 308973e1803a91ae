"""Ticks that are short, plain and at round numbers."""

from itertools import count, pairwise
from typing import Any

from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, LogLocator, MaxNLocator, NullFormatter

from pac_wrap.report.figures.look import minus, number


class PlainTicks(Formatter):
    """Numbers written out with the fewest digits that tell the ticks apart; no offset hidden in a corner."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return one tick on its own."""
        return number(x)

    def format_ticks(self, values: Any) -> list[str]:
        """Return all ticks with the same number of digits.

        >>> PlainTicks().format_ticks([0.0, 0.25, 0.5])
        ['0.00', '0.25', '0.50']
        >>> PlainTicks().format_ticks([1e9, 1e9 + 1])
        ['1000000000', '1000000001']
        """
        ticks = [float(value) for value in values]
        if not ticks:
            return []
        step = min((b - a for a, b in pairwise(ticks)), default=1e-6 * abs(ticks[0]))
        ticks = [0.0 if abs(tick) < 1e-6 * step else tick for tick in ticks]
        largest = max(abs(tick) for tick in ticks)
        fixed = largest == 0.0 or 1e-3 <= largest < 1e6
        forms = ((f"{{:.{digits}f}}" if fixed else f"{{:.{digits + 1}g}}").format for digits in count())
        form = next(
            form for form in forms if all(abs(float(form(tick)) - tick) <= 1e-3 * step for tick in ticks)
        )
        return [minus(form(tick)) for tick in ticks]


def round_ticks(most: int) -> MaxNLocator:
    """Return a locator of at most so many intervals between round numbers."""
    return MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1)


def log_ticks(axis: Axis) -> None:
    """Put ticks at powers of ten, written out."""
    axis.set_major_locator(LogLocator(numticks=7))
    axis.set_major_formatter(short_tick)
    axis.set_minor_formatter(NullFormatter())


def short_tick(value: float, _: float = 0.0) -> str:
    """Return a tick of a log scale, as short as can be.

    >>> short_tick(0.1), short_tick(100.0)
    ('0.1', '100')
    """
    return minus(f"{value:g}")
