"""One promise with what became of it: what was asked and certified, and the points that it rests on."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal

from pac_wrap.base.arguments import frames_inside
from pac_wrap.base.floats import confidence_left, from_order_key, kept_together, order_key, rounded_down
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, VacuousWarning
from pac_wrap.method.promise import LABELS, Error, Guarantee, Population, Promise
from pac_wrap.method.robust.shift_and_noise import LabelNoise, Shift
from pac_wrap.tails.bounds import Budget, exact_confidence

if TYPE_CHECKING:
    from pac_wrap.method.strategies.interface import Asked, Found

# so many scores of a class are more than any engine counts; the exact tail stays quick up to there
MOST_SCORES: Final = 10**12
_OPTIONAL: Final = {"optional": True}


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
    budget: Budget | None = None
    threshold: float | None = None
    beyond: int | None = None

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
    def kept(self) -> bool:
        """Whether something is promised that can be broken."""
        return self.certified is not None and not self.vacuous

    @property
    def lacking(self) -> bool:
        """Whether something was asked for and is not promised."""
        return self.asked is not None and not self.kept

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

    @property
    def words(self) -> str:
        """What the points contributed, in words."""
        text = f"{self.n:,} scores"
        if self.budget is None:
            return f"{text}, nothing {'asked for' if self.asked is None else 'certified at this threshold'}"
        if self.budget.errors is None:
            return f"{text}, too few for any error budget: {self.n + self.missing:,} are needed"
        return (
            f"{text}, error budget {self.errors:,}, exact confidence {rounded_down(self.budget.confidence)},"
            f" threshold {self.threshold!r}"
        )

    def problems(self) -> Iterator[str]:
        """Yield what contradicts itself in the clause of a kind, or of one of several classes.

        Its budget is that of its numbers, and without one its threshold decides nothing.
        """
        of = "all points" if self.of.kind is None else quoted(self.of.kind)
        if self.budget is not None:
            exact = Budget.of(self.n, self.budget.rate, self.budget.delta).errors
            if exact != self.errors:
                yield f"the budget of {of} is {exact}, not {self.errors}"
        if (self.threshold is None) != (self.certified is None):
            yield f"the threshold of {of} and its ceiling must both be there, or neither"
        never = inf if self.of.label == "normal" else -inf
        if self.vacuous and self.threshold != never:
            yield f"the threshold of {of} must be {never}: it has too few labels"

    def to_form(self, delta: float) -> "Written":
        """Return the clause as a file has it; delta is that of its class, where nothing was asked."""
        asked, certified, budget = self.asked, self.certified, self.budget
        at = None if certified is None else At(certified.at_calibration, certified.delta)
        found_at = None if budget is None else At(budget.rate, budget.delta)
        return Written(
            of=self.of.label,
            kind=self.of.kind,
            error=Error.FALSE_ALARM if self.of.label == "normal" else Error.MISS,
            ceiling=None if asked is None else asked.ceiling,
            delta=delta if asked is None else asked.delta,
            shift=None if asked is None else asked.shift,
            label_noise=None if asked is None else asked.label_noise,
            certified=None if certified == asked else Certified.of(certified, asked),
            n=self.n,
            digest=self.digest,
            budget=self.errors,
            found_at=None if found_at == at else found_at,
            threshold=self.threshold,
            beyond=self.beyond,
        )


@dataclass(frozen=True, slots=True)
class Certified:
    """What is promised where it is not what was asked for.

    Parameters
    ----------
    ceiling : float or None
        The ceiling; None where nothing is promised.
    delta : float, optional
        The chance that it does not hold, where it is not the one that was asked for.
    """

    ceiling: float | None
    delta: float | None = field(default=None, metadata=_OPTIONAL)

    @classmethod
    def of(cls, certified: Promise | None, asked: Promise | None) -> "Certified":
        """Return what a file says of a promise beside what was asked."""
        if certified is None or asked is None:
            return cls(None)
        return cls(certified.ceiling, None if certified.delta == asked.delta else certified.delta)


@dataclass(frozen=True, slots=True)
class At:
    """The rate and the delta that an error budget was found at."""

    rate: float
    delta: float


def clause_of(
    one: "Asked",
    found: "Found | None",
    points: tuple[int, str | None],
    beyond: int | None = None,
    *,
    certified: bool = True,
) -> Clause:
    """Return what became of a promise; points are the number of its population's points, and their digest."""
    promise = one.promise
    if found is None or promise is None:
        return Clause(one.of, promise, None, *points)
    kept: Promise | None = None
    if certified and found.ceiling == found.ceiling:
        same = (found.ceiling, found.level) == (promise.ceiling, promise.delta)
        kept = promise if same else replace(promise, ceiling=found.ceiling, delta=found.level)
    budget = found.budget(points[0])
    threshold = None if budget is None else from_order_key(found.key)
    return Clause(one.of, promise, kept, *points, budget, threshold, beyond)


@dataclass(frozen=True, slots=True)
class Written:
    """A clause as a file has it: what was asked, counted and found; nothing that follows from the rest.

    Parameters
    ----------
    of : "normal", "anomalous" or "class"
        The class of the points.
    kind : str, optional
        Their kind, or the name of their class where there are more than two.
    error : "false alarm" or "miss"
        What counts as an error.
    ceiling, delta : float or None
        What was asked for; without a ceiling the points were only counted.
    shift, label_noise : object, optional
        What the promise has room for.
    certified : object, optional
        What is promised, where that is not what was asked for.
    n : int
        How many calibration points there were.
    digest : str or None
        A digest of their scores, in any order; None where the scores stayed in a database.
    budget : int or None
        The error budget; None where nothing is promised, or n is too small.
    found_at : object, optional
        The rate and the delta of the budget, where they are not those that are certified.
    threshold : float or None
        The threshold of these points alone; None where nothing is promised.
    beyond : int or None
        How many of these points lie beyond the threshold of the other class.
    """

    of: Literal["normal", "anomalous", "class"]
    kind: str | None = field(metadata=_OPTIONAL)
    error: Error
    ceiling: float | None
    delta: float
    shift: Shift | None = field(metadata=_OPTIONAL)
    label_noise: LabelNoise | None = field(metadata=_OPTIONAL)
    certified: Certified | None = field(metadata=_OPTIONAL)
    n: int
    digest: str | None
    budget: int | None
    found_at: At | None = field(metadata=_OPTIONAL)
    threshold: float | None
    beyond: int | None

    def clause(self) -> Clause:
        """Return the clause, or refuse numbers that no points have."""
        if not 0 <= self.n <= MOST_SCORES:
            raise InputError(
                f"there cannot be {self.n:,} {self.of} scores; a class has at most {MOST_SCORES:,}"
            )
        of = Population(self.of, self.kind)
        if self.error is not (Error.FALSE_ALARM if self.of == "normal" else Error.MISS):
            raise InputError(f"the error of {of} cannot be a {self.error.value}")
        room: dict[str, Any] = {"shift": self.shift, "label_noise": self.label_noise}
        asked = certified = None
        if self.ceiling is not None:
            asked = certified = Promise(of, self.error, self.ceiling, self.delta, **room)
        if self.certified is not None:
            certified = None
            if self.certified.ceiling is not None and asked is not None:
                delta = asked.delta if self.certified.delta is None else self.certified.delta
                certified = replace(asked, ceiling=self.certified.ceiling, delta=delta)
        at = self.found_at
        if at is None and certified is not None:
            at = At(certified.at_calibration, certified.delta)
        errors, budget = self.budget, None
        if errors is not None and (at is None or not 0 <= errors < self.n):
            raise InputError(f"the budget of {self.n:,} {of} cannot be {errors}")
        if at is not None:
            budget = Budget(self.n, at.rate, at.delta, errors, exact_confidence(self.n, at.rate, errors))
        return Clause(of, asked, certified, self.n, self.digest, budget, self.threshold, self.beyond)


def asked_by(clauses: Sequence[Clause], deltas: tuple[float, float]) -> Guarantee:
    """Return what was asked of all clauses, as one guarantee; the deltas are those of each class."""
    sides: dict[str, Any] = {}
    rooms: list[tuple[Any, Any]] = []
    for label, name in zip(LABELS, ("max_fpr", "max_fnr"), strict=True):
        own = [one for one in clauses if one.of.label == label]
        ceilings = {one.of.kind: None if one.asked is None else one.asked.ceiling for one in own}
        sides[name] = ceilings if any(kind is not None for kind in ceilings) else ceilings.get(None)
        asked = next((one.asked for one in own if one.asked is not None), None)
        rooms.append((None, None) if asked is None else (asked.shift, asked.label_noise))
    shift, noise = zip(*rooms, strict=True)
    return Guarantee(**sides, delta_fpr=deltas[0], delta_fnr=deltas[1], shift=shift, label_noise=noise)


def binding(clauses: Sequence[Clause], *, counted: bool) -> Clause:
    """Return the clause of a class that the rule comes from: the one whose threshold decides least.

    Of two thresholds at infinity one that is there for lack of labels goes first. Ceilings that were counted
    at the threshold of the other class leave it as it is; there the largest of them binds.
    """
    if len(clauses) == 1:
        return clauses[0]
    promised = [one for one in clauses if one.asked is not None]
    if not promised:  # nothing is promised, and all points are counted
        return Clause(Population(clauses[0].of.label), None, None, points_of(clauses), None)
    if counted:
        return max(promised, key=lambda one: inf if one.ceiling is None else one.ceiling)
    sign = 1 if promised[0].of.label == "normal" else -1
    never = inf * sign

    def place(one: Clause) -> tuple[int, bool]:
        return sign * int(order_key(never if one.threshold is None else one.threshold)), one.vacuous

    return max(promised, key=place)


def points_of(clauses: Sequence[Clause]) -> int:
    """Return how many points a class has; that of all kinds together counts none of its own."""
    return sum(one.n for one in clauses if one.of.kind is not None or len(clauses) == 1)


def confidence_of_kinds(clauses: Sequence[Clause], *, counted: bool) -> Decimal:
    """Return how surely all ceilings of a class hold together.

    All kinds have one threshold, the least or the greatest of theirs. Some ceiling fails only if that of the
    kind does which allows least, and which kind that is the population decides: the least confidence of all
    is kept, eq. (99). Counted ceilings lie wherever their counts do, and multiply: eq. (100).
    """
    found = [one for one in clauses if one.kept]
    if not counted:
        # a kind that lacks labels leaves the class without a threshold, so that nothing fails; a ceiling on
        # all kinds together holds on average over their numbers, and these may not raise its confidence
        lacking = any(one.vacuous for one in clauses) and not any(one.of.kind is None for one in found)
        return Decimal(1) if lacking else min((one.confidence for one in found), default=Decimal(1))
    # all points of a class as they come are those of its kinds: no sample of their own
    several = len(clauses) > 1
    deltas = {one.of.kind: one.certified.delta for one in found if one.certified is not None}
    whole = [Decimal(repr(delta)) for kind, delta in deltas.items() if kind is None and several]
    named = (confidence_left(delta) for kind, delta in deltas.items() if kind is not None or not several)
    return max(Decimal(0), kept_together(*named) - sum(whole))


def warn_of_lacking(clauses: Iterable[Clause]) -> None:
    """Warn the user, who is outside this package, of ceilings that were asked for and are not promised."""
    texts = [
        f"{'all points' if one.of.kind is None else quoted(one.of.kind)}: {one.words}"
        for one in clauses
        if one.lacking
    ]
    if texts:
        warnings.warn("; ".join(texts), VacuousWarning, stacklevel=frames_inside() + 1)
