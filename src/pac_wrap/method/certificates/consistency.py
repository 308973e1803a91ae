"""Whether what a certificate says follows from its own numbers: what was asked, counts and thresholds.

A file whose checksum fits may still have been made by anybody. What contradicts itself is not believed.
"""

import re
from collections.abc import Iterator
from math import inf, isclose
from typing import TYPE_CHECKING, Final, Literal

from pac_wrap.base.floats import represents
from pac_wrap.base.text import quoted
from pac_wrap.method.clause import MOST_SCORES
from pac_wrap.method.promise import LABELS, check_kind
from pac_wrap.method.robust.weights import Weighting
from pac_wrap.method.sampling import OF_DRAWS, OF_POOL, OF_SERIES, OF_SUBJECTS, assumed
from pac_wrap.method.strategies.interface import DIGITS, Claim, Strategy
from pac_wrap.method.thresholds import LARGEST

if TYPE_CHECKING:
    from pac_wrap.method.certificates.certificate import Certificate

_NO_SCORES: Final = "0" * 16
# as Python's packages are numbered, and no longer than they are
_VERSION: Final = r"[0-9]{1,4}([.][0-9]{1,4}){0,3}((a|b|rc)[0-9]{1,4})?([.](post|dev)[0-9]{1,8}){0,2}"
# of each class; a certificate stays short enough to be read
MOST_KINDS: Final = 40
_RATES: Final = (("FPR", "normal"), ("FNR", "anomalous"))


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
    for score in certificate.deciding:
        if score is not None and abs(score) < LARGEST and not represents(certificate.score_type, score):
            yield f"the score {score!r} behind a threshold is not a {certificate.score_type}"
    usual = (OF_DRAWS, OF_SUBJECTS, OF_POOL) if taken is None else (OF_SERIES,)
    rooms = certificate.guarantee.rooms | {"weights": certificate.weighting is not None}
    if certificate.assumptions not in (assumed(one, **rooms) for one in usual):
        yield f"these are not the assumptions of {'draws' if taken is None else 'a series'}"
    if certificate.weighting is not None:
        yield from _weighting_problems(certificate, certificate.weighting)
    yield from contradictions(certificate.claim, certificate.overlap)


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
        of = "all points" if one.of.kind is None else quoted(check_kind(one.of.kind))
        if one.of.kind is None and len(clauses) > 1 and one.n != points:
            yield f"all {label} points are {points:,}, not {one.n:,}"
        if not certificate.counted(label):
            if one.certified != one.asked:
                yield f"the ceiling of {of} is not the one that was asked for"
        elif one.certified is not None and one.errors is not None:
            spent = one.certified.spent(one.errors, one.n)
            if spent is None or not isclose(spent.rate, one.certified.ceiling, rel_tol=DIGITS):
                yield f"the ceiling of {of} is not the bound of {one.errors:,} errors"
        yield from one.problems()


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


def contradictions(claim: Claim, strategy: Strategy) -> Iterator[str]:
    """Yield what does not fit together, the quick checks first: those behind them may rely on these."""
    yield from _sizes(claim)
    if strategy.single and not strategy.one_sided and len(claim.asked.promises) == 1:
        yield f"{strategy.word} needs two ceilings, and one is asked for"
        return
    yield from strategy.problems(claim)
    yield from _thresholds(claim)
    if not strategy.given:
        yield from _crossing(claim)
    elif claim.crossing != (None, None):
        yield "no crossing points are counted where the threshold was given"


def _sizes(claim: Claim) -> Iterator[str]:
    if claim.sizes == (0, 0):
        yield "there is no score in either class"
    budgets = (claim.found.fpr, claim.found.fnr)
    for (rate, kind), n, crossing, budget in zip(_RATES, claim.sizes, claim.crossing, budgets, strict=True):
        if not 0 <= n <= MOST_SCORES:
            yield f"there cannot be {n:,} {kind} scores; a class has at most {MOST_SCORES:,}"
        if crossing is not None and not 0 <= crossing <= n:
            yield f"{crossing:,} of {n:,} {kind} scores cannot cross"
        if budget is not None and budget.n != n:
            yield f"the {rate} budget is for {budget.n:,} {kind} scores, not {n:,}"


def _thresholds(claim: Claim) -> Iterator[str]:
    """Yield thresholds that no scores give: eqs. (7) and (9)."""
    found = claim.found
    for name, threshold, budget, never in (
        ("alarm_from", found.thresholds.alarm_from, found.fpr, inf),
        ("clear_below", found.thresholds.clear_below, found.fnr, -inf),
    ):
        if (threshold is None) != (budget is None):
            yield f"{name} and its budget must both be there, or neither"
        if budget is not None and budget.errors is None and threshold != never:
            yield f"{name} must be {never} where there are too few labels"
    if found.thresholds.alarm_from == -inf:
        yield "alarm_from must lie above some score, so it cannot be -inf"


def _crossing(claim: Claim) -> Iterator[str]:
    """Yield counts of crossing points that no scores give: eq. (13)."""
    found, (high, low) = claim.found, claim.crossing
    alarm_from, clear_below = found.thresholds.alarm_from, found.thresholds.clear_below
    if alarm_from is None or clear_below is None:
        if (high, low) != (None, None):
            yield "crossing points are counted only where there are two thresholds"
        return
    if high is None or low is None:
        yield "the crossing points of both classes must be counted where there are two thresholds"
        return
    for (_, kind), count, n, everything in zip(
        _RATES, (high, low), claim.sizes, (clear_below == -inf, alarm_from == inf), strict=True
    ):
        if everything and count != n:
            yield f"all {n:,} {kind} scores cross the other threshold, not {count:,}"
    if found.fpr is None or found.fpr.errors is None or found.fnr is None or found.fnr.errors is None:
        return
    separated = found.thresholds.separated
    within = high <= found.fpr.errors, low <= found.fnr.errors
    # above the largest double there is no threshold left, so normal scores up there cross nothing
    no_room = alarm_from == clear_below == inf
    for (_, kind), count, fits, free in zip(_RATES, (high, low), within, (no_room, False), strict=True):
        if fits != separated and not free:
            regime = "separated" if separated else "overlapping"
            yield (
                f"{count:,} crossing {kind} scores are {'within' if fits else 'beyond'} the budget, but the"
                f" thresholds are {regime}"
            )
