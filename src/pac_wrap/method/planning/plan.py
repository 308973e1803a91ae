"""Labels needed for a promise: the chance that their errors stay within budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaln, gammaln

from pac_wrap.base.arguments import as_scores
from pac_wrap.base.floats import rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.method.rule import LARGEST
from pac_wrap.method.strategies.interface import Abstain
from pac_wrap.tails.bounds import Budget, Sharing, equal_deltas, min_samples, upper_bound

# budgets are tried up to this many errors; a larger need is reported as unknown
MOST_ERRORS: Final = 500
# numbers of errors among the labels that a plan allows for
TOLERATED: Final = (0, 1, 2, 5, 10)
_CHANCE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Need:
    """The number of labels needed for a chance of success, and the number of errors allowed among them."""

    labels: int
    errors: int


def needed(
    promise: Promise, chances: Sequence[float], within: Callable[[int, int], float]
) -> list[Need | None]:
    """Return the fewest labels whose errors stay within budget with each chance, None if too many: eq. (44).

    `within(k, n)` is the chance of at most k errors among n.
    """
    found: list[Need | None] = [None] * len(chances)
    # between two budgets more labels only lower the chance, so only numbers where a budget rises are tried
    for errors in range(MOST_ERRORS + 1):
        labels = min_samples(promise.at_calibration, promise.delta, errors)
        chance = within(errors, labels)
        found = [
            Need(labels, errors) if one is None and chance >= wanted else one
            for one, wanted in zip(found, chances, strict=True)
        ]
        if None not in found:
            break
    return found


@dataclass(frozen=True, slots=True)
class Posterior:
    """Jeffreys' posterior of an error rate, given the errors among n points of a pilot sample."""

    errors: int
    n: int

    def below(self, ceiling: float) -> float:
        """Return the chance that the rate is below a ceiling."""
        return float(betainc(self.errors + 0.5, self.n - self.errors + 0.5, ceiling))

    def within(self, errors: int, n: int) -> float:
        """Return the chance of at most `errors` errors among n fresh points: eq. (45)."""
        a, b = self.errors + 0.5, self.n - self.errors + 0.5
        i = np.arange(errors + 1.0)
        ways = gammaln(n + 1.0) - gammaln(i + 1.0) - gammaln(n - i + 1.0)
        return min(1.0, float(np.exp(ways + betaln(i + a, n - i + b) - betaln(a, b)).sum()))


@dataclass(frozen=True, slots=True)
class Pilot:
    """The threshold of a pilot sample that most likely keeps both ceilings, and the errors counted there."""

    threshold: float
    normal: Posterior
    anomalous: Posterior


def pilot_of(normal: ArrayLike, anomalous: ArrayLike, guarantee: Guarantee) -> Pilot:
    """Return the threshold of a pilot sample at which both rates are most likely below their ceilings."""
    low, high = np.sort(as_scores(normal, "normal")), np.sort(as_scores(anomalous, "anomalous"))
    fpr, fnr = guarantee.fpr, guarantee.fnr
    if fpr is None or fnr is None:
        raise InputError("a pilot sample needs two ceilings, since one alone can always be kept; set both")
    if not low.size or not high.size:
        raise InputError(
            f"a pilot sample needs points of both classes, got {low.size:,} normal and {high.size:,}"
            " anomalous; label some of each"
        )
    # the largest double stands for inf, since a threshold at inf is never reached
    low, high = np.minimum(low, LARGEST), np.minimum(high, LARGEST)
    taus = np.unique(np.append(low, high))
    alarms = low.size - np.searchsorted(low, taus, side="left")
    misses = np.searchsorted(high, taus, side="left")
    kept = betainc(alarms + 0.5, low.size - alarms + 0.5, fpr.at_calibration)
    kept = kept * betainc(misses + 0.5, high.size - misses + 0.5, fnr.at_calibration)
    best = np.flatnonzero(kept == kept.max())
    place = best[best.size // 2]
    found = Posterior(int(alarms[place]), low.size), Posterior(int(misses[place]), high.size)
    return Pilot(float(taus[place]), *found)


@dataclass(frozen=True, slots=True)
class Needed:
    """Labels needed by a promise for each number of errors, eq. (4), budget at hand, and a likely need."""

    promise: Promise
    errors: tuple[int, ...]
    labels: tuple[int, ...]
    at_hand: Budget | None = None
    likely: Need | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The labels that a guarantee needs, and the ceilings that the labels at hand can keep; made by `plan`.

    Attributes
    ----------
    guarantee : Guarantee
        The planned ceilings and deltas.
    needed : tuple of Needed
        The labels that each ceiling needs.
    pilot : Pilot or None
        The threshold of a pilot sample, and the errors there; None without a pilot sample.
    """

    guarantee: Guarantee
    needed: tuple[Needed, ...]
    pilot: Pilot | None = None

    def __str__(self) -> str:
        lines = []
        for one in self.needed:
            head, (none, *more) = f"{one.promise.name} <= {rounded_up(one.promise.ceiling)}", one.labels
            others = ", ".join(f"{n:,} with {k}" for k, n in zip(one.errors[1:], more, strict=True))
            lines.append(
                f"{head}  {none:,} {one.promise.of.label} labels if no error is among them, {others}"
            )
            told, budget = [], one.at_hand
            if budget is not None and not budget.n:
                told.append("none at hand")
            elif budget is not None:
                lowest = one.promise.afterwards(upper_bound(0, budget.n, budget.delta))
                allowed = f", {budget.missing:,} missing"
                if budget.errors is not None:
                    allowed = f" tolerate {budget.errors:,} error{'s' * (budget.errors != 1)}"
                least = f"the lowest ceiling that they can keep is {rounded_up(lowest)}"
                told.append(f"{budget.n:,} at hand{allowed}; {least}")
            if self.pilot is not None:
                found = "no number of" if one.likely is None else f"{one.likely.labels:,}"
                told.append(f"by the pilot sample, {found} fresh labels are enough 9 times in 10")
            lines += [f"{'':{len(head)}}  {text}" for text in told]
        return "\n".join(lines)


def _settled(asked: Guarantee, normal: int | None, anomalous: int | None) -> Guarantee:
    """Return a guarantee with the deltas that `calibrate` would share from its confidence: eq. (102).

    A class of unknown size is taken as just large enough; if both sizes are unknown, the deltas are equal.
    """
    fpr, fnr = asked.fpr, asked.fnr
    if asked.together is None or fpr is None or fnr is None:
        return asked
    counts = [normal, anomalous]
    if None in counts:
        known, other = (1, 0) if normal is None else (0, 1)
        own, its = (
            Sharing((counts[place] or 0,), ((fpr, fnr)[place].at_calibration,)) for place in (known, other)
        )
        rest = its.rest(Decimal(repr(asked.together)) / own.keeps(own.least)) if own.least < 1.0 else 0.0
        counts[other] = min_samples(its.rates[0], rest) if rest > 0.0 else None
    if None in counts:
        share = equal_deltas(asked.together)
        return replace(asked, delta_fpr=share, delta_fnr=share)
    return Abstain().settled(asked, (counts[0] or 0, counts[1] or 0))


def plan(
    guarantee: Guarantee | None = None,
    *,
    normal: int | None = None,
    anomalous: int | None = None,
    pilot: tuple[ArrayLike, ArrayLike] | None = None,
) -> Plan:
    """Return how many labels a guarantee needs, and which ceilings the labels at hand can keep.

    Parameters
    ----------
    guarantee : Guarantee, optional
        The ceilings and their deltas; by default both 0.05 with a delta of 0.05 each. A confidence is shared
        by the numbers of labels, as `calibrate` does.
    normal, anomalous : int, optional
        The number of labels of each class at hand.
    pilot : pair of array-like of float, optional
        Scores of a few normal and a few anomalous points, to estimate how many labels are likely enough.

    Returns
    -------
    Plan
        The numbers of labels; `print` shows them as a table.

    Raises
    ------
    InputError
        If a number of labels is not a whole number, or the pilot sample lacks a class.

    Examples
    --------
    >>> print(plan(Guarantee(max_fpr=None, max_fnr=0.05), anomalous=140))
    FNR <= 0.05  59 anomalous labels if no error is among them, 93 with 1, 124 with 2, 208 with 5, 336 with 10
                 140 at hand tolerate 2 errors; the lowest ceiling that they can keep is 0.02118
    """
    asked = _settled(Guarantee() if guarantee is None else guarantee, normal, anomalous)
    found, each = None if pilot is None else pilot_of(*pilot, asked), []
    counts = {"normal": normal, "anomalous": anomalous}
    for one in asked.promises:
        labels = tuple(min_samples(one.at_calibration, one.delta, errors) for errors in TOLERATED)
        n, likely = counts[one.of.label], None
        if found is not None:
            (likely,) = needed(one, [_CHANCE], getattr(found, one.of.label).within)
        each.append(Needed(one, TOLERATED, labels, None if n is None else one.budget(n), likely))
    return Plan(asked, tuple(each), found)
