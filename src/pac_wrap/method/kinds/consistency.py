"""Whether what a certificate of kinds says follows from its own numbers."""

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Final, Literal

from pac_wrap.base.text import quoted
from pac_wrap.method.certificates.consistency import inconsistencies
from pac_wrap.method.kinds.part import Part
from pac_wrap.method.promise import check_kind
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.thresholds import Evidence

if TYPE_CHECKING:
    from pac_wrap.method.kinds.certificate import KindCertificate

# of each class; a certificate stays short enough to be read
MOST_KINDS: Final = 40
Label = Literal["normal", "anomalous"]
# what the certificate of two kinds says of one of them: evidence, threshold, ceiling and delta
_Bound = tuple[Evidence, float | None, float | None, float]


def kind_problems(certificate: "KindCertificate") -> Iterator[str]:
    """Yield what contradicts itself: a part, the kinds that bind, or their own certificate."""
    yield from inconsistencies(certificate.binding)
    if not isinstance(certificate.binding.overlap, Abstain | Hold):
        yield f"{certificate.binding.overlap.word} keeps no ceiling of a kind"
    edges, asked = certificate.thresholds, certificate.binding.guarantee
    normal = certificate.binding.normal, edges.alarm_from, asked.max_fpr, asked.delta_fpr
    anomalous = certificate.binding.anomalous, edges.clear_below, asked.max_fnr, asked.delta_fnr
    sides: tuple[tuple[Label, tuple[Part, ...], float, _Bound], ...] = (
        ("normal", certificate.normal, inf, normal),
        ("anomalous", certificate.anomalous, -inf, anomalous),
    )
    for label, parts, never, _ in sides:
        yield from _part_problems(label, parts, never, counted=certificate.counted(label))
    # which part binds can be told only if each is sound
    for (label, parts, _, bound), part in zip(sides, certificate.binds, strict=True):
        evidence, threshold, ceiling, delta = bound
        if part is None:
            n = sum(one.n for one in parts if one.name is not None or len(parts) == 1)
            if ceiling is not None or evidence.n != n:
                yield f"nothing is promised of {n:,} {label} points, and the rule rests on something else"
            continue
        found = (part.asked, part.delta, part.n, part.digest, part.errors, part.threshold)
        if found != (ceiling, delta, evidence.n, evidence.digest, _errors(evidence), threshold):
            yield f"the rule is not that of the {label} part that binds, {quoted(part.name)}"


def _errors(evidence: Evidence) -> int | None:
    return None if evidence.budget is None else evidence.budget.errors


def _part_problems(label: str, parts: tuple[Part, ...], never: float, *, counted: bool) -> Iterator[str]:
    names = [part.name for part in parts]
    if not parts or len(set(names)) < len(names) or len(names) > MOST_KINDS + 1:
        yield f"the {label} class must have 1 to {MOST_KINDS} kinds, each once"
    for part in parts:
        if part.name is not None:
            check_kind(part.name)
        yield from part.problems(never, counted=counted)
    kinds = sum(part.n for part in parts if part.name is not None)
    for part in parts:
        if part.name is None and len(parts) > 1 and part.n != kinds:
            yield f"all {label} points are {kinds:,}, not {part.n:,}"
