"""The certificate: its request, results and assumptions, the rule for verdicts, and its JSON file.

A file with a correct checksum may still come from anybody, so a file that contradicts itself is refused.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from itertools import product
from math import inf, nan, nextafter
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import floats
from pac_wrap.base.arguments import MOST_SCORES, OnMissing, check_rate
from pac_wrap.base.codec import SavedAsJSON, checksum_of
from pac_wrap.base.text import quoted
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.method import promise
from pac_wrap.method.alarms.precision import AlarmBounds, Prevalence
from pac_wrap.method.curves.band import Given
from pac_wrap.method.metrics import Measured, Metrics, Tally, measured_kinds, tally
from pac_wrap.method.promise import LABELS, Assumption, Clause, Guarantee, Label, Population, Promise, Written
from pac_wrap.method.provenance import Lineage, Provenance, Sampling, Traced, Traffic, Units
from pac_wrap.method.robust.shift_and_noise import Robust
from pac_wrap.method.robust.weights import Weighting, Weights
from pac_wrap.method.rule import LARGEST, Regime, Rule, Thresholds
from pac_wrap.method.strategies import interface
from pac_wrap.method.strategies.interface import NO_COUNT, Asked, Claim, Decision, Found, Strategy
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.method.strategies.raising import Algorithm1, Raise
from pac_wrap.tails.bounds import Budget, find_budget
from pac_wrap.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pac_wrap.method.groups.values import GroupColumn
    from pac_wrap.method.verify import Verification

_NO_SCORES: Final = "0" * 16
# as Python's packages are numbered, and no longer than they are
_VERSION: Final = r"[0-9]{1,4}([.][0-9]{1,4}){0,3}((a|b|rc)[0-9]{1,4})?([.](post|dev)[0-9]{1,8}){0,2}"
# of each class; a certificate stays short enough to be read
MOST_KINDS: Final = 40
_OPTIONAL: Final = {"optional": True}
NOTHING: Final = Found(np.nan, np.nan, NO_COUNT, interface.MINUS, np.nan, np.nan)


class Told(NamedTuple):
    """The facts of a certificate, for one group or many: points, results of promises, and the rule.

    `edges` are the thresholds as numbers. NaN stands for a missing threshold, and -1 for a missing count.
    """

    n: Any
    found: Sequence[Found]
    edges: Any
    beyond: Any
    rule: tuple[interface.Number, interface.Number]
    certified: Any
    separable: interface.Count
    score_type: floats.ScoreType

    def at(self, place: int) -> "Told":
        n, edges, beyond, rule = (
            [column[place].item() for column in some] for some in (self.n, self.edges, self.beyond, self.rule)
        )
        found = [Found(*(column[place].item() for column in own)) for own in self.found]
        certified, separable = self.certified[place].item(), self.separable[place].item()
        return Told(n, found, edges, beyond, (rule[0], rule[1]), certified, separable, self.score_type)


class _Recorded(interface.Ranks):
    """Ranks that answer from the facts of a certificate; other scores are known only by their order."""

    def __init__(self, asked: Sequence[Asked], told: Told, strategy: Strategy) -> None:
        self.n, self._asked, self._told, self._strategy = told.n, asked, told, strategy

    def at(self, p: int, k: interface.Count) -> interface.Key:
        """Return the key behind the threshold at its own rank, or else a surely smaller or larger key."""
        one, own, n = self._asked[p], self._told.found[p], self.n[p]
        rank, key = (n - own.errors, own.key - 1) if one.normal else (own.errors + 1, own.key)
        known = k == rank
        if self._strategy.counts(one.normal):  # errors that were counted have a threshold of their own
            count = self._told.beyond[p]
            known = known | (k == (n - count if one.normal else count + 1))
        # if nothing is certified, all points lie on the wrong side
        few = own.errors < 0
        greater = (k > rank) | few if one.normal else (k > rank) & (few ^ True)
        beyond = interface.choose(greater, np.uint64(interface.PLUS), np.uint64(interface.MINUS))
        return interface.choose(known, key, beyond if isinstance(beyond, np.ndarray) else int(beyond))

    def below(self, p: int, key: interface.Key) -> interface.Count:
        """Return how many scores lie below the threshold at which errors were counted."""
        n, errors, beyond = self.n[p], self._told.found[p].errors, self._told.beyond[p]
        # if nothing is certified, all points are errors
        count = interface.choose(beyond == NO_COUNT, interface.choose(errors == NO_COUNT, n, errors), beyond)
        return n - count if self._asked[p].normal else count

    def between(self, p: int, q: int, low: interface.Key, high: interface.Key, share: float) -> interface.Key:
        """Return the key of the stored threshold; only the scores could tell which of them it is."""
        tau = floats.rounded(self._told.rule[1], self._told.score_type)
        key = floats.order_keys(tau) if tau.ndim else floats.order_key(float(tau))
        return interface.least(key, interface.REACHED)

    def group(self, place: int) -> "_Recorded":
        return _Recorded(self._asked, self._told.at(place), self._strategy)


def impossibilities(asked: Sequence[Asked], strategy: Strategy, told: Told) -> Iterator[tuple[Any, str]]:
    """Yield the groups with impossible facts, and a sentence about each, whatever the decision was."""
    nobody: Any = True
    for one, n, edge, beyond in zip(asked, told.n, told.edges, told.beyond, strict=True):
        yield (n < 0) | (n > MOST_SCORES), f"the number of {one.of} is impossible"
        yield (beyond > n) | (beyond < NO_COUNT), f"the number of {one.of} beyond a threshold is impossible"
        yield one.normal & (edge == -inf), "alarm_from must lie above some score, so it cannot be -inf"
        with np.errstate(over="ignore"):
            behind = np.nextafter(edge, -inf) if one.normal else np.asarray(edge)
        number = np.where(abs(behind) < LARGEST, behind, 0.0)
        untyped = floats.rounded(number, told.score_type) != number
        yield untyped, f"the score behind a threshold of {one.of} is not a {told.score_type}"
        nobody = nobody & (n == 0) & (one.of.label != "alarms")  # there may be none to test
    yield nobody, "there is no score in either class"
    promised = {one.of.side for one in asked if one.promise is not None}
    if strategy.single and not strategy.one_sided and len(promised) < 2:
        yield True, f"{strategy.word} needs two ceilings, and there is only one"


def replayed(asked: Sequence[Asked], strategy: Strategy, told: Told) -> Decision:
    """Return the decision of a strategy that knows only the counts and scores of a certificate."""
    return strategy.decide_all(asked, _Recorded(asked, told, strategy))


def differences(
    asked: Sequence[Asked], strategy: Strategy, told: Told, made: Decision
) -> Iterator[tuple[Any, str]]:
    """Yield the groups whose facts differ from the decision made again, and a sentence about each."""
    uncertified = "the certified ceilings do not follow from the requested ones"
    asked_for: Any = True
    for p, one in enumerate(asked):
        own, again = told.found[p], made.found[p] or NOTHING
        there = own.rate == own.rate
        threshold = told.edges[p] == told.edges[p]
        yield there ^ threshold, f"{one.of} have a threshold and a budget, or neither"
        right = _same(own.rate, again.rate, strategy.digits) & (own.errors == again.errors)
        right = right & _same(own.delta, again.delta, strategy.digits if strategy.given else 0.0)
        yield right ^ True, f"the budget of {one.of} does not follow from the request and the counts"
        if not isinstance(there, np.ndarray) and there and own.rate != again.rate:
            # its own rate, in which the last digits may differ, must carry its errors as well
            exact = interface.count_of(find_budget(told.n[p], own.rate, own.delta).errors)
            yield own.errors != exact, f"the budget of {one.of} is {exact}, not {own.errors}"
        yield there & (own.key != again.key), f"the threshold of {one.of} is not that of its budget"
        asked_for = asked_for & (one.promise is None or own.ceiling == one.promise.ceiling)
        kept = _same(own.ceiling, again.ceiling, strategy.digits)
        if one.promise is not None and not strategy.given:
            kept = kept & ((again.ceiling == one.promise.ceiling) == (own.ceiling == one.promise.ceiling))
        # without a ceiling no delta is told
        kept = kept & ((own.ceiling != own.ceiling) | (own.level == again.level))
        yield told.certified & (kept ^ True), uncertified
        if strategy.given:
            ceiling = np.nan if one.promise is None else one.promise.ceiling
            right = _same(own.ceiling, own.rate, 0.0) & _same(own.ceiling, ceiling, 0.0)
            wrong = told.certified & (right ^ True)
            yield wrong, "the requested ceilings must be the bounds of the curve at the threshold"
        outside = own.key > made.high if one.normal else own.key < made.low
        decides = there & (made.low == made.high) & made.certified
        yield decides & outside, "the threshold does not lie between alarm_from and clear_below"
    yield told.certified != made.certified, uncertified
    compared = "absent" if made.separable is None else "true or false"
    untold = told.separable == NO_COUNT
    yield untold ^ (made.separable is None), f"separable must be {compared} with this strategy"
    wrong = asked_for & (told.separable == 0) & told.certified
    yield wrong, "whether one threshold would keep the requested ceilings does not follow from the rung"
    low, high = interface.ends_of(made.low, made.high, told.score_type)
    wrong = (told.rule[0] != low) | (told.rule[1] != high)
    yield wrong, "the rule does not follow from alarm_from and clear_below"
    yield from _miscounts(asked, told, made)


def _miscounts(asked: Sequence[Asked], told: Told, made: Decision) -> Iterator[tuple[Any, str]]:
    """Yield impossible counts of points beyond the other class's threshold: eq. (13)."""
    edges = made.alarm is not None and made.clear is not None
    counted: Any = edges
    few: Any = False
    for own in made.found:
        if own is not None:
            counted, few = counted & (own.rate == own.rate), few | (own.errors < 0)
    for p, (one, own) in enumerate(zip(asked, made.found, strict=True)):
        n, beyond = told.n[p], told.beyond[p]
        wanted = counted & (one.promise is not None)
        yield (beyond != NO_COUNT) ^ wanted, f"{one.of} beyond a threshold are counted where there are two"
        if not edges or own is None:
            continue
        everything = made.clear == interface.MINUS if one.normal else made.alarm == interface.PLUS
        yield everything & wanted & (beyond != n), f"all {one.of} lie beyond the other threshold"
        # precision is tested at few ranks, and nobody throws coins below a floor
        apart = (one.of.label == "alarms" or (one.promise and one.promise.by_coins) for one in asked)
        if len(asked) == 2 and not any(apart):
            # above the largest double there is no threshold left, so normal scores up there cross nothing
            free = few | (one.normal & (made.alarm == interface.PLUS) & (made.clear == interface.PLUS))
            within = (beyond <= own.errors) ^ interface.are_separated(made.alarm, made.clear)
            yield wanted & within & (free ^ True), f"the {one.of} beyond a threshold imply another regime"


def _same(one: interface.Number, other: interface.Number, digits: float) -> Any:
    return (one == other) | ((one != one) & (other != other)) | (abs(one - other) <= digits * abs(other))


def inconsistencies(certificate: "Certificate") -> Iterator[str]:
    """Yield the contradictions in a certificate, including its texts and the facts about a series."""
    taken, guarantee, strategy = certificate.sampling, certificate.guarantee, certificate.overlap
    for label, n in zip(LABELS, certificate.sizes, strict=True):
        yield from _class_problems(certificate, label)
        size, errors = getattr(taken, f"effective_{label}", None), getattr(taken, f"errors_{label}", None)
        if size is not None and size > n:
            yield f"{n:,} {label} scores cannot count as {size:,.0f} independent ones"
        if errors is not None and errors > n:
            yield f"{errors:,} of {n:,} {label} scores cannot be errors"
    if guarantee.promises != tuple(one.asked for one in certificate.clauses if one.asked):
        yield "the clauses of a class do not belong to one guarantee"
    yield from version_problems(certificate.version)
    if certificate.lineage is not None:
        yield from certificate.lineage.problems(guarantee, strategy)
    usual: tuple[tuple[Assumption, ...], ...] = promise.OF_DRAWS, promise.OF_POOL
    if taken is not None:
        usual = (promise.OF_SERIES,)
    if certificate.units is not None:
        usual = tuple(promise.of_units(*one) for one in product((True, False), repeat=2))
    if any(one.units for one in certificate.clauses) and (certificate.units or Units(None)).order is None:
        yield "units were tested in an order whose seed is missing"
    tolerated = guarantee.tolerates | {"weights": certificate.weighting is not None}
    possible = [promise.assumed(one, **tolerated) for one in usual]
    if certificate.traffic is not None:
        possible = [promise.assumed_of_traffic(guarantee, one) for one in (False, True)]
        yield from _traffic_problems(certificate, certificate.traffic)
    elif guarantee.of_traffic or certificate.fpr.of.label in ("traffic", "alarms"):
        yield "a promise about traffic lacks the numbers of its points"
    if certificate.assumptions not in possible:
        yield f"these are not the assumptions of {'draws' if taken is None else 'a series'}"
    if certificate.weighting is not None:
        yield from _weighting_problems(certificate, certificate.weighting)
    asked, told = _told(certificate)
    for wrong, text in impossibilities(asked, certificate.overlap, told):
        if wrong:
            yield text
            return  # impossible facts have no decision
    made = replayed(asked, certificate.overlap, told)
    yield from (text for wrong, text in differences(asked, certificate.overlap, told, made) if wrong)
    for one in certificate.clauses:
        kept = one.certified
        direct = kept and kept.tolerance is None and kept.reviews is None
        if kept and one.budget and direct and kept.ceiling != one.budget.rate:
            yield f"the budget of {one.of} is not that of the certified ceiling"


def _class_problems(certificate: "Certificate", label: Label) -> Iterator[str]:
    """Yield contradictions in the clauses of a class, except those that the replayed strategy finds."""
    clauses = certificate.of(label)
    kinds = [one.of for one in clauses]
    if len(set(kinds)) < len(kinds) or len(kinds) > MOST_KINDS + 1:
        yield f"the {label} class must have 1 to {MOST_KINDS} kinds, each once"
    if certificate.by_kind and certificate.overlap.tag not in ("abstain", "hold"):
        yield f"{certificate.overlap.word} keeps no ceiling of a kind"
    points = sum(one.n for one in clauses if one.of.kind is not None)
    for one in clauses:
        yield from digest_problems(label, one.n, one.digest)
        if one.beyond is not None and one.beyond < 0:
            yield f"{one.beyond} {label} points lie beyond a threshold"
        if one.of.kind is not None:
            promise.check_kind(one.of.kind)
        elif len(clauses) > 1 and one.n != points and certificate.traffic is None:
            yield f"all {label} points are {points:,}, not {one.n:,}"


def _traffic_problems(certificate: "Certificate", traffic: Traffic) -> Iterator[str]:
    yield from traffic.problems()
    if certificate.overlap != interface.Abstain(position=1.0):
        yield "traffic raises the fewest alarms, by abstain at position 1, not by another strategy"
    wrong, fnr = traffic.alarms - traffic.right, certificate.fnr
    if fnr.asked is not None and fnr.asked.by_audits and fnr.n > traffic.found + (fnr.errors or 0):
        yield f"{fnr.n:,} anomalies count for max_fnr, and {traffic.found:,} were found"
    for one in certificate.of("normal"):
        asked, errors = one.asked, one.errors
        if one.of.kind is not None:
            yield "a promise about traffic has no kinds"
        if asked is None:  # only missed anomalies are promised
            continue
        of_alarms = one.of.label == "alarms"
        if one.n != traffic.points and not (of_alarms and one.n in (0, traffic.alarms)):
            yield f"the promise of {one.of} is about {one.n:,} points, and there are {traffic.points:,}"
        if of_alarms and one.kept and one.threshold is not None:
            key = floats.order_key(one.threshold)
            if interface.ends_of(key, key, certificate.score_type)[1] != certificate.rule.anomaly_from:
                yield "alarms are precise at the threshold of their promise, and the rule has another one"
        seen = traffic.wrong or 0 if asked.by_coins else wrong
        counted = traffic.alarms if one.of.error is promise.Error.ALARM else seen
        if errors is not None and counted > errors:
            yield f"{counted:,} {one.of.error.value}s exceed the budget of {errors:,}"


def _told(certificate: "Certificate") -> tuple[list[Asked], Told]:
    """Return the requests of a certificate, and the counts and scores that it has of each population."""
    deltas = {"normal": certificate.guarantee.delta_fpr, "anomalous": certificate.guarantee.delta_fnr}
    asked = [
        Asked(one.of, one.asked, deltas[one.of.side], _stored(one.budget) if one.units else None, one.units)
        for one in certificate.clauses
    ]

    def found(one: Clause) -> Found:
        kept = (nan, nan) if one.certified is None else (one.certified.ceiling, one.certified.delta)
        edge = floats.order_key(0.0 if one.threshold is None else one.threshold)
        if one.budget is None:
            return NOTHING._replace(key=edge, ceiling=kept[0], level=kept[1])
        return Found(one.budget.rate, one.budget.delta, interface.count_of(one.errors), edge, *kept)

    clauses = certificate.clauses
    return asked, Told(
        n=[one.n for one in clauses],
        found=[found(one) for one in clauses],
        edges=[nan if one.threshold is None else one.threshold for one in clauses],
        beyond=[interface.count_of(one.beyond) for one in clauses],
        rule=(certificate.rule.normal_below, certificate.rule.anomaly_from),
        certified=not certificate.uncertified,
        separable=interface.count_of(certificate.separable),
        score_type=certificate.score_type,
    )


def _stored(budget: Budget | None) -> Callable[[Promise, interface.Key | None], Budget | None]:
    return lambda *_: budget


def _weighting_problems(certificate: "Certificate", weighting: Weighting) -> Iterator[str]:
    offered = weighting.normal, weighting.anomalous
    for place, (name, clause) in enumerate(zip(LABELS, (certificate.fpr, certificate.fnr), strict=True)):
        drawn = offered[place]
        size = clause.n if drawn is None else drawn
        if clause.n > size:
            yield f"{clause.n:,} {name} scores cannot survive of {size:,}"
        if weighting.digests is not None:
            digest = weighting.digests[place]
            yield from digest_problems(name, size, digest)
            if clause.n == size and digest != clause.digest:
                yield f"all {name} scores survived, but their digest differs from that of the clause"
    if weighting.intervals and certificate.overlap.single:
        yield f"{certificate.overlap.word} takes no intervals of weights"


def confidence_of_kinds(clauses: Sequence[Clause], *, counted: bool) -> Decimal:
    """Return the confidence that all ceilings of a class hold together.

    All kinds share one threshold, the strictest of theirs. If any ceiling fails, then so does that of the
    kind that allows least, and the population alone decides which kind this is: so the confidence is the
    smallest of all, eq. (99). Counted ceilings have no common threshold, so they multiply: eq. (100).
    """
    found = [one for one in clauses if one.kept]
    if not counted:
        # a kind with too few labels leaves the class without a threshold, so nothing can fail; a ceiling on
        # all kinds together holds on average over their counts, so these may not raise its confidence
        lacking = any(one.vacuous for one in clauses) and not any(one.of.kind is None for one in found)
        return Decimal(1) if lacking else min((one.confidence for one in found), default=Decimal(1))
    # all points of a class together are the points of its kinds, no separate sample
    deltas = {one.of.kind: one.certified.delta for one in found if one.certified is not None}
    whole = deltas.pop(None, 0.0) if len(clauses) > 1 else 0.0
    named = map(floats.confidence_left, deltas.values())
    return max(Decimal(0), floats.kept_together(*named) - Decimal(repr(whole)))


def confidence_of_traffic(clauses: Sequence[Clause], assumptions: tuple[Assumption, ...]) -> Decimal:
    """Return the confidence that all promises about traffic hold together.

    Promises about the same traffic share one threshold, so the smallest confidence holds for all: eq. (142).
    Precision adds its delta: eq. (148). That for independent anomalies multiplies; else their delta adds.
    """
    kept = [one for one in clauses if one.kept]
    alarms = [one.confidence for one in kept if one.of.side == "normal" and one.of.label != "alarms"]
    missed = [one.confidence for one in kept if one.of.side == "anomalous"]
    precise = [1 - one.confidence for one in kept if one.of.label == "alarms"]
    side = min(alarms, default=Decimal(1)) - sum(precise)
    if Assumption.APART in assumptions:
        return floats.kept_together(max(Decimal(0), side), *missed)
    return max(Decimal(0), side - sum(1 - one for one in missed))


def digest_problems(name: str, n: int, digest: str | None) -> Iterator[str]:
    """Yield why a text cannot be the digest of n scores of a class; None means that none was taken."""
    if digest is not None and not re.fullmatch(r"[0-9a-f]{16}", digest):
        yield f"{quoted(digest)} is not a digest of {name} scores: 16 hexadecimal digits"
    if not n and digest != _NO_SCORES:
        yield f"the digest of no {name} scores is {_NO_SCORES}, not {digest}"


def version_problems(version: str) -> Iterator[str]:
    """Yield why a text cannot be a version of this package."""
    if not re.fullmatch(_VERSION, version):
        yield f"{quoted(version)} is not a version of pac-wrap-ad"


# every strategy that a certificate can have been made with
Overlap = interface.Abstain | Raise | interface.Hold | Algorithm1 | Looks | Given
# the scores of each kind of a class
Kinds = Mapping[str, ArrayLike]


@dataclass(frozen=True, slots=True)
class CertificateFile:
    """The content of a certificate's file: the request, the counts and the decision."""

    overlap: Overlap
    score_type: floats.ScoreType
    rule: Rule
    clauses: tuple[Written, ...]
    separable: bool | None = field(metadata=_OPTIONAL)
    sampling: Sampling | None = field(metadata=_OPTIONAL)
    weighting: Weighting | None = field(metadata=_OPTIONAL)
    lineage: Lineage | None = field(metadata=_OPTIONAL)
    traffic: Traffic | None = field(metadata=_OPTIONAL)
    units: Units | None = field(metadata=_OPTIONAL)
    assumptions: tuple[Assumption, ...]
    version: str
    provenance: Provenance | None = field(metadata=_OPTIONAL)


# fields that a file has in the same form as the certificate
_KEPT: Final = tuple(one.name for one in fields(CertificateFile) if one.name != "clauses")


@dataclass(frozen=True, slots=True)
class Certificate(AlarmBounds, Robust, Traced, SavedAsJSON):
    """A rule for verdicts with the promises that it keeps, and their basis; made by `calibrate`.

    Parameters
    ----------
    guarantee : Guarantee
        The promises that were asked for.
    overlap : Strategy
        The strategy for overlapping classes.
    clauses : tuple of Clause
        Each promise with its result, promises about normal points first: one clause for each class, or for
        each kind of its points. The rule follows from the two binding clauses, `fpr` and `fnr`: the normal
        one with the greatest threshold, the anomalous one with the least, eq. (60).
    rule : Rule
        The rule that `verdicts` follows, for scores before and after rounding to `score_type`.
    score_type : "float64", "float32" or "float16"
        The type of the calibration scores, to which every score is rounded before it is compared.
    separable : bool, optional
        If ceilings were raised: whether one threshold would have kept the requested ceilings.
    sampling, weighting, lineage, provenance : object, optional
        The sampling of a time series, the draw by weights, the certificates that this one follows, and the
        origin of the scores. `==` and `verify` ignore the provenance.
    traffic : Traffic, optional
        The numbers of points, of alarms and of reviews, if traffic calibrated.
    units : Units, optional
        If points came in units: the order of their test, and what counts of an event or a day.
    assumptions : tuple of Assumption
        The assumptions of the promise; a file has their numbers.
    version : str
        The version of the package that made it.

    Examples
    --------
    >>> from pac_wrap import Guarantee, calibrate
    >>> certificate = calibrate(range(1000), range(900, 1900), Guarantee(max_fpr=0.05, max_fnr=0.05))
    >>> certificate.regime.value, certificate.rule
    ('overlapping', Rule(normal_below=938.0, anomaly_from=961.0000000000001))
    >>> certificate.fpr.ceiling, certificate.fpr.budget.errors
    (0.05, 38)
    """

    # the requests of all clauses together
    guarantee: Guarantee = field(compare=False)
    overlap: Overlap
    clauses: tuple[Clause, ...]
    rule: Rule
    score_type: floats.ScoreType = "float64"
    separable: bool | None = None
    sampling: Sampling | None = None
    assumptions: tuple[Assumption, ...] = promise.OF_DRAWS
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False)
    lineage: Lineage | None = None
    weighting: Weighting | None = None
    traffic: Traffic | None = None
    units: Units | None = None

    _header: ClassVar[dict[str, Any]] = {"format": "pac-wrap certificate", "schema": 3}
    form: ClassVar[type] = CertificateFile

    @property
    def fpr(self) -> Clause:
        """The binding clause about normal points: the only one, unless the class has kinds."""
        return self._binding("normal")

    @property
    def fnr(self) -> Clause:
        """The binding clause about anomalous points: the only one, unless the class has kinds."""
        return self._binding("anomalous")

    def _binding(self, label: Label) -> Clause:
        if len(self.clauses) == 2:
            return self.clauses[label == "anomalous"]
        return promise.binding(self.of(label), counted=self.overlap.counts(label == "normal"))

    def clause(self, label: Label, kind: str | None = None) -> Clause:
        """Return the clause about a class, or about one kind of its points.

        Parameters
        ----------
        label : "normal" or "anomalous"
            The class.
        kind : str, optional
            The kind; None stands for all points of the class.
        """
        for one in self.clauses:
            if (one.of.label, one.of.kind) == (label, kind):
                return one
        raise InputError(
            f"there is no clause about {Population(label, kind)}; certificate.clauses lists all clauses"
        )

    def of(self, label: Label) -> list[Clause]:
        """Return the clauses about a class: one, or one for each kind and perhaps one for all kinds.

        The parameters are those of `clause`.
        """
        return [one for one in self.clauses if one.of.side == label]

    @property
    def by_kind(self) -> bool:
        """Whether any clause is about a kind of points."""
        return any(one.of.kind is not None for one in self.clauses)

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of normal and of anomalous calibration points, over all kinds."""
        return promise.points_of(self.of("normal")), promise.points_of(self.of("anomalous"))

    @property
    def promises(self) -> tuple[Promise, ...]:
        """The certified promises, except those with too few labels."""
        return tuple(one.certified for one in self.clauses if one.certified is not None and not one.vacuous)

    @property
    def uncertified(self) -> bool:
        """Whether no threshold could be certified at all, so that every verdict is abstain."""
        return all(one.certified is None for one in self.clauses)

    @property
    def thresholds(self) -> Thresholds:
        """The threshold of each class alone: `alarm_from` and `clear_below` of the binding clauses."""
        return Thresholds(self.fpr.threshold, self.fnr.threshold)

    @property
    def regime(self) -> Regime:
        """The regime of the two thresholds: separated, overlapping or vacuous."""
        fpr, fnr = self.fpr, self.fnr
        if fpr.vacuous or fnr.vacuous:
            return Regime.VACUOUS
        apart = Thresholds(fpr.threshold, fnr.threshold).separated
        return Regime.SEPARATED if apart else Regime.OVERLAPPING

    @property
    def exclusions(self) -> Thresholds:
        """The thresholds that rule out a label, for scores before rounding; prediction sets follow them.

        A single threshold rules out one label or the other; otherwise each class's own threshold does.
        """
        if self.uncertified:
            return Thresholds(alarm_from=inf, clear_below=-inf)
        low, tau = self.rule.normal_below, self.rule.anomaly_from
        if not self.rule.single:
            return Thresholds(low, tau) if self.thresholds.separated else Thresholds(tau, low)
        clear = None if self.fnr.asked is None or tau == inf else tau
        return Thresholds(None if self.fpr.asked is None else tau, clear)

    def undecidable(self, kind: floats.ScoreType) -> tuple[float, ...]:
        """Return the scores of a narrower type that are too close to a threshold to be decided reliably.

        If the calibration score behind the threshold fits the narrower type, no digits are lost.

        Parameters
        ----------
        kind : "float64", "float32" or "float16"
            The narrower type.
        """
        if not floats.is_narrower(kind, self.score_type):
            return ()
        edges, behind = self.exclusions, self.deciding
        if self.rule.single and self.overlap.at_score(claim := self.claim) and len(claim.asked) == 2:
            behind = (float(floats.rounded(self.rule.anomaly_from, self.score_type)),) * 2
        found = set()
        for edge, score in zip((edges.alarm_from, edges.clear_below), behind, strict=True):
            scores = behind if self.rule.single else (score,)
            lost = any(one is not None and not floats.represents(kind, one) for one in scores)
            if lost and edge is not None and edge < inf:
                found.add(floats.straddled(edge, kind))
        return tuple(sorted(one for one in found if one is not None))

    @property
    def deciding(self) -> tuple[float | None, float | None]:
        """The calibration scores behind alarm_from and clear_below: eqs. (7) and (9)."""
        alarm = self.thresholds.alarm_from
        return None if alarm is None else nextafter(alarm, -inf), self.thresholds.clear_below

    @property
    def empty(self) -> bool:
        """Whether a requested ceiling is not certified: too few labels, or no single threshold possible."""
        return any(one.lacking for one in self.clauses)

    @property
    def overstated(self) -> tuple[str, ...]:
        """The classes whose effective sample size in a series is too small for the promise, or unknown.

        It is too small if the rule's share of errors exceeds the budget of so few points: eq. (137). An
        effective size of more than half the number of points counts as the whole number.
        """
        taken, found = self.sampling, []
        in_time = taken is not None and self.units is None
        for label in LABELS if in_time and not self.uncertified else ():
            clause = self._binding(label)
            budget, effective = clause.budget, getattr(taken, f"effective_{label}")
            if budget is None or budget.errors is None:
                continue  # without a promise, none can be wrong
            if effective is None:
                found.append(label)
            elif 2.0 * effective < clause.n:
                fewer = Budget.of(int(effective), budget.rate, budget.delta).errors
                errors = getattr(taken, f"errors_{label}")
                shown = budget.errors if errors is None else errors
                if fewer is None or fewer * clause.n < shown * int(effective):
                    found.append(label)
        return tuple(found)

    @property
    def claim(self) -> Claim:
        """The claim about the two classes, or about the two binding kinds, as a strategy reads it."""
        fpr, fnr = self.fpr, self.fnr
        return Claim(
            tuple(one.asked for one in (fpr, fnr) if one.asked is not None),
            tuple(one.certified for one in (fpr, fnr) if one.certified is not None),
            fpr.budget,
            fnr.budget,
            self.rule,
            (fpr.n, fnr.n),
            (fpr.beyond, fnr.beyond),
            self.separable,
        )

    @property
    def confidence(self) -> float:
        """The confidence that all certified ceilings hold together: eq. (97), or eq. (12).

        If the classes are independent samples, and no ceiling was chosen on both, their confidences multiply,
        with the exact tails of ceilings kept as requested; else deltas add up. For kinds: eqs. (99), (100).
        """
        if self.traffic is not None:
            return floats.float_below(confidence_of_traffic(self.clauses, self.assumptions))
        if self.by_kind:
            counts = self.overlap.counts
            sides = (confidence_of_kinds(self.of(one), counted=counts(one == "normal")) for one in LABELS)
            return floats.float_below(floats.kept_together(*sides))
        return floats.float_below(self.overlap.joint(self.claim, **self._drawn))

    @property
    def confidences(self) -> dict[str, float]:
        """The confidence of each certified ceiling, by the name of its rate."""
        if self.traffic is not None:
            named = ((one.certified, confidence_of_traffic([one], ())) for one in self.clauses if one.kept)
            return {one.name: floats.float_below(sure) for one, sure in named if one is not None}
        sure = self.overlap.confidences(self.claim, exact=self._drawn["exact"])
        return {name: floats.float_below(one) for name, one in sure.items()}

    @property
    def _drawn(self) -> dict[str, bool]:
        """Whether the classes are independent, and whether the sizes are independent of the scores."""
        counted = self.weighting is None or not self.weighting.intervals
        return {"independent": promise.are_independent(self.assumptions), "exact": counted}

    def verdicts(self, scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.int8]:
        """Return the verdict on each score: 1 (anomaly), 0 (normal) or -1 (abstain).

        Parameters
        ----------
        scores : array-like of float
            One score per point; infinities are legal scores, and NaN is a missing score.
        on_missing : "abstain" or "stop"
            Whether points without a score get the verdict -1 and a `MissingScoreWarning`, or raise an error.
        """
        return self.rule.verdicts(scores, on_missing)

    def evaluate(
        self,
        normal: ArrayLike | Kinds,
        anomalous: ArrayLike | Kinds,
        *,
        units: "tuple[GroupColumn, GroupColumn] | None" = None,
        confidence: float = 0.95,
    ) -> tuple[Measured, ...]:
        """Return the error rates on held-out points of each class and kind, with intervals and ceilings.

        Parameters
        ----------
        normal, anomalous : array-like of float, or mapping of kinds to such arrays
            The scores of each class. A kind without calibration points is measured too, without a ceiling.
        units : pair of array-like, optional
            The units of the normal and of the anomalous points, for a certificate of units.
        confidence : float
            The confidence of each interval.
        """
        if self.units is not None or units is not None:
            from pac_wrap.method.groups.units import measured_units

            return measured_units(self, (normal, anomalous), units, check_rate("confidence", confidence))
        counts: dict[Label, dict[str | None, Tally]] = {}
        for side, (label, given) in enumerate(zip(LABELS, (normal, anomalous), strict=True)):
            kinds: dict[str | None, Any] = {None: given}
            if isinstance(given, Mapping):
                kinds = {promise.check_kind(kind): scores for kind, scores in given.items()}
            counts[label] = {kind: tally(self.verdicts(one), bool(side))[side] for kind, one in kinds.items()}
        return measured_kinds(self.clauses, counts, check_rate("confidence", confidence))

    def prediction_sets(self, scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.bool_]:
        """Return for each score whether label 0 and label 1 are possible, in two columns: eq. (11).

        For a point without a score both are. The parameters are those of `Certificate.verdicts`.
        """
        return self.exclusions.prediction_sets(scores, on_missing)

    def verify(
        self,
        normal: ArrayLike | Kinds,
        anomalous: ArrayLike | Kinds | None = None,
        *,
        reviews: ArrayLike | None = None,
        audits: ArrayLike | None = None,
        normal_weights: Weights | None = None,
        anomalous_weights: Weights | None = None,
        units: "tuple[GroupColumn, GroupColumn] | None" = None,
    ) -> "Verification":
        """Make the certificate again from its calibration scores, and return where the two differ.

        The result is true if nothing differs; printed, it lists the differences. It shows that these scores
        give the certificate; their order matters only with weights, or if the first points of an event count.
        It does not show that the detector gave these scores, that the labels are right, or that nobody
        selected the rows.

        Parameters
        ----------
        normal, anomalous : array-like of float, or mapping of kinds to such arrays
            The calibration scores of each class, by kind for a certificate with kinds. Those of a wider type
            are rounded to the certificate's, as a float32 written to a text file comes back as a double.
        normal_weights, anomalous_weights : array-like of float, or pair of arrays, optional
            The weights that `calibrate` was given, if any, in the order of the scores.
        units : pair of array-like, optional
            The units of the normal and of the anomalous points, for a certificate of units.
        reviews : array-like, optional
            For a certificate of traffic, whose scores come first: its reviews. `anomalous` is then for
            labelled anomalies, if there were any.
        audits : array-like of bool, optional
            For such a certificate: the points drawn for audit, if there were any.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> certificate = calibrate([0.1, 0.2], [0.8, 0.9])
        >>> bool(certificate.verify([0.2, 0.1], [0.8, 0.9]))
        True
        >>> print(certificate.verify([0.1, 0.3], [0.8, 0.9]))  # doctest: +ELLIPSIS
        not verified: these points do not give this certificate; did they calibrate it?
          normal.digest is '4bf0b9951e6a64ba' in the certificate, '6564847ef7e48ce1' from the scores
        """
        from pac_wrap.method.verify import verify, verify_traffic

        if self.traffic is not None:
            return verify_traffic(self, normal, reviews, anomalous, audits)
        return verify(self, normal, anomalous, (normal_weights, anomalous_weights), units)

    @property
    def checksum(self) -> str:
        """A digest of the certificate without its provenance, by which monitors and successors name it."""
        return checksum_of(self.bare.to_json())

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """Sentences that explain the thresholds and tell which labels are missing."""
        from pac_wrap.report.sentences import diagnosis_of

        return diagnosis_of(self)

    @property
    def shortfall(self) -> str | None:
        """The requested ceilings that are not certified, and what they need; None if all are certified."""
        from pac_wrap.report.sentences import shortfall_of

        return shortfall_of(self)

    def report(
        self,
        path: str | os.PathLike[str],
        normal: ArrayLike | Kinds | None = None,
        anomalous: ArrayLike | Kinds | None = None,
        *,
        prevalence: Prevalence | None = None,
        metrics: Metrics | None = None,
        detector: str | None = None,
        reviews: ArrayLike | None = None,
        audits: ArrayLike | None = None,
    ) -> None:
        """Write a report as a self-contained HTML page, Markdown, JSON or a picture, by the file's name.

        Parameters
        ----------
        path : str or path
            The file to write, ending in .html, .md or .json; with the scores also .svg or .png.
        normal, anomalous : array-like of float, or mapping of kinds to such arrays, optional
            The calibration scores of each class, which a certificate does not store. With them, the page
            shows both classes and lets its reader choose another certified threshold.
        prevalence : float or pair of floats, optional
            The share of anomalies among future points; by default their share among the calibration points.
        metrics : Metrics, optional
            Error rates on held-out points, made by `evaluate`.
        detector : str, optional
            The name of the detector.
        reviews, audits : array-like, optional
            For a certificate of traffic, whose scores come first: its reviews, and the points drawn for
            audit. Then the page shows right and wrong alarms, and what more reviews would give.

        Raises
        ------
        InputError
            If these are not the scores that the certificate was made from, or the format is unknown.
        """
        from pac_wrap.report.render import write

        more: dict[str, Any] = {"metrics": metrics, "prevalence": prevalence}
        if self.traffic is not None:
            if prevalence is not None or metrics is not None:
                raise InputError("reports of traffic know no prevalence and no metrics; leave them out")
            more = {"reviews": reviews, "audits": audits}
        write(self, path, normal, anomalous, detector=detector, **more)

    def plot(
        self,
        normal: ArrayLike,
        anomalous: ArrayLike | None = None,
        ax: "Axes | None" = None,
        *,
        reviews: ArrayLike | None = None,
    ) -> "Axes":
        """Return axes with the scores of both classes and the thresholds drawn; needs matplotlib.

        Parameters
        ----------
        normal, anomalous : array-like of float
            Scores of labelled points of each class.
        ax : Axes, optional
            Where to draw; by default a new figure, which a notebook shows.
        reviews : array-like, optional
            For a certificate of traffic, whose scores come first: the reviews. Then the highest scores are
            drawn, found right, found wrong and not reviewed.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> calibrate(range(1000), range(900, 1900)).plot(range(1000), range(900, 1900)).get_ylabel()
        'share of the class (%)'
        """
        from pac_wrap.report.figures import plot_alarms, plot_scores

        if self.traffic is not None:
            return plot_alarms(self.rule, normal, reviews, ax)
        if anomalous is None:
            raise InputError("pass the scores of both classes")
        return plot_scores(self, normal, anomalous, ax=ax)

    def _repr_html_(self) -> str:
        from pac_wrap.report.render import notebook

        return notebook(self)

    def to_form(self) -> CertificateFile:
        """Return the content of the certificate's file."""
        deltas = {"normal": self.guarantee.delta_fpr, "anomalous": self.guarantee.delta_fnr}
        clauses = tuple(one.to_form(deltas[one.of.side]) for one in self.clauses)
        return CertificateFile(clauses=clauses, **{name: getattr(self, name) for name in _KEPT})

    @classmethod
    def from_form(cls, found: CertificateFile) -> Self:
        """Return the certificate of a file."""
        clauses = tuple(one.clause() for one in found.clauses)
        labels = [one.of.side for one in clauses]
        if set(labels) != set(LABELS) or labels != sorted(labels, reverse=True):
            raise CertificateError("a certificate has clauses about normal points, then about anomalous ones")
        asked = promise.asked_by(clauses, (found.clauses[0].delta, found.clauses[-1].delta))
        return cls(guarantee=asked, clauses=clauses, **{name: getattr(found, name) for name in _KEPT})

    _problems = inconsistencies


def no_certificate(
    given: object, wanted: str = "certificate must be a Certificate", **remedies: str
) -> InputError:
    """Return the error for an object that is not a certificate of two classes, with a remedy for its type."""
    name = type(given).__name__
    return InputError(f"{wanted}, got {name}; {remedies.get(name, 'load a file with Certificate.load')}")
