"""Scores by kind in, a certificate out whose ceilings hold for every kind."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_array, as_scores, type_of
from pac_wrap.base.floats import confidence_left, float_below
from pac_wrap.base.text import listed, quoted
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate, Kinds, Overlap
from pac_wrap.method.certificates.consistency import MOST_KINDS
from pac_wrap.method.certify import CHANGES, asked, signed, warn_of_scores
from pac_wrap.method.clause import Clause, asked_by, binding, warn_of_lacking
from pac_wrap.method.promise import Guarantee, Population, as_guarantee, check_kind, refuse_room
from pac_wrap.method.request import Request, as_strategy, certify_classes
from pac_wrap.method.source import Source
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.thresholds import LARGEST
from pac_wrap.tails.bounds import Sharing, split_confidence

Clauses = dict[str | None, Clause]
# how many points each kind of a class has; None is a class without kinds
Sizes = Mapping[str | None, int]
# the certificate of a normal and an anomalous kind by themselves; None is the whole class
Pair = Callable[[str | None, str | None, Request], Certificate]
# a part of which nothing is promised is looked at with some ceiling, which is then forgotten
_ANY: Final = 0.5


class Wanted(NamedTuple):
    """A part of a class, and what is asked of it."""

    name: str | None
    ceiling: float | None
    delta: float


@dataclass(frozen=True, slots=True)
class KindRequest:
    """What a calibration by kind is asked for, once the kinds are known.

    >>> asked = Guarantee(max_fpr=0.05, max_fnr={"a": 0.02, "b": 0.1}, confidence=0.94)
    >>> KindRequest.of(asked, Abstain(), {None: 500}, {"a": 300, "b": 300}).anomalous[0]
    Wanted(name='a', ceiling=0.02, delta=0.026622711)
    """

    normal: tuple[Wanted, ...]
    anomalous: tuple[Wanted, ...]
    overlap: Abstain | Hold

    @classmethod
    def of(
        cls,
        guarantee: Guarantee,
        overlap: object,
        normal: Sizes,
        anomalous: Sizes,
    ) -> "KindRequest":
        """Return what is asked of the kinds that each class has, so many points of each; None has no kind."""
        if not isinstance(overlap, Abstain | Hold) or (isinstance(overlap, Hold) and not overlap.always):
            word = quoted(getattr(overlap, "word", overlap))
            raise InputError(
                f"overlap {word} chooses its threshold for two classes as wholes, so it keeps no ceiling of a"
                " kind; use abstain, hold_fnr or hold_fpr"
            )
        refuse_room(guarantee, "a promise for each kind", "calibrate the kinds one by one")
        sizes = normal, anomalous
        ceilings = _ceilings(guarantee, "normal", normal), _ceilings(guarantee, "anomalous", anomalous)
        deltas = guarantee.delta_fpr, guarantee.delta_fnr
        if guarantee.together is not None:
            sharing = [
                _sharing(side, points, isinstance(overlap, Hold) and rate not in overlap.keeps)
                for side, points, rate in zip(ceilings, sizes, ("FPR", "FNR"), strict=True)
            ]
            deltas = (float_below(confidence_left(guarantee.together)),) * 2
            if all(one.points for one in sharing):
                deltas = split_confidence(guarantee.together, sharing[0], sharing[1])
        low, high = (
            tuple(Wanted(name, ceiling, delta) for name, ceiling in side.items())
            for side, delta in zip(ceilings, deltas, strict=True)
        )
        return cls(low, high, overlap)

    @classmethod
    def again(
        cls, certificate: Certificate, normal: Iterable[str | None], anomalous: Iterable[str | None]
    ) -> "KindRequest":
        """Return what was asked for a certificate, of the kinds that are there now."""

        def wanted(clauses: list[Clause], delta: float, kinds: Iterable[str | None]) -> tuple[Wanted, ...]:
            asked = {
                one.of.kind: Wanted(one.of.kind, None if one.asked is None else one.asked.ceiling, delta)
                for one in clauses
            }
            names = [*sorted(kind for kind in kinds if kind is not None), *([None] if None in asked else [])]
            unknown = Wanted(None, None, delta)
            # a class may have lost its kinds
            return tuple(asked.get(name, unknown._replace(name=name)) for name in dict.fromkeys(names)) or (
                unknown,
            )

        overlap, deltas = certificate.overlap, certificate.guarantee
        assert isinstance(overlap, Abstain | Hold)  # nothing else makes one
        return cls(
            wanted(certificate.of("normal"), deltas.delta_fpr, normal),
            wanted(certificate.of("anomalous"), deltas.delta_fnr, anomalous),
            overlap,
        )

    def certify(self, pair: Pair) -> Certificate:
        """Return the certificate, from those of pairs of kinds."""
        sides = self.normal, self.anomalous
        promised = [[one for one in side if one.ceiling is not None] for side in sides]
        held = self.overlap if isinstance(self.overlap, Hold) and all(promised) else None
        asked = replace(self.overlap) if isinstance(self.overlap, Abstain) else Abstain()
        made: dict[tuple[str | None, str | None], Certificate] = {}
        clauses: tuple[Clauses, Clauses] = ({}, {})
        for place in range(max(map(len, sides))):
            low, high = (side[min(place, len(side) - 1)] for side in sides)
            found = pair(low.name, high.name, Request(_both(low, high), asked))
            if low.ceiling is not None and high.ceiling is not None:
                made[low.name, high.name] = found
            clauses[0][low.name] = _of_kind(low, found.fpr)
            clauses[1][high.name] = _of_kind(high, found.fnr)
        if held is not None:
            return self._held(held, pair, clauses)
        low, high = (
            _of(side, binding(list(own.values()), counted=False).of.kind)
            for side, own in zip(sides, clauses, strict=True)
        )
        bound = made.get((low.name, high.name))
        if bound is None:
            fill = None if any(promised) else _ANY
            bound = pair(low.name, high.name, Request(_both(low, high, fill=fill), asked))
        return self._made(bound, clauses)

    def _held(self, held: Hold, pair: Pair, clauses: "tuple[Clauses, Clauses]") -> Certificate:
        """Return the certificate of one threshold, from the held class; each other kind by its own count."""
        mine, other = (1, 0) if held.rate == "fnr" else (0, 1)
        sides = self.normal, self.anomalous
        if held.rate == "fnr":  # as the strategy has it: a threshold at inf must be reached
            for name, clause in clauses[1].items():
                if clause.threshold is not None:
                    clauses[1][name] = replace(clause, threshold=min(clause.threshold, LARGEST))
        first = _of(sides[mine], binding(list(clauses[mine].values()), counted=False).of.kind)
        bound: Certificate | None = None
        worst = -1.0
        for one in sides[other]:
            if one.ceiling is None:
                continue
            low, high = (one, first) if mine else (first, one)
            found = pair(low.name, high.name, Request(_both(low, high), held))
            clause = found.fpr if mine else found.fnr
            clauses[other][one.name] = _of_kind(one, clause)
            rate = 2.0 if clause.ceiling is None else clause.ceiling
            if bound is None or rate > worst:
                bound, worst = found, rate
        assert bound is not None  # a class that is not held has a promise
        return self._made(bound, clauses)

    def _made(self, bound: Certificate, clauses: "tuple[Clauses, Clauses]") -> Certificate:
        """Return the certificate of all kinds, with the rule and the counts of the two that bind."""
        for side, found in zip(clauses, (bound.fpr, bound.fnr), strict=True):
            for name, one in side.items():
                if one.asked is not None and (one.n, one.digest, one.threshold) == (
                    found.n,
                    found.digest,
                    found.threshold,
                ):
                    side[name] = replace(one, beyond=found.beyond)
        whole = (*clauses[0].values(), *clauses[1].values())
        return replace(
            bound,
            guarantee=asked_by(whole, (self.normal[0].delta, self.anomalous[0].delta)),
            clauses=whole,
        )


def calibrate_kinds(
    normal: ArrayLike | Kinds,
    anomalous: ArrayLike | Kinds,
    guarantee: Guarantee | Request | None = None,
    overlap: str | Overlap | None = None,
) -> Certificate:
    """Return the certificate for scores by kind; `calibrate` calls it for mappings."""
    asked, strategy = asked_of_kinds(guarantee, overlap)
    scores = _by_kind(normal, "normal"), _by_kind(anomalous, "anomalous")
    _refuse_empty(*scores)
    sizes = ({name: points.size for name, points in side.items()} for side in scores)
    return KindRequest.of(asked, strategy, *sizes).certify(_pairs(*scores))


def asked_of_kinds(
    guarantee: Guarantee | Request | None, overlap: str | Overlap | None
) -> tuple[Guarantee, Overlap]:
    """Return the promises and the strategy that the arguments of an entrance ask for."""
    if isinstance(guarantee, Request):
        return guarantee.guarantee, Request.of(guarantee, overlap).overlap
    return as_guarantee(guarantee, by_kind=True), Abstain() if overlap is None else as_strategy(overlap)


def recalibrate_kinds(
    certificate: Certificate, normal: ArrayLike | Kinds, anomalous: ArrayLike | Kinds
) -> Certificate:
    """Return what a certificate's request makes of scores by kind."""
    scores = _by_kind(normal, "normal"), _by_kind(anomalous, "anomalous")
    _refuse_empty(*scores)
    return KindRequest.again(certificate, *scores).certify(_pairs(*scores))


def _refuse_empty(low: dict[str | None, NDArray[Any]], high: dict[str | None, NDArray[Any]]) -> None:
    """Refuse a part without scores in each class: a certificate of those two would rest on nothing."""
    none = [[name for name, scores in side.items() if not scores.size] for side in (low, high)]
    if all(none):
        names = ("" if one[0] is None else f" {quoted(one[0])}" for one in none)
        raise InputError("normal{} and anomalous{} are both empty; pass scores of one of them".format(*names))


def _pairs(low: dict[str | None, NDArray[Any]], high: dict[str | None, NDArray[Any]]) -> Pair:
    if type_of(*low.values(), *high.values()) == "float64":  # of one type, which every pair then has
        low, high = ({name: as_scores(one) for name, one in side.items()} for side in (low, high))

    def pair(one: str | None, other: str | None, wanted: Request) -> Certificate:
        return certify_classes(wanted, _whole(low, one), _whole(high, other))

    return pair


def _by_kind(given: ArrayLike | Kinds, label: str) -> dict[str | None, NDArray[Any]]:
    """Return the scores of each kind, checked; those of a class without kinds under None."""
    if not isinstance(given, Mapping):
        return {None: as_array(given, label)}
    found: dict[str | None, NDArray[Any]] = {}
    for kind, scores in given.items():
        name = f"{label} scores of {quoted(check_kind(kind))}"
        found[kind] = as_array(scores, name)
        as_scores(found[kind], name)
    return found


def _whole(side: dict[str | None, NDArray[Any]], kind: str | None) -> NDArray[Any]:
    return side[kind] if kind in side else np.concatenate(list(side.values()))


def _ceilings(
    guarantee: Guarantee, label: Literal["normal", "anomalous"], sizes: Sizes
) -> dict[str | None, float | None]:
    """Return the ceiling of every part of a class, all of it last."""
    option = "max_fpr" if label == "normal" else "max_fnr"
    whole = guarantee.max_fpr if label == "normal" else guarantee.max_fnr
    named = {one.kind: one.ceiling for one in guarantee.kinds if one.label == label}
    kinds = [kind for kind in sizes if kind is not None]
    if None in sizes:
        if named:
            raise InputError(
                f"{option} names kinds, but the {label} scores come without kinds; pass {{kind: scores}}"
            )
        return {None: whole}
    if not kinds or len(kinds) > MOST_KINDS:
        raise InputError(f"{label} scores must have 1 to {MOST_KINDS} kinds, got {len(kinds):,}; merge some")
    kinds.sort()  # so that the order in which they come changes nothing
    if not named:
        return dict.fromkeys(kinds, whole)
    for kind in kinds:
        if kind not in named:
            raise InputError(
                f"{option} has no ceiling for the {label} kind {quoted(kind)}; give it one, or None to"
                " promise nothing of it"
            )
    for kind in named:
        if kind not in kinds:
            raise InputError(
                f"{option} has a ceiling for {quoted(kind)}, of which there are no {label} scores; the kinds"
                f" are {listed(map(quoted, kinds))}"
            )
    parts: dict[str | None, float | None] = {kind: named[kind] for kind in kinds}
    return parts if whole is None else parts | {None: whole}


def _sharing(ceilings: Mapping[str | None, float | None], sizes: Sizes, counted: bool) -> Sharing:
    """Return a class as it shares a confidence: its promises, that of all kinds together last."""
    promised = {name: rate for name, rate in ceilings.items() if rate is not None}
    points = tuple(sizes[name] if name in sizes else sum(sizes.values()) for name in promised)
    return Sharing(points, tuple(promised.values()), counted, None in promised and len(promised) > 1)


def _of(side: tuple[Wanted, ...], name: str | None) -> Wanted:
    """Return what is asked of a part; of a whole class without a ceiling, nothing."""
    return next((one for one in side if one.name == name), Wanted(None, None, side[0].delta))


def _both(low: Wanted, high: Wanted, fill: float | None = _ANY) -> Guarantee:
    max_fpr, max_fnr = (fill if one.ceiling is None else one.ceiling for one in (low, high))
    return Guarantee(max_fpr, max_fnr, low.delta, high.delta)


def _of_kind(wanted: Wanted, found: Clause) -> Clause:
    """Return the clause of a pair's certificate as that of a kind."""
    of = replace(found.of, kind=wanted.name)
    if wanted.ceiling is None:
        return Clause(of, None, None, found.n, found.digest)
    asked, certified = (
        None if one is None else replace(one, of=of) for one in (found.asked, found.certified)
    )
    return replace(found, of=of, asked=asked, certified=certified, beyond=None)


def certify_kinds(source: Source, request: Callable[[Sizes, Sizes], KindRequest]) -> Certificate:
    """Return what is asked of kinds, once it is known how many points of each there are."""
    counted = source.populations()
    names = [
        {one.kind: count or 0 for one, count in counted.items() if one.label == label}
        for label in ("normal", "anomalous")
    ]
    wanted_of = request(*(side or {None: 0} for side in names))
    pairs: dict[tuple[Population, Population], None] = {}

    def pair(normal: str | None, anomalous: str | None, wanted: Request) -> Certificate:
        of = Population("normal", normal), Population("anomalous", anomalous)
        pairs[of] = None
        return source.answer(of, partial(asked, wanted))

    made = wanted_of.certify(pair)
    for one in made.clauses:
        counts = names[one.of.label == "anomalous"]
        if one.n != counts.get(one.of.kind, sum(counts.values())):
            raise InputError(CHANGES)
    warn_of_scores(source, pairs)
    warn_of_lacking(made.clauses)
    return signed(source, made)
