"""A threshold that was given, by whatever choice: its rates are bounded by bands that hold at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite, nan
from typing import ClassVar, Final

from pac_wrap.base.arguments import as_float, check_top
from pac_wrap.base.floats import order_key, unsigned_zero
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.curves.band import band_of
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies.interface import (
    NO_COUNT,
    Asked,
    Claim,
    Decision,
    Found,
    Ranks,
    Strategy,
    count_of,
    each,
    key_of,
    one_threshold,
)
from pac_wrap.ranks.memory import Rank
from pac_wrap.tails.bounds import Budget

TOGETHER: Final = (
    "A curve and another certificate of the same labels hold together only with their deltas added."
)


@dataclass(frozen=True, slots=True)
class Given(Strategy):
    """One threshold that was chosen freely, even after looking; what it keeps is read off a curve.

    Made by `Curve.at` and the choices of a curve. The ceilings are the bounds of eq. (36), which hold at
    every threshold at once, so it does not matter how this one was chosen.

    Parameters
    ----------
    threshold : float
        An anomaly is declared from here on.
    top_fpr, top_fnr : float, optional
        The largest bounds that the curve was asked for: eq. (120).

    Examples
    --------
    >>> from pac_wrap import certify_curve
    >>> certify_curve(range(500), range(400, 900)).at(450).overlap
    Given(threshold=450.0, top_fpr=None, top_fnr=None)
    """

    tag: ClassVar[str] = "curve"
    given: ClassVar[bool] = True
    one_sided: ClassVar[bool] = True
    multiplies: ClassVar[bool] = True
    # a level has eight digits, of which the last may differ between machines
    digits: ClassVar[float] = 1e-6
    threshold: float
    top_fpr: float | None = field(default=None, metadata={"optional": True})
    top_fnr: float | None = field(default=None, metadata={"optional": True})

    def __post_init__(self) -> None:
        number = as_float(self.threshold)
        if not isfinite(number):
            raise InputError(
                f"threshold must be a finite number, got {quoted(self.threshold)}; the largest double stands"
                " for an alarm at inf alone"
            )
        object.__setattr__(self, "threshold", unsigned_zero(number))
        for name in ("top_fpr", "top_fnr"):
            object.__setattr__(self, name, check_top(name, getattr(self, name)))

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        """Yield nothing: which ranks are needed depends on counts."""
        yield from ()

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return the bounds that the errors at the threshold have in the two bands."""
        tau, certified, found = order_key(self.threshold), False, []
        for p, one in enumerate(asked):
            n, below = ranks.n[p], ranks.below(p, tau)
            top = self.top_fpr if one.normal else self.top_fnr
            bound = partial(_bound, one.delta, top)
            rate, level, errors = each(bound, n - below if one.normal else below, n)
            found.append(Found(rate, level, errors, key_of(one, ranks, p, errors), rate, one.delta))
            certified = certified | (rate == rate)
        # what lies beyond the other threshold is not counted, since a curve does not know it
        return Decision(tuple(found), *one_threshold(tau, certified), None, None, certified)

    def summary(self, claim: Claim) -> str:
        """Return that the threshold was chosen freely."""
        return "curve: one threshold, chosen freely; the ceilings are bounds that hold at all of them"

    def explanation(self, claim: Claim) -> Iterator[str]:
        """Yield why a choice after looking is covered, and what is not."""
        yield (
            "Strategy curve: one threshold, read off a certified curve. Its bounds hold at every threshold at"
            " once, so this one may have been chosen after looking, however that was done."
        )
        yield TOGETHER

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        """Return how many different promises the bands hold, for both classes together."""
        deltas, tops = (asked.delta_fpr, asked.delta_fnr), (self.top_fpr, self.top_fnr)
        return sum(band.ranks.size for band in map(band_of, sizes, deltas, tops))


def _bound(delta: float, top: float | None, errors: int, n: int) -> tuple[float, float, int]:
    """Return rate, level and errors of the budget that so many errors among n have in a band: eq. (36)."""
    band = band_of(n, delta, top)
    place = int(band.anchors(errors))
    if place == band.ranks.size:  # nothing below 1
        return nan, nan, NO_COUNT
    found = Budget.of(n, float(band.bounds[place]), band.level)
    return found.rate, found.delta, count_of(found.errors)
