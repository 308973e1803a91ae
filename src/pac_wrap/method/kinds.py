"""Calibration by kind: scores of each kind in, a certificate out whose ceilings hold for every kind."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_array, as_scores, check_same_length, type_of
from pac_wrap.base.floats import ScoreType, confidence_left, float_below
from pac_wrap.base.text import amount, listed, quoted
from pac_wrap.errors import InputError
from pac_wrap.method import calibrate, promise
from pac_wrap.method.calibrate import Request, as_strategy
from pac_wrap.method.certificate import MOST_KINDS, Certificate, Kinds, Overlap
from pac_wrap.method.groups.values import Coded, GroupColumn, coded, text_of
from pac_wrap.method.promise import LABELS, Guarantee, Label, Population
from pac_wrap.method.source import CLASSES, Source
from pac_wrap.method.strategies.interface import Abstain, Asked, Hold
from pac_wrap.ranks.memory import Rank, Ranked, unchecked, warn_of_labels
from pac_wrap.tails.bounds import Sharing, split_confidence

# how many points each kind of a class has; None stands for a class without kinds
Sizes = Mapping[str | None, int]


@dataclass(frozen=True, slots=True)
class KindRequest:
    """A request for a calibration by kind, once the kinds are known: for each kind, or all kinds together."""

    asked: tuple[Asked, ...]
    overlap: Overlap
    guarantee: Guarantee

    @classmethod
    def of(cls, guarantee: Guarantee, overlap: object, normal: Sizes, anomalous: Sizes) -> "KindRequest":
        """Return the request about the kinds of each class, given their sizes; None for no kinds."""
        if not isinstance(overlap, Abstain | Hold) or (isinstance(overlap, Hold) and not overlap.always):
            word = quoted(getattr(overlap, "word", overlap))
            raise InputError(
                f"overlap {word} chooses its threshold for whole classes, so it cannot keep a ceiling for"
                " each kind; use abstain, hold_fnr or hold_fpr"
            )
        promise.refuse_tolerance(guarantee, "a promise for each kind", "calibrate the kinds one by one")
        sizes = normal, anomalous
        ceilings = [_ceilings(guarantee, label, side) for label, side in zip(LABELS, sizes, strict=True)]
        deltas = guarantee.delta_fpr, guarantee.delta_fnr
        if guarantee.together is not None:
            sharing = []
            for side, points, rate in zip(ceilings, sizes, ("FPR", "FNR"), strict=True):
                # the promise of all kinds together stands last
                promised = {kind: ceiling for kind, ceiling in side.items() if ceiling is not None}
                counts = tuple(points.get(kind, sum(points.values())) for kind in promised)
                counted, whole = rate not in overlap.keeps, None in promised and len(promised) > 1
                sharing.append(Sharing(counts, tuple(promised.values()), counted, whole))
            deltas = (float_below(confidence_left(guarantee.together)),) * 2
            if all(one.points for one in sharing):
                deltas = split_confidence(guarantee.together, sharing[0], sharing[1])
        # a class without kinds has a number, and not a mapping
        low, high = (side[None] if side.keys() == {None} else side for side in ceilings)
        wanted = Guarantee(low, high, *deltas)
        promises = {one.of: one for one in wanted.promises}
        asked = (
            Asked(of, promises.get(of), delta)
            for label, side, delta in zip(LABELS, ceilings, deltas, strict=True)
            for of in (Population(label, kind) for kind in side)
        )
        return cls(tuple(asked), overlap, wanted)

    @classmethod
    def again(cls, certificate: Certificate, *kinds: Iterable[str | None]) -> "KindRequest":
        """Return the request of a certificate, for the kinds that each class has now."""
        was, asked = certificate.guarantee, []
        for label, delta, there in zip(LABELS, (was.delta_fpr, was.delta_fnr), kinds, strict=True):
            before = {one.of.kind: one.asked for one in certificate.of(label)}
            names = [*sorted(kind for kind in there if kind is not None), *([None] if None in before else [])]
            # a class may have lost its kinds
            for kind in dict.fromkeys(names) or (None,):
                asked.append(Asked(Population(label, kind), before.get(kind), delta))
        return cls(tuple(asked), certificate.overlap, was)

    @property
    def _strategy(self) -> Overlap:
        """The strategy that decides; with promises about only one class, no ceiling is held."""
        promised = {one.of.label for one in self.asked if one.promise is not None}
        return self.overlap if len(promised) == 2 or isinstance(self.overlap, Abstain) else Abstain()

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of populations that are compared, each population at least once."""
        low = [p for p, one in enumerate(self.asked) if one.normal]
        high = [p for p, one in enumerate(self.asked) if not one.normal]
        places = range(max(len(low), len(high)))
        return [(low[min(place, len(low) - 1)], high[min(place, len(high) - 1)]) for place in places]

    def ranks(self, sizes: Sequence[int]) -> Iterator[Rank]:
        yield from self._strategy.ranks(self.asked, sizes)

    def certify(self, *ranked: Ranked, score_type: ScoreType) -> Certificate:
        return calibrate.certificate_of(self.guarantee, self.asked, self._strategy, ranked, score_type)


def asked_of_kinds(
    guarantee: Guarantee | Request | None, overlap: str | Overlap | None
) -> tuple[Guarantee, Overlap]:
    """Return the guarantee and the strategy of a function's arguments."""
    if isinstance(guarantee, Request):
        return guarantee.guarantee, Request.of(guarantee, overlap).overlap
    strategy = Abstain() if overlap is None else as_strategy(overlap)
    return promise.as_guarantee(guarantee, by_kind=True), strategy


def certify_mappings(
    request: Callable[[Sizes, Sizes], KindRequest], normal: ArrayLike | Kinds, anomalous: ArrayLike | Kinds
) -> Certificate:
    """Return the certificate of kinds whose scores are in memory, in a mapping for one class or both."""
    scores = _by_kind(normal, "normal"), _by_kind(anomalous, "anomalous")
    empty = [[name for name, points in side.items() if not points.size] for side in scores]
    if all(empty):  # a certificate of these two would have no basis
        low, high = ("" if kinds[0] is None else f" {quoted(kinds[0])}" for kinds in empty)
        raise InputError(f"normal{low} and anomalous{high} are both empty; pass scores of one of them")
    wanted = request(*({name: points.size for name, points in side.items()} for side in scores))
    given, names = [], [one.of.label for one in wanted.asked]
    for one in wanted.asked:
        side = scores[not one.normal]
        given.append(side[one.of.kind] if one.of.kind in side else np.concatenate(list(side.values())))
    ranked = calibrate.in_memory([*map(unchecked, given, names)], names, wanted.ranks)
    for p, q in wanted.pairs:
        if ranked[p].size and ranked[q].size:
            warn_of_labels(ranked[p], ranked[q], draws=True)
    return wanted.certify(*ranked, score_type=type_of(*given))


def _by_kind(given: ArrayLike | Kinds, label: str) -> dict[str | None, NDArray[Any]]:
    """Return the scores of each kind, checked; those of a class without kinds under None."""
    if not isinstance(given, Mapping):
        return {None: as_array(given, label)}
    found: dict[str | None, NDArray[Any]] = {}
    for kind, scores in given.items():
        name = f"{label} scores of {quoted(promise.check_kind(kind))}"
        found[kind] = as_array(scores, name)
        as_scores(found[kind], name)
    return found


def certify_kinds(source: Source, request: Callable[[Sizes, Sizes], KindRequest]) -> Certificate:
    """Return the certificate of kinds; the request is made once the size of each kind is known."""
    known = source.populations()
    names = [{one.kind: count or 0 for one, count in known.items() if one.label == label} for label in LABELS]
    wanted = request(*(side or {None: 0} for side in names))
    of = [one.of for one in wanted.asked]
    made = source.answer(of, partial(calibrate.answered, wanted))
    for one in made.clauses:
        counts = names[one.of.label == "anomalous"]
        if one.n != counts.get(one.of.kind, sum(counts.values())):
            raise InputError(calibrate.CHANGES)
    calibrate.warn_of_scores(source, [(of[p], of[q]) for p, q in wanted.pairs])
    promise.warn_of_lacking(made.clauses)
    return made.with_provenance(**source.origin())


def classes_by_kind(
    scores: NDArray[Any], marks: NDArray[np.bool_], kinds: GroupColumn
) -> tuple[NDArray[Any] | Kinds, NDArray[Any] | Kinds]:
    """Return the scores of each class by the kinds in a column, or in one array for a class without kinds."""
    column = coded_kinds(kinds, "kinds")
    check_same_length("scores", scores.size, "kinds", column.codes.size)
    counts = np.bincount(2 * column.codes + marks, minlength=2 * len(column.values))
    counted: Counter[tuple[int, Any]] = Counter()
    for code, count in enumerate(counts.tolist()):
        counted[code % 2, column.values[code // 2]] += count
    known = populations_of("kinds", [(*which, count) for which, count in counted.items() if count])
    codes = population_codes(known, marks, column)
    sides: list[NDArray[Any] | Kinds] = []
    for label in LABELS:
        own = {one.kind: scores[codes == code] for code, one in enumerate(known) if one.label == label}
        sides.append(own[None] if None in own else {str(kind): points for kind, points in own.items()})
    return sides[0], sides[1]


def coded_kinds(column: GroupColumn, name: str) -> Coded:
    """Return the kinds of a column as texts, None for a missing kind, and the number of each row's kind."""
    found = coded(column, "kinds")
    if any(isinstance(value, float) for value in found.values):
        raise not_kinds(name, getattr(column, "dtype", "float"))
    return Coded(found.codes, tuple(text_of(value) or None for value in found.values))


def not_kinds(column: str, kind: object) -> InputError:
    """Return the error for a column of a wrong type, such as floats, whose texts are ambiguous."""
    return InputError(
        f"column {column!r} must hold kinds: texts, whole numbers, dates or booleans, but its type"
        f" is {kind}; convert it to text"
    )


def population_codes(known: Iterable[Population], marks: NDArray[np.bool_], kinds: Coded) -> NDArray[np.intp]:
    """Return the number of each row's population."""
    codes = np.full(marks.size, -1)
    for code, one in enumerate(known):
        same = np.array([one.kind in (None, text) for text in kinds.values] or [False])
        codes[(marks == (one.label == "anomalous")) & same[kinds.codes]] = code
    return codes


def populations_of(
    column: str, counted: Sequence[tuple[int, str | None, int]]
) -> dict[Population, int | None]:
    """Return the kinds of both classes, from the class, the kind and the number of rows of each kind."""
    found: dict[Population, int | None] = {}
    for mark, whole in enumerate(CLASSES):
        label = whole.label
        rows = {kind: count for one, kind, count in counted if one == mark}
        missing = rows.pop(None, 0)
        if rows and missing:
            raise InputError(
                f"column {quoted(column)} is empty in {amount(missing, 'row')} of {label} points, while other"
                f" {label} rows have a kind; name the kind of all of them, or of none"
            )
        if len(rows) > MOST_KINDS:
            raise InputError(
                f"column {quoted(column)} names {len(rows):,} kinds of {label} points; at most {MOST_KINDS}"
                " can have their own ceilings, so merge some"
            )
        for kind in sorted(map(promise.check_kind, filter(None, rows))):
            found[Population(label, kind)] = rows[kind]
        if not rows:
            found[Population(label)] = missing
    return found


def _ceilings(guarantee: Guarantee, label: Label, sizes: Sizes) -> dict[str | None, float | None]:
    """Return the ceiling of every kind of a class, with that of all kinds together last."""
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
    kinds.sort()  # so that their order has no effect
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
                f"{option} has a ceiling for {quoted(kind)}, but no {label} scores have that kind; the kinds"
                f" are {listed(map(quoted, kinds))}"
            )
    parts: dict[str | None, float | None] = {kind: named[kind] for kind in kinds}
    return parts if whole is None else parts | {None: whole}
