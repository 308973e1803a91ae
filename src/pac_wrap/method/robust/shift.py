"""How far future points may shift, by four distances; what a rate may then become, and what it must be now.

Everything is computed with 70 digits and rounded against the promise.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from math import nextafter
from typing import ClassVar, Final, Self

from pac_wrap.base.arguments import as_float, check_rate
from pac_wrap.base.floats import rounded_down
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError

# a double has up to 60 of them next to a ceiling that anybody asks for
DIGITS: Final = 70
_ONE: Final = Decimal(1)
_NEGLIGIBLE: Final = Decimal("1e-45")
# no ceiling is smaller, so nobody needs to know how small a rate below it is
_NOTHING: Final = Decimal("1e-30")
# smaller divergences count as this one, since too few digits of them would be left
_LEAST: Final = Decimal("1e-24")
# with more room nothing is left of any ceiling
_MOST: Final = 1e15


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

        It is 0 or less where no rate is small enough.
        """
        with localcontext(Context(prec=DIGITS)):
            return as_double(self._before(Decimal(ceiling)))

    def after(self, rate: float) -> float:
        """Return what a rate at calibration may become afterwards, never less; 1 at most."""
        with localcontext(Context(prec=DIGITS)):
            return min(1.0, as_double(self._after(Decimal(rate)), up=True))


class Distance(Room):
    """How far the points of a class may shift: the promise holds for every distribution that is that near."""

    @property
    @abstractmethod
    def size(self) -> float:
        """The distance, or the ratio."""

    @classmethod
    @abstractmethod
    def _between(cls, rate: Decimal, ceiling: Decimal) -> Decimal: ...

    @classmethod
    def between(cls, rate: float, ceiling: float) -> Self | None:
        """Return the farthest shift that takes a rate to no more than a ceiling; None where there is none."""
        if not rate < ceiling:
            return None
        with localcontext(Context(prec=DIGITS)):
            found = as_double(cls._between(Decimal(rate), Decimal(ceiling)))
        try:
            made = cls(found)  # type: ignore[call-arg]  # every distance is one number
        except InputError:  # nothing is left of it when it is rounded down
            return None
        return made

    @property
    def text(self) -> str:
        """The distance as the command line has it."""
        return f"{self.tag}:{self.size!r}"

    def __str__(self) -> str:
        return f"{self._words} up to {rounded_down(self.size, digits=4)}"

    _words: ClassVar[str]


@dataclass(frozen=True, slots=True)
class TotalVariation(Distance):
    """Room for a shift within a total variation distance: no event's probability rises by more than this.

    A ceiling e needs e - distance at calibration: eq. (71). As if a share of up to `distance` of the future
    points were replaced by whatever an adversary likes.

    Parameters
    ----------
    distance : float
        From 0 to 1, and below the ceiling, or nothing can be promised.

    Raises
    ------
    InputError
        If it does not lie strictly between 0 and 1.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, shift=TotalVariation(0.02))).needed[0].labels[0]
    99
    """

    tag: ClassVar[str] = "tv"
    _words: ClassVar[str] = "total variation"
    distance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", check_rate("total variation distance", self.distance))

    @property
    def size(self) -> float:
        """The distance."""
        return self.distance

    def _before(self, ceiling: Decimal) -> Decimal:
        return ceiling - Decimal(self.distance)

    def _after(self, rate: Decimal) -> Decimal:
        return rate + Decimal(self.distance)

    @classmethod
    def _between(cls, rate: Decimal, ceiling: Decimal) -> Decimal:
        return ceiling - rate


@dataclass(frozen=True, slots=True)
class DensityRatio(Distance):
    """Room for a shift after which no point is more than `ratio` times as likely as before.

    A ceiling e needs e / ratio at calibration: eq. (72).

    Parameters
    ----------
    ratio : float
        More than 1.

    Raises
    ------
    InputError
        If it is not a number above 1.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, shift=DensityRatio(2))).needed[0].labels[0]
    119
    """

    tag: ClassVar[str] = "ratio"
    _words: ClassVar[str] = "a density ratio"
    ratio: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", _positive("density ratio", self.ratio, above=1.0))

    @property
    def size(self) -> float:
        """The ratio."""
        return self.ratio

    def _before(self, ceiling: Decimal) -> Decimal:
        return ceiling / Decimal(self.ratio)

    def _after(self, rate: Decimal) -> Decimal:
        return rate * Decimal(self.ratio)

    @classmethod
    def _between(cls, rate: Decimal, ceiling: Decimal) -> Decimal:
        return ceiling / rate


@dataclass(frozen=True, slots=True)
class _Divergence(Distance):
    """Room within a divergence of the future from the calibration distribution."""

    divergence: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "divergence", _positive("divergence", self.divergence))

    @property
    def size(self) -> float:
        """The divergence."""
        return self.divergence


@dataclass(frozen=True, slots=True)
class KL(_Divergence):
    """Room for a shift within a Kullback-Leibler divergence KL(future || calibration), in nats.

    A ceiling e needs the e' with kl(e || e') = divergence at calibration: eq. (73).

    Parameters
    ----------
    divergence : float
        More than 0.

    Raises
    ------
    InputError
        If it is not a number above 0.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, shift=KL(0.01))).needed[0].labels[0]
    119
    """

    tag: ClassVar[str] = "kl"
    _words: ClassVar[str] = "a Kullback-Leibler divergence"

    def _before(self, ceiling: Decimal) -> Decimal:
        e, rho = ceiling, max(Decimal(self.divergence), _LEAST)
        # kl(e || x) <= e ln(e / x), and it is at least that but for the second term at x = 0
        if e * (-rho / e).exp() < _NOTHING:
            return Decimal(0)
        rate = e * (((_ONE - e) * (_ONE - e).ln() - rho) / e).exp()
        # convex and falling: Newton's steps from the left never pass the root
        step = rate
        while step > rate * _NEGLIGIBLE:
            step = (_kl(e, rate) - rho) * rate * (_ONE - rate) / (e - rate)
            rate += step
        return rate

    def _after(self, rate: Decimal) -> Decimal:
        rho = max(Decimal(self.divergence), _LEAST)
        if rho >= -rate.ln():
            return _ONE
        found, gap = rate + (rho / 2).sqrt(), _ONE - rate  # Pinsker's inequality
        while found >= _ONE or _kl(found, rate) < rho:
            gap /= 10
            found = _ONE - gap
        # convex and rising: Newton's steps from the right never pass the root
        step = found
        while step > found * _NEGLIGIBLE:
            step = (_kl(found, rate) - rho) / (found * (_ONE - rate) / (rate * (_ONE - found))).ln()
            found -= step
        return found

    @classmethod
    def _between(cls, rate: Decimal, ceiling: Decimal) -> Decimal:
        found = _kl(ceiling, rate)
        # a lesser one has the room of the least
        return found if found >= _LEAST else Decimal(0)


@dataclass(frozen=True, slots=True)
class ChiSquared(_Divergence):
    """Room for a shift within a chi-squared divergence of the future from the calibration distribution.

    A ceiling e needs the e' with e' + sqrt(divergence e' (1 - e')) = e at calibration: eq. (74).

    Parameters
    ----------
    divergence : float
        More than 0.

    Raises
    ------
    InputError
        If it is not a number above 0.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, shift=ChiSquared(0.1))).needed[0].labels[0]
    221
    """

    tag: ClassVar[str] = "chi2"
    _words: ClassVar[str] = "a chi-squared divergence"

    def _before(self, ceiling: Decimal) -> Decimal:
        e, rho = ceiling, Decimal(self.divergence)
        return 2 * e * e / (2 * e + rho + (rho * (rho + 4 * e * (_ONE - e))).sqrt())

    def _after(self, rate: Decimal) -> Decimal:
        rho = Decimal(self.divergence)
        # beyond this rate every point may be an error
        if rate * (_ONE + rho) >= _ONE:
            return _ONE
        return rate + (rho * rate * (_ONE - rate)).sqrt()

    @classmethod
    def _between(cls, rate: Decimal, ceiling: Decimal) -> Decimal:
        return (ceiling - rate) ** 2 / (rate * (_ONE - rate))


Shift = TotalVariation | DensityRatio | KL | ChiSquared
SHIFTS: Final = (TotalVariation, DensityRatio, KL, ChiSquared)


def _kl(one: Decimal, other: Decimal) -> Decimal:
    """Return the divergence between two coins."""
    return one * (one / other).ln() + (_ONE - one) * ((_ONE - one) / (_ONE - other)).ln()


def _positive(name: str, given: float, above: float = 0.0) -> float:
    number = as_float(given)
    if not above < number <= _MOST:
        raise InputError(
            f"{name} must be a number above {above:g} and up to {_MOST:g}, got {quoted(given)}; leave the"
            " shift out for none"
        )
    return number
