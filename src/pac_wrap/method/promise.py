"""All that is asked for or certified at once: promises about error rates."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, TypeVar

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.foreign import quoted
from pac_wrap.base.rounding import confidence_left, equal_share
from pac_wrap.errors import InputError
from pac_wrap.method.kinds.ceilings import Ceilings, KindCeiling, kinds_of, whole_of
from pac_wrap.method.population import Error as Error
from pac_wrap.method.population import Population as Population
from pac_wrap.method.population import Promise as Promise
from pac_wrap.method.room.noise import LabelNoise
from pac_wrap.method.room.shift import SHIFTS, Shift
from pac_wrap.method.tails.budget import Budget as Budget

T = TypeVar("T")
_USUAL_DELTA: Final = 0.05


@dataclass(frozen=True, slots=True, init=False)
class Guarantee:
    """All promises that are asked for, or certified, at once: a ceiling for each error rate, with its delta.

    Parameters
    ----------
    max_fpr, max_fnr : float, mapping or None
        Ceilings of the false positive and of the false negative rate on future data. None promises nothing on
        that side; the other threshold then decides alone. A mapping gives a ceiling to each kind of points,
        as in `{"card stolen": 0.02, "account takeover": 0.1}`; its key None is for all kinds as they come.
    delta_fpr, delta_fnr : float, optional
        The chance, over draws of the calibration points, that the ceiling does not hold; 0.05 each, and for
        each kind.
    confidence : float, optional
        How surely all ceilings hold together. The deltas follow from it and from the numbers of labels once
        these are known, never from a score: both classes get an error budget if any deltas leave them one,
        and then the largest two together, eq. (103). A single ceiling gets all that is left to 1. Until the
        numbers are known, where ceilings are raised, and where the classes depend on each other, the deltas
        are equal and add up. Give either this or deltas.
    shift : TotalVariation, DensityRatio, KL or ChiSquared, or a pair of such, optional
        How far future points of each class may shift from the calibration points; the ceilings hold after
        every such shift. A pair is for the normal and for the anomalous points; None leaves one without.
    label_noise : LabelNoise or a pair of such, optional
        How many labels of the calibration points may be wrong.

    Raises
    ------
    InputError
        If both ceilings are None, a number does not lie strictly between 0 and 1, `confidence` comes together
        with a delta, or the room for shift and noise leaves nothing to promise.

    Examples
    --------
    >>> Guarantee(max_fpr=0.01, max_fnr=0.1).joint_delta
    0.1
    >>> Guarantee(max_fpr=0.01, max_fnr=0.1, confidence=0.95).delta_fpr
    0.025
    >>> Guarantee(max_fpr=0.01, max_fnr=None, confidence=0.95).delta_fpr
    0.05
    >>> print(Guarantee(max_fpr=None, max_fnr={"card stolen": 0.02, "account takeover": 0.1}))
    FNR of 'card stolen' <= 0.02 (confidence 0.95), FNR of 'account takeover' <= 0.1 (confidence 0.95)
    """

    max_fpr: float | None
    max_fnr: float | None
    delta_fpr: float
    delta_fnr: float
    # ceilings of kinds; where there are some, max_fpr or max_fnr is that of all kinds as they come, or None
    kinds: tuple[KindCeiling, ...] = field(default=(), init=False, repr=False)
    # the confidence that was asked for, of which the counts decide the deltas
    together: float | None = field(default=None, init=False, repr=False)
    # normal and anomalous; None where neither has room
    shift: tuple[Shift | None, ...] | None = field(default=None, metadata={"optional": True})
    label_noise: tuple[LabelNoise | None, ...] | None = field(default=None, metadata={"optional": True})

    def __init__(
        self,
        max_fpr: float | Ceilings | None = 0.05,
        max_fnr: float | Ceilings | None = 0.05,
        delta_fpr: float | None = None,
        delta_fnr: float | None = None,
        *,
        confidence: float | None = None,
        shift: "Shift | tuple[Shift | None, ...] | None" = None,
        label_noise: "LabelNoise | tuple[LabelNoise | None, ...] | None" = None,
    ) -> None:
        kinds = (*kinds_of("normal", max_fpr), *kinds_of("anomalous", max_fnr))
        sides = [whole_of(max_fpr), whole_of(max_fnr)]
        count = sum(rate is not None for rate in (*sides, *(one.ceiling for one in kinds)))
        if not count:
            raise InputError("max_fpr and max_fnr are both none; promise at least one of them")
        usual = _USUAL_DELTA
        if confidence is not None:
            if delta_fpr is not None or delta_fnr is not None:
                raise InputError(
                    "confidence says how surely all ceilings hold together, and each delta how surely its own"
                    " does; give either confidence or deltas"
                )
            usual = equal_share(check_rate("confidence", confidence), count)
        for name, side in zip(("max_fpr", "max_fnr"), sides, strict=True):
            object.__setattr__(self, name, side)
        for name, value in (("delta_fpr", delta_fpr), ("delta_fnr", delta_fnr)):
            object.__setattr__(self, name, check_rate(name, usual if value is None else value))
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "together", confidence)
        labels = {one.label for one in kinds}
        there = [
            side is not None or name in labels
            for side, name in zip(sides, ("normal", "anomalous"), strict=True)
        ]
        object.__setattr__(self, "shift", _pair("shift", shift, SHIFTS, there))
        object.__setattr__(self, "label_noise", _pair("label_noise", label_noise, (LabelNoise,), there))
        for promise in self.promises:
            if promise.of.kind is None:
                object.__setattr__(self, f"max_{promise.name.lower()}", promise.ceiling)

    @property
    def fpr(self) -> Promise | None:
        """The promise about normal points: few false alarms. None if nothing is promised there."""
        return None if self.max_fpr is None else self._promise("normal", None, self.max_fpr)

    @property
    def fnr(self) -> Promise | None:
        """The promise about anomalous points: few misses. None if nothing is promised there."""
        return None if self.max_fnr is None else self._promise("anomalous", None, self.max_fnr)

    @property
    def promises(self) -> tuple[Promise, ...]:
        """The promises, those about normal points first, and about kinds before all kinds together."""

        def of(label: Literal["normal", "anomalous"], whole: Promise | None) -> Iterator[Promise]:
            for one in self.kinds:
                if one.label == label and one.ceiling is not None:
                    yield self._promise(label, one.kind, one.ceiling)
            if whole is not None:
                yield whole

        return (*of("normal", self.fpr), *of("anomalous", self.fnr))

    def _promise(self, label: Literal["normal", "anomalous"], kind: str | None, ceiling: float) -> Promise:
        error, delta = Error.FALSE_ALARM, self.delta_fpr
        if label == "anomalous":
            error, delta = Error.MISS, self.delta_fnr
        side = int(label == "anomalous")
        shift = None if self.shift is None else self.shift[side]
        noise = None if self.label_noise is None else self.label_noise[side]
        return Promise(Population(label, kind), error, ceiling, delta, shift, noise)

    @property
    def room(self) -> tuple[str, ...]:
        """What the promises have room for, a sentence for each that has some."""
        return tuple(f"{one.name}: {one.room}" for one in self.promises if one.room is not None)

    @property
    def rooms(self) -> dict[str, bool]:
        """Whether there is room for shift, and for wrong labels, on either side."""
        return {"shift": self.shift is not None, "noise": self.label_noise is not None}

    @property
    def joint_delta(self) -> float:
        """Chance that some promised ceiling does not hold, at most: eq. (12), and eq. (62) with kinds."""
        return sum(promise.delta for promise in self.promises)

    @property
    def confidence(self) -> float:
        """How surely all promised ceilings hold together, by any strategy: 1 minus the deltas, or 0.

        A certificate, which knows its strategy and its counts, says more: `Certificate.confidence`.
        """
        return float(confidence_left(*(promise.delta for promise in self.promises)))

    @property
    def fixed(self) -> "Guarantee":
        """The same with its deltas as they stand, whatever the counts: those of a confidence add up to it."""
        return self if self.together is None else with_deltas(self, self.delta_fpr, self.delta_fnr)

    def __str__(self) -> str:
        return ", ".join(map(str, self.promises))


@lru_cache(maxsize=256)
def with_deltas(asked: Guarantee, delta_fpr: float, delta_fnr: float) -> Guarantee:
    """Return the same ceilings with other deltas, which no count changes.

    >>> with_deltas(Guarantee(confidence=0.95), 0.01, 0.04).together is None
    True
    """
    return replace(asked, delta_fpr=delta_fpr, delta_fnr=delta_fnr)


def as_guarantee(given: Guarantee | None, *, by_kind: bool = False) -> Guarantee:
    """Return what was asked for: the usual promises for None, and nothing but a `Guarantee` else.

    Ceilings of kinds are refused unless the scores come by kind.
    """
    asked = Guarantee() if given is None else given
    if not isinstance(asked, Guarantee):
        raise InputError(f"guarantee must be a Guarantee, got {quoted(asked)}; write Guarantee(max_fpr=0.05)")
    if asked.kinds and not by_kind:
        of = asked.kinds[0]
        raise InputError(
            f"the {of.label} kind {quoted(of.kind)} has a ceiling of its own, so its scores must come by"
            f" themselves: calibrate(normal, {{kind: scores}}), or --kind in the shell"
        )
    return asked


def refuse_room(asked: Guarantee, where: str, instead: str) -> None:
    """Refuse room for shift or noise where nothing is proved of it."""
    if any(asked.rooms.values()):
        raise InputError(f"{where} has no room for shift or wrong labels; {instead}")


def _pair(
    name: str, given: T | tuple[T | None, ...] | None, kinds: tuple[type, ...], there: list[bool]
) -> tuple[T | None, ...] | None:
    """Return the room of each class, None where nothing is promised of it, or None if neither has any."""
    pair: tuple[T | None, ...]
    pair = tuple(given) if isinstance(given, tuple | list) else (given, given)
    if len(pair) != 2 or not all(one is None or isinstance(one, kinds) for one in pair):
        known = ", ".join(kind.__name__ for kind in kinds)
        raise InputError(
            f"{name} must be one of {known}, or a pair of such for normal and anomalous points, got"
            f" {quoted(given)}"
        )
    found = tuple(one if promised else None for one, promised in zip(pair, there, strict=True))
    return found if any(one is not None for one in found) else None
