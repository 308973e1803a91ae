"""One threshold that keeps one ceiling; the other rate is certified from the errors counted there."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Literal

from pac_wrap.base.arguments import check_choice
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.interface import (
    DIGITS,
    Claim,
    Class,
    Outcome,
    Strategy,
    between_problems,
    budget_problems,
    budgets_of,
    end_problems,
    ranks_of,
    rule_between,
)
from pac_wrap.method.thresholds import LARGEST, Thresholds, alarm_from, clear_below, find_thresholds
from pac_wrap.ranks.memory import Rank, count_below
from pac_wrap.tails.bounds import Budget


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
    >>> certificate.certified.max_fnr, round(certificate.certified.max_fpr, 3)
    (0.05, 0.076)
    >>> if_needed = Hold("fnr", always=False)
    >>> print(calibrate(range(100), range(200, 300), overlap=if_needed).certified)
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

    def ranks(self, asked: Guarantee, sizes: tuple[int, int]) -> Iterator[Rank]:
        """Yield the rank of the held side; that of the other may depend on a count."""
        fpr, fnr = budgets_of(asked, sizes)
        if self.always:
            fpr, fnr = (None, fnr) if self._holds_fnr else (fpr, None)
        yield from ranks_of((fpr, fnr), sizes)

    def decide(self, asked: Guarantee, normal: Class, anomalous: Class) -> Outcome:
        """Return the threshold of the held side, and the bound that its errors on the other side have."""
        fpr, fnr = budgets_of(asked, (normal.size, anomalous.size))
        if not self.always:
            thresholds = find_thresholds(normal, anomalous, fpr, fnr)
            if thresholds.separated:
                return Outcome(fpr, fnr, thresholds, asked, rule_between(thresholds, normal, anomalous))
        if self._holds_fnr:
            tau = min(clear_below(anomalous, None if fnr is None else fnr.errors), LARGEST)
            errors = normal.size - count_below(normal, tau)
            fpr = None if asked.fpr is None else asked.fpr.spent(errors, normal.size)
            thresholds = Thresholds(alarm_from(normal, errors) if fpr else None, tau)
        else:
            tau = alarm_from(normal, None if fpr is None else fpr.errors)
            errors = anomalous.size if tau == inf else count_below(anomalous, tau)
            fnr = None if asked.fnr is None else asked.fnr.spent(errors, anomalous.size)
            thresholds = Thresholds(tau, clear_below(anomalous, errors) if fnr else None)
        return Outcome(fpr, fnr, thresholds, self._certified(asked, fpr, fnr), Rule(tau, tau))

    def problems(self, claim: Claim) -> Iterator[str]:
        """Yield what does not follow from the held budget and the errors counted on the other side."""
        asked, found = claim.asked, claim.found
        fpr, fnr = budgets_of(asked, claim.sizes)
        if self._keeps_both(claim):
            yield from budget_problems("FPR", found.fpr, fpr)
            yield from budget_problems("FNR", found.fnr, fnr)
            if not found.thresholds.separated:
                yield "both ceilings are kept by one threshold only where it separates the classes"
            yield from between_problems(claim)
            return
        tau = found.thresholds.clear_below if self._holds_fnr else found.thresholds.alarm_from
        if tau is None or not found.thresholds.separated or (self._holds_fnr and tau == inf):
            yield "what is held on one side leaves a threshold there that separates the classes"
            return
        if self._holds_fnr:
            yield from budget_problems("FPR", found.fpr, _spent(claim, 0, asked.fpr), DIGITS)
            yield from budget_problems("FNR", found.fnr, fnr)
        else:
            yield from budget_problems("FPR", found.fpr, fpr)
            yield from budget_problems("FNR", found.fnr, _spent(claim, 1, asked.fnr), DIGITS)
        yield from end_problems(claim, self._certified(asked, found.fpr, found.fnr), Rule(tau, tau))
        spared, errors = (fpr, claim.crossing[0]) if self._holds_fnr else (fnr, claim.crossing[1])
        allowed = None if spared is None else spared.errors
        # no count where all are errors, which no budget allows
        if not self.always and errors is not None and allowed is not None and errors <= allowed:
            yield "one threshold keeps both ceilings here, so neither may be given up"

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
        other, side, budget = ("FPR", 0, claim.found.fpr) if self._holds_fnr else ("FNR", 1, claim.found.fnr)
        n = claim.sizes[side]
        errors = n if budget is None else claim.crossing[side]
        yield (
            f"Strategy {self.word}: one threshold, set by the {self.keeps[0]} ceiling alone. It misjudges"
            f" {errors:,} of the {n:,} points of the other class; the ceiling of the {other} is the exact"
            " upper bound of that count."
        )

    def _keeps_both(self, claim: Claim) -> bool:
        return not self.always and claim.found.certified == claim.asked

    def _certified(self, asked: Guarantee, fpr: Budget | None, fnr: Budget | None) -> Guarantee:
        if self._holds_fnr:
            return replace(asked, max_fpr=_ceiling(asked.fpr, fpr))
        return replace(asked, max_fnr=_ceiling(asked.fnr, fnr))


def _ceiling(promise: Promise | None, budget: Budget | None) -> float | None:
    return None if promise is None or budget is None else promise.afterwards(budget.rate)


def _spent(claim: Claim, side: int, promise: Promise | None) -> Budget | None:
    errors = claim.crossing[side]
    return None if errors is None or promise is None else promise.spent(errors, claim.sizes[side])
