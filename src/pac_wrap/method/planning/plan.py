"""Labels, traffic and reviews needed for a promise: the chance that errors stay within budget."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaln, gammaln

from pac_wrap.base.arguments import MOST_SCORES, as_scores, check_positive, check_rate
from pac_wrap.base.floats import rounded_down, rounded_up
from pac_wrap.base.text import amount
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Error, Guarantee, Promise, refuse_tolerance
from pac_wrap.method.rule import LARGEST
from pac_wrap.method.strategies.interface import Abstain
from pac_wrap.tails.bounds import Budget, Sharing, cdf, equal_deltas, min_samples, ranks_tested, upper_bound
from pac_wrap.tails.units import likely_units

# budgets are tried up to this many errors; a larger need is reported as unknown
MOST_ERRORS: Final = 500
# numbers of errors among the labels that a plan allows for
TOLERATED: Final = (0, 1, 2, 5, 10)
_CHANCE: Final = 0.9
# numbers that follow from a guess
SPENT: Final = {"reviews": "reviews", "traffic": "points of traffic", "audits": "audits"}


@dataclass(frozen=True, slots=True)
class Need:
    """The number of labels needed for a chance of success, and the number of errors allowed among them."""

    labels: int
    errors: int


def needed(
    promise: Promise, chances: Sequence[float], within: Callable[[int, int], float]
) -> list[Need | None]:
    """Return the fewest labels whose errors stay within budget with each chance, None if too many: eq. (44).

    `within(k, n)` is the chance of at most k errors among n.
    """
    found: list[Need | None] = [None] * len(chances)
    # between two budgets more labels only lower the chance, so only numbers where a budget rises are tried
    for errors in range(MOST_ERRORS + 1):
        labels = min_samples(promise.at_calibration, promise.delta, errors)
        chance, pairs = within(errors, labels), zip(found, chances, strict=True)
        found = [Need(labels, errors) if one is None and chance >= wanted else one for one, wanted in pairs]
        if None not in found:
            break
    return found


@dataclass(frozen=True, slots=True)
class Posterior:
    """Jeffreys' posterior of an error rate, given the errors among n points of a pilot sample."""

    errors: int
    n: int

    def below(self, ceiling: float) -> float:
        """Return the chance that the rate is below a ceiling."""
        return float(betainc(self.errors + 0.5, self.n - self.errors + 0.5, ceiling))

    def within(self, errors: int, n: int) -> float:
        """Return the chance of at most `errors` errors among n fresh points: eq. (45)."""
        a, b = self.errors + 0.5, self.n - self.errors + 0.5
        i = np.arange(errors + 1.0)
        ways = gammaln(n + 1.0) - gammaln(i + 1.0) - gammaln(n - i + 1.0)
        return min(1.0, float(np.exp(ways + betaln(i + a, n - i + b) - betaln(a, b)).sum()))


@dataclass(frozen=True, slots=True)
class Pilot:
    """The threshold of a pilot sample that most likely keeps both ceilings, and the errors counted there."""

    threshold: float
    normal: Posterior
    anomalous: Posterior


def pilot_of(normal: ArrayLike, anomalous: ArrayLike, guarantee: Guarantee) -> Pilot:
    """Return the threshold of a pilot sample at which both rates are most likely below their ceilings."""
    low, high = np.sort(as_scores(normal, "normal")), np.sort(as_scores(anomalous, "anomalous"))
    fpr, fnr = guarantee.fpr, guarantee.fnr
    if fpr is None or fnr is None:
        raise InputError("a pilot sample needs two ceilings, since one alone can always be kept; set both")
    if not low.size or not high.size:
        raise InputError(
            f"a pilot sample needs points of both classes, got {low.size:,} normal and {high.size:,}"
            " anomalous; label some of each"
        )
    # the largest double stands for inf, since a threshold at inf is never reached
    low, high = np.minimum(low, LARGEST), np.minimum(high, LARGEST)
    taus = np.unique(np.append(low, high))
    alarms = low.size - np.searchsorted(low, taus, side="left")
    misses = np.searchsorted(high, taus, side="left")
    kept = betainc(alarms + 0.5, low.size - alarms + 0.5, fpr.at_calibration)
    kept = kept * betainc(misses + 0.5, high.size - misses + 0.5, fnr.at_calibration)
    best = np.flatnonzero(kept == kept.max())
    place = best[best.size // 2]
    found = Posterior(int(alarms[place]), low.size), Posterior(int(misses[place]), high.size)
    return Pilot(float(taus[place]), *found)


@dataclass(frozen=True, slots=True)
class Guess:
    """What traffic may be like: shares of points that raise an alarm or are anomalous, and of right alarms.

    `precision` is the share of alarms that review finds right. Without `prevalence` no anomaly is missed.
    """

    alarms: float | None = None
    precision: float | None = None
    prevalence: float | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if (share := getattr(self, name)) is not None:
                check_rate(f"guess_{name}", share)
        if self.prevalence is not None and (self.right or 0.0) > self.prevalence:
            raise InputError(
                "guess_prevalence must be at least guess_alarms times guess_precision, since right alarms are"
                f" anomalies, got {self.prevalence!r} and {self.right!r}; guess a larger prevalence"
            )

    @property
    def right(self) -> float | None:
        """The share of points that raise a right alarm."""
        return None if self.alarms is None or self.precision is None else self.alarms * self.precision

    def rate(self, promise: Promise) -> float | None:
        """Return the rate of errors among the counted points."""
        if promise.error is Error.ALARM or promise.by_audits:
            return None if promise.by_audits else self.alarms
        wrong = None if self.precision is None else 1.0 - self.precision
        if wrong is None or promise.error is Error.WRONG_ALARM:
            return wrong
        seen = 1.0 if promise.reviews is None else promise.reviews.rate
        return None if self.alarms is None else self.alarms * wrong * seen

    def expected(self, promise: Promise, points: int, errors: int) -> dict[str, float]:
        """Return the numbers to expect if all alarms are right with the same chance.

        Reviews of false alarms go from the top until one more than the budget is found.
        """
        if promise.error is Error.FALSE_ALARM and self.precision is not None:
            return {"reviews": round((errors + 1) / (1.0 - self.precision), 9)}
        if promise.error is Error.WRONG_ALARM and self.alarms is not None:
            return {"traffic": points / self.alarms}
        if promise.by_audits and promise.reviews is not None and self.prevalence is not None:
            # each missed anomaly that an audit finds stands for others that none finds: eq. (149)
            share = promise.reviews.audits
            traffic = (points - errors + errors / share) / self.prevalence
            return {"traffic": round(traffic, 9), "audits": round(traffic * share, 9)}
        return {}


@dataclass(frozen=True, slots=True)
class Needed:
    """Points needed by a promise for each number of errors, eq. (4), budget at hand, and a likely need.

    `expected` has reviews and traffic for each number of errors, by a guess; `first` the number of alarms
    that are tested first, and the chance that they pass. `in_units` tells whether units are counted.
    """

    promise: Promise
    errors: tuple[int, ...]
    labels: tuple[int, ...]
    at_hand: Budget | None = None
    likely: Need | None = None
    forecast: str | None = None
    expected: tuple[dict[str, float], ...] = ()
    first: tuple[int, float] | None = None
    in_units: bool = False

    @property
    def points(self) -> str:
        """What is counted."""
        if self.in_units:
            return f"units with {self.promise.of.label} points"
        if self.promise.of.label == "alarms":
            return "reviewed alarms"
        if self.promise.by_audits:
            return "caught or audited anomalies"
        of_traffic = self.promise.of.label == "traffic" or self.promise.reviews is not None
        return "points of traffic" if of_traffic else f"{self.promise.of.label} labels"

    def told(self) -> Iterator[str]:
        """Yield what the points at hand can keep, and how many are likely enough."""
        budget = self.at_hand
        if budget is not None and not budget.n:
            yield "none at hand"
        elif budget is not None:
            lowest = self.promise.afterwards(upper_bound(0, budget.n, budget.delta))
            allowed = f", {budget.missing:,} missing"
            if budget.errors is not None:
                allowed = "" if self.in_units else f" tolerate {amount(budget.errors, 'error')}"
            least = f"the lowest ceiling that they can keep is {rounded_up(lowest)}"
            yield f"{budget.n:,} at hand{allowed}; {least}"
        if self.forecast is not None:
            found = "more than 5,000" if self.in_units else "no number of"
            found = found if self.likely is None else f"{self.likely.labels:,}"
            fresh = "fresh labels" if self.points.endswith("labels") else self.points
            wanted = " for the guessed alarms" if self.points == "points of traffic" else ""
            yield f"by the {self.forecast}, {found} {fresh} are enough 9 times in 10{wanted}"
        if self.first is not None:
            yield (
                f"the highest {self.first[0]:,} are tested first; if their precision is as guessed, they pass"
                f" with a chance of {rounded_down(self.first[1], 100, 3)} %"
            )


@dataclass(frozen=True, slots=True)
class Plan:
    """The points that a guarantee needs, and the ceilings that those at hand can keep; made by `plan`.

    Attributes
    ----------
    guarantee : Guarantee
        The planned ceilings and deltas.
    needed : tuple of Needed
        The labels, or the traffic and reviews, that each ceiling needs.
    pilot : Pilot or None
        The threshold of a pilot sample, and the errors there; None without a pilot sample.
    """

    guarantee: Guarantee
    needed: tuple[Needed, ...]
    pilot: Pilot | None = None

    def __str__(self) -> str:
        lines = []
        for one in self.needed:
            head, (none, *more) = one.promise.claim, one.labels
            error = one.promise.error.value if one.promise.of_traffic else "error"
            others = [f"{n:,} with {k}" for k, n in zip(one.errors[1:], more, strict=True)]
            free = "point is an error" if one.in_units else f"{error} is among them"
            first = ", ".join([f"{none:,} {one.points} if no {free}", *others])
            lines += [head, f"  {first}"] if one.promise.of_traffic else [f"{head}  {first}"]
            told = [
                f"{SPENT[name]} to expect: {', '.join(f'{found[name]:,.0f}' for found in one.expected)}"
                for name in one.expected[0]
            ]
            beside = 0 if one.promise.of_traffic else len(head)
            lines += [f"{'':{beside}}  {text}" for text in (*told, *one.told())]
        return "\n".join(lines)


def _settled(asked: Guarantee, normal: int | None, anomalous: int | None) -> Guarantee:
    """Return a guarantee with the deltas that `calibrate` would share from its confidence: eq. (102).

    A class of unknown size is taken as just large enough; if both sizes are unknown, the deltas are equal.
    """
    fpr, fnr = asked.fpr, asked.fnr
    if asked.together is None or fpr is None or fnr is None:
        return asked
    counts = [normal, anomalous]
    if None in counts:
        known, other = (1, 0) if normal is None else (0, 1)
        own, its = (
            Sharing((counts[place] or 0,), ((fpr, fnr)[place].at_calibration,)) for place in (known, other)
        )
        rest = its.rest(Decimal(repr(asked.together)) / own.keeps(own.least)) if own.least < 1.0 else 0.0
        counts[other] = min_samples(its.rates[0], rest) if rest > 0.0 else None
    if None in counts:
        share = equal_deltas(asked.together)
        return replace(asked, delta_fpr=share, delta_fnr=share)
    return Abstain().settled(asked, (counts[0] or 0, counts[1] or 0))


def _guessed_of_units(
    asked: Guarantee, pilot: object, points: int | None, errors: float | None, correlation: float | None
) -> tuple[float, float, int] | None:
    """Return the guesses about units, None without any; what does not fit is refused."""
    if points is None and (errors is not None or correlation is not None):
        raise InputError("guess_errors and guess_correlation are for units; give unit_points too")
    if points is None:
        return None
    if check_positive("unit_points", points) == 1:
        raise InputError("a unit with one point counts as a label; leave out unit_points")
    if asked.of_traffic or pilot is not None:
        raise InputError(
            "units cannot be planned from traffic or a pilot sample; remove unit_points or these"
        )
    refuse_tolerance(asked, "a promise about units", "remove both")
    if max(one.at_calibration for one in asked.promises) > 0.5:
        raise InputError("a ceiling for points in units must be at most 0.5; ask for a lower one")
    if errors is None and correlation is None:
        return None
    if errors is None or correlation is None:
        raise InputError("guess_errors and guess_correlation belong together; give both, or none")
    rates = check_rate("guess_errors", errors), check_rate("guess_correlation", correlation)
    if errors >= min(one.at_calibration for one in asked.promises):
        raise InputError(
            f"guess_errors must be below the ceilings, or no number of units certifies them, got {errors!r};"
            " guess fewer errors, or ask for higher ceilings"
        )
    return *rates, points


def _of_units(promise: Promise, n: int | None, guessed: tuple[float, float, int] | None) -> Needed:
    """Return the units that a promise needs if no point is an error, and those that are likely enough."""
    rate, delta = promise.at_calibration, promise.delta
    least = (min_samples(rate, delta),)
    more: dict[str, Any] = {}
    if guessed is not None:
        likely = likely_units(rate, delta, *guessed, _CHANCE)
        more = {"forecast": "guess", "likely": None if likely is None else Need(likely, 0)}
    at_hand = None if n is None else Budget(n, rate, delta, 0 if n >= least[0] else None, 1.0 - delta, n)
    return Needed(promise, (0,), least, at_hand, expected=({},), in_units=True, **more)


def plan(
    guarantee: Guarantee | None = None,
    *,
    normal: int | None = None,
    anomalous: int | None = None,
    pilot: tuple[ArrayLike, ArrayLike] | None = None,
    traffic: int | None = None,
    guess_alarms: float | None = None,
    guess_precision: float | None = None,
    guess_prevalence: float | None = None,
    unit_points: int | None = None,
    guess_errors: float | None = None,
    guess_correlation: float | None = None,
) -> Plan:
    """Return how many labels, or how much traffic, a guarantee needs, and what those at hand can keep.

    Parameters
    ----------
    guarantee : Guarantee, optional
        The ceilings and their deltas; by default both 0.05 with a delta of 0.05 each. A confidence is shared
        by the numbers of labels, as `calibrate` does.
    normal, anomalous : int, optional
        The number of labels of each class at hand.
    pilot : pair of array-like of float, optional
        Scores of a few normal and a few anomalous points, to estimate how many labels are likely enough.
    traffic : int, optional
        The number of points of traffic at hand.
    guess_alarms, guess_precision, guess_prevalence : float, optional
        For promises about traffic: the guessed share of points that should raise an alarm, of these alarms
        that review finds right, and of points that are anomalous (by default no anomaly is missed). The
        reviews to expect follow, and the traffic that keeps these alarms with a chance of 90 %.
    unit_points : int, optional
        For points that come in units, such as machines, patients or days: how many points of a class a unit
        has, on average. `normal` and `anomalous` count units then. If a unit has one score, as events do, it
        counts as a label; leave this out.
    guess_errors, guess_correlation : float, optional
        The guessed share of errors at the threshold, and how much points of one unit resemble each other: the
        intraclass correlation of errors. From both follows how many units are enough with a chance of 90 %.

    Returns
    -------
    Plan
        The numbers of labels, or of traffic and reviews; `print` shows them as a table.

    Raises
    ------
    InputError
        If a number of labels is not a whole number, the pilot sample lacks a class, or guesses contradict
        each other.

    Examples
    --------
    >>> print(plan(Guarantee(max_fpr=None, max_fnr=0.05), anomalous=140))
    FNR <= 0.05  59 anomalous labels if no error is among them, 93 with 1, 124 with 2, 208 with 5, 336 with 10
                 140 at hand tolerate 2 errors; the lowest ceiling that they can keep is 0.02118
    >>> needs = plan(Guarantee(max_false_alarms="20 per 50,000"), guess_precision=0.8).needed[0]
    >>> needs.labels[2], needs.expected[2]
    (15738, {'reviews': 15.0})
    >>> machines = plan(
    ...     Guarantee(max_fnr=None), unit_points=20, guess_errors=0.01, guess_correlation=0.2
    ... )
    >>> machines.needed[0].labels, machines.needed[0].likely.labels
    ((59,), 97)
    """
    asked = Guarantee() if guarantee is None else guarantee
    asked = asked.fixed if unit_points is not None else _settled(asked, normal, anomalous)
    if asked.of_traffic and pilot is not None:
        raise InputError("a pilot sample is for labelled classes; for traffic give guess_alarms instead")
    guessed = _guessed_of_units(asked, pilot, unit_points, guess_errors, guess_correlation)
    guess = Guess(guess_alarms, guess_precision, guess_prevalence)
    found, each = None if pilot is None else pilot_of(*pilot, asked), []
    for one in asked.promises:
        labels = tuple(min_samples(one.at_calibration, one.delta, errors) for errors in TOLERATED)
        n = (normal, anomalous)[one.rate == "FNR"]
        more: dict[str, Any] = {}
        if unit_points is not None:
            each.append(_of_units(one, n, guessed))
            continue
        if one.of_traffic:
            n = None if one.error is Error.WRONG_ALARM or one.by_audits else traffic
            if (rate := guess.rate(one)) is not None:
                more = {"forecast": "guess", "likely": needed(one, [_CHANCE], partial(cdf, p=rate))[0]}
                if one.error is Error.WRONG_ALARM:  # all ranks above must pass as well: eq. (147)
                    first = next(ranks_tested(MOST_SCORES, one.at_calibration, one.delta)) - 1
                    more["first"] = first, cdf(one.budget(first).errors or 0, first, rate)
        elif found is not None:
            within = getattr(found, one.of.label).within
            more = {"forecast": "pilot sample", "likely": needed(one, [_CHANCE], within)[0]}
        spent = [guess.expected(one, *pair) for pair in zip(labels, TOLERATED, strict=True)]
        at_hand = None if n is None else one.budget(n)
        each.append(Needed(one, TOLERATED, labels, at_hand, expected=tuple(spent), **more))
    return Plan(asked, tuple(each), found)
