"""One threshold that keeps one ceiling; the other rate is certified from the errors counted there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, ClassVar, Literal

import numpy as np

from pac_wrap.base.arguments import check_choice
from pac_wrap.method.promise import Promise
from pac_wrap.method.strategies.interface import (
    NO_COUNT,
    REACHED,
    Asked,
    Claim,
    Decision,
    Found,
    Ranks,
    Strategy,
    anywhere,
    are_separated,
    between,
    binding,
    choose,
    count_of,
    each,
    kept,
    key_of,
    least,
    misses,
    ranks_of,
)
from pac_wrap.ranks.memory import Rank


@dataclass(frozen=True, slots=True)
class Hold(Strategy):
    """One threshold that keeps one ceiling; the other rate is certified from the errors counted there.

    The held class alone sets the threshold, so nothing is chosen on the other, and its bound holds with the
    whole delta: eq. (16). With `always=False` a ceiling is given up only where it must be: where the classes
    separate, one threshold keeps both. That choice costs nothing either: eq. (107). Either way both hold
    together with the product of their confidences: eq. (98).

    Parameters
    ----------
    rate : "fnr" or "fpr"
        The error rate whose ceiling is held.
    always : bool
        Whether one ceiling is held even where one threshold keeps both.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> certificate = calibrate(range(1000), range(900, 1900), overlap=Hold("fnr"))
    >>> certificate.fnr.ceiling, round(certificate.fpr.ceiling, 3)
    (0.05, 0.076)
    >>> if_needed = Hold("fnr", always=False)
    >>> print(*calibrate(range(100), range(200, 300), overlap=if_needed).promises, sep=", ")
    FPR <= 0.05 (confidence 0.95), FNR <= 0.05 (confidence 0.95)
    """

    tag: ClassVar[str] = "hold"
    multiplies: ClassVar[bool] = True
    rate: Literal["fnr", "fpr"]
    always: bool = True

    def __post_init__(self) -> None:
        check_choice("rate", self.rate, ("fnr", "fpr"))
        check_choice("always", self.always, (True, False))

    @property
    def word(self) -> str:
        """hold_fnr or hold_fpr, and whether only if needed."""
        return f"hold_{self.rate}{'' if self.always else '_if_needed'}"

    def at_score(self, claim: Claim) -> bool:
        """Whether the threshold is one of the calibration scores between the two classes."""
        return self._keeps_both(claim)

    @property
    def keeps(self) -> tuple[str, ...]:
        """The rate that is held."""
        return (self.rate.upper(),)

    @property
    def _holds_fnr(self) -> bool:
        return self.rate == "fnr"

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        """Yield the ranks of the held side; those of the other may depend on a count."""
        yield from ranks_of([self._alone(one) for one in asked] if self.always else asked, n)

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return the threshold of the held side, and the bounds that its errors on the other side have."""
        if self.always:
            return self._held(asked, ranks)
        both = kept(asked, ranks)
        normal, anomalous = binding(asked, both, "normal"), binding(asked, both, "anomalous")
        assert normal is not None
        assert anomalous is not None  # with a single ceiling nothing is held
        separated = are_separated(normal[1], anomalous[1])
        if not anywhere(separated):
            return self._held(asked, ranks)
        one = between(asked, both, ranks)
        return one if np.all(separated) else _either(separated, one, self._held(asked, ranks))

    def counts(self, one: Asked) -> bool:
        """Whether the other class is held."""
        return one.normal is self._holds_fnr

    def _alone(self, one: Asked) -> Asked:
        """Return what is asked of a population, if its class is held."""
        return one._replace(promise=None) if self.counts(one) else one

    def _held(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        alone = [self._alone(one) for one in asked]
        found = list(kept(alone, ranks))
        if self._holds_fnr:  # a threshold at inf must be reached
            found = [None if own is None else own._replace(key=least(own.key, REACHED)) for own in found]
        held = binding(alone, found, "anomalous" if self._holds_fnr else "normal")
        assert held is not None  # with a single ceiling nothing is held
        tau = held[1]
        for p, one in enumerate(asked):
            if one.promise is None or found[p] is not None:
                continue
            n = ranks.n[p]
            errors = n - ranks.below(p, tau) if self._holds_fnr else misses(ranks, p, tau)
            rate, delta, budget, ceiling = each(partial(_spent, one.promise), errors, n)
            # where nothing is certified there is no threshold
            key = key_of(one, ranks, p, choose(rate == rate, errors, NO_COUNT))
            found[p] = Found(rate, delta, budget, key, ceiling, one.promise.delta)
        counted = [
            own for own, one in zip(found, alone, strict=True) if one.promise is None and own is not None
        ]
        # the largest ceiling binds, and one that is none leaves the class without a threshold
        bound = max(counted, key=lambda own: own.ceiling) if len(counted) > 1 else counted[0]
        lost = any(isinstance(own.rate, float) and own.rate != own.rate for own in counted)
        other = None if lost else bound.key
        edges = (other, tau) if self._holds_fnr else (tau, other)
        return Decision(tuple(found), tau, tau, *edges)

    def summary(self, claim: Claim) -> str:
        """Return which ceiling is kept."""
        if self._keeps_both(claim):
            return f"{self.word}: one threshold keeps both ceilings, so neither is given up"
        return (
            f"{self.word}: the {self.keeps[0]} ceiling is kept, the other rate certified from counted errors"
        )

    def explanation(self, claim: Claim) -> Iterator[str]:
        """Yield how many points the threshold misjudges."""
        if self._keeps_both(claim):
            yield f"Strategy {self.word}: one threshold keeps both ceilings with their whole deltas."
            return
        other, side, budget = ("FPR", 0, claim.fpr) if self._holds_fnr else ("FNR", 1, claim.fnr)
        n = claim.sizes[side]
        errors = n if budget is None else claim.crossing[side]
        yield (
            f"Strategy {self.word}: one threshold, set by the {self.keeps[0]} ceiling alone. It misjudges"
            f" {errors:,} of the {n:,} points of the other class; the ceiling of the {other} is the exact"
            " upper bound of that count."
        )

    def _keeps_both(self, claim: Claim) -> bool:
        return not self.always and claim.certified == claim.asked


def _spent(promise: Promise, errors: int, n: int) -> tuple[float, float, int, float]:
    """Return the budget that so many errors spend, and the ceiling that follows from it."""
    found = promise.spent(errors, n)
    if found is None:
        return nan, nan, NO_COUNT, nan
    return found.rate, found.delta, count_of(found.errors), promise.afterwards(found.rate)


def _either(condition: Any, one: Decision, other: Decision) -> Decision:
    """Return one decision or the other, group by group; both are about the same promises."""
    found = tuple(
        None
        if own is None or its is None
        else Found(*(choose(condition, *pair) for pair in zip(own, its, strict=True)))
        for own, its in zip(one.found, other.found, strict=True)
    )
    low, high, alarm, clear = (choose(condition, *pair) for pair in zip(one[1:5], other[1:5], strict=True))
    return Decision(found, low, high, alarm, clear)
