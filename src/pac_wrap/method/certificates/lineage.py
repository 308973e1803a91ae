"""Certificates that follow each other: which came before, and how they share one delta."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import nextafter
from typing import Final

from pac_wrap.base.arguments import check_positive, check_rate
from pac_wrap.base.floats import rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies.interface import Strategy

# so many digests of earlier certificates are kept, the latest
MOST_ANCESTORS: Final = 50


@dataclass(frozen=True, slots=True)
class Lineage:
    """The place of a certificate among those that followed each other; made by `recalibrate`.

    Attributes
    ----------
    number : int
        How many certificates came before.
    ledger : bool
        Whether all of them share one delta, so that none ever fails but for that chance: eq. (92). Else each
        has its own, and the chances add up.
    delta_fpr, delta_fnr : float
        The deltas of the first one.
    ancestors : tuple of str
        The digests of those that came before, the latest last; 50 at most.
    """

    number: int
    ledger: bool
    delta_fpr: float
    delta_fnr: float
    ancestors: tuple[str, ...]

    def __post_init__(self) -> None:
        check_positive("number", self.number)
        for name in ("delta_fpr", "delta_fnr"):
            check_rate(name, getattr(self, name))
        if len(self.ancestors) != min(self.number, MOST_ANCESTORS):
            raise InputError(f"{self.number:,} certificates came before, got {len(self.ancestors):,} digests")
        if not all(re.fullmatch("[0-9a-f]{64}", one) for one in self.ancestors):
            raise InputError("an ancestor is a digest of 64 hexadecimal digits")

    def delta(self, first: float) -> float:
        """Return the delta of this certificate, never more than its share."""
        if not self.ledger:
            return first
        # the first has half of all, so that all together have twice its delta
        share = 2 * Fraction(first) / ((self.number + 1) * (self.number + 2))
        nearest = float(share)
        return nearest if Fraction(nearest) <= share else nextafter(nearest, 0.0)

    def problems(self, guarantee: Guarantee, overlap: Strategy) -> Iterator[str]:
        """Yield what of a guarantee and a strategy this place does not allow."""
        if not (overlap.keeps_delta if self.ledger else overlap.proved):
            yield f"the delta of {overlap} is not its share in the lineage"
        if guarantee.max_fpr is not None and guarantee.delta_fpr != self.delta(self.delta_fpr):
            yield "delta_fpr is not its share in the lineage"
        if guarantee.max_fnr is not None and guarantee.delta_fnr != self.delta(self.delta_fnr):
            yield "delta_fnr is not its share in the lineage"

    def __str__(self) -> str:
        latest = self.ancestors[-1][:12]
        if not self.ledger:
            return f"number {self.number + 1} after {latest}; each has its own delta, and they add up"
        total = max(self.delta_fpr, self.delta_fnr)
        return (
            f"number {self.number + 1} after {latest}; of all certificates, ever, one fails with a chance of"
            f" at most {rounded_up(2.0 * total)} per side"
        )
