"""Points that come in units, such as machines, patients or days: independent units, any dependence within.

The promise is about a random point of a random future unit, eq. (151), or about events and days, which have
one score each.
"""

import secrets
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from math import inf
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_labelled, as_scores, check_aligned, check_same_length, type_of
from pac_wrap.base.floats import from_order_key
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request, certificate_of, in_memory
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.values import Coded, GroupColumn, coded, text_of
from pac_wrap.method.metrics import Measured
from pac_wrap.method.promise import LABELS, Promise, of_units, refuse_tolerance
from pac_wrap.method.provenance import Day, Event, Units
from pac_wrap.method.strategies.interface import PLUS, Abstain, Hold, asked_of
from pac_wrap.ranks.memory import warn_of_labels
from pac_wrap.tails.bounds import Budget, MeanRate, Rate, sf_at_most
from pac_wrap.tails.units import highest_mean, refutes

Codes = NDArray[np.int64]
_BYTES: Final = 8
_SIGNIFICANT: Final = 0.05
# up to here (152) needs no more units without an error than points
_HIGHEST: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class UnitTest:
    """The points of a class in units: rising scores, the place of each one's unit, and the points of units.

    Places are in the random order of the test.
    """

    scores: NDArray[Any]
    places: Codes
    points: Codes
    normal: bool

    def __call__(self, promise: Promise, key: int | None) -> Budget | None:
        """Return the budget of a promise, or that of the errors at the key of a threshold."""
        n, delta = self.scores.size, promise.delta
        if key is None:
            return Budget(n, promise.at_calibration, delta, self._most_errors(promise), 1.0 - delta)
        end = int(np.searchsorted(self.scores, from_order_key(key))) if key < PLUS else n
        beyond = slice(end, n) if self.normal else slice(0, end)
        rate = highest_mean(self._shares(beyond), delta)
        return None if rate >= 1.0 else Budget(n, rate, delta, n - end if self.normal else end, 1.0 - delta)

    def _most_errors(self, promise: Promise) -> int | None:
        """Return the most points that may be errors, None if not even none may: Theorem 48.

        No share falls as errors are added, so what is refuted with some errors is refuted with fewer.
        """
        n = self.scores.size

        def too_many(k: int) -> bool:
            # with equal scores fewer than k points are errors
            beyond = slice(0, np.searchsorted(self.scores, self.scores[k]))
            if self.normal:
                beyond = slice(np.searchsorted(self.scores, self.scores[n - 1 - k], side="right"), n)
            return not refutes(self._shares(beyond), promise.at_calibration, promise.delta)

        most = bisect_left(range(n), True, key=too_many) - 1
        return None if most < 0 else most

    def _shares(self, beyond: slice) -> NDArray[np.float64]:
        return np.bincount(self.places[beyond], minlength=self.points.size) / self.points


def certify_units(
    request: Request,
    scores: ArrayLike,
    labels: ArrayLike,
    units: GroupColumn,
    counted: Units | None = None,
) -> Certificate:
    """Return the certificate of points in units; with `counted`, in the order of an earlier certificate."""
    given, values, mask = as_labelled(scores, labels, request.anomaly_label)
    found, events = _with_events(units, scores, values.size)
    counted = counted or Units(None)
    of_class = [np.flatnonzero(mask == side) for side in (False, True)]
    numbers = [np.bincount(found.codes[rows], minlength=len(found.values)) for rows in of_class]
    both = int(np.count_nonzero(np.minimum(*numbers)))
    _check_request(request, both)
    how = counted.day, counted.event
    sides = zip(of_class, how, strict=True)
    chosen = [_one_each(given[rows], found.codes[rows], one, events[rows]) for rows, one in sides]
    tested = [bool((np.bincount(codes) > 1).any()) if codes.size else False for _, codes, _ in chosen]
    if any(tested) and counted.order is None:
        counted = replace(counted, order=secrets.token_hex(_BYTES))
    # the numbers of points say nothing about the deltas of dependent ones
    asked = list(asked_of((request.fixed if both or any(tested) else request).guarantee))
    for side, (own, codes, _) in enumerate(chosen):
        promise = asked[side].promise
        if tested[side] and promise is not None and promise.at_calibration > _HIGHEST:
            raise InputError(f"a ceiling for points in units must be at most {_HIGHEST}; ask for a lower one")
        if tested[side]:
            test = _test_of(own, codes, found, str(counted.order), side == 0)
            asked[side] = asked[side]._replace(test=test, units=test.points.size)
    ranked = in_memory([own for own, *_ in chosen], LABELS, request.ranks)
    if ranked[0].size and ranked[1].size:
        warn_of_labels(*ranked, draws=False)
    made = certificate_of(request.guarantee, asked, request.overlap, ranked, type_of(given))
    short = int(np.count_nonzero(chosen[1][2]))
    if short and made.fnr.certified and made.rule.normal_below == -inf:
        raise InputError(
            f"{short:,} of {made.fnr.n:,} events have fewer points than it takes alarms to notice one, so no"
            " threshold notices them, and the ceiling allows fewer misses; ask for fewer alarms"
        )
    # by its definition an event or a day has one score in its unit, unless an event is named beside its unit
    one_by_chance = [
        asked[side].promise is not None
        and not tested[side]
        and (how[side] is None or (side == 1 and events is not found.codes))
        for side in (0, 1)
    ]
    return replace(made, assumptions=of_units(both > 0, any(one_by_chance)), units=counted)


def _rate_of(wrong: NDArray[np.bool_], codes: Codes, confidence: float) -> tuple[Rate, NDArray[np.float64]]:
    """Return the share of errors among points and its interval, and the share of each unit."""
    _, numbers, points = np.unique(codes, return_inverse=True, return_counts=True)
    shares, count = np.bincount(numbers, wrong) / points, int(np.count_nonzero(wrong))
    if points.size == wrong.size:
        return Rate.of(count, wrong.size, confidence), shares
    level = (1.0 - confidence) / 2.0
    ends = 1.0 - highest_mean(1.0 - shares, level), highest_mean(shares, level)
    return MeanRate(count, wrong.size, *ends, float(shares.mean())), shares


def measured_units(
    certificate: Certificate,
    scores: tuple[Any, Any],
    units: tuple[GroupColumn, GroupColumn] | None,
    confidence: float,
) -> tuple[Measured, ...]:
    """Return the error rates of held-out units, events or days, with intervals over units.

    A rate is significantly above its ceiling if its test at 2.5 % says so; for points in units, (152) for the
    shares of points that are no errors.
    """
    if units is not None:
        _check_pair(units)
    check_in_units(certificate, units)
    assert certificate.units is not None
    assert units is not None
    found = []
    counted = certificate.units.day, certificate.units.event
    for clause, own, of, how, error in zip(certificate.clauses, scores, units, counted, (1, 0), strict=True):
        values = as_scores(own, f"{clause.of.label} scores", missing=True)
        in_units, events = _with_events(of, own, values.size)
        some, codes, short = _one_each(values, in_units.codes, how, events)
        verdicts = certificate.verdicts(some)
        wrong = (verdicts == error) | (short & (error == 0))
        rate, shares = _rate_of(wrong, codes, confidence)
        ceiling, level = clause.ceiling if clause.kept else None, _SIGNIFICANT / 2
        if ceiling is None or not shares.size:
            over = False
        elif isinstance(rate, MeanRate):
            over = bool(refutes(1.0 - shares, 1.0 - ceiling, level))
        else:
            over = sf_at_most(rate.count, rate.n, ceiling, level)
        name = f"{clause.of.label} points" if how is None else f"{type(how).__name__.lower()}s"
        found.append(Measured(name, ceiling, rate, _rate_of(verdicts < 0, codes, confidence)[0], over))
    return tuple(found)


def shares_of_units(
    certificate: Certificate,
    verdicts: NDArray[np.int8],
    marks: NDArray[np.int8],
    units: GroupColumn,
    beside: Any,
) -> tuple[NDArray[np.float64], list[Any]]:
    """Return the share of errors of each unit, by class and NaN without points of it, and names of units.

    Units come in the order of their first rows; `marks` are labels, -1 for a row that does not count.
    """
    named, events = _with_events(units, beside, verdicts.size, "verdicts")
    _, first, codes = np.unique(named.codes, return_index=True, return_inverse=True)
    codes, counted = np.argsort(np.argsort(first))[codes], certificate.units or Units(None)
    names = [named.values[code] for code in named.codes[np.sort(first)].tolist()]
    # as if verdicts were scores: normal, undecided, anomaly
    heights, shares = np.array([0.0, 2.0, 1.0])[verdicts], []
    for side, (how, clause) in enumerate(zip((counted.day, counted.event), certificate.clauses, strict=True)):
        rows = np.flatnonzero(marks == side)
        found, of, _ = _one_each(heights[rows], codes[rows], how, events[rows])
        wrong, points = found == 2.0 if side == 0 else found <= 0.0, np.bincount(of, minlength=first.size)
        if clause.certified is not None and clause.units is None and (points > 1).any():
            one = "event" if how else f"{clause.of.label} point"
            raise InputError(
                f"the certificate was made from units with one {one} each, got a unit with"
                f" {points.max():,}; make it from units like these"
            )
        with np.errstate(invalid="ignore"):
            shares.append(np.bincount(of, wrong, minlength=first.size) / points)
    return np.array(shares), names


def counted_as(per: Event | Day | Iterable[Event | Day] | None) -> Units:
    """Return how units are counted: by their points, as events, as days, or as events and days."""
    listed = [] if per is None else list(per) if isinstance(per, (list, tuple)) else [per]
    kinds = [type(one) for one in listed]
    if not set(kinds) <= {Event, Day} or len(set(kinds)) < len(kinds):
        raise InputError(f"per must be an Event, a Day, or one of each, got {quoted(per)}")
    found: dict[str, Any] = {type(one).__name__.lower(): one for one in listed}
    return Units(None, **found)


def as_units(units: GroupColumn, beside: Any, rows: int, name: str = "scores") -> Coded:
    """Return the units in order and the number of each row's unit; a missing one raises an error."""
    check_aligned(name, beside, "units", units)
    found = coded(units, "units")
    check_same_length(name, rows, "units", found.codes.size)
    if None in found.values:
        missing = np.flatnonzero(found.codes == found.values.index(None))
        raise InputError(
            f"units must be known, but {missing.size:,} of {rows:,} are missing, the first at position"
            f" {missing[0]:,}; give each of these rows a unit of its own"
        )
    return found


def _check_pair(units: object) -> None:
    if not isinstance(units, tuple | list) or len(units) != 2:
        raise InputError(
            "units must be a pair: the units of the normal points and those of the anomalous ones"
        )


def check_in_units(certificate: Certificate, units: object) -> None:
    """Refuse units for a certificate that was made without them, and none for one that was made with them."""
    if (units is None) != (certificate.units is None):
        raise InputError(
            "this certificate was made without units; remove units"
            if certificate.units is None
            else "this certificate was made with units; pass units=(of normal points, of anomalous points)"
        )


def both_classes(units: tuple[GroupColumn, GroupColumn]) -> NDArray[Any]:
    """Return the units of both classes below each other, with names that are read as at calibration."""
    _check_pair(units)

    def named(column: GroupColumn) -> NDArray[Any]:
        found = coded(column, "units")
        return np.array([*found.values, None], dtype=object)[found.codes]

    return np.concatenate([np.stack([named(one) for one in _columns(own)], axis=-1) for own in units])


def _columns(units: GroupColumn) -> tuple[GroupColumn, ...]:
    """Return the column of units, or those of units and of events."""
    shape = np.shape(units if hasattr(units, "ndim") else np.asarray(units, dtype=object))
    if len(shape) != 2:
        return (units,)
    if shape[1] in (1, 2):
        return tuple(np.asarray(units).T)
    raise InputError(f"units must be one column, or pairs of a unit and an event, got {shape[1]:,} columns")


def _with_events(units: GroupColumn, beside: Any, rows: int, name: str = "scores") -> tuple[Coded, Codes]:
    """Return the units and the number of each row's event: its unit, if units are not pairs with an event."""
    found, *events = (as_units(one, beside, rows, name) for one in _columns(units))
    if not events:
        return found, found.codes
    return found, found.codes * len(events[0].values) + events[0].codes


def _check_request(request: Request, both: int) -> None:
    """Refuse promises and strategies without a proof for units."""
    refuse_tolerance(request.guarantee, "a promise about units", "remove both")
    if not isinstance(request.overlap, Abstain | Hold):
        raise InputError(
            'units need overlap="abstain", overlap="hold_fpr" or overlap="hold_fnr", got'
            f' "{request.overlap.word}"; there is no proof for other strategies'
        )
    if both and isinstance(request.overlap, Hold):
        raise InputError(
            f"{request.overlap.word} needs units with points of one class each, and {both:,} have points of"
            ' both, so that the classes depend on each other; use overlap="abstain"'
        )


def _one_each(
    scores: NDArray[Any], codes: Codes, how: Day | Event | None, events: Codes
) -> tuple[NDArray[Any], Codes, NDArray[np.bool_]]:
    """Return the score of each event or day, its unit, and whether it has none; points as they are.

    It is the n-th largest of its first points, -inf if there are fewer.
    """
    if how is None:
        return scores, codes, np.zeros(scores.size, dtype=bool)
    n, first = (how.more_than + 1, None) if isinstance(how, Day) else (how.alarms, how.first)
    each = codes if isinstance(how, Day) else events
    by_one = np.argsort(each, kind="stable")
    _, starts, sizes = np.unique(each[by_one], return_index=True, return_counts=True)
    if first is not None:
        by_one = by_one[np.arange(by_one.size) - np.repeat(starts, sizes) < first]
        _, starts, sizes = np.unique(each[by_one], return_index=True, return_counts=True)
    falling = by_one[np.lexsort((-scores[by_one], each[by_one]))]
    kind = scores.dtype if scores.dtype.kind == "f" else np.dtype(np.float64)
    found = np.full(starts.size, -np.inf, dtype=kind)
    enough = sizes >= n
    found[enough] = scores[falling[starts[enough] + n - 1]]
    return found, codes[by_one[starts]], ~enough


def _test_of(scores: NDArray[Any], codes: Codes, units: Coded, order: str, normal: bool) -> UnitTest:
    """Return the test of a class, whose order follows from a seed and the names of the units."""
    there, numbers, points = np.unique(codes, return_inverse=True, return_counts=True)
    texts = (f"{order} {text_of(units.values[one])}" for one in there.tolist())
    digests = [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
    drawn = np.array(sorted(range(there.size), key=digests.__getitem__), dtype=np.int64)
    rising = np.argsort(scores, kind="stable")
    return UnitTest(scores[rising], np.argsort(drawn)[numbers][rising], points[drawn], normal)
