"""Tolerated distribution shift, in four distances, and label noise: the ceilings that calibration needs.

Everything is computed with 70 digits and rounded against the promise.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Context, Decimal, localcontext
from math import nextafter
from typing import TYPE_CHECKING, ClassVar, Final, Self, cast

from pac_wrap.base.arguments import as_float, check_rate
from pac_wrap.base.floats import rounded_down, rounded_up
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.promise import Promise

# doubles close to a realistic ceiling have up to 60 digits
_DIGITS: Final = 70
_ONE: Final = Decimal(1)
_NEGLIGIBLE: Final = Decimal("1e-45")
# no ceiling is smaller, so smaller rates need not be exact
_NOTHING: Final = Decimal("1e-30")
# smaller divergences count as this one, since too few digits of them would be left
_LEAST: Final = Decimal("1e-24")
# no ceiling tolerates more
_MOST: Final = 1e15
# the assumption of a comparison of new labels with eq. (76)
NEW_LABELS: Final = (
    "this assumes that the new labels are no noisier than the promise tolerates; label noise changes with the"
    " prevalence, even if the labeller errs as before"
)


def _as_double(exact: Decimal, *, up: bool = False) -> float:
    """Return the double closest to a number from above, or from below."""
    nearest = float(exact)
    if up:
        return nearest if Decimal(nearest) >= exact else nextafter(nearest, 2.0)
    return nearest if Decimal(nearest) <= exact else nextafter(nearest, -1.0)


class Tolerance(ABC):
    """A tolerated change, as an increasing map from a rate at calibration to the later rate: eq. (69)."""

    tag: ClassVar[str]

    @abstractmethod
    def _before(self, ceiling: Decimal) -> Decimal: ...

    @abstractmethod
    def _after(self, rate: Decimal) -> Decimal: ...

    def before(self, ceiling: float) -> float:
        """Return the largest rate at calibration that stays within a ceiling; 0 or less if none does."""
        with localcontext(Context(prec=_DIGITS)):
            return _as_double(self._before(Decimal(ceiling)))

    def after(self, rate: float) -> float:
        """Return the largest later rate that a rate at calibration may become."""
        with localcontext(Context(prec=_DIGITS)):
            return min(1.0, _as_double(self._after(Decimal(rate)), up=True))


@dataclass(frozen=True, slots=True)
class Distance(Tolerance):
    """A tolerated shift of a class: the promise holds for every distribution within this distance."""

    # its name in sentences, the name of its number, and the lower limit of that number
    _words: ClassVar[str]
    _name: ClassVar[str] = "divergence"
    _above: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        number = as_float(self.size)
        if not self._above < number <= _MOST:
            raise InputError(
                f"{self._name} must be a number above {self._above:g} and up to {_MOST:g}, got"
                f" {quoted(self.size)}; for no shift, remove it"
            )
        object.__setattr__(self, fields(self)[0].name, number)

    @property
    def size(self) -> float:
        """The distance, the ratio or the divergence."""
        number: float = getattr(self, fields(self)[0].name)
        return number

    @classmethod
    @abstractmethod
    def _between(cls, rate: Decimal, ceiling: Decimal) -> Decimal: ...

    @classmethod
    def between(cls, rate: float, ceiling: float) -> Self | None:
        """Return the largest shift after which a rate is still within a ceiling; None if there is none."""
        if not rate < ceiling:
            return None
        with localcontext(Context(prec=_DIGITS)):
            found = _as_double(cls._between(Decimal(rate), Decimal(ceiling)))
        try:
            return cls(found)  # type: ignore[call-arg]  # every distance is one number
        except InputError:  # rounded down, it is 0
            return None

    def __str__(self) -> str:
        return f"{self._words} up to {rounded_down(self.size, digits=4)}"


@dataclass(frozen=True, slots=True)
class TotalVariation(Distance):
    """A tolerated shift in total variation: no event's probability rises by more than the distance.

    A ceiling e needs e - distance at calibration: eq. (71).

    Parameters
    ----------
    distance : float
        The largest distance, above 0 and below the ceiling.

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

    def _before(self, ceiling: Decimal) -> Decimal:
        return ceiling - Decimal(self.distance)

    def _after(self, rate: Decimal) -> Decimal:
        return rate + Decimal(self.distance)

    @classmethod
    def _between(cls, rate: Decimal, ceiling: Decimal) -> Decimal:
        return ceiling - rate


@dataclass(frozen=True, slots=True)
class DensityRatio(Distance):
    """A tolerated shift by density ratio: no point becomes more than `ratio` times as likely as before.

    A ceiling e needs e / ratio at calibration: eq. (72).

    Parameters
    ----------
    ratio : float
        The largest ratio, above 1.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, shift=DensityRatio(2))).needed[0].labels[0]
    119
    """

    tag: ClassVar[str] = "ratio"
    _words: ClassVar[str] = "a density ratio"
    _name: ClassVar[str] = "density ratio"
    _above: ClassVar[float] = 1.0
    ratio: float

    def _before(self, ceiling: Decimal) -> Decimal:
        return ceiling / Decimal(self.ratio)

    def _after(self, rate: Decimal) -> Decimal:
        return rate * Decimal(self.ratio)

    @classmethod
    def _between(cls, rate: Decimal, ceiling: Decimal) -> Decimal:
        return ceiling / rate


@dataclass(frozen=True, slots=True)
class KL(Distance):
    """A tolerated shift in Kullback-Leibler divergence KL(future || calibration), in nats.

    A ceiling e needs the e' with kl(e || e') = divergence at calibration: eq. (73).

    Parameters
    ----------
    divergence : float
        The largest divergence, above 0.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, shift=KL(0.01))).needed[0].labels[0]
    119
    """

    tag: ClassVar[str] = "kl"
    _words: ClassVar[str] = "a Kullback-Leibler divergence"
    divergence: float

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
        # a smaller divergence would count as the smallest, so it is 0
        return found if found >= _LEAST else Decimal(0)


@dataclass(frozen=True, slots=True)
class ChiSquared(Distance):
    """A tolerated shift in chi-squared divergence of the future from the calibration distribution.

    A ceiling e needs the e' with e' + sqrt(divergence e' (1 - e')) = e at calibration: eq. (74).

    Parameters
    ----------
    divergence : float
        The largest divergence, above 0.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, shift=ChiSquared(0.1))).needed[0].labels[0]
    221
    """

    tag: ClassVar[str] = "chi2"
    _words: ClassVar[str] = "a chi-squared divergence"
    divergence: float

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


@dataclass(frozen=True, slots=True)
class LabelNoise(Tolerance):
    """Tolerated label noise: how many labels of a class may be wrong, whatever the scores of those points.

    With h = contamination and q = lost, a ceiling e needs (1 - h) (e - q) / (1 - q) at calibration: eq. (75).

    Parameters
    ----------
    contamination : float
        The largest share of other points among those labelled as this class. It depends on the prevalence.
    lost : float
        The largest share of the class's points that carry another label, or none, depending on their scores.
        Points lost at random cost nothing, so leave 0 for them. One of the two shares must be above 0.

    Examples
    --------
    >>> from pac_wrap import Guarantee, plan
    >>> plan(Guarantee(max_fpr=0.05, max_fnr=None, label_noise=LabelNoise(0.05))).needed[0].labels[0]
    62
    """

    tag: ClassVar[str] = "labels"
    contamination: float = 0.0
    lost: float = 0.0

    def __post_init__(self) -> None:
        for name in ("contamination", "lost"):
            share = as_float(getattr(self, name))
            if not 0.0 <= share < 1.0:
                raise InputError(
                    f"{name} must be a share of at least 0 and below 1, got {quoted(getattr(self, name))};"
                    " write five percent as 0.05"
                )
            object.__setattr__(self, name, share)
        if not self.contamination and not self.lost:
            raise InputError(
                "LabelNoise needs a contamination or a lost share above 0; for no label noise, remove it"
            )

    def _before(self, ceiling: Decimal) -> Decimal:
        h, q = Decimal(self.contamination), Decimal(self.lost)
        return (_ONE - h) * (ceiling - q) / (_ONE - q)

    def _after(self, rate: Decimal) -> Decimal:
        h, q = Decimal(self.contamination), Decimal(self.lost)
        return (_ONE - q) * min(_ONE, rate / (_ONE - h)) + q

    def counted(self, rate: float) -> float:
        """Return the largest share of errors that noisy labels may show at a true error rate: eq. (76).

        If the prevalence changes, so does the share of wrong labels: eq. (119).

        Parameters
        ----------
        rate : float
            The true error rate.
        """
        with localcontext(Context(prec=_DIGITS)):
            h, q = Decimal(self.contamination), Decimal(self.lost)
            found = h + (_ONE - h) * min(_ONE, Decimal(rate) / (_ONE - q))
            return min(1.0, _as_double(found, up=True))

    def __str__(self) -> str:
        shares = {"contaminated": self.contamination, "lost": self.lost}
        parts = [f"{rounded_down(share, 100, 4)} % {what}" for what, share in shares.items() if share > 0.0]
        return f"up to {' and '.join(parts)} labels"


@dataclass(frozen=True, slots=True)
class Reviews(Tolerance):
    """How traffic was reviewed: a ceiling c needs c rate (1 - mistaken) (1 - max_anomalies): eq. (140).

    A ceiling e of the FNR from audits needs audits e / (audits e + 1 - e) instead: eq. (149), where r = 1.

    Parameters
    ----------
    rate : float
        The chance that a normal point is reviewed if it raises an alarm, by a coin that is
        independent of its score and label; then only points that it drew may have a review. 1 if
        every point that was not reviewed counts as normal.
    mistaken : float
        The largest chance, at every score, that a reviewer calls a normal point an anomaly.
    max_anomalies : float
        The largest share of anomalies in traffic; only a ceiling of the FPR needs it: eq. (139).
    audits : float
        The chance that a point was drawn for audit, by a coin of its own for each point of traffic, whatever
        its score; only a ceiling of the FNR needs it. Then `rate` must be 1 and `mistaken` 0.

    Examples
    --------
    >>> Reviews(mistaken=0.1).before(0.001)
    0.0009
    """

    tag: ClassVar[str] = "reviews"
    rate: float = 1.0
    mistaken: float = 0.0
    max_anomalies: float = 0.0
    audits: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rate", "mistaken", "max_anomalies", "audits"):
            given = getattr(self, name)
            share = as_float(given)
            if not (0.0 < share <= 1.0 if name == "rate" else 0.0 <= share < 1.0):
                limits = "above 0 and at most 1" if name == "rate" else "at least 0 and below 1"
                raise InputError(f"{name} of the reviews must be {limits}, got {quoted(given)}")
            object.__setattr__(self, name, share)
        if self.audits and (self.rate < 1.0 or self.mistaken):
            raise InputError(
                "audits need a rate of 1 and no mistaken reviews: their coin alone chooses points, and points"
                " found anomalous must be so; leave out rate and mistaken, or audits"
            )

    @property
    def _factor(self) -> Decimal:
        return Decimal(self.rate) * (_ONE - Decimal(self.mistaken)) * (_ONE - Decimal(self.max_anomalies))

    def _before(self, ceiling: Decimal) -> Decimal:
        if not self.audits:
            return ceiling * self._factor
        missed = Decimal(self.audits) * ceiling
        return missed / (missed + _ONE - ceiling)

    def _after(self, rate: Decimal) -> Decimal:
        if not self.audits:
            return rate / self._factor
        return rate / (rate + Decimal(self.audits) * (_ONE - rate))


def _kl(one: Decimal, other: Decimal) -> Decimal:
    """Return the Kullback-Leibler divergence of two Bernoulli distributions."""
    return one * (one / other).ln() + (_ONE - one) * ((_ONE - one) / (_ONE - other)).ln()


@dataclass(frozen=True, slots=True)
class Radius:
    """How far each class may shift while a ceiling still holds, in each of four distances: eq. (77).

    `fpr` and `fnr` are the largest shifts of normal and of anomalous points; empty if none is tolerated.
    """

    ceiling: float
    fpr: tuple[Shift, ...]
    fnr: tuple[Shift, ...]

    def __str__(self) -> str:
        return "\n".join(
            f"{name} <= {rounded_up(self.ceiling)}:"
            f" {', or '.join(map(str, found)) or 'not promised after any shift'}"
            for name, found in (("FPR", self.fpr), ("FNR", self.fnr))
        )


def before_shift(one: "Certificate") -> Iterator[tuple["Promise", float]]:
    """Yield each promise with enough labels, and the error rate that it guarantees without any shift."""
    for clause in (one.fpr, one.fnr):
        promise, budget = clause.certified, clause.budget
        if promise is not None and budget is not None and budget.errors is not None:
            noise = promise.label_noise
            yield promise, budget.rate if noise is None else noise.after(budget.rate)


class Robust:
    """How much shift a certificate tolerates; a part of `Certificate`."""

    __slots__ = ()

    def radius(self, ceiling: float) -> Radius:
        """Return how far each class may shift while its rate stays below a looser ceiling.

        Parameters
        ----------
        ceiling : float
            The looser ceiling, between 0 and 1.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> calibrate(range(100), range(200, 300)).radius(0.1).fpr[1]
        DensityRatio(ratio=2.0)
        """
        limit, one = check_rate("ceiling", ceiling), cast("Certificate", self)
        if one.traffic is not None:
            raise InputError("a radius is for the error rates of classes; this certificate is about traffic")
        if one.units is not None:
            raise InputError("a radius is for independent points; this certificate was made with units")
        if one.by_kind:
            raise InputError(
                "a radius is for a whole class, and this certificate has a promise for each kind; calibrate"
                " without kinds"
            )
        if one.fpr.certified is None and one.fnr.certified is None:
            raise InputError("nothing is certified, so no shift is tolerated; certificate.diagnosis says why")
        found = {
            promise.name: tuple(shift for kind in SHIFTS if (shift := kind.between(rate, limit)) is not None)
            for promise, rate in before_shift(one)
        }
        return Radius(limit, found.get("FPR", ()), found.get("FNR", ()))
