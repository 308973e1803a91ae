"""Whether what a certificate says follows from its own numbers: what was asked, counts and thresholds.

A file whose checksum fits may still have been made by anybody. What contradicts itself is not believed.
"""

import re
from collections.abc import Iterator
from math import nan
from typing import TYPE_CHECKING, Final, Literal

from pac_wrap.base.floats import order_key
from pac_wrap.base.text import quoted
from pac_wrap.method.clause import Clause
from pac_wrap.method.promise import LABELS, check_kind
from pac_wrap.method.robust.weights import Weighting
from pac_wrap.method.sampling import OF_DRAWS, OF_POOL, OF_SERIES, OF_SUBJECTS, assumed
from pac_wrap.method.strategies.interface import Asked, Found, count_of
from pac_wrap.method.strategies.replay import NOTHING, Told, contradictions

if TYPE_CHECKING:
    from pac_wrap.method.certificates.certificate import Certificate

_NO_SCORES: Final = "0" * 16
# as Python's packages are numbered, and no longer than they are
_VERSION: Final = r"[0-9]{1,4}([.][0-9]{1,4}){0,3}((a|b|rc)[0-9]{1,4})?([.](post|dev)[0-9]{1,8}){0,2}"
# of each class; a certificate stays short enough to be read
MOST_KINDS: Final = 40


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
