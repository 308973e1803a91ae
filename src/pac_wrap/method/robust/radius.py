"""How far the points of each class may shift before a looser ceiling breaks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.floats import rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.robust.shift_and_noise import SHIFTS, Shift

if TYPE_CHECKING:
    from pac_wrap.method.certificates.certificate import Certificate
    from pac_wrap.method.promise import Promise


@dataclass(frozen=True, slots=True)
class Radius:
    """How far each class may shift until its rate may exceed a ceiling, by any one distance: eq. (77).

    Parameters
    ----------
    ceiling : float
        The ceiling.
    fpr, fnr : tuple of TotalVariation, DensityRatio, KL and ChiSquared
        The farthest shift of the normal, and of the anomalous points; empty where none is allowed.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> found = calibrate(range(100), range(200, 300)).radius(0.1)
    >>> found.fpr[:2]
    (TotalVariation(distance=0.05), DensityRatio(ratio=2.0))
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
    """Yield each promise that enough labels support, and the rate that its class keeps before any shift."""
    for clause in (one.fpr, one.fnr):
        promise, budget = clause.certified, clause.budget
        if promise is not None and budget is not None and budget.errors is not None:
            noise = promise.label_noise
            yield promise, budget.rate if noise is None else noise.after(budget.rate)


class Robust:
    """How much shift a certificate bears; a part of `Certificate`."""

    __slots__ = ()

    def radius(self, ceiling: float) -> Radius:
        """Return how far the points of each class may shift before a looser ceiling breaks.

        Parameters
        ----------
        ceiling : float
            The ceiling that is still to be kept, between 0 and 1.

        Returns
        -------
        Radius
            The farthest shift by each of four distances, for the FPR and for the FNR.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> calibrate(range(100), range(200, 300)).radius(0.1).fpr[1]
        DensityRatio(ratio=2.0)
        """
        limit, one = check_rate("ceiling", ceiling), cast("Certificate", self)
        if one.fpr.certified is None and one.fnr.certified is None:
            raise InputError(
                "nothing is certified, so there is nothing to keep; certificate.diagnosis says why"
            )
        found: dict[str, tuple[Shift, ...]] = {}
        for promise, rate in before_shift(one):
            shifts = (kind.between(rate, limit) for kind in SHIFTS)
            found[promise.name] = tuple(one for one in shifts if one is not None)
        return Radius(limit, found.get("FPR", ()), found.get("FNR", ()))
