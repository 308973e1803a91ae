"""One promise: whom it is about, what counts as an error there, its ceiling, and the room that it leaves."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Literal

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.foreign import quoted
from pac_wrap.base.rounding import confidence_left, rounded_down, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.room.noise import LabelNoise
from pac_wrap.method.room.shift import Shift
from pac_wrap.method.tails.budget import LEAST_CEILING, Budget


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
    """What counts as an error in a population; an abstention never does.

    Examples
    --------
    >>> from pac_wrap import Guarantee
    >>> [promise.error.value for promise in Guarantee(max_fpr=0.01, max_fnr=0.1).promises]
    ['false alarm', 'miss']
    """

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
    shift : TotalVariation, DensityRatio, KL or ChiSquared, optional
        How far future points may shift; the ceiling holds after every such shift.
    label_noise : LabelNoise, optional
        How many labels of the calibration points may be wrong.

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
    shift: Shift | None = None
    label_noise: LabelNoise | None = None

    def __post_init__(self) -> None:
        rate = self.name.lower()
        name = f"max_{rate}" if self.of.kind is None else f"max_{rate} of {quoted(self.of.kind)}"
        object.__setattr__(self, "ceiling", check_rate(name, self.ceiling))
        object.__setattr__(self, "delta", check_rate(f"delta_{rate}", self.delta))
        if self.ceiling < LEAST_CEILING:
            raise InputError(
                f"{name} must be at least {LEAST_CEILING}, got {self.ceiling!r};"
                " no number of labels certifies less"
            )
        if self.at_calibration < LEAST_CEILING:
            raise InputError(
                f"{name} = {rounded_up(self.ceiling)} leaves nothing to promise with room for {self.room};"
                " raise the ceiling, or give less room"
            )

    @property
    def at_calibration(self) -> float:
        """The ceiling that calibration must keep so that this one holds within its room: eq. (70)."""
        return self.allowing(self.ceiling)

    def allowing(self, ceiling: float) -> float:
        """Return what calibration must keep so that another ceiling holds within this room.

        Parameters
        ----------
        ceiling : float
            The other ceiling.

        Returns
        -------
        float
            0 or less where nothing is enough.
        """
        return _at_calibration(ceiling, self.shift, self.label_noise)

    @property
    def counted(self) -> float:
        """The share of errors that labels as wrong as these may show while the ceiling holds: eq. (76)."""
        return self.ceiling if self.label_noise is None else self.label_noise.counted(self.ceiling)

    @property
    def room(self) -> str | None:
        """What there is room for, in words; None if nothing may shift and every label is right."""
        return " and ".join(str(one) for one in (self.shift, self.label_noise) if one is not None) or None

    def afterwards(self, rate: float) -> float:
        """Return the ceiling that follows from one that calibration keeps; 1 where nothing does.

        Parameters
        ----------
        rate : float
            What calibration keeps.

        Returns
        -------
        float
        """
        if rate == self.at_calibration:
            return self.ceiling
        for room in (self.label_noise, self.shift):
            rate = rate if room is None else room.after(rate)
        return rate

    def spent(self, errors: int, n: int) -> Budget | None:
        """Return the budget that so many errors among n spend; None where that promises nothing below 1.

        Parameters
        ----------
        errors, n : int
            How many errors were counted, among how many points.

        Returns
        -------
        Budget or None
        """
        found = Budget.spent(errors, n, self.delta)
        return None if found is None or self.afterwards(found.rate) >= 1.0 else found

    @property
    def name(self) -> str:
        """What the rate is called where it is shown: FPR or FNR."""
        return "FPR" if self.error is Error.FALSE_ALARM else "FNR"

    def budget(self, n: int) -> Budget:
        """Return the errors that n points of the population may show.

        Parameters
        ----------
        n : int
            How many labelled points of the population there are.

        Returns
        -------
        Budget
        """
        return Budget.of(n, self.at_calibration, self.delta)

    def __str__(self) -> str:
        confidence = rounded_down(confidence_left(self.delta))
        of = "" if self.of.kind is None else f" of {quoted(self.of.kind)}"
        return f"{self.name}{of} <= {rounded_up(self.ceiling)} (confidence {confidence})"


@lru_cache(maxsize=1024)
def _at_calibration(ceiling: float, shift: Shift | None, noise: LabelNoise | None) -> float:
    for room in (shift, noise):
        ceiling = ceiling if room is None or ceiling <= 0.0 else room.before(ceiling)
    return ceiling
