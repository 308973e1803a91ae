"""How much shift a certificate bears, for a report: looser ceilings against four distances."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from pac_wrap.base.rounding import rounded_down
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.room.radius import before_shift
from pac_wrap.method.room.shift import KL, SHIFTS, ChiSquared, DensityRatio, Distance, TotalVariation
from pac_wrap.report.pages.pictures import Line
from pac_wrap.report.words.numbers import ceiling, percent

_NAMES: Final[dict[type[Distance], str]] = {
    TotalVariation: "Total variation",
    DensityRatio: "Density ratio",
    KL: "KL divergence",
    ChiSquared: "Chi-squared",
}
# looser ceilings that are shown, in units of what is certified, and how far the picture goes
_LOOSER: Final = (1.5, 2.0, 4.0)
_MOST: Final = 4.0
_POINTS: Final = 60


@dataclass(frozen=True, slots=True)
class RobustRow:
    """How far points may shift until a looser ceiling breaks, by each distance."""

    kept: str
    total_variation: str
    ratio: str
    kl: str
    chi_squared: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One distance: paths of the ceilings of both rates against it, and the scales."""

    name: str
    fpr: str
    fnr: str
    ticks: tuple[Line, ...]
    levels: tuple[Line, ...]


def robust_rows(certificate: Certificate) -> tuple[RobustRow, ...]:
    """Return looser ceilings with the farthest shift that keeps each: eq. (77).

    >>> from pac_wrap import calibrate
    >>> row = robust_rows(calibrate(range(100), range(200, 300)))[1]
    >>> row.kept, row.total_variation, row.ratio
    ('FPR at most 10 %', '0.05', '2')
    """
    return tuple(
        RobustRow(f"{name} at most {ceiling(limit)}", *(_size(kind, rate, limit) for kind in SHIFTS))
        for name, rate, promised in _sides(certificate)
        for limit in (round(factor * promised, 12) for factor in _LOOSER)
        if limit < 1.0
    )


def panels(certificate: Certificate) -> tuple[Panel, ...]:
    """Return a small picture for each distance, from the certified ceilings on; none if nothing is promised.

    >>> from pac_wrap import calibrate
    >>> [panel.name for panel in panels(calibrate(range(100), range(200, 300)))][:2]
    ['Total variation', 'Density ratio']
    """
    rates = {name: rate for name, rate, _ in _sides(certificate)}
    top = min(0.999, _MOST * max(rates.values(), default=0.0))
    if top <= max(rates.values(), default=0.0):
        return ()
    return tuple(_panel(kind, rates, top) for kind in SHIFTS)


def _panel(kind: type[Distance], rates: dict[str, float], top: float) -> Panel:
    first = 1.0 if kind is DensityRatio else 0.0
    ends = (kind.between(rate, top) for rate in rates.values())
    farthest = max(first if end is None else end.size for end in ends)

    def path(name: str) -> str:
        if name not in rates:
            return ""
        limits = np.linspace(rates[name], top, _POINTS)[1:].tolist()
        found = [(kind.between(rates[name], limit), limit) for limit in limits]
        points = [(first, rates[name]), *((one.size, limit) for one, limit in found if one is not None)]
        places = ((1000.0 * (x - first) / (farthest - first), 100.0 - 100.0 * y / top) for x, y in points)
        return "M" + "L".join(f"{x:.1f} {y:.2f}" for x, y in places)

    middle = (first + farthest) / 2.0
    ticks = (
        Line("0", f"{first:g}", "start"),
        Line("50", f"{middle:.2g}"),
        Line("100", f"{farthest:.2g}", "end"),
    )
    levels = tuple(Line(f"{100.0 - 100.0 * share:.1f}", percent(share * top)) for share in (0.25, 0.5, 0.75))
    return Panel(_NAMES[kind], path("FPR"), path("FNR"), ticks, levels)


def _sides(certificate: Certificate) -> Iterator[tuple[str, float, float]]:
    """Yield each rate that is promised, what it is before any shift, and its ceiling."""
    if certificate.certified is not None:
        sides = certificate.certified, certificate.normal, certificate.anomalous
        for promise, rate in before_shift(*sides):
            yield promise.name, rate, promise.ceiling


def _size(kind: type[Distance], rate: float, limit: float) -> str:
    found = kind.between(rate, limit)
    return "none" if found is None else rounded_down(found.size, digits=4)
