"""One promise with what became of it: what was asked and certified, and the points that it rests on."""

from dataclasses import dataclass
from decimal import Decimal

from pac_wrap.base.floats import confidence_left
from pac_wrap.method.promise import Population, Promise
from pac_wrap.tails.bounds import Budget


@dataclass(frozen=True, slots=True)
class Clause:
    """One promise about one population, and what became of it.

    Parameters
    ----------
    of : Population
        Whom the promise is about: the points of a class, or of one of its kinds.
    asked : Promise or None
        What was asked for; None: the points were only counted.
    certified : Promise or None
        What is promised; another ceiling than was asked for where one was held, raised or read off a curve.
    n : int
        How many calibration points there were.
    digest : str or None
        A digest of their scores, in any order; None where the scores stayed in a database.
    budget : Budget or None
        The error budget, at the rate and the delta it was found at; None where nothing is promised.
    threshold : float or None
        The threshold of these points alone; None where nothing is promised.
    beyond : int or None
        How many of these points lie beyond the threshold of the other class: eq. (13).

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> clause = calibrate(range(100), range(200, 300)).fpr
    >>> clause.n, clause.budget.errors, clause.threshold
    (100, 1, 98.00000000000001)
    """

    of: Population
    asked: Promise | None
    certified: Promise | None
    n: int
    digest: str | None
    budget: Budget | None
    threshold: float | None
    beyond: int | None

    @property
    def ceiling(self) -> float | None:
        """The ceiling that is certified; None where nothing is."""
        return None if self.certified is None else self.certified.ceiling

    @property
    def errors(self) -> int | None:
        """The error budget as a number; None where nothing is promised, or n is too small."""
        return None if self.budget is None else self.budget.errors

    @property
    def vacuous(self) -> bool:
        """Whether a ceiling was asked for that so few labels cannot keep."""
        return self.budget is not None and self.budget.errors is None

    @property
    def missing(self) -> int:
        """How many more labels the ceiling needs before anything can be declared."""
        return 0 if self.budget is None else self.budget.missing

    @property
    def confidence(self) -> Decimal:
        """How surely the ceiling holds by itself: by its exact tail, which is never less than 1 - delta."""
        if self.budget is None or self.certified is None:
            return Decimal(0)
        return max(Decimal(repr(self.budget.confidence)), confidence_left(self.certified.delta))
