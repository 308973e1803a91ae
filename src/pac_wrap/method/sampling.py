"""What a promise assumes, and how calibration points were taken from a time series."""

from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from typing import Final, Literal

from pac_wrap.base.arguments import check_choice, check_count, is_number
from pac_wrap.errors import InputError


class Assumption(Enum):
    """Something a promise assumes; a certificate's file holds its number, `str` is the sentence."""

    # a number that was given out never changes its meaning
    INDEPENDENT = 1
    HELD_OUT = 2
    NO_SHIFT = 3
    MIXING = 4
    STATIONARY = 5
    SUBJECTS = 6
    ONE_SOURCE = 7
    ROOM = 8
    LABELS = 9
    WEIGHTS = 10
    POOLED = 11

    def __str__(self) -> str:
        return _SENTENCES[self]


_SENTENCES: Final = {
    Assumption.INDEPENDENT: (
        "calibration points and future points are independent of each other, and within each class draws"
        " from one distribution"
    ),
    Assumption.HELD_OUT: "the detector was trained without the calibration points and stays the same",
    Assumption.NO_SHIFT: "the distribution of each class does not shift",
    Assumption.MIXING: (
        "the points are windows of a time series and depend on each other: the promise is conditional on"
        " mixing, that is, on windows so far apart being as good as independent draws"
    ),
    Assumption.STATIONARY: (
        "within each class, the series is stationary: calibration and future windows have one distribution"
    ),
    Assumption.SUBJECTS: (
        "several calibration points are of one subject and depend on each other: the promise is conditional"
        " on points of one subject being as good as independent draws from the distribution of their class"
    ),
    Assumption.ONE_SOURCE: (
        "calibration points are independent of each other, and within each class draws from one distribution"
    ),
    Assumption.ROOM: (
        "future points of each class come from the distribution of its calibration points, or from one within"
        " the room for shift that the class was given"
    ),
    Assumption.LABELS: (
        "under each label no larger share of the calibration points is mislabelled, and of each class no"
        " larger share is lost, than there is room for; new labels with which it is measured are assumed to"
        " be no worse, though the share that is mislabelled changes with the prevalence"
    ),
    Assumption.WEIGHTS: (
        "the weights are right: up to a factor they say how much more likely a point is in the future than at"
        " calibration, and nowhere, not only in the sample, do they exceed their bound; a class"
        " without weights does not shift"
    ),
    Assumption.POOLED: (
        "calibration points are independent draws, each from the distribution of its class in its group; the"
        " promise is about these groups as often as they stand among the calibration points"
    ),
}
OF_DRAWS: Final = (Assumption.INDEPENDENT, Assumption.HELD_OUT, Assumption.NO_SHIFT)
OF_SUBJECTS: Final = (Assumption.SUBJECTS, Assumption.HELD_OUT, Assumption.NO_SHIFT)
OF_POOL: Final = (Assumption.POOLED, Assumption.HELD_OUT, Assumption.NO_SHIFT)
OF_SERIES: Final = (Assumption.MIXING, Assumption.STATIONARY, Assumption.HELD_OUT)
# what is said of the calibration points alone where future points have another distribution, and where only
# the labels differ, which mix the distributions of both classes
_APART: Final = {Assumption.INDEPENDENT: Assumption.ONE_SOURCE}
_WITHOUT_ROOM: Final = (Assumption.NO_SHIFT, Assumption.STATIONARY)
_MISLABELLED: Final = _APART | {Assumption.STATIONARY: Assumption.NO_SHIFT}


def assumed(
    usual: tuple[Assumption, ...], *, shift: bool = False, noise: bool = False, weights: bool = False
) -> tuple[Assumption, ...]:
    """Return what is assumed where there is room for shift or wrong labels, or points are weighted."""
    found = usual
    if shift or weights:
        found = tuple(_APART.get(one, one) for one in usual if one not in _WITHOUT_ROOM)
    elif noise:
        found = tuple(_MISLABELLED.get(one, one) for one in usual)
    more = ((Assumption.WEIGHTS, weights), (Assumption.ROOM, shift), (Assumption.LABELS, noise))
    return found + tuple(one for one, there in more if there)


def are_independent(assumptions: tuple[Assumption, ...]) -> bool:
    """Return whether the points of the classes are independent: not of one series, nor of one subject."""
    return not {Assumption.MIXING, Assumption.SUBJECTS} & set(assumptions)


Reduce = Literal["max", "mean", "last"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """The windows, their spacing and the split of a series, and how many independent points they are worth.

    `split` is "blocks" (of `block` steps, calibration and test at least `gap` steps apart), "random",
    "series" if whole series calibrate, or "none" if every window does. An effective size is None where
    nothing can be said. The errors are the calibration points that the rule misjudges.
    """

    length: int
    every: int
    reduce: Reduce
    split: Literal["blocks", "random", "series", "none"]
    gap: int
    block: int | None
    effective_normal: float | None
    effective_anomalous: float | None
    errors_normal: int | None = field(default=None, metadata={"optional": True})
    errors_anomalous: int | None = field(default=None, metadata={"optional": True})

    def __post_init__(self) -> None:
        for name in ("length", "every", "gap", "block", "errors_normal", "errors_anomalous"):
            if (value := getattr(self, name)) is not None or name in ("length", "every", "gap"):
                object.__setattr__(self, name, check_count(name, value))
        check_choice("reduce", self.reduce, ("max", "mean", "last"))
        check_choice("split", self.split, ("blocks", "random", "series", "none"))
        if not 1 <= self.length <= self.every:
            raise InputError(f"length must lie between 1 and every = {self.every:,}, got {self.length:,}")
        if (self.block is not None) != (self.split == "blocks") or self.block == 0:
            raise InputError(
                f"block must be at least 1 for a split in blocks, and None for others, got {self.block!r} and"
                f" {self.split!r}"
            )
        for name in ("effective_normal", "effective_anomalous"):
            value = getattr(self, name)
            if value is None:
                continue
            if not is_number(value) or not isfinite(value) or value < 0:
                raise InputError(f"{name} must be a number, 0 or more, or None, got {value!r}")
            object.__setattr__(self, name, float(value))

    @property
    def worth(self) -> str:
        """How many independent points the windows count as, in words."""
        pairs = (("normal", self.effective_normal), ("anomalous", self.effective_anomalous))
        known = [f"about {size:,.0f} independent {name} scores" for name, size in pairs if size is not None]
        unknown = [f"it is unknown what the {name} scores are worth" for name, size in pairs if size is None]
        return "; ".join([f"worth {' and '.join(known)}"] * bool(known) + unknown)

    def __str__(self) -> str:
        split = {
            "blocks": f"split in blocks of {self.block:,} steps with a gap of {self.gap:,}"
            if self.block
            else "",
            "random": "split at random",
            "series": "split by whole series",
            "none": "all of them calibrate",
        }[self.split]
        if self.length == 1:
            return f"{'every step' if self.every == 1 else f'one in every {self.every:,} steps'}, {split}"
        return f"windows of {self.length:,} in every {self.every:,} steps ({self.reduce}), {split}"
