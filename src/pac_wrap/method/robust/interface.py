"""Room between calibration and what a promise is about: a rising map of rates, rounded against it."""

from abc import ABC, abstractmethod
from decimal import Context, Decimal, localcontext
from math import nextafter
from typing import ClassVar, Final

# a double has up to 60 of them next to a ceiling that anybody asks for
DIGITS: Final = 70


def as_double(exact: Decimal, *, up: bool = False) -> float:
    """Return the double next to a number: the one above it, or the one below.

    >>> as_double(Decimal("0.1")), as_double(Decimal("0.1"), up=True)
    (0.09999999999999999, 0.1)
    """
    nearest = float(exact)
    if up:
        return nearest if Decimal(nearest) >= exact else nextafter(nearest, 2.0)
    return nearest if Decimal(nearest) <= exact else nextafter(nearest, -1.0)


class Room(ABC):
    """Room between a rate at calibration and what it may be afterwards: a rising map, eq. (69)."""

    tag: ClassVar[str]

    @abstractmethod
    def _before(self, ceiling: Decimal) -> Decimal: ...

    @abstractmethod
    def _after(self, rate: Decimal) -> Decimal: ...

    def before(self, ceiling: float) -> float:
        """Return what a rate must be at calibration to stay below a ceiling afterwards, never more.

        Parameters
        ----------
        ceiling : float
            What it must not exceed afterwards.

        Returns
        -------
        float
            0 or less where no rate is small enough.
        """
        with localcontext(Context(prec=DIGITS)):
            return as_double(self._before(Decimal(ceiling)))

    def after(self, rate: float) -> float:
        """Return what a rate at calibration may become afterwards, never less; 1 at most.

        Parameters
        ----------
        rate : float
            The rate at calibration.

        Returns
        -------
        float
        """
        with localcontext(Context(prec=DIGITS)):
            return min(1.0, as_double(self._after(Decimal(rate)), up=True))
