"""What is done where the classes overlap: the interface of a strategy, and what strategies share.

A strategy is an object that answers four questions: which ranks it needs, how it decides, what in an outcome
does not follow from what was asked, and how to say what it did. Nothing else asks which one it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import isclose
from typing import ClassVar, Final

from pac_wrap.base.arguments import Scores, as_float
from pac_wrap.base.floats import ScoreType, confidence_left, kept_together, order_key, rounded
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee, with_deltas
from pac_wrap.method.rule import Rule
from pac_wrap.method.thresholds import LARGEST, Thresholds
from pac_wrap.ranks.memory import Rank, Ranked, kth_between
from pac_wrap.tails.bounds import Budget, Sharing, equal_deltas, split_confidence

Class = Scores | Ranked
Budgets = tuple[Budget | None, Budget | None]
# confidences and bounds come from SciPy, whose versions may differ in the last digits
DIGITS: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy found: the budgets and thresholds of both classes, what is certified, and the rule.

    `certified` is None where no single threshold could be certified; the rule then abstains on everything.
    `separable`, where a strategy raises ceilings: whether one threshold would keep those that were asked for.
    """

    fpr: Budget | None
    fnr: Budget | None
    thresholds: Thresholds
    certified: Guarantee | None
    rule: Rule
    separable: bool | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """What a certificate claims: what was asked and found, and the counts that it rests on, normal first.

    `sizes` are the calibration points of each class, `crossing` those beyond the other class's threshold.
    """

    asked: Guarantee
    found: Outcome
    sizes: tuple[int, int]
    crossing: tuple[int | None, int | None]
    score_type: ScoreType = "float64"


class Strategy(ABC):
    """What is done where the classes overlap; pass one as `overlap`.

    Examples
    --------
    >>> from pac_wrap import Hold, calibrate
    >>> from pac_wrap.method.strategies.interface import Strategy
    >>> strategy = Hold("fnr")
    >>> isinstance(strategy, Strategy), strategy.single
    (True, True)
    >>> certificate = calibrate(range(1000), range(900, 1900), overlap=strategy)
    >>> certificate.certified.max_fnr, round(certificate.certified.max_fpr, 3)
    (0.05, 0.076)
    """

    tag: ClassVar[str]
    # whether every point is decided by one threshold; only then both ceilings are needed
    single: ClassVar[bool] = True
    # whether the threshold was given and not found, so that no points cross
    given: ClassVar[bool] = False
    # whether it stands as it is where one side is promised alone; the others are then all the same
    one_sided: ClassVar[bool] = False
    # whether the numbers of labels were fixed before any score was seen
    fixed_sizes: ClassVar[bool] = True
    # whether one class's ceiling fails by its own points alone, and the other's given those: eq. (97)
    multiplies: ClassVar[bool] = False
    # what `tried` counts, and why nothing is certified if none of them succeeds
    choices: ClassVar[str] = "level"
    unreached: ClassVar[str] = "no single threshold can be certified at any level tried"

    @property
    def word(self) -> str:
        """The word that stands for the strategy with its usual options."""
        return self.tag

    def at_score(self, claim: Claim) -> bool:
        """Return whether a single threshold is itself a calibration score.

        Parameters
        ----------
        claim : Claim
            What the certificate says was asked, found and counted.

        Returns
        -------
        bool
        """
        return False

    @property
    def proved(self) -> bool:
        """Whether the confidence that is certified is a theorem."""
        return True

    @property
    def keeps_delta(self) -> bool:
        """Whether a certificate never fails with more than the delta that was asked for."""
        return self.proved

    @property
    def keeps(self) -> tuple[str, ...]:
        """The rates, FPR or FNR, whose ceilings are certified as they were asked for."""
        return ()

    @abstractmethod
    def ranks(self, asked: Guarantee, sizes: tuple[int, int]) -> Iterator[Rank]:
        """Yield every rank that may be asked for, as far as the numbers of labels tell.

        Parameters
        ----------
        asked : Guarantee
            What was asked for.
        sizes : tuple of int
            How many normal and how many anomalous points there are.

        Returns
        -------
        iterator of Rank
            The class, and the k-th smallest of its scores, counting from 1.
        """

    @abstractmethod
    def decide(self, asked: Guarantee, normal: Class, anomalous: Class) -> Outcome:
        """Return what the calibration points of both classes amount to.

        Parameters
        ----------
        asked : Guarantee
            What was asked for.
        normal, anomalous : Scores or Ranked
            The scores of each class, in memory or elsewhere.

        Returns
        -------
        Outcome
            Budgets, thresholds, what is certified, and the rule.
        """

    @abstractmethod
    def problems(self, claim: Claim) -> Iterator[str]:
        """Yield what in a claim does not follow from what was asked and from the counts.

        Parameters
        ----------
        claim : Claim
            What the certificate says was asked, found and counted.

        Returns
        -------
        iterator of str
            A sentence for each contradiction.
        """

    @abstractmethod
    def summary(self, claim: Claim) -> str:
        """Return what was done, in one line.

        Parameters
        ----------
        claim : Claim
            What the certificate says was asked, found and counted.

        Returns
        -------
        str
            The line.
        """

    @abstractmethod
    def explanation(self, claim: Claim) -> Iterator[str]:
        """Yield what was done, in sentences.

        Parameters
        ----------
        claim : Claim
            What the certificate says was asked, found and counted.

        Returns
        -------
        iterator of str
            The sentences.
        """

    def settled(self, asked: Guarantee, sizes: tuple[int, int]) -> Guarantee:
        """Return what is asked with the deltas that so many points get of a confidence: eq. (102).

        Parameters
        ----------
        asked : Guarantee
            What was asked for: deltas, which stay as they are, or a confidence.
        sizes : tuple of int
            How many normal and how many anomalous points there are.

        Returns
        -------
        Guarantee
            The same ceilings, with deltas that depend on no score.
        """
        if asked.together is None:
            return asked
        if asked.max_fpr is None or asked.max_fnr is None or not self.multiplies:
            return asked.fixed
        if self.given or not self.fixed_sizes:
            return with_deltas(asked, *(equal_deltas(asked.together),) * 2)
        return _shared(asked, sizes, ("FPR" not in self.keeps, "FNR" not in self.keeps))

    def confidences(self, claim: Claim, *, exact: bool = True) -> dict[str, Decimal]:
        """Return how surely each ceiling holds that is certified: by its exact tail where it is kept.

        Parameters
        ----------
        claim : Claim
            What the certificate says was asked, found and counted.
        exact : bool
            Whether the numbers of points do not depend on their scores, so that the exact tail counts.

        Returns
        -------
        dict of Decimal
            The confidence by the name of the rate; a rate without a budget, which cannot fail, is left out.
        """
        certified, found = claim.found.certified, {"FPR": claim.found.fpr, "FNR": claim.found.fnr}
        sure: dict[str, Decimal] = {}
        for promise in () if certified is None else certified.promises:
            budget = found[promise.name]
            if budget is not None and budget.errors is not None:
                own = Decimal(repr(budget.confidence)) if exact and promise.name in self.keeps else Decimal(0)
                sure[promise.name] = max(own, confidence_left(promise.delta))
        return sure

    def joint(self, claim: Claim, *, independent: bool = True, exact: bool = True) -> Decimal:
        """Return how surely all ceilings hold together that are certified: eq. (97), or eq. (12).

        Parameters
        ----------
        claim : Claim
            What the certificate says was asked, found and counted.
        independent : bool
            Whether the points of the two classes are independent of each other.
        exact : bool
            Whether the numbers of points do not depend on their scores.

        Returns
        -------
        Decimal
            The confidence, never more than it is; 1 where nothing is promised that could fail.
        """
        sure = self.confidences(claim, exact=exact)
        if independent and self.multiplies:
            return kept_together(*sure.values())
        certified = claim.found.certified
        promises = () if certified is None else certified.promises
        return confidence_left(*(one.delta for one in promises if one.name in sure))

    @property
    def needs_more_labels(self) -> str | None:
        """Why more labels are needed than for a promise fixed beforehand, in a sentence; or None."""
        return None

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        """Return how many promises may be tried, one of which is then certified.

        Parameters
        ----------
        asked : Guarantee
            What was asked for.
        sizes : tuple of int
            How many normal and how many anomalous points there are.

        Returns
        -------
        int
            1 where the promise is fixed beforehand.
        """
        return 1


@lru_cache(maxsize=256)
def _shared(asked: Guarantee, sizes: tuple[int, int], counted: tuple[bool, bool]) -> Guarantee:
    """Return two ceilings with the deltas that so many points get of their confidence."""
    low, high = (
        Sharing((n,), (promise.at_calibration,), own)
        for n, promise, own in zip(sizes, asked.promises, counted, strict=True)
    )
    return with_deltas(asked, *split_confidence(asked.together or 0.0, low, high))


def check_position(position: float) -> float:
    """Return where a threshold lies between the two of the classes, or refuse it."""
    found = as_float(position)
    if not 0.0 <= found <= 1.0:
        raise InputError(
            f"position must lie between 0 (alarm_from) and 1 (clear_below), got {quoted(position)}"
        )
    return found


def ranks_of(budgets: Budgets, sizes: tuple[int, int]) -> Iterator[Rank]:
    """Yield the ranks of the thresholds that two budgets ask for: eqs. (7) and (9)."""
    fpr, fnr = budgets
    if fpr is not None and fpr.errors is not None:
        yield Rank(0, sizes[0] - fpr.errors)
    if fnr is not None and fnr.errors is not None:
        yield Rank(1, fnr.errors + 1)


def budget_problems(
    rate: str, found: Budget | None, expected: Budget | None, tolerance: float = 0.0
) -> Iterator[str]:
    """Yield how a budget differs from the one that is expected, with a rate up to a relative tolerance."""
    if found is None or expected is None:
        if found is not expected:
            yield f"the {rate} must have {'no' if expected is None else 'a'} budget"
        return
    if found.delta != expected.delta or not isclose(found.rate, expected.rate, rel_tol=tolerance):
        yield (
            f"the {rate} budget is for the ceiling {expected.rate} at delta = {expected.delta}, not for"
            f" {found.rate} at {found.delta}"
        )
    # its own rate, in which the last digits may differ, must carry its errors as well
    exact = expected if found.rate == expected.rate else Budget.of(found.n, found.rate, found.delta)
    if found.errors != exact.errors:
        yield f"the {rate} budget is {exact.errors}, not {found.errors}"
    if not abs(found.confidence - exact.confidence) <= DIGITS:
        yield f"the exact confidence of the {rate} is not {found.confidence}"


def end_problems(
    claim: Claim, certified: Guarantee | None, rule: Rule, *, compared: bool = False
) -> Iterator[str]:
    """Yield that what is certified, or the rule, is not what is expected.

    `compared`: whether the strategy says if one threshold would have kept what was asked for.
    """
    if (claim.found.separable is not None) is not compared:
        yield f"separable must be {'true or false' if compared else 'absent'} with this strategy"
    if claim.found.certified != certified:
        yield "what is certified does not follow from what was asked"
    expected = rule.before_rounding(claim.score_type)
    if claim.found.rule != expected:
        yield f"{claim.found.rule} does not follow from alarm_from and clear_below, which give {expected}"


def budgets_of(asked: Guarantee, sizes: tuple[int, int]) -> Budgets:
    """Return the budgets of the promise itself; a side without a ceiling has none."""
    fpr, fnr = asked.fpr, asked.fnr
    return None if fpr is None else fpr.budget(sizes[0]), None if fnr is None else fnr.budget(sizes[1])


def rule_between(thresholds: Thresholds, normal: Class, anomalous: Class, position: float = 0.5) -> Rule:
    """Return the rule of one of the scores from alarm_from to clear_below; two thresholds where none fits.

    >>> import numpy as np
    >>> rule_between(Thresholds(2.5, 4.0), np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0]))
    Rule(normal_below=3.0, anomaly_from=3.0)
    """
    alarm, clear = thresholds.alarm_from, thresholds.clear_below
    if alarm is None or clear is None or not thresholds.separated:
        return thresholds.rule
    tau = min(kth_between(normal, anomalous, alarm, clear, position), LARGEST)
    return Rule(tau, tau)


def between_problems(claim: Claim) -> Iterator[str]:
    """Yield that the asked ceilings are not what is certified, or the rule not one of `rule_between`."""
    thresholds, expected = claim.found.thresholds, claim.found.thresholds.rule
    alarm, clear = thresholds.alarm_from, thresholds.clear_below
    if alarm is not None and clear is not None and thresholds.separated:
        # which of the scores between the two it is, only the scores tell
        tau = min(float(rounded(claim.found.rule.anomaly_from, claim.score_type)), LARGEST)
        keys = [order_key(edge) for edge in (alarm, tau, clear)]
        if sorted(keys) != keys:
            yield f"the threshold {tau!r} does not lie between alarm_from and clear_below"
        expected = Rule(tau, tau)
    yield from end_problems(claim, claim.asked, expected)
