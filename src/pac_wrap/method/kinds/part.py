"""One part of the calibration points, a kind or a class, with its own ceiling, budget and threshold."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import inf, isclose, nan

from pac_wrap.base.arguments import frames_inside
from pac_wrap.base.floats import confidence_left, kept_together, order_key, rounded_down, rounded_up
from pac_wrap.base.text import quoted
from pac_wrap.errors import VacuousWarning
from pac_wrap.method.certificates.consistency import MOST_SCORES, digest_problems
from pac_wrap.method.metrics import all_exceeded
from pac_wrap.method.strategies.interface import DIGITS
from pac_wrap.tails.bounds import Budget, Rate


@dataclass(frozen=True, slots=True)
class Part:
    """What the calibration points of one kind or class contributed, and what is promised of such points.

    Parameters
    ----------
    name : str or None
        The kind or the class; None is all points of a class as they come, of whatever kind.
    asked : float or None
        The ceiling that was asked for; None: nothing is promised.
    ceiling : float or None
        The ceiling that is certified; another one than was asked for only where the other side is held.
    delta : float
        The chance that it does not hold.
    n : int
        How many points there were.
    digest : str
        A digest of their scores, in any order.
    errors : int or None
        The error budget; None where nothing is promised, or n is too small.
    threshold : float or None
        The threshold that the budget leads to; None where nothing is promised.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> kinds = calibrate(range(100), {"worn": range(200, 300), "torn": range(150, 300)})
    >>> [(part.name, part.errors, part.threshold) for part in kinds.anomalous]
    [('torn', 2, 152.0), ('worn', 1, 201.0)]
    """

    name: str | None
    asked: float | None
    ceiling: float | None
    delta: float
    n: int
    digest: str
    errors: int | None
    threshold: float | None

    @property
    def budget(self) -> Budget | None:
        """The error budget with its exact confidence; None where nothing is promised."""
        return None if self.ceiling is None else Budget.of(self.n, self.ceiling, self.delta)

    @property
    def vacuous(self) -> bool:
        """Whether a ceiling was asked for that so few labels cannot keep."""
        return self.ceiling is not None and self.errors is None

    @property
    def confidence(self) -> Decimal:
        """How surely the ceiling holds by itself: by its exact tail, which is never less than 1 - delta."""
        budget = self.budget
        exact = Decimal(0) if budget is None else Decimal(repr(budget.confidence))
        return max(exact, confidence_left(self.delta))

    def problems(self, never: float, *, counted: bool = False) -> Iterator[str]:
        """Yield what contradicts itself; `never` is the threshold without a budget.

        `counted`: whether the ceiling is the bound of counted errors, and not the one that was asked for.
        """
        of = quoted(self.name)
        yield from digest_problems(of, self.n, self.digest)
        if not 0 <= self.n <= MOST_SCORES:
            yield f"there cannot be {self.n:,} scores of {of}; there are at most {MOST_SCORES:,}"
            return
        if self.asked is None and self.ceiling is not None:
            yield f"nothing was asked of {of}, and a ceiling is certified"
        if not counted and self.ceiling != self.asked:
            yield f"the ceiling of {of} is not the one that was asked for"
        if (self.threshold is None) != (self.ceiling is None):
            yield f"the threshold of {of} and its ceiling must both be there, or neither"
        budget = self.budget
        if (None if budget is None else budget.errors) != self.errors:
            yield f"the budget of {of} is not {self.errors}"
            return
        if self.vacuous and self.threshold != never:
            yield f"the threshold of {of} must be {never}: it has too few labels"
        if counted and self.ceiling is not None and self.errors is not None:
            spent = Budget.spent(self.errors, self.n, self.delta)
            if spent is None or not isclose(spent.rate, self.ceiling, rel_tol=DIGITS):
                yield f"the ceiling of {of} is not the bound of {self.errors:,} errors"

    @property
    def words(self) -> str:
        """What the part contributed, in words."""
        text = f"{self.n:,} scores"
        budget = self.budget
        if budget is None:
            return f"{text}, nothing {'asked for' if self.asked is None else 'certified at this threshold'}"
        if budget.errors is None:
            return f"{text}, too few for any error budget: {self.n + budget.missing:,} are needed"
        sure = rounded_down(budget.confidence)
        return (
            f"{text}, error budget {budget.errors:,}, exact confidence {sure}, threshold {self.threshold!r}"
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """How the points of one kind or class did that were not used to calibrate.

    Parameters
    ----------
    name : str
        What they are.
    ceiling : float or None
        The promised ceiling.
    rate : Rate
        The errors among them, with their exact interval.
    abstained : Rate
        The points among them that were left undecided.

    exceeded : bool
        Whether the rate is significantly above the ceiling; all that are measured together are one family.

    Examples
    --------
    >>> for one in Measured.together([("worn", 0.05, (10, 3, 100)), ("torn", 0.05, (4, 0, 100))]):
    ...     print(one)
    worn: 0.1000 [0.0490, 0.1762], ceiling 0.05, above, not significantly
    torn: 0.0400 [0.0110, 0.0993], ceiling 0.05, within
    """

    name: str
    ceiling: float | None
    rate: Rate
    abstained: Rate
    exceeded: bool

    @classmethod
    def together(
        cls, counted: Iterable[tuple[str, float | None, Sequence[int]]], confidence: float = 0.95
    ) -> "tuple[Measured, ...]":
        """Return what counts of several kinds or classes amount to, with one test of all ceilings at 5 %.

        Parameters
        ----------
        counted : iterable of tuples
            The name of each, the ceiling of its error rate, None if nothing was promised, and its errors,
            abstentions and points.
        confidence : float
            Of the exact intervals.

        Returns
        -------
        tuple of Measured
            Both rates of each with their intervals, and whether the ceiling is exceeded: eq. (24).
        """
        rows = list(counted)
        tops = [nan if ceiling is None else ceiling for _, ceiling, _ in rows]
        errors, sizes = ([counts[place] for *_, counts in rows] for place in (0, 2))
        over = all_exceeded(errors, sizes, tops)

        def rate(count: int, n: int) -> Rate:
            return Rate.of(count, n, confidence)

        return tuple(
            cls(name, ceiling, rate(counts[0], counts[2]), rate(counts[1], counts[2]), place in over)
            for place, (name, ceiling, counts) in enumerate(rows)
        )

    @property
    def finding(self) -> str:
        """Whether the ceiling held, in a word or two."""
        if self.ceiling is None:
            return "nothing promised"
        if self.exceeded or not self.rate.n:
            return "exceeded" if self.exceeded else "no points"
        return "within" if self.rate.value <= self.ceiling else "above, not significantly"

    def __str__(self) -> str:
        ceiling = "none" if self.ceiling is None else rounded_up(self.ceiling)
        return f"{self.name}: {self.rate}, ceiling {ceiling}, {self.finding}"


def kept(parts: Iterable[Part]) -> list[Part]:
    """Return the parts of which something is promised."""
    return [part for part in parts if part.ceiling is not None and not part.vacuous]


def confidence_of_kinds(parts: Sequence[Part], *, counted: bool) -> Decimal:
    """Return how surely all ceilings of a class hold together.

    All kinds have one threshold, the least or the greatest of theirs. Some ceiling fails only if that of the
    kind does which allows least, and which kind that is the population decides: the least confidence of all
    is kept, eq. (99). Counted ceilings lie wherever their counts do, and multiply: eq. (100).
    """
    found = kept(parts)
    if not counted:
        # a kind that lacks labels leaves the class without a threshold, so that nothing fails; a ceiling on
        # all kinds together holds on average over their numbers, and these may not raise its confidence
        lacking = any(part.vacuous for part in parts) and not any(part.name is None for part in found)
        return Decimal(1) if lacking else min((part.confidence for part in found), default=Decimal(1))
    # all points of a class as they come are those of its kinds: no sample of their own
    whole = [Decimal(repr(part.delta)) for part in found if part.name is None and len(parts) > 1]
    named = (confidence_left(part.delta) for part in found if part.name is not None or len(parts) == 1)
    return max(Decimal(0), kept_together(*named) - sum(whole))


def points_of(parts: Sequence[Part]) -> int:
    """Return how many points a class has; that of all kinds together counts none of its own."""
    return sum(part.n for part in parts if part.name is not None or len(parts) == 1)


def warn_of_lacking(parts: Iterable[Part]) -> None:
    """Warn the user, who is outside this package, of ceilings that were asked for and are not promised."""
    texts = [
        f"{'all points' if part.name is None else quoted(part.name)}: {part.words}"
        for part in parts
        if part.vacuous or (part.asked is not None and part.ceiling is None)
    ]
    if texts:
        warnings.warn("; ".join(texts), VacuousWarning, stacklevel=frames_inside() + 1)


def farthest(parts: Iterator[Part], never: float) -> Part:
    """Return the part whose threshold lies farthest towards `never`, the first of several.

    Of two thresholds at infinity one that is there for lack of labels goes first.
    """

    def place(part: Part) -> tuple[int, bool]:
        assert part.threshold is not None  # it is promised
        key = int(order_key(part.threshold))
        return key if never == inf else -key, part.vacuous

    return max(parts, key=place)
