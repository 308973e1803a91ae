"""What is asked for or certified: promises about error rates, and the error budgets that keep them."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal

from pac_wrap.base.arguments import check_count, check_rate
from pac_wrap.base.foreign import quoted
from pac_wrap.base.rounding import confidence_left, equal_share, rounded_down, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.binomial import error_budget, exact_confidence
from pac_wrap.method.bounds import min_samples, upper_bound

_LEAST_CEILING: Final = 1e-15
_USUAL_DELTA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Population:
    """The points that a promise is about: those of one class, perhaps of one kind or in one group.

    Parameters
    ----------
    label : "normal" or "anomalous"
    kind, group : str, optional
        None is all kinds, or all groups.

    Examples
    --------
    >>> print(Population("normal"))
    normal points
    """

    label: Literal["normal", "anomalous"]
    kind: str | None = None
    group: str | None = None

    def __str__(self) -> str:
        named = (
            f" of kind {quoted(self.kind)}" if self.kind else "",
            f" in {quoted(self.group)}" if self.group else "",
        )
        return f"{self.label} points{''.join(named)}"


class Error(StrEnum):
    """What counts as an error in a population; an abstention never does."""

    FALSE_ALARM = "false alarm"
    MISS = "miss"


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise: the rate of one error in one population is at most its ceiling, but for a chance of delta.

    Parameters
    ----------
    of : Population
        Whom the promise is about.
    error : Error
        What counts as an error there.
    ceiling : float
        What the error rate on future data is promised not to exceed.
    delta : float
        The chance, over draws of the calibration points, that the ceiling does not hold.

    Examples
    --------
    >>> promise = Promise(Population("normal"), Error.FALSE_ALARM, 0.05, 0.05)
    >>> print(promise)
    FPR <= 0.05 (confidence 0.95)
    >>> promise.budget(2000).errors
    83
    """

    of: Population
    error: Error
    ceiling: float
    delta: float

    def __post_init__(self) -> None:
        rate = self.name.lower()
        object.__setattr__(self, "ceiling", check_rate(f"max_{rate}", self.ceiling))
        object.__setattr__(self, "delta", check_rate(f"delta_{rate}", self.delta))
        if self.ceiling < _LEAST_CEILING:
            raise InputError(
                f"max_{rate} must be at least {_LEAST_CEILING}, got {self.ceiling!r};"
                " no number of labels certifies less"
            )

    @property
    def name(self) -> str:
        """What the rate is called where it is shown: FPR or FNR."""
        return "FPR" if self.error is Error.FALSE_ALARM else "FNR"

    def budget(self, n: int) -> "Budget":
        """Return the errors that n points of the population may show.

        Parameters
        ----------
        n : int
            How many labelled points of the population there are.

        Returns
        -------
        Budget
        """
        return Budget.of(n, self.ceiling, self.delta)

    def __str__(self) -> str:
        confidence = rounded_down(confidence_left(self.delta))
        return f"{self.name} <= {rounded_up(self.ceiling)} (confidence {confidence})"


@dataclass(frozen=True, slots=True, init=False)
class Guarantee:
    """All promises that are asked for, or certified, at once: a ceiling for each error rate, with its delta.

    Parameters
    ----------
    max_fpr, max_fnr : float or None
        Ceilings of the false positive and of the false negative rate on future data. None promises nothing on
        that side; the other threshold then decides alone.
    delta_fpr, delta_fnr : float, optional
        The chance, over draws of the calibration points, that the ceiling does not hold; 0.05 each.
    confidence : float, optional
        How surely all ceilings hold together. What is left to 1 is shared equally between the two deltas; a
        single ceiling gets all of it. Give either this or deltas.

    Raises
    ------
    InputError
        If both ceilings are None, a number does not lie strictly between 0 and 1, or `confidence` comes
        together with a delta.

    Examples
    --------
    >>> Guarantee(max_fpr=0.01, max_fnr=0.1).joint_delta
    0.1
    >>> Guarantee(max_fpr=0.01, max_fnr=0.1, confidence=0.95).delta_fpr
    0.025
    >>> Guarantee(max_fpr=0.01, max_fnr=None, confidence=0.95).delta_fpr
    0.05
    """

    max_fpr: float | None
    max_fnr: float | None
    delta_fpr: float
    delta_fnr: float

    def __init__(
        self,
        max_fpr: float | None = 0.05,
        max_fnr: float | None = 0.05,
        delta_fpr: float | None = None,
        delta_fnr: float | None = None,
        *,
        confidence: float | None = None,
    ) -> None:
        if max_fpr is None and max_fnr is None:
            raise InputError("max_fpr and max_fnr are both None; promise at least one of them")
        usual = _USUAL_DELTA
        if confidence is not None:
            if delta_fpr is not None or delta_fnr is not None:
                raise InputError(
                    "confidence says how surely all ceilings hold together, and each delta how surely its own"
                    " does; give either confidence or deltas"
                )
            ceilings = 1 if max_fpr is None or max_fnr is None else 2
            usual = equal_share(check_rate("confidence", confidence), ceilings)
        for name, value in (("max_fpr", max_fpr), ("max_fnr", max_fnr)):
            object.__setattr__(self, name, value)
        for name, value in (("delta_fpr", delta_fpr), ("delta_fnr", delta_fnr)):
            object.__setattr__(self, name, check_rate(name, usual if value is None else value))
        for promise in self.promises:
            object.__setattr__(self, f"max_{promise.name.lower()}", promise.ceiling)

    @property
    def fpr(self) -> Promise | None:
        """The promise about normal points: few false alarms. None if nothing is promised there."""
        if self.max_fpr is None:
            return None
        return Promise(Population("normal"), Error.FALSE_ALARM, self.max_fpr, self.delta_fpr)

    @property
    def fnr(self) -> Promise | None:
        """The promise about anomalous points: few misses. None if nothing is promised there."""
        if self.max_fnr is None:
            return None
        return Promise(Population("anomalous"), Error.MISS, self.max_fnr, self.delta_fnr)

    @property
    def promises(self) -> tuple[Promise, ...]:
        """The promises, that about normal points first."""
        return tuple(promise for promise in (self.fpr, self.fnr) if promise is not None)

    @property
    def joint_delta(self) -> float:
        """Chance that some promised ceiling does not hold, at most: eq. (12)."""
        return sum(promise.delta for promise in self.promises)

    @property
    def confidence(self) -> float:
        """How surely all promised ceilings hold together: 1 minus the deltas, and never less than 0."""
        return float(confidence_left(*(promise.delta for promise in self.promises)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.promises))


@dataclass(frozen=True, slots=True)
class Budget:
    """The most errors that n points of one class may show under a ceiling, F(errors; n, rate) <= delta.

    Made by `Budget.of` or `Promise.budget`.

    Parameters
    ----------
    n : int
        How many labelled points there are.
    rate, delta : float
        The ceiling, and the chance that it does not hold.
    errors : int or None
        The error budget; None where n is too small.
    confidence : float
        The exact confidence 1 - F(errors; n, rate): eq. (3).

    Examples
    --------
    >>> Budget.of(2000, 0.05, 0.05).errors
    83
    >>> Budget.of(35, 0.05, 0.05).missing
    24
    """

    n: int
    rate: float
    delta: float
    errors: int | None
    confidence: float

    def __post_init__(self) -> None:
        check_count("n", self.n)
        check_rate("rate", self.rate)
        check_rate("delta", self.delta)
        if not 0.0 <= self.confidence <= 1.0:
            raise InputError(f"confidence must lie between 0 and 1, got {self.confidence!r}")

    @classmethod
    def of(cls, n: int, rate: float, delta: float) -> "Budget":
        """Return the budget of n points: eq. (2).

        Parameters
        ----------
        n : int
            How many labelled points there are.
        rate, delta : float
            The ceiling, and the chance that it does not hold.

        Returns
        -------
        Budget
        """
        # refused here where it is no number: the cache could not even look it up
        return _budget(check_count("n", n), check_rate("rate", rate), check_rate("delta", delta))

    @classmethod
    def spent(cls, errors: int, n: int, delta: float) -> "Budget | None":
        """Return the smallest rate for which `errors` is within budget, or None if that is no less than 1.

        A rate below the least ceiling that can be asked for is raised to it.

        Parameters
        ----------
        errors, n : int
            How many errors were counted, among how many points.
        delta : float
            The chance that the rate is larger.

        Returns
        -------
        Budget or None
        """
        rate = max(upper_bound(errors, n, delta), _LEAST_CEILING)
        return None if rate >= 1.0 else cls.of(n, rate, delta)

    @property
    def missing(self) -> int:
        """How many more labels the ceiling needs before anything can be declared."""
        return max(0, min_samples(self.rate, self.delta) - self.n)


@lru_cache(maxsize=256)
def _budget(n: int, rate: float, delta: float) -> Budget:
    errors = error_budget(n, rate, delta)
    return Budget(n, rate, delta, errors, exact_confidence(n, rate, errors))
