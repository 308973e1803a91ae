"""What is asked for or certified: promises about error rates, and the error budgets that keep them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.foreign import LONGEST, is_unicode, quoted
from pac_wrap.base.rounding import confidence_left, equal_share, rounded_down, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.budget import LEAST_CEILING
from pac_wrap.method.budget import Budget as Budget

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
        name = f"max_{rate}" if self.of.kind is None else f"max_{rate} of {quoted(self.of.kind)}"
        object.__setattr__(self, "ceiling", check_rate(name, self.ceiling))
        object.__setattr__(self, "delta", check_rate(f"delta_{rate}", self.delta))
        if self.ceiling < LEAST_CEILING:
            raise InputError(
                f"{name} must be at least {LEAST_CEILING}, got {self.ceiling!r};"
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
        of = "" if self.of.kind is None else f" of {quoted(self.of.kind)}"
        return f"{self.name}{of} <= {rounded_up(self.ceiling)} (confidence {confidence})"


# a ceiling for each kind; None is all kinds as they come
Ceilings = Mapping[str, float | None] | Mapping[str | None, float | None]


class KindCeiling(NamedTuple):
    """A kind of points of a class, and its ceiling; None: nothing is promised of that kind by itself."""

    label: Literal["normal", "anomalous"]
    kind: str
    ceiling: float | None


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
        How surely all ceilings hold together. What is left to 1 is shared equally between the deltas of all
        promises; a single ceiling gets all of it. Give either this or deltas.

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
    >>> print(Guarantee(max_fpr=None, max_fnr={"card stolen": 0.02, "account takeover": 0.1}))
    FNR of 'card stolen' <= 0.02 (confidence 0.95), FNR of 'account takeover' <= 0.1 (confidence 0.95)
    """

    max_fpr: float | None
    max_fnr: float | None
    delta_fpr: float
    delta_fnr: float
    # ceilings of kinds; where there are some, max_fpr or max_fnr is that of all kinds as they come, or None
    kinds: tuple[KindCeiling, ...] = field(default=(), init=False, repr=False)
    # the confidence that was asked for, since a class may turn out to have kinds
    together: float | None = field(default=None, init=False, repr=False, compare=False)

    def __init__(
        self,
        max_fpr: float | Ceilings | None = 0.05,
        max_fnr: float | Ceilings | None = 0.05,
        delta_fpr: float | None = None,
        delta_fnr: float | None = None,
        *,
        confidence: float | None = None,
    ) -> None:
        kinds = (*_kinds("normal", max_fpr), *_kinds("anomalous", max_fnr))
        sides = [_whole(max_fpr), _whole(max_fnr)]
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
        return Promise(Population(label, kind), error, ceiling, delta)

    @property
    def joint_delta(self) -> float:
        """Chance that some promised ceiling does not hold, at most: eq. (12), and eq. (62) with kinds."""
        return sum(promise.delta for promise in self.promises)

    @property
    def confidence(self) -> float:
        """How surely all promised ceilings hold together: 1 minus the deltas, and never less than 0."""
        return float(confidence_left(*(promise.delta for promise in self.promises)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.promises))


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


def _whole(ceilings: float | Ceilings | None) -> float | None:
    """Return the ceiling of all points of a class."""
    if not isinstance(ceilings, Mapping):
        return ceilings
    return next((ceiling for kind, ceiling in ceilings.items() if kind is None), None)


def _kinds(label: Literal["normal", "anomalous"], ceilings: float | Ceilings | None) -> Iterator[KindCeiling]:
    """Yield the kinds that a mapping names."""
    if not isinstance(ceilings, Mapping):
        return
    name = "max_fpr" if label == "normal" else "max_fnr"
    if not any(kind is not None for kind in ceilings):
        raise InputError(f"{name} names no kind; write {{'a kind': 0.05}}, or a number for all points")
    for kind, ceiling in ceilings.items():
        if kind is not None:
            of = f"{name} of {quoted(check_kind(kind))}"
            yield KindCeiling(label, kind, None if ceiling is None else check_rate(of, ceiling))


def check_kind(kind: object) -> str:
    """Return the name of a kind: a text that is not empty, and not longer than a certificate's texts are."""
    if not isinstance(kind, str) or not kind or len(kind) > LONGEST or not is_unicode(kind):
        raise InputError(
            f"a kind must be named by a text of 1 to {LONGEST} characters, got {quoted(kind)}; convert it"
        )
    return str(kind)
