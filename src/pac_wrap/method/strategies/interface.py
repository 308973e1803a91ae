"""Strategies for overlapping classes: their interface, and the strategies that keep ceilings.

A strategy sees only ranks, as order keys: whole numbers that compare as scores do. The same code serves one
group, with Python's integers, and many groups, with arrays that have an entry for each.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from math import inf, nan
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol

import numpy as np

from pac_wrap.base import floats
from pac_wrap.base.arguments import as_float, check_choice
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee, Population, Promise, with_deltas
from pac_wrap.method.rule import LARGEST, Rule
from pac_wrap.ranks.memory import Rank, Ranked, count_below, kth_between, kth_smallest
from pac_wrap.tails import bounds

# a number for one group, or an array with an entry for each of many groups
Count = Any
Key = Any
Number = Any
# confidences and bounds come from SciPy, whose versions may differ in the last digits
DIGITS: Final = 1e-9
# stands for None among counts; among numbers NaN does
NO_COUNT: Final = -1
# keys: never normal, never an anomaly, and the greatest threshold that a score of inf reaches
MINUS, PLUS, REACHED = map(floats.order_key, (-inf, inf, LARGEST))


class Ranks(Protocol):
    """The scores of several populations, in one group or in many, as a strategy sees them."""

    # how many scores each population has
    n: Any

    def at(self, p: int, k: Count) -> Key:
        """Return the key of the k-th smallest score, counting from 1; any key for a k out of range."""

    def below(self, p: int, key: Key) -> Count:
        """Return how many scores have a lesser key."""

    def between(self, p: int, q: int, low: Key, high: Key, share: float) -> Key:
        """Return the ceil(share m)-th smallest, or the first, of both populations' m keys in a range."""

    def prefetch(self, ranks: Iterable[Rank]) -> None:
        """Find the ranks that will be needed all at once, if that is cheaper."""
        return


class OneGroup(Ranks):
    """The ranks of populations in one group, found one by one, wherever the scores are stored."""

    def __init__(self, ranked: Sequence[floats.Floats | Ranked]) -> None:
        self._ranked = ranked
        self.n: list[int] = [one.size for one in ranked]

    def at(self, p: int, k: int) -> int:
        return floats.order_key(kth_smallest(self._ranked[p], k)) if 0 < k <= self.n[p] else MINUS

    def below(self, p: int, key: int) -> int:
        return count_below(self._ranked[p], floats.from_order_key(key))

    def between(self, p: int, q: int, low: int, high: int, share: float) -> int:
        ends = floats.from_order_key(low), floats.from_order_key(high)
        return floats.order_key(kth_between(self._ranked[p], self._ranked[q], *ends, share))

    def prefetch(self, ranks: Iterable[Rank]) -> None:
        if isinstance(self._ranked[0], Ranked):
            self._ranked[0].prefetch(ranks)


class Asked(NamedTuple):
    """The promise asked for of a population, None if its points are only counted, and its class's delta.

    If its points come in units, `test` returns the budget of a promise: as it was asked for, or of the errors
    at a threshold that another class set, None if no ceiling below 1 follows from them.
    """

    of: Population
    promise: Promise | None
    delta: float
    test: Callable[[Promise, Key | None], bounds.Budget | None] | None = None
    units: int | None = None

    @property
    def normal(self) -> bool:
        """Whether its threshold decides where alarms begin."""
        return self.of.side == "normal"


@lru_cache(maxsize=256)
def asked_of(guarantee: Guarantee) -> tuple[Asked, Asked]:
    """Return the promises that a guarantee asks of two classes without kinds, or one of traffic."""
    alarms = next((one for one in guarantee.promises if one.of.label == "traffic"), guarantee.fpr)
    return (
        Asked(Population("normal") if alarms is None else alarms.of, alarms, guarantee.delta_fpr),
        Asked(Population("anomalous"), guarantee.fnr, guarantee.delta_fnr),
    )


class Found(NamedTuple):
    """The result of a promise: its rate, delta, errors and threshold's key, and what is certified, if any."""

    rate: Number
    delta: Number
    errors: Count
    key: Key
    ceiling: Number
    level: Number

    def budget(self, n: int) -> bounds.Budget | None:
        if self.rate != self.rate:
            return None
        errors, usual = none_of(self.errors), bounds.find_budget(n, self.rate, self.delta)
        if usual.errors == errors:
            return usual
        return bounds.Budget(n, self.rate, self.delta, errors, bounds.exact_confidence(n, self.rate, errors))


class Decision(NamedTuple):
    """The decision of a strategy: the result of each promise, and the two keys of the rule.

    `alarm` and `clear` are the keys of the binding thresholds, None for a class without one. `certified` is
    false if no single threshold could be certified; the rule then abstains on everything. `separable` is only
    set by strategies that raise ceilings: whether one threshold would keep the requested ceilings.
    """

    found: tuple[Found | None, ...]
    low: Key
    high: Key
    alarm: Key | None
    clear: Key | None
    certified: Any = True
    separable: Any = None

    def beyond(self, asked: Sequence[Asked], ranks: Ranks) -> tuple[Any, ...]:
        """Return how many points of each population lie beyond the other class's threshold: eq. (13)."""
        alarm, clear = self.alarm, self.clear

        def of(p: int, one: Asked) -> Count | None:
            if alarm is None or clear is None or one.promise is None:
                return None
            return ranks.n[p] - ranks.below(p, clear) if one.normal else misses(ranks, p, alarm)

        return tuple(of(p, one) for p, one in enumerate(asked))

    @property
    def separated(self) -> bool:
        """Whether the labels of a single group suffice, and one threshold can serve both classes."""
        if any(own is not None and own.rate == own.rate and own.errors < 0 for own in self.found):
            return False
        return self.alarm is None or self.clear is None or bool(are_separated(self.alarm, self.clear))


def choose(condition: Any, one: Any, other: Any) -> Any:
    """Return one value or the other, group by group."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, one, other)
    return one if condition else other


def least(one: Any, other: Any) -> Any:
    """Return the lesser of two, group by group."""
    return np.minimum(one, other) if isinstance(one, np.ndarray) else min(one, other)


def anywhere(condition: Any) -> bool:
    """Return whether something is true in some group."""
    return bool(condition.any()) if isinstance(condition, np.ndarray) else bool(condition)


def each(function: Callable[..., tuple[Any, ...]], *counts: Count) -> tuple[Any, ...]:
    """Return a function's numbers for the counts of each group, computing each distinct case once."""
    if not isinstance(counts[0], np.ndarray):
        return function(*counts)
    codes = counts[0] if len(counts) == 1 else counts[0] * (counts[1].max() + 1) + counts[1]
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    rows = [function(*row) for row in zip(*(one[first].tolist() for one in counts), strict=True)]
    return tuple(np.array(column)[places] for column in zip(*rows, strict=True))


def stacked(decisions: Sequence[Decision]) -> Decision:
    """Return the decisions on single groups as one decision on all of them."""
    kinds = (np.float64, np.float64, np.int64, np.uint64, np.float64, np.float64)

    def column(numbers: Iterable[Any], kind: Any = None) -> Any:
        return np.array([*numbers], dtype=kind)

    found = tuple(
        Found(*(column(numbers, kind) for numbers, kind in zip(zip(*own, strict=True), kinds, strict=True)))
        for own in zip(*(one.found for one in decisions), strict=True)
    )
    low, high, alarm, clear = (column((one[end] for one in decisions), np.uint64) for end in (1, 2, 3, 4))
    separable = column(one.separable for one in decisions) if decisions[0].separable is not None else None
    return Decision(found, low, high, alarm, clear, column(one.certified for one in decisions), separable)


def count_of(errors: int | None) -> int:
    """Return an error budget as a number."""
    return NO_COUNT if errors is None else errors


def numbers_of(budget: bounds.Budget | None) -> tuple[float, float, int]:
    """Return the rate, the delta and the errors of a budget, as NaN and -1 if there is none."""
    return (nan, nan, NO_COUNT) if budget is None else (budget.rate, budget.delta, count_of(budget.errors))


def none_of(errors: int) -> int | None:
    """Return an error budget that may be missing."""
    return None if errors == NO_COUNT else errors


def key_of(one: Asked, ranks: Ranks, p: int, errors: Count) -> Key:
    """Return the key of the threshold that a budget leads to: eqs. (7) and (9)."""
    few = errors < 0
    if one.normal:
        return choose(few, PLUS, least(ranks.at(p, ranks.n[p] - errors) + 1, PLUS))
    return choose(few, MINUS, ranks.at(p, errors + 1))


def misses(ranks: Ranks, p: int, tau: Key) -> Count:
    """Return how many scores do not reach a threshold; no score reaches inf."""
    if isinstance(tau, int):
        return ranks.n[p] if tau == PLUS else ranks.below(p, tau)
    return np.where(tau == PLUS, ranks.n[p], ranks.below(p, tau))


def kept(
    asked: Sequence[Asked], ranks: Ranks, budget: Callable[[Promise, int], bounds.Budget] = Promise.budget
) -> tuple[Found | None, ...]:
    """Return the result of each promise, with the ceilings kept as they were asked for."""

    def of(p: int, one: Asked) -> Found | None:
        promise = one.promise
        if promise is None:
            return None
        if one.test is not None:
            rate, delta, errors = numbers_of(one.test(promise, None))
        else:
            rate, delta, errors = each(lambda n: numbers_of(budget(promise, n)), ranks.n[p])
        return Found(rate, delta, errors, key_of(one, ranks, p, errors), promise.ceiling, promise.delta)

    return tuple(of(p, one) for p, one in enumerate(asked))


def at_budgets(asked: Sequence[Asked], ranks: Ranks, budgets: Sequence[bounds.Budget]) -> tuple[Found, ...]:
    """Return the results for two given budgets in one group; the ceilings follow from their rates."""
    found = []
    for p, (one, budget) in enumerate(zip(asked, budgets, strict=True)):
        assert one.promise is not None  # with a single ceiling nothing is raised
        rate, delta, errors = numbers_of(budget)
        key, ceiling = key_of(one, ranks, p, errors), one.promise.afterwards(rate)
        found.append(Found(rate, delta, errors, key, ceiling, one.promise.delta))
    return tuple(found)


def binding(
    asked: Sequence[Asked], found: Sequence[Found | None], label: Literal["normal", "anomalous"]
) -> tuple[Any, Key] | None:
    """Return the binding population of a class and its key: the farthest key; of ties, one lacking labels."""
    bound: tuple[Any, Key, Any] | None = None
    for p, (one, own) in enumerate(zip(asked, found, strict=True)):
        if own is None or one.of.side != label:
            continue
        few = own.errors < 0
        if bound is None:
            bound = p, own.key, few
            continue
        which, key, lacking = bound
        beyond = own.key > key if one.normal else own.key < key
        other = beyond | ((own.key == key) & few & (lacking ^ True))
        bound = choose(other, p, which), choose(other, own.key, key), choose(other, few, lacking)
    return None if bound is None else bound[:2]


def are_separated(alarm: Key, clear: Key) -> Any:
    """Return whether one threshold can serve both classes: eq. (13)."""
    return (alarm < PLUS) & (clear >= alarm)


def between(
    asked: Sequence[Asked], found: tuple[Found | None, ...], ranks: Ranks, position: float | None = 0.5
) -> Decision:
    """Return the rule with one threshold between alarm_from and clear_below, or with both if none fits."""
    normal, anomalous = binding(asked, found, "normal"), binding(asked, found, "anomalous")
    if normal is None or anomalous is None:
        only = normal[1] if normal else least(anomalous[1], REACHED) if anomalous else PLUS
        return Decision(found, only, only, normal and normal[1], anomalous and anomalous[1])
    (p, alarm), (q, clear) = normal, anomalous
    separated = are_separated(alarm, clear)
    # a threshold at inf that a score of inf is to reach is put on the largest double
    low, high = least(clear, REACHED), alarm
    if anywhere(separated):
        one = None if position is None else least(ranks.between(p, q, alarm, clear, position), REACHED)
        ends = (alarm, low) if one is None else (one, one)
        low, high = choose(separated, ends[0], low), choose(separated, ends[1], high)
    return Decision(found, low, high, alarm, clear)


def one_threshold(tau: int, within: Any) -> tuple[Key, Key]:
    """Return the keys of a single-threshold rule for groups where it is allowed; others abstain on all."""
    low, high = (choose(within, np.uint64(tau), np.uint64(never)) for never in (MINUS, PLUS))
    return (low, high) if isinstance(within, np.ndarray) else (int(low), int(high))


def ends_of(low: Key, high: Key, kind: floats.ScoreType) -> tuple[Number, Number]:
    """Return the two numbers of a rule, for scores that have not been rounded to a type yet: eq. (26)."""
    if kind == "float64" and isinstance(low, np.ndarray):
        return floats.from_order_keys(low), floats.from_order_keys(high)

    def number(key: int) -> tuple[float]:
        value = floats.from_order_key(key)
        # inf stays: it means never, also for what rounds to inf
        return (value if kind == "float64" or value == inf else floats.rounding_edge(value, kind),)

    return each(number, low)[0], each(number, high)[0]


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a certificate: the requested and the certified promises; in pairs, the normal class first.

    `sizes` counts the calibration points of each class, `crossing` those beyond the other class's threshold.
    """

    asked: tuple[Promise, ...]
    certified: tuple[Promise, ...]
    fpr: bounds.Budget | None
    fnr: bounds.Budget | None
    rule: Rule
    sizes: tuple[int, int]
    crossing: tuple[int | None, int | None]
    separable: bool | None


class Strategy(ABC):
    """How points are decided if the classes overlap; pass a strategy as `overlap`."""

    tag: ClassVar[str]
    # whether every point is decided by one threshold, which needs both ceilings
    single: ClassVar[bool] = True
    # whether the threshold was given and not found, so that no points cross
    given: ClassVar[bool] = False
    # relative tolerance between the rates in a file and those computed here
    digits: ClassVar[float] = DIGITS
    # whether it also applies to a single ceiling, for which all other strategies are the same
    one_sided: ClassVar[bool] = False
    # whether the numbers of labels were fixed before any score was seen
    fixed_sizes: ClassVar[bool] = True
    # whether it decides on many groups at once, or on one after the other
    on_arrays: ClassVar[bool] = True
    # whether one class's ceiling fails by its own points alone, and the other's given those: eq. (97)
    multiplies: ClassVar[bool] = False
    # the name of what `tried` counts, and why nothing is certified if none succeeds
    choices: ClassVar[str] = "level"
    unreached: ClassVar[str] = "no single threshold can be certified at any level tried"
    # why more labels are needed than for a promise fixed beforehand, in a sentence
    needs_more_labels: ClassVar[str | None] = None

    @property
    def word(self) -> str:
        """The word that stands for the strategy with its usual options."""
        return self.tag

    def at_score(self, claim: Claim) -> bool:
        """Return whether a single threshold is itself a calibration score."""
        return False

    @property
    def proved(self) -> bool:
        """Whether the certified confidence is proved."""
        return True

    @property
    def keeps_delta(self) -> bool:
        """Whether a certificate never fails with more than the requested delta."""
        return self.proved

    @property
    def keeps(self) -> tuple[str, ...]:
        """The rates, FPR or FNR, whose ceilings are certified as requested."""
        return ()

    def budget(self, promise: Promise, n: int) -> bounds.Budget:
        """Return the error budget of n points for a promise that is kept as requested."""
        return promise.budget(n)

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        """Yield every rank that may be needed in a group, as far as the numbers of labels tell."""
        for p, one in enumerate(asked):  # of the thresholds that budgets lead to: eqs. (7) and (9)
            errors = None if one.promise is None else self.budget(one.promise, n[p]).errors
            if errors is not None:
                yield Rank(p, n[p] - errors if one.normal else errors + 1)

    @abstractmethod
    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return the decision on the calibration points of all populations."""

    def decide_all(self, asked: Sequence[Asked], ranks: Any) -> Decision:
        """Return the decision for many groups, or for one; `ranks.group` gives each group."""
        if self.on_arrays or not isinstance(ranks.n[0], np.ndarray):
            return self.decide(asked, ranks)
        return stacked([self.decide(asked, ranks.group(place)) for place in range(ranks.n[0].size)])

    def counts(self, normal: bool) -> bool:
        """Return whether a class's ceilings are bounds of errors counted where the other class is held."""
        return False

    @abstractmethod
    def summary(self, claim: Claim) -> str:
        """Return one line that names the strategy's decision."""

    @abstractmethod
    def explanation(self, claim: Claim) -> Iterator[str]:
        """Yield sentences that explain the decision."""

    def settled(self, asked: Guarantee, sizes: tuple[int, int]) -> Guarantee:
        """Return the guarantee with its deltas settled from its confidence and the sizes: eq. (102)."""
        if asked.together is None:
            return asked
        if asked.max_fpr is None or asked.max_fnr is None or not self.multiplies:
            return asked.fixed
        if self.given or not self.fixed_sizes:
            return with_deltas(asked, *(bounds.equal_deltas(asked.together),) * 2)
        return _shared(asked, sizes, ("FPR" not in self.keeps, "FNR" not in self.keeps))

    def confidences(self, claim: Claim, *, exact: bool = True) -> dict[str, Decimal]:
        """Return the confidence of each certified ceiling, by its exact tail if it is kept as requested."""
        sure: dict[str, Decimal] = {}
        for promise in claim.certified:
            budget = claim.fpr if promise.rate == "FPR" else claim.fnr
            if budget is not None and budget.errors is not None:
                own = Decimal(repr(budget.confidence)) if exact and promise.rate in self.keeps else Decimal(0)
                sure[promise.name] = max(own, floats.confidence_left(promise.delta))
        return sure

    def joint(self, claim: Claim, *, independent: bool = True, exact: bool = True) -> Decimal:
        """Return the confidence that all certified ceilings hold together: eq. (97), or eq. (12)."""
        sure = self.confidences(claim, exact=exact)
        if independent and self.multiplies:
            return floats.kept_together(*sure.values())
        return floats.confidence_left(*(one.delta for one in claim.certified if one.name in sure))

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        """Return how many candidates may be tried, of which one is then certified."""
        return 1


@lru_cache(maxsize=256)
def _shared(asked: Guarantee, sizes: tuple[int, int], counted: tuple[bool, bool]) -> Guarantee:
    """Return a guarantee of two ceilings with deltas shared from its confidence by the sizes."""
    sides = zip(sizes, asked.promises, counted, strict=True)
    low, high = (bounds.Sharing((n,), (promise.at_calibration,), own) for n, promise, own in sides)
    return with_deltas(asked, *bounds.split_confidence(asked.together or 0.0, low, high))


def check_position(position: float) -> float:
    """Return the position of a threshold between those of the classes, after checking it."""
    found = as_float(position)
    if not 0.0 <= found <= 1.0:
        raise InputError(
            f"position must lie between 0 (alarm_from) and 1 (clear_below), got {quoted(position)}"
        )
    return found


@dataclass(frozen=True, slots=True)
class Abstain(Strategy):
    """Keep both ceilings as requested, and abstain only if necessary.

    If one threshold can keep both ceilings, a single one decides: any between the two of eq. (13) keeps them,
    with the whole deltas. If the classes overlap, points between the two thresholds are left undecided.

    Parameters
    ----------
    always : bool
        Whether to use two thresholds even if one would be enough, as in the paper.
    position : float
        Which of the m calibration scores from alarm_from to clear_below becomes the single threshold: the
        ceil(position m)-th smallest. So 1 is clear_below, and 0.5 a middle score.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> calibrate(range(100), range(200, 300), overlap=Abstain(always=True)).rule
    Rule(normal_below=98.00000000000001, anomaly_from=201.0)
    """

    tag: ClassVar[str] = "abstain"
    single: ClassVar[bool] = False
    multiplies: ClassVar[bool] = True
    always: bool = False
    position: float = 0.5

    def __post_init__(self) -> None:
        check_choice("always", self.always, (True, False))
        object.__setattr__(self, "position", check_position(self.position))

    @property
    def word(self) -> str:
        return "abstain_always" if self.always else "abstain"

    def at_score(self, claim: Claim) -> bool:
        return True

    @property
    def keeps(self) -> tuple[str, ...]:
        return ("FPR", "FNR")

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        return between(asked, kept(asked, ranks), ranks, None if self.always else self.position)

    def summary(self, claim: Claim) -> str:
        if len(claim.asked) == 1:
            return "only one rate has a ceiling, so its threshold decides alone"
        if claim.rule.single:
            return "one threshold keeps both ceilings, so every point is decided"
        return "two thresholds, and abstention between them"

    def explanation(self, claim: Claim) -> Iterator[str]:
        if len(claim.asked) == 1:
            yield "Only one rate has a ceiling, so its threshold decides alone, and every point is decided."
        elif claim.rule.single:
            yield "One threshold keeps both ceilings with their whole deltas, so every point is decided."
        else:
            yield "There are two thresholds, and points between them are left undecided."


@dataclass(frozen=True, slots=True)
class Hold(Strategy):
    """Use one threshold that keeps one ceiling, and certify the other rate from the errors counted there.

    The held class alone sets the threshold. Nothing is chosen on the other class, so its bound holds with the
    whole delta: eq. (16). With `always=False`, a ceiling is given up only if necessary: if the classes
    separate, one threshold keeps both. That choice costs nothing either: eq. (107). In both cases the two
    ceilings hold together with the product of their confidences: eq. (98).

    Parameters
    ----------
    rate : "fnr" or "fpr"
        The error rate whose ceiling is held.
    always : bool
        Whether to hold one ceiling even if one threshold keeps both.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> certificate = calibrate(range(1000), range(900, 1900), overlap=Hold("fnr"))
    >>> certificate.fnr.ceiling, round(certificate.fpr.ceiling, 3)
    (0.05, 0.076)
    """

    tag: ClassVar[str] = "hold"
    multiplies: ClassVar[bool] = True
    rate: Literal["fnr", "fpr"]
    always: bool = True

    def __post_init__(self) -> None:
        check_choice("rate", self.rate, ("fnr", "fpr"))
        check_choice("always", self.always, (True, False))

    @property
    def word(self) -> str:
        return f"hold_{self.rate}{'' if self.always else '_if_needed'}"

    def at_score(self, claim: Claim) -> bool:
        """Return whether both ceilings are kept, so that the threshold is a score between the two classes."""
        return not self.always and claim.certified == claim.asked

    @property
    def keeps(self) -> tuple[str, ...]:
        return (self.rate.upper(),)

    def ranks(self, asked: Sequence[Asked], n: Sequence[int]) -> Iterator[Rank]:
        """Yield the ranks of the held class; those of the other may depend on a count."""
        yield from Strategy.ranks(self, [self._alone(one) for one in asked] if self.always else asked, n)

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        """Return the decision: the threshold of the held class, and the bound of the errors of the other."""
        if self.always:
            return self._held(asked, ranks)
        one = between(asked, kept(asked, ranks), ranks)
        separated = are_separated(one.alarm, one.clear)
        if not anywhere(separated):
            return self._held(asked, ranks)
        return _either(separated, one, self._held(asked, ranks)) if anywhere(separated ^ True) else one

    def counts(self, normal: bool) -> bool:
        return normal == (self.rate == "fnr")

    def _alone(self, one: Asked) -> Asked:
        return one._replace(promise=None) if self.counts(one.normal) else one

    def _held(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        alone, holds_fnr = [self._alone(one) for one in asked], self.rate == "fnr"
        found = list(kept(alone, ranks))
        if holds_fnr:  # a threshold at inf must be reached
            found = [None if own is None else own._replace(key=least(own.key, REACHED)) for own in found]
        held = binding(alone, found, "anomalous" if holds_fnr else "normal")
        assert held is not None  # with a single ceiling nothing is held
        tau = held[1]
        for p, one in enumerate(asked):
            if one.promise is None or found[p] is not None:
                continue
            n = ranks.n[p]
            errors = n - ranks.below(p, tau) if holds_fnr else misses(ranks, p, tau)
            if one.test is not None:
                own = one.test(one.promise, tau)
                rate, delta, budget = numbers_of(own)
                ceiling = nan if own is None else own.rate
            else:
                rate, delta, budget, ceiling = each(partial(_spent, one.promise), errors, n)
            # without a certified ceiling there is no threshold
            key = key_of(one, ranks, p, choose(rate == rate, errors, NO_COUNT))
            found[p] = Found(rate, delta, budget, key, ceiling, one.promise.delta)
        counted = [own for own, one in zip(found, alone, strict=True) if own and one.promise is None]
        # the largest ceiling binds, and a missing ceiling leaves the class without a threshold
        bound = max(counted, key=lambda own: own.ceiling) if len(counted) > 1 else counted[0]
        lost = any(isinstance(own.rate, float) and own.rate != own.rate for own in counted)
        other = None if lost else bound.key
        edges = (other, tau) if holds_fnr else (tau, other)
        return Decision(tuple(found), tau, tau, *edges)

    def summary(self, claim: Claim) -> str:
        if self.at_score(claim):
            return f"{self.word}: one threshold keeps both ceilings, so neither is given up"
        return f"{self.word}: the {self.keeps[0]} ceiling is kept; the other is certified from counted errors"

    def explanation(self, claim: Claim) -> Iterator[str]:
        if self.at_score(claim):
            yield f"Strategy {self.word}: one threshold keeps both ceilings with their whole deltas."
            return
        other, side, budget = ("FPR", 0, claim.fpr) if self.rate == "fnr" else ("FNR", 1, claim.fnr)
        n = claim.sizes[side]
        errors = n if budget is None else claim.crossing[side]
        yield (
            f"Strategy {self.word}: one threshold, set by the {self.keeps[0]} ceiling alone. It misjudges"
            f" {errors:,} of the {n:,} points of the other class; the ceiling of the {other} is the exact"
            " upper bound of that count."
        )


def _spent(promise: Promise, errors: int, n: int) -> tuple[float, float, int, float]:
    """Return the budget of counted errors, in numbers, and the ceiling that follows from it."""
    found = promise.spent(errors, n)
    return *numbers_of(found), nan if found is None else promise.afterwards(found.rate)


def _either(condition: Any, one: Decision, other: Decision) -> Decision:
    found = tuple(
        None
        if own is None or its is None
        else Found(*(choose(condition, *pair) for pair in zip(own, its, strict=True)))
        for own, its in zip(one.found, other.found, strict=True)
    )
    low, high, alarm, clear = (choose(condition, *pair) for pair in zip(one[1:5], other[1:5], strict=True))
    return Decision(found, low, high, alarm, clear)
