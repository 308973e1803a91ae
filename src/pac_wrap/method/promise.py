"""Promises about error rates: the guarantee asked for, its assumptions, and the result of each promise."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum, StrEnum
from functools import lru_cache
from math import inf
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, cast

from pac_wrap.base import arguments, floats
from pac_wrap.base.arguments import MOST_SCORES, Limit, check_rate, rate_or_none
from pac_wrap.base.text import LONGEST, amount, is_unicode, quoted
from pac_wrap.errors import InputError, VacuousWarning
from pac_wrap.method.robust.shift_and_noise import SHIFTS, LabelNoise, Reviews, Shift
from pac_wrap.tails.bounds import LEAST_CEILING, Budget, exact_confidence, find_budget

if TYPE_CHECKING:
    from pac_wrap.method.strategies.interface import Asked, Found

T = TypeVar("T")
Label = Literal["normal", "anomalous"]
LABELS: Final[tuple[Label, Label]] = ("normal", "anomalous")
# a ceiling for each kind; the key None stands for all kinds together, in their natural mix
Ceilings = Mapping[str, float | None] | Mapping[str | None, float | None]
_OPTIONAL: Final = {"optional": True}


class KindCeiling(NamedTuple):
    """A kind of points of a class, and its ceiling; None promises nothing about that kind alone."""

    label: Label
    kind: str
    ceiling: float | None


def kinds_of(label: Label, ceilings: float | Ceilings | None) -> Iterator[KindCeiling]:
    """Yield the kinds that a mapping of ceilings names."""
    if not isinstance(ceilings, Mapping):
        return
    if not any(kind is not None for kind in ceilings):
        name = Population(label).option
        raise InputError(f"{name} names no kind; write {{'a kind': 0.05}}, or a number for all points")
    for kind, ceiling in ceilings.items():
        if kind is not None:
            yield KindCeiling(label, kind, rate_or_none(Population(label, check_kind(kind)).option, ceiling))


def check_kind(kind: object) -> str:
    """Return the name of a kind after checking it: a text, not empty and not too long for a certificate."""
    if not isinstance(kind, str) or not kind or len(kind) > LONGEST or not is_unicode(kind):
        raise InputError(
            f"the name of a kind must be a text of 1 to {LONGEST} characters, got {quoted(kind)}; convert it"
        )
    return str(kind)


class Error(StrEnum):
    """What is counted among a population's points; an abstention is never an error."""

    FALSE_ALARM = "false alarm"
    MISS = "miss"
    ALARM = "alarm"
    WRONG_ALARM = "wrong alarm"


_OPTIONS: Final = {
    ("normal", Error.FALSE_ALARM): "max_fpr",
    ("traffic", Error.ALARM): "max_alarms",
    ("traffic", Error.FALSE_ALARM): "max_false_alarms",
    ("alarms", Error.WRONG_ALARM): "min_precision",
}
# what a promise may count, and of which points
KNOWN: Final = {*_OPTIONS, ("anomalous", Error.MISS), ("class", Error.MISS)}
_NAMES: Final = {
    "max_fpr": "FPR",
    "max_fnr": "FNR",
    "max_alarms": "alarms",
    "max_false_alarms": "false alarms",
    "min_precision": "wrong alarms",
}


@dataclass(frozen=True, slots=True)
class Population:
    """The points that a promise is about, and the error that is counted: a class, a kind, traffic, alarms."""

    label: Literal["normal", "anomalous", "class", "traffic", "alarms"]
    kind: str | None = None
    error: Error = cast("Error", None)  # noqa: RUF009  # by default that of its class, which is found below

    def __post_init__(self) -> None:
        usual = Error.FALSE_ALARM if self.label in ("normal", "traffic") else Error.MISS
        object.__setattr__(self, "error", self.error or usual)

    @property
    def side(self) -> Label:
        """The class of the points that its threshold protects: alarms are a matter of normal points."""
        return "anomalous" if self.error is Error.MISS else "normal"

    @property
    def option(self) -> str:
        """The name of the argument that sets its ceiling."""
        name = _OPTIONS.get((self.label, self.error), "max_fnr")
        return name if self.kind is None else f"{name} of {quoted(self.kind)}"

    def __str__(self) -> str:
        if self.side == "normal" and self.label != "normal":
            return f"{self.label} ({self.error.value}s)" if self.label == "traffic" else self.label
        return f"{self.label} points" + (f" of kind {quoted(self.kind)}" if self.kind else "")


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise: the error rate of one population is at most `ceiling`, except with chance `delta`.

    Its numbers are checked by its maker, a guarantee or a file.
    """

    of: Population
    error: Error
    ceiling: float
    delta: float
    shift: Shift | None = None
    label_noise: LabelNoise | None = None
    # of traffic: how it was reviewed; and as it was stated: points and of how many, or the least precision
    reviews: Reviews | None = None
    limit: tuple[float, ...] | None = None
    # the ceiling that must hold at calibration so that this one holds despite shift and noise: eq. (70)
    at_calibration: float = field(default=0.0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Find the ceiling at calibration, and refuse a promise that no number of labels can keep."""
        object.__setattr__(self, "at_calibration", self.allowing(self.ceiling))
        if self.ceiling < LEAST_CEILING:
            raise InputError(
                f"{self.of.option} must be at least {LEAST_CEILING}, got {self.ceiling!r};"
                " no number of labels certifies less"
            )
        if self.at_calibration < LEAST_CEILING:
            raise InputError(
                f"{self.of.option} = {floats.rounded_up(self.ceiling)} is too low to tolerate"
                f" {self.tolerance}; raise the ceiling, or tolerate less"
            )

    def allowing(self, ceiling: float) -> float:
        """Return the ceiling at calibration that a ceiling needs; 0 or less if no ceiling is enough."""
        if self.shift is None and self.label_noise is None and self.reviews is None:
            return ceiling
        return _at_calibration(ceiling, self.shift, self.label_noise, self.reviews)

    @property
    def counted(self) -> float:
        """The largest share of errors that these noisy labels may show while the ceiling holds: eq. (76)."""
        return self.ceiling if self.label_noise is None else self.label_noise.counted(self.ceiling)

    @property
    def tolerance(self) -> str | None:
        """The shift and the label noise that the promise tolerates, in words; None if it tolerates none."""
        return " and ".join(str(one) for one in (self.shift, self.label_noise) if one is not None) or None

    @property
    def by_coins(self) -> bool:
        """Whether only reviewed points count, since coins chose them."""
        return self.reviews is not None and self.reviews.rate < 1.0

    @property
    def by_audits(self) -> bool:
        """Whether audits of traffic keep it."""
        return self.reviews is not None and self.reviews.audits > 0.0

    def afterwards(self, rate: float) -> float:
        """Return the ceiling that follows from a rate at calibration; 1 if no ceiling follows."""
        if rate == self.at_calibration:
            return self.ceiling
        if self.label_noise is None and self.shift is None and self.reviews is None:
            return rate
        for one in (self.reviews, self.label_noise, self.shift):
            rate = rate if one is None else one.after(rate)
        return floats.ceiling_up(rate)

    def spent(self, errors: int, n: int) -> Budget | None:
        """Return the budget of counted errors among n points; None if no ceiling below 1 follows."""
        found = Budget.spent(errors, n, self.delta)
        return None if found is None or self.afterwards(found.rate) >= 1.0 else found

    @property
    def name(self) -> str:
        """The name of the rate: FPR, FNR, alarms, false alarms or wrong alarms."""
        return _NAMES[Population(self.of.label, None, self.error).option]

    @property
    def rate(self) -> str:
        """The error rate that a strategy keeps with it: FPR or FNR."""
        return "FPR" if self.of.side == "normal" else "FNR"

    @property
    def most(self) -> str:
        """The ceiling as a number: a rate, or points per so many points."""
        if self.limit is None or len(self.limit) == 1:
            return floats.rounded_up(self.ceiling)
        return f"{self.limit[0]:,.12g} per {self.limit[1]:,.0f} points"

    def budget(self, n: int) -> Budget:
        """Return the error budget of n points of the population."""
        return find_budget(arguments.check_count("n", n), self.at_calibration, self.delta)

    @property
    def of_traffic(self) -> bool:
        """Whether traffic and its reviews keep the promise."""
        return self.reviews is not None or self.of.label in ("traffic", "alarms")

    @property
    def claim(self) -> str:
        """The promise without its confidence."""
        if self.error is Error.WRONG_ALARM and self.limit:
            return f"precision >= {floats.rounded_down(self.limit[0])}"
        return f"{self.name}{'' if self.of.kind is None else f' of {quoted(self.of.kind)}'} <= {self.most}"

    def __str__(self) -> str:
        return f"{self.claim} (confidence {floats.rounded_down(floats.confidence_left(self.delta))})"


@lru_cache(maxsize=1024)
def _at_calibration(
    ceiling: float, shift: Shift | None, noise: LabelNoise | None, reviews: Reviews | None
) -> float:
    for one in (shift, noise, reviews):
        ceiling = ceiling if one is None or ceiling <= 0.0 else one.before(ceiling)
    return ceiling


def _pair(
    name: str, given: T | tuple[T | None, ...] | None, kinds: tuple[type, ...], there: list[bool]
) -> tuple[T | None, ...]:
    """Return the tolerance of each class, None for a class without a promise."""
    pair: tuple[T | None, ...]
    pair = tuple(given) if isinstance(given, tuple | list) else (given, given)
    if len(pair) != 2 or not all(one is None or isinstance(one, kinds) for one in pair):
        known = ", ".join(kind.__name__ for kind in kinds)
        raise InputError(
            f"{name} must be one of {known}, or a pair of these for normal and anomalous points, got"
            f" {quoted(given)}"
        )
    return tuple(one if promised else None for one, promised in zip(pair, there, strict=True))


@dataclass(frozen=True, slots=True, init=False)
class Guarantee:
    """The promises asked for or certified together: a ceiling for each error rate, each with its delta.

    Parameters
    ----------
    max_fpr, max_fnr : float, mapping or None
        The ceilings of the false positive and of the false negative rate on future data. None promises
        nothing about that rate; the other threshold then decides alone. A mapping sets a ceiling for each
        kind of points, as in `{"card stolen": 0.02, "account takeover": 0.1}`; its key None is for all kinds.
    delta_fpr, delta_fnr : float, optional
        The chance, over draws of the calibration points, that the ceiling does not hold; by default 0.05 for
        each ceiling, and for each kind.
    confidence : float, optional
        The confidence that all ceilings hold together, instead of deltas. The deltas follow from it and from
        the numbers of labels, never from a score: both classes get an error budget if any deltas allow it,
        and then the largest two together, eq. (103). A single ceiling gets the whole delta, 1 - confidence.
        If the numbers are unknown, ceilings are raised or classes dependent, deltas are equal and add up.
    shift : TotalVariation, DensityRatio, KL or ChiSquared, or a pair of these, optional
        How far future points of each class may shift from the calibration points; the ceilings hold after any
        shift of that size. A pair is for normal and for anomalous points; None tolerates no shift.
    label_noise : LabelNoise or a pair of these, optional
        How many labels of the calibration points may be wrong.
    max_alarms, max_false_alarms : float, str or pair of numbers, optional
        Ceilings for `calibrate_traffic`: of the share of points that raise an alarm, and of the share that
        raise one and are normal. "20 per 50,000", "20/50000" and (20, 50_000) mean 20 of 50,000 points on
        average. With one of these or `min_precision`, only the other ceilings that are given are promised.
    min_precision : float, optional
        The least share of alarms that are right, for `calibrate_traffic`.
    reviews : Reviews, optional
        How traffic was reviewed, unless every point without a review is to count as normal.

    Raises
    ------
    InputError
        If both ceilings are None, a number is not strictly between 0 and 1, both `confidence` and a delta are
        given, or a ceiling is too low to tolerate the shift and the label noise.

    Examples
    --------
    >>> Guarantee(max_fpr=0.01, max_fnr=0.1).confidence
    0.9
    >>> Guarantee(max_fpr=0.01, max_fnr=0.1, confidence=0.95).delta_fpr
    0.025
    >>> print(Guarantee(max_fpr=None, max_fnr={"card stolen": 0.02, "account takeover": 0.1}))
    FNR of 'card stolen' <= 0.02 (confidence 0.95), FNR of 'account takeover' <= 0.1 (confidence 0.95)
    >>> print(Guarantee(max_false_alarms="20 per 50,000"))
    false alarms <= 20 per 50,000 points (confidence 0.95)
    """

    max_fpr: float | None
    max_fnr: float | None
    delta_fpr: float
    delta_fnr: float
    # ceilings of kinds; if there are any, max_fpr or max_fnr is the ceiling of all kinds together, or None
    kinds: tuple[KindCeiling, ...] = field(default=(), init=False, repr=False)
    # the confidence that was asked for; the deltas follow from it and from the counts
    together: float | None = field(default=None, init=False, repr=False)
    # one for each ceiling, normal points first, and kinds before all kinds together
    promises: tuple[Promise, ...] = field(default=(), init=False, repr=False, compare=False)
    # normal and anomalous; None where neither tolerates any
    shift: tuple[Shift | None, ...] | None = field(default=None, metadata=_OPTIONAL)
    label_noise: tuple[LabelNoise | None, ...] | None = field(default=None, metadata=_OPTIONAL)
    # of traffic: a rate, or points per so many points
    max_alarms: Limit | None = field(default=None, metadata=_OPTIONAL)
    max_false_alarms: Limit | None = field(default=None, metadata=_OPTIONAL)
    min_precision: float | None = field(default=None, metadata=_OPTIONAL)
    reviews: Reviews | None = field(default=None, metadata=_OPTIONAL)

    def __init__(
        self,
        max_fpr: float | Ceilings | EllipsisType | None = ...,
        max_fnr: float | Ceilings | EllipsisType | None = ...,
        delta_fpr: float | None = None,
        delta_fnr: float | None = None,
        *,
        confidence: float | None = None,
        shift: "Shift | tuple[Shift | None, ...] | None" = None,
        label_noise: "LabelNoise | tuple[LabelNoise | None, ...] | None" = None,
        max_alarms: Limit | str | None = None,
        max_false_alarms: Limit | str | None = None,
        min_precision: float | None = None,
        reviews: Reviews | None = None,
    ) -> None:
        limits = {
            Error.ALARM: arguments.as_limit("max_alarms", max_alarms),
            Error.FALSE_ALARM: arguments.as_limit("max_false_alarms", max_false_alarms),
            Error.WRONG_ALARM: rate_or_none("min_precision", min_precision),
        }
        of_traffic = reviews is not None or any(one is not None for one in limits.values())
        default = None if of_traffic else 0.05
        max_fpr = default if isinstance(max_fpr, EllipsisType) else max_fpr
        max_fnr = default if isinstance(max_fnr, EllipsisType) else max_fnr
        kinds = (*kinds_of("normal", max_fpr), *kinds_of("anomalous", max_fnr))
        given: tuple[Any, ...] = (max_fpr, max_fnr)
        sides = [one.get(None) if isinstance(one, Mapping) else one for one in given]
        wanted = *sides, *(one.ceiling for one in kinds), *limits.values()
        count = sum(rate is not None for rate in wanted)
        if not count:
            raise InputError("max_fpr and max_fnr are both none; promise at least one of them")
        usual = 0.05
        if confidence is not None:
            if delta_fpr is not None or delta_fnr is not None:
                raise InputError(
                    "confidence must come without deltas, since it is for all ceilings together and a delta"
                    " is for one of them; give either confidence or deltas"
                )
            usual = floats.equal_share(check_rate("confidence", confidence), count)
        rates = list(map(rate_or_none, ("max_fpr", "max_fnr"), sides))
        own = map(rate_or_none, ("delta_fpr", "delta_fnr"), (delta_fpr, delta_fnr))
        deltas = [delta or usual for delta in own]
        labels = {one.label for one in kinds}
        there = [side is not None or label in labels for side, label in zip(sides, LABELS, strict=True)]
        shifts: tuple[Shift | None, ...] = _pair("shift", shift, SHIFTS, there)
        noises = _pair("label_noise", label_noise, (LabelNoise,), there)
        # audits are for missed anomalies alone
        seen = reviews and replace(reviews, audits=0.0), reviews if reviews and reviews.audits else None
        promises = tuple(
            Promise(of, of.error, rate, deltas[side], shifts[side], noises[side], seen[side])
            for side, label in enumerate(LABELS)
            for of, rate in (
                *((Population(label, one.kind), one.ceiling) for one in kinds if one.label == label),
                (Population(label), rates[side]),
            )
            if rate is not None
        )
        if of_traffic:
            promises = *_of_traffic(limits, deltas[0], seen[0]), *promises
            pairs = (one if isinstance(one, tuple | list) else (one,) for one in (shift, label_noise))
            others = (*kinds, confidence, *(one for pair in pairs for one in pair))
            self._check_traffic(promises, any(one is not None for one in others), reviews)
        tolerated = (one if any(one) else None for one in (shifts, noises))
        values = (*rates, *deltas, kinds, confidence, promises, *tolerated, *limits.values(), reviews)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @staticmethod
    def _check_traffic(promises: "Sequence[Promise]", others: bool, reviews: Reviews | None) -> None:
        """Refuse promises about traffic in combinations without a proof."""
        if others:
            raise InputError(
                "promises about traffic work without kinds, shift, label_noise and confidence; remove these,"
                " and give delta_fpr and delta_fnr"
            )
        of = {(one.of.label, one.error) for one in promises}
        if reviews is not None and reviews.audits and ("anomalous", Error.MISS) not in of:
            raise InputError("audits of the reviews are for max_fnr; give it too, or remove the audits")
        if reviews is not None and reviews.max_anomalies and ("normal", Error.FALSE_ALARM) not in of:
            raise InputError("max_anomalies of the reviews is for max_fpr; give it too, or leave it out")
        if reviews is not None and reviews.rate < 1.0 and ("alarms", Error.WRONG_ALARM) in of:
            raise InputError(
                "min_precision needs every alarm reviewed, so a rate of reviews below 1 does not work with it"
            )
        if ("normal", Error.FALSE_ALARM) in of and (reviews is None or not reviews.max_anomalies):
            raise InputError(
                "max_fpr from traffic needs the largest share of anomalies in it; give"
                " reviews=Reviews(max_anomalies=0.02)"
            )

    @property
    def fpr(self) -> Promise | None:
        """The promise about normal points, a ceiling of the FPR; None if nothing is promised."""
        return self._whole("normal")

    @property
    def fnr(self) -> Promise | None:
        """The promise about anomalous points, a ceiling of the FNR; None if nothing is promised."""
        return self._whole("anomalous")

    def _whole(self, label: Label) -> Promise | None:
        return next((one for one in self.promises if one.of.label == label and one.of.kind is None), None)

    @property
    def of_traffic(self) -> bool:
        """Whether traffic and its reviews keep any of the promises."""
        return any(one.of_traffic for one in self.promises)

    @property
    def tolerance(self) -> tuple[str, ...]:
        """The shift and the label noise that each promise tolerates, in words."""
        return tuple(f"{one.name}: {one.tolerance}" for one in self.promises if one.tolerance is not None)

    @property
    def tolerates(self) -> dict[str, bool]:
        """Whether any promise tolerates shift, and whether any tolerates label noise."""
        return {"shift": self.shift is not None, "noise": self.label_noise is not None}

    @property
    def confidence(self) -> float:
        """The confidence that all ceilings hold together, with any strategy: eq. (12), eq. (62) with kinds.

        `Certificate.confidence` is larger, since it uses the strategy and the numbers of points.
        """
        return float(floats.confidence_left(*(promise.delta for promise in self.promises)))

    @property
    def fixed(self) -> "Guarantee":
        """The guarantee with its present deltas, whatever the counts; those of a confidence add up to it."""
        return self if self.together is None else with_deltas(self, self.delta_fpr, self.delta_fnr)

    def __str__(self) -> str:
        return ", ".join(map(str, self.promises))


@lru_cache(maxsize=256)
def with_deltas(asked: Guarantee, delta_fpr: float, delta_fnr: float) -> Guarantee:
    """Return the guarantee with other deltas, which no count changes."""
    return replace(asked, delta_fpr=delta_fpr, delta_fnr=delta_fnr)


def _of_traffic(
    limits: Mapping[Error, Limit | None], delta: float, reviews: Reviews | None
) -> Iterator[Promise]:
    """Yield the promises about traffic, each with the reviews that its ceiling depends on."""
    for error, limit in limits.items():
        if limit is None:
            continue
        label: Any = "alarms" if error is Error.WRONG_ALARM else "traffic"
        # as floats, which a file gives back
        stated = (
            tuple(map(float, limit)) if isinstance(limit, tuple) else (limit,) * (label == "alarms") or None
        )
        rate = limit if isinstance(limit, float) and stated is None else floats.ceiling_of(stated or ())
        seen = None if error is Error.ALARM or reviews is None else replace(reviews, max_anomalies=0.0)
        yield Promise(Population(label, None, error), error, rate, delta, reviews=seen, limit=stated)


_USUAL: Final = Guarantee()


def as_guarantee(given: Guarantee | None, *, by_kind: bool = False, traffic: bool = False) -> Guarantee:
    """Return the guarantee asked for, the usual one for None; any other type raises an error."""
    asked = _USUAL if given is None else given
    if not isinstance(asked, Guarantee):
        raise InputError(f"guarantee must be a Guarantee, got {quoted(asked)}; write Guarantee(max_fpr=0.05)")
    if asked.of_traffic and not traffic:
        raise InputError(
            f"{asked.promises[0].of.option} is promised for traffic; write calibrate_traffic(scores, reviews,"
            " guarantee), or --review in the shell"
        )
    if asked.kinds and not by_kind:
        of = asked.kinds[0]
        raise InputError(
            f"the {of.label} kind {quoted(of.kind)} has its own ceiling, so its scores must come separately:"
            f" write calibrate(normal, {{kind: scores}}), or --kind in the shell"
        )
    return asked


def refuse_tolerance(asked: Guarantee, where: str, instead: str) -> None:
    """Refuse a guarantee that tolerates shift or label noise, for methods without a proof for them."""
    if any(asked.tolerates.values()):
        raise InputError(f"{where} cannot tolerate shift or label noise; {instead}")


class Assumption(Enum):
    """An assumption of a promise: its number is stored in certificate files, `str` is the sentence."""

    sentence: str

    def __new__(cls, number: int, sentence: str) -> "Assumption":
        """Return the assumption with this number, which is all that a file stores."""
        made = object.__new__(cls)
        made._value_, made.sentence = number, sentence
        return made

    # the meaning of a number never changes, and 6 is not given again
    INDEPENDENT = (
        1,
        "calibration points and future points are independent of each other, and those of each class come"
        " from one distribution",
    )
    HELD_OUT = 2, "the detector was trained without the calibration points and stays the same"
    NO_SHIFT = 3, "the distribution of each class does not shift"
    MIXING = (
        4,
        "the points are windows of a time series and depend on each other: the promise holds only if windows"
        " this far apart are as good as independent draws (mixing)",
    )
    STATIONARY = 5, "in each class, calibration and future windows have one distribution (stationary series)"
    ONE_SOURCE = 7, "calibration points are independent, and those of each class come from one distribution"
    BOUNDED_SHIFT = (
        8,
        "future points of each class come from the distribution of its calibration points, or from a"
        " distribution within the tolerated shift",
    )
    LABELS = (
        9,
        "the label noise of the calibration points is no larger than the promise tolerates; so is that of new"
        " labels that measure the rates, though label noise changes with the prevalence",
    )
    WEIGHTS = (
        10,
        "the weights are right: up to a factor, each is how much more likely its point is in the future than"
        " at calibration; no weight exceeds the bound, in the sample or elsewhere; a class without weights"
        " does not shift",
    )
    POOLED = (
        11,
        "calibration points are independent draws, each from the distribution of its class in its group; the"
        " promise is about a mixture of these groups with the shares they have among the calibration points",
    )
    TRAFFIC = (
        12,
        "the traffic is a random sample of all points that come, independent of each other: whole days, not"
        " busy hours, and not the alarms alone",
    )
    STEADY = 13, "the distribution of traffic does not shift, nor does its share of anomalies"
    REVIEWED = (
        14,
        "points that review calls anomalies are anomalies, except as often as the promise tolerates; coins"
        " and the share of anomalies are as stated",
    )
    ANOMALIES = (
        15,
        "the labelled anomalies are independent draws from the distribution of future anomalies, whatever"
        " their scores",
    )
    APART = 16, "the labelled anomalies are a sample independent of the traffic"
    UNITS = (
        18,
        "units are independent draws, and points of one unit may depend on each other in any way; a rate is"
        " that of a random point of a random future unit with points of the class, or of a random future"
        " event or day",
    )
    UNITS_APART = (
        19,
        "units are independent draws, each with points of one class alone, and points of one unit may depend"
        " on each other in any way; a rate is that of a random point of a random future unit of the class, or"
        " of a random future event or day",
    )
    ONE_EACH = (
        20,
        "if every calibration unit had one point of a class, or one event, so has every future unit",
    )
    AUDITED = (
        17,
        "a coin of its own drew each point for audit with the stated chance, whatever its score; audits find"
        " only normal points normal",
    )

    def __str__(self) -> str:
        return self.sentence


OF_DRAWS: Final = (Assumption.INDEPENDENT, Assumption.HELD_OUT, Assumption.NO_SHIFT)
OF_POOL: Final = (Assumption.POOLED, Assumption.HELD_OUT, Assumption.NO_SHIFT)
OF_SERIES: Final = (Assumption.MIXING, Assumption.STATIONARY, Assumption.HELD_OUT)
# the assumptions about calibration points alone: if future points have another distribution, and if only the
# labels differ, which mix the distributions of both classes
_APART: Final = {Assumption.INDEPENDENT: Assumption.ONE_SOURCE}
_UNSHIFTED: Final = (Assumption.NO_SHIFT, Assumption.STATIONARY)
_MISLABELLED: Final = _APART | {Assumption.STATIONARY: Assumption.NO_SHIFT}


def of_units(both: bool, one_each: bool) -> tuple[Assumption, ...]:
    """Return the assumptions about units, some of which have points of both classes, or none.

    With one point in each unit of a class, its test is the binomial one, and future units must be like these.
    """
    units = Assumption.UNITS if both else Assumption.UNITS_APART
    return units, *[Assumption.ONE_EACH] * one_each, Assumption.HELD_OUT, Assumption.NO_SHIFT


def assumed(
    usual: tuple[Assumption, ...], *, shift: bool = False, noise: bool = False, weights: bool = False
) -> tuple[Assumption, ...]:
    """Return the assumptions of a promise that tolerates shift or label noise, or has weighted points."""
    found = usual
    if shift or weights:
        found = tuple(_APART.get(one, one) for one in usual if one not in _UNSHIFTED)
    elif noise:
        found = tuple(_MISLABELLED.get(one, one) for one in usual)
    more = ((Assumption.WEIGHTS, weights), (Assumption.BOUNDED_SHIFT, shift), (Assumption.LABELS, noise))
    return found + tuple(one for one, there in more if there)


def assumed_of_traffic(asked: Guarantee, independent: bool) -> tuple[Assumption, ...]:
    """Return the assumptions of promises about traffic, and perhaps about labelled anomalies."""
    found = [Assumption.TRAFFIC, Assumption.HELD_OUT, Assumption.STEADY]
    found += [Assumption.REVIEWED] * any(
        one.by_audits or (one.of.side == "normal" and one.error is not Error.ALARM) for one in asked.promises
    )
    if asked.fnr is not None and asked.fnr.by_audits:
        found.append(Assumption.AUDITED)
    elif asked.fnr is not None:
        found += [Assumption.ANOMALIES, *[Assumption.APART] * independent]
    return tuple(found)


def assumed_of(asked: Guarantee) -> tuple[Assumption, ...]:
    """Return the assumptions of promises about independent draws or about traffic."""
    return assumed_of_traffic(asked, False) if asked.of_traffic else assumed(OF_DRAWS, **asked.tolerates)


def are_independent(assumptions: tuple[Assumption, ...]) -> bool:
    """Return whether the classes are assumed independent: no series, and no units with points of both."""
    return not {Assumption.MIXING, Assumption.UNITS} & set(assumptions)


@dataclass(frozen=True, slots=True)
class Clause:
    """One promise about one population, with its result.

    Parameters
    ----------
    of : Population
        The points that the promise is about: a class, or one kind of its points.
    asked, certified : Promise or None
        The requested promise, None if the points were only counted; and the certified promise, with another
        ceiling if that was held, raised or read off a curve.
    n, digest : int, and str or None
        The number of calibration points, and a digest of their scores, in any order; None if the scores
        stayed in a database.
    budget : Budget or None
        The error budget, with its rate and delta; None if nothing is promised.
    threshold : float or None
        The threshold from these points alone; None if nothing is promised.
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
        """The certified ceiling; None if nothing is certified."""
        return None if self.certified is None else self.certified.ceiling

    @property
    def errors(self) -> int | None:
        """The error budget as a number; None if nothing is promised, or n is too small."""
        return None if self.budget is None else self.budget.errors

    @property
    def vacuous(self) -> bool:
        """Whether there are too few labels to certify the ceiling that was asked for."""
        return self.budget is not None and self.budget.errors is None

    @property
    def units(self) -> int | None:
        """The number of units that the points came in; None if they are independent draws."""
        return None if self.budget is None else self.budget.units

    @property
    def kept(self) -> bool:
        """Whether a ceiling is certified, with enough labels to give verdicts."""
        return self.certified is not None and not self.vacuous

    @property
    def lacking(self) -> bool:
        """Whether a ceiling was asked for and is not certified."""
        return self.asked is not None and not self.kept

    @property
    def missing(self) -> int:
        """How many more labels the ceiling needs before it can be certified."""
        return 0 if self.budget is None else self.budget.missing

    @property
    def confidence(self) -> Decimal:
        """The exact confidence that this ceiling holds, which is never less than 1 - delta."""
        if self.budget is None or self.certified is None:
            return Decimal(0)
        if self.of.label == "alarms" or self.certified.by_audits:  # n depends on scores, so no tail is exact
            return floats.confidence_left(self.certified.delta)
        return max(Decimal(repr(self.budget.confidence)), floats.confidence_left(self.certified.delta))

    @property
    def labels(self) -> str:
        """The number of labels in words, and of the units that they came in."""
        return amount(self.n, "label") + ("" if self.units is None else f" of {amount(self.units, 'unit')}")

    @property
    def needed(self) -> str:
        """The number of labels or units that the ceiling needs, in words."""
        return f"{self.n + self.missing:,}" if self.units is None else f"{self.units + self.missing:,} units"

    @property
    def words(self) -> str:
        """The number of labels and of the errors that they allow, in words."""
        text = self.labels
        if self.budget is None:
            return f"{text}, {'no ceiling requested' if self.asked is None else 'nothing certified here'}"
        if self.budget.errors is None:
            return f"{text}, too few: at least {self.needed} are needed"
        return f"{text}, {self.budget.errors:,} error{'s' * (self.budget.errors != 1)} allowed"

    def problems(self) -> Iterator[str]:
        """Yield contradictions in the clause of a kind, or of one of several classes."""
        of = "all points" if self.of.kind is None else quoted(self.of.kind)
        if self.budget is not None:
            exact = Budget.of(self.n, self.budget.rate, self.budget.delta).errors
            if exact != self.errors:
                yield f"the budget of {of} is {exact}, not {self.errors}"
        if (self.threshold is None) != (self.certified is None):
            yield f"the threshold of {of} and its ceiling must both be there, or neither"
        never = inf if self.of.side == "normal" else -inf
        if self.vacuous and self.threshold != never:
            yield f"the threshold of {of} must be {never}: it has too few labels"

    def to_form(self, delta: float) -> "Written":
        """Return the clause as stored in a file; delta is that of its class if nothing was asked."""
        asked, promised, budget = self.asked, self.certified, self.budget
        certified = None if promised == asked else Certified(None)
        if asked is not None and promised is not None and promised != asked:
            certified = Certified(promised.ceiling, None if promised.delta == asked.delta else promised.delta)
        at = None if promised is None else At(promised.at_calibration, promised.delta)
        found_at = None if budget is None else At(budget.rate, budget.delta)
        same: dict[str, Any] = {name: getattr(self, name) for name in ("n", "digest", "threshold", "beyond")}
        stated = ("ceiling", "shift", "label_noise", "reviews", "limit")
        same |= {name: getattr(asked, name, None) for name in stated}
        return Written(
            of=self.of.label,
            kind=self.of.kind,
            error=self.of.error,
            delta=delta if asked is None else asked.delta,
            certified=certified,
            units=None if budget is None else budget.units,
            budget=self.errors,
            found_at=None if found_at == at else found_at,
            **same,
        )


@dataclass(frozen=True, slots=True)
class Certified:
    """A certified promise that differs from the requested one: its ceiling, None for none, or its delta."""

    ceiling: float | None
    delta: float | None = field(default=None, metadata=_OPTIONAL)


@dataclass(frozen=True, slots=True)
class At:
    """The rate and the delta of an error budget."""

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
    """Return the clause of a promise; `points` are the number of its points and their digest."""
    promise = one.promise
    if found is None or promise is None:
        return Clause(one.of, promise, None, *points)
    kept: Promise | None = None
    if certified and found.ceiling == found.ceiling:
        same = (found.ceiling, found.level) == (promise.ceiling, promise.delta)
        kept = promise if same else replace(promise, ceiling=found.ceiling, delta=found.level)
    budget = found.budget(points[0])
    if budget is not None and one.units is not None:
        sure = floats.float_below(floats.confidence_left(budget.delta))
        budget = replace(budget, units=one.units, confidence=sure)
    threshold = None if budget is None else floats.from_order_key(found.key)
    return Clause(one.of, promise, kept, *points, budget, threshold, beyond)


@dataclass(frozen=True, slots=True)
class Written:
    """A clause as stored in a file: request, counts and result; the other fields are those of a `Clause`.

    Parameters
    ----------
    of : "normal", "anomalous", "class", "traffic" or "alarms"
        The class of the points; or all points that come, or those that raise an alarm.
    kind : str, optional
        Their kind, or the name of their class if there are more than two.
    error : "false alarm", "miss", "alarm" or "wrong alarm"
        What is counted.
    ceiling, delta : float or None
        The requested ceiling and delta; without a ceiling, the points were only counted.
    shift, label_noise : object, optional
        The shift and the label noise that the promise tolerates.
    reviews : object, optional
        How traffic was reviewed.
    limit : array, optional
        A ceiling about traffic as it was stated: points, and of how many; or the least precision.
    certified : object, optional
        The certified promise, if it differs from the requested one.
    units : int, optional
        The number of units that these points came in, if points of one unit may depend on each other.
    budget : int or None
        The error budget; None if nothing is promised, or n is too small.
    found_at : object, optional
        The rate and the delta of the budget, if they differ from the certified ones.
    """

    of: Literal["normal", "anomalous", "class", "traffic", "alarms"]
    kind: str | None = field(metadata=_OPTIONAL)
    error: Error
    ceiling: float | None
    delta: float
    shift: Shift | None = field(metadata=_OPTIONAL)
    label_noise: LabelNoise | None = field(metadata=_OPTIONAL)
    reviews: Reviews | None = field(metadata=_OPTIONAL)
    limit: tuple[float, ...] | None = field(metadata=_OPTIONAL)
    certified: Certified | None = field(metadata=_OPTIONAL)
    n: int
    digest: str | None
    units: int | None = field(metadata=_OPTIONAL)
    budget: int | None
    found_at: At | None = field(metadata=_OPTIONAL)
    threshold: float | None
    beyond: int | None

    def clause(self) -> Clause:
        """Return the clause; impossible numbers raise an error."""
        if not 0 <= self.n <= MOST_SCORES:
            raise InputError(
                f"there cannot be {self.n:,} {self.of} scores; a class has at most {MOST_SCORES:,}"
            )
        of = Population(self.of, self.kind, self.error)
        if (of.label, of.error) not in KNOWN:
            raise InputError(f"the error of {of} cannot be a {self.error.value}")
        asked = certified = None
        if self.ceiling is not None:
            ceiling, delta = self._checked(self.ceiling, self.delta)
            more = self.shift, self.label_noise, self.reviews, self.limit
            asked = certified = Promise(of, self.error, ceiling, delta, *more)
        if self.certified is not None:
            certified = None
            if self.certified.ceiling is not None and asked is not None:
                level = asked.delta if self.certified.delta is None else self.certified.delta
                ceiling, delta = self._checked(self.certified.ceiling, level)
                certified = replace(asked, ceiling=ceiling, delta=delta)
        at = self.found_at
        if at is None and certified is not None:
            at = At(certified.at_calibration, certified.delta)
        errors, budget = self.budget, None
        if errors is not None and (at is None or not 0 <= errors < self.n):
            raise InputError(f"the budget of {self.n:,} {of} cannot be {errors}")
        if at is not None:
            check_rate("delta", at.delta)
            if self.units is None:
                sure = exact_confidence(self.n, at.rate, errors)
            elif not 0 <= self.units <= self.n:
                raise InputError(f"{self.n:,} {of} cannot come in {self.units:,} units")
            else:
                sure = floats.float_below(floats.confidence_left(at.delta))
            budget = Budget(self.n, at.rate, at.delta, errors, sure, self.units)
        return Clause(of, asked, certified, self.n, self.digest, budget, self.threshold, self.beyond)

    def _checked(self, ceiling: float, delta: float) -> tuple[float, float]:
        of = Population(self.of, self.kind, self.error)
        rate = "fpr" if of.side == "normal" else "fnr"
        return check_rate(of.option, ceiling), check_rate(f"delta_{rate}", delta)


def asked_by(clauses: Sequence[Clause], deltas: tuple[float, float]) -> Guarantee:
    """Return the promises that all clauses ask for as one guarantee, given the delta of each class."""
    sides: dict[str, Any] = {}
    tolerated: list[tuple[Any, Any]] = []
    for one in clauses:
        if one.asked is not None and one.of.option not in ("max_fpr", "max_fnr") and one.of.kind is None:
            stated = one.asked.limit or (one.asked.ceiling,)
            sides[one.of.option] = stated if len(stated) == 2 else stated[0]
        if one.asked is not None and one.asked.reviews is not None:
            sides["reviews"] = one.asked.reviews  # that of max_fpr or max_fnr, which come last, says most
    for label, name in zip(LABELS, ("max_fpr", "max_fnr"), strict=True):
        own = [one for one in clauses if one.of.label == label]
        ceilings = {one.of.kind: None if one.asked is None else one.asked.ceiling for one in own}
        sides[name] = ceilings if any(kind is not None for kind in ceilings) else ceilings.get(None)
        asked = next((one.asked for one in own if one.asked is not None), None)
        tolerated.append((None, None) if asked is None else (asked.shift, asked.label_noise))
    shift, noise = zip(*tolerated, strict=True)
    return Guarantee(**sides, delta_fpr=deltas[0], delta_fnr=deltas[1], shift=shift, label_noise=noise)


def binding(clauses: Sequence[Clause], *, counted: bool) -> Clause:
    """Return the clause of a class that sets the rule: the clause whose threshold decides the fewest points.

    Of two infinite thresholds, the one due to missing labels goes first. Ceilings that were counted at the
    threshold of the other class do not move it; the largest of them binds.
    """
    if len(clauses) == 1:
        return clauses[0]
    promised = [one for one in clauses if one.asked is not None]
    if not promised:  # nothing is promised, and all points are counted
        return Clause(Population(clauses[0].of.label), None, None, points_of(clauses), None)
    if counted:
        return max(promised, key=lambda one: inf if one.ceiling is None else one.ceiling)
    sign = 1 if promised[0].of.side == "normal" else -1
    never = inf * sign

    def place(one: Clause) -> tuple[int, bool]:
        return sign * int(floats.order_key(never if one.threshold is None else one.threshold)), one.vacuous

    return max(promised, key=place)


def points_of(clauses: Sequence[Clause]) -> int:
    """Return how many points a class has; the clause of all kinds together adds none."""
    if clauses[0].of.label in ("traffic", "alarms"):  # all of them are about the same points
        return clauses[0].n
    return sum(one.n for one in clauses if one.of.kind is not None or len(clauses) == 1)


def warn_of_lacking(clauses: Iterable[Clause]) -> None:
    """Warn the caller outside this package of requested ceilings that are not certified."""
    texts = [
        f"{'all points' if one.of.kind is None else quoted(one.of.kind)}: {one.words}"
        for one in clauses
        if one.lacking
    ]
    if texts:
        arguments.warn("; ".join(texts), VacuousWarning)
