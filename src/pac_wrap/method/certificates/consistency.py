"""Whether what a certificate says follows from its own numbers: what was asked, counts and thresholds.

A file whose checksum fits may still have been made by anybody. What contradicts itself is not believed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from pac_wrap.base.floats import ScoreType, order_key, order_keys, rounded
from pac_wrap.base.text import quoted
from pac_wrap.method.clause import Clause
from pac_wrap.method.promise import LABELS, OF_DRAWS, OF_POOL, OF_SERIES, OF_SUBJECTS, assumed, check_kind
from pac_wrap.method.robust.weights import Weighting
from pac_wrap.method.strategies.interface import (
    MINUS,
    NO_COUNT,
    PLUS,
    REACHED,
    Asked,
    Count,
    Decision,
    Found,
    Key,
    Number,
    Strategy,
    are_separated,
    choose,
    count_of,
    ends_of,
    least,
    stacked,
)
from pac_wrap.method.thresholds import LARGEST
from pac_wrap.ranks.memory import Rank
from pac_wrap.tails.bounds import find_budget

if TYPE_CHECKING:
    from pac_wrap.method.certificates.certificate import Certificate

_NO_SCORES: Final = "0" * 16
# as Python's packages are numbered, and no longer than they are
_VERSION: Final = r"[0-9]{1,4}([.][0-9]{1,4}){0,3}((a|b|rc)[0-9]{1,4})?([.](post|dev)[0-9]{1,8}){0,2}"
# of each class; a certificate stays short enough to be read
MOST_KINDS: Final = 40
# so many scores of a class are more than any engine counts; the exact tail stays quick up to there
MOST_SCORES: Final = 10**12
NOTHING: Final = Found(np.nan, np.nan, NO_COUNT, MINUS, np.nan, np.nan)


class Told(NamedTuple):
    """What is told of populations, in one group or in many: points, what became of promises, and the rule.

    `edges` are the thresholds as numbers. NaN stands for one that is missing, and -1 for a missing count.
    """

    n: Any
    found: Sequence[Found]
    edges: Any
    beyond: Any
    rule: tuple[Number, Number]
    certified: Any
    separable: Count
    score_type: ScoreType

    def at(self, place: int) -> "Told":
        """Return what is told of one group of many."""

        def one(column: Any) -> Any:
            return column[place].item()

        n, edges, beyond, rule = ([*map(one, some)] for some in (self.n, self.edges, self.beyond, self.rule))
        found = [Found(*map(one, own)) for own in self.found]
        certified, separable = one(self.certified), one(self.separable)
        return Told(n, found, edges, beyond, (rule[0], rule[1]), certified, separable, self.score_type)


class _Recorded:
    """Ranks that answer with what is told; what is not is known only by order."""

    def __init__(self, asked: Sequence[Asked], told: Told, strategy: Strategy) -> None:
        self.n, self._asked, self._told, self._strategy = told.n, asked, told, strategy

    def at(self, p: int, k: Count) -> Key:
        """Return the key behind the threshold at its own rank, and else one that is surely less or more."""
        one, own, n = self._asked[p], self._told.found[p], self.n[p]
        rank, key = (n - own.errors, own.key - 1) if one.normal else (own.errors + 1, own.key)
        known = k == rank
        if self._strategy.counts(one):  # errors that were counted have a threshold of their own
            count = self._told.beyond[p]
            known = known | (k == (n - count if one.normal else count + 1))
        # where nothing is certified, all points lie on the wrong side
        few = own.errors < 0
        greater = (k > rank) | few if one.normal else (k > rank) & (few ^ True)
        beyond = choose(greater, np.uint64(PLUS), np.uint64(MINUS))
        return choose(known, key, beyond if isinstance(beyond, np.ndarray) else int(beyond))

    def below(self, p: int, key: Key) -> Count:
        """Return how many scores lie below the threshold that errors were counted at."""
        n, errors, beyond = self.n[p], self._told.found[p].errors, self._told.beyond[p]
        # where nothing is certified all points are errors
        count = choose(beyond == NO_COUNT, choose(errors == NO_COUNT, n, errors), beyond)
        return n - count if self._asked[p].normal else count

    def between(self, p: int, q: int, low: Key, high: Key, share: float) -> Key:
        """Return the key of the threshold that is told: which of the scores it is, only they know."""
        tau = rounded(self._told.rule[1], self._told.score_type)
        return least(order_keys(tau) if tau.ndim else order_key(float(tau)), REACHED)

    def prefetch(self, ranks: Iterable[Rank]) -> None:
        """Do nothing: all is told."""


def contradictions(asked: Sequence[Asked], strategy: Strategy, told: Told) -> Iterator[tuple[Any, str]]:
    """Yield in which groups something is wrong, and what; the quick checks first, on which others rely."""
    nobody: Any = True
    for one, n, own, edge, beyond in zip(asked, told.n, told.found, told.edges, told.beyond, strict=True):
        yield (n < 0) | (n > MOST_SCORES), f"there cannot be so many {one.of}"
        yield (beyond > n) | (beyond < NO_COUNT), f"there cannot be so many {one.of} beyond a threshold"
        yield (edge != edge) ^ (own.rate != own.rate), f"{one.of} have a threshold and a budget, or neither"
        yield one.normal & (edge == -inf), "alarm_from must lie above some score, so it cannot be -inf"
        with np.errstate(over="ignore"):
            behind = np.nextafter(edge, -inf) if one.normal else np.asarray(edge)
        number = np.where(abs(behind) < LARGEST, behind, 0.0)
        untyped = rounded(number, told.score_type) != number
        yield untyped, f"the score behind a threshold of {one.of} is not a {told.score_type}"
        nobody = nobody & (n == 0)
    yield nobody, "there is no score in either class"
    promised = {one.of.label for one in asked if one.promise is not None}
    if strategy.single and not strategy.one_sided and len(promised) < 2:
        yield True, f"{strategy.word} needs two ceilings, and one is asked for"
        return
    if strategy.on_arrays or not isinstance(told.n[0], np.ndarray):
        made = strategy.decide(asked, _Recorded(asked, told, strategy))
    else:
        groups = [told.at(place) for place in range(told.n[0].size)]
        made = stacked([strategy.decide(asked, _Recorded(asked, one, strategy)) for one in groups])
    yield from _differences(asked, strategy, told, made)
    yield from _miscounts(asked, told, made)


def _differences(
    asked: Sequence[Asked], strategy: Strategy, told: Told, made: Decision
) -> Iterator[tuple[Any, str]]:
    """Yield where something else is decided than is told."""
    uncertified = "what is certified does not follow from what was asked"
    asked_for: Any = True
    for p, one in enumerate(asked):
        own, again = told.found[p], made.found[p] or NOTHING
        there = own.rate == own.rate
        right = _same(own.rate, again.rate, strategy.digits) & (own.errors == again.errors)
        right = right & _same(own.delta, again.delta, strategy.digits if strategy.given else 0.0)
        yield right ^ True, f"the budget of {one.of} does not follow from what was asked and counted"
        if not isinstance(there, np.ndarray) and there and own.rate != again.rate:
            # its own rate, in which the last digits may differ, must carry its errors as well
            exact = count_of(find_budget(told.n[p], own.rate, own.delta).errors)
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
            yield (
                told.certified & (right ^ True),
                "what is asked for must be what the curve promises at the threshold",
            )
        outside = own.key > made.high if one.normal else own.key < made.low
        decides = there & (made.low == made.high) & made.certified
        yield decides & outside, "the threshold does not lie between alarm_from and clear_below"
    yield told.certified != made.certified, uncertified
    compared = "absent" if made.separable is None else "true or false"
    untold = told.separable == NO_COUNT
    yield untold ^ (made.separable is None), f"separable must be {compared} with this strategy"
    yield (
        asked_for & (told.separable == 0) & told.certified,
        "whether one threshold would keep what was asked does not follow from the rung",
    )
    low, high = ends_of(made.low, made.high, told.score_type)
    wrong = (told.rule[0] != low) | (told.rule[1] != high)
    yield wrong, "the rule does not follow from alarm_from and clear_below"


def _miscounts(asked: Sequence[Asked], told: Told, made: Decision) -> Iterator[tuple[Any, str]]:
    """Yield counts of points beyond the other class's threshold that no scores give: eq. (13)."""
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
        everything = made.clear == MINUS if one.normal else made.alarm == PLUS
        yield everything & wanted & (beyond != n), f"all {one.of} lie beyond the other threshold"
        if len(asked) == 2:
            # above the largest double there is no threshold left, so normal scores up there cross nothing
            free = few | (one.normal & (made.alarm == PLUS) & (made.clear == PLUS))
            within = (beyond <= own.errors) ^ are_separated(made.alarm, made.clear)
            yield wanted & within & (free ^ True), f"so many {one.of} beyond a threshold mean another regime"


def _same(one: Number, other: Number, digits: float) -> Any:
    return (one == other) | ((one != one) & (other != other)) | (abs(one - other) <= digits * abs(other))


def inconsistencies(certificate: "Certificate") -> Iterator[str]:
    """Yield what in a certificate contradicts itself, its own texts and those of a series included."""
    taken = certificate.sampling
    for label in LABELS:
        yield from _class_problems(certificate, label)
        n = certificate.sizes[label == "anomalous"]
        size, errors = getattr(taken, f"effective_{label}", None), getattr(taken, f"errors_{label}", None)
        if size is not None and size > n:
            yield f"{n:,} {label} scores cannot be worth {size:,.0f}"
        if errors is not None and errors > n:
            yield f"{errors:,} of {n:,} {label} scores cannot be errors"
    if certificate.guarantee.promises != tuple(one.asked for one in certificate.clauses if one.asked):
        yield "the clauses of a class were not asked for together"
    yield from version_problems(certificate.version)
    if certificate.lineage is not None:
        yield from certificate.lineage.problems(certificate.guarantee, certificate.overlap)
    usual = (OF_DRAWS, OF_SUBJECTS, OF_POOL) if taken is None else (OF_SERIES,)
    rooms = certificate.guarantee.rooms | {"weights": certificate.weighting is not None}
    if certificate.assumptions not in (assumed(one, **rooms) for one in usual):
        yield f"these are not the assumptions of {'draws' if taken is None else 'a series'}"
    if certificate.weighting is not None:
        yield from _weighting_problems(certificate, certificate.weighting)
    asked, told = _told(certificate)
    yield from (text for wrong, text in contradictions(asked, certificate.overlap, told) if wrong)


def _class_problems(certificate: "Certificate", label: Literal["normal", "anomalous"]) -> Iterator[str]:
    """Yield what contradicts itself in the clauses of a class; what binds, its strategy looks at."""
    clauses = certificate.of(label)
    kinds = [one.of.kind for one in clauses]
    if len(set(kinds)) < len(kinds) or len(kinds) > MOST_KINDS + 1:
        yield f"the {label} class must have 1 to {MOST_KINDS} kinds, each once"
    for one in clauses:
        yield from digest_problems(label, one.n, one.digest)
    if not certificate.by_kind:
        return
    if certificate.overlap.tag not in ("abstain", "hold"):
        yield f"{certificate.overlap.word} keeps no ceiling of a kind"
    points = sum(one.n for one in clauses if one.of.kind is not None)
    for one in clauses:
        if one.of.kind is not None:
            check_kind(one.of.kind)
        if one.of.kind is None and len(clauses) > 1 and one.n != points:
            yield f"all {label} points are {points:,}, not {one.n:,}"


def _told(certificate: "Certificate") -> tuple[list[Asked], Told]:
    """Return what was asked, and what a certificate tells of each of its populations."""
    deltas = {"normal": certificate.guarantee.delta_fpr, "anomalous": certificate.guarantee.delta_fnr}
    asked = [Asked(one.of, one.asked, deltas[one.of.label]) for one in certificate.clauses]

    def found(one: Clause) -> Found:
        kept = (nan, nan) if one.certified is None else (one.certified.ceiling, one.certified.delta)
        edge = order_key(0.0 if one.threshold is None else one.threshold)
        if one.budget is None:
            return NOTHING._replace(key=edge, ceiling=kept[0], level=kept[1])
        return Found(one.budget.rate, one.budget.delta, count_of(one.errors), edge, *kept)

    clauses = certificate.clauses
    return asked, Told(
        n=[one.n for one in clauses],
        found=[found(one) for one in clauses],
        edges=[nan if one.threshold is None else one.threshold for one in clauses],
        beyond=[count_of(one.beyond) for one in clauses],
        rule=(certificate.rule.normal_below, certificate.rule.anomaly_from),
        certified=not certificate.uncertified,
        separable=count_of(certificate.separable),
        score_type=certificate.score_type,
    )


def _weighting_problems(certificate: "Certificate", weighting: Weighting) -> Iterator[str]:
    sides = (
        ("normal", certificate.fpr, weighting.normal),
        ("anomalous", certificate.fnr, weighting.anomalous),
    )
    for place, (name, clause, offered) in enumerate(sides):
        size = clause.n if offered is None else offered
        if clause.n > size:
            yield f"{clause.n:,} {name} scores cannot survive of {size:,}"
        if weighting.digests is not None:
            digest = weighting.digests[place]
            yield from digest_problems(name, size, digest)
            if clause.n == size and digest != clause.digest:
                yield f"all {name} scores survived, and their digest is another one"
    if weighting.intervals and certificate.overlap.single:
        yield f"{certificate.overlap.word} takes no intervals of weights"


def digest_problems(name: str, n: int, digest: str | None) -> Iterator[str]:
    """Yield that a text is no digest of n scores of a class; None where none was taken."""
    if digest is not None and not re.fullmatch(r"[0-9a-f]{16}", digest):
        yield f"{quoted(digest)} is not a digest of {name} scores: 16 hexadecimal digits"
    if not n and digest != _NO_SCORES:
        yield f"the digest of no {name} scores is {_NO_SCORES}, not {digest}"


def version_problems(version: str) -> Iterator[str]:
    """Yield that a text is no version of this package."""
    if not re.fullmatch(_VERSION, version):
        yield f"{quoted(version)} is not a version of pac-wrap-ad"
