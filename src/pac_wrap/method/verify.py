"""Verification of a certificate: it is made again from its scores and its own request, and compared."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isclose
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_array, as_scores, type_of
from pac_wrap.base.codec import flat
from pac_wrap.base.floats import ScoreType, is_narrower, rounded
from pac_wrap.base.text import amount, quoted
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.method.calibrate import Request, certify_classes, certify_weighted
from pac_wrap.method.certificate import Certificate, Kinds
from pac_wrap.method.classes import ClassCertificate, ClassRequest, certify_class_scores, class_matrix
from pac_wrap.method.curves.curve import Curve, CurveRequest, CurveSide
from pac_wrap.method.groups.calibrate import GroupRequest, certify_labelled_groups
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.units import both_classes, certify_units, check_in_units
from pac_wrap.method.groups.values import GroupColumn, shown
from pac_wrap.method.kinds import KindRequest, certify_mappings
from pac_wrap.method.promise import LABELS, Assumption
from pac_wrap.method.robust.weights import Weights
from pac_wrap.method.traffic.calibrate import calibrate_traffic, certify_traffic_groups

T = TypeVar("T")

_DIFFERENT: Final = "not verified: these points do not give this certificate; did they calibrate it?"
_VERIFIED: Final = """\
verified: these {} order, give this certificate
not shown: that the detector gave these scores, that the labels are right,
           that nobody chose the rows; a digest detects accidents, not forgery"""
_NO_DIGEST: Final = """\
           that these are all the very same scores: the certificate has no digest of them"""
_ORDER: Final = "weights draw points in their order, which must be that of calibration"
# how many different groups are listed, and how many differences in all
_TOLD: Final = 5
_MOST: Final = 10
# facts that do not follow from the scores
_OTHERWISE_KNOWN: Final = ("assumptions", "sampling", "version", "provenance", "lineage", "weighting.chosen")


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification; it is true exactly if the certificate follows from the scores.

    Attributes
    ----------
    differences : tuple of str
        The differences between the certificate and its scores, a sentence each.
    digested : bool
        Whether the certificate has a digest of its scores; without one, only the facts in it are compared.
    ordered : bool
        Whether the order of the points matters, since they were drawn by weights.
    """

    differences: tuple[str, ...]
    digested: bool = True
    ordered: bool = False

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.differences:
            more = amount(len(self.differences[_MOST:]), "more difference")
            notes = (f"and {more}",) * (len(self.differences) > _MOST) + (_ORDER,) * self.ordered
            return "\n  ".join((_DIFFERENT, *self.differences[:_MOST], *notes))
        order = "scores, labels and weights, in this" if self.ordered else "scores and labels, in any"
        return _VERIFIED.format(order) + f"\n{_NO_DIGEST}" * (not self.digested)


def verify(
    certificate: Certificate,
    normal: ArrayLike | Kinds,
    anomalous: ArrayLike | Kinds | None,
    weights: tuple[Weights | None, Weights | None] = (None, None),
    units: tuple[GroupColumn, GroupColumn] | None = None,
) -> Verification:
    """Return how a certificate differs from the one that the scores of its two classes give."""
    if anomalous is None:
        raise InputError("anomalous is missing; pass the calibration scores of both classes")
    drawn_by = certificate.weighting
    for label, weight in zip(LABELS, weights, strict=True):
        drawn = drawn_by is not None and getattr(drawn_by, label) is not None
        of = f"the {label} points of this certificate"
        if weight is not None and not drawn:
            raise InputError(f"{of} have no weights; remove {label}_weights")
        if weight is None and drawn:
            raise InputError(f"{of} were drawn by weights; give {label}_weights")
    kind = certificate.score_type
    low, high = as_made(kind, normal, "normal"), as_made(kind, anomalous, "anomalous")
    check_in_units(certificate, units)

    def again() -> Certificate:
        if certificate.by_kind:
            return certify_mappings(partial(KindRequest.again, certificate), low, high)
        if isinstance(low, dict) or isinstance(high, dict):
            raise InputError(
                "this certificate was made without kinds; pass the scores of each class as one array"
            )
        request = Request(certificate.guarantee, certificate.overlap)
        if units is not None:
            scores, labels = np.concatenate([low, high]), np.repeat([0, 1], [low.size, high.size])
            return certify_units(request, scores, labels, both_classes(units), certificate.units)
        if drawn_by is None:
            return certify_classes(request, low, high)
        return certify_weighted(request, (low, high), weights, drawn_by.bound, drawn_by.seed)

    return _compared(certificate, again)


def verify_traffic(
    certificate: Certificate,
    scores: Any,
    reviews: ArrayLike | None,
    anomalous: Any = None,
    audits: ArrayLike | None = None,
) -> Verification:
    """Return how a certificate of traffic differs from the one that its scores and reviews give."""
    kind, independent = certificate.score_type, Assumption.APART in certificate.assumptions
    if isinstance(scores, Mapping) or isinstance(anomalous, Mapping):
        raise InputError("this certificate was made from traffic; pass one array of scores, and reviews=")
    values = as_made(kind, scores, "scores", missing=True)
    others = None if anomalous is None else as_made(kind, anomalous, "anomalous")
    options = {"anomalous": others, "independent": independent, "audits": audits}
    again = partial(calibrate_traffic, values, reviews, certificate.guarantee, **options)
    return _compared(certificate, again)


def verify_groups(
    certificate: GroupCertificate,
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupColumn,
    anomaly_label: object = 1,
) -> Verification:
    """Return how certificates of groups differ from those that the columns of a table give."""
    kind, request = certificate.score_type, request_of(certificate, anomaly_label)
    if certificate.asked.of_traffic:
        made = as_made(kind, scores, "scores", missing=True).astype(kind)
        return _compared(certificate, partial(certify_traffic_groups, request, made, labels, groups))
    made = as_made(kind, scores, "scores").astype(kind)
    return _compared(certificate, partial(certify_labelled_groups, request, made, labels, groups))


def verify_classes(certificate: ClassCertificate, class_scores: ArrayLike, labels: ArrayLike) -> Verification:
    """Return how a certificate of classes differs from the one that a matrix of scores gives."""
    kind, severities = certificate.score_type, certificate.severities
    ceilings = tuple(one.ceiling for one in certificate.clauses)
    scores = class_matrix(class_scores, len(ceilings), single=severities is not None)
    if is_narrower(kind, type_of(as_array(class_scores, "class_scores"))):
        scores = rounded(scores, kind)
    asked = ClassRequest(certificate.classes, ceilings, certificate.delta, severities)
    return compare(certificate, certify_class_scores(asked, scores, labels, kind))


def verify_curve(curve: Curve, normal: ArrayLike, anomalous: ArrayLike) -> Verification:
    """Return how a curve differs from the one that the scores of its two classes give."""
    low, high = (as_made(curve.score_type, *one) for one in ((normal, "normal"), (anomalous, "anomalous")))
    return _compared(curve, partial(CurveRequest.of_curve(curve).certify_scores, low, high))


def request_of(certificate: GroupCertificate, anomaly_label: object = 1) -> GroupRequest:
    """Return the request that a certificate of groups was made for."""
    request = Request(certificate.asked, certificate.overlap, anomaly_label)
    return GroupRequest(request, certificate.together, certificate.pool is not None)


def compare(found: T, again: T) -> Verification:
    """Return how a certificate or a curve differs from one that was made again."""
    if isinstance(found, GroupCertificate) and isinstance(again, GroupCertificate):
        return Verification(tuple(_of_groups(found, again)))
    if isinstance(found, Curve) and isinstance(again, Curve):
        sides = ((label, getattr(found, label), getattr(again, label)) for label in LABELS)
        return Verification(tuple(text for side in sides for text in _of_side(*side)))
    assert isinstance(found, Certificate | ClassCertificate)
    digested = all(one.digest is not None for one in found.clauses)
    ordered = isinstance(found, Certificate) and found.weighting is not None
    return Verification(tuple(_of_clauses(found, again)), digested, ordered)


def _compared(found: T, again: Callable[[], T]) -> Verification:
    """Return how what was found differs from what a call makes, without warnings that were shown before."""
    with warnings.catch_warnings(action="ignore", category=PACWrapWarning):
        made = again()
    if isinstance(found, Certificate) and isinstance(made, Certificate):
        kind = found.score_type
        made = replace(made, score_type=kind, rule=made.rule.before_rounding(kind))
    return compare(found, made)


def as_made(kind: ScoreType, scores: ArrayLike | Kinds, name: str, missing: bool = False) -> Any:
    """Return scores as calibration saw them, as doubles, rounded unless they have a narrower type."""
    if isinstance(scores, Mapping):
        return {key: as_made(kind, one, name) for key, one in scores.items()}
    given = as_array(scores, name)
    values = as_scores(given, name, missing=missing)
    return rounded(values, kind) if is_narrower(kind, type_of(given)) else values


def _of_clauses(found: Any, expected: Any) -> Iterator[str]:
    """Yield the differences from the expected certificate: clauses first, then the rest."""
    said, made = ({one.of: one for one in each.clauses} for each in (found, expected))
    for of in said | made:
        if of not in made or of not in said:
            where = "in the certificate" if of in said else "among the scores"
            what = f"kind {quoted(of.kind)} is" if of.kind is not None else "points without kinds are"
            yield f"the {of.label} {what} only {where}"
        else:
            name = of.label if of.kind is None else f"{of.label} {quoted(of.kind)}"
            name = f"{of.error.value}s" if of.label in ("traffic", "alarms") else name
            yield from _differences(flat(said[of]), flat(made[of]), f"{name}.")
    theirs, ours = ({**flat(each), "clauses": None} for each in (found, expected))
    yield from _differences(theirs, ours)


def _differences(theirs: dict[str, Any], ours: dict[str, Any], where: str = "") -> Iterator[str]:
    for name in theirs | ours:
        value, other = theirs.get(name, "absent"), ours.get(name, "absent")
        if value is None and name == "digest":
            continue
        if value == other or name in _OTHERWISE_KNOWN or name.split(".")[0] in _OTHERWISE_KNOWN:
            continue
        # rates and confidences come from SciPy and may differ in the last digit; thresholds may not
        rounded = isinstance(value, float) and isinstance(other, float) and isclose(value, other)
        if not rounded or name.startswith(("rule.", "threshold")):
            yield f"{where}{name} is {value!r} in the certificate, {other!r} from the scores"


def _of_groups(found: GroupCertificate, expected: GroupCertificate) -> Iterator[str]:
    missing = [group for group in found.groups if expected.lookup.place(group) is None]
    added = [group for group in expected.groups if found.lookup.place(group) is None]
    for groups, where in ((missing, "the certificate"), (added, "the scores")):
        if groups:
            yield f"only in {where}: {amount(len(groups), 'group')}, such as {shown(groups[0])}"
    if missing or added:
        return
    if found.shares != expected.shares:
        yield f"the deltas of each group are {expected.shares}, not {found.shares}"
    order = [expected.lookup.place(group) for group in found.groups]
    again = expected.columns.permuted(np.array(order, dtype=np.intp))
    different = np.flatnonzero(~found.columns.same(again)).tolist()
    for place in different[:_TOLD]:
        one, two = (columns.at(place, found.request, found.score_type) for columns in (found.columns, again))
        told = "; ".join(_of_clauses(one, two)) or "the errors at the rule differ"
        yield f"group {shown(found.groups[place])}: {told}"
    if len(different) > _TOLD:
        yield f"{len(different) - _TOLD:,} more groups differ"
    if found.pool is not None and expected.pool is not None:
        yield from (f"the pool: {text}" for text in _of_clauses(found.pool, expected.pool))


def _of_side(name: str, found: CurveSide, expected: CurveSide) -> Iterator[str]:
    for field in ("n", "digest", "delta"):
        value, other = getattr(found, field), getattr(expected, field)
        if value != other:
            yield f"{name}.{field} is {value!r} in the curve, {other!r} from the scores"
    if found.n == expected.n and found.scores != expected.scores:
        wrong = sum(a != b for a, b in zip(found.scores, expected.scores, strict=True))
        yield f"{wrong:,} of the {len(found.scores):,} {name} scores in the curve are not at their ranks"
